"""`kb init`: everything that has to be there before the first document."""

from __future__ import annotations

import click

from kb.cli.output import say
from kb_resources.settings import load_settings


@click.command()
def init() -> None:
    """Make the data folder, start the database, apply migrations, prepare the model.

    On a local installation it also makes the secret of kb serve and an administrator's key.

    Running it again changes nothing.
    """
    from kb.access.bootstrap import bootstrap
    from kb_resources import embed
    from kb_resources.compose import migrate_database

    settings = load_settings()
    applied = migrate_database(settings)
    say(f"Schema: {len(applied)} migrations applied." if applied else "Schema: up to date.")
    made = embed.prepare(settings.models_path, settings.model)
    say(f"Model: {made.identity.model_id}, weights under {made.licence}.")
    say(f"Data: {settings.home}")
    first = bootstrap(settings)
    if first is not None:
        say(f"Administrator's key for kb serve, shown this once: {first.token}")
    say("Next: kb ingest FOLDER --scope NAME")
