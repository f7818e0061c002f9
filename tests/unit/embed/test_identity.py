"""Identities and streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.embed import ModelIdentity, embed_stream
from kb_resources.embed.hashing import HashingEmbedder
from kb_resources.embed.registry import known_models
from kb_resources.embed.sources import _fingerprint


@pytest.mark.requirement("O-36")
@pytest.mark.parametrize(
    "field", ["query_prefix", "passage_prefix", "dimensions", "max_tokens", "pooling"]
)
def test_changing_what_decides_vectors_changes_the_model_id(field: str) -> None:
    from dataclasses import replace

    spec = known_models()[0]
    changed = {"query_prefix": "Query: ", "passage_prefix": "", "pooling": "cls"}
    other = replace(spec, **{field: changed.get(field, 7)})
    assert _fingerprint(spec, weights="w") != _fingerprint(other, weights="w")
    assert _fingerprint(spec, weights="w") != _fingerprint(spec, weights="v")
    assert _fingerprint(spec, weights="w") == _fingerprint(spec, weights="w")


def test_the_model_id_names_model_and_fingerprint() -> None:
    identity = ModelIdentity("m", "0123", 3, 512, "q: ", "p: ")
    assert identity.model_id == "m@0123"
    assert identity.prefix("query") == "q: "
    assert identity.prefix("passage") == "p: "
    assert len(fields(identity)) == 6


TEXTS = st.lists(st.text("abc ", min_size=1, max_size=40).map(lambda t: f"w{t}"), max_size=60)


@given(TEXTS, st.integers(1, 10), st.integers(1, 200))
def test_a_stream_gives_every_vector_once_and_in_order(
    texts: list[str], window_texts: int, window_chars: int
) -> None:
    embedder = HashingEmbedder(32)
    blocks = list(
        embed_stream(
            embedder, iter(texts), "passage", window_texts=window_texts, window_chars=window_chars
        )
    )
    sizes = [len(block.embedded.vectors) for block in blocks]
    assert [block.start for block in blocks] == [sum(sizes[:at]) for at in range(len(sizes))]
    assert sum(sizes) == len(texts)
    assert all(size <= window_texts for size in sizes)
    if texts:
        joined = np.concatenate([block.embedded.vectors for block in blocks])
        np.testing.assert_array_equal(joined, embedder.embed(texts, "passage"))


def test_a_stream_reads_no_further_than_one_window_ahead() -> None:
    read = 0

    def source() -> Iterator[str]:
        nonlocal read
        while True:  # endless: reading it all would never return
            read += 1
            yield f"text {read}"

    stream = embed_stream(HashingEmbedder(16), source(), "passage", window_texts=8)
    for at in range(5):
        assert next(stream).start == 8 * at
        assert read <= 8 * (at + 1) + 1


@pytest.mark.requirement("B-14")
def test_a_stopped_stream_keeps_whole_windows_only() -> None:
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 20  # in the middle of the third window

    texts = [f"text {at}" for at in range(100)]
    blocks = list(
        embed_stream(HashingEmbedder(16), texts, "passage", window_texts=8, should_stop=stop)
    )
    assert [block.start for block in blocks] == [0, 8]
    assert all(len(block.embedded.vectors) == 8 for block in blocks)
