"""`KbSource`: a watched folder or web page declared in YAML.

    type: kb_assets.source.KbSource
    attributes:
      name: handbook
      scope: acme
      folder: /srv/handbook        # or url: https://example.org/terms
      audiences: [staff]
      every_s: 30

Belongs here: the component and its validation. What does not: the folder sensor (`folders`) and
looking at pages (`kb_assets.watch`). Components: https://docs.dagster.io/guides/build/components.
"""

import re
from pathlib import Path
from typing import Annotated, Literal

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from kb_assets.batch import JOB_NAME
from kb_assets.folders.sensor import WatchedFolder, folder_sensor
from kb_resources.compose import fetch_policy
from kb_resources.errors import KbError
from kb_resources.model import validate_audience, validate_scope
from kb_resources.settings import load_settings
from kb_resources.stages.line import Line
from kb_resources.stages.watch import MAX_PAGES, WatchRequest, declare

MIN_URL_INTERVAL_S = 60
DEFAULT_URL_INTERVAL_S = 3600
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


class KbSource(dg.Component, dg.Resolvable, BaseModel):
    """A folder or a web page whose documents belong to one scope."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(description="Unique name; the sensor is source_<name>.")]
    scope: Annotated[str, Field(description="Scope of its documents.")]
    folder: Annotated[str | None, Field(description="Folder to watch.")] = None
    url: Annotated[str | None, Field(description="Or: http or https address to watch.")] = None
    audiences: Annotated[
        list[str], Field(description="Who may read them; empty: everyone in the scope.")
    ] = []
    every_s: Annotated[
        int | None,
        Field(ge=5, description="Seconds between looks at least; 30 for folders, 3600 for pages."),
    ] = None
    settle_s: Annotated[
        float, Field(ge=0, description="Seconds a file has to stand unchanged.")
    ] = 3.0
    removal_settle_s: Annotated[
        float, Field(ge=0, description="Seconds a file has to be gone to leave search.")
    ] = 60.0
    expand: Annotated[
        Literal["none", "sitemap", "feed"],
        Field(description="Whether the url names a page, or a sitemap or feed of pages."),
    ] = "none"
    limit: Annotated[
        int, Field(ge=1, le=MAX_PAGES, description="Pages at most of a sitemap or feed.")
    ] = 1000
    on_missing: Annotated[
        Literal["keep", "remove"],
        Field(description="What becomes of a page that answers 404 or 410."),
    ] = "keep"
    remove_after: Annotated[
        int, Field(ge=1, le=100, description="Looks in a row that must miss a page.")
    ] = 3

    @field_validator("name")
    @classmethod
    def _name_fits(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("use 1 to 41 of a-z, 0-9 and _, starting with a letter")
        return name

    @model_validator(mode="after")
    def _one_place(self) -> "KbSource":
        if bool(self.folder) == bool(self.url):
            raise ValueError("name either a folder or a url")
        if self.url and not re.match(r"https?://[^/\s]+", self.url):
            raise ValueError(f"{self.url!r} is not an http or https address")
        if self.url and self.every_s is not None and self.every_s < MIN_URL_INTERVAL_S:
            raise ValueError(f"every_s of a url is at least {MIN_URL_INTERVAL_S}")
        try:
            validate_scope(self.scope)
            for audience in self.audiences:
                validate_audience(audience)
        except KbError as error:
            raise ValueError(str(error)) from error
        return self

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:  # noqa: ARG002
        """The source's sensor, as Dagster's loader asks for it."""
        return dg.Definitions(sensors=[self.sensor()])

    def sensor(self) -> dg.SensorDefinition:
        """The source's sensor, asking for runs of `kb_batch`."""
        return self._url_sensor() if self.url else self._folder_sensor()

    def _folder_sensor(self) -> dg.SensorDefinition:
        watched = WatchedFolder(
            name=self.name,
            path=Path(self.folder or "").expanduser(),
            scope=self.scope,
            audiences=tuple(self.audiences),
            settle_s=self.settle_s,
            removal_settle_s=self.removal_settle_s,
        )
        return folder_sensor(
            lambda: watched,
            name=f"source_{self.name}",
            description=f"Watches the folder `{self.folder}` for scope `{self.scope}`.",
            interval_s=self.every_s or 30,
        )

    def _url_sensor(self) -> dg.SensorDefinition:
        """Keeps the watch as declared; the sensor `watched_urls` looks at its pages."""
        request = WatchRequest(
            scope=self.scope,
            url=str(self.url),
            audiences=tuple(self.audiences),
            every_s=self.every_s or DEFAULT_URL_INTERVAL_S,
            on_missing=self.on_missing,
            remove_after=self.remove_after,
            expand=self.expand,
            limit=self.limit,
            actor=f"source:{self.name}",
        )

        @dg.sensor(
            name=f"source_{self.name}",
            job_name=JOB_NAME,
            minimum_interval_seconds=request.every_s,
            default_status=dg.DefaultSensorStatus.RUNNING,
            description=(
                f"Keeps `{self.url}` watched for scope `{self.scope}`; its pages are looked at by "
                "the sensor `watched_urls`."
            ),
        )
        def sensor(
            _context: dg.SensorEvaluationContext, line: dg.ResourceParam[Line]
        ) -> dg.SkipReason:
            row = declare(
                line.capabilities.database,
                request,
                policy=fetch_policy(load_settings()),
                languages=line.languages,
                now=line.capabilities.clock(),
            )
            return dg.SkipReason(f"Watch {row.watch_id} stands as declared.")

        return sensor
