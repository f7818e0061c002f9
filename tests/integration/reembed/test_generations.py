"""A scope's vectors are filled beside the live ones, swapped at once, kept, dropped."""

from __future__ import annotations

import shutil
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from kb.reader import Reader
from kb_resources import embed
from kb_resources.compose import open_line, open_retriever
from kb_resources.compose_models import Model, Shelf
from kb_resources.embed.hashing import HashingEmbedder
from kb_resources.errors import (
    ConflictError,
    InputError,
    IntegrityError,
    NotFound,
    PolicyError,
    UnavailableError,
)
from kb_resources.model import DocumentState, Principal, Stage
from kb_resources.settings import Settings
from kb_resources.stages import reembed, reembed_view, removal, swap_quality
from kb_resources.stages.orchestration import embedded_otherwise
from kb_resources.store import generations, logs, vectors
from kb_resources.store.pool import Database
from tests.integration.embed.fake_server import FakeServer
from tests.integration.lifecycle.test_erase import WHY, eraser_of
from tests.integration.line.conftest import Bench
from tests.integration.reembed.conftest import (
    LEAVE,
    OFFICE,
    OTHER,
    SERVED,
    TRAVEL,
    counted,
    filled,
    held,
    move,
)


@pytest.mark.requirement("B-19", "O-28")
def test_searches_use_the_live_model_throughout(library: Bench) -> None:
    caps = library.line.capabilities
    own = caps.versions.model_id
    assert (held(library).live, held(library).beside) == (own, None)

    def searched_by() -> str:
        found = library.search("how many days of leave", mode="vector")
        assert found.hits[0].title == "Leave"
        with caps.database.transaction("pipeline") as conn:
            row = conn.execute(
                "select model_id from kb.retrieval_log order by at desc limit 1"
            ).fetchone()
        assert row is not None
        return str(row[0])

    assert searched_by() == own
    started = reembed.start(caps, "acme", OTHER, actor="test")
    other = started.beside
    assert other is not None
    assert counted(library, other) == (2, 0)
    assert searched_by() == own
    library.ingest("office.md", OFFICE)  # gets both vectors
    assert counted(library, other) == (3, 1)
    done = filled(library)
    assert (done.documents, done.embedded, done.attached) == (2, 2, 2)
    assert searched_by() == own
    assert reembed.swap(caps, "acme", actor="test").beside == own
    assert searched_by() == other
    assert library.texts("closed on public holidays", mode="vector")[0].startswith("# Office")
    assert held(library).beside_is == "kept"
    reembed.roll_back(caps, "acme", actor="test")
    assert searched_by() == own
    reembed.swap(caps, "acme", actor="test")
    assert reembed.drop(caps, "acme", actor="test") == 3
    assert counted(library, own) == (3, 0)
    assert counted(library, other) == (3, 3)
    assert searched_by() == other


@pytest.mark.requirement("O-15")
@pytest.mark.parametrize(
    ("prices", "per_million", "currency"),
    [((), 0.02, "USD"), (("text-embedding-3-small=0.5/1",), 0.5, "CHF")],
)
def test_a_preview_says_what_an_endpoint_will_charge(
    library: Bench,
    fake: FakeServer,
    models_dir: Path,
    settings: Settings,
    prices: tuple[str, ...],
    per_million: float,
    currency: str,
) -> None:
    name = "text-embedding-3-small"
    fake.vectors = lambda texts: HashingEmbedder(1536).embed(texts, "passage").tolist()
    embed.prepare(models_dir, name, endpoint=fake.endpoint())
    priced = replace(settings, prices=prices, currency="CHF")
    shelf = Shelf(priced, Model(priced))
    found = reembed_view.preview(replace(library.line.capabilities, models=shelf), "acme", name)
    assert found.price == pytest.approx(found.tokens * per_million / 1e6)
    assert found.currency == currency


@pytest.mark.requirement("O-15")
def test_a_preview_says_what_it_takes_and_changes_nothing(
    library: Bench,
) -> None:
    caps = library.line.capabilities
    library.ingest("copy.md", TRAVEL + "\n\nA second paragraph.\n")
    found = reembed_view.preview(caps, "acme", OTHER)
    assert (found.live, found.model_id.partition("@")[0]) == (caps.versions.model_id, OTHER)
    assert (found.passages, found.texts, found.carried) == (3, 3, 0)
    assert found.tokens > 0
    assert found.tokens_per_s > 0
    assert found.minutes == pytest.approx(found.tokens / found.tokens_per_s / 60)
    assert found.price is None
    assert held(library).beside is None
    reembed.start(caps, "acme", OTHER, actor="test")
    assert filled(library).embedded == 3
    again = reembed_view.preview(caps, "acme", OTHER)
    assert (again.texts, again.carried, again.minutes) == (0, 3, 0.0)


