"""Nobody takes over a document that they may not read, whichever way ids meet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kb.http import uploads
from kb_resources.compose import open_line
from kb_resources.errors import PolicyError
from kb_resources.model import DocumentKey, Source, SourceKind
from kb_resources.settings import Settings
from kb_resources.stages.request import IngestRequest
from tests.read.http.conftest import Client, Served, make_key, serving
from tests.read.http.test_uploads import take_jobs

PRIVATE = "# Salaries\n\nThe salary of the director is four hundred thousand.\n"
PUBLIC = "# Canteen\n\nThe canteen opens at noon.\n"


@pytest.fixture
def idle(settings: Settings) -> Iterator[Served]:
    """A server whose jobs wait until the test takes them."""
    with serving(settings, run_worker=False) as running:
        yield running


def editor(served: Served, **values: Any) -> Client:
    return served.client.with_key(make_key(served.settings, "editor", **values))


def readable_by_all(served: Served) -> str:
    reader = served.client.with_key(make_key(served.settings, "viewer"))
    query = {"query": "salary of the director", "scope": "acme"}
    return str(reader("POST", "/api/v1/search", json=query).json["hits"])


@pytest.mark.requirement("P-69")
def test_an_id_that_a_private_upload_waits_for_is_nobody_elses(idle: Served) -> None:
    one, other = editor(idle), editor(idle)
    assert one.upload("mine.md", PRIVATE, document_id="mine").status == 202
    answer = other.upload("theirs.md", PUBLIC, document_id="mine", audiences="")
    assert (answer.status, answer.json["code"]) == (403, "document_id_refused")
    assert one.upload("mine.md", PRIVATE + "\nMore.\n", document_id="mine").status == 202
    take_jobs(idle.settings)
    assert "salary" not in readable_by_all(idle)
    # The same words whether it waits, is there, or was never one's to see.
    again = other.upload("theirs.md", PUBLIC, document_id="mine", audiences="")
    told = ("status", "code", "detail", "next_step")
    assert [again.json[name] for name in told] == [answer.json[name] for name in told]


@pytest.mark.requirement("P-69")
def test_two_uploads_that_did_not_see_each_other_are_told_apart_by_the_worker(
    idle: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = editor(idle), editor(idle)
    assert one.upload("mine.md", PRIVATE, document_id="mine").status == 202
    with monkeypatch.context() as both_at_once:
        both_at_once.setattr(uploads.jobs, "id_awaited_by_others", lambda *_: False)
        answer = other.upload("theirs.md", PUBLIC, document_id="mine", audiences="")
    assert answer.status == 202
    take_jobs(idle.settings)
    assert "salary" not in readable_by_all(idle)
    job = other("GET", f"/api/v1/jobs/{answer.json['job_id']}").json
    assert job["state"] == "failed"
    assert "cannot be used" in job["reason"]
    assert not list(uploads.spool_folder(idle.settings).iterdir())


def test_what_is_public_first_may_be_narrowed_by_its_readers(idle: Served) -> None:
    one, other = editor(idle), editor(idle)
    assert other.upload("theirs.md", PUBLIC, document_id="shared", audiences="").status == 202
    assert one.upload("mine.md", PRIVATE, document_id="shared").status == 202
    take_jobs(idle.settings)
    assert one("GET", "/api/v1/documents/acme/shared").json["version"] == 2
    assert other("GET", "/api/v1/documents/acme/shared").status == 404


def test_a_job_for_others_is_taken_up_again_after_an_interruption(idle: Served) -> None:
    one = editor(idle)
    job_id = one.upload("plan.md", PUBLIC, document_id="plan", audiences="red").json["job_id"]
    from kb_resources.stages.line import Line

    made: list[DocumentKey] = []
    registered = Line.register

    def interrupted(self: Line, request: IngestRequest) -> DocumentKey:
        made.append(registered(self, request))
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Line, "register", interrupted)
        with pytest.raises(KeyboardInterrupt):
            take_jobs(idle.settings)
    assert made
    take_jobs(idle.settings)
    job = one("GET", f"/api/v1/jobs/{job_id}").json
    assert (job["state"], job["documents"][0]["state"]) == ("done", "indexed")


@pytest.mark.parametrize(
    ("readers", "refused"), [((), True), (("blue",), True), (("red",), False), (None, False)]
)
def test_registering_needs_sight_of_the_document(
    settings: Settings, readers: tuple[str, ...] | None, refused: bool
) -> None:
    def wish(readers: tuple[str, ...] | None, audiences: tuple[str, ...]) -> IngestRequest:
        source = Source(SourceKind.API, f"api:{audiences}", "plan")
        return IngestRequest("acme", source, "plan", audiences, readers=readers)

    with open_line(settings, actor="test") as line:
        key = line.register(wish((), ("red",)))
        if refused:
            with pytest.raises(PolicyError) as caught:
                line.register(wish(readers, ()))
            assert caught.value.code == "document_id_refused"
        else:
            line.register(wish(readers, ()))
        [row] = line.rows([key])
    assert row.audiences == (["red"] if refused else [])
