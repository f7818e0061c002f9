"""Filling a shadow: what fails, what is cut short, what nobody may write over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kb_resources import embed
from kb_resources.compose import open_line
from kb_resources.embed import Kind, ModelIdentity
from kb_resources.embed.hashing import HashingEmbedder
from kb_resources.errors import (
    IntegrityError,
    PolicyError,
    UnavailableError,
)
from kb_resources.model.chunk import embedding_input
from kb_resources.stages import reembed, reembed_view
from kb_resources.stages.capabilities import Models
from tests.integration.embed.fake_server import FakeServer
from tests.integration.line.conftest import Bench
from tests.integration.reembed.conftest import (
    OFFICE,
    OTHER,
    SERVED,
    counted,
    filled,
)


@pytest.mark.requirement("B-14", "B-16")
def test_a_document_that_fails_is_given_up_alone(
    library: Bench, fake: FakeServer, models_dir: Path
) -> None:
    caps = library.line.capabilities
    embed.prepare(models_dir, SERVED, endpoint=fake.endpoint())
    good = fake.vectors
    fake.vectors = lambda texts: [
        [0.0] * 1024 if "flights" in text else row
        for text, row in zip(texts, good(texts), strict=True)
    ]
    reembed.start(caps, "acme", SERVED, actor="test")
    done = filled(library)
    (bad,) = done.failed
    assert bad.startswith("travel")
    assert "zeros" in done.failed[bad]
    (stands,) = reembed_view.status(caps, "acme")
    assert (stands.total, stands.done) == (2, 1)
    assert [(each.document_id, each.attempts) for each in stands.failed] == [(bad, 3)]
    asked = len(fake.requests)
    assert filled(library).documents == 0  # given up: nothing is asked again
    assert len(fake.requests) == asked
    with pytest.raises(PolicyError) as caught:
        reembed.swap(caps, "acme", actor="test")
    assert caught.value.code == "generation_incomplete"
    fake.vectors = good
    assert reembed.retry(caps, "acme") == 1
    assert filled(library).embedded == 1
    assert reembed.swap(caps, "acme", actor="test").missing == 0


class Interrupted:
    """Lends models of an installation; something happens while one of them embeds."""

    def __init__(self, models: Models, happens: Callable[[], None]) -> None:
        self._models = models
        self._happens = happens
        self.calls = 0

    def identity(self, model_id: str) -> ModelIdentity:
        return self._models.identity(model_id)

    def resolve(self, name: str) -> ModelIdentity:
        return self._models.resolve(name)

    def embedder(self, _: str) -> Any:
        return self

    def embed(self, texts: Sequence[str], kind: Kind) -> Any:
        self.calls += 1
        if self.calls == 1:
            self._happens()
        return HashingEmbedder().embed(texts, kind)


@pytest.mark.requirement("B-15")
def test_a_vector_is_kept_only_beside_the_text_it_is_of(library: Bench) -> None:
    caps = library.line.capabilities
    library.write(
        "rules.md", "# Rules\n\n" + "\n\n".join(f"Rule {n}. {'On. ' * 30}" for n in range(9))
    )
    key = library.ingest("rules.md")
    before = counted(library, caps.versions.model_id)
    other = reembed.start(caps, "acme", OTHER, actor="test").beside or ""

    def cut_anew() -> None:
        with open_line(replace(library.settings, chunk_tokens=60), clock=library.clock) as line:
            line.run_all([key])

    models = Interrupted(caps.models, cut_anew)
    done = reembed.fill_scope(replace(caps, models=models), "acme")
    assert not done.failed
    passages, filled_ones = counted(library, other)
    assert passages > before[0]
    assert filled_ones == passages
    with caps.database.transaction("pipeline") as conn:
        rows = conn.execute(
            "select p.context, p.text, e.vec::real[] from kb.passage p "
            "join kb.embedding e using (passage_key) join kb.model m using (model_key) "
            "where m.model_id = %s",
            [other],
        ).fetchall()
    expected = HashingEmbedder().embed([embedding_input(c, t) for c, t, _ in rows], "passage")
    np.testing.assert_allclose(np.array([vec for *_, vec in rows]), expected, atol=1e-3)


@pytest.mark.requirement("B-16")
def test_a_fill_that_gets_nowhere_ends(library: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    caps = library.line.capabilities
    other = reembed.start(caps, "acme", OTHER, actor="test").beside or ""
    models = Interrupted(caps.models, lambda: None)
    monkeypatch.setattr("kb_resources.store.generations.attach", lambda *_: None)
    done = reembed.fill_scope(replace(caps, models=models), "acme")
    assert (done.documents, models.calls) == (2, 1)
    assert counted(library, other) == (2, 0)
    monkeypatch.undo()
    reembed.fill_scope(caps, "acme")
    assert counted(library, other) == (2, 2)


@pytest.mark.requirement("B-28")
def test_a_fill_that_is_stopped_keeps_whole_batches(library: Bench) -> None:
    caps = library.line.capabilities
    other = reembed.start(caps, "acme", OTHER, actor="test").beside or ""
    done = reembed.fill_scope(caps, "acme", batch=1, should_stop=lambda: counted(library, other)[1])
    assert (done.stopped, done.embedded, done.failed) == (True, 1, {})
    assert counted(library, other) == (2, 1)
    assert reembed.fill_scope(caps, "acme").embedded == 1


class Failing(Interrupted):
    """A model that raises before it works."""

    def __init__(self, models: Models, *errors: Exception) -> None:
        super().__init__(models, lambda: None)
        self._errors = list(errors)

    def embed(self, texts: Sequence[str], kind: Kind) -> Any:
        self.calls += 1
        if self._errors:
            raise self._errors.pop(0)
        return HashingEmbedder().embed(texts, kind)


@pytest.mark.requirement("B-14")
def test_two_failed_tries_and_a_good_one_are_a_success(library: Bench) -> None:
    caps = library.line.capabilities
    other = reembed.start(caps, "acme", OTHER, actor="test").beside or ""
    # Both together, each alone, both together again, the first alone; then everything is well.
    models = Failing(caps.models, *(IntegrityError("odd numbers") for _ in range(5)))
    done = reembed.fill_scope(replace(caps, models=models), "acme")
    assert (done.failed, models.calls) == ({}, 7)
    assert counted(library, other) == (2, 2)
    assert not reembed_view.status(caps, "acme")[0].failed


@pytest.mark.requirement("B-14")
def test_a_try_that_fails_in_many_batches_counts_once(library: Bench) -> None:
    caps = library.line.capabilities
    said = "The office in house {0} opens at eight and closes at five on working days. " * 4
    sections = "\n\n".join(f"## House {n}\n\n{said.format(n)}" for n in range(4))
    key = library.ingest("houses.md", f"# Houses\n\n{sections}\n")
    assert library.state(key) == ("indexed", "")
    other = reembed.start(caps, "acme", OTHER, actor="test").beside or ""
    passages, _ = counted(library, other)
    assert passages >= 2 + 3
    # Every batch of the first try fails, and none after that.
    models = Failing(caps.models, *(IntegrityError("odd numbers") for _ in range(passages)))
    done = reembed.fill_scope(replace(caps, models=models), "acme", batch=1)
    assert done.failed == {}
    assert counted(library, other) == (passages, passages)


@pytest.mark.requirement("B-14", "B-28")
def test_an_endpoint_that_is_away_marks_nothing_as_failed(library: Bench) -> None:
    caps = library.line.capabilities
    other = reembed.start(caps, "acme", OTHER, actor="test").beside or ""
    models = Failing(caps.models, *(UnavailableError("away") for _ in range(9)))
    for _ in range(4):
        with pytest.raises(UnavailableError):
            reembed.fill_scope(replace(caps, models=models), "acme")
    assert not reembed_view.status(caps, "acme")[0].failed
    line = type(library.line)(replace(caps, models=models), ("en",))
    library.write("office.md", OFFICE)
    key = line.register(library.request("office.md"))
    line.run_all([key])  # documents go on without the shadow
    assert library.state(key) == ("indexed", "")
    assert counted(library, other) == (3, 0)
    assert reembed.fill_scope(caps, "acme").embedded == 3
