"""`kb backup FILE` and `kb restore FILE`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kb.cli.options import json_option
from kb.cli.output import dump, say
from kb_resources.settings import load_settings


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
def backup(file: Path, as_json: bool) -> None:
    """Write database, stored bytes and erasure journal into one file, while others go on working.

    Secrets (KB_HOME/secret, KB_HOME/question.key), models and Dagster's history are not in it.
    """
    from kb import backing

    made = backing.write(load_settings(), file)
    if as_json:
        dump(asdict(made) | {"file": str(file)})
        return
    say(f"{file}: database at {made.migration}, {made.blobs} blobs.")
    for name in made.missing:
        say(f"  missing in the blob store: {name}")
    say("Keep KB_HOME/secret and KB_HOME/question.key apart; they are not in it.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Replace a knowledge base that is not empty.")
@click.option(
    "--journal",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=None,
    help="Erasure journal of the machine the backup is from (its KB_HOME/erasures.jsonl).",
)
@click.option(
    "--unsigned",
    is_flag=True,
    help="Trust whoever made FILE, though it is not by this installation's secret.",
)
@json_option
def restore(file: Path, force: bool, journal: Path | None, unsigned: bool, as_json: bool) -> None:
    """Restore a backup; its maker and every part are checked first.

    A dump is a program: who could change the archive could run commands here. So only one that was
    made with this installation's secret is taken. What was erased since is erased again.
    """
    from kb import backing

    done = backing.restore(load_settings(), file, force=force, journal=journal, unsigned=unsigned)
    if as_json:
        dump(asdict(done))
        return
    say(f"Restored: state of {done.summary.created_at}, {done.summary.blobs} blobs.")
    say(f"Erased again: {done.erased_again} documents that were erased after the backup.")
    if done.model_differs:
        say(f"The backup is by {done.summary.model['identity']}; see kb reembed status.")
