"""`kb.yaml` in a watched folder: whom its files are for.

    audiences: [staff]            # everything in the folder; left out: open to the scope
    language: de                  # stated instead of detected; optional
    folders:
      hr: {audiences: [hr]}       # the longest matching folder decides

Belongs here: reading and validating it. A file that does not fit holds the whole folder back: it
must never widen who may read something. What a person may state is on purpose little; trust is not
among it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kb_assets import plain_yaml
from kb_assets.folders.listing import MAPPING_NAME
from kb_resources.errors import InputError
from kb_resources.model import validate_audience, validate_language

_KEYS = {"audiences", "language", "folders"}
_NEXT = "Correct kb.yaml; until then nothing is taken from this folder."


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for a folder and those below it."""

    prefix: str
    audiences: tuple[str, ...]
    language: str | None


@dataclass(frozen=True, slots=True)
class FolderMap:
    """The rules of a watched folder.

    Attributes:
        rules: longest prefix first; the last one is the folder itself.
    """

    rules: tuple[Rule, ...]

    @property
    def digest(self) -> str:
        """Short hash of what the rules say; when it changes, every document is looked at again."""
        return hashlib.sha256(repr(self.rules).encode()).hexdigest()[:16]

    def rule(self, relative: str) -> Rule:
        """The rule for a file, by its path below the folder."""
        return next(
            rule for rule in self.rules if not rule.prefix or relative.startswith(f"{rule.prefix}/")
        )


OPEN = FolderMap(rules=(Rule("", (), None),))
"""Without a mapping file everything is open to the scope."""


def read_map(
    folder: Path, audiences: tuple[str, ...], settle_s: float, *, known: str | None, now_ns: int
) -> FolderMap | None:
    """The rules of a watched folder; None while its file is being written, or exchanged.

    Args:
        folder: the folder.
        audiences: whom files are for where no file says otherwise.
        settle_s: seconds that the file has to stand unchanged.
        known: digest of the rules at the look before, or None.
        now_ns: nanoseconds since the epoch.

    Raises:
        InputError, UnicodeDecodeError: as `parse_map`, or it is no text.
        OSError: it cannot be read.
    """

    def is_fresh(path: Path) -> bool:
        stat = path.stat()
        return now_ns - max(stat.st_mtime_ns, stat.st_ctime_ns) < settle_s * 1e9

    file = folder / MAPPING_NAME
    if file.exists():
        if is_fresh(file):
            return None
        if file.stat().st_size > plain_yaml.MAX_BYTES:
            raise InputError(
                f"kb.yaml is longer than {plain_yaml.MAX_BYTES:,} bytes.", next_step=_NEXT
            )
        return parse_map(file.read_text("utf-8"), audiences)
    without = FolderMap((replace(OPEN.rules[0], audiences=audiences),))
    # Programs that save a file may delete it first; nobody's rights grow meanwhile.
    return None if known not in (None, without.digest) and is_fresh(folder) else without


def parse_map(text: str, audiences: tuple[str, ...] = ()) -> FolderMap:
    """Read a mapping file.

    Args:
        text: its content.
        audiences: whom files are for where it does not say.

    Raises:
        InputError: it is not plain YAML, or holds something unknown or malformed.
    """
    try:
        found = plain_yaml.parse(text)
    except ValueError as error:
        raise InputError(f"kb.yaml cannot be read: {error}.", next_step=_NEXT) from error
    top = _mapping({} if found is None else found, "kb.yaml", _KEYS)
    base = _rule("", top, Rule("", audiences, None))
    folders = _mapping(top.get("folders") or {}, "folders", None)
    rules = [
        _rule(str(name).strip("/"), _mapping(given, str(name), _KEYS - {"folders"}), base)
        for name, given in folders.items()
    ]
    rules.sort(key=lambda rule: len(rule.prefix), reverse=True)
    return FolderMap(rules=(*rules, base))


def _rule(prefix: str, given: Mapping[str, Any], base: Rule) -> Rule:
    audiences = given.get("audiences", list(base.audiences))
    if not isinstance(audiences, list) or not all(isinstance(name, str) for name in audiences):
        raise InputError(f"audiences of {prefix or 'kb.yaml'!r} is not a list.", next_step=_NEXT)
    language = given.get("language", base.language)
    if language is not None and not isinstance(language, str):
        raise InputError(f"language of {prefix or 'kb.yaml'!r} is not text.", next_step=_NEXT)
    named = tuple(sorted({validate_audience(name) for name in audiences}))
    return Rule(prefix, named, language and validate_language(language))


def _mapping(value: Any, where: str, allowed: set[str] | None) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a mapping.", next_step=_NEXT)
    unknown = sorted(str(key) for key in value if allowed is not None and key not in allowed)
    if unknown:
        raise InputError(f"{where} holds the unknown entry {unknown[0]!r}.", next_step=_NEXT)
    return value
