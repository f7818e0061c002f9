"""Embedding models and the vectors staged between the stages embed and index.

Belongs here: which model a vector is of, carrying vectors over by embedded text, validation.
What does not: computing vectors. Binary COPY: postgresql.org/docs, "COPY", "Binary Format".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kb_resources.errors import InputError, IntegrityError, NotFound
from kb_resources.store.documents import Conn
from kb_resources.store.sql import sql

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_TRAILER = b"\xff\xff"
_NORM_TOLERANCE = 1e-3


def model_key(conn: Conn, model_id: str) -> int | None:
    """Key of a model by its identity `name@fingerprint`, None where it was never used."""
    row = conn.execute(sql("find_model"), {"model_id": model_id}).fetchone()
    return int(row[0]) if row else None


def ensure_model(conn: Conn, model_id: str, dimensions: int) -> int:
    """Key of the model, registered where it is new.

    Raises:
        InputError: more dimensions than an index can hold.
        IntegrityError: it is known with another number of dimensions.
    """
    from kb_resources.store.records import MAX_DIMENSIONS

    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise InputError(
            f"{model_id} has {dimensions:,} dimensions; an index holds {MAX_DIMENSIONS:,} at most.",
            next_step="Use another model, or one that can be cut to fewer dimensions.",
        )
    given = {"model_id": model_id, "dim": dimensions}
    row = conn.execute(sql("add_model"), given).fetchone()
    # Lost the race against another maker: its row is visible to a new statement only.
    row = row or conn.execute(sql("add_model"), given).fetchone()
    if row is None:
        raise IntegrityError(f"The model {model_id} could not be registered.")
    if row[1] != dimensions:
        raise IntegrityError(
            f"{model_id} has {row[1]} dimensions in the database and gives {dimensions}.",
            next_step="Give a changed model another fingerprint.",
        )
    return int(row[0])


def known_hashes(conn: Conn, scope_id: int, model_key: int, hashes: Sequence[str]) -> set[str]:
    """Those of `hashes` (SHA-256 hex of embedded texts) that the scope has vectors for."""
    rows = conn.execute(
        sql("known_hashes"),
        {"scope_id": scope_id, "model_key": model_key, "hashes": list(hashes)},
    ).fetchall()
    return {embed_hash for (embed_hash,) in rows}


def stage_known(conn: Conn, version_key: int, model_key: int) -> list[str]:
    """Stage the vectors of texts that the scope has embedded already, wherever they stood.

    Returns:
        Hashes of the version's staged chunks still without a vector, in reading order.
    """
    return stage_all_known(conn, [version_key], model_key)[version_key]


def stage_all_known(
    conn: Conn, version_keys: Sequence[int], model_key: int
) -> dict[int, list[str]]:
    """`stage_known` for several versions."""
    given = {"version_keys": list(version_keys), "model_key": model_key}
    conn.execute(sql("stage_known"), given)
    missing: dict[int, dict[str, None]] = {key: {} for key in version_keys}
    for key, embed_hash in conn.execute(sql("missing_hashes"), given).fetchall():
        missing[key][embed_hash] = None
    return {key: list(hashes) for key, hashes in missing.items()}


def carry_known(conn: Conn, version_key: int, model_key: int) -> set[str]:
    """`stage_known` for who has the chunks at hand; returns what has a staged vector now."""
    conn.execute(sql("stage_known"), {"version_keys": [version_key], "model_key": model_key})
    given = {"version_key": version_key, "model_key": model_key}
    return {embed_hash for (embed_hash,) in conn.execute(sql("staged_hashes"), given)}


def stage_vectors(
    conn: Conn,
    version_key: int,
    model_key: int,
    hashes: Sequence[str],
    vectors: NDArray[np.float32],
) -> None:
    """Stage freshly computed vectors, in place of those staged for the same texts.

    Args:
        conn: inside a transaction of the pipeline role.
        version_key: whose chunks they are of.
        model_key: the model they are by.
        hashes: SHA-256 hex of the embedded texts, distinct.
        vectors: `(n, dim) float32`, L2-normalised, one row per hash.

    Raises:
        InputError: number, shape or dimensions are wrong, a value is not finite or a row not of
            unit length. Nothing is written then.
        NotFound: no such model.
    """
    stage_all_vectors(conn, [version_key] * len(hashes), model_key, hashes, vectors)


def stage_all_vectors(
    conn: Conn,
    version_keys: Sequence[int],
    model_key: int,
    hashes: Sequence[str],
    vectors: NDArray[np.float32],
) -> None:
    """`stage_vectors` for several versions: `version_keys` has one for each of the hashes."""
    row = conn.execute(
        sql("staging_vectors"),
        {"version_keys": sorted(set(version_keys)), "model_key": model_key},
    ).fetchone()
    if row is None:
        raise NotFound(f"There is no embedding model {model_key}.")
    dimensions, staged = row
    validate(vectors, len(hashes), dimensions)
    if not hashes:
        return
    if staged:
        conn.execute(
            sql("drop_staged_vectors"),
            {"version_keys": list(version_keys), "model_key": model_key, "hashes": list(hashes)},
        )
    with conn.cursor() as cursor, cursor.copy(sql("copy_staged_vectors")) as copy:
        copy.write(_COPY_HEADER)
        copy.write(_rows(version_keys, model_key, hashes, vectors).tobytes())
        copy.write(_COPY_TRAILER)


def validate(vectors: NDArray[np.float32], count: int, dimensions: int) -> None:
    """Refuse with InputError what is not `count` finite unit vectors of `dimensions`."""
    import numpy as np

    problem = ""
    if vectors.ndim != 2 or vectors.shape != (count, dimensions):
        problem = f"The embedder gave shape {vectors.shape} for {count} texts of {dimensions}."
    elif not np.isfinite(vectors).all():
        problem = "The embedder gave numbers that are not finite."
    elif count and np.abs(np.linalg.norm(vectors, axis=1) - 1).max() > _NORM_TOLERANCE:
        problem = "The embedder gave vectors that are not of unit length."
    if problem:
        raise InputError(
            problem,
            next_step="Nothing was written; check the embedding model or endpoint.",
            code="embedding_invalid",
        )


def _rows(
    version_keys: Sequence[int],
    model_key: int,
    hashes: Sequence[str],
    vectors: NDArray[np.float32],
) -> NDArray[np.void]:
    """Binary COPY rows: all fields are of fixed size, so one structured array holds them."""
    import numpy as np

    dim = vectors.shape[1]
    fields = [
        *(("fields", ">i2"), ("l1", ">i4"), ("version_key", ">i8"), ("l2", ">i4")),
        *(("model_key", ">i4"), ("l3", ">i4"), ("embed_hash", "S64"), ("l4", ">i4")),
        *(("carried", "i1"), ("l5", ">i4"), ("dim", ">i2"), ("unused", ">i2")),
    ]
    layout = np.dtype([*fields, ("vec", ">f2", (dim,))])
    rows = np.zeros(len(hashes), layout)
    rows["fields"], rows["l1"], rows["l2"], rows["l3"], rows["l4"] = 5, 8, 4, 64, 1
    rows["l5"] = 4 + 2 * dim
    rows["version_key"], rows["model_key"], rows["dim"] = version_keys, model_key, dim
    rows["embed_hash"] = [embed_hash.encode() for embed_hash in hashes]
    rows["vec"] = vectors
    return rows
