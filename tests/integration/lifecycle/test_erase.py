"""Erasing: nothing of a document stays in any table, blob or file, and others stay whole."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kb_resources.compose_erasing import eraser
from kb_resources.errors import InputError, NotFound, PolicyError, UnavailableError
from kb_resources.model import DocumentKey, Source, SourceKind
from kb_resources.stages import removal
from kb_resources.stages.erase import Eraser, Forgotten
from kb_resources.stages.erase_files import SPOOL, ErasableFiles
from kb_resources.stages.reconcile import finish_erasures
from kb_resources.stages.request import IngestRequest
from kb_resources.store import documents, erasure, jobs
from kb_resources.store.erasure_journal import ErasureJournal
from kb_resources.store.server_binaries import wheel_bin_dir

if TYPE_CHECKING:
    from tests.integration.line.conftest import Bench

CANARY = "quibblewarbler"
LEAVE = "# Leave\n\nEvery employee has thirty days of paid annual leave in a calendar year.\n"
SECRET = f"# Case {CANARY}\n\nThe {CANARY} was seen near the harbour on the second of May 2024.\n"
WHY = {"actor": "cli:ana", "reason": "request 17 of the data subject"}


@dataclass
class Elsewhere:
    """Stands for Dagster's storage, which has tests of its own; keeps what it was asked."""

    asked: list[Forgotten] = field(default_factory=list)
    away: bool = False

    def __call__(self, what: Forgotten) -> Mapping[str, int]:
        if self.away:
            raise UnavailableError("Dagster's storage is away.")
        self.asked.append(what)
        return {"event_logs": 3}


def eraser_of(bench: Bench, elsewhere: Elsewhere | None = None, exporting: str = "") -> Eraser:
    home = bench.settings.home
    return Eraser(
        bench.line.capabilities,
        ErasureJournal(home / "erasures.jsonl"),
        ErasableFiles(home, (home / "postgres",)),
        elsewhere or Elsewhere(),
        scrub=lambda: "",
        exporting=exporting,
    )


def dump(bench: Bench) -> bytes:
    """Everything the database holds, as SQL text."""
    done = subprocess.run(
        [wheel_bin_dir() / "pg_dump", "--dbname", bench.settings.database_url],
        capture_output=True,
        check=True,
    )
    return done.stdout


def blobs(bench: Bench) -> list[bytes]:
    return [p.read_bytes() for p in Path(bench.settings.blob_url).rglob("*") if p.is_file()]


@pytest.mark.requirement("O-12", "P-77")
def test_no_trace_of_an_erased_document_is_left(bench: Bench) -> None:
    kept = bench.ingest("leave.md", LEAVE)
    key = bench.ingest(f"{CANARY}.md", SECRET)
    bench.ingest(f"{CANARY}.md", SECRET + "\nIt came back in June.\n")
    copy = bench.settings.home / "spool" / "upload-1"
    copy.parent.mkdir(parents=True)
    copy.write_text(SECRET)
    assert CANARY.encode() in dump(bench)
    elsewhere = Elsewhere()
    made = eraser_of(bench, elsewhere).erase(key, **WHY).certificate
    assert CANARY.encode() not in dump(bench)
    assert not [data for data in blobs(bench) if CANARY.encode() in data]
    assert not copy.exists()
    assert made.finished_at is not None
    assert made.counts["database"]["passage"] >= 2
    assert made.counts["database"]["version"] == 2
    assert made.counts["blobs"] == {"deleted": 2, "kept_for_others": 0}
    assert made.counts["files"]["deleted"] == 1
    assert made.counts["dagster"] == {"event_logs": 3}
    assert elsewhere.asked[0].partition == str(key)
    assert CANARY not in (bench.settings.home / "erasures.jsonl").read_text()
    assert bench.search("annual leave").hits[0].document_id == kept.document_id
    assert "source file still exists" in made.remains[0]


