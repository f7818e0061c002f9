"""`kb documents`: what the ledger knows, and the commands of `lifecycle` that change it."""

from __future__ import annotations

from dataclasses import asdict

import click

from kb.cli.coverage import coverage_lines
from kb.cli.lifecycle import diff, remove, restore, set_audiences
from kb.cli.options import audience_option, instant, json_option, scope_option
from kb.cli.output import dump, say, table
from kb.standing import with_in_force
from kb_resources.model import DocumentState


@click.group()
def documents() -> None:
    """List documents, show one, its history or its headings; remove, restore, set readers."""


for command in (diff, set_audiences, remove, restore):
    documents.add_command(command)


@documents.command("list")
@scope_option
@audience_option("Show as a holder of this name sees it; repeat for more.")
@click.option(
    "--state",
    type=click.Choice([state.value for state in DocumentState]),
    metavar="STATE",
    default=None,
    help="Only documents in this state: indexed, quarantined, failed…",
)
@click.option("--limit", default=100, show_default=True, help="Documents at most (1 to 1000).")
@json_option
def list_(
    scope: str | None, audiences: tuple[str, ...], state: str | None, limit: int, as_json: bool
) -> None:
    """Documents of a scope, newest first."""
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        rows = kb.documents(
            scope=scope or "", audiences=audiences or None, state=state, limit=limit
        )
    if as_json:
        dump(rows)
        return
    table(
        ["document", "version", "state", "language", "title", "reason"],
        [
            [
                row["document_id"],
                row["version"],
                row["state"],
                row["language"],
                row["title"],
                with_in_force(row["reason"], row["state"], row["in_force"]),
            ]
            for row in rows
        ],
    )


@documents.command()
@click.argument("document_id")
@scope_option
@json_option
def show(document_id: str, scope: str | None, as_json: bool) -> None:
    """One document: state, source, coverage, events."""
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        found = kb.document(document_id, scope=scope or "")
    if as_json:
        dump(found)
        return
    for name in ("document_id", "state", "reason", "title", "language", "version", "digest"):
        say(f"{name:12} {found[name] if found[name] is not None else ''}")
    if found["in_force"] not in (None, found["version"]):
        say(f"{'in force':12} version {found['in_force']}")
    say(f"{'source':12} {found['source_uri']}")
    say(f"{'audiences':12} {', '.join(found['audiences']) or 'everyone in the scope'}")
    for name, text in coverage_lines(found["coverage"] or {}):
        say(f"{name:12} {text}")
    say()
    table(
        ["at", "version", "event", "actor"],
        [
            [f"{e['at']:%Y-%m-%d %H:%M:%S}", e["version"], e["event"], e["actor"]]
            for e in found["lifecycle"]
        ],
    )


@documents.command()
@click.argument("document_id")
@scope_option
@click.option(
    "--known-at", default=None, help="Only intervals as they were known then (day or instant)."
)
@click.option("--as-of", default=None, help="Only what held then (day or instant).")
@json_option
def history(
    document_id: str, scope: str | None, known_at: str | None, as_of: str | None, as_json: bool
) -> None:
    """Versions of a document and when each held.

    With --known-at or --as-of: intervals of valid time, each with when it was known.
    """
    from kb.client import KnowledgeBase

    if known_at or as_of:
        _intervals(document_id, scope, known_at, as_of, as_json)
        return
    with KnowledgeBase() as kb:
        rows = kb.history(document_id, scope=scope or "")
    if as_json:
        dump(rows)
        return
    table(
        ["version", "state", "digest", "valid", "title"],
        [
            [
                row["version"],
                row["state"],
                row["digest"][:12],
                "\n".join(
                    f"{i['valid_from']} to {i['valid_until'] or 'now'}" for i in row["validity"]
                ),
                row["title"],
            ]
            for row in rows
        ],
    )


@documents.command()
@click.argument("document_id")
@scope_option
@audience_option("A name the reader holds; repeat for more.")
@click.option("--version", default=None, type=int, help="Version; default the newest valid one.")
@click.option("--passages", is_flag=True, help="The ids of the passages under each heading too.")
@json_option
def outline(
    document_id: str,
    scope: str | None,
    audiences: tuple[str, ...],
    version: int | None,
    passages: bool,
    as_json: bool,
) -> None:
    """Headings of a document as a tree, with pages and node ids."""
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        found = kb.outline(document_id, scope=scope or "", audiences=audiences, version=version)
    if as_json:
        dump(found.to_json())
        return
    say(f"{found.title}  ({found.document_id} v{found.version})")
    for node in found.nodes:
        indent = "  " * node.level
        if node.level:
            page = f", page {node.page}" if node.page else ""
            say(f"{indent}{node.title}  ({node.node_id}{page})")
        for passage_id in node.passage_ids if passages else ():
            say(f"{indent}  · {passage_id}")


def _intervals(
    document_id: str, scope: str | None, known_at: str | None, as_of: str | None, as_json: bool
) -> None:
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        found = kb.intervals(
            document_id,
            scope=scope or "",
            known_at=instant(known_at, end_of_day=True),
            valid_at=instant(as_of, end_of_day=True),
        )
    if as_json:
        dump(list(map(asdict, found)))
        return
    table(
        ["version", "valid from", "valid until", "known from", "known until"],
        [
            [i.version, i.valid_from, i.valid_until or "now", i.known_from, i.known_until or "now"]
            for i in found
        ],
    )
