"""docling-parse's decoded page as `PageInk`.

Belongs here: reading native cells and shapes, naming fonts, sorting words by direction of
writing, counting what no font map could name. Not here: lines and blocks.
docling-parse: https://github.com/docling-project/docling-parse
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kb_resources.parse.pdf.edges import whole_word
from kb_resources.parse.pdf.hidden import HiddenRun
from kb_resources.parse.pdf.ink import Box, Face, Flow, PageInk, Turn, Word, enclose
from kb_resources.parse.pdf.mend import WordBreaks, count_garbage, plain, without_garbage
from kb_resources.parse.pdf.pdfium import GlyphStyle, PdfiumPage

_MAX_FLOWS = 6
_MAX_RULES = 4_000
_RULE_THICKNESS = 3.0
_BROKEN_FONT_SHARE = 0.25
_BULLET = "•"
_NOTE_MARK = re.compile(r"^(?:\d{1,3}\)?|[*∗†‡§¶]{1,3})$")
_GLYPH_NAME = re.compile(r"^/?[A-Za-z]{1,3}\d{3,}$")
_SYMBOL_FONTS = ("symbol", "dingbat", "webding", "wingding", "bullet", "sorts")

Point = tuple[float, float]


@dataclass(slots=True)
class _Raw:
    """A native word before its font is known: corner points in the page frame."""

    text: str
    corners: tuple[Point, Point, Point, Point]
    shown: Box
    angle: int
    height: float
    font: str


@dataclass(slots=True)
class FontBook:
    """Fonts and sizes of one document, asked once per font and cell height."""

    _faces: dict[tuple[str, bool, bool, bool], Face] = field(default_factory=dict)
    _known: dict[tuple[str, int], tuple[Face, float]] = field(default_factory=dict)
    _misses: Counter[tuple[str, int]] = field(default_factory=Counter)

    def look_up(self, word: _Raw, page: PdfiumPage | None) -> tuple[Face, float]:
        """Face and size of a word; guessed from name and cell height where PDFium is silent."""
        key = (word.font, round(word.height * 4))
        known = self._known.get(key)
        if known is not None:
            return known
        style = None
        if page is not None and self._misses[key] < 5:
            x, y = (word.shown.left + word.shown.right) / 2, word.shown.middle
            style = page.style_at(x, y, max(word.height, 2.0))
        if style is None or not 0.3 < style.size / max(word.height, 0.1) < 3.0:
            self._misses[key] += 1
            guess = self._face(word.font, None), round(word.height * 0.9, 2)
            if self._misses[key] >= 5:
                self._known[key] = guess
            return guess
        found = self._face(word.font, style), round(style.size, 2)
        self._known[key] = found
        return found

    def _face(self, font: str, style: GlyphStyle | None) -> Face:
        from docling.utils.font_style import parse_font_style

        name = font.lstrip("/").split("+", 1)[-1]
        hint = parse_font_style(name)
        bold = hint.weight >= 600 or (style is not None and style.weight >= 600)
        italic = bool(hint.italic) or (style is not None and style.italic)
        mono = style is not None and style.mono
        key = (name, bold, italic, mono)
        if key not in self._faces:
            symbol = any(part in name.lower() for part in _SYMBOL_FONTS)
            self._faces[key] = Face(name, bold, italic, mono, symbol)
        return self._faces[key]


@dataclass(frozen=True, slots=True)
class NativePage:
    """What docling-parse hands over for one page.

    Attributes:
        number: 1-based.
        width: in points, as shown.
        height: in points, as shown.
        cells: native word cells, corners in points, origin bottom left.
        rules: thin boxes and straight lines, page frame.
        pictures: bitmaps, page frame.
        drawings: rectangles around connected vector shapes, page frame.
    """

    number: int
    width: float
    height: float
    cells: Iterable[Any]
    rules: Iterable[Box]
    pictures: tuple[Box, ...]
    drawings: tuple[Box, ...] = ()


def read_page(
    native: NativePage,
    fonts: FontBook,
    page: PdfiumPage | None,
    hidden: Sequence[HiddenRun] = (),
) -> PageInk:
    """Everything a reader sees on one page.

    Args:
        native: the decoded page.
        fonts: the document's fonts, filled as a side effect.
        page: the same page in PDFium, None when PDFium cannot read it.
        hidden: runs of the page that a reader cannot see; their words are left out.
    """
    raws = _visible(_once(_cells(native)), hidden)
    garbage, characters = _mend_garbage(raws, page)
    if page is not None:
        for raw in raws:
            if raw.angle == 0:
                raw.text = whole_word(raw.text, raw.shown, raw.height, native.width, page)
    breaks = WordBreaks(page.tokens()) if page is not None else None
    by_angle: defaultdict[int, list[_Raw]] = defaultdict(list)
    for raw in raws:
        by_angle[raw.angle].append(raw)
    order = sorted(by_angle, key=lambda angle: -sum(len(raw.text) for raw in by_angle[angle]))
    for angle in order[_MAX_FLOWS:]:
        by_angle[order[0]].extend(by_angle.pop(angle))
    rules = list(native.rules)[:_MAX_RULES]
    flows = [
        _flow(angle, by_angle[angle], rules, native, fonts, page, breaks)
        for angle in order[:_MAX_FLOWS]
    ]
    return PageInk(
        native.number,
        native.width,
        native.height,
        tuple(flows),
        native.pictures,
        native.drawings,
        garbage,
        characters,
    )


def _cells(native: NativePage) -> Iterator[_Raw]:
    height = native.height
    for cell in native.cells:
        text = cell.text
        if not text or text.isspace():
            continue
        a, b = (cell.r_x0, height - cell.r_y0), (cell.r_x1, height - cell.r_y1)
        c, d = (cell.r_x2, height - cell.r_y2), (cell.r_x3, height - cell.r_y3)
        shown = Box(
            min(a[0], b[0], c[0], d[0]),
            min(a[1], b[1], c[1], d[1]),
            max(a[0], b[0], c[0], d[0]),
            max(a[1], b[1], c[1], d[1]),
        )
        if shown.right < 0 or shown.left > native.width or shown.bottom < 0 or shown.top > height:
            continue  # off the page: `hidden` reports it
        angle = round(math.degrees(math.atan2(a[1] - b[1], b[0] - a[0]))) % 360
        nearest = round(angle / 90) * 90
        if abs(angle - nearest) <= 1:
            angle = nearest % 360
        cell_height = math.hypot(d[0] - a[0], d[1] - a[1])
        cell_width = math.hypot(b[0] - a[0], b[1] - a[1])
        text = _BULLET if _is_glyph_name(text, cell_width, cell_height) else plain(text)
        yield _Raw(text, (a, b, c, d), shown, angle, cell_height, cell.font_name)


def _is_glyph_name(text: str, width: float, height: float) -> bool:
    """Whether one unmapped sign was given by its glyph's name ("SM590000"): too narrow for it."""
    return _GLYPH_NAME.match(text) is not None and width < 0.2 * height * len(text)


