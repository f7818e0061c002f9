"""What holds for every chunk of every document, over random documents in eight languages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from kb_resources.chunk import ChunkOptions, EstimateCounter, TokenCounter, chunk_document, preset
from kb_resources.model.chunk import embedding_input

SENTENCES = (
    "Employees may carry five days of leave over to March of the next year.",
    "See Art. 5 (1) lit. a and No. 12 of the schedule; the limit is 1,250.50 EUR per trip.",
    "Nach § 4 Abs. 2 Nr. 3 besteht z. B. Anspruch auf 30 Tage Urlaub.",
    "Die Reisekostenabrechnung ist bis zum 5. Oktober einzureichen (vgl. Anlage 2).",
    "Съгласно чл. 155, ал. 4 от Кодекса на труда т. нар. основен отпуск е 20 дни.",
    "Паролата се сменя на всеки 90 дни, а достъпът се спира след 5 опита.",
    "Согласно ст. 115 ч. 1 отпуск составляет 28 календарных дней, т. е. четыре недели.",
    "Годишњи одмор траје најмање 20 радних дана, види чл. 68. ст. 1. закона.",
    "Zaposleni prijavljuje nezgodu u roku od 24 časa, npr. telefonom ili e-poštom.",
    "Вработениот има право на 20 дена годишен одмор според чл. 137 ст. 1.",
    "Radnik ima pravo na najmanje četiri tjedna odmora, npr. u srpnju itd.",
    "Delavec ima po 159. členu ZDR-1 pravo do najmanj 4 tednov dopusta.",
    "Order INV-2024/0815 ships part LB-4711-B within 48 hours!",
    "Does the rule apply? It does…",
    "👩‍👩‍👧‍👦 family tickets cost 12 €; e\u0301te\u0301 and न\u093fत\u093f stay whole.",
)
KINDS = ("paragraph", "list_item", "table", "code", "caption", "footnote", "figure_text")


@lru_cache(maxsize=1)
def subwords() -> TokenCounter:
    """A real subword tokenizer, trained here: byte-level, so that counts do not simply add up."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)

    class Counter:
        overhead = 5

        def count(self, texts: Sequence[str]) -> list[int]:
            return [len(e.ids) for e in tokenizer.encode_batch(list(texts))]

    return Counter()


class Contrary:
    """Counts whole texts higher than the sum of their parts, as no estimate can foresee."""

    overhead = 2

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) // 5 + (len(text) // 40) ** 2 // 30 for text in texts]


COUNTERS = {"estimate": EstimateCounter, "subwords": subwords, "contrary": Contrary}


def prose(draw: st.DrawFn) -> str:
    first = draw(st.integers(0, len(SENTENCES) - 1))
    count = draw(st.sampled_from((1, 1, 2, 3, 8, 40)))
    glue = draw(st.sampled_from((" ", " ", "  ", "\n")))
    text = glue.join(SENTENCES[(first + 7 * i) % len(SENTENCES)] for i in range(count))
    return draw(st.sampled_from((text, text, text + ":", text.replace(" ", ""))))


def table(draw: st.DrawFn) -> str:
    columns, rows = draw(st.sampled_from((1, 2, 3, 40))), draw(st.sampled_from((0, 1, 4, 40)))
    words = SENTENCES[draw(st.integers(0, len(SENTENCES) - 1))].replace("|", "").split()
    head = [words[i % len(words)] for i in range(columns)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * columns]
    for row in range(rows):
        cells = [f"{words[(row + i) % len(words)]} {row}.{i} a\\|b" for i in range(columns)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines[draw(st.sampled_from((0, 0, 0, 2))) :]) or "| x |"


def code(draw: st.DrawFn) -> str:
    lines = draw(st.sampled_from((1, 3, 60)))
    body = "\n".join(f"# not a heading {i}\nset limit {i} = {i * 7};\n" for i in range(lines))
    return f"~~~\n{body}~~~"


@st.composite
def documents(draw: st.DrawFn) -> list[dict[str, object]]:
    """Blocks for `build`: sections, pages and locators that change independently."""
    paged = draw(st.booleans())
    page, locator = 1, None
    specs: list[dict[str, object]] = []
    for _ in range(draw(st.integers(0, 14))):
        if paged and draw(st.integers(0, 4)) == 0:
            page += draw(st.integers(1, 2))
        if draw(st.integers(0, 5)) == 0:
            locator = draw(st.sampled_from((None, "§ 4", "§ 5", "Sheet Rates, A1:D9")))
        place = {"page": page if paged else None, "locator": locator}
        if draw(st.integers(0, 3)) == 0:
            text = draw(st.sampled_from(("Leave", "Отпуск", "Urlaub " * 40, "Limits > fees")))
            specs.append(
                {"kind": "heading", "text": text, "level": draw(st.integers(1, 4))} | place
            )
            continue
        kind = draw(st.sampled_from(KINDS))
        if draw(st.integers(0, 9)) == 0:
            text = draw(st.text(min_size=1, max_size=60)) * draw(st.sampled_from((1, 30)))
            text = text.encode("utf-8", "ignore").decode() or "x"
        else:
            text = {"table": table, "code": code}.get(kind, prose)(draw)
        if kind == "list_item":
            text = draw(st.sampled_from(("- ", "  - "))) + text
        specs.append({"kind": kind, "text": text} | place)
    return specs


