"""`kb passages`: one passage by its id, alone or between its neighbours."""

from __future__ import annotations

import click

from kb.cli.explain import print_notes
from kb.cli.options import audience_option, json_option, scope_option
from kb.cli.output import dump, say
from kb.cli.search import print_hit


@click.group()
def passages() -> None:
    """Look at passages."""


@passages.command()
@click.argument("passage_id")
@scope_option
@audience_option("A name the reader holds; repeat for more.")
@click.option("--version", default=None, type=int, help="Version; default the newest valid one.")
@json_option
def show(
    passage_id: str,
    scope: str | None,
    audiences: tuple[str, ...],
    version: int | None,
    as_json: bool,
) -> None:
    """Print the passage with this id and where it stands."""
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        hit = kb.passage(passage_id, scope=scope or "", audiences=audiences, version=version)
    if as_json:
        dump(hit.to_json())
    else:
        print_hit(hit)


@passages.command()
@click.argument("passage_id")
@scope_option
@audience_option("A name the reader holds; repeat for more.")
@click.option("--version", default=None, type=int, help="Version; default the newest valid one.")
@click.option("--before", default=2, show_default=True, help="Passages before it (0 to 50).")
@click.option("--after", default=2, show_default=True, help="Passages after it (0 to 50).")
@json_option
def context(
    passage_id: str,
    scope: str | None,
    audiences: tuple[str, ...],
    version: int | None,
    before: int,
    after: int,
    as_json: bool,
) -> None:
    """Print a passage between its neighbours, and the link that opens it in the page."""
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        found = kb.context(
            passage_id, before, after, scope=scope or "", audiences=audiences, version=version
        )
    if as_json:
        dump(found.to_json())
        return
    for hit in (*found.before, found.passage, *found.after):
        print_hit(hit, mark=">" if hit is found.passage else " ")
    if found.notes:
        print_notes(found.notes)
    say(f"link  {found.link}")
