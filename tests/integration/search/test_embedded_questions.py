"""Questions embedded once and searched with again, and what a search without vectors says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from kb_resources.errors import InputError, NotFound, PolicyError, UnavailableError
from kb_resources.model import Principal
from kb_resources.retrieve import EmbeddedQuestion, Retriever, SearchResult

from .conftest import DIM, TinyEmbedder, World

WHO = Principal("test")


class Counting(TinyEmbedder):
    """Counts the texts that it embeds as questions."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def embed(self, texts: Sequence[str], kind: str) -> NDArray[np.float32]:
        self.asked += len(texts) if kind == "query" else 0
        return super().embed(texts, kind)


@pytest.fixture
def library(world: World) -> World:
    world.publish("a", ["leave is thirty days", "travel by train"])
    world.publish("b", ["sick leave", "the office budget"])
    return world


def ids(found: SearchResult) -> list[tuple[str, float]]:
    return [(hit.passage_id, hit.score) for hit in found.hits]


@pytest.mark.requirement("B-34", "W-34")
def test_a_question_is_embedded_once_for_any_number_of_searches(library: World) -> None:
    model = Counting()
    retriever = Retriever(library.database, embedder=lambda: model)
    question = retriever.embed("leave days", scope=library.scope, principal=WHO)
    assert (question.text, question.model_id, model.asked) == ("leave days", "tiny@1", 1)
    for mode in ("hybrid", "vector", "text"):
        for k in (1, 3):
            given = {"scope": library.scope, "principal": WHO, "mode": mode, "k": k}
            again = retriever.search(question, **given)
            assert again.mode == mode
            assert ids(again) == ids(library.search("leave days", mode=mode, k=k))
    assert model.asked == 1


@pytest.mark.requirement("W-34")
def test_a_vector_without_words_is_searched_by_meaning_and_refused_in_hybrid(
    library: World,
) -> None:
    retriever = library.retriever()
    whole = retriever.embed("leave days", scope=library.scope, principal=WHO)
    bare = EmbeddedQuestion("", whole.vector, whole.model_id)
    found = retriever.search(bare, scope=library.scope, principal=WHO, mode="vector")
    assert ids(found) == ids(library.search("leave days", mode="vector"))
    with pytest.raises(InputError) as refused:
        retriever.search(bare, scope=library.scope, principal=WHO)
    assert refused.value.code == "words_missing"


@pytest.mark.parametrize(
    "wrong",
    [
        {"model_id": "another@1"},
        {"vector": np.ones(DIM, np.float32)},
        {"vector": np.full((2, DIM), DIM**-0.5, np.float32)},
        {"vector": np.full(DIM, np.nan, np.float32)},
    ],
)
def test_a_vector_that_does_not_fit_is_refused(library: World, wrong: dict[str, object]) -> None:
    retriever = library.retriever()
    question = retriever.embed("leave", scope=library.scope, principal=WHO)
    with pytest.raises(InputError):
        retriever.search(
            replace(question, **wrong),  # type: ignore[arg-type]
            scope=library.scope,
            principal=WHO,
        )


def test_embedding_a_question_needs_its_scope_words_and_leave(library: World) -> None:
    retriever = library.retriever()
    with pytest.raises(InputError, match="blank"):
        retriever.embed(" \0 ", scope=library.scope, principal=WHO)
    stranger = Principal("test", scopes=frozenset({"other"}))
    with pytest.raises(NotFound):
        retriever.embed("leave", scope=library.scope, principal=stranger)
    closed = library.retriever(gate=lambda *_, **__: False)
    with pytest.raises(PolicyError):
        closed.embed("leave", scope=library.scope, principal=WHO)


@pytest.mark.requirement("W-19")
def test_meaning_that_cannot_be_searched_is_an_error_and_never_an_empty_list(
    world: World,
) -> None:
    bare = Retriever(world.database)
    world.publish("doc", ["alpha beta"], with_vectors=False)
    with_model = world.retriever()
    asked = {"scope": world.scope, "principal": WHO}
    for retriever in (bare, with_model):
        assert not retriever.supports_hybrid(scope=world.scope, principal=WHO)
        with pytest.raises(UnavailableError) as refused:
            retriever.search("alpha", mode="vector", **asked)
        assert refused.value.code == "no_vectors"
        found = retriever.search("alpha", **asked)
        assert (found.mode, len(found.hits)) == ("text", 1), "hybrid says what it did instead"
    world.publish("other", ["gamma"])
    assert with_model.supports_hybrid(scope=world.scope, principal=WHO)
    assert not bare.supports_hybrid(scope=world.scope, principal=WHO)
    assert with_model.search("gamma", mode="vector", **asked).hits
    with pytest.raises(UnavailableError):
        bare.embed("alpha", **asked)
    with pytest.raises(NotFound):
        bare.supports_hybrid(scope="nowhere", principal=WHO)
