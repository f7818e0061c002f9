"""Publishing: one transaction, nothing embedded twice, no half version."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from kb_resources.errors import ConflictError, KbError
from kb_resources.store import passages, staging, vectors

from .conftest import DIM, START, World, chunks_of

DAY = timedelta(days=1)
OLD = ["Leave is 28 days a year.", "Ask your lead in time.", "Unused days are carried over."]
NEW = ["A new rule stands first.", *OLD[1:], "Leave is 30 days a year."]


def counts(world: World) -> tuple[int, ...]:
    """Rows of the scope in passage, lex, embedding, and what is left staged."""
    return world.ask(
        "select (select count(*) from kb.passage where scope_id = %(scope_id)s),"
        " (select count(*) from kb.lex where scope_id = %(scope_id)s),"
        " (select count(*) from kb.embedding where scope_id = %(scope_id)s),"
        " (select count(*) from kb.staged_chunk where scope_id = %(scope_id)s)"
        " + (select count(*) from kb.staged_vector join kb.version using (version_key)"
        "    where scope_id = %(scope_id)s)"
    )


def row_versions(world: World) -> tuple[str, ...]:
    """Physical identity of the scope's search and validity rows: changes with every write."""
    return world.ask(
        "select (select string_agg(xmin::text || ctid, ' ') from kb.lex"
        "    where scope_id = %(scope_id)s),"
        " (select string_agg(xmin::text || ctid, ' ') from kb.embedding"
        "    where scope_id = %(scope_id)s),"
        " (select string_agg(xmin::text || ctid, ' ') from kb.validity"
        "    where scope_id = %(scope_id)s)"
    )


def test_a_first_put_publishes_every_chunk_once_and_empties_the_staging(world: World) -> None:
    result = world.publish("leave", OLD)
    assert (result.state, result.passages, result.carried) == ("new", 3, 0)
    assert counts(world) == (3, 3, 3, 0)


@pytest.mark.requirement("O-11", "B-18")
def test_a_changed_document_embeds_only_its_new_texts(world: World) -> None:
    world.publish("leave", OLD)
    embedded = world.embedder.texts
    result = world.publish("leave", NEW, valid_from=START + DAY)
    assert world.embedder.texts - embedded == 2
    assert (result.state, result.passages, result.carried) == ("replaced", 4, 2)


def test_a_text_that_another_document_of_the_scope_holds_is_not_embedded_again(
    world: World,
) -> None:
    world.publish("leave", OLD, title="Leave")
    embedded = world.embedder.texts
    assert world.publish("copy", OLD, title="Leave").carried == 3
    assert world.embedder.texts == embedded


def test_vectors_do_not_cross_scopes(world: World) -> None:
    world.publish("leave", OLD)
    embedded = world.embedder.texts
    world.publish("leave", OLD, scope=f"{world.scope}-2")
    assert world.embedder.texts - embedded == 3


@pytest.mark.requirement("O-10")
def test_a_source_that_reverts_reinstates_its_old_version_without_new_vectors(
    world: World,
) -> None:
    world.publish("leave", OLD)
    world.publish("leave", NEW, valid_from=START + DAY)
    embedded, before = world.embedder.texts, counts(world)
    result = world.publish("leave", OLD, valid_from=START + 2 * DAY)
    assert (result.state, result.passages, result.carried) == ("reinstated", 3, 3)
    assert world.embedder.texts == embedded
    assert counts(world) == before
    assert [hit.version for hit in world.search("days a year").hits] == [1, 1, 1]


def test_as_of_finds_each_interval_of_a_reinstated_version(world: World) -> None:
    world.publish("leave", OLD)
    world.publish("leave", NEW, valid_from=START + DAY)
    world.publish("leave", OLD, valid_from=START + 2 * DAY)
    instant = timedelta(microseconds=1)
    expected = {
        START - instant: [],
        START: [(1, START, START + DAY)],
        START + DAY - instant: [(1, START, START + DAY)],
        START + DAY: [(2, START + DAY, START + 2 * DAY)],
        START + 2 * DAY - instant: [(2, START + DAY, START + 2 * DAY)],
        START + 2 * DAY: [(1, START + 2 * DAY, None)],
    }
    for mode in ("hybrid", "text", "vector"):
        for as_of, held in expected.items():
            hits = world.search("leave is days a year", as_of=as_of, mode=mode).hits
            assert sorted({(h.version, h.valid_from, h.valid_until) for h in hits}) == held


def test_a_second_put_of_the_same_version_changes_nothing(world: World) -> None:
    row, chunks = world.stage("leave", OLD)
    world.embed(row, chunks)
    world.put(row, chunks)
    before = row_versions(world)
    assert world.put(row, chunks).state == "unchanged"
    assert row_versions(world) == before


