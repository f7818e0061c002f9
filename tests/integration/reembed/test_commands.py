"""`kb reembed` and `kb models prepare`, as somebody types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kb.cli.group import cli
from kb_resources.errors import PolicyError
from kb_resources.settings import as_environment
from tests.integration.embed.fake_server import FakeServer
from tests.integration.line.conftest import Bench
from tests.integration.reembed.conftest import OTHER, SERVED, counted, held

Run = Callable[..., Any]


@pytest.fixture
def kb(bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process; what it printed, read where it is JSON."""
    for name, value in as_environment(bench.settings).items():
        monkeypatch.setenv(name, value)
    bench.ingest("leave.md", "# Leave\n\nEvery employee has thirty days of paid annual leave.\n")

    def run(*arguments: str) -> Any:
        cli.main(list(arguments), standalone_mode=False)
        out = capsys.readouterr().out
        return json.loads(out) if "--json" in arguments else out

    return run


@pytest.mark.requirement("O-28", "B-19")
def test_a_scope_gets_another_model_by_commands(bench: Bench, kb: Run) -> None:
    own = bench.line.capabilities.versions.model_id
    scope = ("--scope", "acme")
    asked = kb("reembed", "start", *scope, "--model", OTHER, "--dry-run", "--json")
    assert (asked["live"], asked["passages"], asked["texts"]) == (own, 1, 1)
    assert asked["started"] is False
    assert held(bench).beside is None
    assert "to compute     1 vectors" in kb("reembed", "start", *scope, "--model", OTHER)
    assert "0 of 1 passages" in kb("reembed", "status")
    (stands,) = kb("reembed", "status", *scope, "--json")
    assert (stands["beside_is"], stands["done"], stands["total"]) == ("shadow", 0, 1)
    with pytest.raises(PolicyError, match="kb reembed fill --scope acme"):
        kb("reembed", "swap", *scope)
    assert "1 vectors computed" in kb("reembed", "fill", *scope)
    checked = kb("reembed", "check", *scope, "--json")
    assert (checked["holds"], checked["recall"], checked["questions"]) == (True, 1.0, 1)
    assert "It holds." in kb("reembed", "check", *scope)
    swapped = kb("reembed", "swap", *scope, "--json")
    assert (swapped["beside"], swapped["missing"]) == (own, 0)
    assert swapped["live"].startswith(OTHER)
    assert f"searched by {own}" in kb("reembed", "rollback", *scope)
    kb("reembed", "swap", *scope)
    assert kb("reembed", "drop", *scope, "--json") == {"scope": "acme", "deleted": 1}
    events = [entry["event"] for entry in kb("scopes", "show", "acme", "--json")["history"]]
    assert events[-5:] == [
        *("reembed_started", "reembed_swapped", "reembed_rolled_back", "reembed_swapped"),
        "reembed_dropped",
    ]
    assert "KB_MODEL is another model" in kb("reembed", "status")


@pytest.mark.requirement("O-37", "P-61")
def test_a_served_model_is_prepared_and_taken_by_commands(
    bench: Bench, kb: Run, fake: FakeServer
) -> None:
    url = fake.endpoint().url
    told = kb("models", "prepare", SERVED, "--endpoint", url, "--served-as", "tiny-model")
    assert "1024 dimensions" in told
    assert {body["model"] for _, _, body in fake.requests} == {"tiny-model"}
    kb("reembed", "start", "--scope", "acme", "--model", SERVED)
    assert kb("reembed", "fill", "--scope", "acme", "--json")["embedded"] == 1
    kb("reembed", "swap", "--scope", "acme")
    found = kb("search", "days of leave", "--scope", "acme", "--mode", "vector", "--json")
    assert found["hits"][0]["title"] == "Leave"
    assert counted(bench, held(bench).live) == (1, 1)
