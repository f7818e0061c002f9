"""Failed runs reach people: a real webhook, a real mail server, and neither breaks the sensor."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from kb_resources.errors import InputError
from kb_resources.settings import Settings, load_settings

if TYPE_CHECKING:
    from tests.dagster.conftest import Plant

FACTS = {"run": "1234", "job": "kb_batch", "scope": "", "cause": "bulk"}


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def webhook(status: int = 200, location: str = "") -> Iterator[tuple[str, list[Any]]]:
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            got.append((self.headers["Content-Type"], json.loads(self.rfile.read(length))))
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}/hook", got


@contextmanager
def mail_server() -> Iterator[tuple[str, list[str]]]:
    """Speaks as much of RFC 5321 as one message needs."""
    got: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def say(self, text: str) -> None:
            self.wfile.write(text.encode() + b"\r\n")

        def handle(self) -> None:
            self.say("220 here")
            while line := self.rfile.readline().decode().strip():
                verb = line.split()[0].upper()
                if verb == "DATA":
                    self.say("354 go on")
                    said = []
                    while (part := self.rfile.readline()) != b".\r\n":
                        said.append(part.decode())
                    got.append("".join(said))
                self.say("221 bye" if verb == "QUIT" else "250 yes")
                if verb == "QUIT":
                    return
                got.append(line.upper()) if verb in ("MAIL", "RCPT") else None

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"smtp://127.0.0.1:{port}", got


def test_a_webhook_gets_a_line_that_chat_programs_show() -> None:
    from kb_assets.alerts import send

    with webhook() as (url, got):
        assert send(Settings(alert_url=url), "a run failed", FACTS) == []
    ((kind, body),) = got
    assert kind == "application/json"
    assert body["text"] == "a run failed\nrun: 1234\njob: kb_batch\ncause: bulk"
    assert body["run"] == "1234"


def test_everyone_named_gets_a_mail() -> None:
    from kb_assets.alerts import send

    with mail_server() as (url, got):
        settings = Settings(
            alert_smtp_url=url, alert_to=("ops@kb.example", "on-call@kb.example"),
            alert_from="kb@kb.example",
        )  # fmt: skip
        assert send(settings, "a run failed", FACTS) == []
    assert got[0].startswith("MAIL FROM:<KB@KB.EXAMPLE>")
    assert got[1:3] == ["RCPT TO:<OPS@KB.EXAMPLE>", "RCPT TO:<ON-CALL@KB.EXAMPLE>"]
    assert "Subject: a run failed" in got[3]
    assert "run: 1234" in got[3]


def test_what_is_not_delivered_is_said_and_the_other_way_is_taken() -> None:
    from kb_assets.alerts import send

    with mail_server() as (url, got):
        settings = Settings(
            alert_url="http://127.0.0.1:9/", alert_smtp_url=url, alert_to=("ops@kb.example",)
        )
        (problem,) = send(settings, "a run failed", FACTS)
    assert problem.startswith("webhook: ")
    assert got


def test_a_webhook_does_not_choose_where_the_message_goes() -> None:
    from kb_assets.alerts import send

    with webhook() as (other, theirs), webhook(307, other) as (url, _):
        (problem,) = send(Settings(alert_url=url), "a run failed", FACTS)
    assert "307" in problem
    assert theirs == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("KB_ALERT_URL", "ftp://x"),
        ("KB_ALERT_SMTP_URL", "http://x"),
        ("KB_ALERT_SMTP_URL", "smtp://user:password@host"),
        ("KB_ALERT_TO", "nobody"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(name: str, text: str) -> None:
    with pytest.raises(InputError, match=name):
        load_settings({name: text})


def test_a_failed_run_tells_people_and_says_nothing_of_the_documents(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_assets.run_failure import alert, run_failures

    keys = plant.register({"secret-plan.md": "# Plan\n\nThe merger is on the third of May.\n"})
    batch_id = plant.line.new_batch(keys, actor="t", cause="bulk")
    run = plant.instance.create_run_for_job(
        plant.defs.resolve_job_def("kb_batch"),
        run_config={"batch_id": batch_id},
        tags={"kb/batch": batch_id, "kb/scope": "acme", "kb/cause": "bulk"},
        status=dg.DagsterRunStatus.STARTED,
    )
    plant.instance.report_run_failed(run, "secret-plan.md could not be read")
    (event,) = plant.instance.get_records_for_run(
        run.run_id, of_type=dg.DagsterEventType.RUN_FAILURE
    ).records
    assert event.event_log_entry.dagster_event is not None
    with webhook() as (url, got):
        monkeypatch.setenv("KB_ALERT_URL", url)
        context = dg.build_run_status_sensor_context(
            sensor_name="run_failures",
            dagster_event=event.event_log_entry.dagster_event,
            dagster_instance=plant.instance,
            dagster_run=run,
            resources={"line": plant.line},
        ).for_run_failure()
        run_failures(context)
    ((_, body),) = got
    assert body["run"] == run.run_id
    assert (body["scope"], body["cause"]) == ("acme", "bulk")
    assert "restart the code server" in body["next"]  # it has no step to look at
    assert "Look at its steps" in alert(run)[1]["next"]
    assert "secret-plan" not in json.dumps(body)