def test_other_cuts_of_the_same_version_replace_its_passages(world: World) -> None:
    world.publish("leave", ["One. Two.", "Three."])
    row, _ = world.stage("leave", ["One. Two.", "Three."])
    _, (first, *_) = chunks_of("leave", "leave", ["One. Two.", "Three."])
    with world.pipeline() as conn:
        staging.replace_chunks(conn, row, [first])
    world.embed(row, [first])
    assert world.put(row, [first]).state == "rebuilt"
    assert counts(world) == (1, 1, 1, 0)


def test_a_backdated_version_ends_those_that_would_follow_it(world: World) -> None:
    world.publish("leave", OLD, valid_from=START + DAY)
    world.publish("leave", NEW, valid_from=START)
    assert {h.version for h in world.search("days", as_of=START + 2 * DAY).hits} == {2}
    historical = world.search("days", include_historical=True).hits
    assert {h.version for h in historical} == {1, 2}


def test_a_future_version_waits_for_its_day(world: World) -> None:
    world.publish("leave", OLD)
    world.publish("leave", NEW, valid_from=START + 36500 * DAY)
    assert {h.version for h in world.search("days a year").hits} == {1}


def test_a_chunk_without_a_vector_stops_the_put_and_leaves_the_old_version(world: World) -> None:
    world.publish("leave", OLD)
    row, chunks = world.stage("leave", NEW)
    with pytest.raises(ConflictError, match="without a vector") as caught:
        world.put(row, chunks)
    assert "embed stage" in caught.value.next_step
    assert world.search("leave 28 days").hits[0].version == 1


def test_a_put_with_nothing_staged_is_refused(world: World) -> None:
    row, _ = world.stage("leave", OLD)
    with world.pipeline() as conn:
        staging.replace_chunks(conn, row, [])
    with pytest.raises(ConflictError, match="no staged chunks"):
        world.put(row, [])


def test_lexical_rows_that_do_not_fit_the_chunks_are_refused(world: World) -> None:
    row, chunks = world.stage("leave", OLD)
    world.embed(row, chunks)
    with pytest.raises(ConflictError, match="lexical rows"):
        world.put(row, chunks[:-1])


def test_another_analyzer_than_the_scopes_is_refused(world: World) -> None:
    world.publish("leave", OLD)
    row, chunks = world.stage("other", OLD)
    world.embed(row, chunks)
    lexical = [passages.LexicalRow(c.ordinal, {1: 1.0}, 1.0, "kb-0/other") for c in chunks]
    with pytest.raises(ConflictError, match="another analyzer"), world.pipeline() as conn:
        passages.put_version(
            conn,
            row.version_key or 0,
            valid_from=START,
            audiences=[],
            lexical=lexical,
            model_id=vectors.model_key(conn, "tiny@1"),
        )


