"""What a verdict was reached with: the scanner's version, and that of the rule packs' bytes.

Belongs here: what is asked for at every run and must cost next to nothing. What does not: reading
the rules (`packs`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from kb_resources.errors import InputError

SCANNER_VERSION = "3"
"""Raise it whenever the same packs may find something else in the same text."""

RULES_FILE = "rules.toml"
_VERSION = r'^version = "?([^"\n]+)"?'


@cache
def default_files() -> Mapping[str, str]:
    """Texts of the packs that come with the package, by file name."""
    folder = resources.files("kb_resources.scan") / "packs"
    return {f.name: f.read_text("utf-8") for f in folder.iterdir() if f.name.endswith(".toml")}


def version_of(version: str, files: Mapping[str, str]) -> str:
    """The version that the rules state, with eight digits of the digest of all files."""
    digest = hashlib.sha256("\0".join(f"{n}\0{files[n]}" for n in sorted(files)).encode())
    return f"{version}+{digest.hexdigest()[:8]}"


def pack_version() -> str:
    """Version of `default_packs`, without reading the rules.

    Raises:
        InputError: the rules state none.
    """
    files = default_files()
    found = re.search(_VERSION, files[RULES_FILE], re.MULTILINE)
    if found is None:
        raise InputError(
            f"{RULES_FILE} states no version.", next_step="Begin it with a line version = …."
        )
    return version_of(found[1], files)
