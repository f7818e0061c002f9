"""The first minute: nothing was ingested yet, and nothing is red."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import dagster as dg
import pytest

if TYPE_CHECKING:
    from tests.dagster.conftest import Plant


@pytest.mark.requirement("P-16")
def test_every_asset_about_scopes_bears_that_there_is_none(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_assets.scopes import GROUP_NAME

    monkeypatch.setenv("KB_DAGSTER_DATABASE_URL", os.environ["KB_DAGSTER_URL"])
    repository = plant.defs.get_repository_def()
    keys = dg.AssetSelection.groups(GROUP_NAME).resolve(repository.asset_graph)
    assert len(keys) >= 6
    job = plant.defs.resolve_implicit_global_asset_job_def()
    for key in sorted(keys):
        result = job.execute_in_process(
            asset_selection=[key], instance=plant.instance, raise_on_error=False
        )
        assert result.success, f"{key.to_user_string()}: {plant.failure_message(result)}"
        for check in result.get_asset_check_evaluations():
            assert check.passed, check.check_name
