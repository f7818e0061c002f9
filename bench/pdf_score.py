"""How close a Markdown text comes to a ground truth: words, order, headings, cells, list items.

Belongs here: scoring only, no parsing. Word recall counts words as a multiset; order is the
longest common subsequence of words over the truth's length; headings and items match at 90 and 85
percent of indel similarity, cells exactly, letters and digits only.
Bit-parallel LCS after Hyyrö, "Bit-parallel LCS-length computation revisited" (2004).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_HEADING_SIMILARITY = 0.90
_ITEM_SIMILARITY = 0.85
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?=\S)")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


@dataclass(frozen=True, slots=True)
class Score:
    """Shares are 0..1; pairs are (found, all)."""

    recall: float
    precision: float
    order: float
    headings_found: tuple[int, int]
    headings_right: tuple[int, int]
    cells: tuple[int, int]
    items: tuple[int, int]


def score(ours: str, truth: str) -> Score:
    """Compare our Markdown with the true one."""
    words, true_words = _words(ours), _words(truth)
    common = (Counter(words) & Counter(true_words)).total()
    heads, true_heads = _headings(ours), _headings(truth)
    cells, true_cells = _cells(ours), _cells(truth)
    items, true_items = _items(ours), _items(truth)
    return Score(
        recall=common / max(len(true_words), 1),
        precision=common / max(len(words), 1),
        order=_lcs(words, true_words) / max(len(true_words), 1),
        headings_found=(_matched(true_heads, heads, _HEADING_SIMILARITY), len(true_heads)),
        headings_right=(_matched(heads, true_heads, _HEADING_SIMILARITY), len(heads)),
        cells=((cells & true_cells).total(), true_cells.total()),
        items=(_matched(true_items, items, _ITEM_SIMILARITY), len(true_items)),
    )


def _lcs(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    places: defaultdict[Hashable, int] = defaultdict(int)
    for index, item in enumerate(left):
        places[item] |= 1 << index
    full = (1 << len(left)) - 1
    row = full
    for item in right:
        hits = row & places.get(item, 0)
        row = ((row + hits) | (row - hits)) & full
    return len(left) - row.bit_count()


def _matched(wanted: list[str], have: list[str], least: float) -> int:
    return sum(any(_similar(one, other, least) for other in have) for one in wanted)


def _similar(one: str, other: str, least: float) -> bool:
    if one == other:
        return True
    total = len(one) + len(other)
    if not total or 2 * min(len(one), len(other)) / total <= least:
        return False
    return 2 * _lcs(one, other) / total > least


def _words(text: str) -> list[str]:
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    text = re.sub(r"\\([_*#\[\]()])", r"\1", text)
    text = re.sub(r"\|[\s:|-]+\|", "|", text)
    return re.findall(r"\w+", text.lower())


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()


def _headings(text: str) -> list[str]:
    found = re.findall(r"^#{1,6}\s+(.*)$", text, flags=re.MULTILINE)
    return [_letters(re.sub(r"[*_`]", "", heading)) for heading in found]


def _cells(text: str) -> Counter[str]:
    cells: Counter[str] = Counter()
    for line in text.splitlines():
        if line.strip().startswith("|") and not re.fullmatch(r"[|\s:-]+", line):
            parts = (_letters(part) for part in line.strip().strip("|").split("|"))
            cells.update(part for part in parts if part)
    return cells


def _items(text: str) -> list[str]:
    return [_letters(_ITEM.sub("", line)) for line in text.splitlines() if _ITEM.match(line)]
