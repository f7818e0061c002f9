"""Answers by command: asked, cited, traced, replayed, over a home of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kb.cli.errors import guard
from kb.cli.group import cli
from tests.e2e.conftest import Done, Kb
from tests.integration.answer.chat_server import chatting

Run = Callable[..., Done]

LEAVE = "# Leave\n\nAnnual leave is 25 working days. Up to five days may be carried over.\n"
NEWER = "# Leave\n\nA new first paragraph.\n\nAnnual leave is 25 working days. No days move.\n"
RULE = "Annual leave is 25 working days."


@pytest.fixture(scope="module")
def file(kb: Kb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sources") / "leave.md"
    made.write_text(LEAVE)
    done = kb("ingest", str(made.parent), "--scope", "acme", "--no-dagster", "--json")
    assert done.code == 0, done.err
    return made


@pytest.fixture
def here(kb: Kb, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The same commands in this process, which saves starting one for each."""
    for name, value in kb.environment.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        code = guard(cli, arguments)
        told = capsys.readouterr()
        return Done(code, told.out, told.err)

    return run


@pytest.fixture(scope="module")
def answer(kb: Kb, file: Path) -> Any:
    done = kb("ask", "How long is annual leave?", "--scope", "acme", "--json")
    assert done.code == 0, done.err
    return done.json


def test_an_answer_is_what_the_documents_say(here: Run, answer: Any) -> None:
    assert answer["statements"][0] == {"text": RULE, "citations": [1], "supported": True}
    cited = answer["citations"][0]
    assert cited["quote"] == RULE
    assert cited["selector"][0]["exact"] == RULE
    told = here("ask", "How long is annual leave?", "--scope", "acme")
    assert f"{RULE} [1]" in told.out
    nothing = here("ask", "Who painted the bridge?", "--scope", "acme")
    assert "do not answer" in nothing.out
    assert nothing.code == 0


def test_the_questions_of_the_demo_are_answered_where_search_finds_the_passage(
    kb: Kb, here: Run
) -> None:
    root = Path(__file__).parents[2]
    questions = json.loads((root / "tools/examples/questions.json").read_text("utf-8"))
    texts = (".md", ".html")  # the other formats take long to read
    asked = [q for q in questions if not q["document"] or q["document"].endswith(texts)]
    files = [str(root / "examples" / q["document"]) for q in asked if q["document"]]
    done = kb("ingest", *files, "--scope", "handbook", "--no-dagster", "--json")
    assert done.code == 0, done.err
    assert len(files) == 4
    for question in asked:
        told = here("ask", question["question"], "--scope", "handbook", "--json").json
        said = " ".join(statement["text"] for statement in told["statements"])
        if question["phrase"]:
            assert question["phrase"] in " ".join(said.split()), question
        else:
            assert told["abstained"], question


def test_a_model_is_asked_where_one_is_set(kb: Kb, here: Run, file: Path) -> None:
    with chatting() as chat:
        chat.says(("25 days.", [(1, RULE)]), ("Made up.", [(1, "Annual leave is 99 days.")]))
        done = kb(
            *("ask", "How long is annual leave?", "--scope", "acme"),
            KB_ANSWER_URL=chat.url,
            KB_ANSWER_MODEL="test-model",
        )
        assert done.code == 0, done.err
        assert "25 days. [1]" in done.out
        assert "Made up.  (not supported by any passage)" in done.out
        assert "Rejected (absent): Annual leave is 99 days." in done.out
        blocked = kb(
            *("ask", "How long is annual leave?", "--scope", "acme", "--json"),
            KB_ANSWER_URL=chat.url,
            KB_ANSWER_MODEL="test-model",
            KB_ANSWER_HOSTING="external",
        )
        assert blocked.code == 4
        assert "disclosure_blocked" in blocked.err
        assert len(chat.asked) == 1
        assert here("audit", "classify", "public", "--scope", "acme").code == 0
        allowed = kb(
            *("ask", "How long is annual leave?", "--scope", "acme"),
            KB_ANSWER_URL=chat.url,
            KB_ANSWER_MODEL="test-model",
            KB_ANSWER_HOSTING="external",
        )
        assert allowed.code == 0, allowed.err
        assert here("audit", "classify", "none", "--scope", "acme").code == 0


def test_settings_that_do_not_fit_are_told(kb: Kb, file: Path) -> None:
    done = kb("ask", "x", "--scope", "acme", KB_ANSWER_URL="http://127.0.0.1:1/v1")
    assert done.code == 2
    assert "KB_ANSWER_MODEL" in done.err


@pytest.mark.requirement("O-48", "O-49", "P-76")
def test_an_answer_is_traced_to_its_bytes(here: Run, answer: Any) -> None:
    done = here("audit", "trace", answer["correlation_id"], "--scope", "acme", "--json")
    assert done.code == 0, done.err
    source = done.json["sources"][0]
    assert source["cited"]
    assert source["bytes_hold"]
    assert source["accounted_for"]
    assert "hold" in here("audit", "trace", answer["correlation_id"], "--scope", "acme").out
    assert here("audit", "trace", "unknown", "--scope", "acme").code == 3
    assert here("audit", "trace", answer["correlation_id"]).code == 2


def test_a_citation_is_kept_and_follows_its_document(
    kb: Kb, here: Run, file: Path, answer: Any
) -> None:
    passage = answer["citations"][0]["passage_id"]
    kept = kb("cite", "add", passage, "--quote", RULE, "--scope", "acme", "--json").json
    assert kept["status"] == "stands"
    refused = here("cite", "add", passage, "--quote", "Leave is 99 days long.", "--scope", "acme")
    assert refused.code == 4
    question = "How long is annual leave?"
    logged = answer["correlation_id"]
    same = here("replay", logged, "--query", question, "--scope", "acme", "--json").json
    assert same["unchanged"]
    file.write_text(NEWER)
    done = kb("ingest", str(file.parent), "--scope", "acme", "--no-dagster")
    assert done.code == 0, done.err
    (checked,) = kb("cite", "check", "--scope", "acme", "--json").json
    assert (checked["status"], checked["version_now"]) == ("moved", 2)
    assert "moved" in here("cite", "list", "--scope", "acme").out
    changed = kb("replay", logged, "--query", question, "--scope", "acme", "--json").json
    assert changed["reproduced"]
    assert {item["cause"] for item in changed["passages"]} == {"document"}
    assert "holds since" in here("replay", logged, "--query", question, "--scope", "acme").out
    wrong = here("replay", logged, "--query", "Another question?", "--scope", "acme")
    assert wrong.code == 2
    assert here("cite", "remove", kept["citation_id"], "--scope", "acme").code == 0
    assert here("cite", "list", "--scope", "acme", "--json").json == []


def test_the_key_of_the_log_is_the_owners_alone(kb: Kb, answer: Any) -> None:
    assert (kb.home / "question.key").stat().st_mode & 0o777 == 0o600