@pytest.mark.requirement("O-12")
def test_jobs_and_uploads_that_wait_for_the_worker_are_erased_too(bench: Bench) -> None:
    """Bytes in the spool have become no version yet, so their digest is nowhere in the ledger."""
    key = bench.ingest("case.md", LEAVE)
    spool = bench.settings.home / SPOOL
    with bench.line.capabilities.database.transaction("pipeline") as conn:
        for job_id, document_id in (("a" * 24, key.document_id), ("b" * 24, "somebody-elses")):
            jobs.add(
                conn,
                job_id,
                scope="acme",
                document_id=document_id,
                kind="ingest",
                actor="user:42",
                request={"name": f"{CANARY}.md" if document_id == key.document_id else "b.md"},
            )
            (spool / job_id).mkdir(parents=True)
            (spool / job_id / "content").write_text(SECRET)
    made = eraser_of(bench).erase(key, **WHY).certificate
    assert made.counts["database"]["job"] == 1
    assert made.counts["files"]["deleted"] == 1
    assert [folder.name for folder in spool.iterdir()] == ["b" * 24]
    assert CANARY.encode() not in dump(bench)


@pytest.mark.requirement("O-12")
def test_the_remainder_says_only_that_something_was_erased(bench: Bench) -> None:
    key = bench.ingest("case.md", SECRET)
    eraser_of(bench).erase(key, **WHY)
    [row] = bench.reader.documents(scope="acme", audiences=None)
    assert row["state"] == "erased"
    assert row["document_id"].startswith("erased-")
    found = bench.reader.document(row["document_id"], scope="acme")
    assert [(e["event"], e["actor"]) for e in found["lifecycle"]] == [("erased", "cli:ana")]
    with pytest.raises(NotFound):
        bench.reader.document(key.document_id, scope="acme")
    with pytest.raises(PolicyError, match="was erased"):
        removal.restore(bench.line.capabilities, DocumentKey("acme", row["document_id"]), **WHY)


def test_what_others_say_of_an_erased_document_is_rewritten_and_their_logs_stay_whole(
    bench: Bench,
) -> None:
    key = bench.ingest(f"{CANARY}.md", SECRET)
    other = bench.ingest("second.md", SECRET.replace("May", "June"), supersedes=(key.document_id,))
    twin = bench.ingest("twin.md", SECRET)
    events = bench.reader.document(other.document_id, scope="acme")["lifecycle"]
    eraser_of(bench).erase(key, **WHY)
    after = bench.reader.document(other.document_id, scope="acme")["lifecycle"]
    assert len(after) == len(events) or after[-1]["event"] == "log_rewritten"
    for found in (other, twin):
        entry = bench.reader.document(found.document_id, scope="acme")
        assert key.document_id not in repr(entry["lifecycle"])
        assert key.document_id not in entry["reason"]
    with bench.line.capabilities.database.transaction("pipeline") as conn:
        assert erasure.mentions(conn, key.document_id, None) == {}
        assert conn.execute("select * from kb.verify_lifecycle(null, null)").fetchall() == []


@pytest.mark.requirement("O-12")
def test_bytes_that_another_document_holds_stay(bench: Bench) -> None:
    first = bench.ingest("a.md", SECRET)
    twin = bench.ingest("b.md", SECRET, audiences=("hr",))
    assert bench.state(twin) == ("indexed", "")
    made = eraser_of(bench).erase(first, **WHY).certificate
    assert made.counts["blobs"] == {"deleted": 0, "kept_for_others": 1}
    bench.line.run_all([twin])
    assert bench.state(twin) == ("indexed", "")
    assert len(blobs(bench)) == 1


def test_a_duplicate_is_published_when_its_first_is_erased(bench: Bench) -> None:
    first = bench.ingest("a.md", LEAVE)
    twin = bench.ingest("b.md", LEAVE)
    done = eraser_of(bench).erase(first, **WHY)
    assert done.woken == (twin,)
    bench.line.run_all(done.woken)
    assert [hit.document_id for hit in bench.search("annual leave").hits] == [twin.document_id]


