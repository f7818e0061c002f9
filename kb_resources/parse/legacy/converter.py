"""Which program reads legacy Word files here; asked for at every run, so it only looks.

Belongs here: names of programs, best first. What does not: running one (`doc`). LibreOffice is
kept by many and keeps structure and hidden text; antiword (last release 2005, patched by
distributions) gives words and tables alone, and is small.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass

_PROGRAMS = (("libreoffice", ("soffice", "libreoffice")), ("antiword", ("antiword",)))


@dataclass(frozen=True, slots=True)
class Converter:
    """An installed program.

    Attributes:
        name: `libreoffice` or `antiword`.
        program: its path.
    """

    name: str
    program: str


def find_converter() -> Converter | None:
    """The best installed converter, or None where there is none."""
    for name, programs in _PROGRAMS:
        for program in programs:
            if path := shutil.which(program):
                return Converter(name, path)
    return None
