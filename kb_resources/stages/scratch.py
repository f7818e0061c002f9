"""A scope made for one evaluation: filled with a labelled set, searched, dropped.

Belongs here: its making, filling and end, also after a broken run. What does not: reading sets
(`evaluate.beir`), judging. The texts of a set are no files: acquire, parse and language are passed
by, each text being one paragraph under the set's own id. From the scan on every document goes
through the line's own stages, so that what the gate holds is not found here either.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from kb_resources.errors import KbError
from kb_resources.evaluate.beir import SetDocument
from kb_resources.model import (
    Block,
    Coverage,
    DocumentKey,
    ParsedDocument,
    Source,
    SourceKind,
    Stage,
    StageReport,
    content_hash,
)
from kb_resources.stages.line import Line
from kb_resources.store import documents, evaluations, passages, versions
from kb_resources.store.documents import Conn
from kb_resources.store.pool import Database, Timeouts

GROUP = 500
"""Documents that go through the line together: enough to fill the model's length groups."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What became of a set's documents: how many are found, and why the others are not."""

    documents: int
    indexed: int
    held: tuple[tuple[str, str], ...]


@contextmanager
def scratch_scope(database: Database, *, actor: str) -> Iterator[str]:
    """Make a scope, give its name, drop it at the end, also when the work is broken off.

    Scopes that killed processes left behind are dropped first.
    """
    sweep(database)
    name = f"eval-{secrets.token_hex(6)}"
    with database.transaction("pipeline", timeouts=Timeouts(idle_s=0)) as guard:
        evaluations.hold_scratch(guard, name)
        with database.transaction("pipeline") as conn:
            scope_id = evaluations.make_scratch(conn, name, actor)
        try:
            yield name
        finally:
            _drop(database, scope_id)


def sweep(database: Database) -> int:
    """Drop the scratch scopes that nobody holds; returns how many."""
    with database.transaction("pipeline") as conn:
        left = evaluations.scratch_scopes(conn)
    dropped = 0
    for scope_id, name in left:
        with database.transaction("pipeline", timeouts=Timeouts(statement_s=0)) as conn:
            if evaluations.hold_scratch(conn, name):
                evaluations.drop_scratch(conn, scope_id)
                dropped += 1
    return dropped


def load(
    line: Line,
    scope: str,
    rows: Iterable[SetDocument],
    *,
    seen: Callable[[int], None] | None = None,
) -> Loaded:
    """Take documents into a scratch scope and through the line.

    Args:
        line: the installation's.
        scope: a scratch scope.
        rows: of the set.
        seen: told how many documents are through.
    """
    given = iter(rows)
    count = indexed = 0
    held: list[tuple[str, str]] = []
    database = line.capabilities.database
    with database.transaction("pipeline") as conn:
        scope_id = documents.get_scope(conn, scope).scope_id
    while group := list(islice(given, GROUP)):
        keys = {DocumentKey(scope, f"d{count + nth:07}"): row for nth, row in enumerate(group, 1)}
        with database.transaction("pipeline") as conn:
            for key, row in keys.items():
                _take_in(conn, line, scope_id, key, row)
        count += len(group)
        last = line.run_all(list(keys), start=Stage.SCAN)
        for key, outcome in last.items():
            if isinstance(outcome, StageReport) and outcome.stage is Stage.SUPERSEDE:
                indexed += 1
            elif isinstance(outcome, StageReport):
                held.append((keys[key].id, outcome.reason))
            elif isinstance(outcome, KbError):
                held.append((keys[key].id, str(outcome)))
            else:
                raise outcome
        if seen is not None:
            seen(count)
    with database.transaction("pipeline") as conn:
        passages.refresh_statistics(conn, scope_id)
    return Loaded(count, indexed, tuple(held))


def _take_in(conn: Conn, line: Line, scope_id: int, key: DocumentKey, row: SetDocument) -> None:
    """What acquire, parse and language would have left in the ledger for this text."""
    source = Source(SourceKind.API, f"set:{row.id}", row.id)
    documents.register(conn, documents.Registration(scope_id, key.document_id, source))
    data = row.text.encode()
    versions.add(
        conn,
        documents.load_one(conn, key),
        digest=content_hash(row.text),
        media_type="text/plain",
        size_bytes=len(data),
        name=key.document_id,
    )
    found = documents.load_one(conn, key)
    block = Block("paragraph", row.text, 0, len(data), 0, len(row.text))
    parsed = ParsedDocument(
        row.title,
        "text/plain",
        row.text,
        (block,),
        raw_text=f"{row.title}\n{row.text}",
        coverage=Coverage(),
        parser="labelled set",
    )
    versions.save_parsed(conn, found, parsed)
    stated = row.language.partition("-")[0].lower()
    label = stated or line.capabilities.detect(row.text).label
    versions.set_language(conn, found.version_key or 0, label, 1.0)


def _drop(database: Database, scope_id: int) -> None:
    with database.transaction("pipeline", timeouts=Timeouts(statement_s=0)) as conn:
        evaluations.drop_scratch(conn, scope_id)
