"""Dagster resources that give plain objects: the line, the batch a run is about, the limits.

Belongs here: configuration in Dagster's terms and the life of what it opens. What does not: what
the objects do. See https://docs.dagster.io/guides/build/external-resources.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dagster as dg
from pydantic import Field

from kb_resources.compose import open_line
from kb_resources.errors import KbError
from kb_resources.model import AnyStage, DocumentState, stage_of
from kb_resources.settings import Settings, load_settings
from kb_resources.stages.line import Line


class LineResource(dg.ConfigurableResource[Line]):
    """The ingestion line, opened for a run or a sensor tick and closed after it.

    Every field left empty is read from its `KB_*` variable in the process that runs.
    """

    home: str = Field("", description="Folder of all local data (KB_HOME).")
    database_url: str = Field("", description="Your own Postgres (KB_DATABASE_URL).")

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Generator[Line, None, None]:  # noqa: ARG002
        """Open the line; a setting that does not fit or a database that is away ends the run."""
        try:
            opened = open_line(self.settings(), counters={})
            line = opened.__enter__()
        except KbError as error:
            raise dg.Failure(str(error), metadata={"code": error.code}) from error
        try:
            yield line
        finally:
            opened.__exit__(None, None, None)

    def create_resource(self, context: dg.InitResourceContext) -> Line:
        """Not used: the line needs closing, so it comes from `yield_for_execution`."""
        raise NotImplementedError

    def settings(self) -> Settings:
        """Settings of this resource: its fields over the environment."""
        given = {"KB_HOME": self.home, "KB_DATABASE_URL": self.database_url}
        return load_settings(os.environ | {name: value for name, value in given.items() if value})


@dataclass(frozen=True, slots=True)
class BatchSelection:
    """Which documents and stages a `kb_batch` run is about.

    Attributes:
        batch_id: id of a stored list, or empty.
        scope: scope to select from instead, or empty.
        states: states selected.
        documents: ids in the scope, instead of states.
        limit: documents at most.
        stages: stages to run; empty: all.
    """

    batch_id: str = ""
    scope: str = ""
    states: tuple[DocumentState, ...] = ()
    documents: tuple[str, ...] = ()
    limit: int = 0
    stages: tuple[AnyStage, ...] = ()


class BatchResource(dg.ConfigurableResource[BatchSelection]):
    """What `kb_batch` was asked for; filled from the job's configuration, empty in asset runs."""

    batch_id: str = ""
    scope: str = ""
    states: list[str] = Field(default_factory=list)
    documents: list[str] = Field(default_factory=list)
    limit: int = 0
    stages: list[str] = Field(default_factory=list)

    def create_resource(self, context: dg.InitResourceContext) -> BatchSelection:  # noqa: ARG002
        """The selection in strong types."""
        return BatchSelection(
            batch_id=self.batch_id,
            scope=self.scope,
            states=tuple(DocumentState(state) for state in self.states),
            documents=tuple(self.documents),
            limit=self.limit,
            stages=tuple(stage_of(stage) for stage in self.stages),
        )


class LimitsResource(dg.ConfigurableResource[dict[str, int]]):
    """Bounds that checks hold documents to."""

    def create_resource(self, context: dg.InitResourceContext) -> dict[str, int]:  # noqa: ARG002
        """`token_limit`: tokens of a chunk at most."""
        return {"token_limit": load_settings().chunk_tokens}


def resources(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Resources of the code location, with some replaced."""
    return {
        "line": LineResource(home="", database_url=""),
        "batch": BatchResource(),
        "limits": LimitsResource(),
        **overrides,
    }
