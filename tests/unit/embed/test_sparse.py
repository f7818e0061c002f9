"""From token weights to a sparse vector."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.embed.sparse import sparse_vector
from kb_resources.errors import IntegrityError

TOKENS = st.lists(
    st.tuples(st.integers(0, 49), st.floats(-1, 3, width=32).map(float)), min_size=1, max_size=80
)


@given(TOKENS, st.integers(1, 30))
def test_each_token_keeps_its_largest_weight_and_the_heaviest_stay(
    tokens: list[tuple[int, float]], most: int
) -> None:
    ids = np.array([at for at, _ in tokens], np.int64)
    weights = np.array([weight for _, weight in tokens], np.float32)
    vector = sparse_vector(ids, weights, dimensions=50, ignored={0, 1, 2, 3}, max_terms=most)
    expected: dict[int, float] = {}
    for at, weight in zip(ids.tolist(), weights.tolist(), strict=True):
        if at > 3 and weight > 0:
            expected[at] = max(weight, expected.get(at, 0.0))
    kept = sorted(sorted(expected, key=lambda at: (-expected[at], at))[:most])
    assert vector.ids.tolist() == kept
    assert vector.weights.tolist() == [expected[at] for at in kept]


def test_it_is_written_as_pgvector_reads_it() -> None:
    ids, weights = np.array([0, 7, 5, 7]), np.array([9, 0.25, 1.5, 0.125], np.float32)
    vector = sparse_vector(ids, weights, dimensions=10, ignored={0})
    assert str(vector) == "{6:1.5,8:0.25}/10"
    assert vector.dot(vector) == pytest.approx(1.5**2 + 0.25**2)


def test_a_text_without_weights_has_an_empty_vector() -> None:
    vector = sparse_vector(np.array([0, 5]), np.zeros(2, np.float32), dimensions=10, ignored={0})
    assert str(vector) == "{}/10"


@pytest.mark.parametrize("wrong", [[1.0, float("nan")], [1.0, float("inf")], [1.0]])
def test_weights_that_are_not_one_finite_number_a_token_are_refused(wrong: list[float]) -> None:
    with pytest.raises(IntegrityError):
        sparse_vector(np.array([4, 5]), np.array(wrong, np.float32), dimensions=10, ignored=())


def test_a_token_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(IntegrityError):
        sparse_vector(np.array([10]), np.ones(1, np.float32), dimensions=10, ignored=())
