"""Headings that a law, a regulation or a paper has without marking them as such.

Belongs here: rule tables for eight languages, applied to paragraphs only, so that nothing inside a
code block or a table is ever taken for a heading. Headings a format marks itself are the readers'
work. Names of divisions follow the Joint Practical Guide for drafting EU legislation and its
language versions, https://eur-lex.europa.eu/content/techleg/KB0213228ENN.pdf.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from kb_resources.parse.clean import one_line
from kb_resources.parse.draft import DraftBlock

_NUMBER = r"(?:\d{1,4}(?:[a-zа-я](?![\w]))?|[IVXLC]{1,8})"
# Rank → names of that division in en, de, bg, ru, sr (both scripts), hr, sl, mk.
_DIVISIONS: dict[int, tuple[str, ...]] = {
    1: (
        *("part", "teil", "част", "часть", "део", "deo", "dio", "del", "дел", "book", "buch"),
        *("annex", "appendix", "anhang", "anlage", "приложение", "прилог", "prilog", "priloga"),
    ),
    2: ("title", "titel", "дял", "раздел", "наслов", "naslov", "oddelek"),
    3: (
        *("chapter", "kapitel", "глава", "glava", "poglavlje", "поглавље", "poglavje", "поглавје"),
        "hauptstück",
    ),
    4: (
        *("section", "abschnitt", "unterabschnitt", "секция", "одељак", "odeljak", "odjeljak"),
        *("odsek", "отсек", "подраздел", "оддел"),
    ),
    5: ("article", "artikel", "член", "статья", "члан", "član", "članak", "člen"),
}
_PAPER = frozenset(
    (
        *("abstract", "introduction", "background", "related work", "methods", "method"),
        *("methodology", "results", "discussion", "conclusion", "conclusions", "references"),
        *("acknowledgments", "acknowledgements", "bibliography", "zusammenfassung", "einleitung"),
        *("ergebnisse", "diskussion", "literatur", "literaturverzeichnis", "аннотация"),
        *("введение", "результаты", "заключение", "выводы", "литература", "увод", "въведение"),
        *("заклучок", "закључак", "литература", "sažetak", "uvod", "zaključak", "literatura"),
        *("povzetek", "zaključek", "viri"),
    )
)
# An article's name as laws shorten it, a dot included.
_SHORT = r"(?:чл|ст|арт|art|čl)\.\s*"
_AFTER = r"(?P<rest>\.?|[.:]?\s+\S.*)$"
_ARTICLE = 5
_PATTERNS = (
    *(
        (
            rank,
            re.compile(
                rf"(?:(?:{'|'.join(names)})\s+{_NUMBER}|{_NUMBER}\.?\s+(?:{'|'.join(names)}))"
                + _AFTER,
                re.IGNORECASE,
            ),
        )
        for rank, names in _DIVISIONS.items()
    ),
    (_ARTICLE, re.compile(rf"(?:§§?\s*|{_SHORT}){_NUMBER}{_AFTER}", re.IGNORECASE)),
)
# What stands behind the number where a provision is cited, not opened: "§ 16 Absatz 4 gilt …".
_REFERENCE = re.compile(
    r"(?:abs(?:atz|ätze)?|sätze?|satz|s|n(?:r|um(?:mern?|bers?))|buchstabe|para(?:graph)?s?|points?"
    r"|ал(?:инея)?|точк[аи]|пункта?|част[ьи]?|став(?:ак|ка|а|ови)?|stav(?:ak|ka|ci)?|odst(?:avek)?"
    r"|točk[aei])\.?\s*\(?\d",
    re.IGNORECASE,
)
# A line that says which division it opens and nothing more: "Член 5", "10. člen", "§ 4".
_NAMES = "|".join(name for names in _DIVISIONS.values() for name in names)
_BARE_LINE = re.compile(
    rf"(?:(?:{_NAMES})\s+{_NUMBER}|{_NUMBER}\.\s*(?:{_NAMES})|§\s*{_NUMBER})\s*[.:]?$",
    re.IGNORECASE,
)
# "Чл. 5. (1) Всички …", "§ 3 (1) Die …", "Art. 7. Every …": the article opens its own paragraph.
_RUN_IN = re.compile(
    rf"(?P<head>(?:§\s*|{_SHORT}|(?:{'|'.join(_DIVISIONS[_ARTICLE])})\s+)"
    r"(?P<number>\d{1,4})(?:[a-zа-я](?!\w))?(?:\.|(?=\s*\(\d)))\s+(?P<rest>\(?[\w„\"«].*\S)$",
    re.IGNORECASE | re.DOTALL,
)
_ORDINAL_FIRST = re.compile(
    r"(?:erst|zweit|dritt|viert|fünft|sechst|siebt|acht|neunt|zehnt)er\s+(?:teil|abschnitt|titel)",
    re.IGNORECASE,
)
_PAPER_NUMBER = re.compile(r"(?:\d{1,2}(?:\.\d{1,2})*\.?|[IVX]{1,5}\.)\s+")
_ENDS_SENTENCE = re.compile(r"[.;,:!?]$")
_LONGEST = 160
_MOST_WORDS = 18
_FEWEST = 3
_RISING = 0.8


def promote(drafts: Sequence[DraftBlock]) -> tuple[DraftBlock, ...]:
    """Drafts with the divisions of a legal text, or the sections of a paper, as headings.

    An article that opens its own paragraph is set apart from it. Nothing changes in a document
    with fewer than three such lines, nor in one that marks its own headings.

    Args:
        drafts: in reading order.

    Returns:
        The same words in the same order; kinds and levels may differ, and a paragraph may have
        become an article's number and the rest.
    """
    drafts = _with_run_ins([_unlisted(draft) for draft in drafts])
    ranks = {n: r for n, d in enumerate(drafts) if d.kind == "paragraph" and (r := _rank(d.text))}
    headings = [draft for draft in drafts if draft.kind == "heading"]
    marked = sum(_rank(heading.text) > 0 for heading in headings)
    if len(ranks) >= _FEWEST and marked < _FEWEST and len(headings) <= len(ranks):
        return _legal(drafts, ranks)
    sections = {n for n, d in enumerate(drafts) if d.kind == "paragraph" and _paper(d.text)}
    names = {_PAPER_NUMBER.sub("", one_line(drafts[n].text)).lower() for n in sections}
    if len(names) < _FEWEST:
        return tuple(drafts)
    return tuple(
        replace(d, kind="heading", level=2) if n in sections else d for n, d in enumerate(drafts)
    )


def is_division(line: str) -> bool:
    """Whether a line names a division by its number and says nothing else."""
    return _BARE_LINE.match(one_line(line)) is not None


def opens_division(line: str) -> bool:
    """Whether a line is the heading of a division, with or without a caption."""
    return _rank(line) > 0


def opens_provision(line: str) -> bool:
    """Whether a line begins with an article's number and then a caption, not with a reference."""
    text = one_line(line)
    for rank, pattern in _PATTERNS:
        if rank == _ARTICLE and (match := pattern.match(text)):
            return _opens(match["rest"].strip(" .:–—-"))
    return False


