"""`kb erase`, `kb erasures`, `kb forget-actor`: what cannot be taken back.

Belongs here: arguments and presentation. What does not: erasing (`stages.erase`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kb.cli.lifecycle import deciding, document_key
from kb.cli.options import confirm, decision_options, json_option, scope_option
from kb.cli.output import dump, say, table
from kb_resources.model import validate_scope

if TYPE_CHECKING:
    from kb_resources.stages.erase import Erased
    from kb_resources.store.erasure import Certificate


@click.command()
@click.argument("document_ids", nargs=-1, metavar="[DOCUMENT_ID]...")
@scope_option
@click.option(
    "--held-only-by",
    "audience",
    default=None,
    metavar="A",
    help="Instead of naming documents: all that only holders of this audience can read.",
)
@click.option(
    "--rewrite/--no-rewrite",
    default=None,
    help="Rewrite the database's files now, which locks readers out meanwhile.  [default: where "
    "the database is embedded and small]",
)
@decision_options
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def erase(
    document_ids: tuple[str, ...],
    scope: str | None,
    audience: str | None,
    rewrite: bool | None,
    reason: str,
    actor: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete documents from every store, with all versions. This cannot be taken back.

    Rows, vectors, stored bytes, findings, notes, logs, Dagster's events and temporary copies go; a
    certificate with numbers stays. `kb documents remove` only takes a document out of search.
    """
    from kb.erasing import open_eraser
    from kb_resources.settings import load_settings
    from kb_resources.store.documents import load_one

    if bool(document_ids) == (audience is not None):
        raise click.UsageError("Name documents, or give --held-only-by.")
    _require_yes(yes, as_json)
    keys = [document_key(scope, document_id) for document_id in document_ids]
    with deciding(actor) as (line, who):
        eraser = open_eraser(load_settings(), line, rewrite=rewrite)
        eraser.resume()
        with line.capabilities.database.transaction("pipeline") as conn:
            for key in keys:
                load_one(conn, key)
        what = f"all that only {audience} can read" if audience else ", ".join(document_ids)
        if not yes:
            question = f"Erase {what} from {scope}? It cannot be taken back. (--yes answers)"
            confirm(question, "Nothing was erased.")
        if audience is not None:
            done = eraser.erase_held_only_by(
                validate_scope(scope), audience, actor=who, reason=reason
            )
        else:
            done = [eraser.erase(key, actor=who, reason=reason) for key in keys]
        line.run_all([key for item in done for key in item.woken])
    _show(done, as_json)


def _require_yes(yes: bool, as_json: bool) -> None:
    """Where a program reads the answer nobody can be asked."""
    if as_json and not yes:
        raise click.UsageError("This cannot be taken back: say --yes beside --json.")


def _show(done: Sequence[Erased], as_json: bool) -> None:
    if as_json:
        from kb_resources.stages.erase import to_json

        dump([to_json(item.certificate) for item in done])
        return
    if not done:
        say("There is nothing to erase.")
    for item in done:
        _certificate(item.certificate)
        for key in item.woken:
            say(f"  {key.document_id}, which had the same bytes, is published on its own now")


def _certificate(made: Certificate) -> None:
    say(f"Certificate of erasure {made.erasure_id}")
    say(f"  scope     {made.scope}")
    say(f"  asked by  {made.actor}: {made.reason}")
    say(f"  began     {made.started_at:%Y-%m-%d %H:%M:%S} UTC")
    ended = f"{made.finished_at:%Y-%m-%d %H:%M:%S} UTC" if made.finished_at else "not yet"
    say(f"  finished  {ended}")
    for store, numbers in made.counts.items():
        for what, number in sorted(numbers.items()):
            if number and store != "scrubbed":
                say(f"  {store:9} {number:6}  {what}")
    for sentence in [*made.remains, *made.counts.get("scrubbed", ())]:
        say(f"  note      {sentence}")


@click.command()
@click.argument("erasure_id", required=False)
@scope_option
@click.option("--resume", is_flag=True, help="Finish erasures that a crash interrupted.")
@json_option
def erasures(erasure_id: str | None, scope: str | None, resume: bool, as_json: bool) -> None:
    """Certificates of erasure: all of a scope, or one."""
    from kb.erasing import open_eraser
    from kb_resources.settings import load_settings
    from kb_resources.stages.erase import to_json
    from kb_resources.store import erasure

    with deciding(None) as (line, _):
        if resume:
            number = open_eraser(load_settings(), line).resume()
            if as_json:
                dump({"finished": number})
            else:
                say(f"{number} erasures finished.")
            return
        with line.capabilities.database.transaction("pipeline") as conn:
            if erasure_id is not None:
                found = [erasure.certificate(conn, erasure_id)]
            else:
                found = erasure.certificates(conn, scope=validate_scope(scope))
    if as_json:
        dump(list(map(to_json, found)))
    elif erasure_id is not None:
        _certificate(found[0])
    else:
        table(
            ["certificate", "began", "finished", "asked by", "reason"],
            [
                [
                    made.erasure_id,
                    f"{made.started_at:%Y-%m-%d %H:%M}",
                    f"{made.finished_at:%Y-%m-%d %H:%M}" if made.finished_at else "not yet",
                    made.actor,
                    made.reason,
                ]
                for made in found
            ],
        )


@click.command("forget-actor")
@click.argument("actor")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def forget_actor(actor: str, yes: bool, as_json: bool) -> None:
    """Write deleted-user wherever a person's name stands in logs and rows (user:42, cli:ana).

    A member's sessions and membership end with it; the last administrator cannot be forgotten.
    What the person's documents say is not touched; erase those first (`kb erase --held-only-by`).
    """
    from kb.erasing import open_eraser
    from kb_resources.settings import load_settings

    _require_yes(yes, as_json)
    if not yes:
        confirm(f"Forget {actor}? It cannot be taken back.", "Nothing was forgotten.")
    with deciding(None) as (line, _):
        counts = open_eraser(load_settings(), line).forget_actor(actor)
    if as_json:
        dump(counts)
        return
    total = sum(sum(numbers.values()) for numbers in counts.values())
    say(f"{actor} is forgotten: {total} places now say deleted-user.")
    for store, numbers in counts.items():
        for what, number in sorted(numbers.items()):
            if number:
                say(f"  {store:9} {number:6}  {what}")
