"""Names of a package that are imported when somebody asks for them (PEP 562).

Belongs here: the one function behind the `__getattr__` of packages whose parts weigh much, so that
a run that finds nothing to do, or a search by words, pays for none of them. What does not: which
names a package offers. A name must not also be that of a submodule, which Python would put in
its place; the house's test holds this, and that both lists of a package say the same.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def on_demand(package: str, parts: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """The `__getattr__` of a package.

    Args:
        package: its full name.
        parts: the names that each of its submodules defines.

    Returns:
        A function that imports the submodule of a name and keeps what it found; it raises
        AttributeError for any other name.
    """
    home = {name: part for part, names in parts.items() for name in names}

    def find(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
