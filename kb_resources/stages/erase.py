"""Erasing: a document leaves every store, and a certificate says how much of it there was.

Belongs here: the order of it. First one transaction deletes the rows and writes down what is left
to do elsewhere; then journal, blobs, files and Dagster follow; then the certificate is finished
and the list emptied. A crash in between leaves an unfinished erasure, which `resume` ends.
What does not: how each store deletes. Erasure is Art. 17 of Regulation (EU) 2016/679.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kb_resources.errors import InputError, PolicyError
from kb_resources.model import DocumentKey, DocumentState, validate_audience, validate_scope
from kb_resources.stages.capabilities import Capabilities
from kb_resources.stages.erase_files import ErasableFiles
from kb_resources.stages.removal import check_decision
from kb_resources.store import documents, erasure, locks
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.erasure import Certificate, Counts
from kb_resources.store.erasure_journal import ErasureJournal, JournalEntry

FORGOTTEN_ACTOR = "deleted-user"
_SYSTEM_ACTORS = ("kb", "pipeline", "system", FORGOTTEN_ACTOR)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What another store is asked to forget.

    Attributes:
        partition: `scope:document` whose events go; empty: none.
        alias: what is written for a name in what stays.
        names: names to replace: the document's id, its source, file names; or an actor.
    """

    partition: str
    alias: str
    names: tuple[str, ...]


