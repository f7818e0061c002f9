"""Run launchers for more than one machine: what a run is told, and whether the launcher takes it.

The long form asks the launchers' own packages, in an environment of their own, since none of them
is among our dependencies.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
LAUNCHERS = sorted((ROOT / "deploy" / "launchers").glob("*.yaml"))
PIPELINE = {
    "KB_PIPELINE_DATABASE_URL",
    "KB_DAGSTER_DATABASE_URL",
    "KB_DAGSTER_URL",
    "DAGSTER_EVENT_BATCH_SIZE",
}
PACKAGES = ("dagster-docker", "dagster-k8s", "dagster-celery-k8s")
VALIDATE = """
import importlib, json, sys
from dagster._config import process_config, resolve_to_config_type
for module, name, config in json.load(sys.stdin):
    kind = getattr(importlib.import_module(module), name)
    found = process_config(resolve_to_config_type(kind.config_type()), config)
    print(json.dumps([name, found.success, [error.message for error in found.errors or ()]]))
"""


def launcher(path: Path) -> dict[str, Any]:
    found = yaml.safe_load(path.read_text())
    assert list(found) == ["run_launcher"]
    return dict(found["run_launcher"])


@pytest.mark.parametrize("path", LAUNCHERS, ids=lambda path: path.stem)
def test_a_run_is_told_what_the_pipeline_is_told_and_no_more(path: Path) -> None:
    config = launcher(path)["config"]
    named = {text.partition("=")[0] for text in config["env_vars"]}
    assert named <= PIPELINE
    assert named == PIPELINE or config["env_secrets"] == ["kb-pipeline"]
    # dagster-k8s would look there for a key `postgresql-password`, and start no pod without it.
    assert "postgres_password_secret" not in config
    # It stands behind the instance of a deployment without taking one of its places.
    instance = yaml.safe_load((ROOT / "deploy" / "dagster.yaml").read_text())
    assert "run_launcher" not in instance
    whole = yaml.safe_load((ROOT / "deploy" / "dagster.yaml").read_text() + path.read_text())
    assert set(whole) == {*instance, "run_launcher"}


def test_the_instance_of_a_deployment_is_that_of_one_machine() -> None:
    """What is tried on one machine holds on many."""
    one, many = (
        yaml.safe_load((ROOT / name).read_text())
        for name in ("kb_assets/dagster.yaml", "deploy/dagster.yaml")
    )
    assert one == many


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_launchers_take_their_configuration(tmp_path: Path) -> None:
    index = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    environment = os.environ | ({"UV_DEFAULT_INDEX": index} if index else {})
    uv = [sys.executable, "-m", "uv"]
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run(
        [*uv, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv")],
        env=environment, check=True,
    )  # fmt: skip
    subprocess.run(
        [*uv, "pip", "install", "--quiet", "--python", str(python), "dagster==1.13.27",
         *(f"{name}==0.29.27" for name in PACKAGES)],
        env=environment, check=True,
    )  # fmt: skip
    found = [launcher(path) for path in LAUNCHERS]
    asked = [(each["module"], each["class"], each["config"]) for each in found]
    done = subprocess.run(
        [str(python), "-W", "ignore", "-c", VALIDATE],
        env=environment | {"KB_CELERY_BROKER": "amqp://broker"},
        input=json.dumps(asked), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == [[each["class"], True, []] for each in found]
