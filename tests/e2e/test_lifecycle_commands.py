"""Decisions, history, backup as a user types them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import Kb

LEAVE = "# Leave\n\nEvery employee has thirty days of paid annual leave in a calendar year.\n"
S = ("--scope", "decisions")


@pytest.fixture(scope="module")
def document(kb: Kb, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("sources") / "leave.md"
    for text in (LEAVE, LEAVE.replace("thirty", "thirty-two")):
        file.write_text(text)
        done = kb("ingest", str(file), *S, "--no-dagster", "--json")
        assert done.code == 0, done.err
    return str(done.lines[0]["document_id"])


def test_versions_and_decisions(kb: Kb, document: str) -> None:
    done = kb("documents", "diff", document, *S, "--from", "1", "--to", "2")
    assert "thirty{+-two+} days" in done.out
    assert kb("documents", "diff", document, *S, "--from", "1", "--to", "9").code == 3
    why = ("--reason", "asked", "--actor", "cli:ana")
    done = kb("documents", "set-audiences", document, *S, "--audience", "hr", *why)
    assert (done.code, "open to hr" in done.out) == (0, True)
    assert kb("search", "annual leave", *S, "--json").json["hits"] == []
    assert kb("search", "annual leave", *S, "--audience", "hr", "--json").json["hits"]
    assert kb("documents", "set-audiences", document, *S, *why).code == 2
    assert kb("documents", "set-audiences", document, *S, "--everyone", *why).code == 0
    assert "removed from search" in kb("remove", document, *S, *why).out
    assert kb("search", "annual leave", *S, "--json").json["hits"] == []
    assert "restored (indexed)" in kb("restore-document", document, *S, *why).out
    assert kb("search", "annual leave", *S, "--json").json["hits"]
    assert kb("remove", document, *S).code == 2
    held = kb("documents", "history", document, *S, "--known-at", "2999-01-01", "--json").json
    assert [item["version"] for item in held] == [1, 2, 2]
    done = kb("lifecycle", "verify", *S)
    assert (done.code, "Every chain holds." in done.out) == (0, True)


@pytest.mark.requirement("P-66")
def test_a_backup_comes_back(kb: Kb, document: str, tmp_path: Path) -> None:
    file = tmp_path / "kb.tar"
    done = kb("backup", str(file))
    assert (done.code, "2 blobs" in done.out) == (0, True), done.err
    refused = kb("restore", str(file))
    assert refused.code == 1
    assert "--force" in refused.err
    why = ("--reason", "asked", "--yes")
    erased = kb("erase", document, *S, *why)
    assert (erased.code, "Certificate of erasure" in erased.out) == (0, True), erased.err
    done = kb("restore", str(file), "--force")
    assert (done.code, "Erased again: 1" in done.out) == (0, True), done.err
    assert kb("search", "annual leave", *S, "--json").json["hits"] == []
    assert len(kb("erasures", *S, "--json").json) == 2


@pytest.mark.requirement("P-36", "P-12")
def test_the_git_export_follows_by_itself_and_keeps_from_erasing(kb: Kb, tmp_path: Path) -> None:
    scope = ("--scope", "exported")
    file = tmp_path / "leave.md"
    file.write_text(LEAVE)
    done = kb("ingest", str(file), *scope, "--no-dagster", "--json")
    document = str(done.lines[0]["document_id"])
    repository = tmp_path / "repository"
    assert kb("export", "git").code == 2
    try:
        first = kb("export", "git", str(repository), *scope, "--json")
        assert (first.code, first.json["documents"], first.json["changed"]) == (0, 1, 1)
        folder = repository / "exported" / document
        assert "thirty days" in (folder / "document.md").read_text()
        file.write_text(LEAVE.replace("thirty", "forty"))
        assert kb("ingest", str(file), *scope, "--no-dagster").code == 0
        assert "forty days" in (folder / "document.md").read_text()
        again = kb("export", "git", *scope)
        assert "nothing changed" in again.out
        why = ("--reason", "asked", "--actor", "cli:ana")
        refused = kb("erase", document, *scope, *why, "--yes")
        assert refused.code == 4
        assert "kb export git --off" in refused.err
        assert kb("remove", document, *scope, *why).code == 0
        assert not folder.exists()
    finally:
        off = kb("export", "git", "--off")
    assert str(repository) in off.out
    assert kb("erase", document, *scope, *why, "--yes").code == 0
