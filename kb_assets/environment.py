"""Where this installation's Dagster lives: its home, its storage, the environment of its processes.

Belongs here: what `up` and `ingest` agree on. What does not: starting processes.
Instance configuration: https://docs.dagster.io/deployment/oss/oss-instance-configuration.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path

from kb_resources.compose import embedded_server
from kb_resources.settings import Settings

EVENTS_WRITTEN_TOGETHER = 50
"""Dagster writes the plans of a run in groups of so many instead of one by one."""


def dagster_home(settings: Settings) -> Path:
    """`DAGSTER_HOME`, or `dagster` in the installation's home."""
    return Path(os.environ.get("DAGSTER_HOME") or settings.home / "dagster").absolute()


def storage_url(settings: Settings) -> str:
    """SQLAlchemy URL of Dagster's storage; the embedded server is started where it is used."""
    if settings.dagster_database_url:
        return settings.dagster_database_url
    server = embedded_server(settings)
    server.start()
    return server.sqlalchemy_url()


def prepare_home(settings: Settings) -> Path:
    """Make the instance's folder, with the packaged dagster.yaml linked in.

    A dagster.yaml of the operator's own is left alone.
    """
    home = dagster_home(settings)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = home / "dagster.yaml"
    with resources.as_file(resources.files("kb_assets") / "dagster.yaml") as packaged:
        if file.is_symlink() and not file.exists():
            file.unlink(missing_ok=True)
        with suppress(FileExistsError):  # the operator's own, or another process was faster
            file.symlink_to(packaged.resolve())
    return home


def child_environment(settings: Settings) -> Mapping[str, str]:
    """Environment of Dagster's processes: the caller's, with what the instance needs."""
    return {
        **os.environ,
        "DAGSTER_HOME": str(dagster_home(settings)),
        "KB_HOME": str(settings.home.absolute()),
        "KB_DAGSTER_URL": storage_url(settings),
        "DAGSTER_EVENT_BATCH_SIZE": str(EVENTS_WRITTEN_TOGETHER),
    }
