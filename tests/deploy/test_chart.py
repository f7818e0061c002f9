"""The chart as Helm renders it, and what `make validate-deploy` would say of a broken one.

The long form runs that command: it needs the package index for Helm's engine, Kubernetes' schemas,
dagster-k8s, docker-compose and hadolint.
"""

from __future__ import annotations

import copy
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "dagster-kb"
PIPELINE = {
    "KB_PIPELINE_DATABASE_URL",
    "KB_DAGSTER_DATABASE_URL",
    "KB_DAGSTER_URL",
    "DAGSTER_EVENT_BATCH_SIZE",
}
SETTINGS = {"KB_BLOB_URL", "KB_LANGUAGES"}
TOLD = {
    "kb-migrate": {"KB_DATABASE_URL"},
    "kb-api": {"KB_APP_DATABASE_URL", "KB_SECRET", "KB_LOG_KEY", "KB_PUBLIC_URL"},
    "kb-code-server": PIPELINE,
    "kb-daemon": PIPELINE,
    "kb-webserver": PIPELINE,
    "kb-worker": PIPELINE,
    "dagster-run-0": PIPELINE | {"DAGSTER_HOME"},
}


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools/deployment" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


references = module("references")
VALUES = {
    "images": {"pullSecrets": [{"name": "registry"}]},
    "secrets": {"read": {"name": "kb-read", "keys": {"secret": "KB_SECRET"}}},
}
SOUND = """
kind: ServiceAccount
metadata: {name: kb-read}
---
kind: ConfigMap
metadata: {name: kb-instance}
---
kind: Deployment
metadata: {name: kb-api}
spec:
  selector: {matchLabels: {part: api}}
  template:
    metadata: {labels: {part: api, version: "1"}}
    spec:
      serviceAccountName: kb-read
      imagePullSecrets: [{name: registry}]
      securityContext: {runAsNonRoot: true}
      containers:
        - name: api
          ports: [{name: main, containerPort: 8765}]
          env: [{name: KB_SECRET, valueFrom: {secretKeyRef: {name: kb-read, key: KB_SECRET}}}]
          securityContext: {readOnlyRootFilesystem: true}
          volumeMounts: [{name: instance, mountPath: /dagster}]
      volumes: [{name: instance, configMap: {name: kb-instance}}]
---
kind: Service
metadata: {name: kb-api}
spec: {selector: {part: api}, ports: [{name: main, port: 80, targetPort: main}]}
---
kind: NetworkPolicy
metadata: {name: kb-api}
spec: {podSelector: {matchLabels: {part: api}}}
---
kind: Ingress
metadata: {name: kb-api}
spec:
  rules:
    - http: {paths: [{path: /, backend: {service: {name: kb-api, port: {name: main}}}}]}
"""


def sound() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(SOUND))


def test_manifests_that_fit_together_have_no_fault() -> None:
    assert references.faults(sound(), VALUES) == []


@pytest.mark.parametrize(
    ("there", "instead", "said"),
    [
        ("serviceAccountName: kb-read", "serviceAccountName: kb-other", "service account kb-other"),
        ("key: KB_SECRET", "key: postgresql-password", "key postgresql-password of secret kb-read"),
        ("configMap: {name: kb-instance}", "configMap: {name: gone}", "config map gone"),
        ("[{name: instance, mountPath", "[{name: blobs, mountPath", "volume blobs is not there"),
        ("imagePullSecrets: [{name: registry}]", "hostNetwork: false", "pull secrets"),
        ("selector: {part: api},", "selector: {part: apis},", "Service kb-api chooses 0"),
        ("podSelector: {matchLabels: {part: api}}", "podSelector: {matchLabels: {part: x}}",
         "NetworkPolicy kb-api chooses 0"),
        ("targetPort: main", "targetPort: http", "no port http"),
        ("port: {name: main}}}}", "port: {name: web}}}}", "no service kb-api"),
        ("runAsNonRoot: true", "runAsUser: 0", "may run as root"),
        ("readOnlyRootFilesystem: true", "privileged: true", "may write to its image"),
    ],
)  # fmt: skip
def test_what_does_not_meet_is_named(there: str, instead: str, said: str) -> None:
    assert there in SOUND
    broken = list(yaml.safe_load_all(SOUND.replace(there, instead)))
    assert any(said in fault for fault in references.faults(broken, VALUES))


def test_two_of_one_name_are_named() -> None:
    twice = [*sound(), copy.deepcopy(sound()[1])]
    assert references.faults(twice, VALUES) == ["ConfigMap kb-instance is there twice"]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.requirement("P-17", "P-57", "P-58")
def test_every_set_of_values_is_rendered_and_taken() -> None:
    done = subprocess.run(
        [sys.executable, "tools/deployment"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sets = {path.stem for path in (ROOT / "build" / "deploy").glob("*.yaml")}
    given = {path.stem.removesuffix("-values") for path in (CHART / "ci").glob("*-values.yaml")}
    assert sets == given | {"defaults"}
    one = yaml.safe_load((ROOT / "deploy" / "dagster.yaml").read_text())
    for name in sorted(sets):
        made = list(yaml.safe_load_all((ROOT / "build/deploy" / f"{name}.yaml").read_text()))
        told = {
            pod_of.partition(" ")[2]: set(references.environment(container))
            for pod_of, pod in references.pods(made)
            for container in pod["spec"]["containers"]
        }
        assert {each: variables - SETTINGS for each, variables in told.items()} == {
            each: TOLD[each] for each in told
        }
        (text,) = [each["data"]["dagster.yaml"] for each in made if each["kind"] == "ConfigMap"]
        instance = yaml.safe_load(text)
        runs = instance["concurrency"]["runs"].pop("max_concurrent_runs")
        assert ("run_launcher" in instance) == ("dagster-run-0" in told) == (name != "code-server")
        instance.pop("run_launcher", None)
        assert runs == (12 if name == "object-store" else 4)
        rest = copy.deepcopy(one)
        rest["concurrency"]["runs"].pop("max_concurrent_runs", None)
        assert instance == rest, name


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "values",
    ["blobs: {url: '', existingClaim: ''}", "runs: {launcher: swarm}", "blobUrl: s3://old"],
)
def test_values_that_cannot_work_are_refused(values: str, tmp_path: Path) -> None:
    """By the chart's schema, before anything is installed."""
    given = tmp_path / "bad-values.yaml"
    given.write_text(values)
    done = subprocess.run(
        [sys.executable, "tools/deployment", str(given)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "wrong: bad: values.yaml" in done.stderr, done.stderr
