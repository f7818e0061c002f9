"""What every format reader returns, and its assembly into a `ParsedDocument`.

Belongs here: the shape between readers and the rest, titles, the share of glyph garbage, the empty
outcome. Offsets are `body.py`'s work. The replacement marks counted are those of pdfminer
(`(cid:n)`), docling-parse (`GLYPH<…>`) and https://www.unicode.org/glossary/#replacement_character.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from kb_resources.model import (
    Coverage,
    DocumentState,
    HiddenText,
    ParsedDocument,
    Refusal,
    RemovedLine,
)
from kb_resources.parse.body import serialise
from kb_resources.parse.clean import one_line, well_formed
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.promote import promote
from kb_resources.parse.version import PARSER_VERSION

GARBAGE_LIMIT = 0.05
"""Share of replacement marks above which a text is unreadable and needs OCR or another encoding."""

_GARBAGE = re.compile(r"\ufffd|\(cid:\d+\)|GLYPH<[^>\n]{0,80}>|GLYPH&lt;[^&\n]{0,80}&gt;")
# Formats in which an unmarked heading is a paragraph like any other.
_PROMOTED = frozenset(("text", "docx", "odt", "html", "pdf", "rtf", "image"))
_TITLE_WORDS = 20
_TITLE_MAX = 300


@dataclass(frozen=True, slots=True)
class Reading:
    """What one reader made of one file, before offsets.

    Attributes:
        drafts: blocks in reading order.
        parser: name of the reader ("html", "docx"), without the version.
        title: title the document itself gives, or "".
        hidden: what a reader of the page does not see.
        coverage: pages and warnings; tables, removed lines and shares are filled in on assembly.
        removed: lines the noise filter took out.
        metadata: flat facts from the source.
    """

    drafts: tuple[DraftBlock, ...]
    parser: str
    title: str = ""
    hidden: tuple[HiddenText, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)
    removed: tuple[RemovedLine, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


def assemble(reading: Reading, media_type: str, name: str) -> ParsedDocument | Refusal:
    """Serialise a reading and settle title and coverage.

    Args:
        reading: from a format reader.
        media_type: sniffed media type of the source.
        name: file name, whose stem is the last resort for the title.

    Returns:
        The document, or a Refusal: `needs_ocr` when pages hold images only or the text is glyph
        garbage, `empty` when there is no text at all.
    """
    drafts = promote(reading.drafts) if reading.parser in _PROMOTED else reading.drafts
    body = serialise(drafts)
    share = garbage_share(body.raw_text)
    removed = (*reading.coverage.removed_lines, *reading.removed)
    coverage = replace(
        reading.coverage,
        pages_with_text=reading.coverage.pages_with_text or len(body.pages),
        tables=sum(block.kind == "table" for block in body.blocks),
        table_confidences=tuple(
            round(block.confidence, 3) for block in body.blocks if block.kind == "table"
        ),
        replacement_share=max(share, reading.coverage.replacement_share),
        removed_lines=tuple(replace(line, text=one_line(line.text)) for line in removed),
        warnings=tuple(one_line(warning) for warning in reading.coverage.warnings),
    )
    if not body.text:
        return _nothing(coverage)
    if share > GARBAGE_LIMIT:
        return Refusal(
            DocumentState.NEEDS_OCR,
            f"{share:.0%} of the text is unreadable glyph codes; read the document by OCR or "
            "export it again with its fonts.",
            {"replacement_share": round(share, 4)},
        )
    return ParsedDocument(
        title=_title(reading, drafts, name),
        media_type=media_type,
        body=body.text,
        blocks=body.blocks,
        pages=body.pages,
        raw_text=body.raw_text,
        hidden=tuple(
            HiddenText(h.kind, one_line(h.place), _storable(h.text)) for h in reading.hidden
        ),
        coverage=coverage,
        parser=f"{reading.parser}/{PARSER_VERSION}",
        metadata={
            key: value for key, raw in reading.metadata.items() if (value := one_line(str(raw)))
        },
    )


def garbage_share(text: str) -> float:
    """Share of the non-space characters that stand for unreadable glyphs, 0..1."""
    total = len(text) - text.count(" ") - text.count("\n")
    return sum(len(m[0]) for m in _GARBAGE.finditer(text)) / total if total > 0 else 0.0


def _storable(text: str) -> str:
    """Hidden text keeps its invisible characters, but for what no database stores."""
    return well_formed(text).replace("\x00", "")


def _nothing(coverage: Coverage) -> Refusal:
    if coverage.pages_needing_ocr:
        return Refusal(
            DocumentState.NEEDS_OCR,
            "The document holds page images and no text; install OCR and parse it again.",
            {"pages": list(coverage.pages_needing_ocr[:50])},
        )
    return Refusal(DocumentState.EMPTY, "The document holds no text.", {"pages": coverage.pages})


def _title(reading: Reading, drafts: tuple[DraftBlock, ...], name: str) -> str:
    candidates = [reading.title]
    marked = [draft for draft in reading.drafts if draft.kind == "heading"]
    candidates += [d.text for d in reading.drafts[:1] if d.kind == "heading"]
    candidates += [d.text for d in marked if (d.level or 1) == 1][:1]
    candidates += [d.text for d in marked][:1]
    if not marked and reading.parser in _PROMOTED:
        candidates += [d.text for d in drafts[:1] if _looks_like_title(d)]
    candidates += [PurePath(name).stem, name, "Untitled"]
    return next(t for c in candidates if (t := one_line(c)[:_TITLE_MAX].strip()))


def _looks_like_title(draft: DraftBlock) -> bool:
    """A short first paragraph that is no sentence."""
    text = one_line(draft.text)
    return (
        draft.kind == "paragraph"
        and len(text) > 3
        and len(text.split()) <= _TITLE_WORDS
        and not text.endswith((".", ":", ";", ",", "?"))
    )
