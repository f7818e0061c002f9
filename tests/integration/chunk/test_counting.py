"""Counting with the embedding model's own tokenizer: line by line is as good as whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb_resources import embed
from kb_resources.chunk import chunk_document
from kb_resources.chunk.counting import sparing
from kb_resources.embed.tokens import ModelTokenizer
from kb_resources.model import Block, ParsedDocument
from kb_resources.model.chunk import embedding_input

ROOT = Path(__file__).parents[3]
ODD = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("\n\n \t\u0301\u200b\u200d\u1161\u11a8\u3000ﬁ▁\x01\x85\u2028é한"),
    ),
    max_size=40,
)


@pytest.fixture(scope="session")
def counter() -> ModelTokenizer:
    folder = ROOT / ".kb" / "models"
    embed.prepare(folder, embed.DEFAULT_MODEL)
    return embed.load_token_counter(folder, embed.DEFAULT_MODEL)


@pytest.mark.requirement("O-02")
@settings(max_examples=300, deadline=None)
@given(texts=st.lists(ODD, min_size=1, max_size=4))
def test_a_text_has_as_many_tokens_as_its_lines(
    counter: ModelTokenizer, texts: Sequence[str]
) -> None:
    assert counter.adds_up
    assert sparing(counter).count(texts) == counter.count(texts)


@pytest.mark.requirement("O-02", "W-12")
def test_chunks_counted_line_by_line_are_those_counted_whole(counter: ModelTokenizer) -> None:
    lines = [
        f"{n}. Стандартни услови — § {n} Abs. 2 der Ordnung, itd. na 5.5 %." for n in range(400)
    ]
    body = "\n".join(lines)
    block = Block("paragraph", body, 0, len(body.encode()), 0, len(body))
    document = ParsedDocument("Ordnung", "text/plain", body, (block,))

    class Whole:
        overhead = counter.overhead

        def count(self, texts: Sequence[str]) -> list[int]:
            return counter.count(texts)

    chunks = chunk_document(document, document_id="d", counter=counter)
    assert chunks == chunk_document(document, document_id="d", counter=Whole())
    assert len(chunks) > 10
    inputs = [embedding_input(chunk.context, chunk.text) for chunk in chunks]
    exact = [count + counter.overhead for count in counter.count(inputs)]
    assert [chunk.token_count for chunk in chunks] == exact
    assert max(exact) <= 400
