"""Stage 6: a vector for every chunk, carried over where the text is known to the scope.

Works on several documents at once, so that the model gets groups of equal length across them. In a
scope that is being re-embedded a document gets the vectors of both generations; what is published
already and lacks those of the shadow gets them here too (`fill`), and no error of the shadow's
model stops a document. Fingerprint: the chunk stage's output and the identity of the live model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kb_resources.errors import KbError, UnavailableError
from kb_resources.model import Chunk, Stage, StageReport
from kb_resources.model.chunk import embedding_input
from kb_resources.stages import common, fill
from kb_resources.stages.capabilities import TOKENS, Capabilities, fingerprint
from kb_resources.stages.outward import passages_may_leave
from kb_resources.store import documents, staging, vectors, versions
from kb_resources.store.documents import Conn, DocumentRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STAGE = Stage.EMBED
GROUP_CHUNKS = 2048
"""Chunks held together at most: bounds memory, long enough to fill length groups."""


@dataclass(slots=True)
class _Job:
    """A version in work; `shadow` maps what its other generation lacks, empty without one."""

    row: DocumentRow
    mark: str
    output: str
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
) -> Iterator[tuple[DocumentRow, StageReport | KbError]]:
    """Embed several cleared versions; one answer per row, in groups."""
    group: list[_Job] = []
    published: list[tuple[DocumentRow, StageReport]] = []
    for row in rows:
        try:
            job = _prepare(caps, row)
        except UnavailableError:
            raise
        except KbError as error:
            yield row, error
            continue
        if isinstance(job, StageReport):
            if row.live_model and not job.refused:
                published.append((row, job))
            else:
                yield row, job
            continue
        group.append(job)
        if sum(len(item.chunks) for item in group) >= GROUP_CHUNKS:
            yield from _embed(caps, group)
            group = []
        if should_stop():
            break
    yield from _embed(caps, group)
    yield from fill.fill_published(caps, published, should_stop)


def _prepare(caps: Capabilities, row: DocumentRow) -> _Job | StageReport:
    started = time.perf_counter()
    if not row.cleared:
        return common.not_cleared(STAGE, row, started)
    key = common.version_key(row)
    live = caps.versions.model_of(row)
    with caps.database.transaction("pipeline") as conn:
        results = staging.results(conn, [key], Stage.CHUNK, STAGE)
        chunked = results.get((key, Stage.CHUNK))
        if chunked is None:
            return common.report(
                STAGE,
                row,
                started,
                worked=False,
                refused=True,
                reason="It is not chunked yet. Run the chunk stage for it first.",
            )
        mark = fingerprint(chunked.output, live)
        known = results.get((key, STAGE))
        if known is not None and known.fingerprint == mark:
            return common.unchanged(STAGE, row, known, started)
        staging.restage(conn, key)
        chunks = staging.load_chunks(conn, key, versions.load_parsed(conn, key).body)
        first = _missing(conn, caps, key, live, chunks)
        shadow = _missing(conn, caps, key, row.beside_model, chunks) if row.beside_model else []
    if first and not passages_may_leave(
        caps, row.key, row.latest_version, first, caps.embedder_of(live)
    ):
        return common.report(
            STAGE,
            row,
            started,
            worked=False,
            refused=True,
            reason=(
                "Its text may not go to the embedding endpoint, which is not one of your own "
                "machines. Class it as public (kb audit classify), use a model of your own, or "
                "declare KB_EMBED_HOSTING=self_hosted."
            ),
            details={"code": "disclosure_blocked"},
        )
    if row.beside_is != "shadow":
        shadow = []  # a kept generation gets what is known already, nothing is computed for it
    return _Job(row, mark, fingerprint(mark), chunks, first, shadow, started)


def _missing(
    conn: Conn, caps: Capabilities, version_key: int, model_id: str, chunks: Sequence[Chunk]
) -> list[Chunk]:
    """Stage what the scope has by a model; chunks without a vector, one for each text."""
    model = vectors.model_key(conn, model_id)
    if model is None:
        model = vectors.ensure_model(conn, model_id, caps.dimensions_of(model_id))
    missing = set(vectors.stage_known(conn, version_key, model))
    return list({c.embed_hash: c for c in chunks if c.embed_hash in missing}.values())


def _embed(
    caps: Capabilities, group: list[_Job]
) -> Iterator[tuple[DocumentRow, StageReport | KbError]]:
    live = _vectors(caps, [(caps.versions.model_of(job.row), job.missing) for job in group])
    shadow = _shadow_vectors(caps, group)
    for job in group:
        with caps.database.transaction("pipeline") as conn:
            documents.hold(conn, job.row)
            _stage(conn, job, caps.versions.model_of(job.row), job.missing, live)
            if job.row.beside_model:
                _stage(conn, job, job.row.beside_model, job.shadow, shadow)
            made = common.finish(
                conn,
                caps,
                STAGE,
                job.row,
                job.started,
                fingerprint=job.mark,
                output=job.output,
                counts=_counts(job),
                details=_details(caps, job),
            )
        yield job.row, made


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


def _shadow_vectors(caps: Capabilities, group: Sequence[_Job]) -> dict[str, _Matrix]:
    """The shadows' vectors. Where there is an error the document goes on without: it is filled."""
    fitting: list[tuple[str, Sequence[Chunk]]] = []
    try:
        for job in group:
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
        for job in group:
            if job.shadow:
                job.problem, job.shadow = str(error), []
        return {}


def _stage(
    conn: Conn, job: _Job, model_id: str, chunks: Sequence[Chunk], found: dict[str, _Matrix]
) -> None:
    if not chunks:
        return
    model = vectors.model_key(conn, model_id)
    assert model is not None  # noqa: S101 - `_missing` made it
    hashes = [chunk.embed_hash for chunk in chunks]
    version_key = common.version_key(job.row)
    vectors.stage_vectors(conn, version_key, model, hashes, found[model_id].of(hashes))


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