@pytest.mark.requirement("B-18", "P-15")
def test_equal_texts_are_computed_once_and_carried_over(library: Bench) -> None:
    caps = library.line.capabilities
    library.ingest("a/notice.md", "# Notice\n\nThe lift is out of order.\n", document_id="one")
    library.ingest("b/notice.md", "# Notice\n\nThe lift is out of order.\n\n", document_id="two")
    assert counted(library, caps.versions.model_id) == (4, 4)
    reembed.start(caps, "acme", OTHER, actor="test")
    done = filled(library)
    assert done.embedded == 3
    assert counted(library, held(library).beside or "") == (4, 4)


def test_a_swap_is_refused_until_the_shadow_is_complete(library: Bench) -> None:
    caps = library.line.capabilities
    with pytest.raises(PolicyError, match="No other model's vectors"):
        reembed.swap(caps, "acme", actor="test")
    reembed.start(caps, "acme", OTHER, actor="test")
    with pytest.raises(PolicyError) as caught:
        reembed.swap(caps, "acme", actor="test")
    assert caught.value.code == "generation_incomplete"
    reembed.fill_scope(caps, "acme", limit=1)
    (stands,) = reembed_view.status(caps, "acme")
    assert (stands.total, stands.done, stands.beside_is) == (2, 1, "shadow")
    assert "kb reembed fill --scope acme" in stands.next_step
    assert stands.eta_s is not None
    with pytest.raises(PolicyError) as caught:
        reembed.start(caps, "acme", caps.versions.model_id, actor="test")
    assert caught.value.code == "already_live"
    filled(library)
    (stands,) = reembed_view.status(caps)
    assert (stands.done, stands.eta_s) == (2, 0.0)
    assert "kb reembed swap --scope acme" in stands.next_step
    assert reembed.swap(caps, "acme", actor="test").missing == 0
    with pytest.raises(PolicyError) as caught:
        reembed.start(caps, "acme", OTHER, actor="test")
    assert caught.value.code == "already_live"
    (stands,) = reembed_view.status(caps, "acme")
    assert "kb reembed drop --scope acme" in stands.next_step
    library.write("x.md", "x")
    library.line.register(library.request("x.md", scope="bare"))
    with pytest.raises(PolicyError, match="no vectors yet"):
        reembed.start(caps, "bare", OTHER, actor="test")
    with pytest.raises(NotFound):
        reembed_view.status(caps, "nowhere")


