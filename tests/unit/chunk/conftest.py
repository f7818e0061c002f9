"""Documents built block by block, for tests of the chunker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from kb_resources.model import Block, PageSpan, ParsedDocument

Spec = dict[str, Any]


def _build(specs: Sequence[Spec], title: str = "Handbook") -> ParsedDocument:
    """A document from blocks given as dicts of `Block` fields without spans.

    Headings are written with their text alone; marks and heading paths are added. `path=` sets
    a heading path by hand.
    """
    body = ""
    blocks: list[Block] = []
    pages: list[PageSpan] = []
    above: list[tuple[int, str]] = []
    page_byte = page_char = 0
    for spec in specs:
        fields = {"kind": "paragraph", **spec}
        path = fields.pop("path", None)
        if fields["kind"] == "heading":
            level = fields.setdefault("level", 2)
            above = [pair for pair in above if pair[0] < level] + [(level, fields["text"])]
            fields["text"] = f"{'#' * level} {fields['text']}"
        if body:
            body += "\n\n"
        page = fields.get("page")
        if page is not None and (not blocks or blocks[-1].page != page):
            page_byte, page_char = len(body.encode()), len(body)
        start, byte_start = len(body), len(body.encode())
        body += fields["text"]
        end, byte_end = len(body), len(body.encode())
        if page is not None:
            span = PageSpan(page, page_byte, byte_end, page_char, end)
            if pages and pages[-1].page == page:
                pages[-1] = span
            else:
                pages.append(span)
        offset = page_char if page is not None else 0
        blocks.append(
            Block(
                byte_start=byte_start,
                byte_end=byte_end,
                char_start=start - offset,
                char_end=end - offset,
                heading_path=tuple(t for _, t in above) if path is None else path,
                **fields,
            )
        )
    return ParsedDocument(title, "text/markdown", body, tuple(blocks), tuple(pages))


@pytest.fixture(scope="session")
def build() -> Callable[..., ParsedDocument]:
    """`build([{"kind": "heading", "text": "Leave"}, {"text": "..."}], title="Handbook")`."""
    return _build


@pytest.fixture(scope="session")
def cpu_seconds() -> Callable[[], AbstractContextManager[Callable[[], float]]]:
    """`with cpu_seconds() as spent: ...; spent()`: processor time, immune to a busy machine."""

    @contextmanager
    def measured() -> Iterator[Callable[[], float]]:
        start = time.process_time()
        end: list[float] = []
        yield lambda: end[0]
        end.append(time.process_time() - start)

    return measured
