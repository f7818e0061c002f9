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


def locked() -> list[tuple[str, str]]:
    """Names and versions of what the lock holds for this system, by name."""
    lines = re.findall(r"^([A-Za-z0-9][^\\\n]*)", LOCK.read_text(), re.MULTILINE)
    wanted = [Requirement(line) for line in lines]
    return sorted(
        (item.name.lower(), str(item.specifier).removeprefix("=="))
        for item in wanted
        if item.marker is None or item.marker.evaluate()
    )


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


def page() -> tuple[str, list[str]]:
    """The page, and what is wrong."""
    rows, problems = [], []
    for name, version in locked():
        try:
            stated = licence(name)
        except metadata.PackageNotFoundError:
            problems.append(f"{name} is locked and not installed")
            continue
        rows.append(f"| {name} | {version} | {stated} |")
        problems += [f"{name}: {item!r} is not an allowed licence" for item in unknown(stated)]
    head = (
        "# Licences of the dependencies\n\n"
        "Written by `tools/licences.py` from `requirements.lock` and what the distributions state."
        "\n\n"
        "| distribution | version | licence |\n|---|---|---|\n"
    )
    return head + "\n".join(rows) + "\n", problems


def main() -> int:
    """Write the page, or with `--check` compare it."""
    text, problems = page()
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text() != text:
            problems.append(f"{PAGE.relative_to(ROOT)} is out of date: make reference")
    else:
        PAGE.write_text(text)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
