"""Plain text: paragraphs between blank lines, nothing guessed but list items and code.

Belongs here: text/plain. Markdown is `markdown.py`'s: "#hashtag" alone makes no heading. Line ends
are those of https://www.unicode.org/reports/tr18/#Line_Boundaries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb_resources.model import Coverage, DocumentState, Refusal
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.encoding import decode
from kb_resources.parse.reading import Reading

_LINE_END = re.compile(r"\r\n|[\r\n\x0b\x0c\x85\u2028]")
_MARGIN = 132
_ITEM = re.compile(r"([-*+•◦▪–]|\d{1,3}[.)]|[a-zа-я][.)])\s+(?=\S)")


def read_text(data: bytes, name: str, declared: str | None = None) -> Reading | Refusal:
    """Read plain text of any encoding.

    Args:
        data: the bytes.
        name: file name, for the reason only.
        declared: charset given by the transport, a hint.

    Returns:
        Reading with one block per paragraph or list item, or a Refusal (`unsupported`) when no
        encoding gives words.
    """
    decoded = decode(data, declared)
    if decoded is None:
        return undecodable(name)
    warnings = () if decoded.certain else (uncertain(decoded.encoding),)
    return Reading(
        drafts=tuple(paragraphs(decoded.text)),
        parser="text",
        coverage=Coverage(warnings=warnings),
        metadata={"encoding": decoded.encoding},
    )


def undecodable(name: str) -> Refusal:
    """The refusal of bytes that are text in no known encoding."""
    return Refusal(
        DocumentState.UNSUPPORTED,
        f"No encoding known here makes words of {name!r}; save it as UTF-8 and try again.",
    )


def uncertain(encoding: str) -> str:
    """The warning of an encoding that was a close call."""
    return f"The encoding was a close call and read as {encoding}; save the file as UTF-8."


def paragraphs(text: str) -> Iterator[DraftBlock]:
    """Paragraphs (separated by blank lines or U+2029) and list items of a plain text."""
    chunks = [_LINE_END.split(chunk) for chunk in text.split("\u2029")]
    wrapped = _is_wrapped([line for lines in chunks for line in lines])
    for chunk in chunks:
        lines: list[str] = []
        for line in chunk:
            if line.strip():
                lines.append(line)
            if lines and (not line.strip() or not wrapped):
                yield from _block(lines)
                lines = []
        if lines:
            yield from _block(lines)


def _is_wrapped(lines: list[str]) -> bool:
    """Whether lines were broken at a margin, so that a line end is no paragraph's end.

    Then no line is much longer than a typewriter's, and blank lines part the paragraphs or most
    lines are about as long as the longest. Otherwise somebody pressed Enter after each paragraph.
    """
    lengths = sorted(len(line) for line in lines if line.strip())
    if not lengths or lengths[-1] > _MARGIN:
        return False
    if len(lines) - len(lengths) - (not lines[-1].strip()) >= max(len(lengths) * 0.05, 1):
        return True
    usual = lengths[int(len(lengths) * 0.95)]
    return sum(length >= usual * 0.6 for length in lengths) >= len(lengths) * 0.4


def _block(lines: list[str]) -> Iterator[DraftBlock]:
    """One paragraph, or its items where the first line is one."""
    items: list[list[str]] = []
    if _ITEM.match(lines[0].lstrip()) and sum(bool(_ITEM.match(x.lstrip())) for x in lines) > 1:
        for line in lines:
            if _ITEM.match(line.lstrip()) or not items:
                items.append([line.strip()])
            else:
                items[-1].append(line.strip())
    if not items:
        yield DraftBlock("paragraph", "\n".join(lines))
        return
    for item in items:
        text = " ".join(item)
        if match := _ITEM.match(text):
            yield DraftBlock("list_item", text[match.end() :], level=1, marker=match[1])
