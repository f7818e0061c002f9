"""The one serialiser: draft blocks in, canonical Markdown with exact offsets out.

Belongs here: marks, escapes, offsets, page spans, heading paths and derived locators, the same for
every format. Reading a format is the readers' work, cutting chunks is `chunk`'s. Only marks at the
start of a block are escaped, so that a sentence stays as the document says it (CommonMark 0.31,
https://spec.commonmark.org/0.31.2/).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kb_resources.model import Block, PageSpan
from kb_resources.parse.clean import collapse, one_line, visible, well_formed
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.promote import is_provision

_SEPARATOR = "\n\n"
# What would start another block: ATX heading, quote, bullet, ordered item, fence, rule or setext
# underline, table row, HTML block, link reference definition, front matter.
_MARK = re.compile(
    r"#{1,6}(?=\s|$)|>|[-+*](?=\s|$)|`{3,}|~{3,}|={3,}\s*$|(?:[-*_+]\s*){3,}$|\||<(?=[a-zA-Z/!?])"
    r"|\[[^\]]*\]:"
)
_ORDERED_MARK = re.compile(r"(\d{1,9})([.)])(?=\s|$)")
_MARKDOWN_NUMBER = re.compile(r"\d{1,9}[.)]")
_CLOSING_MARKS = re.compile(r"(?<![^\s])(#+)$")
_BACKTICKS = re.compile(r"`{3,}")


@dataclass(frozen=True, slots=True)
class Body:
    """A serialised document.

    Attributes:
        text: the canonical Markdown.
        blocks: cover the text but for the blank lines between them.
        pages: spans of the pages that have text.
        raw_text: the same words with invisible characters kept, one line per block.
    """

    text: str
    blocks: tuple[Block, ...]
    pages: tuple[PageSpan, ...]
    raw_text: str


@dataclass(slots=True)
class _Cursor:
    """Where the next block goes: offsets in the body and in its page."""

    byte: int = 0
    char: int = 0
    page_start: int = 0
    page: int | None = None


def serialise(drafts: Iterable[DraftBlock]) -> Body:
    """Write drafts as one Markdown body and record where each of them stands.

    Blocks without a visible character leave no trace in the body (they stay in `raw_text`).
    Pages are made contiguous: drafts are ordered by page, stably, and a draft without a page in a
    paged document belongs to the page of the one before.

    Args:
        drafts: in reading order.

    Returns:
        Body whose spans hold exactly: `text.encode()[b.byte_start:b.byte_end] == b.text.encode()`.
    """
    ordered = _by_page(list(drafts))
    cursor = _Cursor()
    path: list[tuple[int, str]] = []
    indents: list[int] = []
    blocks: list[Block] = []
    for draft in ordered:
        indents = indents if draft.kind == "list_item" else []
        text = _markdown(draft, indents)
        if not text:
            continue
        if draft.kind == "heading":
            level = min(max(draft.level or 1, 1), 6)
            path = [step for step in path if step[0] < level]
            path.append((level, one_line(draft.text)))
        blocks.append(_place(draft, text, cursor, tuple(step[1] for step in path), bool(blocks)))
    return Body(
        text=_SEPARATOR.join(block.text for block in blocks),
        blocks=tuple(blocks),
        pages=_page_spans(blocks),
        raw_text="\n".join(raw for draft in ordered if (raw := _raw(draft))),
    )


def _place(
    draft: DraftBlock, text: str, cursor: _Cursor, path: tuple[str, ...], goes_on: bool
) -> Block:
    if goes_on:
        cursor.byte += len(_SEPARATOR)
        cursor.char += len(_SEPARATOR)
    if draft.page != cursor.page:
        cursor.page, cursor.page_start = draft.page, cursor.char
    start_byte, start_char = cursor.byte, cursor.char - cursor.page_start
    cursor.byte += len(text.encode())
    cursor.char += len(text)
    return Block(
        kind=draft.kind,
        text=text,
        byte_start=start_byte,
        byte_end=cursor.byte,
        char_start=start_char,
        char_end=start_char + len(text),
        page=draft.page,
        bbox=draft.bbox,
        heading_path=path,
        locator=one_line(draft.locator or "") or _derived_locator(path, draft.page),
        level=min(max(draft.level or 1, 1), 6) if draft.kind == "heading" else None,
        continues=draft.continues,
        confidence=draft.confidence,
    )


def _by_page(drafts: list[DraftBlock]) -> list[DraftBlock]:
    first = next((d.page for d in drafts if d.page is not None), None)
    if first is None:
        return drafts
    filled, page = [], first
    for draft in drafts:
        page = draft.page if draft.page is not None else page
        filled.append(draft if draft.page == page else replace(draft, page=page))
    return sorted(filled, key=lambda d: d.page or 0)


def _page_spans(blocks: Sequence[Block]) -> tuple[PageSpan, ...]:
    spans: list[PageSpan] = []
    char = 0
    for block in blocks:
        end = char + len(block.text)
        if block.page is not None:
            if spans and spans[-1].page == block.page:
                spans[-1] = replace(spans[-1], byte_end=block.byte_end, char_end=end)
            else:
                spans.append(PageSpan(block.page, block.byte_start, block.byte_end, char, end))
        char = end + len(_SEPARATOR)
    return tuple(spans)


def _derived_locator(path: tuple[str, ...], page: int | None) -> str | None:
    for heading in reversed(path):
        if is_provision(heading):
            return heading
    return None if page is None else f"Page {page}"


def _raw(draft: DraftBlock) -> str:
    if draft.kind == "table":
        return "\n".join(
            line for row in draft.rows if (line := collapse(well_formed("\t".join(row))))
        )
    text = well_formed(draft.text).replace("\x00", "")
    return text if draft.kind == "code" else collapse(text)


def _markdown(draft: DraftBlock, indents: list[int]) -> str:
    match draft.kind:
        case "table":
            return _table(draft)
        case "code":
            return _code(draft)
        case "heading":
            text = one_line(draft.text)
            text = _CLOSING_MARKS.sub(lambda m: "\\" + m[1], text)
            return f"{'#' * min(max(draft.level or 1, 1), 6)} {text}" if text else ""
        case "list_item":
            return _list_item(draft, indents)
        case "footnote" if _ORDERED_MARK.match(text := one_line(draft.text)):
            return text  # as a list item of that number it reads the same, without a backslash
        case _:
            return _escaped(one_line(draft.text))


def _escaped(text: str) -> str:
    if _MARK.match(text):
        return "\\" + text
    return _ORDERED_MARK.sub(r"\1\\\2", text, count=1) if _ORDERED_MARK.match(text) else text


def _list_item(draft: DraftBlock, indents: list[int]) -> str:
    text = one_line(draft.text)
    if not text:
        return ""
    marker = one_line(draft.marker or "-")
    if _MARKDOWN_NUMBER.fullmatch(marker):
        mark, text = marker, _escaped(text)
    elif marker in {"-", "*", "+", "•", "◦", "▪", "–", "·", "o"}:
        mark, text = "-", _escaped(text)
    else:  # "b)", "(iv)": Markdown knows no such marker, the text keeps it
        mark, text = "-", _escaped(f"{marker} {text}")
    depth = max(draft.level or 1, 1) - 1
    del indents[depth:]
    indent = sum(indents)
    indents.append(len(mark) + 1)
    return f"{' ' * indent}{mark} {text}"


def _code(draft: DraftBlock) -> str:
    text = visible(draft.text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n")
    if not text.strip():
        return ""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    language = re.sub(r"[^\w+#.-]", "", draft.language or "")
    return f"{fence}{language}\n{text}\n{fence}"


def _table(draft: DraftBlock) -> str:
    rows = [[one_line(cell).replace("|", "\\|") for cell in row] for row in draft.rows]
    width = max((len(row) for row in rows), default=0)
    if not width or not any(any(row) for row in rows):
        return ""
    rows = [row + [""] * (width - len(row)) for row in rows]
    heads, data = rows[: draft.header_rows], rows[draft.header_rows :]
    header = [
        " / ".join(dict.fromkeys(filter(None, column))) for column in zip(*heads, strict=True)
    ]
    lines = [header or [""] * width, ["---"] * width, *data]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)