@pytest.mark.requirement("O-12")
def test_an_erasure_interrupted_between_the_stores_is_finished_later(bench: Bench) -> None:
    key = bench.ingest("case.md", SECRET)
    elsewhere = Elsewhere(away=True)
    eraser = eraser_of(bench, elsewhere)
    with pytest.raises(UnavailableError):
        eraser.erase(key, **WHY)
    assert not bench.search("harbour").hits
    [left] = _certificates(bench)
    assert left.finished_at is None
    elsewhere.away = False
    assert eraser.resume() == 1
    [made] = _certificates(bench)
    assert made.finished_at is not None
    assert elsewhere.asked[0].partition == str(key)
    assert blobs(bench) == []
    assert made.counts["blobs"]["deleted"] == 1, "what the first try deleted stays in the count"
    assert CANARY.encode() not in dump(bench)
    assert eraser.resume() == 0


@pytest.mark.requirement("O-12", "P-66")
def test_an_erasure_whose_line_the_journal_did_not_take_gets_it_before_it_is_finished(
    bench: Bench,
) -> None:
    """Else a backup that is restored later would bring the document back."""
    key = bench.ingest("case.md", SECRET)
    made = eraser_of(bench)
    made.journal.path.mkdir(parents=True)  # it cannot be written
    with pytest.raises(UnavailableError, match="journal"):
        made.erase(key, **WHY)
    made.journal.path.rmdir()
    assert [(d.kind, d.repaired) for d in finish_erasures(made)] == [("unfinished_erasure", True)]
    [certificate] = _certificates(bench)
    assert [entry.erasure_id for entry in made.journal.entries()] == [certificate.erasure_id]
    assert certificate.finished_at is not None


def _certificates(bench: Bench) -> list[erasure.Certificate]:
    with bench.line.capabilities.database.transaction("pipeline") as conn:
        return erasure.certificates(conn, scope="acme")


@pytest.mark.requirement("P-36")
def test_nothing_is_erased_while_the_git_export_is_on(bench: Bench) -> None:
    key = bench.ingest("case.md", SECRET)
    with pytest.raises(PolicyError, match="export"):
        eraser_of(bench, exporting="/srv/export").erase(key, **WHY)
    assert bench.search("harbour").hits


@pytest.mark.requirement("B-30")
def test_all_that_only_one_person_can_read_goes(bench: Bench) -> None:
    bench.ingest("mine.md", SECRET, audiences=("user:42",))
    bench.ingest("also.md", LEAVE, audiences=("user:42",))
    shared = bench.ingest("shared.md", LEAVE, audiences=("hr", "user:42"))
    done = eraser_of(bench).erase_held_only_by("acme", "user:42", **WHY)
    assert len(done) == 2
    left = [d["document_id"] for d in bench.reader.documents(scope="acme", audiences=["user:42"])]
    assert shared.document_id in left
    with bench.line.capabilities.database.transaction("pipeline") as conn:
        rows = conn.execute("select count(distinct document_key) from kb.version").fetchone()
    assert rows == (1,)


def _register(bench: Bench, kind: SourceKind) -> DocumentKey:
    source = Source(kind, str(bench.folder / "case.md"), "case.md")
    return bench.line.register(IngestRequest(scope="acme", source=source, actor="test"))


def test_a_watched_source_does_not_bring_an_erased_document_back(bench: Bench) -> None:
    bench.write("case.md", SECRET)
    key = _register(bench, SourceKind.DROPZONE)
    bench.line.run_all([key])
    eraser_of(bench).erase(key, **WHY)
    bench.line.run_all([_register(bench, SourceKind.DROPZONE)])
    state, reason = bench.state(key)
    assert state == "erased"
    assert "kb documents restore" in reason
    assert not bench.search("harbour").hits
    done = removal.restore(bench.line.capabilities, key, **WHY)
    bench.line.run_all(done.to_run)
    assert bench.state(key) == ("indexed", "")
    bench.line.run_all([_register(bench, SourceKind.DROPZONE)])
    assert bench.state(key) == ("indexed", "")


