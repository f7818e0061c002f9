"""Vectors of every size that a model may have; what half precision costs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from kb_resources.errors import InputError
from kb_resources.store import ann, vectors
from kb_resources.store.pool import Database
from kb_resources.store.records import VectorSpace
from kb_resources.store.search import SearchQuery, run

from .conftest import START, TinyEmbedder, World


class Sized(TinyEmbedder):
    """The tiny embedder's vectors, repeated to another length."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.dimensions = dimensions
        self.model_id = f"sized-{dimensions}@1"

    def embed(self, texts: object, kind: str) -> NDArray[np.float32]:
        found = np.resize(super().embed(texts, kind).T, (self.dimensions, len(texts))).T  # type: ignore[arg-type]
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.requirement("O-32", "O-28")
@pytest.mark.parametrize("dimensions", [384, 1024, 2001, 4000])
def test_vectors_of_any_size_are_kept_indexed_and_found(world: World, dimensions: int) -> None:
    embedder = world.embedder = Sized(dimensions)
    row, chunks = world.stage(
        "leave",
        ["thirty days of leave", "the office is closed", "a budget for travel"],
        audiences=["group-with-a-long-name", "and-another-one"],
    )
    with world.pipeline() as conn:
        key = vectors.ensure_model(conn, embedder.model_id, dimensions)
        hashes = vectors.stage_known(conn, row.version_key or 0, key)
        made = embedder.embed([chunk.text for chunk in chunks], "passage")
        vectors.stage_vectors(conn, row.version_key or 0, key, hashes, made)
    world.put(row, chunks)
    name = f"embedding_ann_{key}_{world.scope_id}"
    change = ann.IndexChange("create", name, key, world.scope_id, dimensions, 3)
    with world.database.owner_session() as conn:
        ann.apply(conn, change)
    with world.pipeline() as conn:
        assert conn.execute("select kb.has_ann(%s, %s)", [key, world.scope_id]).fetchone() == (
            True,
        )
        found = run(
            conn,
            SearchQuery(
                scope_ids=[world.scope_id],
                lexemes={},
                vector=embedder.embed(["office closed"], "query")[0],
                model_key=key,
                audiences=None,
                as_of=START,
                historical=False,
                k=3,
                candidates=3,
            ),
        )
    assert found[0]["text"] == "the office is closed"
    with world.database.owner_session() as conn:
        ann.apply(conn, ann.IndexChange("drop", name))


@pytest.mark.requirement("O-32")
def test_more_dimensions_than_an_index_can_hold_are_refused(world: World) -> None:
    with pytest.raises(InputError, match="whole number from 1 to 4000"):
        VectorSpace("too-long@1", 4001)
    with pytest.raises(InputError) as caught, world.pipeline() as conn:
        vectors.ensure_model(conn, "too-long@1", 4001)
    assert "4,000" in str(caught.value)


@pytest.mark.requirement("W-42")
def test_half_precision_costs_no_recall(
    shared_database: Database, record_property: pytest.RecordProperty
) -> None:
    """Vectors as crowded as those of e5, whose cosines lie between .7 and .9."""
    chance = np.random.default_rng(11)
    centre = chance.normal(size=384)
    given = 1.6 * centre / np.linalg.norm(centre) + chance.normal(size=(3100, 384)) / 384**0.5
    given = (given / np.linalg.norm(given, axis=1, keepdims=True)).astype(np.float32)
    held, asked = given[:3000], given[3000:]
    cosines = asked @ held.T
    assert 0.6 < float(cosines.mean()) < 0.9
    exact = np.argsort(-cosines, axis=1, kind="stable")[:, :10]
    with shared_database.transaction("owner") as conn:
        conn.execute("create temporary table half (id int, vec halfvec(384)) on commit drop")
        with conn.cursor() as cursor, cursor.copy("copy half from stdin") as copy:
            for number, vector in enumerate(held):
                copy.write_row((number, "[" + ",".join(f"{x:.9g}" for x in vector) + "]"))
        found = [
            [
                row[0]
                for row in conn.execute(
                    "select id from half order by vec <#> %s::halfvec limit 10",
                    ["[" + ",".join(f"{x:.6g}" for x in vector) + "]"],
                ).fetchall()
            ]
            for vector in asked
        ]
    shares = [len(set(a) & set(b)) / 10 for a, b in zip(exact.tolist(), found, strict=True)]
    recall = sum(shares) / len(shares)
    record_property("recall_at_10", recall)
    assert recall >= 0.99
