"""Upkeep beside other processes: what they make or delete in the same moment is no error."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import psutil
import pytest

from kb_resources.bindings.partitions import documents as partitions_def
from kb_resources.errors import UnavailableError
from kb_resources.model import DocumentKey
from kb_resources.settings import Settings
from kb_resources.stages.erase import Forgotten

GULL, TERN = DocumentKey("acme", "gull"), DocumentKey("acme", "tern")


@pytest.mark.requirement("O-20")
def test_a_document_that_comes_while_partitions_are_compared_keeps_its_own() -> None:
    from kb_assets.reconcile import reconcile_partitions

    name = str(partitions_def.name)
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(name, [str(GULL), "acme:nobody-knows-it"])

        def documents() -> list[DocumentKey]:
            instance.add_dynamic_partitions(name, [str(TERN)])  # its sensor was faster
            return [GULL]

        found = reconcile_partitions(instance, documents)
        assert set(instance.get_dynamic_partitions(name)) == {str(GULL), str(TERN)}
    assert [(item.kind, item.subject) for item in found] == [
        ("stray_partition", "acme:nobody-knows-it")
    ]


@pytest.mark.requirement("O-12")
def test_a_log_that_dagster_deletes_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_assets.forget import _rewrite_logs

    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text("read /srv/gull.md and gulls\n")
    read = Path.read_bytes

    def deleted(path: Path) -> bytes:
        if path.name == "a.log":
            path.unlink()
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", deleted)
    assert _rewrite_logs(tmp_path, ["gull", "/srv/gull.md"], "erased-1") == 1
    assert (tmp_path / "b.log").read_text() == "read erased-1 and gulls\n"


@pytest.mark.requirement("O-12")
@pytest.mark.parametrize("times", [0, 1, 2])
def test_logs_forget_a_name_as_json_writes_it_too(tmp_path: Path, times: int) -> None:
    from kb_assets.forget import _rewrite_logs

    name = written = 'Möwe "7".md'
    for _ in range(times):
        written = json.dumps(written)[1:-1]
    (tmp_path / "daemon.log").write_text(f"could not read {written}: gone\n")
    assert _rewrite_logs(tmp_path, [name], "erased-1") == 1
    assert (tmp_path / "daemon.log").read_text() == "could not read erased-1: gone\n"


@pytest.mark.requirement("O-12")
def test_logs_that_cannot_be_written_leave_the_erasure_to_the_next_night(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kb_assets import forget

    def denied(*_: object, **__: object) -> dict[str, int]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(forget, "forget", denied)
    monkeypatch.setattr(forget, "storage_dsn", lambda _: "")
    with pytest.raises(UnavailableError, match="Permission denied"):
        forget.forget_here(Settings(home=Path("/nowhere")), Forgotten("", "erased-1", ("gull",)))


def test_two_processes_may_prepare_one_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_assets.environment import prepare_home

    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    link = Path.symlink_to

    def late(path: Path, target: Path) -> None:
        link(path, target)  # the other process
        link(path, target)

    monkeypatch.setattr(Path, "symlink_to", late)
    home = prepare_home(Settings(home=tmp_path))
    assert (home / "dagster.yaml").read_text()


def test_a_supervisor_that_ends_while_it_is_asked_for_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_assets.supervisor import PID_FILE, running_supervisor, stop_supervisor

    ours = psutil.Process()
    (tmp_path / PID_FILE).write_text(f"{ours.pid} {ours.create_time()}")

    def gone(process: psutil.Process) -> None:
        raise psutil.NoSuchProcess(process.pid)

    with monkeypatch.context() as patch:
        patch.setattr(psutil.Process, "terminate", gone)
        assert stop_supervisor(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(psutil.Process, "status", gone)
        assert running_supervisor(tmp_path) is None


@pytest.mark.parametrize(
    "settings",
    [
        Settings(alert_url="http://127.0.0.1:9/hook s3cret"),
        Settings(alert_url="http://[::1/s3cret"),
        Settings(alert_smtp_url="smtps://s3cret@127.0.0.1:x", alert_to=("ops@kb.example",)),
        Settings(alert_smtp_url="smtp://127.0.0.1:9", alert_to=("ops@kb.example\ns3cret",)),
    ],
)
def test_an_alert_that_cannot_be_sent_breaks_nothing_and_shows_no_secret(
    settings: Settings,
) -> None:
    from kb_assets.alerts import send

    (problem,) = send(settings, "a run failed", {"run": "1234"})
    assert "s3cret" not in problem


def test_an_alert_is_sent_before_anything_that_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that is away is when people want to hear of it."""
    from kb_assets import run_failure

    @dg.op
    def nothing() -> None: ...

    @dg.job(name="kb_batch")
    def batch() -> None:
        nothing()

    def away(*_: object) -> None:
        raise UnavailableError("The database is away.")

    told: list[str] = []

    def send(_settings: Settings, subject: str, _facts: object) -> list[str]:
        told.append(subject)
        return []

    monkeypatch.setattr(run_failure, "color_unfinished", away)
    monkeypatch.setattr(run_failure, "send", send)
    with dg.DagsterInstance.ephemeral() as instance:
        run = instance.create_run_for_job(batch, status=dg.DagsterRunStatus.STARTED)
        instance.report_run_failed(run, "lost")
        (event,) = instance.get_records_for_run(
            run.run_id, of_type=dg.DagsterEventType.RUN_FAILURE
        ).records
        failure = event.event_log_entry.dagster_event
        assert failure is not None
        context = dg.build_run_status_sensor_context(
            sensor_name="run_failures",
            dagster_event=failure,
            dagster_instance=instance,
            dagster_run=run,
            resources={"line": object()},
        ).for_run_failure()
        with pytest.raises(UnavailableError):
            run_failure.run_failures(context)
    assert told == [f"dagster-kb: run {run.run_id[:8]} of kb_batch failed"]
