"""Kept citations: verified when kept, listed by holder, looked at again when documents change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kb.reader import Reader
from kb_resources.answer.citing import CitationStatus
from kb_resources.answer.keeping import Citations, KeptCitation
from kb_resources.errors import ConflictError, InputError, NotFound, PolicyError
from kb_resources.model import Principal
from kb_resources.retrieve import Hit
from kb_resources.stages.citations import recheck_citations
from tests.integration.search.conftest import START, World

WHO = Principal("test:ann")
RULE = "Annual leave is 25 working days."
TEXTS = [f"{RULE} Ask early.", "Sick notes are due on the third day of illness."]
LATER = START + timedelta(days=30)


def now() -> datetime:
    return datetime.now(UTC)


def keep(
    world: World, reader: Reader, quote: str = RULE, holder: str = "wiki/leave"
) -> KeptCitation:
    hits = reader.search(
        quote,
        scope=world.scope,
        principal=WHO,
        k=1,
        mode="text",
        as_of=None,
        include_historical=False,
    ).hits
    return reader.citations.keep(
        quote, hits[0].passage_id, scope=world.scope, principal=WHO, holder=holder
    )


def recheck(world: World) -> dict[str, int]:
    return recheck_citations(world.database, clock=now, scope=world.scope).turned


def status(world: World, reader: Reader) -> CitationStatus:
    (kept,) = reader.citations.kept(scope=world.scope, principal=WHO)
    return kept.status


def test_a_quote_is_kept_as_the_document_has_it(world: World, reader: Reader) -> None:
    world.publish("leave", TEXTS)
    kept = keep(world, reader, "Annual  leave is 25\u00a0working days.")
    assert kept.quotation.quote == RULE
    assert kept.status is CitationStatus.STANDS
    shown = kept.to_json()
    assert shown["selector"][1] == {"type": "TextPositionSelector", "start": 0, "end": len(RULE)}
    assert shown["deep_link"] == kept.quotation.link
    assert kept.created_by == "test:ann"


@pytest.mark.parametrize(
    ("quote", "code"),
    [
        ("Annual leave is 30 working days.", "quote_absent"),
        ("leave", "quote_too_short"),
        ("Annual leave is … Ask early.", "quote_stitched"),
    ],
)
def test_what_does_not_stand_is_not_kept(
    world: World, reader: Reader, quote: str, code: str
) -> None:
    world.publish("leave", TEXTS)
    passage = keep(world, reader).quotation.passage_id
    with pytest.raises(PolicyError) as caught:
        reader.citations.keep(quote, passage, scope=world.scope, principal=WHO, holder="wiki/leave")
    assert caught.value.code == code
    assert len(reader.citations.kept(scope=world.scope, principal=WHO)) == 1


@pytest.mark.parametrize("given", [{"holder": ""}, {"holder": "h" * 201}, {"note": "n" * 2001}])
def test_a_holder_or_note_that_does_not_fit_is_the_callers_to_mend(
    world: World, reader: Reader, given: dict[str, str]
) -> None:
    world.publish("leave", TEXTS)
    passage = keep(world, reader).quotation.passage_id
    with pytest.raises(InputError):
        reader.citations.keep(
            RULE, passage, scope=world.scope, principal=WHO, **{"holder": "wiki", **given}
        )


def test_citations_are_listed_by_holder_and_page(world: World, reader: Reader) -> None:
    world.publish("leave", TEXTS)
    first = keep(world, reader)
    second = keep(world, reader)
    other = keep(world, reader, TEXTS[1], holder="wiki/illness")

    def ids(**given: object) -> list[str]:
        found = reader.citations.kept(scope=world.scope, principal=WHO, **given)  # type: ignore[arg-type]
        return [kept.citation_id for kept in found]

    assert ids() == [first.citation_id, second.citation_id, other.citation_id]
    assert ids(holder="wiki/illness") == [other.citation_id]
    assert ids(limit=1) == [first.citation_id]
    assert ids(limit=1, after=first.citation_id) == [second.citation_id]
    assert ids(status="missing") == []
    reader.citations.drop(second.citation_id, scope=world.scope, principal=WHO)
    assert ids() == [first.citation_id, other.citation_id]


@pytest.mark.requirement("O-47")
def test_a_new_version_that_says_the_same_supersedes(world: World, reader: Reader) -> None:
    world.publish("leave", TEXTS)
    keep(world, reader)
    assert recheck(world) == {}
    world.publish("leave", [f"{RULE} Ask late."], valid_from=LATER)
    assert recheck(world) == {"superseded": 1}
    assert status(world, reader) is CitationStatus.SUPERSEDED
    assert recheck_citations(world.database, clock=now, scope=world.scope).checked == 0


@pytest.mark.requirement("O-47")
def test_words_that_stand_elsewhere_have_moved_and_come_back(world: World, reader: Reader) -> None:
    world.publish("leave", TEXTS)
    keep(world, reader)
    world.publish("leave", ["New first paragraph here.", *TEXTS], valid_from=LATER)
    assert recheck(world) == {"moved": 1}
    (kept,) = reader.citations.kept(scope=world.scope, principal=WHO)
    assert kept.version_now == 2
    assert kept.place is not None
    assert kept.place["body_start"] == len("New first paragraph here.\n\n")
    world.publish("leave", TEXTS, valid_from=LATER + timedelta(days=1))
    assert recheck(world) == {"stands": 1}


@pytest.mark.requirement("O-47")
def test_words_that_are_gone_are_missing(world: World, reader: Reader) -> None:
    world.publish("leave", TEXTS)
    keep(world, reader)
    world.publish("leave", ["Annual leave is 20 working days. Ask early."], valid_from=LATER)
    assert recheck(world) == {"missing": 1}


@pytest.mark.requirement("O-47")
def test_a_document_that_no_longer_holds_leaves_its_citations_missing(
    world: World, reader: Reader
) -> None:
    world.publish("leave", TEXTS)
    keep(world, reader)
    from kb_resources.store import passages

    with world.pipeline() as conn:
        passages.remove(conn, world.row("leave").document_key, now() - timedelta(seconds=1))
    assert recheck(world) == {"missing": 1}
    (kept,) = reader.citations.check(scope=world.scope, principal=WHO)
    assert (kept.status, kept.version_now) == (CitationStatus.MISSING, None)


@pytest.mark.requirement("O-47")
def test_erasure_takes_the_words_and_leaves_the_holder_knowing(
    world: World, reader: Reader
) -> None:
    world.publish("leave", TEXTS)
    kept = keep(world, reader)
    with world.pipeline() as conn:
        conn.execute("select kb.forget_answers(%s)", [world.row("leave").document_key])
    (left,) = reader.citations.kept(scope=world.scope, principal=WHO)
    assert left.citation_id == kept.citation_id
    assert left.status is CitationStatus.MISSING
    assert (left.quotation.quote, left.quotation.prefix, left.quotation.suffix) == ("", "", "")
    assert recheck_citations(world.database, clock=now, scope=world.scope).checked == 0


def test_who_may_not_read_a_document_sees_no_citation_of_it(world: World, reader: Reader) -> None:
    world.publish("memo", [f"{RULE} For the board."], audiences=["board"])
    member = Principal("test:eve", frozenset({"board"}))
    hit = world.search("annual leave", audiences=["board"]).hits[0]
    kept = reader.citations.keep(
        RULE, hit.passage_id, scope=world.scope, principal=member, holder="h"
    )
    assert reader.citations.kept(scope=world.scope, principal=WHO) == []
    with pytest.raises(NotFound):
        reader.citations.check(scope=world.scope, principal=WHO, citation_id=kept.citation_id)
    with pytest.raises(NotFound):
        reader.citations.drop(kept.citation_id, scope=world.scope, principal=WHO)
    with pytest.raises(NotFound):
        reader.citations.verify(RULE, hit.passage_id, scope=world.scope, principal=WHO)
    assert len(reader.citations.kept(scope=world.scope, principal=member)) == 1


def test_a_scope_sees_its_own_citations_only(world: World, reader: Reader) -> None:
    world.publish("leave", TEXTS)
    kept = keep(world, reader)
    other = f"{world.scope}-other"
    world.publish("leave", TEXTS, scope=other)
    assert reader.citations.kept(scope=other, principal=WHO) == []
    with pytest.raises(NotFound):
        reader.citations.check(scope=other, principal=WHO, citation_id=kept.citation_id)


def test_a_passage_that_was_cut_anew_meanwhile_is_searched_again(
    world: World, reader: Reader
) -> None:
    world.publish("leave", TEXTS)

    class Before:
        """Gives a passage as it was before its document was read anew."""

        def passage(self, *given: Any, **named: Any) -> Hit:
            hit = reader.retriever.passage(*given, **named)
            return replace(hit, char_start=hit.char_start + 1, char_end=hit.char_end + 1)

    passage_id = keep(world, reader).quotation.passage_id
    with pytest.raises(ConflictError) as caught:
        Citations(world.database, Before()).verify(
            RULE, passage_id, scope=world.scope, principal=WHO
        )
    assert (caught.value.code, caught.value.retryable) == ("changed_meanwhile", True)
