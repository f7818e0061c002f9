"""The code location: everything Dagster loads, and the only module-level `Definitions`.

Belongs here: putting the parts together. What does not: any part. Loading it reads the YAML files
in `KB_SOURCES` (default `<KB_HOME>/sources`) and opens nothing.
Code locations: https://docs.dagster.io/deployment/code-locations.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from kb_assets.answers import citations, log_partitions
from kb_assets.batch import kb_batch
from kb_assets.cost import cost
from kb_assets.crowding import crowding
from kb_assets.dagster_history import dagster_history
from kb_assets.evaluation import evaluation
from kb_assets.events import change_sensor
from kb_assets.folders.sensor import WatchedFolder, dropzone_of, folder_sensor
from kb_assets.generations import generations
from kb_assets.line import document_assets, executor, kb_documents
from kb_assets.reconcile import reconciliation
from kb_assets.reembed import reembed_nightly
from kb_assets.reembed_job import kb_reembed
from kb_assets.review import kb_review
from kb_assets.run_failure import run_failures
from kb_assets.scopes import automation_sensor, health, terms
from kb_assets.source import KbSource
from kb_assets.source_files import read_sources
from kb_assets.stranded import stranded_documents
from kb_assets.vector_indexes import vector_indexes
from kb_assets.watch import default_options, watch_sensor
from kb_resources.bindings.line import resources
from kb_resources.compose_generate import stages_asked
from kb_resources.settings import load_settings

CODE_LOCATION = "kb"


def build_defs(
    overrides: Mapping[str, Any] | None = None, *, sources: Sequence[KbSource] = ()
) -> dg.Definitions:
    """All definitions of the code location.

    Args:
        overrides: resources by name that replace the default ones (`line`, `batch`, `limits`).
        sources: declared sources; each becomes a sensor.

    The stages that ask a model are in the graph where the settings turn them on.
    """
    models = stages_asked(load_settings())
    return dg.Definitions(
        assets=[
            document_assets(models),
            health,
            terms,
            vector_indexes,
            generations,
            citations,
            log_partitions,
            evaluation,
            crowding,
            reconciliation,
            dagster_history,
            cost,
        ],
        jobs=[kb_batch(models), kb_documents(models), kb_review(models), kb_reembed()],
        sensors=[
            folder_sensor(
                _dropzone,
                name="dropzone",
                description=(
                    "Files dropped into `<dropzone>/<scope>/` become documents of that scope once "
                    "they have settled. `kb.yaml` in a scope's folder says whom they are for."
                ),
            ),
            watch_sensor(default_options),
            stranded_documents,
            run_failures,
            automation_sensor(),
            change_sensor(),
            *(source.sensor() for source in sources),
        ],
        schedules=[reembed_nightly],
        resources=resources(overrides or {}),
        executor=executor,
    )


def _dropzone() -> WatchedFolder:
    return dropzone_of(os.environ, load_settings().home)


def _sources() -> list[KbSource]:
    folder = os.environ.get("KB_SOURCES")
    return read_sources(Path(folder) if folder else load_settings().home / "sources")


defs = build_defs(sources=_sources())
