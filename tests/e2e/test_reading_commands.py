"""Reading on the command line: around a passage, through a document, back to its bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import Kb

RULES = (
    "# House rules\n\nThese rules hold for all tenants.\n\n"
    "## Deposit\n\nThe deposit is returned within thirty days.\n\n"
    "## Keys\n\nA lost key is reported to the caretaker on the same day.\n"
)


@pytest.fixture(scope="module")
def key_rule(kb: Kb, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The hit about keys; the same text lies in two files."""
    folder: Path = tmp_path_factory.mktemp("sources")
    (folder / "rules.md").write_text(RULES)
    (folder / "copy.md").write_text(RULES.replace("# House rules", "# Rules of the house"))
    assert kb("ingest", str(folder), "--scope", "acme", "--no-dagster").code == 0
    found = kb("search", "lost key", "--scope", "acme", "--collapse", "--json").json
    return found["hits"][0] | {"collapsed": found["collapsed"]}


def test_hits_that_say_the_same_are_folded_and_named(key_rule: Any) -> None:
    assert key_rule["collapsed"] >= 1
    assert len(key_rule["also"]) == 1
    assert key_rule["passage_id"] not in key_rule["also"]


@pytest.mark.requirement("P-76")
def test_context_prints_the_neighbours_and_the_link(kb: Kb, key_rule: Any) -> None:
    done = kb("passages", "context", key_rule["passage_id"], "--scope", "acme", "--json")
    assert done.json["passage"]["text"] == key_rule["text"]
    assert "thirty days" in done.json["before"][-1]["text"]
    assert done.json["after"] == []
    assert done.json["link"].endswith(f"p={key_rule['passage_id']}")


@pytest.mark.requirement("W-22")
def test_the_outline_is_a_tree(kb: Kb, key_rule: Any) -> None:
    done = kb("documents", "outline", key_rule["document_id"], "--scope", "acme")
    headings = [line.split("  (")[0] for line in done.out.splitlines()[1:]]
    assert [heading.strip() for heading in headings][1:] == ["Deposit", "Keys"]
    assert headings[0].startswith("  ")
    assert headings[1].startswith("    ")


def test_explain_leads_back_to_the_bytes(kb: Kb, key_rule: Any) -> None:
    done = kb("explain", key_rule["passage_id"], "--scope", "acme", "--json")
    assert done.code == 0, done.err
    found = done.json
    assert found["digest"] == key_rule["digest"]
    texts = {hashlib.sha256(RULES.encode()).hexdigest()}
    texts.add(
        hashlib.sha256(RULES.replace("# House rules", "# Rules of the house").encode()).hexdigest()
    )
    assert found["digest"] in texts
    assert [stage["stage"] for stage in found["stages"]][:4] == [
        "acquire", "parse", "language", "scan",
    ]  # fmt: skip
    assert found["verdict"] == "clean"
    assert found["vectors"][0]["model_id"].startswith("multilingual-e5-small")
    assert all(found["checks"].values())


def test_an_unknown_passage_is_not_found(kb: Kb, key_rule: Any) -> None:
    done = kb("explain", key_rule["passage_id"] + "x", "--scope", "acme")
    assert (done.code, "There is no passage" in done.err) == (3, True)
