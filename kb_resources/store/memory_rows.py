"""What the reference store keeps of a document: versions, intervals, passages, work.

Belongs here: the rules of validity for one document, as migration 0002 has them in SQL. What does
not: scopes, audiences of readers, ranking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from kb_resources import lexical
from kb_resources.model import Chunk
from kb_resources.model.chunk import embedding_input
from kb_resources.store.records import (
    Edition,
    Missing,
    PassageRecord,
    StoredDocument,
    Vector,
    Work,
    node_path,
)


@dataclass(slots=True)
class Interval:
    """When a version holds, `until` exclusive or None."""

    version: int
    since: datetime
    until: datetime | None

    def holds(self, instant: datetime) -> bool:
        """Whether the instant lies in it."""
        return self.since <= instant and (self.until is None or instant < self.until)


@dataclass(slots=True)
class Row:
    """A published passage: its number says in which order passages were published."""

    number: int
    chunk: Chunk
    vector: Vector | None = None
    terms: dict[int, float] = field(default_factory=dict)
    length: float = 0.0


@dataclass(slots=True)
class Version:
    """One version of a document."""

    number: int
    digest: str
    title: str = ""
    media_type: str = ""
    language: str = ""
    body: str = ""
    rows: list[Row] = field(default_factory=list)

    def differs(self, edition: Edition) -> bool:
        """Whether its passages would be others."""
        held = tuple(row.chunk for row in self.rows)
        return (self.body, held) != (edition.body, edition.chunks)

    def replace(self, edition: Edition, numbers: Iterator[int]) -> None:
        """Take the edition's passages in place of those held."""
        self.body = edition.body
        self.rows = [Row(next(numbers), chunk) for chunk in edition.chunks]

    def analyse(self, language: str) -> bool:
        """Count the words of every passage; whether any count changed."""
        changed = False
        for row in self.rows:
            found = lexical.analyze(row.chunk.text, language, context=row.chunk.context)
            new = (found.terms, found.length)
            changed |= bool(row.terms) and (row.terms, row.length) != new
            row.terms, row.length = new
        return changed

    def describe(self, edition: Edition) -> None:
        """Take over what is said about the version."""
        self.title, self.language = edition.title, edition.language
        self.media_type = self.media_type or edition.media_type

    def waiting(self) -> int:
        """Passages without a vector."""
        return sum(row.vector is None for row in self.rows)

    def missing(self) -> Iterator[Missing]:
        """Texts without a vector, each once, in reading order."""
        seen: set[str] = set()
        for row in self.rows:
            if row.vector is None and row.chunk.embed_hash not in seen:
                seen.add(row.chunk.embed_hash)
                yield Missing(
                    row.chunk.embed_hash, embedding_input(row.chunk.context, row.chunk.text)
                )


@dataclass(slots=True)
class Tries:
    """Embedding work that is not done."""

    state: Literal["pending", "processing", "failed"] = "pending"
    attempts: int = 0
    error: str = ""
    holder: str | None = None
    held_until: datetime | None = None


@dataclass(slots=True)
class Document:
    """A document with its history; `number` is the order of first publication."""

    document_id: str
    number: int
    audiences: tuple[str, ...] = ()
    decided: bool = False
    removed: bool = False
    latest: int = 0
    versions: dict[int, Version] = field(default_factory=dict)
    intervals: list[Interval] = field(default_factory=list)
    ever: set[int] = field(default_factory=set)
    work: Tries | None = None

    @property
    def newest(self) -> Version:
        """The version that was put last."""
        return self.versions[self.latest]

    def version_of(self, digest: str) -> Version:
        """The version of these bytes, a new one where they are new."""
        for version in self.versions.values():
            if version.digest == digest:
                return version
        number = len(self.versions) + 1
        self.versions[number] = Version(number, digest)
        return self.versions[number]

    def end(self, at: datetime) -> bool:
        """End what holds from `at` on; whether anything did."""
        kept = []
        for interval in self.intervals:
            if interval.until is not None and interval.until <= at:
                kept.append(interval)
            elif interval.since < at:
                kept.append(Interval(interval.version, interval.since, at))
        changed = len(kept) != len(self.intervals) or any(
            old.until != new.until for old, new in zip(self.intervals, kept, strict=True)
        )
        self.intervals = kept
        return changed

    def begin(self, version: int, at: datetime) -> None:
        """From `at` on this version holds; whatever held then ends there."""
        self.end(at)
        self.intervals.append(Interval(version, at, None))
        self.ever.add(version)

    def holds(self, version: int, instant: datetime) -> bool:
        """Whether the version holds at the instant."""
        return any(i.version == version and i.holds(instant) for i in self.intervals)

    def at(self, instant: datetime) -> Version | None:
        """The version that holds at the instant."""
        for interval in self.intervals:
            if interval.holds(instant):
                return self.versions[interval.version]
        return None

    def published(self) -> int | None:
        """The version without an end, if there is one."""
        return next((i.version for i in self.intervals if i.until is None), None)

    def open_to(self, audiences: Sequence[str] | None) -> bool:
        """Whether a holder of these names may read it."""
        return audiences is None or not self.audiences or bool({*audiences} & {*self.audiences})

    def stored(self, now: datetime) -> StoredDocument | None:
        """The document as it holds now."""
        version = self.at(now)
        if version is None:
            return None
        return StoredDocument(
            self.document_id,
            version.number,
            version.digest,
            version.title,
            version.media_type,
            version.language,
            self.audiences,
            next(i.since for i in self.intervals if i.holds(now)),
            len(version.rows),
        )

    def record(self, version: Version, row: Row) -> PassageRecord:
        """A passage for a reader."""
        chunk = row.chunk
        return PassageRecord(
            chunk.passage_id,
            self.document_id,
            version.number,
            chunk.text,
            chunk.context,
            version.title,
            chunk.heading_path,
            node_path(chunk.heading_path),
            chunk.page,
            chunk.byte_start,
            chunk.byte_end,
        )

    def expect(self, waiting: int, *, anew: bool) -> None:
        """Note that vectors are waited for; `anew` forgets earlier tries."""
        if not waiting:
            self.work = None
        elif self.work is None or anew:
            self.work = Tries()

    def progress(self) -> Work:
        """Where its embedding stands."""
        waiting = self.newest.waiting()
        if not waiting or self.work is None:
            return Work(self.document_id, "ready", waiting)
        work = self.work
        return Work(self.document_id, work.state, waiting, work.attempts, work.error)