ForgetElsewhere = Callable[[Forgotten], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Erased:
    """An erasure that was carried out; `woken` are duplicates that the line has to take up."""

    certificate: Certificate
    woken: tuple[DocumentKey, ...]


@dataclass(frozen=True, slots=True)
class Eraser:
    """Erases documents and forgets people.

    Attributes:
        capabilities: of the pipeline.
        journal: kept outside the database.
        files: this installation's own folders.
        dagster: deletes what Dagster knows; numbers by table.
        scrub: makes the database's files give up what was deleted; a sentence about what stays.
        exporting: where the git export goes; empty when it is off.
    """

    capabilities: Capabilities
    journal: ErasureJournal
    files: ErasableFiles
    dagster: ForgetElsewhere
    scrub: Callable[[], str]
    exporting: str = ""

    def erase(self, key: DocumentKey, *, actor: str, reason: str) -> Erased:
        """Erase one document with all its versions.

        Args:
            key: the document.
            actor: who asks.
            reason: why; kept in the certificate.

        Raises:
            NotFound: no such document.
            InputError: actor or reason does not fit.
            PolicyError: the git export is on, or the document is an empty remainder.
            UnavailableError: a store is away; the rows are gone, `resume` does the rest.
        """
        check_decision(actor, reason)
        self._refuse_while_exporting()
        erasure_id = secrets.token_hex(8)
        with self.capabilities.database.transaction("pipeline") as conn:
            row = locks.load_locked(conn, key)
            if _is_remainder(row):
                raise PolicyError(f"{key} was erased.", next_step="Nothing of it is left.")
            woken = documents.wake_duplicates(conn, row)
            salt = erasure.salt(conn)
            digest = erasure.id_digest(salt, key)
            self._erase_rows(conn, row, erasure_id, digest, actor=actor, reason=reason)
            started_at = erasure.certificate(conn, erasure_id).started_at
        entry = JournalEntry(erasure_id, key.scope, digest, salt.hex(), actor, reason, started_at)
        self.journal.append(entry)
        for item in self._unfinished(erasure_id):
            self._finish(item)
        with self.capabilities.database.transaction("pipeline") as conn:
            made = erasure.certificate(conn, erasure_id)
        return Erased(made, tuple(DocumentKey(key.scope, name) for name in woken))

    def erase_held_only_by(
        self, scope: str, audience: str, *, actor: str, reason: str
    ) -> list[Erased]:
        """Erase all that only holders of one audience can read, such as `user:42`."""
        with self.capabilities.database.transaction("pipeline") as conn:
            documents.get_scope(conn, validate_scope(scope))
            keys = erasure.held_only_by(conn, scope, validate_audience(audience))
        return [self.erase(key, actor=actor, reason=reason) for key in keys]

    def resume(self, erasure_id: str | None = None) -> int:
        """Finish erasures that stopped between the stores, or one of them; returns how many.

        Raises:
            UnavailableError: a store is still away.
        """
        todo = self._unfinished(erasure_id)
        for item in todo:
            self._journal_again(item)
            self._finish(item)
        return len(todo)

    def replay(self, entries: Sequence[JournalEntry]) -> list[Certificate]:
        """Repeat erasures over a restored database: what they erased goes again.

        Only documents made before an erasure count; one of the same name made later is another.
        """
        made: list[Certificate] = []
        for entry in entries:
            with self.capabilities.database.transaction("pipeline") as conn:
                if entry.scope not in {row["name"] for row in documents.list_scopes(conn)}:
                    continue
                erasure.adopt_salt(conn, bytes.fromhex(entry.salt))
                erasure.adopt(
                    conn,
                    entry.erasure_id,
                    scope=entry.scope,
                    digest=entry.id_digest,
                    actor=entry.actor,
                    reason=entry.reason,
                    started_at=entry.at,
                )
                salt = bytes.fromhex(entry.salt)
                again = [
                    key
                    for _, key in erasure.known_before(conn, entry.scope, entry.at)
                    if erasure.id_digest(salt, key) == entry.id_digest
                ]
            made += [self._again(key, entry) for key in again]
        return made

    def forget_actor(self, actor: str, *, alias: str = FORGOTTEN_ACTOR) -> Counts:
        """Write `deleted-user` wherever a person's name stands as one who did something.

        Logs that change are chained anew, with an entry that says so and keeps the old head.

        Args:
            actor: the name as the logs have it (`user:42`, `cli:ana`).
            alias: what is written instead.

        Raises:
            InputError: the name is too short, or is not a person's.
        """
        if len(actor.strip()) < 3 or actor in _SYSTEM_ACTORS:
            raise InputError(
                f"{actor!r} is not a person's name.",
                next_step="Give it as the logs have it, such as user:42 or cli:ana.",
            )
        with self.capabilities.database.transaction("pipeline") as conn:
            counts = erasure.forget_actor(conn, actor, alias)
        lines = self.journal.rename_actor(actor, alias)
        elsewhere = dict(self.dagster(Forgotten("", alias, (actor,))))
        self.scrub()
        return {"database": counts, "journal": {"lines": lines}, "dagster": elsewhere}

    def _erase_rows(
        self,
        conn: Conn,
        row: DocumentRow,
        erasure_id: str,
        digest: str,
        *,
        actor: str,
        reason: str,
    ) -> None:
        kept = erasure.version_bytes(conn, row)
        alias = f"erased-{erasure_id}"
        names = {row.document_id, row.source_uri, row.origin, *(item.name for item in kept)}
        work = {
            "partition": str(row.key),
            "alias": alias,
            "names": sorted(name for name in names if len(name) > 3 or name == row.document_id),
            "source_uri": row.source_uri,
            "digests": [item.digest for item in kept],
            "bytes": [[item.digest, item.size_bytes] for item in kept if not item.shared],
            "jobs": erasure.jobs_of(conn, row.key),
        }
        counts = erasure.erase_rows(
            conn,
            row.document_key,
            alias=alias,
            reason=f"Erased at the request of {actor}; certificate {erasure_id}.",
        )
        erasure.begin(
            conn,
            erasure_id,
            row,
            digest=digest,
            actor=actor,
            reason=reason,
            work=work,
            counts={"database": counts},
        )
        documents.append_lifecycle(
            conn, row, "erased", actor=actor, version=None, certificate=erasure_id
        )

    def _again(self, key: DocumentKey, entry: JournalEntry) -> Certificate:
        """Erase once more what a restore brought back."""
        with self.capabilities.database.transaction("pipeline") as conn:
            row = locks.load_locked(conn, key)
            documents.wake_duplicates(conn, row)
            erasure_id = secrets.token_hex(8)
            self._erase_rows(
                conn,
                row,
                erasure_id,
                entry.id_digest,
                actor=entry.actor,
                reason=f"Repeated after a restore: {entry.reason}"[:2000],
            )
        for item in self._unfinished(erasure_id):
            self._finish(item)
        with self.capabilities.database.transaction("pipeline") as conn:
            made = erasure.certificate(conn, erasure_id)
            erasure.note_replay(conn, entry.erasure_id, self.capabilities.clock(), made.counts)
        return made

    def _unfinished(self, erasure_id: str | None) -> list[erasure.Unfinished]:
        with self.capabilities.database.transaction("pipeline") as conn:
            found = erasure.unfinished(conn)
        return [item for item in found if erasure_id in (None, item.erasure_id)]

    def _finish(self, item: erasure.Unfinished) -> None:
        """Empty the stores that are not yet, and close the certificate."""
        work, database = item.work, self.capabilities.database
        stores: dict[str, Callable[[], Mapping[str, int]]] = {
            "blobs": lambda: self._delete_blobs(item.scope, item.scope_id, work["digests"]),
            "files": lambda: self.files.delete(
                work["source_uri"], [tuple(pair) for pair in work["bytes"]], work.get("jobs", ())
            ),
            "dagster": lambda: self.dagster(_forgotten(work)),
        }
        with database.transaction("pipeline") as conn:
            done = erasure.certificate(conn, item.erasure_id).counts
        for store, empty in stores.items():
            # What a try before this one deleted is in the certificate, and must stay there.
            if store not in done:
                counts = {store: dict(empty())}
                with database.transaction("pipeline") as conn:
                    erasure.progress(conn, item.erasure_id, counts)
        with database.transaction("pipeline") as conn:
            remains = self.files.remains(work["source_uri"])
            if untold := erasure.untold_consumers(conn, DocumentKey.parse(work["partition"])):
                remains.append(
                    f"{untold} consumers of events have still to be told; until then the "
                    "document's id stays in the outbox."
                )
            erasure.finish(conn, item.erasure_id, {}, remains)
        if sentence := self.scrub():
            with database.transaction("pipeline") as conn:
                erasure.progress(conn, item.erasure_id, {"scrubbed": {sentence: 1}})

    def _journal_again(self, item: erasure.Unfinished) -> None:
        """The crash may have come before the journal's line, or the journal was not writable."""
        if any(known.erasure_id == item.erasure_id for known in self.journal.entries()):
            return
        with self.capabilities.database.transaction("pipeline") as conn:
            made = erasure.certificate(conn, item.erasure_id)
            salt = erasure.salt(conn).hex()
        self.journal.append(
            JournalEntry(
                item.erasure_id,
                item.scope,
                item.id_digest,
                salt,
                made.actor,
                made.reason,
                item.started_at,
            )
        )

    def _delete_blobs(self, scope: str, scope_id: int, digests: Sequence[str]) -> dict[str, int]:
        """Delete bytes that no version of the scope needs; under the lock that acquire takes."""
        blobs = self.capabilities.blobs(scope)
        counts = {"deleted": 0, "kept_for_others": 0}
        for digest in digests:
            with self.capabilities.database.transaction("pipeline") as conn:
                if erasure.bytes_used(conn, scope_id, digest):
                    counts["kept_for_others"] += 1
                else:
                    counts["deleted"] += blobs.delete(digest)
        return counts

    def _refuse_while_exporting(self) -> None:
        if self.exporting:
            raise PolicyError(
                f"The git export to {self.exporting} is on; its history would keep the text.",
                next_step="Switch it off (kb export git --off), delete the repository, then erase.",
                code="export_on",
            )


def _forgotten(work: Mapping[str, Any]) -> Forgotten:
    return Forgotten(work["partition"], work["alias"], tuple(work["names"]))


def _is_remainder(row: DocumentRow) -> bool:
    return row.state == DocumentState.ERASED and not row.source_uri


def to_json(certificate: Certificate) -> dict[str, Any]:
    """A certificate as plain values; times stay datetimes."""
    return asdict(certificate)
