"""What the reference systems' own tests prove and no other suite here names: one test each.

Numbers in brackets: the list of behaviours in the requirements, appendix B. Those of the stores are
in `test_scopes`, `test_publishing`, `test_refusals`, `test_reading`, `test_searching`, `test_work`
and `test_events`; at the edges (people, files, times) in `test_seed_edges`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from kb_resources.acquire.sniff import sniff
from kb_resources.chunk import ChunkOptions, EstimateCounter, chunk_document, preset
from kb_resources.errors import InputError
from kb_resources.model import Block, ParsedDocument, Refusal
from kb_resources.parse import parse_here
from kb_resources.retrieve.outline import tree
from kb_resources.store.pool import Database


def text_document(text: str, title: str = "T") -> ParsedDocument:
    block = Block("paragraph", text, 0, len(text.encode()), 0, len(text))
    return ParsedDocument(title, "text/plain", text, (block,) if text else ())


def chunked(text: str, **options: Any) -> list[Any]:
    chosen = ChunkOptions(**{"strategy": "flat", "max_tokens": 512, **options})
    return list(
        chunk_document(
            text_document(text), document_id="d", counter=EstimateCounter(), options=chosen
        )
    )


def parsed(text: str, media_type: str, name: str) -> ParsedDocument:
    found = parse_here(text.encode(), media_type, name)
    assert isinstance(found, ParsedDocument)
    return found


@pytest.mark.requirement("B-10")
def test_1_empty_text_gives_nothing_and_short_text_one_chunk_of_a_quarter_its_length() -> None:
    assert chunked("") == []
    [one] = chunked("Thirty days of leave.")
    assert one.text == "Thirty days of leave."
    assert one.token_count == -(-len(one.context + "\n" + one.text) // 4)


@pytest.mark.requirement("B-10")
@pytest.mark.parametrize("gap", ["\n\n", "\n", ". ", " "])
def test_2_cuts_prefer_paragraph_line_sentence_word(gap: str) -> None:
    head = "x" * 150
    for worse in ("\n\n", "\n", ". ", " ")[("\n\n", "\n", ". ", " ").index(gap) + 1 :]:
        text = f"{head}{gap}Y{'y' * 20}{worse}Z{'z' * 200}"
        assert chunked(text, size_chars=200)[0].text == f"{head}{gap}".rstrip()


@pytest.mark.requirement("B-10")
def test_3_text_without_a_break_is_cut_hard() -> None:
    pieces = chunked("x" * 1000, size_chars=200)
    assert [len(piece.text) for piece in pieces] == [200] * 5


@pytest.mark.requirement("B-10")
@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_4_line_ends_of_all_kinds_become_one(end: str) -> None:
    found = parsed(f"One line.{end}{end}Another line.{end}", "text/plain", "a.txt")
    assert found.body == "One line.\n\nAnother line."


@pytest.mark.requirement("B-10", "W-12")
@pytest.mark.parametrize(
    "values",
    [
        {"size_chars": 0},
        {"overlap_tokens": 512},
        {"overlap_tokens": 600},
        {"overlap_tokens": -1},
        {"max_tokens": 0},
    ],
)
def test_5_sizes_and_overlaps_out_of_range_are_refused(values: dict[str, int]) -> None:
    """[5, 74] What is refused cannot loop for ever."""
    with pytest.raises(InputError):
        chunked("Some text.", **values)


@pytest.mark.requirement("B-10")
def test_6_an_overlap_begins_at_a_word() -> None:
    text = " ".join(f"word{n}" for n in range(400))
    pieces = chunked(text, size_chars=300, overlap_tokens=20)
    for before, piece in pairwise(pieces):
        repeated = text[piece.char_start : before.char_end]
        assert repeated
        assert text[piece.char_start - 1] == " "
        assert before.text.endswith(repeated)


@pytest.mark.requirement("B-20")
def test_8_what_cannot_be_read_is_refused_by_type_and_reason() -> None:
    found = parse_here(b"\x00\x01\x02\x03" * 50, "application/x-unknown", "a.bin")
    assert isinstance(found, Refusal)
    assert found.state == "unsupported"
    assert found.reason


@pytest.mark.requirement("B-20")
def test_10_and_73_the_title_is_the_documents_own_else_the_files_name() -> None:
    assert parsed("Only words here.", "text/plain", "Leave policy.txt").title == "Leave policy"
    assert parsed("# The policy\n\nWords.", "text/markdown", "x.md").title == "The policy"
    html = "<html><head><title>Titled</title></head><body><p>Words.</p></body></html>"
    assert parsed(html, "text/html", "x.html").title == "Titled"


@pytest.mark.requirement("B-07")
def test_31_what_writes_verdicts_and_vectors_is_not_for_the_reading_role(
    contract_database: Database,
) -> None:
    functions = (
        "kb.record_verdict", "kb.decide_review", "kb.announce", "kb.write_event",
    )  # fmt: skip
    with contract_database.transaction("owner") as conn:
        open_to_all = conn.execute(
            "select p.oid::regproc::text from pg_proc p, pg_roles r"
            " where p.oid = any (select unnest(%s::text[])::regproc) and r.rolname = 'kb_app'"
            " and has_function_privilege(r.oid, p.oid, 'execute')",
            [list(functions)],
        ).fetchall()
        writable = conn.execute(
            "select table_name, privilege_type from information_schema.role_table_grants"
            " where grantee = 'kb_app' and table_schema = 'kb' and privilege_type <> 'SELECT'"
            " and table_name in ('passage', 'lex', 'embedding', 'staged_vector', 'document',"
            " 'version', 'event', 'delivery', 'consumer', 'embed_work', 'scope')"
        ).fetchall()
    assert open_to_all == []
    assert writable == []


@pytest.mark.requirement("O-19")
def test_32_search_runs_with_the_rights_of_who_asks(contract_database: Database) -> None:
    with contract_database.transaction("owner") as conn:
        rows = conn.execute(
            "select proname, prosecdef from pg_proc"
            " where pronamespace = 'kb'::regnamespace and proname in ('search', 'nearest_indexed')"
        ).fetchall()
    assert dict(rows) == {"search": False, "nearest_indexed": False}


@pytest.mark.requirement("O-19")
def test_without_a_scope_filter_row_level_security_shows_no_foreign_row(make_store: Any) -> None:
    from .conftest import edition

    store, _, database = make_store("postgres")
    for name in ("rls-ours", "rls-theirs"):
        store.scopes.create(name)
        store.put(edition("leave", f"Text of {name}."), scope=name)
        store.put(edition("late", f"More of {name}.", vectors=False), scope=name)
    tables = ("document", "version", "validity", "passage", "lex", "embedding", "embed_work")
    with database.transaction("pipeline") as conn:
        ours = store.scopes.get("rls-ours")
        assert ours.name == "rls-ours"
        [scope_id] = conn.execute(
            "select scope_id from kb.scope where name = 'rls-ours'"
        ).fetchone()
    for scope, expected in (("rls-ours", {scope_id}), (None, set())):
        with database.transaction("app", scope) as conn:
            for table in tables:
                rows = conn.execute(f"select distinct scope_id from kb.{table}").fetchall()
                assert {row[0] for row in rows} == expected, (table, scope)


def test_34_a_search_leaves_the_callers_settings_as_they_were(make_store: Any) -> None:
    from kb_resources.store import search
    from kb_resources.store.search import SearchQuery

    from .conftest import START, edition, vector_of

    store, _, database = make_store("postgres")
    store.scopes.create("settings-kept")
    store.put(edition("leave", "Leave."), scope="settings-kept")
    shown = (
        "select current_setting('hnsw.iterative_scan', true), current_setting('enable_seqscan'),"
        " current_setting('plan_cache_mode')"
    )
    with database.transaction("app", "settings-kept") as conn:
        conn.execute("select '[1]'::halfvec")  # loads the library that knows the setting
        conn.execute("set local hnsw.iterative_scan = strict_order")
        before = conn.execute(shown).fetchone()
        found = search.visible_scopes(conn, ["settings-kept"])
        ids = [scope.scope_id for scope in found.values()]
        asked = SearchQuery(ids, {}, vector_of("leave"), 1, None, START, True, 5, 50)
        search.run(conn, asked)
        assert conn.execute(shown).fetchone() == before


@pytest.mark.requirement("W-05")
def test_66_nested_headings_nest_and_lie_inside_the_text() -> None:
    text = "# A\n\nOne.\n\n## B\n\nTwo.\n\n### C\n\nThree.\n\n# D\n\nFour.\n"
    found = parsed(text, "text/markdown", "a.md")
    paths = [block.heading_path for block in found.blocks if block.kind == "paragraph"]
    assert paths == [("A",), ("A", "B"), ("A", "B", "C"), ("D",)]
    assert found.blocks[0].byte_start == 0
    assert found.blocks[-1].byte_end == len(found.body.encode())
    headings = [
        {"path": list(b.heading_path), "bytes": [b.byte_start, b.byte_end]}
        for b in found.blocks
        if b.kind == "heading"
    ]
    nodes = {node.node_id: node for node in tree("T", headings, [])}
    for node in nodes.values():
        if node.parent_id is not None:
            assert nodes[node.parent_id].heading_path == node.heading_path[:-1]
            assert nodes[node.parent_id].byte_start <= node.byte_start


@pytest.mark.requirement("W-02", "P-02")
def test_67_markdown_and_plain_text_are_told_apart() -> None:
    markdown = b"# Leave\n\n- one\n- two\n\nSee [the rules](https://example.org/rules).\n"
    assert sniff(markdown, "a.md") == "text/markdown"
    assert sniff(b"Dear all,\n\nthe office is closed on Friday.\n", "a.txt") == "text/plain"


@pytest.mark.requirement("W-12")
def test_68_a_long_text_keeps_its_budget_and_overlaps_when_asked() -> None:
    text = " ".join(f"Sentence number {n} says a little." for n in range(600))
    for overlap in (0, 30):
        pieces = chunk_document(
            text_document(text),
            document_id="d",
            counter=EstimateCounter(),
            options=preset("hierarchical", max_tokens=120, overlap_tokens=overlap),
        )
        assert all(piece.token_count <= 120 for piece in pieces)
        repeats = [a.char_end > b.char_start for a, b in pairwise(pieces)]
        assert any(repeats) == bool(overlap)


@pytest.mark.requirement("W-41")
def test_74_chunking_again_gives_the_same_ids() -> None:
    text = " ".join(f"Sentence number {n} says a little." for n in range(300))
    first = [piece.passage_id for piece in chunked(text, size_chars=400)]
    assert first == [piece.passage_id for piece in chunked(text, size_chars=400)]
    assert len(first) == len(set(first)) > 10
