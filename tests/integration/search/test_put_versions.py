"""Several versions in one call: each as it would be alone, one that fails alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kb_resources.errors import ConflictError, KbError, NotFound, PolicyError, UnavailableError
from kb_resources.lexical import ANALYZER_VERSION, analyze
from kb_resources.model import Chunk
from kb_resources.store import passages, vectors
from kb_resources.store.documents import DocumentRow
from kb_resources.store.passages import LexicalRow, PutResult, VersionPut

from .conftest import START, World

TEXTS = {
    "leave": ["Leave is 28 days a year.", "Ask your lead in time."],
    "travel": ["Trains are paid for.", "Planes are not.", "Keep the receipts."],
    "keys": ["Keys are handed in at the desk."],
}


def rows(chunks: Sequence[Chunk], language: str = "en") -> list[LexicalRow]:
    """What the analyzer makes of the chunks."""
    found = [(c.ordinal, analyze(c.text, language, context=c.context)) for c in chunks]
    return [LexicalRow(at, made.terms, made.length, ANALYZER_VERSION) for at, made in found]


def given(world: World, row: DocumentRow, chunks: Sequence[Chunk], **other: object) -> VersionPut:
    """A put of staged chunks, with values of its own where the test names them."""
    with world.pipeline() as conn:
        model = vectors.model_key(conn, world.embedder.model_id)
    values: dict[str, Any] = {
        "version_key": row.version_key,
        "valid_from": START,
        "audiences": row.audiences,
        "lexical": rows(chunks),
        "model_id": model,
    }
    return VersionPut(**(values | other))


def staged(world: World, scope: str, prefix: str = "") -> list[VersionPut]:
    """Puts of all texts, embedded, in one scope."""
    made = []
    for name, texts in TEXTS.items():
        audience = ["board", "staff"] if name == "travel" else []
        row, chunks = world.stage(prefix + name, texts, scope=scope, audiences=audience)
        world.embed(row, chunks)
        made.append(given(world, row, chunks))
    return made


def published(world: World, scope: str) -> list[Any]:
    """All that search reads of a scope, by document and place."""
    with world.pipeline() as conn:
        return conn.execute(
            "select d.document_id, p.ordinal, p.text, l.audiences, l.valid_from, l.valid_until,"
            " l.bm::text, (select array_agg(kb.scoped_key(p.scope_id, k)) from unnest(l.keys) k),"
            " e.vec::text from kb.passage p join kb.lex l using (passage_key)"
            " join kb.embedding e using (passage_key) join kb.version v using (version_key)"
            " join kb.document d using (document_key) join kb.scope s on s.scope_id = p.scope_id"
            " where s.name = %s order by 1, 2",
            [scope],
        ).fetchall()


@pytest.mark.requirement("O-20")
def test_several_at_once_leave_the_rows_that_one_after_the_other_leave(world: World) -> None:
    alone, together = f"{world.scope}-alone", f"{world.scope}-together"
    single = []
    for put in staged(world, alone):
        with world.pipeline() as conn:
            single.append(
                passages.put_version(
                    conn,
                    put.version_key,
                    valid_from=put.valid_from,
                    audiences=put.audiences,
                    lexical=put.lexical,
                    model_id=put.model_id,
                )
            )
    many = staged(world, together)
    with world.pipeline() as conn:
        assert passages.put_versions(conn, many) == single
    assert published(world, together) == published(world, alone) != []
    with world.pipeline() as conn:
        again = passages.put_versions(conn, many)
    assert [result.state for result in again if isinstance(result, PutResult)] == ["unchanged"] * 3


@pytest.mark.requirement("P-03", "O-20")
def test_what_fails_is_reported_and_leaves_nothing_while_the_others_go_on(world: World) -> None:
    good = staged(world, world.scope)
    unseen, cut = world.stage("unseen", ["Nobody looked."], verdict=None)
    short, chunks = world.stage("short", ["One row.", "Two rows."])
    world.embed(short, chunks)
    bare, lone = world.stage("bare", ["No vector."])
    puts = [
        given(world, unseen, cut),
        good[0],
        given(world, short, chunks[:1]),
        good[1],
        given(world, bare, lone),
        given(world, bare, lone, version_key=10**12),
        good[2],
    ]
    with world.pipeline() as conn:
        results = passages.put_versions(conn, puts)
    kinds = [type(result) for result in results]
    assert kinds == [
        *(PolicyError, PutResult, ConflictError, PutResult, ConflictError, NotFound, PutResult)
    ]
    assert [str(r) for r in results if isinstance(r, KbError)] == [
        str(refusal(world, put)) for put, kind in zip(puts, kinds, strict=True) if kind != PutResult
    ]
    assert {row[0] for row in published(world, world.scope)} == set(TEXTS)


def refusal(world: World, put: VersionPut) -> KbError:
    """What the put is refused with alone."""
    with pytest.raises(KbError) as caught, world.pipeline() as conn:
        passages.put_version(
            conn,
            put.version_key,
            valid_from=put.valid_from,
            audiences=put.audiences,
            lexical=put.lexical,
            model_id=put.model_id,
        )
    return caught.value


def test_scopes_may_be_mixed_and_none_may_be_given(world: World) -> None:
    here, there = world.scope, f"{world.scope}-there"
    puts = [
        put for pair in zip(staged(world, here), staged(world, there), strict=True) for put in pair
    ]
    with world.pipeline() as conn:
        assert passages.put_versions(conn, []) == []
        assert [type(result) for result in passages.put_versions(conn, puts)] == [PutResult] * 6
    assert published(world, here) == published(world, there)
    for scope in (here, there):
        assert world.search("keys at the desk", scope=scope).hits[0].document_id == "keys"


def test_a_full_disk_ends_the_call_and_is_no_outcome_of_a_document(world: World) -> None:
    puts = staged(world, world.scope)
    with world.database.transaction("owner") as conn:
        conn.execute(
            "create function kb.full_disk() returns trigger language plpgsql as"
            " $$ begin raise 'no space left' using errcode = '53100'; end $$;"
            "create trigger full_disk before insert on kb.passage execute function kb.full_disk()"
        )
    try:
        with pytest.raises(UnavailableError) as caught, world.pipeline() as conn:
            passages.put_versions(conn, puts)
    finally:
        with world.database.transaction("owner") as conn:
            conn.execute("drop function kb.full_disk cascade")
    assert caught.value.code == "disk_full"
    assert published(world, world.scope) == []
