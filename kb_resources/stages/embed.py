"""Stage 6: a vector for every chunk, carried over where the text is known to the scope.

Works on several documents at once, so that the model gets groups of equal length across them. In a
scope that is being re-embedded a document gets the vectors of both generations; what is published
already and lacks those of the shadow gets them here too (`fill`), and no error of the shadow's
model stops a document. Fingerprint: the chunk stage's output and the identity of the live model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kb_resources.errors import KbError, UnavailableError
from kb_resources.model import Chunk, Stage, StageReport
from kb_resources.model.chunk import embedding_input
from kb_resources.stages import common, fill, group
from kb_resources.stages.capabilities import TOKENS, Capabilities, fingerprint
from kb_resources.stages.outward import passages_may_leave
from kb_resources.store import staging, vectors, versions
from kb_resources.store.documents import Conn, DocumentRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STAGE = Stage.EMBED
GROUP_CHUNKS = 2048
"""Chunks held together at most: bounds memory, long enough to fill length groups."""


@dataclass(slots=True)
class _Job:
    """A version in work; `shadow` is what its other generation lacks, empty without one."""

    row: DocumentRow
    mark: str
    chunks: tuple[Chunk, ...]
    missing: list[Chunk]
    shadow: list[Chunk]
    started: float
    problem: str = ""


@dataclass(slots=True)
class _Matrix:
    """Vectors of one model by embedded text."""

    place: dict[str, int] = field(default_factory=dict)
    rows: NDArray[np.float32] | None = None

    def of(self, hashes: Sequence[str]) -> NDArray[np.float32]:
        """`(n, dim) float32`, one row for each of the hashes."""
        assert self.rows is not None  # noqa: S101 - asked for what was embedded only
        return self.rows[[self.place[embed_hash] for embed_hash in hashes]]


def run_many(
    caps: Capabilities, rows: Sequence[DocumentRow], should_stop: Callable[[], bool] = lambda: False
) -> Iterator[tuple[DocumentRow, StageReport | Exception]]:
    """Embed several cleared versions; one answer per row, in groups."""
    held: list[_Job] = []
    published: list[tuple[DocumentRow, StageReport]] = []
    for some in group.groups(rows):
        for row, job in _prepare_all(caps, some):
            if isinstance(job, _Job):
                held.append(job)
            elif isinstance(job, StageReport) and row.live_model and not job.refused:
                published.append((row, job))
            else:
                yield row, job
            if sum(len(item.chunks) for item in held) >= GROUP_CHUNKS:
                yield from _embed(caps, held)
                held = []
                if should_stop():
                    break
        if should_stop():
            break
    yield from _embed(caps, held)
    yield from fill.fill_published(caps, published, should_stop)


_Prepared = _Job | StageReport | Exception


def _prepare_all(
    caps: Capabilities, rows: Sequence[DocumentRow]
) -> Iterator[tuple[DocumentRow, _Prepared]]:
    """What each document lacks; where that cannot be told of all, of each alone."""
    try:
        yield from _prepare(caps, rows)
    except UnavailableError:
        raise
    except group.TooMuch:
        middle = len(rows) // 2
        yield from _prepare_all(caps, rows[:middle])
        yield from _prepare_all(caps, rows[middle:])
    except Exception as error:  # noqa: BLE001 - one document's error stops no other
        if len(rows) == 1:
            yield rows[0], error
            return
        for row in rows:
            yield from _prepare_all(caps, [row])


def _prepare(
    caps: Capabilities, rows: Sequence[DocumentRow]
) -> list[tuple[DocumentRow, _Prepared]]:
    started = time.perf_counter()
    with caps.database.transaction("pipeline") as conn:
        known = group.known_results(conn, rows, Stage.CHUNK, STAGE)
        seen = {row.document_key: _look(caps, row, known) for row in rows}
        ahead = [row for row in rows if isinstance(seen[row.document_key], str)]
        group.check_size(conn, ahead)
        chunks = staging.stage_again(conn, [common.version_key(row) for row in ahead])
        first = _missing(conn, caps, [(row, caps.versions.model_of(row)) for row in ahead], chunks)
        other = [(row, row.beside_model) for row in ahead if row.beside_model]
        beside = _missing(conn, caps, other, chunks)
    prepared: list[tuple[DocumentRow, _Prepared]] = []
    for row in rows:
        mark = seen[row.document_key]
        if not isinstance(mark, str):
            prepared.append((row, mark))
            continue
        key = common.version_key(row)
        missing = first.get(key, [])
        if missing and not _may_leave(caps, row, missing):
            prepared.append((row, _disclosed(row)))
            continue
        # A kept generation gets what is known already, nothing is computed for it.
        shadow = beside.get(key, []) if row.beside_is == "shadow" else []
        prepared.append((row, _Job(row, mark, chunks[key], missing, shadow, started)))
    return prepared


def _look(
    caps: Capabilities, row: DocumentRow, known: Mapping[int, group.Results]
) -> str | StageReport:
    """The answer where there is nothing to embed, else the fingerprint."""
    if not row.cleared:
        return common.not_cleared(STAGE, row)
    results = known.get(common.version_key(row), {})
    chunked = results.get(Stage.CHUNK)
    if chunked is None:
        return common.refused(
            STAGE, row, "It is not chunked yet. Run the chunk stage for it first."
        )
    mark = fingerprint(chunked.output, caps.versions.model_of(row))
    before = results.get(STAGE)
    if before is not None and before.fingerprint == mark:
        return common.unchanged(STAGE, row, before)
    return mark


def _missing(
    conn: Conn,
    caps: Capabilities,
    wanted: Sequence[tuple[DocumentRow, str]],
    chunks: Mapping[int, tuple[Chunk, ...]],
) -> dict[int, list[Chunk]]:
    """Stage what scopes have by the models; chunks without a vector, one for each text."""
    found: dict[int, list[Chunk]] = {}
    for model_id in dict.fromkeys(model_id for _, model_id in wanted):
        model = vectors.model_key(conn, model_id)
        if model is None:
            model = vectors.ensure_model(conn, model_id, caps.dimensions_of(model_id))
        keys = [common.version_key(row) for row, of_row in wanted if of_row == model_id]
        for key, hashes in vectors.stage_all_known(conn, keys, model).items():
            missing = set(hashes)
            of_key = versions.there(chunks.get(key))
            found[key] = list({c.embed_hash: c for c in of_key if c.embed_hash in missing}.values())
    return found


def _may_leave(caps: Capabilities, row: DocumentRow, chunks: Sequence[Chunk]) -> bool:
    embedder = caps.embedder_of(caps.versions.model_of(row))
    return passages_may_leave(caps, row.key, row.latest_version, chunks, embedder)


def _disclosed(row: DocumentRow) -> StageReport:
    return common.refused(
        STAGE,
        row,
        "Its text may not go to the embedding endpoint, which is not one of your own "
        "machines. Class it as public (kb audit classify), use a model of your own, or "
        "declare KB_EMBED_HOSTING=self_hosted.",
        code="disclosure_blocked",
    )


def _embed(
    caps: Capabilities, jobs: Sequence[_Job]
) -> Iterator[tuple[DocumentRow, StageReport | Exception]]:
    live = _vectors(caps, [(caps.versions.model_of(job.row), job.missing) for job in jobs])
    shadow = _shadow_vectors(caps, jobs)

    def write(conn: Conn, _caps: Capabilities, made: Sequence[common.Made]) -> None:
        of = caps.versions.model_of
        _stage(conn, [(m.product, of(m.row), m.product.missing) for m in made], live)
        _stage(conn, [(m.product, m.row.beside_model, m.product.shadow) for m in made], shadow)

    made = [_made(caps, job) for job in jobs]
    for start in range(0, len(made), group.DOCUMENTS):
        some = made[start : start + group.DOCUMENTS]
        outcomes = group.store(caps, STAGE, some, write)
        for each in some:
            yield each.row, outcomes[each.row.document_key]


def _made(caps: Capabilities, job: _Job) -> common.Made:
    made = common.Made(
        job.row,
        job.mark,
        output=fingerprint(job.mark),
        counts=_counts(job),
        details=_details(caps, job),
        product=job,
    )
    made.duration_s = time.perf_counter() - job.started
    return made


def _vectors(
    caps: Capabilities, wanted: Sequence[tuple[str, Sequence[Chunk]]]
) -> dict[str, _Matrix]:
    """Vectors by model; texts of all documents go to a model together."""
    texts: dict[str, dict[str, str]] = {}
    tokens: dict[str, dict[str, int]] = {}
    for model_id, chunks in wanted:
        of_model = texts.setdefault(model_id, {})
        counted = tokens.setdefault(model_id, {})
        for chunk in chunks:
            of_model[chunk.embed_hash] = embedding_input(chunk.context, chunk.text)
            counted[chunk.embed_hash] = chunk.token_count
    found: dict[str, _Matrix] = {}
    for model_id, of_model in texts.items():
        if of_model:
            place = {embed_hash: index for index, embed_hash in enumerate(of_model)}
            rows = caps.embedder_of(model_id).embed(list(of_model.values()), "passage")
            found[model_id] = _Matrix(place, rows)
            caps.count("embedded", len(of_model))
            caps.count(f"{TOKENS}{model_id}", sum(tokens[model_id].values()))
    return found


def _shadow_vectors(caps: Capabilities, jobs: Sequence[_Job]) -> dict[str, _Matrix]:
    """The shadows' vectors. Where there is an error the document goes on without: it is filled."""
    fitting: list[tuple[str, Sequence[Chunk]]] = []
    try:
        for job in jobs:
            model_id = job.row.beside_model
            if not model_id or not job.shadow:
                continue
            embedder = caps.embedder_of(model_id)
            if passages_may_leave(caps, job.row.key, job.row.latest_version, job.shadow, embedder):
                fitting.append((model_id, job.shadow))
            else:
                job.problem, job.shadow = fill.MAY_NOT_LEAVE, []
        return _vectors(caps, fitting)
    except KbError as error:
        for job in jobs:
            if job.shadow:
                job.problem, job.shadow = str(error), []
        return {}