def is_provision(heading: str) -> bool:
    """Whether a heading names an article or a section sign, so that it can be cited by it."""
    return _rank(heading) == _ARTICLE


def _unlisted(draft: DraftBlock) -> DraftBlock:
    """A division whose number stands first, as in "10. člen", is no item of a list."""
    line = f"{draft.marker} {draft.text}"
    if draft.kind != "list_item" or not is_division(line):
        return draft
    return replace(draft, kind="paragraph", text=line, level=None, marker=None)


def _with_run_ins(drafts: Sequence[DraftBlock]) -> Sequence[DraftBlock]:
    """Articles that open their paragraph, as blocks of their own where their numbers rise."""
    found = {n: match for n, d in enumerate(drafts) if (match := _run_in(d))}
    numbers = [int(match["number"]) for match in found.values()]
    rising = sum(later > earlier for earlier, later in pairwise(numbers))
    if len(numbers) < _FEWEST or rising < _RISING * (len(numbers) - 1):
        return drafts
    out: list[DraftBlock] = []
    for n, draft in enumerate(drafts):
        if (match := found.get(n)) is None:
            out.append(draft)
            continue
        out += [replace(draft, text=match["head"].strip()), replace(draft, text=match["rest"])]
    return out


def _run_in(draft: DraftBlock) -> re.Match[str] | None:
    """An article's number in front of at least a sentence; a caption stays with its number."""
    if draft.kind != "paragraph" or draft.continues:
        return None
    match = _RUN_IN.match(one_line(draft.text))
    if match is None or not (match["rest"][0] == "(" or match["rest"][0].isupper()):
        return None
    return match if _ENDS_SENTENCE.search(match["rest"]) else None


def _legal(drafts: Sequence[DraftBlock], ranks: dict[int, int]) -> tuple[DraftBlock, ...]:
    base = 1 if any(d.kind == "heading" and d.level == 1 for d in drafts) else 0
    used = sorted(set(ranks.values()))
    levels = {rank: min(base + 1 + n, 5) for n, rank in enumerate(used)}
    out: list[DraftBlock] = []
    for n, draft in enumerate(drafts):
        if n in ranks:
            out.append(replace(draft, kind="heading", level=levels[ranks[n]]))
        elif n - 1 in ranks and _bare(drafts[n - 1].text) and _is_caption(*drafts[n : n + 2]):
            out.append(replace(draft, kind="heading", level=levels[ranks[n - 1]] + 1))
        else:
            out.append(draft)
    return tuple(out)


def _rank(text: str) -> int:
    """Rank of the division a line opens, 0 for any other line."""
    line = one_line(text)
    if not line or len(line) > _LONGEST or len(line.split()) > _MOST_WORDS:
        return 0
    for rank, pattern in _PATTERNS:
        if match := pattern.match(line):
            rest = match["rest"].strip(" .:–—-")
            if _opens(rest) and not _sentence(line, rest):
                return rank
    return 4 if _ORDINAL_FIRST.match(line) and not _ENDS_SENTENCE.search(line) else 0


def _opens(rest: str) -> bool:
    """Whether what follows the number is a caption or a first paragraph, or nothing."""
    return not rest or (
        (rest[0].isupper() or rest[0] in '([„"«') and _REFERENCE.match(rest) is None
    )


def _sentence(line: str, rest: str) -> bool:
    """Whether what follows the number reads on as prose."""
    return bool(_ENDS_SENTENCE.search(line)) and len(rest.split()) > 2


def _bare(text: str) -> bool:
    """Whether a division line gives its number only, so that its caption may follow."""
    return len(one_line(text).split()) <= 3


def _is_caption(draft: DraftBlock, after: DraftBlock | None = None) -> bool:
    """Whether a paragraph names an article; what goes on in small letters is a cut sentence."""
    line = one_line(draft.text)
    if after is not None and after.kind == "paragraph" and one_line(after.text)[:1].islower():
        return False
    return (
        draft.kind == "paragraph"
        and 0 < len(line) <= _LONGEST
        and len(line.split()) <= _MOST_WORDS
        and line[0].isupper()
        and not _ENDS_SENTENCE.search(line)
    )


def _paper(text: str) -> bool:
    line = one_line(text)
    return len(line) <= 60 and _PAPER_NUMBER.sub("", line).rstrip(".:").lower() in _PAPER
