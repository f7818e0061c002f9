"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found.

    Attributes:
        about: what was looked at.
        level: `problem` keeps something from working, `warning` will or makes it worse.
        found: what is so, in a sentence.
        fix: what to do, empty where nothing is to be done.
    """

    about: str
    level: Level
    found: str
    fix: str = ""


def fine(about: str, found: str) -> Finding:
    """As it should be."""
    return Finding(about, "ok", found)


def warning(about: str, found: str, fix: str) -> Finding:
    """It works, but not well or not for long."""
    return Finding(about, "warning", found, fix)


def problem(about: str, found: str, fix: str) -> Finding:
    """Something does not work."""
    return Finding(about, "problem", found, fix)