def _once(raws: Iterable[_Raw]) -> Iterator[_Raw]:
    """Words without copies painted on the same spot (shadows, false bold)."""
    seen: dict[str, list[Box]] = {}
    for raw in raws:
        x, y, reach = (raw.shown.left + raw.shown.right) / 2, raw.shown.middle, 0.15 * raw.height
        copies = seen.setdefault(raw.text, [])
        if any(
            abs((box.left + box.right) / 2 - x) < reach and abs(box.middle - y) < reach
            for box in copies
        ):
            continue
        copies.append(raw.shown)
        yield raw


def _visible(raws: Iterable[_Raw], hidden: Sequence[HiddenRun]) -> list[_Raw]:
    """Words without those of hidden runs; each hidden glyph takes out at most one word."""
    if not hidden:
        return list(raws)
    boxes = [run.box for run in hidden]
    rests = [_dense(run.text) for run in hidden]
    kept = []
    for raw in raws:
        text = _dense(raw.text)
        x, y = (raw.shown.left + raw.shown.right) / 2, raw.shown.middle
        for index, box in enumerate(boxes):
            if text and text in rests[index] and box.holds(x, y, 2.0):
                rests[index] = rests[index].replace(text, "", 1)
                break
        else:
            kept.append(raw)
    return kept


