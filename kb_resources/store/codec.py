"""Parsed documents to and from the rows they are stored in.

Belongs here: JSON shapes of blocks, pages, hidden texts and coverage. What does not: SQL.
Postgres text and jsonb hold neither U+0000 nor lone surrogates (postgresql.org/docs, "8.14. JSON
Types"), so both are replaced here, once, before anything is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from kb_resources.model import (
    BBox,
    Block,
    Coverage,
    HiddenText,
    PageSpan,
    ParsedDocument,
    RecognisedPage,
    RemovedLine,
)

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """The text with U+0000 and lone surrogates as U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text


def storable_json(value: Any) -> Any:
    """The same for every string inside a JSON value."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {storable(str(key)): storable_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable_json(item) for item in value]
    return value


def blocks_to_json(blocks: tuple[Block, ...]) -> list[dict[str, Any]]:
    """Blocks without their text (a slice of the body) and without default values."""
    rows = []
    for block in blocks:
        row: dict[str, Any] = {
            "kind": block.kind,
            "bytes": [block.byte_start, block.byte_end],
            "chars": [block.char_start, block.char_end],
        }
        if block.page is not None:
            row["page"] = block.page
        if block.bbox is not None:
            row["bbox"] = [
                round(edge, 1)
                for edge in (block.bbox.left, block.bbox.top, block.bbox.right, block.bbox.bottom)
            ]
        if block.heading_path:
            row["path"] = list(block.heading_path)
        for name in ("locator", "level", "continues"):
            if value := getattr(block, name):
                row[name] = value
        if block.confidence != 1.0:
            row["confidence"] = round(block.confidence, 3)
        rows.append(row)
    return rows


def blocks_from_json(rows: list[dict[str, Any]], body: str) -> tuple[Block, ...]:
    """Inverse of `blocks_to_json`; texts are cut from the body's UTF-8 bytes."""
    data = body.encode()
    return tuple(
        Block(
            kind=row["kind"],
            text=data[row["bytes"][0] : row["bytes"][1]].decode(),
            byte_start=row["bytes"][0],
            byte_end=row["bytes"][1],
            char_start=row["chars"][0],
            char_end=row["chars"][1],
            page=row.get("page"),
            bbox=BBox(*row["bbox"]) if "bbox" in row else None,
            heading_path=tuple(row.get("path", ())),
            locator=row.get("locator"),
            level=row.get("level"),
            continues=row.get("continues", False),
            confidence=row.get("confidence", 1.0),
        )
        for row in rows
    )


def pages_to_json(pages: tuple[PageSpan, ...]) -> list[list[int]]:
    """Pages as `[page, byte_start, byte_end, char_start, char_end]`."""
    return [[p.page, p.byte_start, p.byte_end, p.char_start, p.char_end] for p in pages]


def hidden_to_json(hidden: tuple[HiddenText, ...]) -> list[dict[str, str]]:
    """Hidden texts, made storable."""
    return [{"kind": h.kind, "place": storable(h.place), "text": storable(h.text)} for h in hidden]


def hidden_from_json(rows: list[dict[str, str]]) -> tuple[HiddenText, ...]:
    """Inverse of `hidden_to_json`."""
    return tuple(HiddenText(row["kind"], row["place"], row["text"]) for row in rows)


def coverage_to_json(coverage: Coverage) -> dict[str, Any]:
    """Coverage as plain JSON."""
    value: dict[str, Any] = storable_json(asdict(coverage))
    return value


def coverage_from_json(row: dict[str, Any]) -> Coverage:
    """Inverse of `coverage_to_json`; unknown keys of later versions are passed over."""
    known = {field.name for field in fields(Coverage)}
    values = {key: value for key, value in row.items() if key in known}
    values["removed_lines"] = tuple(
        RemovedLine(item["page"], item["text"], item["reason"])
        for item in values.get("removed_lines", ())
    )
    values["recognised"] = tuple(RecognisedPage(**item) for item in values.get("recognised", ()))
    for name in ("warnings", "pages_needing_ocr", "table_confidences"):
        values[name] = tuple(values.get(name, ()))
    return Coverage(**values)


def parsed_from_row(row: Mapping[str, Any]) -> ParsedDocument:
    """A parsed document from its row, without the scan's input (raw text, hidden texts)."""
    return ParsedDocument(
        title=row["title"] or "",
        media_type=row["media_type"],
        body=row["body"],
        blocks=blocks_from_json(row["blocks"], row["body"]),
        pages=tuple(PageSpan(*page) for page in row["pages"]),
        coverage=coverage_from_json(row["coverage"]),
        parser=row["parser"],
        metadata=row["metadata"],
    )
