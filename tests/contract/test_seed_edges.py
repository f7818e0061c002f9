"""What the reference systems' own tests prove at their edges: people, files, times, names.

Numbers in a test's name: the list of behaviours in the requirements, appendix B. Where a system has
what ours has not (an agent's memory files, say), the test is of the same promise elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kb.access.identity import Identity, Role
from kb_assets.folders.listing import walk
from kb_resources.acquire.blobs import FolderBlobStore
from kb_resources.acquire.fetch_outcome import FetchStopped
from kb_resources.acquire.fetch_url import read_url
from kb_resources.answer.ground import RejectReason
from kb_resources.answer.keeping import Citations
from kb_resources.errors import ConflictError, InputError, NotFound, PolicyError, ScopeRequired
from kb_resources.model import DocumentKey, Principal, Refusal, validate_document_id, validate_scope
from kb_resources.model.audiences import (
    AudienceKind,
    PermissionMap,
    Person,
    audiences_of,
    check_publish,
)
from kb_resources.parse import parse_here
from kb_resources.retrieve import Retriever
from kb_resources.store import documents, evaluations, locks
from kb_resources.store.memory import MemoryStore
from kb_resources.store.pool import Database
from kb_resources.store.postgres import PgStore

from .conftest import DAY, LEAVE, SPACE, START, Kept, edition, vector_of

OLD_WORD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600
TRAVERSALS = [
    *("../secret", "..", "a/../../b", "/etc/passwd", "a\\..\\b", "%2e%2e", "~root", "a/b", ""),
]
MEMBER = Person("cen", frozenset({"member"}))
OWNER = Person("ana", frozenset({"owner"}))


@contextmanager
def refused(kind: type[Exception], code: str) -> Iterator[None]:
    with pytest.raises(kind) as caught:
        yield
    assert caught.value.code == code  # type: ignore[attr-defined]


@pytest.mark.requirement("B-20")
def test_9_what_only_a_missing_service_could_read_is_refused_by_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = parse_here(OLD_WORD, "application/msword", "letter.doc")
    assert isinstance(found, Refusal)
    assert found.state == "unsupported"
    assert "libreoffice" in found.reason


@pytest.mark.requirement("B-04")
def test_27_a_member_publishes_nothing_for_the_organisation_or_an_agent_without_an_id() -> None:
    everyone, agent = (), audiences_of(AudienceKind.AGENT, "a1")
    for audiences in (everyone, agent):
        with refused(PolicyError, "audience_reserved"):
            check_publish(MEMBER, PermissionMap(), audiences)
        check_publish(OWNER, PermissionMap(), audiences)
    with pytest.raises(InputError):
        audiences_of(AudienceKind.AGENT)
    viewer = Identity("user:cen", "Cen", Role.VIEWER, None, frozenset({"user:cen"}), "user:cen")
    with refused(PolicyError, "forbidden"):
        viewer.require(Role.EDITOR)


@pytest.mark.requirement("B-04", "O-09")
def test_27_what_is_not_for_somebody_is_to_them_as_if_it_were_not_there(kept: Kept) -> None:
    kept.put("board", "For the board.", audiences=("board",))
    assert kept.store.get("board", scope=kept.scope, audiences=["hr"]) is None
    assert not kept.store.remove("never-there", scope=kept.scope)
    assert kept.store.get("board", scope=kept.scope, audiences=["board"]) is not None


def test_33_nothing_is_queued_for_consumers_that_do_not_exist(kept: Kept) -> None:
    kept.put("before", "Nobody listens.")
    kept.store.subscribe("mirror", scope=kept.scope)
    assert kept.store.events("mirror", scope=kept.scope) == ()
    kept.put("after", "Somebody does.")
    [event] = kept.store.events("mirror", scope=kept.scope)
    assert event.document_id == "after"
    if kept.database is not None:
        with kept.database.transaction("pipeline") as conn:
            rows = conn.execute(
                "select e.document_id from kb.event e join kb.scope s using (scope_id)"
                " where s.name = %s",
                [kept.name],
            ).fetchall()
        assert rows == [("after",)]


def test_35_made_once_changed_at_its_version_and_never_over_a_newer_one(make_store: Any) -> None:
    store, _, database = make_store("postgres")
    store.scopes.create("optimistic")
    assert store.put(edition("doc", "One."), scope="optimistic").state == "new"
    assert store.put(edition("doc", "One."), scope="optimistic").state == "unchanged"
    with database.transaction("pipeline") as conn:
        seen = documents.load_one(conn, DocumentKey("optimistic", "doc"))
        locks.hold(conn, seen)
    changed = store.put(edition("doc", "Two.", valid_from=START + DAY), scope="optimistic")
    assert (changed.state, changed.version) == ("replaced", 2)
    with pytest.raises(ConflictError, match="changed while"):
        _hold(database, seen)
    assert store.get("doc", scope="optimistic").version == 2


def _hold(database: Database, row: documents.DocumentRow) -> None:
    with database.transaction("pipeline") as conn:
        locks.hold(conn, row)


def test_36_what_ended_is_invisible_ends_once_and_can_come_again(kept: Kept) -> None:
    """The ending itself: `test_retention_removes_what_outlived_it_and_nothing_else`."""
    kept.put("doc", *LEAVE)
    assert kept.store.remove("doc", scope=kept.scope)
    assert kept.found("leave") == []
    assert kept.store.get("doc", scope=kept.scope) is None
    assert not kept.store.remove("doc", scope=kept.scope)
    assert kept.store.restore("doc", scope=kept.scope)
    assert not kept.store.restore("doc", scope=kept.scope)
    kept.put("doc", "Leave is 28 days.", valid_from=kept.clock.now)
    assert kept.store.get("doc", scope=kept.scope).version == 2


def test_37_what_is_asked_is_never_indexed(make_store: Any) -> None:
    store, _, database = make_store("postgres")
    store.scopes.create("asked")
    store.put(edition("leave", *LEAVE), scope="asked")
    counts = (
        "select (select count(*) from kb.document), (select count(*) from kb.version),"
        " (select count(*) from kb.passage), (select count(*) from kb.staged_chunk),"
        " (select count(*) from kb.embed_work), (select count(*) from kb.batch)"
    )
    with database.transaction("pipeline") as conn:
        before = conn.execute(counts).fetchone()
    reader = Retriever(database, embedder=None)
    for _ in range(2):
        found = reader.search(
            "zyzzyva carry over", scope="asked", principal=Principal("somebody"), mode="text"
        )
        assert [hit.document_id for hit in found.hits] == ["leave"]
    assert store.search(text="zyzzyva", scope="asked") == ()
    with database.transaction("pipeline") as conn:
        assert conn.execute(counts).fetchone() == before


@pytest.mark.requirement("W-49")
@pytest.mark.parametrize("path", TRAVERSALS)
def test_38_no_name_leads_out_of_its_place(tmp_path: Path, path: str) -> None:
    for check in (validate_document_id, validate_scope):
        with pytest.raises(InputError):
            check(path)
    (tmp_path / "secret").write_text("not for you")
    with pytest.raises(InputError):
        FolderBlobStore(tmp_path / "blobs").get(path)


@pytest.mark.requirement("W-49")
def test_38_a_watched_folder_is_left_by_no_link(tmp_path: Path) -> None:
    outside, dropzone = tmp_path / "outside", tmp_path / "dropzone"
    for folder in (outside / "deep", dropzone / "acme"):
        folder.mkdir(parents=True)
    (outside / "secret.txt").write_text("not for you")
    (dropzone / "acme" / "mine.txt").write_text("Here.")
    (dropzone / "acme" / "link.txt").symlink_to(outside / "secret.txt")
    (dropzone / "acme" / "folder").symlink_to(outside)
    (dropzone / "acme" / "relative.txt").symlink_to("../../outside/secret.txt")
    found = [entry.relative for entry in walk(dropzone, 2**62)]
    assert found == ["acme/mine.txt"]


@pytest.mark.requirement("W-49")
@pytest.mark.parametrize(
    "address",
    ["file:///etc/passwd", "FILE://localhost/etc/passwd", "file:etc/passwd", "//etc/passwd"],
)
def test_38_an_address_is_never_a_file_of_this_machine(address: str) -> None:
    with pytest.raises(FetchStopped):
        read_url(address)


def test_39_words_that_stand_nowhere_are_refused_by_type_and_reason(make_store: Any) -> None:
    store, _, database = make_store("postgres")
    store.scopes.create("quoted")
    store.put(edition("leave", *LEAVE, "Leave of 30 days is a right."), scope="quoted")
    passage = store.passages("leave", scope="quoted")[0]
    citations = Citations(database, Retriever(database, embedder=None))
    asked = {"scope": "quoted", "principal": Principal("somebody"), "holder": "page-1"}
    for quote, reason in (
        ("Leave is 31 days a year.", RejectReason.ABSENT),
        ("Le", RejectReason.TOO_SHORT),
        ("Leave is … days a decade", RejectReason.ABSENT),
    ):
        with refused(PolicyError, f"quote_{reason.value}"):
            citations.keep(quote, passage.passage_id, **asked)
    with pytest.raises(NotFound):
        citations.keep("Leave is 30 days", "no-such-passage", **asked)
    kept = citations.keep("Leave is 30 days", passage.passage_id, **asked)
    assert kept.to_json()["quote"] == "Leave is 30 days"


def test_39_an_ambiguous_short_name_is_refused_and_not_guessed(make_store: Any) -> None:
    _, _, database = make_store("postgres")
    with database.transaction("owner") as conn:
        for end in "01":
            conn.execute(
                "insert into kb.evaluation (run_id, name, questions_digest, gain, config, figures,"
                " actor, duration_s) values (%s, 'x', %s, 'binary', '{}', '{}', 'test', 1)",
                [b"ambiguous".hex()[:15] + end, "0" * 64],
            )
    stem = b"ambiguous".hex()[:15]
    with database.transaction("pipeline") as conn:
        with pytest.raises(InputError, match="more than one"):
            evaluations.get(conn, stem[:8])
        with pytest.raises(NotFound):
            evaluations.get(conn, "ffff")
        assert evaluations.get(conn, stem + "1")["run_id"] == stem + "1"


@pytest.mark.requirement("W-27")
def test_54_a_new_scope_is_rows_of_the_shared_tables_and_no_table(make_store: Any) -> None:
    store, _, database = make_store("postgres")
    relations = "select count(*) from pg_class"
    with database.transaction("owner") as conn:
        before = conn.execute(relations).fetchone()
    for name in ("shared-a", "shared-b"):
        store.scopes.create(name)
        store.put(edition("doc", f"Text of {name}."), scope=name)
    with database.transaction("owner") as conn:
        assert conn.execute(relations).fetchone() == before
        held = conn.execute(
            "select p.tableoid::regclass::text, count(distinct scope_id) from kb.passage p"
            " join kb.scope s using (scope_id) where s.name like 'shared-%' group by 1"
        ).fetchall()
    assert held == [("kb.passage", 2)]


def _narrowed(kind: type[Any]) -> type[Any]:
    """The store, whose searches find the documents of a list only."""

    class Narrowed(kind):  # type: ignore[misc]
        only: tuple[str, ...] = ("leave",)

        def search(self, **asked: Any) -> Any:
            return super().search(**{**asked, "document_ids": self.only})

    return Narrowed


@pytest.mark.requirement("W-20", "W-21")
@pytest.mark.parametrize("kind", ["memory", "postgres"])
def test_64_overriding_search_narrows_what_is_found(make_store: Any, kind: str) -> None:
    """[63] And without any handler the words are searched: there is none to forget."""
    _, clock, database = make_store(kind)
    scope = f"narrow-{kind}"
    given = (SPACE,) if kind == "memory" else (database, SPACE)
    narrowed = _narrowed(MemoryStore if kind == "memory" else PgStore)(*given, clock=clock)
    narrowed.scopes.create(scope)
    for document in ("leave", "other"):
        narrowed.put(edition(document, f"Leave, says {document}."), scope=scope)
    assert [hit.passage.document_id for hit in narrowed.search(text="leave", scope=scope)] == [
        "leave"
    ]
    with pytest.raises(ScopeRequired):
        narrowed.search(text="leave")
    narrowed.only = ("leave", "other")
    assert len(narrowed.search(text="leave", scope=scope)) == 2
    assert narrowed.pinned_to(scope).search(text="leave") != ()


@pytest.mark.requirement("B-17")
@pytest.mark.parametrize(
    "vector",
    [
        np.eye(SPACE.dimensions)[0],
        -np.eye(SPACE.dimensions)[3],
        np.full(SPACE.dimensions, SPACE.dimensions**-0.5),
        np.array([1.0, *[1e-6] * (SPACE.dimensions - 1)]),
    ],
    ids=["one", "minus one", "even", "nearly nothing"],
)
def test_75_half_precision_keeps_dimensions_extremes_and_length(
    make_store: Any, vector: np.ndarray, request: pytest.FixtureRequest
) -> None:
    store, _, database = make_store("postgres")
    scope = "halves-" + request.node.callspec.id.replace(" ", "-")
    store.scopes.create(scope)
    made = edition("doc", "Text.", vectors=False)
    store.put(made, scope=scope)
    [missing] = store.missing("doc", scope=scope)
    store.add_vectors("doc", {missing.embed_hash: vector.astype(np.float32)}, scope=scope)
    with database.transaction("owner") as conn:
        dimensions, length = conn.execute(
            "select kb.dimensions(vec), l2_norm(vec) from kb.embedding join kb.scope"
            " using (scope_id) where name = %s",
            [scope],
        ).fetchone()
    assert dimensions == SPACE.dimensions
    assert length == pytest.approx(1, abs=1e-3)
    [hit] = store.search(vector=vector.astype(np.float32), scope=scope)
    assert hit.vector_score == pytest.approx(1, abs=2e-3)


@pytest.mark.requirement("B-17")
def test_75_what_is_not_of_unit_length_is_refused_and_not_guessed(kept: Kept) -> None:
    kept.put("doc", "Text.", vectors=False)
    [missing] = kept.store.missing("doc", scope=kept.scope)
    for bad in (2 * vector_of("x"), 0 * vector_of("x"), vector_of("x")[:4]):
        with refused(InputError, "embedding_invalid"):
            kept.store.add_vectors("doc", {missing.embed_hash: bad}, scope=kept.scope)
    assert kept.store.work("doc", scope=kept.scope).waiting == 1
