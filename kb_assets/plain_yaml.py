"""YAML that costs what it looks like: no anchors, no deep nesting, no long files.

Belongs here: reading text that people keep beside the data. What does not: what it may say. A few
hundred bytes of anchors and merge keys become gigabytes in any reader that follows them, see
https://en.wikipedia.org/wiki/Billion_laughs_attack; nobody needs them in a file of settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20


def read_file(file: Path) -> Any:
    """Read a file as `parse` reads text.

    Raises:
        ValueError: as for `parse`, or it is no text (UnicodeDecodeError).
        OSError: it cannot be read.
    """
    if file.stat().st_size > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES:,} bytes")
    return parse(file.read_text("utf-8"))


def parse(text: str) -> Any:
    """Mappings, lists and plain values.

    Raises:
        ValueError: it is not YAML, too long, too deep, or has anchors or aliases.
    """
    import yaml

    if len(text) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES:,} characters")
    try:
        # Event by event, since the reader's time grows with the square of the depth.
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            _refuse_alias(event)
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise ValueError("it is nested too deeply")
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"it is not YAML: {error}") from error


def _refuse_alias(event: object) -> None:
    anchor = getattr(event, "anchor", None)
    if anchor is not None:
        raise ValueError(f"the anchor or alias {anchor[:40]!r} is not allowed, write it out")
