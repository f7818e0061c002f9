"""`kb export git`: published documents as a git repository."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.lifecycle import deciding
from kb.cli.options import json_option
from kb.cli.output import dump, say
from kb_resources.model import validate_scope
from kb_resources.settings import load_settings

if TYPE_CHECKING:
    from kb_resources.stages.export import ExportSwitch, ExportTarget


@click.group()
def export() -> None:
    """Write documents to other places."""


@export.command("git")
@click.argument("path", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--scope", "scopes", multiple=True, metavar="S", help="Scope; repeat for more.")
@click.option("--off", is_flag=True, help="Switch the export off, so that erasing is possible.")
@json_option
def git(path: Path | None, scopes: tuple[str, ...], off: bool, as_json: bool) -> None:
    """Write what is published to a git repository, one commit for all that changed.

    From then on each batch of these scopes is committed by itself, like each decision about a
    document. Without PATH it goes where it went before. While it is on, nothing can be erased,
    because a repository keeps what was deleted from it.
    """
    from kb_resources.compose_erasing import export_switch, export_target
    from kb_resources.stages.export import export_git

    settings = load_settings()
    switch, now = export_switch(settings), export_target(settings)
    if off:
        _turn_off(switch, now, as_json)
        return
    target = path.absolute() if path else now.folder if now else None
    if target is None or not scopes:
        raise click.UsageError("Name a folder and at least one --scope.")
    names = [validate_scope(scope) for scope in scopes]
    with deciding(None) as (line, _):
        if settings.export_git is None:
            before = (now.scopes or set(names)) if now and now.folder == target else set()
            switch.turn_on(target, sorted({*before, *names}))
        done = export_git(line.capabilities, target, names)
    if as_json:
        dump(asdict(done))
    elif done.commit:
        say(f"{done.commit[:12]}: {done.changed} documents changed, {done.deleted} left.")
    else:
        say(f"{done.documents} documents, nothing changed.")


def _turn_off(switch: ExportSwitch, now: ExportTarget | None, as_json: bool) -> None:
    before = switch.turn_off()
    stays = now is not None and now != before
    if as_json:
        dump({"on": stays, "was": str(before.folder) if before else None})
    elif now is not None and stays:
        say(f"It stays on while KB_EXPORT_GIT is set, and goes to {now.folder}.")
    elif before is not None:
        say(f"Off. Delete {before.folder} before you erase anything.")
    else:
        say("It was off.")