def test_a_person_may_ingest_an_erased_document_anew(bench: Bench) -> None:
    key = bench.ingest("case.md", SECRET)
    eraser_of(bench).erase(key, **WHY)
    assert bench.ingest("case.md") == key
    assert bench.state(key) == ("indexed", "")
    [version] = bench.reader.history(key.document_id, scope="acme")
    assert version["version"] == 1


@pytest.mark.requirement("P-66")
def test_erasures_are_repeated_over_older_data_but_spare_what_came_later(bench: Bench) -> None:
    key = bench.ingest("case.md", SECRET)
    eraser = eraser_of(bench)
    eraser.erase(key, **WHY)
    [entry] = eraser.journal.entries()
    bench.ingest("case.md")
    assert eraser.replay([entry]) == [], "the document of today is not the one erased"
    with bench.line.capabilities.database.transaction("owner") as conn:
        conn.execute("delete from kb.erasure")
        conn.execute(
            "update kb.document set created_at = %s where document_id = %s",
            (datetime(2025, 1, 1, tzinfo=UTC), key.document_id),
        )
    [again] = eraser.replay([entry])
    assert again.counts["database"]["version"] == 1
    assert not bench.search("harbour").hits
    assert {c.erasure_id for c in _certificates(bench)} == {entry.erasure_id, again.erasure_id}


@pytest.mark.requirement("P-20")
def test_a_person_is_forgotten_everywhere_and_the_logs_still_verify(bench: Bench) -> None:
    key = bench.ingest("leave.md", LEAVE, audiences=("user:zora9",), trusted_by="user:zora9")
    caps = bench.line.capabilities
    removal.remove(caps, key, actor="user:zora9", reason="as user:zora9 asked")
    removal.restore(caps, key, actor="cli:ana", reason="back for user:zora99")
    eraser = eraser_of(bench)
    other = bench.ingest("case.md", SECRET)
    eraser.erase(other, actor="user:zora9", reason="own wish")
    counts = eraser.forget_actor("user:zora9")
    text = dump(bench).decode()
    assert "user:zora9" not in text.replace("user:zora99", "")
    assert "user:zora99" in text, "another person's name that begins alike stays"
    assert "user:zora9" not in eraser.journal.path.read_text()
    assert counts["database"]["lifecycle.actor"] >= 2
    with caps.database.transaction("pipeline") as conn:
        assert conn.execute("select * from kb.verify_lifecycle(null, null)").fetchall() == []
    rewritten = bench.reader.document(key.document_id, scope="acme")["lifecycle"][-1]
    assert rewritten["event"] == "log_rewritten"
    assert len(rewritten["details"]["previous_head"]) == 64
    with pytest.raises(InputError):
        eraser.forget_actor("pipeline")


def test_names_are_found_and_replaced_as_whole_words_only(bench: Bench) -> None:
    with bench.line.capabilities.database.transaction("owner") as conn:
        scope = documents.ensure_scope(conn, "acme", {})
        for number, name in enumerate(("a.b", "axb", "a.b-c", "say a.b", 'x"a.b"y', "[a.b]")):
            conn.execute(
                "insert into kb.batch (batch_id, actor, cause) values (%s, %s, 'test')",
                (f"b{number}", name),
            )
        assert erasure.mentions(conn, "a.b", None) == {"batch.actor": 4}
        erasure.forget_actor(conn, "a.b", "gone")
        names = {row[0] for row in conn.execute("select actor from kb.batch").fetchall()}
        assert scope.name == "acme"
    assert names == {"gone", "axb", "a.b-c", "say gone", 'x"gone"y', "[gone]"}


def test_a_process_without_the_owners_connection_erases_and_says_what_it_cannot_vacuum(
    bench: Bench,
) -> None:
    """In a deployment the pipeline holds its own role only."""
    key = bench.ingest("case.md", SECRET)
    narrow = replace(bench.settings, database_url="")
    made = eraser(narrow, bench.line, dagster=Elsewhere(), dagster_here=False).erase(key, **WHY)
    assert made.certificate.finished_at is not None
    [sentence] = made.certificate.counts["scrubbed"]
    assert "no connection as the owner" in sentence
    assert CANARY.encode() not in dump(bench)