def _stage(
    conn: Conn,
    wanted: Sequence[tuple[_Job, str | None, Sequence[Chunk]]],
    found: dict[str, _Matrix],
) -> None:
    for model_id in dict.fromkeys(model_id for _, model_id, chunks in wanted if chunks):
        model = vectors.model_key(conn, model_id or "")
        assert model is not None  # noqa: S101 - `_missing` made it
        of_model = [
            (job, chunk) for job, of, chunks in wanted if of == model_id for chunk in chunks
        ]
        keys = [common.version_key(job.row) for job, _ in of_model]
        hashes = [chunk.embed_hash for _, chunk in of_model]
        vectors.stage_all_vectors(conn, keys, model, hashes, found[model_id or ""].of(hashes))


def _counts(job: _Job) -> dict[str, float]:
    return {
        "chunks": len(job.chunks),
        "embedded": len(job.missing),
        "carried": len(job.chunks) - len(job.missing),
        "tokens": sum(chunk.token_count for chunk in job.missing),
        **({"shadow_embedded": len(job.shadow)} if job.row.beside_is == "shadow" else {}),
    }


def _details(caps: Capabilities, job: _Job) -> dict[str, Any]:
    details: dict[str, Any] = {"model": caps.versions.model_of(job.row)}
    if job.row.beside_is == "shadow":
        details["shadow"] = job.row.beside_model
    if job.problem:
        details["shadow_problem"] = job.problem
    return details
