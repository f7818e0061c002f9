"""Searching: what is found in which mode, for whom and when, through which filters, from where."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from kb_resources.errors import InputError, NotFound, UnavailableError
from kb_resources.model import Principal
from kb_resources.retrieve import Retriever, SearchFilters
from kb_resources.retrieve.asking import FULL_SHARE
from kb_resources.store import passages

from .conftest import START, World


def test_a_published_passage_is_found_with_its_provenance(world: World) -> None:
    world.publish("leave", ["Every employee has 30 days of leave.", "Leave is asked for early."])
    result = world.search("how many days of leave")
    assert (result.mode, result.score_kind, result.reranked) == ("hybrid", "rrf_adaptive", False)
    hit = result.hits[0]
    assert hit.text == "Every employee has 30 days of leave."
    assert (hit.rank, hit.scope, hit.document_id, hit.version) == (1, world.scope, "leave", 1)
    assert hit.digest == world.row("leave").digest
    assert (hit.byte_start, hit.byte_end, hit.char_start, hit.char_end) == (0, 36, 0, 36)
    assert (hit.title, hit.heading_path, hit.page) == ("leave", ("leave",), None)
    assert (hit.valid_from, hit.valid_until) == (START, None)
    assert (hit.source, hit.language, hit.media_type) == ("api/leave", "en", "text/plain")
    words = min(1, hit.text_share / FULL_SHARE) / 61
    assert (hit.text_rank, hit.score) == (1, pytest.approx(words + 1 / (60 + hit.vector_rank)))
    assert set(hit.to_json()) == {
        *("rank", "scope", "document_id", "version", "digest", "passage_id", "title"),
        *("heading_path", "page", "locator", "byte_start", "byte_end", "char_start", "char_end"),
        *("language", "valid_from", "valid_until", "source", "text", "relevance"),
    }
    assert set(hit.to_json(debug=True)) - set(hit.to_json()) == {
        *("score", "text_rank", "text_score", "text_share", "vector_rank", "vector_score"),
        "cosine",
    }


@pytest.mark.requirement("O-21")
def test_the_audience_matrix(world: World) -> None:
    documents = {
        "open": [],
        "board": ["board"],
        "staff": ["staff"],
        "either": ["board", "staff"],
        "ann": ["user:ann"],
    }
    for document_id, audiences in documents.items():
        world.publish(document_id, [f"alpha {document_id}"], audiences=audiences)
    readers = {(): {"open"}, ("board",): {"open", "board", "either"}}
    readers |= {("staff",): {"open", "staff", "either"}, ("user:ann",): {"open", "ann"}}
    readers |= {("board", "staff"): {"open", "board", "staff", "either"}}
    readers |= {("boar",): {"open"}, ("Board",): {"open"}}
    for mode in ("hybrid", "text", "vector"):
        for held, expected in readers.items():
            assert set(world.found("alpha", audiences=held, mode=mode)) == expected
    system = Principal("job", roles=frozenset({"system"}))
    assert set(world.found("alpha", principal=system)) == set(documents)
    admin = Principal("root", roles=frozenset({"admin"}))
    assert set(world.found("alpha", principal=admin)) == {"open"}


@pytest.mark.requirement("P-21", "P-30")
def test_what_held_is_filtered_before_it_is_ranked(world: World) -> None:
    world.publish("rule", [f"alpha alpha alpha alpha rule {number}" for number in range(120)])
    world.publish("rule", ["alpha rule, the new one"], valid_from=START + timedelta(days=1))
    world.publish("last", ["a text that says alpha once, among many other words"])
    for mode in ("hybrid", "text", "vector"):
        hits = world.search("alpha", mode=mode, k=2).hits
        assert {hit.document_id for hit in hits} == {"rule", "last"}
        assert all(hit.valid_until is None for hit in hits)
    historical = world.search("alpha rule", include_historical=True, k=100).hits
    assert sum(hit.version == 1 and hit.document_id == "rule" for hit in historical) > 90
    assert {hit.valid_until for hit in historical} <= {None, START + timedelta(days=1)}


def test_a_time_without_zone_is_refused(world: World) -> None:
    world.publish("doc", ["alpha"])
    with pytest.raises(InputError, match="zone"):
        world.search("alpha", as_of=datetime(2026, 1, 1))  # noqa: DTZ001


@pytest.mark.requirement("B-21", "P-28")
def test_filters_hold_for_every_hit_in_each_mode(world: World) -> None:
    world.publish("a", ["alpha one"], metadata={"topic": "x", "year": "2026"}, title="Law")
    world.publish("b", ["alpha two"], metadata={"topic": "y"}, language="de", title="Law")
    world.publish("c", ["alpha three"], media_type="application/pdf", title="Novel")
    cases = [
        (SearchFilters(languages=["de"]), {"b"}),
        (SearchFilters(media_types=["application/pdf"]), {"c"}),
        (SearchFilters(documents=["a", "c", "zzz"]), {"a", "c"}),
        (SearchFilters(heading_prefix=["Law"]), {"a", "b"}),
        (SearchFilters(heading_prefix=["Law", "Deeper"]), set()),
        (SearchFilters(metadata={"topic": "x"}), {"a"}),
        (SearchFilters(metadata={"topic": "x", "year": "2026"}), {"a"}),
        (SearchFilters(languages=["en"], metadata={"topic": "y"}), set()),
        (SearchFilters(languages=[]), set()),
        (SearchFilters(), {"a", "b", "c"}),
    ]
    for mode in ("hybrid", "text", "vector"):
        for filters, expected in cases:
            assert set(world.found("alpha", filters=filters, mode=mode)) == expected, filters


@pytest.mark.requirement("B-31", "B-32", "O-22")
def test_words_find_a_document_without_vectors_and_the_mode_says_so(world: World) -> None:
    world.publish("doc", ["alpha beta"], with_vectors=False)
    without = Retriever(world.database)
    found = without.search("alpha", principal=Principal("p"), scope=world.scope)
    assert (found.mode, len(found.hits)) == ("text", 1)
    assert world.search("alpha", mode="text").mode == "text"
    with pytest.raises(UnavailableError, match="no vectors"):
        world.search("alpha", mode="vector")


def test_an_unknown_mode_is_refused(world: World) -> None:
    with pytest.raises(InputError, match="mode"):
        world.search("alpha", mode="regex")


def test_k_is_clamped(world: World) -> None:
    world.publish("doc", [f"alpha {n}" for n in range(120)])
    assert [len(world.search("alpha", k=k).hits) for k in (-1, 0, 1, 100, 101)] == [
        *(1, 1, 1, 100, 100),
    ]


def test_an_empty_scope_gives_an_empty_result(world: World) -> None:
    world.stage("doc", ["alpha"])
    for mode in ("hybrid", "text", "vector"):
        assert world.search("alpha", mode=mode).hits == ()


def test_a_passage_is_fetched_by_id_in_the_version_that_holds(world: World) -> None:
    world.publish("doc", ["kept text", "old text"])
    world.publish("doc", ["kept text", "new text"], valid_from=START + timedelta(days=1))
    kept = next(hit for hit in world.search("kept text").hits if hit.text == "kept text")
    fetch = world.retriever().passage
    reader = Principal("p")
    assert fetch(kept.passage_id, scope=world.scope, principal=reader).version == 2
    assert fetch(kept.passage_id, scope=world.scope, principal=reader, version=1).version == 1
    old = next(hit for hit in world.search("old text", as_of=START).hits if "old" in hit.text)
    assert fetch(old.passage_id, scope=world.scope, principal=reader).version == 1
    for wrong in ("nothing", "", "\0", "'"):
        with pytest.raises(NotFound):
            fetch(wrong, scope=world.scope, principal=reader)
    with world.pipeline() as conn:
        passages.set_audiences(conn, world.row("doc").document_key, ["board"])
    with pytest.raises(NotFound):
        fetch(kept.passage_id, scope=world.scope, principal=reader)


@pytest.mark.requirement("B-24")
def test_a_search_leaves_no_setting_behind(world: World) -> None:
    world.publish("doc", ["alpha"])
    shown = "select current_setting('app.scope', true), current_user, current_setting('work_mem')"
    with world.database.transaction("app") as conn:
        before = conn.execute(shown).fetchone()
    world.search("alpha")
    with world.database.transaction("app") as conn:
        assert conn.execute(shown).fetchone() == before
