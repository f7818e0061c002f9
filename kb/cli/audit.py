"""`kb audit` and `kb replay`: from an answer to bytes, and what a search would find today."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kb.cli.options import json_option, scope_option
from kb.cli.output import counted, dump, say, table

if TYPE_CHECKING:
    from kb_resources.answer.audit import TracedSource


@click.group()
def audit() -> None:
    """Read the logs of searches, disclosures and answers."""


@audit.command("list")
@scope_option
@click.option("--limit", default=50, show_default=True, help="Searches at most (1 to 1000).")
@json_option
def list_(scope: str | None, limit: int, as_json: bool) -> None:
    """Newest searches of a scope with their ids; the log holds no question."""
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        rows = kb.searches(scope=scope or "", limit=limit)
    if as_json:
        dump(rows)
        return
    names = ("at", "actor", "mode", "hits", "correlation_id")
    table(names, [[row[name] for name in names] for row in rows])


@audit.command()
@click.argument("correlation_id")
@scope_option
@json_option
def trace(correlation_id: str, scope: str | None, as_json: bool) -> None:
    """Walk from an answer or a search to the bytes it rests on.

    CORRELATION_ID is what the search or the answer gave. Source bytes are digested again.
    """
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        found = kb.trace(correlation_id, scope=scope or "")
    if as_json:
        dump(found.to_json())
        return
    for row in found.retrievals:
        model = row["model_id"] or "no model"
        say(f"{row['at']:%Y-%m-%d %H:%M:%S} searched by {row['actor']}: {row['mode']}, {model}")
    for row in found.disclosures:
        texts = counted(len(row["parts"]), "text")
        say(
            f"{row['at']:%Y-%m-%d %H:%M:%S} {texts} {row['decision']} for "
            f"{row['destination']} ({row['hosting']}, {row['content_class']})"
        )
    for row in found.answers:
        say(
            f"{row['at']:%Y-%m-%d %H:%M:%S} answered by {row['answerer']}: "
            f"{counted(len(row['statements']), 'statement')}, "
            f"{counted(len(row['rejected']), 'quote')} rejected"
        )
    if found.erased:
        say(f"{_erased(found.erased)}; what is left of them are certificates, see kb erasures.")
    if not found.sources:
        say("No passage that it rests on is left." if found.erased else "No passage was found.")
        return
    table(
        ["document", "version", "rank", "cited", "bytes", "passage"],
        [
            [
                source.document_id,
                source.version,
                ", ".join(map(str, source.ranks)),
                "yes" if source.cited else "",
                _standing(source),
                source.passage_id,
            ]
            for source in found.sources
        ],
    )


@audit.command()
@click.argument("content_class", type=click.Choice(["public", "internal", "confidential", "none"]))
@click.argument("document_id", required=False)
@scope_option
def classify(content_class: str, document_id: str | None, scope: str | None) -> None:
    """Say how far texts may travel: of DOCUMENT_ID, or of the scope and its questions.

    Only public texts are sent to models that are not on your own machines. Without a word from
    you all are confidential; none takes your word back.
    """
    from kb.ingesting import local_actor
    from kb_resources.compose import open_database
    from kb_resources.settings import load_settings
    from kb_resources.stages.content_class import classify as classify_texts

    chosen = None if content_class == "none" else content_class
    with open_database(load_settings()) as database:
        classify_texts(database, scope or "", document_id, chosen, actor=local_actor())
    say(f"{document_id or scope}: {content_class}.")


@click.command("replay")
@click.argument("correlation_id")
@click.option("--query", required=True, help="The question, word for word; the log has none.")
@scope_option
@json_option
def replay_(correlation_id: str, query: str, scope: str | None, as_json: bool) -> None:
    """Run a logged search again, as of then and now, and say what changed and why."""
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        found = kb.replay(correlation_id, query, scope=scope or "")
    if as_json:
        dump(found.to_json())
        return
    say(
        f"Asked {found.at:%Y-%m-%d %H:%M:%S} UTC. As of then the search gives "
        + ("the same ranks again." if found.reproduced else "other ranks than were logged.")
    )
    if found.erased:
        say(f"{_erased(len(found.erased))}.")
    table(
        ["logged", "then", "now", "document", "version", "what changed"],
        [
            [
                item.rank_logged,
                item.rank_then,
                item.rank_now,
                item.document_id,
                item.version,
                f"{item.cause}: {item.why}" if item.cause else "",
            ]
            for item in found.passages
        ],
    )


def _erased(passages: int) -> str:
    return f"{counted(passages, 'passage')} found then belonged to documents that were erased"


def _standing(source: TracedSource) -> str:
    """One word for what stands behind a passage; doubts come before what could not be looked at."""
    if not source.known:
        return "gone"
    if source.is_slice is False or source.bytes_hold is False:
        return "differ"
    if source.is_slice is None:
        return "text is gone"
    return "hold" if source.bytes_hold else "not stored here"
