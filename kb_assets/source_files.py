"""Declared sources in YAML files, as an operator keeps them beside the data.

Belongs here: reading the files. The same declarations work as `defs.yaml` in a Dagster project's
`defs` folder, since `KbSource` is an ordinary component.
"""

from __future__ import annotations

from pathlib import Path

from kb_assets import plain_yaml
from kb_assets.source import KbSource
from kb_resources.errors import InputError

TYPE = "kb_assets.source.KbSource"


def read_sources(folder: Path) -> list[KbSource]:
    """Sources declared in `*.yaml` of a folder, by file name; none where there is no folder.

    Raises:
        InputError: a file does not fit; the message names it, and what is wrong.
    """
    if not folder.is_dir():
        return []
    found = [read_source(file) for file in sorted(folder.glob("*.yaml"))]
    names = [source.name for source in found]
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise InputError(
            f"Two sources are named {doubled.pop()!r}.", next_step=f"Rename one in {folder}."
        )
    return found


def read_source(file: Path) -> KbSource:
    """One declared source; raises InputError as `read_sources`."""
    from pydantic import ValidationError

    next_step = f"Correct {file}; see docs/reference/sources.md."
    try:
        found = plain_yaml.read_file(file)
    except (ValueError, OSError) as error:
        raise InputError(f"{file.name} cannot be read: {error}.", next_step=next_step) from error
    if not isinstance(found, dict) or found.get("type") != TYPE:
        raise InputError(f"{file.name} does not say `type: {TYPE}`.", next_step=next_step)
    try:
        return KbSource.model_validate(found.get("attributes") or {})
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InputError(f"{file.name} does not fit: {wrong}.", next_step=next_step) from error
