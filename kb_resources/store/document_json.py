"""A parsed document as JSON and back, with errors that say where.

Belongs here: the format `kb.document/1`: for moving documents between installations and for
callers that parse on their own. What does not: the rows of the ledger (`codec`), exports for people
(`parse.export`). The id is no part of it: the same document may be put under any.
Places in errors are written as JSON pointers, RFC 6901.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

from kb_resources.errors import InputError
from kb_resources.model import PageSpan, ParsedDocument
from kb_resources.model.parsed import BlockKind
from kb_resources.store import codec

FORMAT = "kb.document/1"
_KINDS = get_args(BlockKind)
_OPTIONAL: dict[str, Callable[[Any], bool]] = {
    "page": lambda value: _whole(value) and value >= 1,
    "level": lambda value: _whole(value) and 1 <= value <= 6,
    "locator": lambda value: isinstance(value, str),
    "continues": lambda value: isinstance(value, bool),
    "confidence": lambda value: _number(value) and 0 <= value <= 1,
    "path": lambda value: isinstance(value, list) and all(isinstance(p, str) for p in value),
    "bbox": lambda value: isinstance(value, list) and len(value) == 4 and all(map(_number, value)),
}


def document_to_json(document: ParsedDocument) -> dict[str, Any]:
    """Everything a reader may see of a parsed document; texts of blocks are slices of the body.

    The scan's input (raw text, hidden texts) stays behind: who reads this back scans again.
    """
    return {
        "format": FORMAT,
        "title": document.title,
        "media_type": document.media_type,
        "body": document.body,
        "blocks": codec.blocks_to_json(document.blocks),
        "pages": codec.pages_to_json(document.pages),
        "coverage": codec.coverage_to_json(document.coverage),
        "parser": document.parser,
        "metadata": dict(document.metadata),
    }


def document_from_json(data: str | bytes | Mapping[str, Any]) -> ParsedDocument:
    """Inverse of `document_to_json`.

    Args:
        data: JSON text, or its value.

    Raises:
        InputError: with code `document_invalid`; the message names the place and what was expected.
    """
    root = _parsed(data) if isinstance(data, str | bytes) else data
    if not isinstance(root, Mapping):
        raise _wrong("", "an object")
    if root.get("format") != FORMAT:
        raise _wrong("/format", f'"{FORMAT}"')
    for name in ("title", "media_type", "body"):
        if not isinstance(root.get(name), str):
            raise _wrong(f"/{name}", "a string")
    if not root["title"].strip():
        raise _wrong("/title", "a string that is not blank")
    metadata = root.get("metadata", {})
    if not isinstance(metadata, Mapping) or not all(isinstance(v, str) for v in metadata.values()):
        raise _wrong("/metadata", "an object of strings")
    body = root["body"]
    if codec.storable(body) != body:
        raise _wrong("/body", "a string without U+0000 and lone surrogates")
    blocks = root.get("blocks")
    if not isinstance(blocks, list):
        raise _wrong("/blocks", "a list")
    pages = root.get("pages", [])
    if not isinstance(pages, list):
        raise _wrong("/pages", "a list")
    spans = _pages(pages, body)
    _check_blocks(blocks, body, {span.page: span for span in spans})
    coverage = root.get("coverage", {})
    try:
        covered = codec.coverage_from_json(dict(coverage))
    except (TypeError, KeyError, ValueError) as error:
        raise _wrong("/coverage", "an object as `document_to_json` writes it") from error
    return ParsedDocument(
        title=root["title"],
        media_type=root["media_type"],
        body=body,
        blocks=codec.blocks_from_json(blocks, body),
        pages=spans,
        raw_text=body,
        coverage=covered,
        parser=str(root.get("parser", "")),
        metadata=dict(metadata),
    )


def _parsed(text: str | bytes) -> Any:
    where = ""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}: {error.msg}"
    except UnicodeDecodeError as error:
        where = f"byte {error.start} is not UTF-8"
    except RecursionError:
        where = "it is nested too deeply"
    raise InputError(
        f"This is not JSON: {where}.",
        next_step="Give what document_to_json wrote.",
        code="document_invalid",
    )


def _pages(rows: list[Any], body: str) -> tuple[PageSpan, ...]:
    data, end, spans = body.encode(), 0, []
    for at, row in enumerate(rows):
        place = f"/pages/{at}"
        if not (isinstance(row, list) and len(row) == 5 and all(map(_whole, row))):
            raise _wrong(place, "[page, byte_start, byte_end, char_start, char_end]")
        span = PageSpan(*row)
        if not (end <= span.char_start <= span.char_end <= len(body)) or span.page < 1:
            raise _wrong(place, "a span inside the body, after the page before")
        bytes_there = data[span.byte_start : span.byte_end]
        if bytes_there != body[span.char_start : span.char_end].encode():
            raise _wrong(place, "byte and character offsets of the same text")
        end = span.char_end
        spans.append(span)
    return tuple(spans)


def _check_blocks(rows: list[Any], body: str, pages: Mapping[int, PageSpan]) -> None:
    data, end = body.encode(), 0
    for at, row in enumerate(rows):
        place = f"/blocks/{at}"
        if not isinstance(row, Mapping):
            raise _wrong(place, "an object")
        if row.get("kind") not in _KINDS:
            raise _wrong(f"{place}/kind", f"one of {', '.join(_KINDS)}")
        for name in ("bytes", "chars"):
            span = row.get(name)
            if not (isinstance(span, list) and len(span) == 2 and all(map(_whole, span))):
                raise _wrong(f"{place}/{name}", "two whole numbers")
        for name, fits in _OPTIONAL.items():
            if name in row and not fits(row[name]):
                raise _wrong(f"{place}/{name}", "a value as `document_to_json` writes it")
        page = pages.get(row["page"]) if "page" in row else None
        if "page" in row and page is None:
            raise _wrong(f"{place}/page", "a page that /pages names")
        offset = page.char_start if page else 0
        start, stop = (offset + position for position in row["chars"])
        if not end <= row["bytes"][0] < row["bytes"][1] <= len(data):
            raise _wrong(f"{place}/bytes", "a span inside the body, after the block before")
        if not 0 <= start < stop <= len(body) or (
            data[row["bytes"][0] : row["bytes"][1]] != body[start:stop].encode()
        ):
            raise _wrong(f"{place}/chars", "the characters that /bytes spans")
        end = row["bytes"][1]


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrong(place: str, expected: str) -> InputError:
    return InputError(
        f"{place or 'The root'} is not {expected}.",
        next_step="Give what document_to_json wrote.",
        code="document_invalid",
    )
