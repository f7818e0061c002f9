"""Sections as a model is shown them, and what of a reply becomes notes."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.generate import Notes, Section, notes_request, read_notes, sections
from kb_resources.generate.section import LONGEST_REQUEST, SUMMARY_CHARS, Text
from kb_resources.model import ParsedDocument
from kb_resources.parse import DraftBlock, serialise
from kb_resources.retrieve.outline import node_id


def parsed(*blocks: tuple[int, str]) -> ParsedDocument:
    """A document of headings (level from 1) and paragraphs (level 0)."""
    body = serialise(
        DraftBlock(kind="heading" if level else "paragraph", text=text, level=level or None)
        for level, text in blocks
    )
    return ParsedDocument("Title", "text/plain", body.text, body.blocks, body.pages)


def texts(section: Section) -> str:
    return "".join(part.text if isinstance(part, Text) else texts(part) for part in section.parts)


@pytest.mark.requirement("W-09")
def test_sections_nest_by_headings_and_carry_the_outline_s_ids() -> None:
    document = parsed(
        *[(1, "A"), (0, "One."), (2, "B"), (0, "Two.")],
        *[(2, "B"), (0, "Three."), (1, "C"), (0, "Four.")],
    )
    found = {section.node_id: (section, depth) for section, depth in sections(document).bottom_up()}
    body = document.body.encode()
    for path, nth, depth, text in [
        (("A",), 0, 1, "# A\n\nOne.\n\n## B\n\nTwo.\n\n## B\n\nThree."),
        (("A", "B"), 0, 2, "## B\n\nTwo."),
        (("A", "B"), 1, 2, "## B\n\nThree."),
        (("C",), 0, 1, "# C\n\nFour."),
    ]:
        section, at = found[node_id(path, nth)]
        assert at == depth
        assert body[section.byte_start : section.byte_end].decode() == text
    order = [section.title for section, _ in sections(document).bottom_up()]
    assert order == ["B", "B", "A", "C", document.title]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 30_000)), min_size=1, max_size=12))
def test_every_request_fits_and_every_text_is_shown_once(parts: list[tuple[int, int]]) -> None:
    document = parsed(
        *itertools.chain.from_iterable(
            ([(level, "H")] if level else []) + [(0, "word " * (size // 5) + "w")]
            for level, size in parts
        )
    )
    root = sections(document)
    ids = [section.node_id for section, _ in root.bottom_up()]
    assert len(ids) == len(set(ids))
    assert texts(root).replace("\n", "") == document.body.replace("\n", "")
    for section, _ in root.bottom_up():
        longest = max((part.shown for part in section.parts), default=0)
        assert sum(part.shown for part in section.parts) <= max(LONGEST_REQUEST, longest)


@pytest.mark.requirement("W-08")
def test_notes_keep_what_stands_in_the_section() -> None:
    reply = {
        "summary": " On\n leave\u200b. ",
        "entities": [
            {"text": "ana  kos", "type": "person", "score": 0.9},
            {"text": "Zeus", "type": "person", "score": 1},
            {"text": "office", "type": "thing", "score": 7},
            "nonsense",
        ],
        "keywords": ["leave", "leave", 7, "", "x" * 200],
    }
    found = read_notes(f"```json\n{json.dumps(reply)}\n```", "Ana Kos runs the Office.")
    assert found is not None
    assert found.summary == "On leave ."
    assert [(e.text, e.type, e.score) for e in found.entities] == [
        ("ana kos", "person", 0.9),
        ("office", "other", 0.0),
    ]
    assert found.keywords == ("leave",)
    assert Notes.from_json(json.loads(json.dumps(found.to_json()))) == found


@pytest.mark.parametrize("reply", ["", "{}", "[1]", '{"summary": ""}', '{"summary": []}', "{" * 9])
def test_other_replies_are_none(reply: str) -> None:
    assert read_notes(reply, "text") is None


def test_a_long_summary_ends_at_a_sentence() -> None:
    found = read_notes(json.dumps({"summary": "One is said. " + "word " * 400}), "")
    assert found is not None
    assert found.summary == "One is said."
    found = read_notes(json.dumps({"summary": "word " * 400}), "")
    assert found is not None
    assert len(found.summary) <= SUMMARY_CHARS
    assert found.summary.endswith("word…")


def test_the_same_section_has_the_same_digest_whatever_the_fence() -> None:
    first, second = (notes_request("T", ["a", "b"]) for _ in range(2))
    assert first.digest == second.digest
    assert first.text != second.text
    assert notes_request("U", ["a", "b"]).digest != first.digest
