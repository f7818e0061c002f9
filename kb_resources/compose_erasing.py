"""What erasing and exporting are built from: the composition root's part for both.

Belongs here: which folders, journal and database stand behind `stages.erase`, and where the git
export goes. What does not: the order of an erasure. How Dagster's storage is emptied is given by
the caller: the reading side starts a child process for it, Dagster's own processes do it here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kb_resources.compose import embedded_server, own_server, owner_dsn
from kb_resources.errors import UnavailableError

if TYPE_CHECKING:
    from kb_resources.settings import Settings
    from kb_resources.stages.erase import Eraser, ForgetElsewhere
    from kb_resources.stages.erase_files import ErasableFiles
    from kb_resources.stages.export import ExportSwitch, ExportTarget
    from kb_resources.stages.line import Line

SWITCH = "export-git"


def eraser(
    settings: Settings,
    line: Line,
    *,
    dagster: ForgetElsewhere,
    dagster_here: bool,
    rewrite: bool | None = None,
) -> Eraser:
    """The eraser of an installation.

    Args:
        settings: of the installation.
        line: its open line.
        dagster: empties Dagster's storage.
        dagster_here: whether Dagster's tables may lie in the embedded server.
        rewrite: whether the database's files are rewritten at once; None: where that is quick.
    """
    from kb_resources.stages.erase import Eraser
    from kb_resources.store.erasure_journal import FILE_NAME, ErasureJournal

    target = export_target(settings)
    return Eraser(
        capabilities=line.capabilities,
        journal=ErasureJournal(settings.home / FILE_NAME),
        files=erasable_files(settings),
        dagster=dagster,
        scrub=lambda: _scrub(settings, dagster_here=dagster_here, rewrite=rewrite),
        exporting=str(target.folder) if target else "",
    )


def erasable_files(settings: Settings) -> ErasableFiles:
    """The data folder without what the stores manage themselves."""
    from kb_resources.stages.erase_files import ErasableFiles

    home = settings.home
    managed = [home / "postgres", home / "dagster", settings.models_path]
    if "://" not in settings.blob_location:
        managed.append(Path(settings.blob_location))
    return ErasableFiles(home, tuple(managed))


def export_switch(settings: Settings) -> ExportSwitch:
    """What `kb export git` turned on, by hand."""
    from kb_resources.stages.export import ExportSwitch

    return ExportSwitch(settings.home / SWITCH)


def export_target(settings: Settings) -> ExportTarget | None:
    """Where the git export goes: as the settings say, else as it was turned on; None: it is off."""
    from kb_resources.stages.export import ExportTarget

    if settings.export_git is not None:
        return ExportTarget(settings.export_git.absolute())
    return export_switch(settings).target()


def _scrub(settings: Settings, *, dagster_here: bool, rewrite: bool | None) -> str:
    import psycopg

    from kb_resources.store.roles import DAGSTER_DATABASE
    from kb_resources.store.scrub import scrub

    if own_server(settings) and not settings.database_url:
        return (
            "The database's files were not vacuumed: this process has no connection as the owner; "
            "autovacuum clears them, or run VACUUM there."
        )
    ours = not settings.database_url
    sentences = []
    try:
        sentences.append(scrub(owner_dsn(settings), schema="kb", ours=ours, rewrite=rewrite))
        if dagster_here and not settings.dagster_database_url:
            dsn = embedded_server(settings).dsn("owner", DAGSTER_DATABASE)
            sentences.append(scrub(dsn, schema="public", ours=True, rewrite=rewrite))
    except psycopg.Error as error:
        raise UnavailableError(
            f"The database could not be vacuumed: {error}".strip(),
            next_step="The erasure itself is complete; run kb erasures --resume to try this again.",
        ) from error
    return " ".join(dict.fromkeys(filter(None, sentences)))
