"""`kb review`: a decision shows what it is about and holds for that alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kb.cli.errors import guard
from kb.cli.group import cli
from kb_resources.settings import Settings, as_environment
from tests.read.http.conftest import HELD

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Run:
    """Run a command in this process, after a held document was ingested."""
    for name, value in as_environment(settings).items():
        monkeypatch.setenv(name, value)

    def command(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = guard(cli, arguments)
        return (code, *capsys.readouterr())

    path = tmp_path / "tickets.md"
    path.write_text(HELD)
    command("ingest", str(path), "--scope", "acme", "--document-id", "tickets", "--no-dagster")
    return command


@pytest.mark.requirement("P-81")
def test_a_decision_names_what_was_looked_at(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    place = ("tickets", "--scope", "acme")
    code, shown, _ = run("review", "show", *place)
    assert code == 0
    [digest] = [line.removeprefix("digest ") for line in shown.splitlines() if "digest" in line]
    for looked_at in (
        ("--version", "2"),
        ("--digest", "0" * 64),
        ("--version", "2", "--digest", digest),
    ):
        code, out, err = run("review", "release", *place, "--reason", "x", *looked_at)
        assert (code, "is version 1 now" in err) == (1, True), out
    code, out, _ = run("review", "release", *place, "--reason", "x", "--digest", digest)
    assert code == 0
    assert shown.splitlines()[0] in out
    assert "tickets: indexed" in out


@pytest.mark.parametrize(
    ("agrees", "code", "told", "state"),
    [
        (False, 1, "Nothing was decided.", "quarantined"),
        (True, 0, "tickets: blocked, its texts are deleted", "blocked"),
    ],
)
def test_a_person_at_a_terminal_is_asked_first(
    run: Run, monkeypatch: pytest.MonkeyPatch, agrees: bool, code: int, told: str, state: str
) -> None:
    asked = []

    def answer(question: str) -> bool:
        asked.append(question)
        return agrees

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", answer)
    ended, out, _ = run("review", "reject", "tickets", "--scope", "acme", "--reason", "not ours")
    assert asked == ["Reject this version?"]
    assert (ended, out.splitlines()[-1]) == (code, told)
    assert f": {state}" in run("review", "show", "tickets", "--scope", "acme")[1]


def test_a_decision_reaches_the_git_export(run: Run, tmp_path: Path) -> None:
    place = ("tickets", "--scope", "acme")
    folder = tmp_path / "repository" / "acme" / "tickets"
    assert run("export", "git", str(tmp_path / "repository"), "--scope", "acme")[0] == 0
    assert not folder.exists()
    assert run("review", "release", *place, "--reason", "x")[0] == 0
    assert folder.is_dir()


def test_whatever_a_command_does_with_json_it_prints_json(run: Run, tmp_path: Path) -> None:
    why = ("--scope", "acme", "--reason", "x")
    run("export", "git", str(tmp_path / "repository"), "--scope", "acme")
    for expected, arguments in (
        ({"finished": 0}, ["erasures", "--resume"]),
        (
            {"key": "acme:tickets", "changed": False},
            ["documents", "set-audiences", "tickets", *why, "--follow-source"],
        ),
        ({"on": False, "was": str(tmp_path / "repository")}, ["export", "git", "--off"]),
        ({"on": False, "was": None}, ["export", "git", "--off"]),
    ):
        code, out, err = run(*arguments, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out) == expected
