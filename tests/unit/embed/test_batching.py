"""Batches of equal length."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kb_resources.embed.batching import plan_batches

LENGTHS = st.lists(st.integers(1, 600), max_size=200)


@given(LENGTHS, st.integers(1, 1024))
def test_every_input_is_in_exactly_one_batch(lengths: list[int], budget: int) -> None:
    placed = [at for batch in plan_batches(lengths, budget) for at in batch]
    assert sorted(placed) == list(range(len(lengths)))


@given(LENGTHS, st.integers(1, 1024))
def test_a_batch_holds_one_length_and_keeps_the_budget(lengths: list[int], budget: int) -> None:
    for batch in plan_batches(lengths, budget):
        assert len({lengths[at] for at in batch}) == 1
        assert len(batch) == 1 or sum(lengths[at] for at in batch) <= budget


@given(LENGTHS)
def test_no_batch_could_take_in_another_of_its_length(lengths: list[int]) -> None:
    sizes: dict[int, list[int]] = {}
    for batch in plan_batches(lengths, 512):
        sizes.setdefault(lengths[batch[0]], []).append(len(batch))
    for length, found in sizes.items():
        assert sorted(found, reverse=True)[:-1] == [max(1, 512 // length)] * (len(found) - 1)
