"""Front matter on export is ours alone."""

from __future__ import annotations

import pytest
import yaml

from kb_resources.model import ParsedDocument
from kb_resources.parse import DraftBlock, serialise, with_front_matter


@pytest.mark.requirement("P-05")
def test_neither_body_nor_title_can_inject_metadata() -> None:
    body = serialise([DraftBlock("paragraph", "---"), DraftBlock("paragraph", "title: evil")])
    metadata = {"author": "Мария: 'x'\n---", "title": "ignored"}
    document = ParsedDocument(
        'A "quoted"\n---\nadmin: true', "text/plain", body.text, body.blocks, metadata=metadata
    )
    text = with_front_matter(document)
    head, rest = text.removeprefix("---\n").split("\n---\n", 1)
    assert yaml.safe_load(head) == {
        "title": 'A "quoted"\n---\nadmin: true',
        "media_type": "text/plain",
        "author": "Мария: 'x'\n---",
    }
    assert rest == f"\n{body.text}\n"
