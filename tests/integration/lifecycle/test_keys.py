"""Keys lead with the scope: one id in two scopes is two documents that know nothing of another."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from kb_resources.errors import KbError
from kb_resources.model import DocumentKey, Principal
from kb_resources.stages import removal
from kb_resources.stages.erase import Eraser
from kb_resources.stages.erase_files import ErasableFiles
from kb_resources.store.erasure_journal import ErasureJournal

if TYPE_CHECKING:
    from tests.integration.line.conftest import Bench

HERE = "# Leave\n\nEvery employee of the north has thirty days of paid annual leave in a year.\n"
THERE = "# Leave\n\nEvery employee of the south has twenty days of paid annual leave in a year.\n"
WHY = {"actor": "cli:ana", "reason": "a test"}
EVERYONE = Principal("cli:test", roles=frozenset({"system"}))
# What the seeds' documents and chunks had, by our names.
DOCUMENT = ("scope_id", "document_id", "audiences", "title", "source_kind", "source_uri", "origin",
            "state", "latest_version", "created_at", "updated_at")  # fmt: skip
PASSAGE = ("scope_id", "version_key", "passage_id", "ordinal", "text", "token_count", "language",
           "content_hash")  # fmt: skip


@pytest.fixture
def two(bench: Bench) -> tuple[DocumentKey, DocumentKey]:
    """The same id in two scopes, with other words."""
    here = bench.ingest("here.md", HERE, document_id="leave")
    there = bench.ingest("there.md", THERE, document_id="leave", scope="other")
    assert (here.document_id, there.document_id) == ("leave", "leave")
    return here, there


def says(bench: Bench, scope: str) -> list[str]:
    hits = bench.reader.search(
        "paid annual leave", scope=scope, principal=EVERYONE, k=8, mode="text", as_of=None,
        include_historical=False,
    ).hits  # fmt: skip
    return [re.findall("north|south|east", hit.text)[0] for hit in hits]


@pytest.mark.requirement("O-17")
def test_one_id_in_two_scopes_is_two_documents(
    bench: Bench, two: tuple[DocumentKey, DocumentKey]
) -> None:
    here, there = two
    assert (says(bench, "acme"), says(bench, "other")) == (["north"], ["south"])
    bench.ingest("here.md", HERE.replace("north", "east"), document_id="leave")
    assert (says(bench, "acme"), says(bench, "other")) == (["east"], ["south"])
    assert [v["version"] for v in bench.reader.history("leave", scope="other")] == [1]
    removal.remove(bench.line.capabilities, here, **WHY)
    assert (says(bench, "acme"), says(bench, "other")) == ([], ["south"])
    home = bench.settings.home
    eraser = Eraser(
        bench.line.capabilities,
        ErasureJournal(home / "erasures.jsonl"),
        ErasableFiles(home),
        dagster=lambda _what: {},
        scrub=lambda: "",
    )
    eraser.erase(here, **WHY)
    assert says(bench, "other") == ["south"]
    assert bench.state(there) == ("indexed", "")


_CALLS: dict[str, Callable[[Bench, DocumentKey], Any]] = {
    "document": lambda b, k: b.reader.document(k.document_id, scope=k.scope),
    "body": lambda b, k: b.reader.body(k.document_id, scope=k.scope, principal=EVERYONE),
    "outline": lambda b, k: b.reader.outline(k.document_id, scope=k.scope, principal=EVERYONE),
    "diff": lambda b, k: b.reader.diff(k.document_id, scope=k.scope, old=1, new=1),
    "remove": lambda b, k: removal.remove(b.line.capabilities, k, **WHY),
    "restore": lambda b, k: removal.restore(b.line.capabilities, k, **WHY),
    "audiences": lambda b, k: removal.set_audiences(b.line.capabilities, k, ["hr"], **WHY),
    "history": lambda b, k: b.reader.history(k.document_id, scope=k.scope),
    "intervals": lambda b, k: b.reader.intervals(k.document_id, scope=k.scope),
}


@pytest.mark.requirement("O-17", "B-27")
@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
def test_an_id_of_another_scope_is_answered_as_one_that_nobody_has(
    bench: Bench, call: Callable[[Bench, DocumentKey], Any]
) -> None:
    bench.ingest("here.md", HERE, document_id="payroll")
    bench.ingest("there.md", THERE, document_id="other-one", scope="other")

    def answer(document_id: str) -> tuple[Any, ...]:
        try:
            return ("value", repr(call(bench, DocumentKey("other", document_id))))
        except KbError as error:
            text = f"{error} {error.next_step}".replace(document_id, "ID")
            return (type(error), error.code, text)

    assert answer("payroll") == answer("nothing")
    assert answer("payroll")[0] != "value" or answer("payroll")[1] == "[]"


@pytest.mark.requirement("O-17")
def test_every_key_of_the_retrieval_tables_leads_to_one_scope(bench: Bench) -> None:
    """By the names callers use keys begin with the scope; inner keys are numbers nobody names."""
    with bench.line.capabilities.database.transaction("owner") as conn:
        found = {
            (str(table), tuple(columns))
            for table, columns in conn.execute(
                """
                select c.conrelid::regclass::text, array_agg(a.attname::text order by k.nth)
                from pg_constraint c cross join unnest(c.conkey) with ordinality k(num, nth)
                join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.num
                where c.contype in ('p', 'u') and c.connamespace = 'kb'::regnamespace
                group by c.oid
                """
            )
        }
    assert ("kb.document", ("scope_id", "document_id")) in found
    assert ("kb.passage", ("scope_id", "passage_id", "version_key")) in found
    named = {"document_id", "passage_id"}
    for table, columns in found:
        if named & set(columns):
            assert columns[0] in ("scope_id", "scope", "version_key"), (table, columns)


@pytest.mark.requirement("B-01")
def test_documents_and_passages_hold_what_the_seeds_tables_held(bench: Bench) -> None:
    key = bench.ingest("here.md", HERE, audiences=("hr",))
    with bench.line.capabilities.database.transaction("owner") as conn:
        row = conn.execute(
            f"select {', '.join(DOCUMENT)} from kb.document where document_id = %s",
            [key.document_id],
        ).fetchone()
        passage = conn.execute(
            f"select {', '.join(PASSAGE)}, (select count(*) from kb.embedding e join kb.model m "
            "using (model_key) where e.passage_key = p.passage_key and m.model_id <> ''), "
            "(select count(*) from kb.lex l where l.passage_key = p.passage_key), "
            "(select valid_from is not null and valid_until is null from kb.lex l "
            " where l.passage_key = p.passage_key) from kb.passage p",
        ).fetchone()
    assert row is not None
    held = dict(zip(DOCUMENT, row, strict=True))
    assert (held["audiences"], held["state"], held["latest_version"]) == (["hr"], "indexed", 1)
    assert held["source_uri"].endswith("here.md")
    assert passage is not None
    found = dict(zip(PASSAGE, passage[: len(PASSAGE)], strict=True))
    assert found["text"] in HERE
    assert found["token_count"] > 5
    assert found["ordinal"] == 0
    assert passage[len(PASSAGE) :] == (1, 1, True)
    assert bench.reader.document(key.document_id, scope="acme")["metadata"] is not None
