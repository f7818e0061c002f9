"""Five documents planted on one question raise an alarm, and one command takes all of them out.

The planted texts are polite lies, which no scan can tell from truth. Honest newcomers, as many, on
subjects of their own, raise none.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from kb.cli.eval import crowding
from kb.cli.lifecycle import remove
from kb_resources.settings import as_environment
from kb_resources.stages.crowding import Alarm, judge, measure
from kb_resources.store.crowding import NewPassage
from tests.integration.line.conftest import Bench, bench, models_dir, settings

__all__ = ["bench", "models_dir", "settings"]

QUESTION = "How many days of annual leave does an employee get?"
SUBJECTS = (
    "annual leave", "travel expenses", "parking permits", "fire drills", "meeting rooms",
    "visitor badges", "laptop loans", "canteen cards", "overtime pay", "training budgets",
    "sick notes", "key deposits", "mail rooms", "printer paper", "bicycle racks", "locker rental",
    "window cleaning", "night shifts", "first aid kits", "archive boxes",
)  # fmt: skip
RULES = {
    "Who decides": "The head of unit {n} decides on {subject} within {days} working days.",
    "Where to ask": "Questions on {subject} go to desk {n} on floor {days}, before noon.",
    "What it costs": "The yearly sum for {subject} is {n}{days}0 euro and is paid in {days} parts.",
}


def handbook(number: int, subject: str) -> str:
    sections = "\n\n".join(
        f"## {heading}\n\n{text.format(n=number, subject=subject, days=number % 7 + 2)}"
        for heading, text in RULES.items()
    )
    lead = (
        "An employee gets thirty days of annual leave each year."
        if number == 0
        else f"This page says how {subject} are handled in the company."
    )
    return f"# {subject.title()}\n\n{lead}\n\n{sections}\n"


def planted(number: int) -> str:
    closing = (
        "starting now",
        "by the new rule",
        "as agreed",
        "for all sites",
        "until further notice",
    )
    return (
        f"# Annual leave notice {number}\n\n{QUESTION} An employee gets four days of annual leave "
        f"each year, {closing[number]}.\n"
    )


def ask(bench: Bench) -> list[str]:
    return [hit.document_id for hit in bench.search(QUESTION, k=5).hits]


@pytest.mark.requirement("P-44")
def test_five_documents_planted_on_one_question_raise_an_alarm_and_go_by_one_command(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, subject in enumerate(SUBJECTS):
        bench.write(f"handbook/{number}.md", handbook(number, subject))
    keys = [
        bench.line.register(bench.request(f"handbook/{number}.md"))
        for number in range(len(SUBJECTS))
    ]
    bench.line.run_all(keys)
    questions = bench.settings.home / "evaluation"
    questions.mkdir(parents=True)
    label = {"document": keys[0].document_id}
    (questions / "acme.jsonl").write_text(
        json.dumps({"id": "leave", "text": QUESTION, "relevant": [label]}) + "\n"
    )
    # The command below takes them out by the true time.
    caps = replace(bench.line.capabilities, clock=lambda: datetime.now(UTC))

    since = datetime.now(UTC)
    honest = [f"news/{number}.md" for number in range(5)]
    for number, name in enumerate(honest):
        subject = ("tea kitchens", "lift repairs", "name plates", "flag days", "choir evenings")
        bench.write(name, handbook(number + 40, subject[number]))
    bench.line.run_all([bench.line.register(bench.request(name)) for name in honest])
    calm = measure(caps, "acme", since=since, folder=questions)
    assert (calm.questions, calm.new_passages > 4, calm.alarms) == (65, True, ())

    since = datetime.now(UTC)
    names = [f"inbox/{number}.md" for number in range(5)]
    for number, name in enumerate(names):
        bench.write(name, planted(number))
    bad = [bench.line.register(bench.request(name)) for name in names]
    bench.line.run_all(bad)
    assert {row.state for row in bench.line.rows(bad)} == {"indexed"}  # the scan cannot know
    assert set(ask(bench)) & {key.document_id for key in bad}
    found = measure(caps, "acme", since=since, folder=questions)
    by_question = {alarm.question: alarm for alarm in found.alarms if alarm.kind == "crowd"}
    alarm = by_question["acme.jsonl/leave"]
    assert alarm.count >= 3
    assert set(alarm.documents) <= {key.document_id for key in bad}
    assert set(alarm.origins) <= set(names)

    for name, value in as_environment(bench.settings).items():
        monkeypatch.setenv(name, value)
    # The command counts in days from now: what came before the planted is made a month old.
    with bench.line.capabilities.database.owner_session() as conn:
        conn.execute(
            "update kb.version set created_at = created_at - interval '30 days'"
            " where created_at < %s",
            [since],
        )
    told = CliRunner().invoke(crowding, ["--scope", "acme", "--json"], standalone_mode=False)
    assert told.return_value == 1
    said = json.loads(told.stdout)
    assert said["questions"] == found.questions
    assert {each for one in said["alarms"] for each in one["documents"]} <= {
        key.document_id for key in bad
    }
    spoken = CliRunner().invoke(crowding, ["--scope", "acme"], standalone_mode=False)
    assert spoken.return_value == 1
    assert f"{said['new_passages']} of {said['passages']} passages are new" in spoken.stdout
    assert "inbox/" in spoken.stdout
    none = CliRunner().invoke(crowding, ["--scope", "acme", "--days", "0"], standalone_mode=False)
    assert (none.return_value, "0 of" in none.stdout) == (0, True)

    done = CliRunner().invoke(
        remove, ["--scope", "acme", "--source", str(bench.folder / "inbox"), "--reason", "planted"]
    )
    assert done.exit_code == 0, done.output
    assert {row.state for row in bench.line.rows(bad)} == {"removed"}
    assert {row.state for row in bench.line.rows(keys)} == {"indexed"}
    assert not set(ask(bench)) & {key.document_id for key in bad}
    assert measure(caps, "acme", since=since, folder=questions).alarms == ()


def test_all_of_a_batch_go_by_one_command(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        bench.write(f"{number}.md", handbook(number, SUBJECTS[number]))
    keys = [bench.line.register(bench.request(f"{number}.md")) for number in range(3)]
    bench.line.run_all(keys)
    batch = bench.line.new_batch(keys[:2], actor="test", cause="test")
    for name, value in as_environment(bench.settings).items():
        monkeypatch.setenv(name, value)
    for code in (0, 0):  # twice is no error
        done = CliRunner().invoke(
            remove, ["--scope", "acme", "--batch", batch, "--reason", "planted"]
        )
        assert done.exit_code == code, done.output
    assert [row.state for row in bench.line.rows(keys)] == ["removed", "removed", "indexed"]


def test_a_new_passage_in_many_lists_is_a_hub() -> None:
    new = [NewPassage("odd", "p", "odd.md")]
    asked = [(f"q{n}", f"d{n}") for n in range(40)]
    lists = [[(f"d{n}", "x"), ("odd", "p")] if n < 9 else [(f"d{n}", "x")] for n in range(40)]
    [alarm] = judge(asked, lists, new, total=2000)
    assert alarm == Alarm("hub", "", ("odd",), ("odd.md",), 9, 40)
    assert judge(asked, [row[:1] for row in lists], new, total=2000) == ()


def test_a_scope_that_is_new_for_the_most_part_raises_none() -> None:
    new = [NewPassage(f"n{n}", "p", "new.md") for n in range(500)]
    lists = [[(f"n{row * 5 + n}", "p") for n in range(5)] for row in range(20)]
    assert judge([("q", "d")] * 20, lists, new, total=600) == ()
