"""Words to visual lines: what stands on one base line without a wide gap.

Belongs here: grouping by geometry, order inside a line for both directions of script, the style
of a line. Not here: which lines belong together (`blocks`), cells of tables (`tables`).
Right-to-left runs follow the idea, not the letter, of https://www.unicode.org/reports/tr9/.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from kb_resources.parse.pdf.ink import Box, Face, Flow, Word, enclose
from kb_resources.parse.pdf.marks import BULLET, CAPTION, MARKER, NUMBER_TOKEN, RTL
from kb_resources.parse.pdf.strips import white_strips

_WORD_GAP_EM = 1.0
_MARKER_GAP_EM = 3.2
_HEAL_GAP_EM = 2.2
_STYLE_SHARE = 0.6
_BULLET_SIGNS = {"So", "Pd", "Po", "Co"}
_STOPS = frozenset(",.;:!?/%&@#'\"")
_NOTE_MARK = re.compile(r"^(?:\d{1,3}\)?|[*†‡§¶]{1,3})$")


@dataclass(frozen=True, slots=True)
class Line:
    """One visual line, or the part of it that lies in one column.

    Attributes:
        text: words in reading order, single spaces.
        box: place in the flow frame.
        shown: place in the page frame.
        size: most frequent font size in points.
        font: name of the font that most characters use.
        bold: most characters are bold.
        italic: most characters are slanted.
        mono: most characters are of fixed pitch.
        bullet: it starts with a glyph that only serves as a bullet.
        first_width: width of the first word in points.
        lead: first word and its font where they may serve as a bullet: short and set apart.
        note: it starts with a raised or small number or star, as footnotes do.
        rtl: it runs from right to left.
    """

    text: str
    box: Box
    shown: Box
    size: float
    font: str
    bold: bool = False
    italic: bool = False
    mono: bool = False
    bullet: bool = False
    first_width: float = 0.0
    lead: tuple[str, str] | None = None
    note: bool = False
    rtl: bool = False

    @property
    def em(self) -> float:
        """Font size, the measure of gaps; never zero."""
        return max(self.size, 1.0)


def rows_of(words: list[Word]) -> list[list[Word]]:
    """Words grouped by base line, rows from top to bottom, words from left to right."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: (word.box.bottom, word.box.left)):
        for row in reversed(rows[-6:]):
            first = row[0].box
            least = min(word.box.height, first.height)
            if word.box.overlap_y(first) > 0.5 * least:
                row.append(word)
                break
        else:
            rows.append([word])
    for row in rows:
        row.sort(key=lambda word: word.box.left)
    return rows


def lines_of(flow: Flow) -> list[Line]:
    """All lines of a flow, from top to bottom."""
    rows = rows_of(list(flow.words))
    walls = [rule for rule in flow.rules if rule.height > 8 and rule.width <= 3]
    strips = white_strips(rows)
    lines: list[Line] = []
    for number, row in enumerate(rows):
        parts = _split_row(row, walls, strips)
        if len(parts) > 1:
            parts = _healed(parts, rows[max(number - 1, 0) : number + 2], row)
        lines.extend(line_of(part) for part in parts)
    return lines


def _healed(parts: list[list[Word]], near: list[list[Word]], row: list[Word]) -> list[list[Word]]:
    """Parts put together again where every neighbouring row has text over the gap.

    A wide space of a justified line has text above and below it, a gutter has not.
    """
    em = max(row[0].size, 4.0)
    top, bottom = row[0].box.top, row[0].box.bottom
    close = [
        other
        for other in near
        if other is not row
        and other[0].box.top < bottom + 1.2 * em
        and other[0].box.bottom > top - 1.2 * em
    ]
    if not close:
        return parts
    out = [parts[0]]
    for part in parts[1:]:
        left, right = out[-1][-1].box.right, part[0].box.left
        wide_space = 0.5 * em < right - left < _HEAL_GAP_EM * em
        if wide_space and all(_covers(other, left, right) for other in close):
            out[-1] = [*out[-1], *part]
        else:
            out.append(part)
    return out


def _covers(row: list[Word], left: float, right: float) -> bool:
    """Whether words, or the usual spaces between them, lie over more than half of an interval."""
    covered = sum(max(0.0, min(word.box.right, right) - max(word.box.left, left)) for word in row)
    return covered > 0.5 * (right - left)