OPTIONS = st.one_of(
    st.builds(
        ChunkOptions,
        strategy=st.sampled_from(("hierarchical", "sentence", "flat")),
        max_tokens=st.sampled_from((50, 120, 400)),
        size_chars=st.sampled_from((200, 2000)),
        overlap_tokens=st.sampled_from((0, 0, 0, 15)),
    )
)


def assert_sound(document, chunks, options, counter) -> None:
    """Every invariant of a version's chunks."""
    body, data = document.body, document.body.encode()
    inputs = [embedding_input(chunk.context, chunk.text) for chunk in chunks]
    assert [c.token_count - counter.overhead for c in chunks] == counter.count(inputs)
    assert all(chunk.token_count <= options.max_tokens for chunk in chunks)
    assert len({chunk.passage_id for chunk in chunks}) == len(chunks)
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    covered = 0
    for chunk in chunks:
        assert data[chunk.byte_start : chunk.byte_end].decode() == chunk.text
        page = document.page_text(chunk.page)
        assert page[chunk.char_start : chunk.char_end] == chunk.text
        assert chunk.text.strip()
        if options.overlap_tokens:
            repeated = data[chunk.byte_start : max(covered, chunk.byte_start)].decode()
            words = repeated.split()
            assert sum(counter.count(words)) <= options.overlap_tokens + len(words)
        else:
            assert chunk.byte_start >= covered
        assert_blank(data[covered : chunk.byte_start].decode())
        assert_one_place(document, chunk, options)
        covered = chunk.byte_end
    assert_blank(data[covered:].decode())
    assert body.encode() == data


def assert_blank(text: str) -> None:
    """Only what nobody sees may stand between chunks."""
    assert not any(char.isalnum() or char in "|#-~.,;:!?€" for char in text), text


def assert_one_place(document, chunk, options) -> None:
    blocks = [
        b
        for b in document.blocks
        if b.byte_start < chunk.byte_end and b.byte_end > chunk.byte_start
    ]
    assert {b.page for b in blocks} == {chunk.page}
    assert {b.locator for b in blocks} == {chunk.locator}
    if options.strategy == "flat":
        return
    while len(blocks) > 1 and blocks[0].kind == "heading":
        opening = blocks.pop(0)
        path = blocks[0].heading_path
        assert path[: len(opening.heading_path)] == opening.heading_path
    path = blocks[-1].heading_path
    assert {b.heading_path for b in blocks} == {path}
    alone = blocks[-1].kind == "heading"  # a heading too long to share a chunk with its section
    assert chunk.heading_path[: len(path)] == path if alone else chunk.heading_path == path
    assert all(b.kind != "heading" for b in blocks[1:])


def check(build, specs, options, name) -> None:
    document = build(specs)
    counter = COUNTERS[name]()
    chunks = chunk_document(document, document_id="doc-1", counter=counter, options=options)
    assert_sound(document, chunks, options, counter)
    again = chunk_document(document, document_id="doc-1", counter=counter, options=options)
    assert again == chunks


@pytest.mark.requirement("O-02", "O-03", "O-04", "O-05", "O-07")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(specs=documents(), options=OPTIONS, name=st.sampled_from(sorted(COUNTERS)))
def test_every_chunk_is_a_sound_slice(build, specs, options, name) -> None:
    check(build, specs, options, name)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(20))
@settings(
    max_examples=500, deadline=None, derandomize=False, suppress_health_check=list(HealthCheck)
)
@given(specs=documents(), options=OPTIONS, name=st.sampled_from(sorted(COUNTERS)))
def test_every_chunk_is_a_sound_slice_in_ten_thousand_documents(
    build, part, specs, options, name
) -> None:
    """Five hundred in each part, drawn anew with every run."""
    check(build, specs, options, name)


@pytest.mark.requirement("W-41", "O-05")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(specs=documents(), other=OPTIONS)
def test_settings_changed_and_changed_back_give_the_first_result(build, specs, other) -> None:
    document, counter = build(specs), subwords()

    def chunks(options: ChunkOptions) -> object:
        return chunk_document(document, document_id="d", counter=counter, options=options)

    first = chunks(preset("hierarchical"))
    chunks(other)
    assert chunks(preset("hierarchical")) == first


@pytest.mark.requirement("O-05")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(specs=documents())
def test_without_overlap_no_two_chunks_share_a_byte(build, specs) -> None:
    document = build(specs)
    for name in ("hierarchical", "flat", "sentence"):
        chunks = chunk_document(
            document, document_id="d", counter=EstimateCounter(), options=preset(name)
        )
        ends = [0, *(chunk.byte_end for chunk in chunks)]
        assert all(c.byte_start >= end for c, end in zip(chunks, ends, strict=False))
