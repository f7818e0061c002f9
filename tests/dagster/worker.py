"""A worker process: runs `kb_batch` for each batch id it reads from stdin, and says how it went."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    import dagster as dg

    from kb_assets.jobs import run_batch
    from kb_assets.workers import WORKER_TAG, this_worker

    with dg.DagsterInstance.get() as instance:
        print("ready", flush=True)
        for line in sys.stdin:
            batch_id = line.strip()
            tags = {"kb/batch": batch_id, WORKER_TAG: this_worker()}
            result = run_batch(instance, {"batch_id": batch_id}, tags)
            print("done" if result.success else f"failed: {reasons(result)}", flush=True)


def reasons(result: Any) -> str:
    """What the failed steps said, in one line."""
    said = []
    for event in result.all_events:
        if event.is_failure:
            said.append(f"{event.event_type_value}: {event.message}")
        error = event.step_failure_data.error if event.is_step_failure else None
        while error is not None:
            said.append(error.message)
            error = error.cause
    return " | ".join(said).replace("\n", " ")


if __name__ == "__main__":
    main()
