"""What of a folder is new: files against the ledger, within a budget.

Belongs here: the decision, file by file. What does not: Dagster. The ledger is the truth: a file is
queued when its document is unknown, or settled for other bytes; never while the document is
pending, so nothing is queued twice, whatever the cursor says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from kb_assets.folders.cursor import ScopeCursor
from kb_assets.folders.listing import Entry
from kb_assets.folders.mapping import FolderMap
from kb_resources.model import (
    GONE,
    DocumentKey,
    DocumentState,
    Source,
    SourceKind,
    derive_document_id,
)
from kb_resources.stages.line import Line
from kb_resources.stages.request import IngestRequest
from kb_resources.store.documents import DocumentRow

ACTOR = "dropzone"
MAX_HELD = 500
_LOOKED_UP_TOGETHER = 500


@dataclass(slots=True)
class Budget:
    """What one tick may still do.

    Attributes:
        documents: documents to queue.
        queued_bytes: their bytes.
        hashed_bytes: bytes to read for comparing.
        out_of_time: whether the tick has to answer now.
    """

    documents: int
    queued_bytes: int
    hashed_bytes: int
    out_of_time: Callable[[], bool]

    def is_left(self) -> bool:
        """Whether one more file may be looked at; a single large one always may."""
        left = self.documents > 0 and self.hashed_bytes > 0 and self.queued_bytes > 0
        return left and not self.out_of_time()


@dataclass(slots=True)
class Found:
    """What a look at one scope gave."""

    requests: list[IngestRequest] = field(default_factory=list)
    known: list[DocumentKey] = field(default_factory=list)
    cursor: ScopeCursor = field(default_factory=ScopeCursor)
    complete: bool = True


def look(
    line: Line,
    scope: str,
    entries: Sequence[Entry],
    folder_map: FolderMap,
    cursor: ScopeCursor,
    known: Collection[str],
    budget: Budget,
    *,
    kind: SourceKind,
    identities: Mapping[Entry, str],
) -> Found:
    """Compare settled entries with the ledger, oldest change first.

    Args:
        line: whose ledger.
        scope: scope of the folder.
        entries: settled, sorted.
        folder_map: whom the files are for.
        cursor: how far the last look came.
        known: partition keys that exist; a file moved in with old times is not among them.
        budget: shared by the scopes of a tick; used up here.
        kind: of the sources.
        identities: document id of each entry.
    """
    if cursor.mapping not in (None, folder_map.digest):
        cursor = cursor.anew()
    cursor = replace(cursor, mapping=folder_map.digest)
    keys = {e: DocumentKey(scope, identities[e]) for e in entries}
    held = set(cursor.held)
    todo = [
        e
        for e in entries
        if e.mark > cursor.since or e.relative in held or str(keys[e]) not in known
    ]
    found = Found(cursor=cursor)
    still_held: list[str] = []
    looked_at = 0
    for start in range(0, len(todo), _LOOKED_UP_TOGETHER):
        part = todo[start : start + _LOOKED_UP_TOGETHER]
        rows = {row.key: row for row in line.rows([keys[e] for e in part])}
        for entry in part:
            if not budget.is_left() or len(still_held) >= MAX_HELD:
                break
            looked_at += 1
            row = rows.get(keys[entry])
            if row is not None:
                found.known.append(row.key)
            if row is not None and row.state == DocumentState.PENDING:
                still_held.append(entry.relative)
            elif _is_news(row, entry, folder_map, budget, cursor):
                budget.documents -= 1
                budget.queued_bytes -= entry.size_bytes
                found.requests.append(
                    request_for(scope, entry, folder_map, kind, keys[entry].document_id)
                )
        else:
            continue
        break
    seen, unseen = todo[:looked_at], todo[looked_at:]
    found.complete = not unseen
    found.cursor = replace(
        cursor,
        # Sorted by mark, so everything up to the last one seen was seen.
        since=max([cursor.since, *(e.mark for e in seen[-1:])]),
        held=(*still_held, *(e.relative for e in unseen if e.relative in held)),
        remapping=cursor.remapping and not found.complete,
    )
    return found


def _is_news(
    row: DocumentRow | None,
    entry: Entry,
    folder_map: FolderMap,
    budget: Budget,
    cursor: ScopeCursor,
) -> bool:
    if row is None:
        return True
    if row.state in GONE:
        return False  # somebody removed it; that its file is still there changes nothing
    rule = folder_map.rule(entry.relative)
    stated = (tuple(row.audiences), row.language_hint)
    if cursor.remapping and stated != (rule.audiences, rule.language):
        return True
    if row.digest is None:
        # Refused before it had a version (empty, too large): a change is all there is to tell by.
        return entry.mark > cursor.since
    if row.size_bytes != entry.size_bytes:
        return True
    budget.hashed_bytes -= entry.size_bytes
    digest = digest_of(entry.path)
    return digest is not None and digest != row.digest


def request_for(
    scope: str, entry: Entry, folder_map: FolderMap, kind: SourceKind, document_id: str
) -> IngestRequest:
    """What to ingest for a file, and for whom."""
    rule = folder_map.rule(entry.relative)
    return IngestRequest(
        scope=scope,
        source=Source(kind, str(entry.path), entry.relative),
        document_id=document_id,
        audiences=rule.audiences,
        language=rule.language,
        actor=ACTOR,
    )


@lru_cache(maxsize=200_000)
def derived_id(relative: str, *, opaque: bool) -> str:
    """Id of a file that was never seen, by its path below the folder."""
    return derive_document_id(relative, opaque=opaque)


def digest_of(path: Path) -> str | None:
    """SHA-256 hex of a file's bytes, None where it is gone or not readable now."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
