"""Editions and vectors that no knowledge store takes: refused by type, and nothing is written.

Numbers in brackets are those of the list of behaviours that the reference systems' own tests prove
(requirements, appendix B).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kb_resources.errors import InputError, PolicyError
from kb_resources.store.records import Limits, VectorSpace

from .conftest import DIM, LEAVE, START, Kept, edition, embedded, vector_of

pytestmark = pytest.mark.requirement("O-09")


@pytest.mark.requirement("B-29")
def test_a_document_of_too_many_chunks_is_refused_with_the_reason(kept: Kept) -> None:
    texts = [f"Line {n}." for n in range(101)]
    with pytest.raises(PolicyError, match="101 chunks; 100 are allowed") as caught:
        kept.put("long", *texts)
    assert caught.value.code == "too_many_chunks"
    assert "Divide" in caught.value.next_step
    assert kept.store.get("long", scope=kept.scope) is None
    assert Limits().chunks == 10_000


@pytest.mark.requirement("W-40", "O-07")
@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda c: replace(c[1], passage_id="other.x.y.0"), "of another document"),
        (lambda c: replace(c[1], ordinal=7), "is number 7"),
        (lambda c: replace(c[1], text="Something else."), "no slice of the body"),
        (lambda c: replace(c[1], byte_start=c[1].byte_start + 1), "no slice of the body"),
        (lambda c: replace(c[0], ordinal=1), "repeats the id"),
        (lambda c: replace(c[1], content_hash="0" * 64), "content hash"),
        (lambda c: replace(c[1], embed_hash="0" * 64), "embed hash"),
        (lambda c: replace(c[1], context="Forged"), "embed hash"),
    ],
)
def test_chunks_that_contradict_their_document_are_refused_before_a_write(
    kept: Kept, spoil, match: str
) -> None:
    """[71] Mixed documents are refused."""
    good = edition("leave", *LEAVE)
    bad = replace(good, chunks=(good.chunks[0], spoil(good.chunks)))
    with pytest.raises(PolicyError, match=match) as caught:
        kept.store.put(bad, scope=kept.scope)
    assert caught.value.code == "chunk_invalid"
    assert kept.store.count(scope=kept.scope) == (0, 0)


def test_an_edition_without_chunks_is_refused(kept: Kept) -> None:
    with pytest.raises(PolicyError, match="no chunk"):
        kept.store.put(replace(edition("leave", *LEAVE), chunks=()), scope=kept.scope)


@pytest.mark.parametrize(
    "values",
    [
        {"digest": "ABC"},
        {"valid_from": START.replace(tzinfo=None)},
        {"audiences": ("two words",)},
        {"title": "nul \0"},
    ],
)
def test_malformed_editions_are_refused(kept: Kept, values: dict[str, object]) -> None:
    with pytest.raises(InputError):
        kept.put("leave", *LEAVE, **values)
    assert kept.store.count(scope=kept.scope) == (0, 0)


@pytest.mark.requirement("W-16", "B-17")
@pytest.mark.parametrize(
    "spoilt",
    [
        np.ones(DIM, np.float32),
        np.full(DIM, np.nan, np.float32),
        np.zeros(DIM, np.float32),
        vector_of("x")[:-1],
        np.stack([vector_of("x")]),
        np.array([], np.float32),
    ],
    ids=["not unit", "nan", "zero", "short", "matrix", "empty"],
)
def test_bad_vectors_are_refused_everywhere_and_nothing_is_written(
    kept: Kept, spoilt: np.ndarray
) -> None:
    """[12]"""
    good = edition("leave", *LEAVE, vectors=False)
    bad = {good.chunks[0].embed_hash: spoilt}
    for call in (
        lambda: kept.store.search(vector=spoilt, scope=kept.scope),
        lambda: kept.store.put(replace(good, vectors=bad), scope=kept.scope),
    ):
        with pytest.raises(InputError):
            call()
    assert kept.store.count(scope=kept.scope) == (0, 0)
    kept.store.put(good, scope=kept.scope)
    mixed = bad | {good.chunks[1].embed_hash: embedded(good.chunks[1])}
    with pytest.raises(InputError) as caught:
        kept.store.add_vectors("leave", mixed, scope=kept.scope)
    assert caught.value.code == "embedding_invalid"
    assert kept.store.work("leave", scope=kept.scope).waiting == 2


@pytest.mark.requirement("W-13", "W-16", "B-06")
@pytest.mark.parametrize("dimensions", [0, -1, 1.5, 4001, True, "8"])
def test_a_space_needs_a_whole_positive_number_of_dimensions(dimensions: object) -> None:
    """[61]"""
    with pytest.raises(InputError, match="dimensions"):
        VectorSpace("tiny@1", dimensions)  # type: ignore[arg-type]
