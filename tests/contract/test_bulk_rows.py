"""Rows that reach Postgres by the thousand: sent in binary, and checked as sets."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.errors import InputError, IntegrityError
from kb_resources.store import passages, publishing, vectors, versions
from kb_resources.store.passages import LexicalRow
from kb_resources.store.pool import Database, Role

from .conftest import edition

_SCOPE = 7
_ROWS = """
    select g.nth, g.bm::text, k.keys[coalesce(k.ends[g.nth - 1], 0) + 1 : k.ends[g.nth]]
    from (select %(bm)s::sparsevec[] as bm, %(ends)s::int[] as ends, %(keys)s::int[] as keys) k
    cross join unnest(k.bm) with ordinality g (bm, nth) order by g.nth
"""


def _literal(row: LexicalRow, average: float) -> str:
    norm = passages.K1 * (1 - passages.B + passages.B * row.length / average)
    weights = {
        lexeme: float(f"{count * (passages.K1 + 1) / (count + norm):.5g}")
        for lexeme, count in sorted(row.terms.items())
    }
    parts = (f"{lexeme}:{weight}" for lexeme, weight in weights.items())
    return f"{{{','.join(parts)}}}/{passages.DIMENSIONS}"


terms = st.dictionaries(
    st.integers(1, passages.DIMENSIONS),
    st.one_of(st.integers(1, 500).map(float), st.integers(1, 500).map(lambda n: n + 0.5)),
    max_size=12,
)


@given(st.lists(terms, max_size=5), st.floats(1, 900))
def test_lexical_rows_in_binary_are_what_their_literals_say(
    contract_database: Database, rows: list[dict[int, float]], average: float
) -> None:
    lexical = [LexicalRow(n, each, math.fsum(each.values()), "x") for n, each in enumerate(rows)]
    with contract_database.transaction("pipeline") as conn:
        mask, oid = conn.execute(
            "select kb.scoped_key(%s, 0), 'sparsevec'::regtype::oid::bigint", [_SCOPE]
        ).fetchone()
        arrays = passages.lexical_arrays(lexical, average, key_mask=mask, sparsevec_oid=oid)
        found = conn.execute(
            _ROWS, {"bm": arrays.weights, "ends": arrays.ends, "keys": arrays.keys}
        ).fetchall()
        for (_, weights, keys), row in zip(found, lexical, strict=True):
            wanted = conn.execute(
                "select %s::sparsevec::text, array(select kb.scoped_key(%s, x)"
                " from unnest(%s::int[]) x)",
                [_literal(row, average), _SCOPE, sorted(row.terms)],
            ).fetchone()
            assert (weights, keys) == wanted


def test_the_scans_input_of_what_a_caller_brings_is_its_body_stored_once(make_store: Any) -> None:
    store, _, database = make_store("postgres")
    store.scopes.create("input-once")
    store.put(edition("leave", "Leave is granted."), scope="input-once")
    with database.transaction("pipeline") as conn:
        [(key, raw)] = conn.execute(
            "select version_key, raw_text from kb.extraction join kb.scope using (scope_id)"
            " where name = 'input-once'"
        ).fetchall()
        assert raw is None
        assert versions.load_extraction(conn, key) == ("Leave is granted.", ())


@pytest.mark.requirement("B-17")
@pytest.mark.parametrize("other", [0, 1_000_000], ids=["another size", "no model"])
def test_a_vector_of_another_size_or_of_no_model_enters_nowhere(
    make_store: Any, other: int
) -> None:
    store, _, database = make_store("postgres")
    scope = f"sizes-{other}"
    store.scopes.create(scope)
    store.put(edition("leave", "Leave.", vectors=False), scope=scope)
    row = (
        "insert into kb.embedding (model_key, passage_key, scope_id, valid_from, audiences, vec)"
        " select m.model_key + %s, p.passage_key, p.scope_id, now(), '{}', '[1,0]'"
        " from kb.passage p join kb.scope using (scope_id), kb.model m where name = %s"
    )
    with pytest.raises(InputError, match="dimensions") as caught:
        _run(database, "pipeline", row, [other, scope])
    assert caught.value.code == "embedding_invalid"
    assert store.work("leave", scope=scope).waiting == 1


def test_headings_come_back_whatever_signs_they_hold(make_store: Any) -> None:
    store, _, _ = make_store("postgres")
    store.scopes.create("odd-headings")
    paths = [
        ("a,b", "{c}", "", " "),
        ('"quoted"', "back\\slash", "\\"),
        ("tab\there", "line\nbreak\r", "\\N", "NULL"),
        ("§ 5 „Straße“", "слово 😀"),
        (),
    ]
    texts = [f"Text {n}." for n in range(len(paths))]
    store.put(edition("odd", *texts, headings=paths), scope="odd-headings")
    found = store.passages("odd", scope="odd-headings")
    assert [each.section_titles for each in found] == paths


def test_a_vector_the_scope_has_comes_before_one_that_is_given(make_store: Any) -> None:
    store, _, database = make_store("postgres")
    store.scopes.create("given-vectors")
    units = np.eye(8, dtype=np.float32)
    for number, texts in enumerate((("Shared.", "First."), ("Shared.", "Twice.", "Twice."))):
        made = edition(f"doc{number}", *texts, title="Law", vectors=False)
        held = {chunk.embed_hash: units[2 * number] for chunk in made.chunks}
        held[made.chunks[1].embed_hash] = units[2 * number + 1]
        store.put(replace(made, vectors=held), scope="given-vectors")
    with database.transaction("pipeline") as conn:
        found = conn.execute(
            "select p.passage_id, p.text, e.vec::text from kb.embedding e"
            " join kb.passage p using (passage_key) join kb.scope s on s.scope_id = p.scope_id"
            " where s.name = 'given-vectors' order by p.version_key, p.ordinal"
        ).fetchall()
        assert conn.execute("select count(*) from kb.staged_vector").fetchone() == (0,)
    assert [(text, vector.index("1") // 2) for _, text, vector in found] == [
        ("Shared.", 0),
        ("First.", 1),
        ("Shared.", 0),
        ("Twice.", 3),
        ("Twice.", 3),
    ]


def test_words_of_many_chunks_are_taken_apart_aside_and_are_the_same(
    make_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _, database = make_store("postgres")
    threads: list[str] = []
    made = publishing.lexical_rows

    def watched(*given: Any) -> Any:
        threads.append(threading.current_thread().name.partition("_")[0])
        return made(*given)

    monkeypatch.setattr(publishing, "lexical_rows", watched)
    texts = [f"Clause {n}. Leave of {n} days, x{n}y." for n in range(20)]
    for scope, least in (("words-here", 21), ("words-aside", 20)):
        monkeypatch.setattr(publishing, "ASIDE", least)
        store.scopes.create(scope)
        store.put(edition("leave", *texts), scope=scope)
    assert threads == [threading.current_thread().name, "kb-words"]
    query = (
        "select p.ordinal, l.bm::text from kb.lex l join kb.passage p using (passage_key)"
        " join kb.scope s on s.scope_id = p.scope_id where s.name = %s order by p.ordinal"
    )
    with database.transaction("pipeline") as conn:
        here, aside = (
            conn.execute(query, [name]).fetchall() for name in ("words-here", "words-aside")
        )
    assert here == aside
    assert len(here) == len(texts)


def test_a_fault_in_the_words_taken_apart_aside_writes_nothing(
    make_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _, _ = make_store("postgres")
    store.scopes.create("words-fail")

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(publishing, "ASIDE", 1)
    monkeypatch.setattr(publishing, "lexical_rows", broken)
    with pytest.raises(ZeroDivisionError):
        store.put(edition("leave", "Leave."), scope="words-fail")
    assert store.count(scope="words-fail") == (0, 0)
    assert store.get("leave", scope="words-fail") is None


@pytest.mark.requirement("B-17")
def test_a_vector_staged_anew_takes_the_place_of_the_one_before(make_store: Any) -> None:
    store, _, database = make_store("postgres")
    store.scopes.create("staged-anew")
    leave = edition("leave", "Leave.", "Pay.", vectors=False)
    store.put(leave, scope="staged-anew")
    hashes = [chunk.embed_hash for chunk in leave.chunks]
    with database.transaction("pipeline") as conn:
        [(key,)] = conn.execute(
            "select version_key from kb.version join kb.scope using (scope_id)"
            " where scope.name = 'staged-anew'"
        ).fetchall()
        model = vectors.ensure_model(conn, "tiny@1", 8)
        units = np.eye(8, dtype=np.float32)
        vectors.stage_vectors(conn, key, model, hashes[:1], units[:1])
        vectors.stage_vectors(conn, key, model, hashes, units[1:3])
        staged = conn.execute(
            "select embed_hash, vec::text from kb.staged_vector where version_key = %s", [key]
        ).fetchall()
    assert dict(staged) == {
        hashes[0]: "[0,1,0,0,0,0,0,0]",
        hashes[1]: "[0,0,1,0,0,0,0,0]",
    }


def test_a_model_with_vectors_stays(make_store: Any) -> None:
    store, _, database = make_store("postgres")
    store.scopes.create("models-stay")
    store.put(edition("leave", "Leave."), scope="models-stay")
    with pytest.raises(IntegrityError, match="has vectors"):
        _run(database, "owner", "delete from kb.model where model_id = 'tiny@1'")


def test_a_model_without_vectors_can_go(make_store: Any) -> None:
    _, _, database = make_store("postgres")
    _run(database, "owner", "insert into kb.model (model_id, dim) values ('unused@1', 8)")
    assert _run(database, "owner", "delete from kb.model where model_id = 'unused@1'") == 1


def _run(database: Database, role: Role, statement: str, given: Any = None) -> int:
    with database.transaction(role) as conn:
        return conn.execute(statement, given).rowcount