def _split_row(row: list[Word], walls: list[Box], strips: list[Box]) -> list[list[Word]]:
    """Cut a row at wide gaps, at vertical rules and, but for markers, at white strips."""
    parts = [[row[0]]]
    right = row[0].box.right
    middle = row[0].box.middle
    near = [wall for wall in walls if wall.top < middle < wall.bottom]
    white = [strip for strip in strips if strip.top < middle < strip.bottom]
    for word in row[1:]:
        gap = word.box.left - right
        em = max(min(word.size, parts[-1][-1].size), 4.0)
        allowed = _allowed_gap(parts[-1])
        walled = gap > 0.1 * em and any(
            right - 1 <= wall.left and wall.right <= word.box.left + 1 for wall in near
        )
        stripped = allowed == _WORD_GAP_EM and not _is_mark(parts[-1])
        if walled or gap > allowed * em or (stripped and _at_strip(right, word, white)):
            parts.append([word])
        else:
            parts[-1].append(word)
        right = max(right, word.box.right)
    return parts


def _at_strip(right: float, word: Word, strips: list[Box]) -> bool:
    """Whether a white strip ends where a word starts, or lies between it and the text before."""
    left = word.box.left
    return any(
        (abs(left - strip.right) <= 1 and right <= left + 2)
        or (right - 1 <= strip.left and strip.right <= left + 1 and left - right > 0.1 * word.size)
        for strip in strips
    )


def _is_mark(words: list[Word]) -> bool:
    """Whether a part is so short that it may be a bullet or a number."""
    return len(words) == 1 and len(words[0].text) <= 3


def _allowed_gap(words: list[Word]) -> float:
    """Gap in ems that still belongs to the line: wider after a marker or a number."""
    if len(words) > 2:
        return _WORD_GAP_EM
    text = " ".join(word.text for word in words)
    if len(text) > 14:
        return _WORD_GAP_EM
    marker = MARKER.match(text) or BULLET.match(text)
    leads = marker or NUMBER_TOKEN.match(text) or CAPTION.match(text)
    lonely = len(text) == 1 and not text.isalnum()
    return _MARKER_GAP_EM if leads or lonely or words[0].face.symbol else _WORD_GAP_EM


def line_of(words: list[Word]) -> Line:
    """Words that stand together as one line."""
    letters = max(sum(len(word.text) for word in words), 1)
    sizes: Counter[float] = Counter()
    faces: Counter[Face] = Counter()
    for word in words:
        sizes[round(word.size * 2) / 2] += len(word.text)
        faces[word.face] += len(word.text)

    def mostly(style: str) -> bool:
        share = sum(count for face, count in faces.items() if getattr(face, style))
        return share > _STYLE_SHARE * letters

    rtl = sum(bool(RTL.search(word.text)) for word in words) * 2 > len(words)
    size = max(sizes.items(), key=lambda item: (item[1], item[0]))[0]
    bullet = len(words) > 1 and words[0].face.symbol and len(words[0].text) <= 2
    ordered = _right_to_left(words) if rtl else words
    return Line(
        text=_joined_rtl(ordered) if rtl else " ".join(word.text for word in ordered),
        box=enclose(word.box for word in words),
        shown=enclose(word.shown for word in words),
        size=size,
        font=max(faces.items(), key=lambda item: item[1])[0].name,
        bold=mostly("bold"),
        italic=mostly("italic"),
        mono=mostly("mono"),
        bullet=bullet,
        first_width=ordered[0].box.width,
        lead=_lead(words),
        note=words[0].size < 0.8 * size and _NOTE_MARK.match(words[0].text) is not None,
        rtl=rtl,
    )


def _lead(words: list[Word]) -> tuple[str, str] | None:
    """The first word as a possible bullet: one or two characters, a gap, often its own font."""
    if len(words) < 2 or len(words[0].text) > 2 or words[0].text.isdigit():
        return None
    first, second = words[0], words[1]
    apart = second.box.left - first.box.right > 0.4 * first.size
    other = first.face.name != second.face.name or first.size < 0.8 * second.size
    letter = first.text.isalnum() and len(first.text) == 1
    sign = unicodedata.category(first.text[0]) in _BULLET_SIGNS and first.text not in _STOPS
    if apart and ((other and letter) or sign):
        return first.text, first.face.name
    return None


def _joined_rtl(words: list[Word]) -> str:
    """Words of a right-to-left line; pieces that touch are one word."""
    text = words[0].text
    for before, word in pairwise(words):
        touches = abs(before.box.left - word.box.right) < 0.04 * word.size
        glued = touches and RTL.search(before.text[-1]) and RTL.search(word.text[0])
        text += word.text if glued else f" {word.text}"
    return text


def _right_to_left(words: list[Word]) -> list[Word]:
    """Reading order of a right-to-left line: runs of Latin words and numbers keep theirs."""
    out: list[Word] = []
    run: list[Word] = []
    for word in sorted(words, key=lambda word: -word.box.right):
        if RTL.search(word.text):
            out.extend(reversed(run))
            run = []
            out.append(word)
        else:
            run.append(word)
    out.extend(reversed(run))
    return out