@pytest.mark.requirement("B-19")
def test_only_what_was_measured_is_swapped_in(
    library: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    caps = library.line.capabilities
    own = caps.versions.model_id
    reembed.start(caps, "acme", OTHER, actor="test")
    filled(library)
    measure = swap_quality.measure

    def exchanged(*given: Any) -> swap_quality.Quality:
        found = measure(*given)
        reembed.drop(caps, "acme", actor="somebody else")
        with caps.database.transaction("pipeline") as conn:
            key = vectors.ensure_model(conn, "another@0123456789abcdef", 3)
            assert generations.start(conn, held(library).scope_id, key)
        return found

    monkeypatch.setattr(swap_quality, "measure", exchanged)
    with pytest.raises(ConflictError, match="not what was measured"):
        reembed.swap(caps, "acme", actor="test", accept_missing=99)
    assert held(library).live == own


@pytest.mark.requirement("B-19")
def test_a_rollback_says_what_was_published_since(library: Bench) -> None:
    caps = library.line.capabilities
    move(library)
    library.ingest("office.md", OFFICE)
    library.ingest("leave.md", LEAVE + "\nIt is booked with the team.\n")  # nothing to carry
    own = caps.versions.model_id
    with pytest.raises(PolicyError) as caught:
        reembed.roll_back(caps, "acme", actor="test")
    assert caught.value.code == "generation_incomplete"
    assert "2 of 4 passages" in str(caught.value)
    assert reembed.roll_back(caps, "acme", actor="test", accept_missing=2).missing == 2
    assert held(library).live == own
    assert library.texts("office closed on public holidays")  # by its words meanwhile
    assert filled(library).embedded == 2
    assert counted(library, own) == (4, 4)
    assert held(library).beside_is == "shadow"


@pytest.mark.requirement("B-19")
def test_readers_times_and_removal_hold_for_both_generations(library: Bench) -> None:
    caps = library.line.capabilities
    other = reembed.start(caps, "acme", OTHER, actor="test").beside or ""
    pay = library.ingest("pay.md", "# Pay\n\nSalaries are paid on the 25th.\n", audiences=["hr"])
    before = library.clock.now
    library.ingest("leave.md", LEAVE.replace("thirty", "twenty-five"))
    filled(library)
    with caps.database.transaction("pipeline") as conn:
        rows = conn.execute(
            "select p.passage_key, count(*), count(distinct (e.valid_from, e.valid_until, "
            "e.earlier, e.audiences)) from kb.passage p join kb.embedding e using (passage_key) "
            "group by 1"
        ).fetchall()
    assert [row[1:] for row in rows] == [(2, 1)] * 4
    reembed.swap(caps, "acme", actor="test")

    def titles(**values: object) -> set[str]:
        hits = library.search("salaries paid on the 25th", mode="vector", k=20, **values).hits
        return {hit.title for hit in hits}

    hr = Principal("hr", frozenset({"hr"}))
    assert titles() == {"Leave", "Travel"}
    assert titles(principal=hr) == {"Leave", "Travel", "Pay"}
    (now,) = library.texts("days of paid annual leave", mode="vector", k=1)
    (then,) = library.texts("days of paid annual leave", mode="vector", k=1, as_of=before)
    assert "twenty-five" in now
    assert "thirty" in then
    removal.remove(caps, pay, actor="test", reason="test")
    assert titles(principal=hr) == {"Leave", "Travel"}
    assert titles(principal=hr, as_of=before) == {"Leave", "Travel", "Pay"}
    assert counted(library, other) == (4, 4)


@pytest.mark.requirement("O-39")
def test_nothing_confidential_leaves_for_a_shadow(
    library: Bench, fake: FakeServer, models_dir: Path
) -> None:
    caps = replace(library.line.capabilities, embed_hosting="external")
    embed.prepare(models_dir, SERVED, endpoint=fake.endpoint())
    reembed.start(caps, "acme", SERVED, actor="test")
    caps.embedder_of(held(library).beside or "")  # asks for its canaries
    asked = len(fake.requests)
    done = reembed.fill_scope(caps, "acme")
    assert len(done.failed) == 2
    line = type(library.line)(caps, ("en",))
    library.write("office.md", OFFICE)
    key = line.register(library.request("office.md"))
    line.run_all([key])
    assert library.state(key) == ("indexed", "")
    assert len(fake.requests) == asked
    with caps.database.transaction("pipeline") as conn:
        logs.set_content_class(conn, "acme", None, "public")
    reembed.retry(caps, "acme")
    assert reembed.fill_scope(caps, "acme").embedded == 3


@pytest.mark.requirement("O-36", "O-28")
def test_scopes_of_different_models_are_not_mixed_in_one_search(library: Bench) -> None:
    library.ingest("b/office.md", OFFICE, scope="beta")
    retriever = library.reader.retriever
    given: dict[str, Any] = {"principal": Principal("x"), "scopes": ["acme", "beta"]}
    assert len(retriever.search("office", mode="vector", **given).hits) == 3
    move(library)
    assert retriever.search("office", scope="acme", principal=Principal("x")).hits
    with pytest.raises(InputError) as caught:
        retriever.search("office", **given)
    assert caught.value.code == "models_differ"
    assert retriever.search("office", mode="text", **given).hits
    move(library, scope="beta")
    assert len(retriever.search("office", mode="vector", **given).hits) == 3


def test_a_live_model_that_is_not_here_is_said_so(library: Bench, models_dir: Path) -> None:
    move(library)
    shutil.rmtree(models_dir / OTHER)
    library.reader = Reader(
        library.reader.database, open_retriever(library.settings, library.reader.database)
    )
    assert library.search("annual leave").mode == "text"
    with pytest.raises(UnavailableError) as caught:
        library.search("annual leave", mode="vector")
    assert caught.value.code == "model_missing"
    reembed.drop(library.line.capabilities, "acme", actor="test")
    with open_line(library.settings) as line:  # the way out: nothing to compare with
        own = line.capabilities.versions.model_id
        reembed.start(line.capabilities, "acme", own, actor="test")
        reembed.fill_scope(line.capabilities, "acme")
        swapped = reembed.swap(line.capabilities, "acme", actor="test")
    assert swapped.quality is not None
    assert not swapped.quality.live_here
    assert library.search("annual leave", mode="vector").hits[0].title == "Leave"


@pytest.mark.requirement("P-61")
def test_another_setting_fills_a_shadow_and_replaces_nothing(library: Bench) -> None:
    caps = library.line.capabilities
    own = caps.versions.model_id
    move(library)
    reembed.drop(caps, "acme", actor="test")
    (stands,) = reembed_view.status(caps, "acme")
    assert (stands.wanted, stands.live == stands.wanted) == (own, False)
    assert "KB_MODEL is another model" in stands.next_step
    health = library.line.scope_health("acme")
    assert (health.live_model, health.wanted_model) == (held(library).live, own)
    assert reembed.start_where_wanted(caps, actor="schedule") == ["acme"]
    assert reembed.start_where_wanted(caps, actor="schedule") == []
    assert (held(library).beside, held(library).beside_is) == (own, "shadow")
    keys = embedded_otherwise(library.line, 10)
    assert [key.document_id.split("-")[0] for key in keys] == ["leave", "travel"]
    library.line.run_all(keys[:1], start=Stage.EMBED)
    assert embedded_otherwise(library.line, 10) == keys[1:]
    library.line.run_all(keys, start=Stage.EMBED)
    assert embedded_otherwise(library.line, 10) == []
    assert counted(library, own) == (2, 2)
    assert held(library).live != own


@pytest.mark.requirement("P-60")
def test_a_build_that_another_one_replaces_is_kept_for_its_scopes(
    library: Bench, fake: FakeServer, models_dir: Path
) -> None:
    caps = library.line.capabilities
    embed.prepare(models_dir, SERVED, endpoint=fake.endpoint())
    old = move(library, SERVED)
    fake.salt = "another model behind the same name"
    with pytest.raises(IntegrityError):
        embed.open_build(models_dir, old)
    embed.prepare(models_dir, SERVED, endpoint=fake.endpoint(), force=True)
    assert caps.models.resolve(SERVED).model_id != old
    assert caps.models.identity(old).model_id == old
    fake.salt = ""
    assert embed.open_build(models_dir, old).model_id == old


def test_readers_see_their_scopes_generation_and_change_none(
    library: Bench, database: Database
) -> None:
    library.ingest("b/office.md", OFFICE, scope="beta")
    with database.transaction("app", "acme") as conn:
        assert [each.scope for each in generations.all_of(conn)] == ["acme"]
    with database.transaction("app") as conn:
        assert generations.all_of(conn) == []
    with pytest.raises(PolicyError), database.transaction("app", "acme") as conn:
        conn.execute("update kb.generation set live_since = now()")
    with pytest.raises(PolicyError), database.transaction("pipeline") as conn:
        conn.execute("delete from kb.generation")


def test_scopes_from_before_are_searched_by_the_model_of_most_of_their_vectors(
    library: Bench, database: Database
) -> None:
    reembed.start(library.line.capabilities, "acme", OTHER, actor="test")
    reembed.fill_scope(library.line.capabilities, "acme", limit=1)
    text = (resources.files("kb_resources.store") / "migrations/0020_generations.sql").read_text()
    statement = next(
        part for part in text.split(";") if "insert into kb.generation" in part and "count" in part
    )
    with database.transaction("owner") as conn:
        conn.execute("delete from kb.generation")
        conn.execute(statement.encode())
    assert held(library).live == library.line.capabilities.versions.model_id
    assert held(library).beside is None


@pytest.mark.requirement("O-12")
def test_an_erased_document_loses_both_vectors(library: Bench) -> None:
    caps = library.line.capabilities
    other = reembed.start(caps, "acme", OTHER, actor="test").beside or ""
    filled(library)
    key = library.line.select("acme", [DocumentState.INDEXED])[0]
    eraser_of(library).erase(key, **WHY)
    assert counted(library, other) == (1, 1)
    assert counted(library, caps.versions.model_id) == (1, 1)
    with caps.database.transaction("pipeline") as conn:
        assert conn.execute("select count(*) from kb.embedding").fetchone() == (2,)
