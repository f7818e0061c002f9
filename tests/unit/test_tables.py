"""Tables of the command line: ids stay whole at any width, and nothing is left out unsaid."""

from __future__ import annotations

import pytest

from kb.cli.ingest import print_ends
from kb.cli.output import table
from kb.ingesting import Ingested

HEADERS = ["document", "version", "state", "title", "reason"]
ROWS = [
    ["de-urlaubsregelung-md-e1f044a50c54", 1, "indexed", "Urlaub und Übertragung", ""],
    ["x" * 100, 12, "quarantined", None, "It says to ignore what was said; see kb review show x"],
    ["memo", 3, "duplicate", "Меморандум о сарадњи", "The bytes are those of notes-e1f044a50c54."],
    ["wide", 1, "indexed", "株式会社", "Antidisestablishmentarianism, said twice."],
]
IDS = [str(row[0]) for row in ROWS] + ["notes-e1f044a50c54."]


@pytest.mark.parametrize("columns", [1, 60, 80, 100, 160, 500])
def test_ids_are_never_folded(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    table(HEADERS, ROWS)
    told = capsys.readouterr().out
    for wanted in IDS:
        assert any(wanted in line for line in told.splitlines()), wanted
    letters = sorted(told.replace("─", "").split())
    said = " ".join(str(cell) for row in [HEADERS, *ROWS] for cell in row if cell is not None)
    assert sorted("".join(letters)) == sorted("".join(said.split()))


def test_what_fits_is_not_folded_and_an_empty_table_is_its_head(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    table(["id", "title"], [["a", "Two words"], ["b", "Three words more"]])
    assert capsys.readouterr().out.splitlines() == [
        "id   title", "─" * 21, "a    Two words", "b    Three words more",
    ]  # fmt: skip
    table(["id", "title"], [])
    assert capsys.readouterr().out.splitlines() == ["id   title", "─" * 10]


def test_documents_that_a_stop_left_waiting_are_one_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    waiting = [Ingested(f"/x/{n}.md", f"x-{n}", None, None, "pending", "") for n in range(300)]
    held = Ingested("/x/held.md", "held", 1, "0" * 64, "pending", "It may not go to that model.")
    done = Ingested("/x/done.md", "done", 1, "0" * 64, "indexed", "")
    print_ends([done, held, *waiting])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[4].startswith("300 documents not begun")
    assert lines[5] == "302 documents: 1 indexed, 301 pending"
    print_ends([done, held, *waiting], as_json=True)
    assert len(capsys.readouterr().out.splitlines()) == 302
