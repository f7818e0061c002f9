"""The small tokenizer with the real vocabulary, against the library `tokenizers`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources import embed
from kb_resources.embed.tokens import HubSegmenter, ModelTokenizer

SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")
SAMPLES = [
    "Der Vertrag endet am 31.12.2024; die Kündigungsfrist beträgt drei Monate (§ 622 BGB).",
    "Zahtev se podnosi nadležnom organu – najkasnije do 15. u mesecu!",
    "Захтев се подноси надлежном органу, „најкасније“ до 15. у месецу.",
    "Съгласно чл. 12, ал. 3 работодателят дължи обезщетение.",
    "Vloga se odda v 8 dneh… INV-2024/0815, e-mail: a.b+c@example.org",
    "ﬁne ½ ² ™ № ℃ Ａ１ ﷺ ｶﾞ 한글 각 e\u0301 a\u0308\u0323 \u200bzero\u200dwidth\u00adsoft",
    "emoji 👩‍👩‍👧 🇸🇮 ❤️ \U0001f9d1🏽‍💻 and \ue000 private",
    "ไม่มีช่องว่าง 没有空格的中文文本 スペースのない日本語",
    "x" * 300 + " " + "шђч" * 90,
    "a\tb\nc\r\nd\x0be\x0cf\x85g\u2028h\u00a0i\u3000j",
]
TEXT = st.text(max_size=60) | st.lists(st.sampled_from(SAMPLES), max_size=2).map(" ".join)


@pytest.fixture(scope="session")
def counter(models_dir: Path) -> ModelTokenizer:
    return embed.load_token_counter(models_dir, embed.DEFAULT_MODEL)


@pytest.fixture(scope="session")
def library(models_dir: Path) -> HubSegmenter:
    return HubSegmenter(models_dir / embed.DEFAULT_MODEL / "tokenizer.json")


def _ids(counter: ModelTokenizer, text: str) -> list[int]:
    return counter._segmenter.ids([text])[0]


@pytest.mark.parametrize("text", SAMPLES)
def test_ids_and_offsets_are_those_of_the_library(
    counter: ModelTokenizer, library: HubSegmenter, text: str
) -> None:
    assert _ids(counter, text) == library.ids([text])[0]
    assert counter._segmenter.frame == library.frame


@given(TEXT)
def test_ids_of_any_text_are_those_of_the_library(
    counter: ModelTokenizer, library: HubSegmenter, text: str
) -> None:
    if not any(piece in text for piece in SPECIAL):
        assert _ids(counter, text) == library.ids([text])[0]


@given(st.lists(st.integers(4, 250_000), max_size=12))
def test_pieces_strung_together_are_segmented_like_the_library_does(
    counter: ModelTokenizer, library: HubSegmenter, places: list[int]
) -> None:
    pieces = counter._segmenter._vocabulary.pieces  # type: ignore[attr-defined]
    text = "".join(pieces[at % len(pieces)] for at in places).replace("▁", " ")
    assert _ids(counter, text) == library.ids([text])[0]


@given(TEXT, TEXT)
def test_counts_add_up(counter: ModelTokenizer, left: str, right: str) -> None:
    joined, first, second = counter.count([f"{left}\n{right}", left, right])
    assert joined == first + second


@given(TEXT.filter(lambda text: bool(text.strip())))
def test_overhead_and_count_are_what_the_model_reads(counter: ModelTokenizer, text: str) -> None:
    read = len(counter.encode([text], "passage").ids[0])
    assert read == min(counter.max_tokens, counter.count([text])[0] + counter.overhead)


@given(TEXT)
def test_text_up_to_a_tokens_end_has_that_many_tokens(counter: ModelTokenizer, text: str) -> None:
    spans = counter.offsets(text)
    assert len(spans) == counter.count([text])[0]
    for at, (start, end) in enumerate(spans):
        assert 0 <= start <= end <= len(text)
        assert at == 0 or spans[at - 1][0] <= start


@pytest.mark.parametrize("piece", SPECIAL)
def test_special_tokens_in_a_document_are_plain_text(counter: ModelTokenizer, piece: str) -> None:
    assert not {0, 1, 2, 250_001} & set(_ids(counter, f"before {piece} after {piece}{piece}"))
    framed = counter.encode([piece], "passage").ids[0]
    assert (framed[0], framed[-1]) == (0, 2)
    assert framed.count(0) == framed.count(2) == 1


@pytest.mark.data
def test_real_texts_have_the_ids_and_the_places_of_the_library(
    counter: ModelTokenizer, library: HubSegmenter, test_data: Path
) -> None:
    seen = 0
    for path in sorted((test_data / "data/retrieval").glob("*/corpus.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        texts: list[Any] = [json.loads(line)["text"] for line in lines[:: max(1, len(lines) // 25)]]
        assert counter._segmenter.ids(texts) == library.ids(texts), path.parent.name
        for text in texts[:5]:
            ours, theirs = counter.offsets(text), library.offsets(text)
            real = [at for at, (start, end) in enumerate(ours) if end > start]
            assert [ours[at] for at in real] == [theirs[at] for at in real], path.parent.name
        seen += len(texts)
    assert seen > 100
