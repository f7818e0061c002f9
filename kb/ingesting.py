"""Ingesting from the reading side's commands: register, run the line, say how each ended.

Belongs here: paths to requests, batches, results. What does not: the stages. With a Dagster
instance set up (`make up`), the batch runs in a child process that records it there.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kb.running import Progress, run_keys
from kb.standing import with_in_force
from kb_resources.compose import open_line
from kb_resources.errors import InputError
from kb_resources.model import DocumentKey, Source, SourceKind
from kb_resources.settings import Settings, load_settings
from kb_resources.stages.line import Line
from kb_resources.stages.request import (
    IngestRequest,
    PassedOver,
    check_distinct,
    expand,
)
from kb_resources.store import selections
from kb_resources.store.documents import DocumentRow


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller says about all the paths."""

    scope: str
    audiences: tuple[str, ...] = ()
    document_id: str | None = None
    valid_from: datetime | None = None
    language: str | None = None
    supersedes: tuple[str, ...] = ()
    trusted: bool = False
    through_dagster: bool = True


@dataclass(frozen=True, slots=True)
class Ingested:
    """How one path ended.

    Attributes:
        path: file or address.
        document_id: its document.
        version: newest version, None before the first.
        digest: SHA-256 of its bytes, lowercase hex.
        state: terminal state, or `pending` where the work was cut short.
        reason: why, where the state needs one, and which version stays in force all the same.
        replaces: version that held until this call's took its place; None where none did.
    """

    path: str
    document_id: str
    version: int | None
    digest: str | None
    state: str
    reason: str
    replaces: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without `replaces`."""
        return {name: value for name, value in asdict(self).items() if name != "replaces"}


def local_actor() -> str:
    """Who runs the command, for the lifecycle log."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"cli:{os.getuid()}"


def ingest_paths(
    paths: Sequence[Path | str],
    options: Options,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    progress: Progress = lambda _what, _done, _total: None,
    passed_over: PassedOver = lambda _path, _why: None,
    settings: Settings | None = None,
    counters: dict[str, int] | None = None,
) -> list[Ingested]:
    """Take files, folders and web addresses through the line.

    Args:
        paths: files and folders, which must exist, and http or https addresses as text.
        options: what holds for all of them.
        should_stop: asked between documents; True ends the work cleanly.
        progress: told the stage, documents done and in total.
        passed_over: told what of a folder is not taken in, and why.
        settings: default: the environment's.
        counters: filled with how often each kind of work was done.

    Returns:
        One entry per file, in order, though it was named twice; then the duplicates that came
        alive by them.

    Raises:
        InputError: a path does not exist, names do not fit, an id for several files.
        UnavailableError: database or disk is away; what was finished is kept.
    """
    settings = settings or load_settings()
    sources = list(
        dict.fromkeys(source for path in paths for source in _sources(path, passed_over))
    )
    check_distinct(sources)
    if options.document_id and len(sources) != 1:
        raise InputError(
            f"--document-id names one document, but {len(sources)} files were given.",
            next_step="Name a single file.",
        )
    actor = local_actor()
    with open_line(settings, actor=actor, counters=counters) as line:
        keys = line.register_many(
            [
                IngestRequest(
                    scope=options.scope,
                    source=source,
                    document_id=options.document_id,
                    audiences=options.audiences,
                    valid_from=options.valid_from,
                    language=options.language,
                    trusted_by=actor if options.trusted else None,
                    supersedes=options.supersedes,
                    actor=actor,
                )
                for source in sources
            ]
        )
        before = _in_force(line, line.rows(keys))
        woken = run_keys(
            line,
            keys,
            settings,
            actor=actor,
            through_dagster=options.through_dagster,
            should_stop=should_stop,
            progress=progress,
        )
        uris = [source.uri for source in sources] + [row.source_uri for row in line.rows(woken)]
        return _ends(line, [*keys, *woken], uris, before)


def _sources(place: Path | str, passed_over: PassedOver) -> Iterable[Source]:
    """What a path or an address stands for."""
    if isinstance(place, Path):
        return expand(place, passed_over=passed_over)
    from kb_resources.acquire import FetchRefusal, canonical_url

    url = canonical_url(place)
    if isinstance(url, FetchRefusal):
        raise InputError(url.reason, next_step=url.next_step)
    return [Source(SourceKind.URL, url, url)]


def _ends(
    line: Line,
    keys: Sequence[DocumentKey],
    uris: Sequence[str],
    before: Mapping[int, int],
) -> list[Ingested]:
    rows = {row.key: row for row in line.rows(keys)}
    in_force = _in_force(line, rows.values())
    made = []
    for key, uri in zip(keys, uris, strict=True):
        row = rows[key]
        was, now = before.get(row.document_key), in_force.get(row.document_key)
        made.append(
            Ingested(
                path=uri,
                document_id=key.document_id,
                version=row.latest_version,
                digest=row.digest,
                state=row.state,
                reason=with_in_force(row.reason, row.state, now),
                replaces=was if now not in (None, was) else None,
            )
        )
    return made


def _in_force(line: Line, rows: Iterable[DocumentRow]) -> dict[int, int]:
    """The versions that hold, by document key."""
    asked: dict[int, list[str]] = {}
    for row in rows:
        asked.setdefault(row.scope_id, []).append(row.document_id)
    if not asked:
        return {}
    with line.capabilities.database.transaction("pipeline") as conn:
        return {
            found.document_key: found.version
            for scope_id, documents in asked.items()
            for found in selections.current_of(conn, scope_id, documents)
        }
