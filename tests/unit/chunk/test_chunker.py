"""What the chunker keeps together, where it cuts, and what it puts in the context."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kb_resources.chunk import (
    ChunkOptions,
    EstimateCounter,
    chunk_document,
    counting_warning,
    preset,
)
from kb_resources.errors import InputError, IntegrityError
from kb_resources.model import Block, ParsedDocument

SENTENCE = "Every employee signs for the keys that they were handed. "


def chunks_of(document, options=None, document_id="doc-1"):
    return chunk_document(
        document, document_id=document_id, counter=EstimateCounter(), options=options
    )


def heading(text: str, level: int = 2, **place) -> dict[str, object]:
    return {"kind": "heading", "text": text, "level": level} | place


def test_short_paragraphs_of_a_section_share_a_chunk_with_its_heading(build) -> None:
    document = build([heading("Leave"), {"text": "Thirty days."}, {"text": "Five carry over."}])
    (chunk,) = chunks_of(document)
    assert chunk.text == "## Leave\n\nThirty days.\n\nFive carry over."
    assert chunk.context == "Handbook > Leave"


def test_a_new_section_begins_a_new_chunk_even_under_the_same_heading(build) -> None:
    document = build([heading("Notes"), {"text": "One."}, heading("Notes"), {"text": "Two."}])
    assert [c.text for c in chunks_of(document)] == ["## Notes\n\nOne.", "## Notes\n\nTwo."]


def test_a_chapter_title_without_content_goes_with_its_first_section(build) -> None:
    document = build([heading("Chapter I", 1), heading("Article 1"), {"text": "Scope."}])
    (chunk,) = chunks_of(document)
    assert chunk.text.startswith("# Chapter I\n\n## Article 1\n\nScope.")
    assert chunk.heading_path == ("Chapter I", "Article 1")


def test_a_heading_is_not_left_behind_by_a_long_paragraph(build) -> None:
    document = build([heading("Keys"), {"text": (SENTENCE * 28).strip()}])
    first, second = chunks_of(document)
    assert first.text.startswith("## Keys\n\nEvery employee")
    assert second.text.startswith("Every employee")


def test_two_sections_never_share_a_chunk_across_a_locator(build) -> None:
    document = build(
        [{"text": "First.", "locator": "§ 1", "path": ()}, {"text": "Second.", "locator": "§ 2"}]
    )
    assert [c.locator for c in chunks_of(document)] == ["§ 1", "§ 2"]


@pytest.mark.requirement("O-04")
def test_pieces_of_an_over_long_paragraph_end_at_sentences_and_give_it_back(build) -> None:
    text = (SENTENCE * 120).strip()
    chunks = chunks_of(build([{"text": text}]))
    assert len(chunks) > 3
    assert "".join(chunk.text for chunk in chunks) == text
    assert all(chunk.text.rstrip().endswith(".") for chunk in chunks)


@pytest.mark.requirement("O-04")
def test_one_endless_sentence_is_cut_at_spaces(build) -> None:
    text = "word " * 3000 + "end"
    chunks = chunks_of(build([{"text": text}]))
    assert "".join(chunk.text for chunk in chunks) == text
    assert all(chunk.text.endswith((" ", "end")) for chunk in chunks)


@pytest.mark.requirement("O-04")
@pytest.mark.parametrize("unit", ["a", "я"])
def test_a_megabyte_of_one_word_is_done_in_a_second(build, unit, cpu_seconds) -> None:
    document = build([{"text": unit * 1_000_000}])
    with cpu_seconds() as spent:
        chunks = chunks_of(document)
    assert "".join(chunk.text for chunk in chunks) == document.body
    assert spent() < 2.5  # .2 to .4 on an idle machine, .5 to .8 beside other work


@pytest.mark.requirement("O-04")
@pytest.mark.parametrize(
    "unit", ["語", "e\u0301", "👩‍👩‍👧‍👦", "🇩🇪", "\u0301", ". ", "a. ", "1.", "|", "( ", "\n"]
)
def test_text_without_a_good_place_to_cut_takes_linear_time(build, unit, cpu_seconds) -> None:
    text = "x" + (unit * 200_000)[:200_000] + "x"
    document = build([{"text": text}])
    with cpu_seconds() as spent:
        chunks = chunks_of(document)
    assert "".join(chunk.text for chunk in chunks).split() == text.split()
    assert spent() < 4  # .1 to .3 on an idle machine; quadratic work takes minutes


@pytest.mark.requirement("O-04")
@pytest.mark.parametrize(
    "unit", ["e\u0301", "👩‍👩‍👧‍👦", "🇩🇪", "가", "\u1100\u1161\u11a8", "नि", "a\r\n"]
)
def test_no_cut_falls_inside_a_grapheme(build, unit) -> None:
    chunks = chunks_of(build([{"text": unit * 3000}]), ChunkOptions(max_tokens=50))
    assert len(chunks) > 1
    for chunk in chunks:
        assert len(chunk.text) % len(unit) == 0
        assert chunk.text.startswith(unit)


@pytest.mark.requirement("B-10")
def test_case_b23_a_fence_stays_in_its_section_and_its_comments_are_no_headings(build) -> None:
    fence = "~~~\n# not a heading\nmake demo\n~~~"
    document = build([heading("Start"), {"text": "Type this:"}, {"kind": "code", "text": fence}])
    for name in ("hierarchical", "sentence", "flat"):
        (chunk,) = chunks_of(document, preset(name))
        assert chunk.text.endswith(f"Type this:\n\n{fence}")
        assert chunk.heading_path == ("Start",)


def test_a_long_fence_is_cut_at_blank_lines(build) -> None:
    code = "```\n" + "\n".join(f"step {i}:\n  run --with-option {i}\n" for i in range(120)) + "```"
    chunks = chunks_of(build([{"kind": "code", "text": code}]))
    assert len(chunks) > 1
    assert "".join(chunk.text for chunk in chunks) == code
    assert all(chunk.text.endswith("\n\n") for chunk in chunks[:-1])


def test_a_list_that_fits_stays_whole_with_the_sentence_before_it(build) -> None:
    entries = [{"kind": "list_item", "text": f"- {SENTENCE.strip()}"} for _ in range(10)]
    document = build([{"text": SENTENCE * 18}, {"text": "You must:"}, *entries])
    first, second = chunks_of(document)
    assert first.text == SENTENCE * 18
    assert second.text.startswith("You must:\n\n- Every")
    assert second.text.count("\n- ") == 10


def test_pieces_of_a_long_list_keep_its_introduction_in_their_context(build) -> None:
    entries = [{"kind": "list_item", "text": f"- {SENTENCE.strip()}"} for _ in range(60)]
    chunks = chunks_of(build([{"text": "Before leaving you must:"}, *entries]))
    assert len(chunks) > 1
    assert chunks[0].text.startswith("Before leaving you must:")
    assert all(c.context.endswith("Before leaving you must:") for c in chunks[1:])
    assert {c.context for c in chunks_of(build([heading("Duties"), *entries]))} == {
        "Handbook > Duties"
    }


def test_nested_entries_stay_with_theirs(build) -> None:
    entries = []
    for number in range(40):
        entries.append({"kind": "list_item", "text": f"- {number} {SENTENCE.strip()}"})
        entries.append({"kind": "list_item", "text": f"  - detail of {number}"})
    chunks = chunks_of(build(entries))
    assert len(chunks) > 1
    assert all(chunk.text.startswith("- ") for chunk in chunks)


@pytest.mark.requirement("O-06", "P-14")
def test_the_breadcrumb_is_shortened_rather_than_the_limit_broken(build) -> None:
    long = "Regulation on the protection of natural persons " * 4
    document = build(
        [heading(long, 1), heading("Chapter III", 2), heading("Erasure", 3), {"text": SENTENCE}],
        title=long * 5 + "(consolidated)",
    )
    (chunk,) = chunks_of(document, ChunkOptions(max_tokens=300))
    assert chunk.token_count <= 300
    assert chunk.context.startswith("Regulation on the protection")
    assert chunk.context.endswith("Erasure")


def test_a_title_repeated_by_the_first_heading_appears_once(build) -> None:
    (chunk,) = chunks_of(build([heading("HANDBOOK of 2024", 1), {"text": "Text."}]))
    assert chunk.context == "HANDBOOK of 2024"


@pytest.mark.requirement("O-07")
def test_case_b10_paged_chunks_name_their_page_and_are_slices_without_the_breadcrumb(build) -> None:
    specs = []
    for page in range(1, 89):
        if page % 4 == 1:
            specs.append(heading(f"Part {page}", page=page))
        specs += [{"text": f"Page {page}. " + SENTENCE * 6, "page": page} for _ in range(3)]
    document = build(specs)
    chunks = chunks_of(document)
    assert {chunk.page for chunk in chunks} == set(range(1, 89))
    for chunk in chunks:
        page = document.page_text(chunk.page)
        assert page[chunk.char_start : chunk.char_end] == chunk.text
        assert chunk.context not in chunk.text
    assert all(b.byte_start >= a.byte_end for a, b in pairwise(chunks))


@pytest.mark.requirement("O-05")
def test_case_b21_offsets_of_repeated_words_point_at_their_own_copy(build) -> None:
    document = build([{"text": ("chunk " * 400).strip()}])
    for overlap in (0, 20):
        chunks = chunks_of(document, ChunkOptions(max_tokens=60, overlap_tokens=overlap))
        assert len(chunks) > 2
        starts = [chunk.char_start for chunk in chunks]
        assert starts == sorted(set(starts))
        for chunk in chunks:
            assert chunk.text == document.body[chunk.char_start : chunk.char_end]
            assert chunk.text.startswith("chunk")


@pytest.mark.requirement("O-05", "B-10")
def test_an_overlap_repeats_whole_words_of_the_same_section_only(build) -> None:
    specs = [heading("A"), {"text": SENTENCE * 80}, heading("B"), {"text": SENTENCE * 80}]
    chunks = chunks_of(build(specs), ChunkOptions(overlap_tokens=20))
    reach = [b.byte_start < a.byte_end for a, b in pairwise(chunks)]
    same = [a.heading_path == b.heading_path for a, b in pairwise(chunks)]
    assert reach == same
    assert any(reach)
    for before, chunk in pairwise(chunks):
        repeated = before.byte_end - chunk.byte_start
        assert repeated <= 80
        assert chunk.text[:1].isalpha() or chunk.text.startswith("#")


@pytest.mark.requirement("P-27")
def test_a_section_inserted_at_the_top_leaves_the_ids_below_alone(build) -> None:
    def law(extra: int) -> ParsedDocument:
        specs = [heading(f"New {n}") for n in range(extra)] + [{"text": SENTENCE * 9}] * extra
        for article in range(500):
            specs += [heading(f"Article {article}"), {"text": f"({article}) {SENTENCE * 12}"}]
        return build([heading("Act", 1), *specs])

    before = {c.passage_id for c in chunks_of(law(0))}
    after = {c.passage_id for c in chunks_of(law(1))}
    assert len(before) >= 500
    assert len(before & after) >= 0.98 * len(before)


@pytest.mark.requirement("P-27", "O-11")
@pytest.mark.parametrize("one_block", [False, True])
def test_a_paragraph_inserted_above_a_long_text_without_headings_moves_few_cuts(
    build, one_block
) -> None:
    paragraphs = [f"{n}. clause. " + SENTENCE * 10 for n in range(1200)]
    if one_block:
        paragraphs = [" ".join(paragraphs)]
    before = chunks_of(build([{"text": text} for text in paragraphs]))
    after = chunks_of(
        build([{"text": "New. " + SENTENCE * 10}, *({"text": t} for t in paragraphs)])
    )
    kept = {c.content_hash for c in before} & {c.content_hash for c in after}
    assert len(before) > 400
    assert len(after) - len(kept) <= 24


@pytest.mark.requirement("O-18", "P-27")
def test_ids_are_unique_name_their_document_and_refuse_what_is_none(build) -> None:
    document = build([heading("Same"), {"text": SENTENCE}] * 50)
    ids = [chunk.passage_id for chunk in chunks_of(document)]
    assert len(set(ids)) == 50
    assert all(passage.startswith("doc-1.") for passage in ids)
    for name in ("a@b", "a#1", "a%2", "../a", "a.b", "", "a\x00", "a|b"):
        with pytest.raises(InputError):
            chunks_of(document, document_id=name)


@pytest.mark.requirement("W-12")
def test_only_estimated_counts_come_with_a_warning() -> None:
    class Exact:
        overhead = 4

        def count(self, texts):
            return [len(text.split()) for text in texts]

    assert counting_warning(Exact()) is None
    assert "estimated" in (counting_warning(EstimateCounter()) or "")
    assert EstimateCounter().count(["", "a", "abcd", "abcde"]) == [0, 1, 1, 2]


def test_a_document_without_visible_text_gives_no_chunks(build) -> None:
    blank = [{"text": " \n\t"}, {"text": "\u200b\u00ad\ufeff"}]
    assert chunks_of(build([])) == ()
    assert chunks_of(build(blank)) == ()
    assert chunks_of(build(blank), preset("flat")) == ()


def test_blocks_that_contradict_the_body_are_refused() -> None:
    shifted = Block("paragraph", "Text.", 1, 6, 1, 6)
    moved = Block("paragraph", "Text.", 3, 8, 0, 5)
    for block in (shifted, moved):
        document = ParsedDocument("T", "text/plain", "Text. ", (block,))
        with pytest.raises(IntegrityError, match="lock"):
            chunks_of(document)


def test_a_counter_that_breaks_its_protocol_is_refused(build) -> None:
    class Broken:
        overhead = 0

        def count(self, texts):
            return [1] * (len(texts) + 1)

    with pytest.raises(IntegrityError):
        chunk_document(build([heading("A"), {"text": "B"}]), document_id="d", counter=Broken())


def test_an_overhead_that_leaves_no_room_is_refused(build) -> None:
    class Greedy(EstimateCounter):
        overhead = 300

    with pytest.raises(InputError, match="max_tokens"):
        chunk_document(build([{"text": "x"}]), document_id="d", counter=Greedy())


def test_the_counter_is_asked_a_few_times_however_long_the_document(build) -> None:
    class Counting(EstimateCounter):
        calls = 0

        def count(self, texts):
            Counting.calls += 1
            return super().count(texts)

    specs = []
    for number in range(300):
        specs += [heading(f"S{number}"), {"text": SENTENCE * 40}, {"text": "w" * 5000}]
    chunk_document(build(specs), document_id="d", counter=Counting())
    assert Counting.calls <= 12
