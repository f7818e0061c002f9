"""`python -m kb_assets.ingest BATCH_ID`: one kb_batch run in this process, recorded in Dagster.

Belongs here: the child process of `kb ingest`, so that the reading side never imports Dagster.
Exit codes: 0 the run succeeded, 1 documents broke, 5 the instance is away or the batch unknown.
One JSON object on stdout says what became of the run. SIGUSR1 cancels it: Dagster calls a run
failed, and people are alerted, unless canceling was written down before the interrupt.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kb_resources.errors import KbError

if TYPE_CHECKING:
    import dagster as dg


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the batch named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m kb_assets.ingest", description=__doc__)
    parser.add_argument("batch_id", help="id of a stored list of documents")
    given = parser.parse_args(arguments)
    try:
        outcome = run(given.batch_id)
    except KbError as error:
        print(error, file=sys.stderr)
        return 5
    print(json.dumps(outcome))
    return 0 if outcome["success"] else 1


def run(batch_id: str) -> dict[str, object]:
    """Run a stored batch against the configured instance.

    Raises:
        KbError: the settings do not fit, or a database is away.
    """
    import dagster as dg

    from kb_assets.batch import Priority, batch_tags
    from kb_assets.doors import BATCH_TAG
    from kb_assets.environment import child_environment, prepare_home
    from kb_assets.jobs import run_batch
    from kb_assets.workers import WORKER_TAG, this_worker
    from kb_resources.settings import load_settings

    settings = load_settings()
    prepare_home(settings)
    os.environ.update(child_environment(settings))
    # The run's record is in Dagster; the caller's terminal gets one line.
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    tags = batch_tags(batch_id, scopes=[], priority=Priority.INTERACTIVE, cause="kb ingest")
    tags[WORKER_TAG] = this_worker()
    with dg.DagsterInstance.get() as instance:
        _cancel_when_told(instance, tags[BATCH_TAG])
        result = run_batch(instance, {"batch_id": batch_id}, tags)
    return {"run_id": result.run_id, "success": result.success}


def _cancel_when_told(instance: dg.DagsterInstance, batch_id: str) -> None:
    import dagster as dg

    from kb_assets.doors import BATCH_TAG

    def cancel() -> None:
        for run in instance.get_runs(dg.RunsFilter(tags={BATCH_TAG: batch_id})):
            if not run.is_finished:
                instance.report_run_canceling(run)
        os.kill(os.getpid(), signal.SIGINT)

    def told(_signal: int, _frame: object) -> None:
        # Not here: the storage's connection may be in use just now.
        threading.Thread(target=cancel, daemon=True).start()

    signal.signal(signal.SIGUSR1, told)


if __name__ == "__main__":
    sys.exit(main())
