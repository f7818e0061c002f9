"""`kb reembed`: another embedding model for a scope, without a gap.

Belongs here: arguments and presentation. What does not: the decisions (`stages.reembed`).
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.lifecycle import deciding
from kb.cli.options import json_option, scope_option
from kb.cli.output import dump, say, table
from kb_resources.model import validate_scope
from kb_resources.settings import load_settings

if TYPE_CHECKING:
    from kb_resources.stages.fill import Filled
    from kb_resources.stages.reembed import Swapped
    from kb_resources.stages.reembed_view import Preview, Status
    from kb_resources.stages.swap_quality import Quality

_ACTOR = click.option("--actor", default=None, help="Who decides.  [default: cli:LOGIN]")
_MISSING = click.option(
    "--accept-missing",
    default=0,
    metavar="N",
    type=click.IntRange(min=0),
    help="Passages without a vector that are accepted; meaning does not find them.",
)


@click.group()
def reembed() -> None:
    """Give a scope another embedding model: start, fill, check, swap, rollback, drop.

    The new vectors are filled beside the ones that searches use, and take their place at once.
    """


@reembed.command()
@scope_option
@click.option("--model", default=None, metavar="ID", help="Name or identity.  [default: KB_MODEL]")
@click.option("--dry-run", is_flag=True, help="Only say what it would take.")
@_ACTOR
@json_option
def start(
    scope: str | None, model: str | None, dry_run: bool, actor: str | None, as_json: bool
) -> None:
    """Say what it takes, and begin; the nightly schedule or `kb reembed fill` does the work."""
    from kb_resources.stages import reembed as stage
    from kb_resources.stages import reembed_view as view

    name = validate_scope(scope)
    with deciding(actor) as (line, who):
        caps = line.capabilities
        chosen = model or caps.versions.model_id
        found = view.preview(caps, name, chosen)
        if not dry_run:
            stage.start(caps, name, chosen, actor=who)
    if as_json:
        dump(found.to_json() | {"started": not dry_run})
        return
    _tell_preview(found)
    if not dry_run:
        say(f"Started. The nightly schedule fills it, or kb reembed fill --scope {name}.")


@reembed.command()
@click.option("--scope", default=None, metavar="S", help="One scope; without it, all.")
@json_option
def status(scope: str | None, as_json: bool) -> None:
    """Which model searches use, what is filled beside it, what is left, what to do next."""
    from kb_resources.stages import reembed_view as view

    with deciding(None) as (line, _):
        found = view.status(line.capabilities, validate_scope(scope) if scope else None)
    if as_json:
        dump([each.to_json() for each in found])
        return
    if not found:
        say("No scope has vectors yet.")
    for each in found:
        _tell_status(each)


@reembed.command()
@scope_option
@click.option("--limit", default=None, type=click.IntRange(min=1), help="Documents at most.")
@click.option(
    "--batch",
    default=512,
    show_default=True,
    type=click.IntRange(1, 2048),
    help="Texts that are computed and kept together.",
)
@click.option("--retry-failed", is_flag=True, help="Try documents that were given up, too.")
@json_option
def fill(
    scope: str | None, limit: int | None, batch: int, retry_failed: bool, as_json: bool
) -> int:
    """Compute what is missing. Whenever it is stopped, what was done is kept."""
    from kb_resources.stages import reembed as stage

    name = validate_scope(scope)

    def progress(done: Filled) -> None:
        if not as_json and sys.stderr.isatty():
            sys.stderr.write(f"\r{done.embedded} embedded, {done.carried} carried over")

    with deciding(None) as (line, _):
        if retry_failed:
            stage.retry(line.capabilities, name)
        done = stage.fill_scope(line.capabilities, name, limit=limit, batch=batch, seen=progress)
    if as_json:
        dump(asdict(done))
    else:
        say(
            f"{done.documents} documents: {done.embedded} vectors computed, {done.carried} carried "
            f"over, {len(done.failed)} documents failed."
        )
        for document_id, cause in done.failed.items():
            say(f"  {document_id}: {cause}")
    return 1 if done.failed else 0


@reembed.command()
@scope_option
@json_option
def check(scope: str | None, as_json: bool) -> int:
    """Measure the shadow beside the live vectors on the scope's own questions."""
    from kb_resources.stages import reembed as stage

    with deciding(None) as (line, _):
        found = stage.measure(line.capabilities, validate_scope(scope), folder=_questions())
    if as_json:
        dump(found.to_json())
    else:
        _tell_quality(found)
    return 1 if found.problems else 0


