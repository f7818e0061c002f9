"""What one manifest says of another: names that must exist, labels that must meet.

Schemas look at one manifest at a time; this looks between them. Every function answers in sentences
that say what is wrong, none where nothing is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Manifest = Mapping[str, Any]
WORKLOADS = ("Deployment", "Job")


def pods(manifests: Sequence[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Name of the workload and its pod template."""
    for each in manifests:
        if each["kind"] in WORKLOADS:
            yield f"{each['kind']} {each['metadata']['name']}", each["spec"]["template"]


def named(manifests: Sequence[Manifest], kind: str) -> set[str]:
    """Names of one kind."""
    return {each["metadata"]["name"] for each in manifests if each["kind"] == kind}


def secrets(values: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Secret and key of everything that values.yaml says must exist."""
    return {
        (each["name"], key) for each in values["secrets"].values() for key in each["keys"].values()
    }


def faults(manifests: Sequence[Manifest], values: Mapping[str, Any]) -> list[str]:
    """All of them.

    Args:
        manifests: of one release, run jobs included.
        values: as the release was rendered with.
    """
    found = [*_twice(manifests), *_selectors(manifests), *_ingresses(manifests)]
    for name, pod in pods(manifests):
        found += [f"{name}: {fault}" for fault in _pod(pod, manifests, values)]
    return found


def environment(container: Manifest) -> dict[str, Any]:
    """Variables of a container by name."""
    return {each["name"]: each for each in container.get("env", ())}


def _twice(manifests: Sequence[Manifest]) -> Iterator[str]:
    seen = set()
    for each in manifests:
        key = (each["kind"], each["metadata"]["name"])
        if key in seen:
            yield f"{key[0]} {key[1]} is there twice"
        seen.add(key)


def _pod(pod: Manifest, manifests: Sequence[Manifest], values: Mapping[str, Any]) -> Iterator[str]:
    spec = pod["spec"]
    account = spec.get("serviceAccountName")
    if account and account not in named(manifests, "ServiceAccount"):
        yield f"service account {account} is not made"
    wanted = values["images"].get("pullSecrets", [])
    if (spec.get("imagePullSecrets") or []) != wanted:
        yield "its images' pull secrets are not those of the values"
    if not spec.get("securityContext", {}).get("runAsNonRoot"):
        yield "may run as root"
    volumes = {each["name"]: each for each in spec.get("volumes") or ()}
    for each in volumes.values():
        config = (each.get("configMap") or {}).get("name")
        if config and config not in named(manifests, "ConfigMap"):
            yield f"config map {config} is not made"
    for container in spec["containers"]:
        yield from (
            f"volume {mount['name']} is not there"
            for mount in container.get("volumeMounts") or ()
            if mount["name"] not in volumes
        )
        if not container.get("securityContext", {}).get("readOnlyRootFilesystem"):
            yield "may write to its image"
        for name, variable in environment(container).items():
            reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
            if reference and (reference["name"], reference["key"]) not in secrets(values):
                yield f"{name} needs key {reference['key']} of secret {reference['name']}"


def _selectors(manifests: Sequence[Manifest]) -> Iterator[str]:
    deployments = {
        each["metadata"]["name"]: each["spec"]["template"]
        for each in manifests
        if each["kind"] == "Deployment"
    }
    for each in manifests:
        spec = each.get("spec", {})
        if each["kind"] == "Service":
            labels = spec["selector"]
        elif each["kind"] in ("NetworkPolicy", "PodDisruptionBudget", "Deployment"):
            labels = spec.get("podSelector", spec.get("selector"))["matchLabels"]
        else:
            continue
        chosen = [name for name, pod in deployments.items()
                  if labels.items() <= pod["metadata"]["labels"].items()]  # fmt: skip
        called = f"{each['kind']} {each['metadata']['name']}"
        if len(chosen) != 1:
            yield f"{called} chooses {len(chosen)} deployments"
        elif each["kind"] == "Service":
            ports = {port["name"] for container in deployments[chosen[0]]["spec"]["containers"]
                     for port in container.get("ports", ())}  # fmt: skip
            yield from (f"{called}: no port {port['targetPort']}" for port in spec["ports"]
                        if port["targetPort"] not in ports)  # fmt: skip


def _ingresses(manifests: Sequence[Manifest]) -> Iterator[str]:
    ports = {
        (each["metadata"]["name"], port["name"])
        for each in manifests
        if each["kind"] == "Service"
        for port in each["spec"]["ports"]
    }
    for each in manifests:
        if each["kind"] != "Ingress":
            continue
        for rule in each["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                service = path["backend"]["service"]
                if (service["name"], service["port"]["name"]) not in ports:
                    yield f"Ingress {each['metadata']['name']}: no service {service['name']}"
