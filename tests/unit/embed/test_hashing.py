"""The embedder without a model."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.embed.hashing import HashingEmbedder

# Digests of the vectors' bytes at 64 dimensions, written down on one machine: another machine,
# Python or NumPy must give the same.
GOLDEN = {
    "Срок отпуска: 28 дней": "b218aa4bb74cae7066a84bb9f0242103",
    "Die Rechnung INV-2024/0815 ist fällig.": "2d6786456adb6499a17b60e9b06a3eb4",
    "!?": "59c3522d35cff143b094abde9203e9c4",
}


@pytest.mark.requirement("O-38")
@pytest.mark.parametrize("text", GOLDEN)
def test_vectors_are_the_same_on_every_machine(text: str) -> None:
    vector = HashingEmbedder(64).embed([text], "passage")[0]
    assert hashlib.sha256(vector.astype("<f4").tobytes()).hexdigest()[:32] == GOLDEN[text]


@given(st.text(min_size=1).filter(lambda t: not t.isspace()), st.sampled_from([1, 2, 64, 512]))
def test_every_text_has_a_finite_unit_vector(text: str, dimensions: int) -> None:
    vector = HashingEmbedder(dimensions).embed([text], "query")[0]
    assert vector.dtype == np.float32
    assert abs(float(np.linalg.norm(vector)) - 1) < 1e-5


def test_shared_words_and_word_parts_bring_texts_together() -> None:
    embedder = HashingEmbedder()
    near, related, far = embedder.embed(
        ["annual leave request", "requesting annual leaves", "der Drucker ist kaputt"], "passage"
    )
    query = embedder.embed(["Annual leave request"], "query")[0]
    assert query @ near > 0.99
    assert query @ near > query @ related > query @ far + 0.2


def test_version_and_length_are_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    first = HashingEmbedder(64).model_id
    assert first != HashingEmbedder(65).model_id
    monkeypatch.setattr("kb_resources.embed.hashing.VERSION", 2)
    assert first != HashingEmbedder(64).model_id


def test_it_counts_words() -> None:
    embedder = HashingEmbedder()
    text = "Два слова, and three."
    assert embedder.count([text]) == [4]
    assert [text[a:b] for a, b in embedder.offsets(text)] == ["Два", "слова", "and", "three"]