def _dense(text: str) -> str:
    return "".join(plain(text).split())


def _mend_garbage(raws: list[_Raw], page: PdfiumPage | None) -> tuple[int, int]:
    """Ask PDFium for glyphs that docling-parse could not name; drop what stays nameless.

    Words are changed and removed in place. Returns the number of garbage and of all characters.
    """
    per_font: Counter[str] = Counter()
    bad_per_font: Counter[str] = Counter()
    for raw in raws:
        bad = count_garbage(raw.text)
        if bad and page is not None:
            seen = plain(page.text_in(raw.shown)).split()
            better = next((token for token in seen if _same_word(raw.text, token)), None)
            if better is not None:
                raw.text, bad = better, 0
        per_font[raw.font] += len(raw.text)
        bad_per_font[raw.font] += bad
    broken = {
        font
        for font, bad in bad_per_font.items()
        if bad > 2 and bad > _BROKEN_FONT_SHARE * per_font[font]
    }
    characters, garbage = sum(per_font.values()), 0
    kept = []
    for raw in raws:
        if raw.font in broken:
            garbage += len(raw.text)
            continue
        bad = count_garbage(raw.text)
        if bad:
            garbage += bad
            raw.text = without_garbage(raw.text)
        if raw.text:
            kept.append(raw)
    raws[:] = kept
    return garbage, characters


def _same_word(broken: str, candidate: str) -> bool:
    """Whether a token agrees with a word in every glyph that the word could name."""
    if len(broken) != len(candidate) or count_garbage(candidate):
        return False
    return all(a == b or count_garbage(a) for a, b in zip(broken, candidate, strict=True)) and any(
        not count_garbage(a) for a in broken
    )


def _flow(
    angle: int,
    raws: list[_Raw],
    rules: list[Box],
    native: NativePage,
    fonts: FontBook,
    page: PdfiumPage | None,
    breaks: WordBreaks | None,
) -> Flow:
    turn = Turn.of(angle, native.width, native.height)
    words: list[Word] = []
    for raw in raws:
        face, size = fonts.look_up(raw, page)
        box = raw.shown if angle == 0 else turn.box(*raw.corners)
        words.append(Word(raw.text, box, raw.shown, size, face))
    words = _with_breaks(words, breaks)
    turned = (
        rules
        if angle == 0
        else [turn.box((rule.left, rule.top), (rule.right, rule.bottom)) for rule in rules]
        if angle % 90 == 0
        else []
    )
    return Flow(angle, tuple(words), tuple(turned), turn.width, turn.height)


def _with_breaks(words: list[Word], breaks: WordBreaks | None) -> list[Word]:
    """Split words that were glued and join words that a change of font cut."""
    out: list[Word] = []
    for word in words:
        last = out[-1] if out else None
        if last is not None and _touch(last, word) and not _is_note_mark(last, word):
            joined = last.text + word.text
            if breaks is None or breaks.is_word(joined):
                longer = last if len(last.text) >= len(word.text) else word
                out[-1] = replace(
                    longer,
                    text=joined,
                    box=enclose((last.box, word.box)),
                    shown=enclose((last.shown, word.shown)),
                )
                continue
        out.append(word)
    if breaks is None:
        return out
    return [
        word if (split := breaks.split(word.text)) == word.text else replace(word, text=split)
        for word in out
    ]


def _is_note_mark(word: Word, mark: Word) -> bool:
    """Whether a small raised number or star after a word is the mark of a note."""
    raised = mark.box.bottom < word.box.bottom - 0.1 * word.size
    small = mark.size < 0.85 * word.size
    return raised and small and len(word.text) >= 3 and _NOTE_MARK.match(mark.text) is not None


def _touch(left: Word, right: Word) -> bool:
    gap = right.box.left - left.box.right
    reach = 0.15 * max(left.size, right.size)
    return -reach < gap < reach and left.box.overlap_y(right.box) > 0.3 * min(
        left.box.height, right.box.height
    )
