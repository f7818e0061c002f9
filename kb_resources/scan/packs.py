"""Rule packs: what is in the TOML files, read and checked.

Belongs here: the shape of a pack and its version. Does not belong here: matching.
A pack is data under review like code: every rule has an id, a severity, a source and, in each
language it is meant for, an example that hits and one that does not.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kb_resources.errors import InputError
from kb_resources.model import Severity
from kb_resources.scan.version import RULES_FILE, default_files, version_of


@dataclass(frozen=True, slots=True)
class Need:
    """Kinds of which one will do, and how many words before or after the anchor it may be."""

    kinds: frozenset[str]
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Rule:
    """Kinds of words that mean something where they meet.

    Attributes:
        id: stable id, without language.
        severity: of one hit in plain, visible text.
        anchor: kinds of word that the search starts from.
        needs: what further words have to be of, each by a word of its own.
        window: how many words from the anchor the others may be, either side.
        unless: kinds of words that in the same window rule the hit out.
        sentence: whether a sentence's end stops the search.
        firm: whether one hit says enough in a text of any length; see `company`.
        source: where the pattern is described.
        explanation: one sentence for a person.
    """

    id: str
    severity: Severity
    anchor: frozenset[str]
    needs: tuple[Need, ...]
    window: int
    unless: frozenset[str]
    sentence: bool
    firm: bool
    source: str
    explanation: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """Kinds of words that give a text away where many of them crowd together.

    Attributes:
        id: stable id, without language.
        severity: of one stretch.
        kinds: which are counted.
        at_least: how many of the kinds have to be there.
        words: how many different words of them.
        within: over how many words of text.
        source: where the pattern is described.
        explanation: one sentence for a person.
        firm: as for rules.
    """

    id: str
    severity: Severity
    kinds: tuple[str, ...]
    at_least: int
    words: int
    within: int
    source: str
    explanation: str
    firm: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """A text that a rule must hit in a language, and one that it must not."""

    rule_id: str
    language: str
    hit: str
    clean: str


@dataclass(frozen=True, slots=True)
class Packs:
    """All rule packs.

    Attributes:
        version: of the data: `<year.number>+<8 hex of its digest>`.
        rules: independent of language.
        clusters: likewise.
        words: entries per language and kind; `IDIOM` takes all meaning from its words. An entry is
            a word, a stem with `*`, an imperative with `!` (its plural is added), or several words
            with spaces.
        examples: of both sorts.
    """

    version: str
    rules: tuple[Rule, ...]
    clusters: tuple[Cluster, ...]
    words: Mapping[str, Mapping[str, tuple[str, ...]]]
    examples: tuple[Example, ...]


def parse_packs(files: Mapping[str, str]) -> Packs:
    """Read packs from the text of their files by name.

    Raises:
        InputError: a file is not TOML, or a rule or kind is unknown or incomplete.
    """
    try:
        tables = {name: tomllib.loads(text) for name, text in files.items()}
        shared = tables.pop(RULES_FILE)
        rules = tuple(_rule(entry) for entry in shared["rule"])
        clusters = tuple(_cluster(entry) for entry in shared["cluster"])
        words = {
            name.removesuffix(".toml"): {
                kind: _in_scripts(entries, cyrillic=table.get("cyrillic", False))
                for kind, entries in table["words"].items()
            }
            for name, table in tables.items()
        }
        examples = tuple(
            Example(rule_id, name.removesuffix(".toml"), pair["hit"], pair["clean"])
            for name, table in tables.items()
            for rule_id, pair in table.get("examples", {}).items()
        )
        version = str(shared["version"])
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"A rule pack cannot be read: {error!r}.",
            next_step="Correct the TOML file and run the scan's tests.",
        ) from error
    _check(rules, clusters, words, examples)
    return Packs(version_of(version, files), rules, clusters, words, examples)


@cache
def default_packs() -> Packs:
    """The packs that come with the package."""
    return parse_packs(default_files())


_TO_CYRILLIC = str.maketrans("abvgdđežzijklmnoprstćufhcčš", "абвгдђежзијклмнопрстћуфхцчш")


def _in_scripts(entries: list[str], *, cyrillic: bool) -> tuple[str, ...]:
    """Entries, and for Serbian the same in Cyrillic letters."""
    if not cyrillic:
        return tuple(entries)
    other = (
        e.replace("lj", "љ").replace("nj", "њ").replace("dž", "џ").translate(_TO_CYRILLIC)
        for e in entries
    )
    return (*entries, *other)


def _rule(entry: Mapping[str, object]) -> Rule:
    needs = entry["needs"]
    unless = entry.get("unless", [])
    window = entry["window"]
    if not isinstance(needs, list) or not isinstance(unless, list) or not isinstance(window, int):
        raise TypeError(f"rule {entry['id']}: needs and unless are lists, window a number")
    return Rule(
        id=str(entry["id"]),
        severity=Severity(str(entry["severity"])),
        anchor=frozenset(str(entry["anchor"]).split("|")),
        needs=tuple(_need(str(need), window) for need in needs),
        window=window,
        unless=frozenset(str(kind) for kind in unless),
        sentence=bool(entry.get("sentence", True)),
        firm=bool(entry.get("firm", False)),
        source=str(entry["source"]),
        explanation=str(entry["explanation"]),
    )


def _cluster(entry: Mapping[str, Any]) -> Cluster:
    return Cluster(
        id=str(entry["id"]),
        severity=Severity(entry["severity"]),
        kinds=tuple(entry["kinds"]),
        at_least=int(entry["at_least"]),
        words=int(entry["words"]),
        within=int(entry["within"]),
        source=str(entry["source"]),
        explanation=str(entry["explanation"]),
        firm=bool(entry.get("firm", False)),
    )


_NEED = re.compile(r"([A-Z_|]+)(?:([@<>])(\d+))?")


def _need(text: str, window: int) -> Need:
    parsed = _NEED.fullmatch(text)
    if parsed is None:
        raise ValueError(f"{text!r} is no need")
    kinds, sign, number = parsed.groups()
    reach = int(number or window)
    return Need(
        frozenset(kinds.split("|")), 0 if sign == ">" else reach, 0 if sign == "<" else reach
    )


def _check(
    rules: tuple[Rule, ...],
    clusters: tuple[Cluster, ...],
    words: Mapping[str, Mapping[str, tuple[str, ...]]],
    examples: tuple[Example, ...],
) -> None:
    def problems() -> Iterator[str]:
        known = {kind for kinds in words.values() for kind in kinds} | SHAPES
        ids = [rule.id for rule in rules] + [cluster.id for cluster in clusters]
        yield from (f"rule {i} is there twice" for i in set(ids) if ids.count(i) > 1)
        for cluster in clusters:
            yield from (
                f"{cluster.id}: no words of kind {k}" for k in cluster.kinds if k not in known
            )
        for rule in rules:
            used = {*rule.anchor, *rule.unless, *(k for need in rule.needs for k in need.kinds)}
            yield from (f"rule {rule.id}: no words of kind {k}" for k in sorted(used - known))
        for language, kinds in words.items():
            for kind, entries in kinds.items():
                yield from (
                    f"{language} {kind}: stem {word} is too short"
                    for entry in entries
                    for word in entry.split()
                    if word.endswith("*") and len(word) < 4
                )
        for example in examples:
            if example.rule_id not in ids:
                yield f"{example.language}: example for unknown rule {example.rule_id}"

    found = list(problems())
    if found:
        raise InputError(
            f"Rule packs contradict themselves: {'; '.join(found)}.",
            next_step="Correct the TOML files and run the scan's tests.",
        )


# Kinds that are told by their form instead of a list; see `lexicon`.
SHAPES = frozenset({"EMAIL", "URL", "TOOLNAME", "IMAGE", "TURN", "VOCATIVE"})
