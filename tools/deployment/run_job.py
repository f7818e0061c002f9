"""The Kubernetes job that `dagster-k8s` makes of one run, for each `dagster.yaml` given.

Runs in an environment of its own with `dagster-k8s`, see `__main__`. Input: JSON of texts by name;
output: JSON of manifests by name.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any
from unittest import mock

import yaml


def job(launcher: dict[str, Any]) -> dict[str, Any]:
    """The manifest, as the launcher would send it.

    Raises:
        SystemExit: Dagster refuses the launcher's configuration.
    """
    import kubernetes  # type: ignore[import-not-found]
    from dagster._config import process_config, resolve_to_config_type
    from dagster._core.test_utils import instance_for_test
    from dagster_k8s.container_context import K8sContainerContext  # type: ignore[import-not-found]
    from dagster_k8s.job import construct_dagster_k8s_job  # type: ignore[import-not-found]

    kind = getattr(importlib.import_module(launcher["module"]), launcher["class"])
    found = process_config(resolve_to_config_type(kind.config_type()), launcher["config"])
    if not found.success or found.value is None:
        raise SystemExit("\n".join(error.message for error in found.errors or ()))
    with mock.patch("kubernetes.config.load_incluster_config"):
        made = kind.from_config_value(None, found.value)
    with instance_for_test():
        context = K8sContainerContext.create_for_run(
            mock.Mock(job_code_origin=None), made, include_run_tags=False
        )
    body = construct_dagster_k8s_job(
        job_config=context.get_k8s_job_config(job_image=None, run_launcher=made),
        args=["dagster", "api", "execute_run", "…"],
        job_name="dagster-run-0",
        pod_name="dagster-run-0",
        component="run_worker",
        user_defined_k8s_config=context.run_k8s_config,
        labels={"dagster/job": "kb_batch"},
    )
    return dict(kubernetes.client.ApiClient().sanitize_for_serialization(body))


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps({name: job(yaml.safe_load(text)["run_launcher"])
                      for name, text in asked.items()}))  # fmt: skip
