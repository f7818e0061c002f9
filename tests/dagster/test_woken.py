"""A duplicate whose first document changed: taken up by the daemon, and by `kb ingest` itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import pytest

from kb_resources.settings import load_settings
from kb_resources.stages.orchestration import waiting_documents

if TYPE_CHECKING:
    from tests.dagster.conftest import Plant

LEAVE = "# Leave\n\nEvery employee has thirty days of paid leave in a calendar year.\n"
PAY = "# Pay\n\nSalaries are paid on the last working day of each calendar month.\n"


def _states(plant: Plant) -> dict[str, str]:
    with plant.line.capabilities.database.transaction("pipeline") as conn:
        return dict(conn.execute("select origin, state from kb.document").fetchall())


@pytest.mark.requirement("B-28")
def test_the_daemon_takes_a_woken_duplicate_up(plant: Plant) -> None:
    from kb_assets.stranded import stranded_documents

    plant.batch(plant.register({"a.md": LEAVE, "b.md": LEAVE}))
    assert _states(plant) == {"a.md": "indexed", "b.md": "duplicate"}
    plant.batch(plant.register({"a.md": PAY}))
    assert _states(plant) == {"a.md": "indexed", "b.md": "pending"}
    with plant.line.capabilities.database.transaction("owner") as conn:
        conn.execute("update kb.document set updated_at = updated_at - interval '1 hour'")
        conn.execute("update kb.batch set created_at = created_at - interval '1 hour'")
    assert len(waiting_documents(plant.line, older_than_s=120, max_tries=3, limit=9)) == 1
    resources = {"line": plant.line}
    with dg.build_sensor_context(instance=plant.instance, resources=resources) as context:
        result = stranded_documents(context)
    (request,) = result.run_requests
    plant.run_batch(request.run_config, request.tags)
    assert _states(plant) == {"a.md": "indexed", "b.md": "indexed"}


@pytest.mark.requirement("B-28")
def test_ingesting_through_dagster_runs_the_duplicates_that_it_wakes(plant: Plant) -> None:
    from kb import running

    settings = load_settings()
    with pytest.MonkeyPatch.context() as patch:
        # In this process: that the child records the same is shown in `test_upkeep`.
        patch.setattr(running, "_run_in_dagster", lambda _line, keys, *_: plant.batch(keys))
        first = plant.register({"a.md": LEAVE, "b.md": LEAVE})
        assert running.run_keys(plant.line, first, settings, actor="test") == []
        assert _states(plant) == {"a.md": "indexed", "b.md": "duplicate"}
        changed = plant.register({"a.md": PAY})
        assert running.run_keys(plant.line, changed, settings, actor="test") == [first[1]]
    assert _states(plant) == {"a.md": "indexed", "b.md": "indexed"}
