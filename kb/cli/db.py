"""`kb db`: the embedded server and the schema."""

from __future__ import annotations

from dataclasses import asdict

import click

from kb.cli.options import json_option
from kb.cli.output import dump, say
from kb_resources.settings import load_settings


@click.group()
def db() -> None:
    """Start, stop and migrate the database."""


@db.command()
def start() -> None:
    """Start the embedded server, or find it running, and bring its schema up to date."""
    from kb_resources.compose import embedded_server, migrate_database

    settings = load_settings()
    server = embedded_server(settings)
    server.start()
    migrate_database(settings)
    say(f"PostgreSQL runs; its socket is in {server.status().socket_dir}.")


@db.command()
def stop() -> None:
    """Stop the embedded server; clean shutdown, nothing is lost."""
    from kb_resources.compose import embedded_server

    embedded_server(load_settings()).stop()
    say("PostgreSQL is stopped.")


@db.command()
@json_option
def status(as_json: bool) -> int:
    """Whether the server runs, and where it lives."""
    from kb_resources.compose import embedded_server

    found = embedded_server(load_settings()).status()
    if as_json:
        dump(
            {key: str(value) if value is not None else None for key, value in asdict(found).items()}
        )
    else:
        for name, value in asdict(found).items():
            say(f"{name:12} {'' if value is None else value}")
    return 0 if found.running else 5


@db.command()
def migrate() -> None:
    """Apply migrations not applied yet."""
    from kb_resources.compose import migrate_database

    applied = migrate_database(load_settings())
    say("\n".join(f"applied {name}" for name in applied) or "The schema is up to date.")


@db.command()
@click.option("--plan", "only_plan", is_flag=True, help="Say what would be changed.")
@json_option
def indexes(only_plan: bool, as_json: bool) -> None:
    """Give large scopes a vector index of their own, and take it from those that shrank."""
    from kb_resources.compose import open_database
    from kb_resources.store import ann

    with open_database(load_settings()) as database, database.session("owner") as conn:
        changes = ann.plan(conn) if only_plan else ann.maintain(conn)
    if as_json:
        dump([asdict(change) for change in changes])
        return
    say("\n".join(f"{c.action:8} {c.name}  {c.vectors} vectors" for c in changes) or "All is well.")


@db.command()
@click.option("--extensions", is_flag=True, help="Only what a database administrator must run.")
def ddl(extensions: bool) -> None:
    """Print the schema as SQL, for those who own theirs with other tools."""
    from kb_resources.store import migrate as migrations

    say(migrations.extension_ddl() if extensions else migrations.ddl())
