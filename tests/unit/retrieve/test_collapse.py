"""Near-duplicates among hits: folded, counted, never where a number differs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.retrieve import Hit, collapse

LONG = (
    "The landlord returns the deposit within the agreed time after the keys were handed over, "
    "less what is owed for damage, and gives the tenant a written account of every deduction made"
)


def hits(*texts: str) -> list[Hit]:
    return [
        Hit(
            rank=rank, scope="acme", document_id=f"d{rank}", version=1, digest="0" * 64,
            passage_id=f"p{rank}", title="T", heading_path=(), page=None, locator=None,
            byte_start=0, byte_end=1, char_start=0, char_end=1, language="en", valid_from=None,
            valid_until=None, source="s", media_type="text/plain", context="", text=text,
        )
        for rank, text in enumerate(texts, 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "folded"),
    [
        (LONG, LONG, 1),
        (LONG, LONG.upper() + ".", 1),
        (LONG, LONG.replace("written", "signed"), 1),
        (LONG + " in 14 days", LONG + " in 30 days", 0),
        (LONG, "The tenant pays the rent on the first of each month by bank transfer", 0),
        ("Yes.", "No.", 0),
    ],
)
def test_what_says_the_same_is_folded(one: str, other: str, folded: int) -> None:
    found = collapse(hits(one, other))
    assert found.folded == folded
    assert len(found.hits) == 2 - folded


def test_the_best_ranked_stays_and_names_the_others() -> None:
    found = collapse(hits(LONG, "Something else entirely here", LONG, LONG + "."))
    assert [hit.rank for hit in found.hits] == [1, 2]
    assert [[hit.rank for hit in others] for others in found.others] == [[3, 4], []]


@given(st.lists(st.sampled_from([LONG, LONG + " 5", "a b c", "", "…", "a b c d"]), max_size=8))
def test_nothing_is_lost(texts: list[str]) -> None:
    found = collapse(hits(*texts))
    ranks = [hit.rank for hit in found.hits] + [hit.rank for group in found.others for hit in group]
    assert sorted(ranks) == list(range(1, len(texts) + 1))
    assert collapse(found.hits).folded == 0