@pytest.mark.requirement("O-20")
def test_racing_puts_of_one_document_leave_one_current_version_and_no_mixture(
    world: World,
) -> None:
    texts = {1: ["common start", "text of one"], 2: ["common start", "text of two", "and more"]}
    staged = {}
    for number in (1, 2):
        staged[number] = world.stage("race", texts[number])
        world.embed(*staged[number])
    barrier = threading.Barrier(2)
    seen: list[set[int]] = []
    errors: list[KbError] = []

    def put(number: int) -> None:
        row, chunks = staged[number]
        for turn in range(10):
            barrier.wait()
            try:
                world.put(row, chunks, valid_from=START + timedelta(seconds=2 * turn + number))
                world.embed(row, chunks)
            except KbError as error:
                errors.append(error)
            seen.append({hit.version for hit in world.search("common start text").hits})

    workers = [threading.Thread(target=put, args=(number,)) for number in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors
    assert all(len(versions) <= 1 for versions in seen)
    current = world.ask(
        "select count(*) from kb.validity where scope_id = %(scope_id)s"
        " and upper_inf(valid) and upper_inf(known)"
    )
    drifted = world.ask(
        "select count(*) from kb.passage p join kb.lex l using (passage_key)"
        " join kb.embedding e using (passage_key), lateral kb.version_intervals(p.version_key) i"
        " where p.scope_id = %(scope_id)s and ("
        "  (l.valid_from, l.valid_until, l.earlier) is distinct from"
        "    (i.valid_from, i.valid_until, i.earlier)"
        "  or (e.valid_from, e.valid_until, e.earlier) is distinct from"
        "    (i.valid_from, i.valid_until, i.earlier))"
    )
    assert current == (1,)
    assert drifted == (0,)


@pytest.mark.requirement("O-13")
def test_audiences_change_for_all_versions_on_the_next_query_without_embedding(
    world: World,
) -> None:
    world.publish("leave", OLD)
    world.publish("leave", NEW, valid_from=START + DAY)
    embedded = world.embedder.texts
    key = world.row("leave").document_key
    with world.pipeline() as conn:
        passages.set_audiences(conn, key, ["board"])
    assert world.found("days a year") == []
    assert world.found("days a year", as_of=START) == []
    assert world.found("days a year", audiences=["board"])
    assert world.found("days a year", audiences=["board"], as_of=START)
    assert world.embedder.texts == embedded


def test_audiences_written_to_the_ledger_alone_reach_the_search_rows(world: World) -> None:
    world.publish("leave", OLD)
    with world.pipeline() as conn:
        conn.execute(
            "update kb.document set audiences = '{board}' where document_key = %s",
            [world.row("leave").document_key],
        )
    assert world.found("days a year") == []


def test_a_removed_document_leaves_search_and_keeps_its_history(world: World) -> None:
    world.publish("leave", OLD)
    key = world.row("leave").document_key
    with world.pipeline() as conn:
        assert passages.remove(conn, key, START + DAY)
    assert world.found("days a year") == []
    assert world.found("days a year", as_of=START) == ["leave"] * 3
    assert world.found("days a year", include_historical=True) == ["leave"] * 3
    with world.pipeline() as conn:
        assert not passages.remove(conn, key, START + 2 * DAY)
    assert world.publish("leave", OLD, valid_from=START + 3 * DAY).state == "reinstated"
    assert world.found("days a year") == ["leave"] * 3


def test_erasing_the_document_leaves_no_row(world: World) -> None:
    world.publish("leave", OLD)
    key = world.row("leave").document_key
    with world.database.transaction("owner") as conn:
        conn.execute("delete from kb.document where document_key = %s", [key])
    assert counts(world) == (0, 0, 0, 0)


@pytest.mark.requirement("B-17")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda v: v[:-1],
        lambda v: v[:, :-1],
        lambda v: v * 1.1,
        lambda v: v * float("nan"),
        lambda v: v * 0,
        lambda v: v[0],
    ],
    ids=["short", "narrow", "long norm", "nan", "zero", "flat"],
)
def test_bad_vectors_are_refused_before_a_write(world: World, spoil) -> None:
    row, _ = world.stage("leave", OLD)
    with world.pipeline() as conn:
        model = vectors.ensure_model(conn, "tiny@1", DIM)
        hashes = vectors.stage_known(conn, row.version_key or 0, model)
        good = world.embedder.embed(hashes, "passage")
        with pytest.raises(KbError, match="embedder gave"):
            vectors.stage_vectors(conn, row.version_key or 0, model, hashes, spoil(good))
        vectors.stage_vectors(conn, row.version_key or 0, model, hashes, good)
        assert vectors.stage_known(conn, row.version_key or 0, model) == []


def test_a_model_keeps_its_number_of_dimensions(world: World) -> None:
    with world.pipeline() as conn:
        assert vectors.ensure_model(conn, "tiny@1", DIM) == vectors.ensure_model(
            conn, "tiny@1", DIM
        )
        with pytest.raises(KbError, match="dimensions"):
            vectors.ensure_model(conn, "tiny@1", DIM + 1)


def test_vectors_arrive_as_they_were_given(world: World) -> None:
    world.publish("leave", OLD)
    expected = world.embedder.embed([f"leave\n{text}" for text in OLD], "passage")
    (rows,) = world.ask(
        "select array_agg(e.vec::real[] order by p.ordinal)"
        " from kb.embedding e join kb.passage p using (passage_key)"
        " where p.scope_id = %(scope_id)s"
    )
    for stored, vector in zip(rows, expected, strict=True):
        assert stored == pytest.approx(vector.tolist(), abs=1e-3)


def test_known_hashes_are_those_of_the_scope(world: World) -> None:
    row, chunks = world.stage("leave", OLD)
    world.embed(row, chunks)
    hashes = [chunk.embed_hash for chunk in chunks]
    with world.pipeline() as conn:
        model = vectors.ensure_model(conn, "tiny@1", DIM)
        assert vectors.known_hashes(conn, row.scope_id, model, [*hashes, "0" * 64]) == set(hashes)
        assert vectors.known_hashes(conn, row.scope_id + 1, model, hashes) == set()


def test_statistics_follow_the_scope(world: World) -> None:
    for number in range(40):
        world.publish(f"d{number}", [f"common word{number}"], with_vectors=False)
    counted, live = world.ask(
        "select counted, passages from kb.lexicon where scope_id = %(scope_id)s"
    )
    assert live == 40
    assert 30 < counted <= 40
    assert world.ask("select max(df) from kb.term where scope_id = %(scope_id)s") == (counted,)


def test_a_transaction_that_fails_after_the_put_leaves_nothing(world: World) -> None:
    world.publish("leave", OLD)
    row, chunks = world.stage("leave", NEW)
    world.embed(row, chunks)
    before = counts(world)

    def put_then_fail() -> None:
        with world.pipeline() as conn:
            world.put(row, chunks, valid_from=START + DAY, conn=conn)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        put_then_fail()
    assert counts(world) == before
    assert {hit.version for hit in world.search("leave days").hits} == {1}
