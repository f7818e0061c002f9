"""Commands that compare versions and decide about documents: diff, set-audiences, remove, restore.

Belongs here: arguments and presentation. What does not: the decisions (`stages.removal`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from kb.cli.options import decision_options, json_option, scope_option
from kb.cli.output import dump, say
from kb_resources.errors import NotFound
from kb_resources.model import DocumentKey, validate_document_id, validate_scope

if TYPE_CHECKING:
    from kb_resources.stages.line import Line
    from kb_resources.stages.removal import Decided
    from kb_resources.supersede import Hunk

_CONTEXT_LINES = 2


@contextmanager
def deciding(actor: str | None) -> Iterator[tuple[Line, str]]:
    """The line, opened in the name of `actor`, by default of who runs the command."""
    from kb.ingesting import local_actor
    from kb_resources.compose import open_line
    from kb_resources.settings import load_settings

    name = actor or local_actor()
    with open_line(load_settings(), actor=name) as line:
        yield line, name


def document_key(scope: str | None, document_id: str) -> DocumentKey:
    """The document that a command names."""
    return DocumentKey(validate_scope(scope), validate_document_id(document_id))


@click.command()
@click.argument("document_id")
@scope_option
@click.option("--from", "old", type=int, required=True, help="Version to compare from.")
@click.option("--to", "new", type=int, required=True, help="Version to compare to.")
@json_option
def diff(document_id: str, scope: str | None, old: int, new: int, as_json: bool) -> None:
    """What changed between two versions of a document, word by word.

    Deleted text stands in [-…-], inserted text in {+…+}; on a terminal they are coloured instead.
    """
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        hunks = kb.diff(document_id, scope=scope or "", old=old, new=new)
    if as_json:
        dump(
            {"document_id": document_id, "from": old, "to": new, "hunks": list(map(asdict, hunks))}
        )
    elif all(hunk.op == "equal" for hunk in hunks):
        say("The texts are the same.")
    else:
        say("".join(_rendered(hunks, coloured=sys.stdout.isatty())).rstrip("\n"))


def _rendered(hunks: Sequence[Hunk], *, coloured: bool) -> Iterator[str]:
    for index, hunk in enumerate(hunks):
        if hunk.op == "equal":
            yield _shortened(hunk.text, first=index == 0, last=index == len(hunks) - 1)
        elif coloured:
            yield click.style(
                hunk.text,
                fg="red" if hunk.op == "delete" else "green",
                strikethrough=hunk.op == "delete",
            )
        else:
            yield f"[-{hunk.text}-]" if hunk.op == "delete" else f"{{+{hunk.text}+}}"


def _shortened(text: str, *, first: bool, last: bool) -> str:
    """Unchanged text with a few lines of it beside each change."""
    lines = text.splitlines(keepends=True)
    head = [] if first else lines[: _CONTEXT_LINES + 1]
    tail = [] if last else lines[max(len(head), len(lines) - _CONTEXT_LINES - 1) :]
    left_out = len(lines) - len(head) - len(tail)
    gap = [f"… {left_out} lines unchanged …\n"] if left_out > 1 else lines[len(head) :][:left_out]
    return "".join([*head, *gap, *tail])


@click.command("set-audiences")
@click.argument("document_id")
@scope_option
@click.option(
    "--audience", "audiences", multiple=True, metavar="A", help="Who may read it; repeat for more."
)
@click.option("--everyone", is_flag=True, help="Everyone in the scope may read it.")
@click.option(
    "--follow-source", is_flag=True, help="Take the decision back: the source says it again."
)
@decision_options
@json_option
def set_audiences(
    document_id: str,
    scope: str | None,
    audiences: tuple[str, ...],
    everyone: bool,
    follow_source: bool,
    reason: str,
    actor: str | None,
    as_json: bool,
) -> None:
    """Decide who may read a document. Holds from the next query on, for all its versions."""
    from kb_resources.stages import removal

    if (bool(audiences), everyone, follow_source).count(True) != 1:
        raise click.UsageError("Give one of --audience, --everyone and --follow-source.")
    key = document_key(scope, document_id)
    with deciding(actor) as (line, who):
        if follow_source:
            taken_back = removal.follow_source(line.capabilities, key, actor=who, reason=reason)
            if as_json:
                dump({"key": str(key), "changed": taken_back})
            else:
                say(f"{document_id}: its source says who may read it, from its next ingest on")
            return
        done = removal.set_audiences(line.capabilities, key, audiences, actor=who, reason=reason)
        _finish(line, done, as_json, f"open to {', '.join(done.audiences) or 'everyone'}")


@click.command()
@click.argument("document_id", required=False)
@click.option(
    "--source", metavar="PATH|URL", help="All that came from this file, folder, site or page."
)
@click.option("--batch", metavar="ID", help="All that this batch was about.")
@scope_option
@decision_options
@json_option
def remove(
    document_id: str | None,
    source: str | None,
    batch: str | None,
    scope: str | None,
    reason: str,
    actor: str | None,
    as_json: bool,
) -> None:
    """Take a document, or all of a source or batch, out of search.

    The history stays; `kb documents restore` brings a document back.
    """
    from kb_resources.stages import removal

    if (document_id, source, batch).count(None) != 2:
        raise click.UsageError("Give one of DOCUMENT_ID, --source and --batch.")
    with deciding(actor) as (line, who):
        if document_id is not None:
            keys = [document_key(scope, document_id)]
        elif source is not None:
            keys = removal.of_source(line.capabilities, validate_scope(scope), source)
        else:
            keys = removal.of_batch(line.capabilities, validate_scope(scope), batch or "")
        for key in keys:
            done = removal.remove(line.capabilities, key, actor=who, reason=reason)
            _finish(line, done, as_json, "removed from search" if done.changed else "was removed")
        if not keys:
            raise NotFound(
                f"Nothing of it is found in {scope}.",
                next_step="See kb documents list; a source is named as it was ingested.",
            )


@click.command()
@click.argument("document_id")
@scope_option
@decision_options
@json_option
def restore(
    document_id: str, scope: str | None, reason: str, actor: str | None, as_json: bool
) -> None:
    """Bring a removed document back into search."""
    from kb_resources.stages import removal

    with deciding(actor) as (line, who):
        done = removal.restore(
            line.capabilities, document_key(scope, document_id), actor=who, reason=reason
        )
        _finish(line, done, as_json, "restored" if done.changed else "was not removed")


def _finish(line: Line, done: Decided, as_json: bool, text: str) -> None:
    """Take through the line what the decision woke, then say how it stands."""
    from kb.running import commit_batch
    from kb_resources.settings import load_settings

    line.run_all(done.to_run)
    if done.changed:
        commit_batch(load_settings(), line.capabilities, {done.key, *done.to_run})
    [row] = line.rows([done.key])
    woken = [key.document_id for key in done.to_run if key != done.key]
    if as_json:
        value: dict[str, Any] = asdict(done) | {
            "key": str(done.key),
            "state": row.state,
            "to_run": list(map(str, done.to_run)),
        }
        dump(value)
        return
    say(f"{done.key.document_id}: {text} ({row.state})")
    for document_id in woken:
        say(f"  {document_id}, which has the same bytes, is published on its own now")


@click.group("lifecycle")
def log() -> None:
    """The log of what happened to documents and who did it."""


@log.command()
@click.argument("document_id", required=False)
@scope_option
@json_option
def verify(document_id: str | None, scope: str | None, as_json: bool) -> int:
    """Compute the hash chains again: of a document, of a scope, or (without --scope) of all.

    Exit code 1 if an entry was changed, taken out or cut off.
    """
    from kb_resources.store import documents
    from kb_resources.store import lifecycle as entries

    with (
        deciding(None) as (line, _),
        line.capabilities.database.transaction("pipeline") as conn,
    ):
        scope_id = row = None
        if document_id is not None:
            row = documents.load_one(conn, document_key(scope, document_id))
        elif scope is not None:
            scope_id = documents.get_scope(conn, validate_scope(scope)).scope_id
        found = entries.verify(
            conn, scope_id=scope_id, document_key=row.document_key if row else None
        )
    if as_json:
        dump(asdict(found))
    else:
        say(f"{found.entries} entries of {found.documents} documents.")
        for broken in found.broken:
            say(
                f"  {broken.scope or '?'}:{broken.document_id or '?'} "
                f"{broken.problem} entry {broken.lifecycle_id or '?'}"
            )
        say("The chains do not hold." if found.broken else "Every chain holds.")
    return 1 if found.broken else 0