@reembed.command()
@scope_option
@_MISSING
@_ACTOR
@json_option
def swap(scope: str | None, accept_missing: int, actor: str | None, as_json: bool) -> None:
    """Search by the new vectors from now on; refused unless they are complete and as good."""
    from kb_resources.stages import reembed as stage

    with deciding(actor) as (line, who):
        done = stage.swap(
            line.capabilities,
            validate_scope(scope),
            actor=who,
            accept_missing=accept_missing,
            folder=_questions(),
        )
    _tell_swap(done, as_json)


@reembed.command()
@scope_option
@_MISSING
@_ACTOR
@json_option
def rollback(scope: str | None, accept_missing: int, actor: str | None, as_json: bool) -> None:
    """Search by the vectors from before the swap again; they are kept until they are dropped."""
    from kb_resources.stages import reembed as stage

    with deciding(actor) as (line, who):
        done = stage.roll_back(
            line.capabilities, validate_scope(scope), actor=who, accept_missing=accept_missing
        )
    _tell_swap(done, as_json)


@reembed.command()
@scope_option
@_ACTOR
@json_option
def drop(scope: str | None, actor: str | None, as_json: bool) -> None:
    """Delete the vectors that searches do not use: a shadow, or those kept after a swap."""
    from kb_resources.stages import reembed as stage

    name = validate_scope(scope)
    with deciding(actor) as (line, who):
        deleted = stage.drop(line.capabilities, name, actor=who)
    if as_json:
        dump({"scope": name, "deleted": deleted})
    else:
        say(f"{deleted} vectors were deleted.")


def _questions() -> Path:
    """Where labelled questions lie, for the command as for the nightly evaluation."""
    return load_settings().home / "evaluation"


def _tell_preview(found: Preview) -> None:
    rows = [
        ("from", found.live),
        ("to", found.model_id),
        ("passages", f"{found.passages:,}"),
        ("carried over", f"{found.carried:,}"),
        ("to compute", f"{found.texts:,} vectors of {found.tokens:,} tokens"),
        ("time", f"about {found.minutes:.1f} minutes at {found.tokens_per_s:,.0f} tokens/s"),
    ]
    if found.price is not None:
        rows.append(("price", f"about {found.price:.2f} {found.currency}"))
    if found.too_long:
        rows.append(("too long", f"{found.too_long:,} passages would be cut by the new model"))
    for name, value in rows:
        say(f"{name:14} {value}")


def _tell_status(found: Status) -> None:
    say(f"{found.scope}: searched by {found.live}")
    if found.live_missing:
        say(f"   {found.live_missing} passages have no vector of it")
    if found.beside:
        eta = "" if found.eta_s is None else f", about {found.eta_s / 60:.1f} minutes left"
        say(f"   {found.beside_is} {found.beside}: {found.done} of {found.total} passages{eta}")
    if found.failed:
        table(
            ["failed", "tries", "cause"],
            [[each.document_id, each.attempts, each.error] for each in found.failed],
        )
    if found.next_step:
        say(f"   {found.next_step}")


def _tell_quality(found: Quality) -> None:
    say(f"{found.questions} questions made of the scope's {found.asked}")
    if found.live_here:
        say(f"{'overlap':14} {found.overlap:.0%} of the ten best passages are the same")
        say(f"{'live model':14} {found.live_recall:.1%} of known passages are found among ten")
    else:
        say("The live model is not here any more: there is nothing to compare with.")
    say(f"{'new model':14} {found.recall:.1%} of known passages are found among ten")
    if found.labelled:
        say(
            f"{'your questions':14} {found.labelled} asked: nDCG@10 {found.ndcg:.3f}, "
            f"live {found.live_ndcg:.3f}"
        )
    say("It holds." if not found.problems else f"It does not hold: {'; '.join(found.problems)}.")


def _tell_swap(done: Swapped, as_json: bool) -> None:
    if as_json:
        quality = done.quality.to_json() if done.quality else None
        dump(asdict(done) | {"quality": quality})
        return
    say(f"{done.scope} is searched by {done.live}; {done.beside} lies beside it.")
    if done.missing:
        say(f"{done.missing} passages have no vector by it.")
