"""Filling a generation: vectors of published passages by a model that has not seen them yet.

Belongs here: which texts go to the model together, what is kept after each batch, and how a try of
a document ends. What does not: which model, and when it becomes live (`reembed`). Every batch is
kept as soon as it is computed, so whatever ends the work costs one batch. The rules for tries are
those of better-supabase's jobs (requirements B-14 to B-16).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kb_resources.errors import KbError, UnavailableError
from kb_resources.model import DocumentKey, StageReport
from kb_resources.model.chunk import embedding_input
from kb_resources.stages.capabilities import TOKENS, Capabilities
from kb_resources.stages.outward import passages_may_leave
from kb_resources.store import generations, locks, vectors
from kb_resources.store.documents import DocumentRow
from kb_resources.store.generations import TextToFill, Unfilled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH_TEXTS = 512
"""Texts that go to the model together and are kept together."""
DOCUMENTS = 64
"""Documents looked at together, so that short ones fill a batch."""
ATTEMPTS = 3
_HELD_BATCHES = 4
"""Batches of texts held at once, but for one document that has more."""
MAY_NOT_LEAVE = (
    "Its text may not go to the embedding endpoint, which is not one of your own machines."
)


@dataclass(frozen=True, slots=True)
class Target:
    """A scope and the model whose vectors it is to get."""

    scope: str
    scope_id: int
    model_id: str
    model_key: int


@dataclass(slots=True)
class Filled:
    """What a fill did.

    Attributes:
        documents: looked at.
        embedded: vectors that were computed.
        carried: passages that got the vector of an equal text.
        attached: passages that got a computed vector.
        failed: documents whose try failed, id to cause; not all of them were given up.
        stopped: whether it was asked to stop.
    """

    documents: int = 0
    embedded: int = 0
    carried: int = 0
    attached: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    stopped: bool = False

    def add(self, other: Filled) -> None:
        """Take in what another fill did."""
        self.documents += other.documents
        self.embedded += other.embedded
        self.carried += other.carried
        self.attached += other.attached
        self.failed |= other.failed
        self.stopped |= other.stopped


@dataclass(frozen=True, slots=True)
class _Item:
    """A text of one version of a document."""

    document: Unfilled
    version_key: int
    version: int
    text: TextToFill


def fill(
    caps: Capabilities,
    target: Target,
    *,
    limit: int | None = None,
    batch: int = BATCH_TEXTS,
    should_stop: Callable[[], bool] = lambda: False,
    seen: Callable[[Filled], None] = lambda _: None,
) -> Filled:
    """Fill a generation until nothing is missing that can be had.

    A document that fails is tried again after the others, `ATTEMPTS` times over all runs, and is
    then given up with its cause; it stops no other.

    Args:
        caps: of the line.
        target: scope and model.
        limit: documents to look at, at most; None: all.
        batch: texts that go to the model together.
        should_stop: asked between batches.
        seen: told after each batch that was kept.

    Raises:
        UnavailableError: the model or the database is away; nothing is marked as failed.
    """
    work = _Work(caps, target, batch, should_stop, seen)
    passed_over: set[int] = set()  # looked at; what still lacks vectors became another text
    again: set[int] = set()  # failed, to be tried again after the others
    while not work.done.stopped:
        left = DOCUMENTS if limit is None else min(DOCUMENTS, limit - len(passed_over))
        if left <= 0:
            break
        with caps.database.transaction("pipeline") as conn:
            found = generations.unfilled(
                conn, target.scope_id, target.model_key, passed_over=passed_over | again, limit=left
            )
        if not found and not again:
            break
        if not found:
            again = set()
            continue
        work.fill(found)
        again |= {each.document_key for each in found if each.document_id in work.done.failed}
        passed_over |= {each.document_key for each in found} - again
    return work.done


def fill_published(
    caps: Capabilities,
    published: Sequence[tuple[DocumentRow, StageReport]],
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[DocumentRow, StageReport]]:
    """Fill documents that went through the embed stage unchanged; each with what was done.

    No error of a model stops the line: it is told in the report, and the next fill tries again.
    """
    work: dict[tuple[str, int, str], list[DocumentRow]] = {}
    for row, _ in published:
        models = [row.live_model, row.beside_model if row.beside_is == "shadow" else None]
        for model_id in filter(None, models):
            work.setdefault((row.scope, row.scope_id, model_id), []).append(row)
    counts: dict[DocumentKey, int] = {}
    problems: dict[DocumentKey, str] = {}
    for (scope, scope_id, model_id), rows in work.items():
        with caps.database.transaction("pipeline") as conn:
            key = vectors.model_key(conn, model_id) or 0
            lacking = [
                row for row in rows if generations.versions_to_fill(conn, row.document_key, key)
            ]
        if not lacking or should_stop():
            continue
        under_way = _Work(caps, Target(scope, scope_id, model_id, key), BATCH_TEXTS, should_stop)
        try:
            under_way.fill([Unfilled(row.document_key, row.document_id) for row in lacking])
        except KbError as error:
            problems |= {row.key: str(error) for row in lacking}
        for row in lacking:
            counts[row.key] = counts.get(row.key, 0) + 1
            if cause := under_way.done.failed.get(row.document_id):
                problems[row.key] = cause
    for row, report in published:
        if row.key in counts:
            problem = {"shadow_problem": problems[row.key]} if row.key in problems else {}
            report = replace(
                report,
                worked=True,
                counts={**report.counts, "generations_filled": counts[row.key]},
                details={**report.details, **problem},
            )
        yield row, report


class _Work:
    """A fill under way: its target, and what it did so far."""

    def __init__(
        self,
        caps: Capabilities,
        target: Target,
        batch: int,
        should_stop: Callable[[], bool],
        seen: Callable[[Filled], None] = lambda _: None,
    ) -> None:
        self._caps = caps
        self._target = target
        self._batch = batch
        self._should_stop = should_stop
        self._seen = seen
        self.done = Filled()

    def fill(self, documents: Sequence[Unfilled]) -> None:
        """Fill some documents, batch by batch."""
        items: list[_Item] = []
        for document in documents:
            self.done.documents += 1
            self.done.failed.pop(document.document_id, None)
            of_document = self._gather(document)
            if not self._may_leave(of_document):
                self._failed(document, MAY_NOT_LEAVE, attempts=1)
                continue
            items += of_document
            if len(items) >= _HELD_BATCHES * self._batch:
                self._fill_all(items)
                items = []
        self._fill_all(items)

    def _gather(self, document: Unfilled) -> list[_Item]:
        """Carry over what the scope knows; the texts that are left."""
        items = []
        key = self._target.model_key
        with self._caps.database.transaction("pipeline") as conn:
            locks.lock(conn, document.document_key)
            for version_key, version in generations.versions_to_fill(
                conn, document.document_key, key
            ):
                self.done.carried += generations.carry(conn, version_key, key)
                items += [
                    _Item(document, version_key, version, text)
                    for text in generations.texts_to_fill(conn, version_key, key)
                ]
            if not items:
                generations.settle(conn, key, document.document_key)
        return items

    def _may_leave(self, items: Sequence[_Item]) -> bool:
        """Whether all texts of a document may go to the model."""
        by_version: dict[int, list[TextToFill]] = {}
        for item in items:
            by_version.setdefault(item.version, []).append(item.text)
        return all(
            passages_may_leave(
                self._caps,
                DocumentKey(self._target.scope, items[0].document.document_id),
                version,
                texts,
                self._caps.embedder_of(self._target.model_id),
            )
            for version, texts in by_version.items()
        )

    def _fill_all(self, items: Sequence[_Item]) -> None:
        for part in _batches(items, self._batch):
            if self.done.stopped or self._should_stop():
                self.done.stopped = True
                return
            self._fill_batch(part)
            self._seen(self.done)

    def _fill_batch(self, part: Sequence[_Item]) -> None:
        """Embed and keep one batch; where it fails, its documents go one by one."""
        try:
            found = self._embed(part)
            by_version: dict[int, list[_Item]] = {}
            for item in part:
                by_version.setdefault(item.version_key, []).append(item)
            for version_key, items in by_version.items():
                self._keep(version_key, items, found)
        except UnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - one document's error stops no other
            in_part = dict.fromkeys(item.document for item in part)
            if len(in_part) > 1:
                for document in in_part:
                    self._fill_batch([item for item in part if item.document == document])
                return
            cause = error.message if isinstance(error, KbError) else type(error).__name__
            self._failed(part[0].document, cause, attempts=ATTEMPTS)

    def _embed(self, part: Sequence[_Item]) -> dict[str, NDArray[np.float32]]:
        """Vectors by embedded text."""
        caps, target = self._caps, self._target
        texts = {i.text.embed_hash: embedding_input(i.text.context, i.text.text) for i in part}
        started = time.perf_counter()
        matrix = caps.embedder_of(target.model_id).embed(list(texts.values()), "passage")
        spent = time.perf_counter() - started
        caps.count("embedded", len(texts))
        tokens = {i.text.embed_hash: i.text.token_count for i in part}
        caps.count(f"{TOKENS}{target.model_id}", sum(tokens.values()))
        self.done.embedded += len(texts)
        with caps.database.transaction("pipeline") as conn:
            generations.count_fill(conn, target.scope_id, target.model_key, len(texts), spent)
        return dict(zip(texts, matrix, strict=True))

    def _keep(
        self, version_key: int, items: Sequence[_Item], found: dict[str, NDArray[np.float32]]
    ) -> None:
        """Write vectors of texts that the version still has."""
        import numpy as np

        document, key = items[0].document, self._target.model_key
        with self._caps.database.transaction("pipeline") as conn:
            locks.lock(conn, document.document_key)
            wanted = {text.embed_hash for text in generations.texts_to_fill(conn, version_key, key)}
            fitting = [i.text.embed_hash for i in items if i.text.embed_hash in wanted]
            if not fitting:
                return
            matrix = np.stack([found[embed_hash] for embed_hash in fitting]).astype(np.float32)
            vectors.stage_vectors(conn, version_key, key, fitting, matrix)
            generations.attach(conn, version_key, key)
            if not generations.versions_to_fill(conn, document.document_key, key):
                generations.settle(conn, key, document.document_key)
            self.done.attached += len(fitting)

    def _failed(self, document: Unfilled, cause: str, *, attempts: int) -> None:
        """Count a failed try; after `attempts` of them the document is given up.

        A try that fails in several batches counts once.
        """
        counted = document.document_id in self.done.failed
        self.done.failed[document.document_id] = cause
        if counted:
            return
        with self._caps.database.transaction("pipeline") as conn:
            generations.fail(
                conn,
                self._target.scope_id,
                self._target.model_key,
                document.document_key,
                cause,
                attempts,
            )


def _batches(items: Sequence[_Item], size: int) -> Iterator[list[_Item]]:
    """Items with `size` different texts at most; an equal text goes along for nothing."""
    part: list[_Item] = []
    hashes: set[str] = set()
    for item in items:
        if item.text.embed_hash not in hashes and len(hashes) >= size:
            yield part
            part, hashes = [], set()
        part.append(item)
        hashes.add(item.text.embed_hash)
    if part:
        yield part
