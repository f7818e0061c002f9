"""Embedding work: lists, tries, failing, stopping, and workers that are gone; on both stores.

Numbers in brackets: the list of behaviours in the requirements, appendix B.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from kb_resources.errors import (
    ConflictError,
    InputError,
    NotFound,
    UnavailableError,
)
from kb_resources.store.drain import drain, process
from kb_resources.store.records import MAX_CAUSE, Vector

from .conftest import DAY, START, Kept, vector_of

TEXTS = tuple(f"Rule number {n} of the house." for n in range(10))


class Model:
    """Counts its calls; fails where a text says so."""

    def __init__(self, fails: Callable[[Sequence[str], int], bool] = lambda *_: False):
        self.calls: list[int] = []
        self._fails = fails

    def __call__(self, texts: Sequence[str]) -> list[Vector]:
        self.calls.append(len(texts))
        if self._fails(texts, len(self.calls)):
            raise RuntimeError("the endpoint said no")
        return [vector_of(text) for text in texts]


def bad_texts(texts: Sequence[str], call: int) -> bool:
    return any("bad" in text for text in texts)


def run(kept: Kept, model: Model | None, **values: object):
    return drain(kept.store, model, holder="w1", scope=kept.scope, **values)


def state(kept: Kept, document_id: str) -> str:
    return kept.store.work(document_id, scope=kept.scope).state


@pytest.mark.requirement("B-11", "B-13", "B-29")
def test_batches_until_nothing_waits_and_a_second_call_does_nothing(kept: Kept) -> None:
    """[11, 23, 71]"""
    kept.put("rules", *TEXTS, vectors=False)
    assert state(kept, "rules") == "pending"
    model = Model()
    assert process(kept.store, "rules", model, scope=kept.scope, batch=4) == 0
    assert model.calls == [4, 4, 2]
    assert state(kept, "rules") == "ready"
    assert process(kept.store, "rules", model, scope=kept.scope, batch=4) == 0
    assert len(model.calls) == 3
    assert kept.found(vector=vector_of("rule number 3")) != []


def test_a_hundred_vectors_come_in_one_document(kept: Kept) -> None:
    """[71]"""
    kept.put("rules", *(f"Rule {n}." for n in range(100)), vectors=False)
    assert process(kept.store, "rules", Model(), scope=kept.scope) == 0
    hits = kept.store.search(vector=vector_of("rule"), k=100, scope=kept.scope)
    assert len(hits) == 100


@pytest.mark.requirement("B-17")
@pytest.mark.parametrize(
    "answer",
    [
        lambda texts: [vector_of(text) for text in texts][:-1],
        lambda _texts: [],
        lambda texts: [vector_of(text)[: 8 - n % 2] for n, text in enumerate(texts)],
        lambda texts: [vector_of(text) * np.float32("nan") for text in texts],
    ],
    ids=["one short", "none", "ragged", "nan"],
)
def test_answers_that_do_not_fit_are_refused_and_nothing_is_written(kept: Kept, answer) -> None:
    """[12]"""
    kept.put("rules", *TEXTS, vectors=False)
    with pytest.raises(InputError) as caught:
        process(kept.store, "rules", answer, scope=kept.scope)
    assert caught.value.code == "embedding_invalid"
    assert kept.store.work("rules", scope=kept.scope).waiting == len(TEXTS)


def test_a_round_without_progress_stops_and_tells_what_is_left(kept: Kept) -> None:
    """[13]"""
    kept.put("rules", *TEXTS, vectors=False)
    calls = 0

    def rewritten_each_time(texts: Sequence[str]) -> list[Vector]:
        nonlocal calls
        calls += 1
        kept.put("rules", *(f"{text} Again {calls}." for text in TEXTS), vectors=False,
                 valid_from=START + calls * DAY)  # fmt: skip
        return [vector_of(text) for text in texts]

    assert process(kept.store, "rules", rewritten_each_time, scope=kept.scope) == len(TEXTS)
    assert calls == 1


def test_stopping_half_way_keeps_what_is_done_and_tells_what_is_left(kept: Kept) -> None:
    """[14]"""
    kept.put("rules", *TEXTS, vectors=False)
    model = Model()

    def stop() -> bool:
        return len(model.calls) >= 2

    left = process(kept.store, "rules", model, scope=kept.scope, batch=3, should_stop=stop)
    assert left == 4
    assert kept.store.work("rules", scope=kept.scope).waiting == 4


def test_without_a_model_processing_is_refused_by_type(kept: Kept) -> None:
    """[15]"""
    kept.put("rules", *TEXTS, vectors=False)
    with pytest.raises(UnavailableError) as caught:
        process(kept.store, "rules", None, scope=kept.scope)
    assert caught.value.code == "no_embedder"
    with pytest.raises(UnavailableError):
        run(kept, None)
    assert state(kept, "rules") == "pending"
    assert kept.store.work("rules", scope=kept.scope).attempts == 0


@pytest.mark.requirement("B-11", "B-12")
def test_a_good_and_a_bad_document_one_is_done_the_other_fails_after_three_tries(
    kept: Kept,
) -> None:
    """[16, 20]"""
    kept.put("bad", "A bad text.", vectors=False)
    kept.put("good", "A fine text.", vectors=False)
    model = Model(bad_texts)
    done = run(kept, model)
    assert done.ready == ("good",)
    assert done.failed == {"bad": "the endpoint said no"}
    assert len(model.calls) == 4
    found = kept.store.work("bad", scope=kept.scope)
    assert (found.state, found.attempts, found.error) == ("failed", 3, "the endpoint said no")
    assert run(kept, model).ready == ()
    assert kept.found("bad") == ["bad"]


def test_one_blip_is_not_a_failure(kept: Kept) -> None:
    """[17]"""
    kept.put("rules", *TEXTS, vectors=False)
    done = run(kept, Model(lambda _texts, call: call == 1))
    assert (done.ready, done.failed) == (("rules",), {})
    assert state(kept, "rules") == "ready"


def test_the_first_of_two_tries_does_not_fail_the_document_and_the_second_does(
    kept: Kept,
) -> None:
    """[20]"""
    kept.put("bad", "A bad text.", vectors=False)
    for attempt, expected in ((1, "pending"), (2, "failed")):
        claimed = kept.store.claim(holder="w1", scope=kept.scope)
        assert claimed.state == "processing"
        with pytest.raises(RuntimeError) as caught:
            process(kept.store, "bad", Model(bad_texts), scope=kept.scope)
        ended = kept.store.settle(
            "bad", holder="w1", error=str(caught.value), attempts=2, scope=kept.scope
        )
        assert (ended.state, ended.attempts) == (expected, attempt)


def test_a_stopped_drain_does_nothing_and_fails_nothing(kept: Kept) -> None:
    """[18]"""
    kept.put("bad", "A bad text.", vectors=False)
    done = run(kept, Model(bad_texts), should_stop=lambda: True)
    assert (done.ready, done.failed) == ((), {})
    assert state(kept, "bad") == "pending"


def test_an_empty_list_is_no_work(kept: Kept) -> None:
    """[19]"""
    model = Model()
    assert run(kept, model).ready == ()
    assert kept.store.works(scope=kept.scope) == ()
    assert kept.store.claim(holder="w1", scope=kept.scope) is None
    assert model.calls == []


@pytest.mark.requirement("B-11")
def test_the_cause_is_kept_up_to_its_limit(kept: Kept) -> None:
    kept.put("bad", "A bad text.", vectors=False)
    kept.store.claim(holder="w1", scope=kept.scope)
    ended = kept.store.settle("bad", holder="w1", error="x" * 5000, attempts=1, scope=kept.scope)
    assert (ended.state, ended.error) == ("failed", "x" * MAX_CAUSE)
    assert MAX_CAUSE == 2000


@pytest.mark.requirement("B-11")
def test_failed_work_goes_back_only_through_requeue(kept: Kept) -> None:
    kept.put("bad", "A bad text.", vectors=False)
    assert not kept.store.requeue("bad", scope=kept.scope)
    run(kept, Model(bad_texts))
    assert kept.store.claim(holder="w1", scope=kept.scope) is None
    assert kept.store.requeue("bad", scope=kept.scope)
    found = kept.store.work("bad", scope=kept.scope)
    assert (found.state, found.attempts, found.error) == ("pending", 0, "")
    assert run(kept, Model()).ready == ("bad",)


def test_a_new_text_is_tried_afresh(kept: Kept) -> None:
    kept.put("doc", "A bad text.", vectors=False)
    run(kept, Model(bad_texts))
    kept.put("doc", "A mended text.", vectors=False, valid_from=START + DAY)
    assert run(kept, Model(bad_texts)).ready == ("doc",)


@pytest.mark.requirement("B-18", "O-11")
def test_a_text_rewritten_while_it_is_embedded_gets_the_vector_of_what_it_is_now(
    kept: Kept,
) -> None:
    """[29]"""
    kept.put("doc", "The old wording.", vectors=False)
    rewritten = False

    def slow(texts: Sequence[str]) -> list[Vector]:
        nonlocal rewritten
        if not rewritten:
            rewritten = True
            kept.put("doc", "A new wording.", vectors=False, valid_from=START + DAY)
        return [vector_of(text) for text in texts]

    assert process(kept.store, "doc", slow, scope=kept.scope) == 1
    assert kept.store.work("doc", scope=kept.scope).waiting == 1
    assert process(kept.store, "doc", slow, scope=kept.scope) == 0
    [hit] = kept.store.search(vector=vector_of("doc a new wording."), scope=kept.scope)
    assert hit.passage.text == "A new wording."
    assert hit.vector_score == pytest.approx(1.0, abs=2e-3)


def test_a_worker_whose_document_was_published_anew_does_not_settle_it(kept: Kept) -> None:
    """[29]"""
    kept.put("doc", "The old wording.", vectors=False)

    def rewrites(texts: Sequence[str]) -> list[Vector]:
        if "old" in texts[0]:
            kept.put("doc", "A new wording.", vectors=False, valid_from=START + DAY)
        return [vector_of(text) for text in texts]

    done = drain(kept.store, rewrites, holder="w1", scope=kept.scope)
    assert done.ready == ("doc",)
    assert state(kept, "doc") == "ready"


@pytest.mark.requirement("P-80")
def test_documents_of_a_worker_that_is_gone_are_noticed_after_its_lease(kept: Kept) -> None:
    kept.put("rules", *TEXTS, vectors=False)
    kept.store.claim(holder="gone", lease_s=60, scope=kept.scope)
    assert state(kept, "rules") == "processing"
    assert kept.store.claim(holder="w2", scope=kept.scope) is None
    assert kept.store.recover(scope=kept.scope) == ()
    kept.clock.forward(seconds=120)
    [found] = kept.store.recover(scope=kept.scope)
    assert (found.document_id, found.state, found.attempts) == ("rules", "pending", 1)
    assert "gone" in found.error
    with pytest.raises(ConflictError) as caught:
        kept.store.settle("rules", holder="gone", scope=kept.scope)
    assert caught.value.code == "not_held"
    assert kept.store.claim(holder="w2", scope=kept.scope).document_id == "rules"


def test_a_document_that_kills_its_workers_fails_in_the_end(kept: Kept) -> None:
    kept.put("rules", *TEXTS, vectors=False)
    for _ in range(3):
        kept.store.claim(holder="gone", lease_s=1, scope=kept.scope)
        kept.clock.forward(seconds=10)
        [found] = kept.store.recover(scope=kept.scope)
    assert found.state == "failed"
    assert "gone" in found.error


@pytest.mark.requirement("B-12")
def test_a_document_put_twice_is_claimed_once(kept: Kept) -> None:
    kept.put("doc", "Text one.", vectors=False)
    kept.put("doc", "Text two.", vectors=False, valid_from=START + DAY)
    assert len(kept.store.works(scope=kept.scope)) == 1
    assert kept.store.claim(holder="w1", scope=kept.scope).document_id == "doc"
    assert kept.store.claim(holder="w2", scope=kept.scope) is None


def test_work_of_a_removed_document_waits_until_it_is_restored(kept: Kept) -> None:
    kept.put("doc", "Text.", vectors=False)
    kept.store.remove("doc", scope=kept.scope)
    assert kept.store.works(scope=kept.scope) == ()
    assert kept.store.claim(holder="w1", scope=kept.scope) is None
    with pytest.raises(NotFound):
        kept.store.add_vectors("doc", {}, scope=kept.scope)
    kept.store.restore("doc", scope=kept.scope)
    assert run(kept, Model()).ready == ("doc",)


@pytest.mark.parametrize("ends", ["settled", "lapsed"])
def test_work_that_ends_while_its_document_is_removed_is_not_forgotten(
    kept: Kept, ends: str
) -> None:
    kept.put("doc", "Text.", vectors=False)
    kept.store.claim(holder="w1", lease_s=60, scope=kept.scope)
    kept.store.remove("doc", scope=kept.scope)
    if ends == "settled":
        found = kept.store.settle("doc", holder="w1", error="gone", scope=kept.scope)
    else:
        kept.clock.forward(seconds=120)
        [found] = kept.store.recover(scope=kept.scope)
    assert (found.state, found.waiting, found.attempts) == ("pending", 1, 1)
    kept.store.restore("doc", scope=kept.scope)
    assert run(kept, Model()).ready == ("doc",)


@pytest.mark.requirement("B-29")
@pytest.mark.parametrize("batch", [0, -1, 2049])
def test_batches_have_bounds(kept: Kept, batch: int) -> None:
    with pytest.raises(InputError):
        process(kept.store, "doc", Model(), scope=kept.scope, batch=batch)


@pytest.mark.requirement("B-29")
def test_more_vectors_than_a_call_may_bring_are_refused(kept: Kept) -> None:
    kept.put("doc", "Text.", vectors=False)
    many = {f"{n:064x}": vector_of(str(n)) for n in range(65)}
    with pytest.raises(InputError) as caught:
        kept.store.add_vectors("doc", many, scope=kept.scope)
    assert caught.value.code == "too_many_vectors"
