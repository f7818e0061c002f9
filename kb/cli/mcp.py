"""`kb mcp`: the knowledge base as tools of a model, over standard input and output."""

from __future__ import annotations

import click

from kb.cli.options import audience_option


@click.command()
@click.option(
    "--scope", "scopes", multiple=True, metavar="S", help="Scope it may read; repeat for more."
)
@audience_option("A name the model's user holds; repeat for more.")
def mcp(scopes: tuple[str, ...], audiences: tuple[str, ...]) -> None:
    """Serve read-only tools to a model: search, passage context, outline, cite check.

    Speaks the Model Context Protocol on standard input and output; add it to a client as the
    command `kb mcp --scope NAME`. Nothing outside the scopes named can be read.
    """
    from kb.ingesting import local_actor
    from kb.mcp import create_server
    from kb.reader import open_reader
    from kb_resources.errors import ScopeRequired
    from kb_resources.model import Principal, validate_audience, validate_scope
    from kb_resources.settings import load_settings

    if not scopes:
        raise ScopeRequired("No scope was given.", next_step="Name one with --scope NAME.")
    principal = Principal(
        local_actor(),
        audiences=frozenset(map(validate_audience, audiences)),
        scopes=frozenset(map(validate_scope, scopes)),
    )
    with open_reader(load_settings()) as reader:
        create_server(reader, lambda _request: principal, scopes=scopes).run("stdio")
