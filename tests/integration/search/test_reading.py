"""Reading in context: neighbours, outline, body and the making of a passage, and who sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from kb_resources.errors import InputError, NotFound, ScopeRequired
from kb_resources.lexical import ANALYZER_VERSION
from kb_resources.model import Principal, Verdict
from kb_resources.retrieve import (
    document_outline,
    document_text,
    explain_passage,
    highlight,
    passage_context,
)
from kb_resources.store.pool import Database

if TYPE_CHECKING:
    from tests.integration.search.conftest import World

READER = Principal("reader")
TEXTS = [f"Paragraph number {word} of the text" for word in ("one", "two", "три", "4 😀", "five")]
READS: list[Callable[..., Any]] = [passage_context, explain_passage]


def middle(world: World, query: str = "три", **values: Any) -> str:
    return str(world.search(query, mode="text", **values).hits[0].passage_id)


@pytest.mark.requirement("P-76")
def test_a_passage_stands_between_its_neighbours(world: World) -> None:
    world.publish("doc", TEXTS)
    found = passage_context(
        world.database, middle(world), scope=world.scope, principal=READER, before=1, after=9
    )
    assert [hit.text for hit in found.before] == [TEXTS[1]]
    assert found.passage.text == TEXTS[2]
    assert [hit.text for hit in found.after] == TEXTS[3:]
    assert found.link == f"/#/d/{world.scope}/doc?v=1&p={found.passage.passage_id}"


@pytest.mark.requirement("P-76", "P-29")
def test_the_link_leads_to_the_same_bytes(world: World) -> None:
    world.publish("doc", TEXTS)
    hit = passage_context(
        world.database, middle(world), scope=world.scope, principal=READER
    ).passage
    shown = document_text(
        world.database, hit.document_id, scope=world.scope, principal=READER, version=hit.version
    )
    [place] = [one for one in shown.passages if one.passage_id == hit.passage_id]
    assert shown.body.encode()[hit.byte_start : hit.byte_end].decode() == hit.text
    assert (place.byte_start, place.byte_end) == (hit.byte_start, hit.byte_end)
    for one in shown.passages:
        data = shown.body.encode()[one.byte_start : one.byte_end]
        assert shown.body[one.char_start : one.char_end] == data.decode()


@pytest.mark.requirement("P-76")
def test_neighbours_are_those_of_the_version_asked_for(world: World) -> None:
    world.publish("doc", TEXTS)
    passage_id = middle(world)
    world.publish("doc", ["A new beginning", TEXTS[2], "A new end"])
    seen = {
        version: [
            hit.text
            for hit in passage_context(
                world.database, passage_id, scope=world.scope, principal=READER, version=version
            ).before
        ]
        for version in (None, 1, 2)
    }
    assert seen == {None: ["A new beginning"], 1: TEXTS[:2], 2: ["A new beginning"]}


@pytest.mark.requirement("W-22")
def test_the_outline_names_every_passage(world: World) -> None:
    _, chunks = world.stage("doc", TEXTS)
    world.publish("doc", TEXTS)
    found = document_outline(world.database, "doc", scope=world.scope, principal=READER)
    assert found.passages(found.nodes[0].node_id) == tuple(one.passage_id for one in chunks)


def test_an_explanation_leads_from_bytes_to_vector(world: World) -> None:
    row, chunks = world.stage("doc", TEXTS)
    world.publish("doc", TEXTS)
    found = explain_passage(
        world.database, chunks[2].passage_id, scope=world.scope, principal=READER
    )
    assert (found.digest, found.version, found.verdict) == (row.digest, 1, "clean")
    assert found.token_count == chunks[2].token_count
    assert found.byte_span == (chunks[2].byte_start, chunks[2].byte_end)
    assert [(v.model_id, v.dimensions) for v in found.vectors] == [("tiny@1", 16)]
    assert found.analyzer == ANALYZER_VERSION
    words = {word for lexeme in found.lexemes for word in lexeme.words}
    assert {"Paragraph", "number", "три", "doc"} <= words
    assert all(lexeme.words for lexeme in found.lexemes)
    assert found.checks
    assert all(found.checks.values())


def test_an_explanation_tells_what_was_tampered_with(world: World) -> None:
    _, chunks = world.stage("doc", TEXTS)
    world.publish("doc", TEXTS)
    with world.database.transaction("owner") as conn:
        conn.execute("alter table kb.parsed disable trigger clearance")
        conn.execute(
            "update kb.parsed p set body = replace(body, 'three', 'x') || ' ' "
            "from kb.version v join kb.document d using (document_key) "
            "where p.version_key = v.version_key and v.scope_id = %s",
            [world.scope_id],
        )
        conn.execute("alter table kb.parsed enable trigger clearance")
    found = explain_passage(
        world.database, chunks[2].passage_id, scope=world.scope, principal=READER
    )
    assert not found.checks["body is the one the verdict was given for"]
    assert found.checks["text is a slice of the body"]


@pytest.mark.parametrize("read", READS)
def test_a_passage_of_another_audience_or_scope_is_not_there(
    world: World, read: Callable[..., Any]
) -> None:
    _, chunks = world.stage("doc", TEXTS, audiences=["hr"])
    world.publish("doc", TEXTS, audiences=["hr"])
    world.publish("open", ["Anything"])
    passage_id = chunks[0].passage_id
    holder = Principal("holder", frozenset({"hr"}))
    assert read(world.database, passage_id, scope=world.scope, principal=holder)
    outsider = Principal("outsider", frozenset({"hr"}), scopes=frozenset({"elsewhere"}))
    for principal in (READER, outsider):
        with pytest.raises(NotFound):
            read(world.database, passage_id, scope=world.scope, principal=principal)
    with pytest.raises(NotFound):
        read(world.database, "nope\0\ud800", scope=world.scope, principal=READER)
    with pytest.raises(ScopeRequired):
        read(world.database, passage_id, scope="", principal=holder)


@pytest.mark.parametrize("read", [document_outline, document_text])
def test_a_document_of_another_audience_or_scope_is_not_there(
    world: World, read: Callable[..., Any]
) -> None:
    world.publish("doc", TEXTS, audiences=["hr"])
    holder = Principal("holder", frozenset({"hr"}))
    assert read(world.database, "doc", scope=world.scope, principal=holder)
    for name in ("doc", "nope", "nope\0\ud800"):
        with pytest.raises(NotFound):
            read(world.database, name, scope=world.scope, principal=READER)
    with pytest.raises(NotFound):
        read(world.database, "doc", scope="elsewhere", principal=holder)


def test_what_the_gate_holds_back_cannot_be_read(world: World) -> None:
    world.stage("held", TEXTS, verdict=Verdict.QUARANTINE)
    for read in (document_outline, document_text):
        with pytest.raises(NotFound):
            read(world.database, "held", scope=world.scope, principal=READER)


def test_the_reading_role_learns_nothing_of_other_scopes_from_the_ledger(world: World) -> None:
    row, _ = world.stage("doc", TEXTS)
    world.publish("doc", TEXTS)
    database: Database = world.database
    with database.transaction("app", "elsewhere") as conn:
        assert conn.execute("select kb.explain_version(%s)", [row.version_key]).fetchone() == (
            None,
        )


@pytest.mark.parametrize(("before", "after"), [(-1, 0), (0, 51)])
def test_too_many_neighbours_are_refused(world: World, before: int, after: int) -> None:
    with pytest.raises(InputError, match="neighbours"):
        passage_context(
            world.database, "any", scope=world.scope, principal=READER, before=before, after=after
        )


def test_highlights_follow_the_index_into_other_forms(world: World) -> None:
    world.publish("doc", ["Nach Kündigungen des Vertrages gilt § 15."], language="de")
    query = "Kündigung eines Vertrags nach § 15"
    hits = world.search(query).hits
    [spans] = highlight(query, hits)
    assert [hits[0].text[s["start"] : s["end"]] for s in spans] == [
        "Kündigungen",
        "Vertrages",
        "§ 15",
    ]
