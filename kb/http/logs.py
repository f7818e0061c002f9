"""One event per line, JSON or text, on stderr or in files of bounded size.

Belongs here: form and place of log lines. What does not: what is logged; callers give `fields`,
which hold ids and numbers and never text of a question or a document.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

_FILE_BYTES, _FILES = 10 * 2**20, 5


class JsonLine(logging.Formatter):
    """A record's fields as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        return json.dumps(_head(record) | _fields(record), ensure_ascii=False, default=str)


class TextLine(logging.Formatter):
    """A record's fields as `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        head = _head(record)
        rest = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        return f"{head['at']} {head['level']} {rest}"


def access_log(*, level: str, form: str, file: Path | None = None) -> logging.Logger:
    """A logger of its own for one server; a file is rotated at 10 MB and five are kept."""
    log = logging.Logger("kb.http", level)  # noqa: LOG001 - not shared between servers
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(
            file, maxBytes=_FILE_BYTES, backupCount=_FILES - 1, encoding="utf-8"
        )
    handler.setFormatter(TextLine() if form == "text" else JsonLine())
    log.addHandler(handler)
    return log


def _head(record: logging.LogRecord) -> dict[str, str]:
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return {"at": at, "level": record.levelname.lower()}


def _fields(record: logging.LogRecord) -> dict[str, object]:
    found = getattr(record, "fields", None)
    return dict(found) if isinstance(found, dict) else {"event": record.getMessage()}
