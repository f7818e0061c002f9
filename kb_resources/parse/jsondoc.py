"""JSON: keys become headings, values paragraphs, records stay together.

Belongs here: application/json and JSON Lines. Depth is bounded before the parser sees the text, so
that nesting cannot exhaust the stack (RFC 8259 section 9 allows a limit).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kb_resources.model import Coverage, DocumentState, Refusal
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.encoding import decode
from kb_resources.parse.reading import Reading
from kb_resources.parse.text import uncertain, undecodable

MAX_DEPTH = 200
"""Deepest nesting of arrays and objects that is read."""

_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_HEADING_LEVELS = 6


def read_json(data: bytes, name: str) -> Reading | Refusal:
    """Read one JSON text or JSON Lines.

    Returns:
        Reading, or a Refusal: `corrupt` for malformed or too deep JSON, `unsupported` for an
        unknown encoding.
    """
    decoded = decode(data)
    if decoded is None:
        return undecodable(name)
    text = decoded.text.lstrip("\ufeff")
    depth = _depth(text)
    if depth > MAX_DEPTH:
        return Refusal(
            DocumentState.CORRUPT,
            f"The JSON is nested more than {MAX_DEPTH} levels deep; flatten it.",
            {"depth": depth, "limit": MAX_DEPTH},
        )
    try:
        values = _load(text)
    except ValueError as error:
        return Refusal(DocumentState.CORRUPT, f"The JSON is malformed: {error}.")
    drafts = tuple(
        draft
        for n, value in enumerate(values, 1)
        for draft in _blocks(value, 1, f"Record {n}" if len(values) > 1 else None)
    )
    title = next((str(v["title"]) for v in values[:1] if _has_title(v)), "")
    warnings = () if decoded.certain else (uncertain(decoded.encoding),)
    return Reading(drafts, "json", title=title, coverage=Coverage(warnings=warnings))


def _has_title(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("title"), str)


def _load(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not all(line.lstrip()[0] in "{[" for line in lines[:3]):
            raise
        return [json.loads(line) for line in lines]


def _depth(text: str) -> int:
    depth = deepest = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        if match[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif match[0] in "]}":
            depth -= 1
    return deepest


def _blocks(value: Any, level: int, locator: str | None) -> Iterator[DraftBlock]:
    if isinstance(value, dict):
        yield from _object(value, level, locator)
    elif isinstance(value, list):
        yield from _array(value, level, locator)
    elif (text := _scalar(value)) is not None:
        yield DraftBlock("paragraph", text, locator=locator)


def _object(value: dict[str, Any], level: int, locator: str | None) -> Iterator[DraftBlock]:
    for key, child in value.items():
        text = _scalar(child)
        if isinstance(child, str) and (len(child) > 80 or "\n" in child):
            yield DraftBlock("heading", key, level=min(level, _HEADING_LEVELS), locator=locator)
            for part in re.split(r"\n\s*\n", child):
                yield DraftBlock("paragraph", part, locator=locator)
        elif text is not None:
            yield DraftBlock("paragraph", f"{key}: {text}", locator=locator)
        elif child:
            yield DraftBlock("heading", key, level=min(level, _HEADING_LEVELS), locator=locator)
            yield from _blocks(child, level + 1, locator)


def _array(value: list[Any], level: int, locator: str | None) -> Iterator[DraftBlock]:
    for n, child in enumerate(value, 1):
        where = f"{locator}, item {n}" if locator else f"Item {n}"
        text = _scalar(child)
        if text is not None:
            yield DraftBlock("list_item", text, level=1, marker="-", locator=where)
        else:
            yield from _blocks(child, level, where)


def _scalar(value: Any) -> str | None:
    """A leaf as text, None for containers; null and booleans as JSON writes them."""
    if isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
