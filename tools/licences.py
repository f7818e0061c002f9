"""Writes docs/reference/licences.md: every locked dependency with its licence; refuses others.

Belongs here: reading the lock and the installed distributions' metadata. What does not: weights,
word lists and programs (THIRD_PARTY_NOTICES.md). A licence that is not in `ALLOWED` fails the
check: decide about it in an ADR, then add it. Usage: python tools/licences.py [--check].
Core metadata: https://packaging.python.org/en/latest/specifications/core-metadata/.
"""

from __future__ import annotations

import re
import sys
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import cast

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
PAGE = ROOT / "docs" / "reference" / "licences.md"

ALLOWED = frozenset(
    {
        *("MIT", "MIT-0", "MIT-CMU", "ISC", "0BSD", "Zlib", "CC0-1.0", "PSF-2.0", "Unlicense"),
        *("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD", "HPND"),
        # Weak copyleft, used unchanged as separate distributions that anybody can replace.
        *("MPL-2.0", "LGPL-3.0-only", "LGPL"),
    }
)
HEAD = (
    "# Licences of the dependencies\n\n"
    "Written by `tools/licences.py` from `requirements.lock` and what the distributions state."
    "\n\n"
    "| distribution | version | licence |\n|---|---|---|\n"
)
_AS_WRITTEN = {
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "BSD License": "BSD",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL",
    "The Unlicense (Unlicense)": "Unlicense",
    "BSD-3-Clause, Apache-2.0, dependency licenses": "BSD-3-Clause AND Apache-2.0",
}


def _lines() -> list[Requirement]:
    return [
        Requirement(line)
        for line in re.findall(r"^([A-Za-z0-9][^\\\n]*)", LOCK.read_text(), re.MULTILINE)
    ]


def locked() -> dict[str, str]:
    """Versions by name; a name may have one for some Pythons and another for the others."""
    versions: dict[str, list[str]] = {}
    for item in _lines():
        versions.setdefault(item.name.lower(), []).append(str(item.specifier).removeprefix("=="))
    return {name: " or ".join(found) for name, found in sorted(versions.items())}


def wanted_here() -> set[str]:
    """Names that the lock holds for this system and this Python."""
    return {i.name.lower() for i in _lines() if i.marker is None or i.marker.evaluate()}


def licence(name: str) -> str:
    """The licence that a distribution states: expression, else classifiers, else its field."""
    told = cast("Message", metadata.metadata(name))
    if told.get("License-Expression"):
        return str(told["License-Expression"])
    classifiers = [
        line.split("::")[-1].strip()
        for line in told.get_all("Classifier") or ()
        if line.startswith("License ::") and not line.endswith("OSI Approved")
    ]
    text = (told.get("License") or "").strip()
    if not classifiers and "\n" in text:
        text = text.splitlines()[0].strip()
    given = classifiers or [text]
    return " AND ".join(dict.fromkeys(_AS_WRITTEN.get(item, item) for item in given))


def unknown(expression: str) -> list[str]:
    """Licences of an expression that nobody decided about; of alternatives one is enough."""
    parts = [re.split(r" OR ", part) for part in re.split(r" AND ", expression.strip("()"))]
    return [
        " OR ".join(options)
        for options in parts
        if not any(option.strip("() ") in ALLOWED for option in options)
    ]


def rows() -> tuple[list[str], list[str]]:
    """The page's rows as far as this Python tells them, and what is wrong."""
    told, problems = [], []
    here = wanted_here()
    for name, versions in locked().items():
        if name not in here:
            continue
        try:
            stated = licence(name)
        except metadata.PackageNotFoundError:
            problems.append(f"{name} is locked and not installed")
            continue
        told.append(f"| {name} | {versions} | {stated} |")
        problems += [f"{name}: {item!r} is not an allowed licence" for item in unknown(stated)]
    return told, problems


def outdated(told: list[str]) -> bool:
    """Whether a row is missing, or is about what is no longer locked; other Pythons have others."""
    held = PAGE.read_text().splitlines() if PAGE.exists() else []
    names = {line.split("|")[1].strip() for line in held if line.startswith("| ")}
    return bool(set(told) - set(held) or names - set(locked()) - {"distribution"})


def main() -> int:
    """Write the page, or with `--check` compare it."""
    told, problems = rows()
    if "--check" not in sys.argv:
        PAGE.write_text(HEAD + "\n".join(told) + "\n")
    elif outdated(told):
        problems.append(f"{PAGE.relative_to(ROOT)} is out of date: make reference")
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
