"""Packing on bare numbers, options, the flat strategy and counters."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.chunk import (
    PRESETS,
    ChunkOptions,
    EstimateCounter,
    chunk_document,
    preset,
)
from kb_resources.chunk.counting import sparing
from kb_resources.chunk.flat import flat_cuts
from kb_resources.chunk.packing import anchors, pack
from kb_resources.errors import InputError

SIZES = st.lists(st.integers(0, 120), max_size=60)


@given(sizes=SIZES, preferred=st.sets(st.integers(0, 60)))
def test_groups_keep_the_budget_unless_one_item_alone_is_over(sizes, preferred) -> None:
    starts = pack(sizes, 100, preferred)
    assert starts == sorted(set(starts))
    assert starts[:1] == ([0] if sizes else [])
    for a, b in pairwise([*starts, len(sizes)]):
        assert b > a
        assert sum(sizes[a:b]) <= 100 or b == a + 1


@given(sizes=st.lists(st.integers(1, 100), min_size=1, max_size=60))
def test_without_preferences_no_two_neighbours_would_fit_together_but_the_last(sizes) -> None:
    starts = pack(sizes, 100)
    groups = [sum(sizes[a:b]) for a, b in pairwise([*starts, len(sizes)])]
    for left, right in pairwise(groups[:-1]):
        assert left + right > 100


def test_a_small_last_group_shares_evenly_with_the_one_before() -> None:
    assert pack([10] * 11, 100) == [0, 5]
    assert pack([10] * 14, 100) == [0, 10]


def test_a_preferred_item_opens_a_group_that_is_a_quarter_full() -> None:
    assert pack([10, 10, 10, 10, 90], 100, {1, 3}) == [0, 3]


def test_anchors_are_set_in_long_runs_only() -> None:
    body = "".join(f"paragraph {number:5d};" for number in range(600))
    spans = [(16 * n, 16 * n + 16) for n in range(600)]
    assert anchors(body, spans[:80], [10] * 80, 100) == set()
    assert 15 <= len(anchors(body, spans, [10] * 600, 100)) <= 75


@pytest.mark.requirement("B-10", "W-12")
@pytest.mark.parametrize(
    "values",
    [
        {"max_tokens": 49},
        {"max_tokens": 0},
        {"size_chars": 0},
        {"size_chars": -5},
        {"overlap_tokens": -1},
        {"overlap_tokens": 200},
        {"overlap_tokens": 400},
        {"strategy": "semantic"},
    ],
)
def test_bad_sizes_and_overlaps_are_refused(values) -> None:
    with pytest.raises(InputError):
        ChunkOptions(**values)


@pytest.mark.requirement("W-12")
def test_presets_have_names_and_take_changes() -> None:
    assert set(PRESETS) == {"hierarchical", "flat", "sentence"}
    assert preset("hierarchical") == ChunkOptions()
    assert preset("flat", size_chars=900).size_chars == 900
    assert preset("sentence", max_tokens=120, overlap_tokens=12).strategy == "sentence"
    with pytest.raises(InputError, match="hierarchical"):
        preset("semantic")


@pytest.mark.requirement("B-10")
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("a" * 60 + "\n\n" + "b" * 20 + "\n" + "c. " * 9 + "d" * 99, "a" * 60 + "\n\n"),
        ("a" * 60 + "\n" + "b" * 10 + ". C c c" + "d" * 99, "a" * 60 + "\n"),
        ("a" * 60 + "\r\n\r\n" + "b" * 99, "a" * 60 + "\r\n\r\n"),
        ("A a" * 20 + ". Bb bbb bbbb" + "d" * 99, "A a" * 20 + ". "),
        ("a" * 60 + " " + "b" * 99, "a" * 60 + " "),
        ("a\n\n" + "b" * 199, "a\n\n" + "b" * 97),
        ("a" * 99 + "e\u0301" + "b" * 99, "a" * 99 + "e\u0301"),
        ("a" * 99 + "\r\n" + "b" * 99, "a" * 99 + "\r\n"),
    ],
)
def test_flat_cuts_prefer_paragraph_line_sentence_word_in_the_second_half(text, first) -> None:
    cut = flat_cuts(text, 0, len(text), 100)[0]
    assert text[:cut] == first


@given(text=st.text(alphabet="ab. \n\r\u0301", max_size=900), size=st.integers(2, 200))
def test_flat_pieces_are_no_longer_than_asked_but_for_a_whole_grapheme(text, size) -> None:
    bounds = [0, *flat_cuts(text, 0, len(text), size), len(text)]
    assert bounds == sorted(bounds)
    for a, b in pairwise(bounds):
        assert b - a <= size + 257


@pytest.mark.requirement("B-10")
def test_the_flat_preset_crosses_sections_but_no_page(build) -> None:
    specs = []
    for page in (1, 2):
        for number in range(4):
            text = f"Section {page}.{number}"
            specs.append({"kind": "heading", "text": text, "level": 2, "page": page})
            specs.append({"text": "Some words about it. " * 5, "page": page})
    chunks = chunk_document(
        build(specs), document_id="d", counter=EstimateCounter(), options=preset("flat")
    )
    assert [chunk.page for chunk in chunks] == [1, 2]
    assert all(chunk.text.count("## Section") == 4 for chunk in chunks)
    assert all(chunk.heading_path == () for chunk in chunks)


def test_the_sentence_preset_fills_chunks_across_paragraphs(build) -> None:
    text = "One sentence of a certain length stands here. " * 20
    document = build([{"text": text.strip()} for _ in range(6)])

    def chunks(name: str):
        return chunk_document(
            document, document_id="d", counter=EstimateCounter(), options=preset(name)
        )

    assert len(chunks("sentence")) < len(chunks("hierarchical"))
    assert all(chunk.text.rstrip().endswith(".") for chunk in chunks("sentence"))


def test_a_counter_whose_lines_add_up_is_asked_once_for_each_line(build) -> None:
    class Words:
        overhead = 3
        adds_up = True
        seen: ClassVar[list[str]] = []

        def count(self, texts):
            self.seen.extend(texts)
            return [len(text.split()) for text in texts]

    class Again(Words):
        adds_up = False

    document = build([{"text": f"Paragraph {n} says a few words."} for n in range(300)])
    once = chunk_document(document, document_id="d", counter=Words())
    lines = [text for text in Words.seen if text.startswith("Paragraph")]
    assert len(lines) == len(set(lines)) == 300
    assert once == chunk_document(document, document_id="d", counter=Again())
    assert sparing(Words()).count(["a b\nc", "", "\n"]) == [3, 0, 0]
