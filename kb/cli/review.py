"""`kb review` and `kb rescan`: quarantined documents, people's decisions, new rule packs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from kb.cli.errors import EXIT_REFUSED
from kb.cli.options import confirm, json_option, scope_option
from kb.cli.output import dump, paragraph, say, table
from kb_resources.errors import ConflictError
from kb_resources.model import DocumentKey, Stage, validate_document_id, validate_scope

if TYPE_CHECKING:
    from kb_resources.model import Finding
    from kb_resources.stages.line import Line
    from kb_resources.stages.review import ReviewCase, Shown


@click.group()
def review() -> None:
    """Decide about documents that the scan holds for review."""


@contextmanager
def _line() -> Iterator[Line]:
    from kb.ingesting import local_actor
    from kb_resources.compose import open_line
    from kb_resources.settings import load_settings

    with open_line(load_settings(), actor=local_actor()) as line:
        yield line


def _commit(line: Line, keys: Sequence[DocumentKey]) -> None:
    """What a decision led to, in the git export too."""
    from kb.running import commit_batch
    from kb_resources.settings import load_settings

    commit_batch(load_settings(), line.capabilities, keys)


def _key(scope: str | None, document_id: str) -> DocumentKey:
    return DocumentKey(validate_scope(scope), validate_document_id(document_id))


def _decision(command: Callable[..., Any]) -> Callable[..., Any]:
    """What every decision takes."""
    for option in (
        click.option("--digest", metavar="SHA256", help="Digest of the bytes that you looked at."),
        click.option("--version", type=int, help="Version that you looked at."),
        click.option("--reason", required=True, help="Why; kept in the document's log."),
        scope_option,
        click.argument("document_id"),
    ):
        command = option(command)
    return command


@review.command("list")
@scope_option
@json_option
def list_(scope: str | None, as_json: bool) -> None:
    """What waits for a decision, oldest first."""
    from kb_resources.stages import review as queue

    with _line() as line:
        rows = queue.waiting(line.capabilities, validate_scope(scope))
    if as_json:
        dump([asdict(row) for row in rows])
    elif not rows:
        say("Nothing waits for review.")
    else:
        table(
            ["document", "version", "since", "findings", "reason"],
            [
                [r.document_id, r.version, f"{r.since:%Y-%m-%d %H:%M}", r.findings, r.reason]
                for r in rows
            ],
        )


@review.command()
@click.argument("document_id")
@scope_option
@json_option
def show(document_id: str, scope: str | None, as_json: bool) -> None:
    """The findings of a document's newest version, each in its place."""
    from kb_resources.stages import review as queue

    with _line() as line:
        case = queue.show(line.capabilities, _key(scope, document_id))
    if as_json:
        dump(
            {
                "document_id": case.document.document_id,
                **asdict(case.shown),
                "state": case.document.state,
                "verdict": case.document.verdict,
                "findings": [asdict(finding) for finding in case.findings],
            }
        )
        return
    _print(case)


@review.command()
@_decision
def release(document_id: str, scope: str | None, reason: str, **looked_at: Any) -> int:
    """Show a document, clear exactly that version and publish it."""
    from kb_resources.stages import review as queue

    key = _key(scope, document_id)
    with _line() as line:
        shown = _look(line, key, "Release", **looked_at)
        queue.release(line.capabilities, key, shown, actor=line.capabilities.actor, reason=reason)
        line.run_all([key])
        _commit(line, [key])
        [row] = line.rows([key])
    say(f"{key.document_id}: {row.state}{' – ' + row.reason if row.reason else ''}")
    return 0 if row.state == "indexed" else 1


@review.command()
@_decision
def reject(document_id: str, scope: str | None, reason: str, **looked_at: Any) -> None:
    """Show a document, block exactly that version and delete its texts."""
    from kb_resources.stages import review as queue

    key = _key(scope, document_id)
    with _line() as line:
        shown = _look(line, key, "Reject", **looked_at)
        queue.reject(line.capabilities, key, shown, actor=line.capabilities.actor, reason=reason)
        _commit(line, [key])
    say(f"{key.document_id}: blocked, its texts are deleted")


def _look(
    line: Line, key: DocumentKey, verb: str, *, version: int | None, digest: str | None
) -> Shown:
    """What a decision is about: printed, and confirmed where a person sits and named no version."""
    from kb_resources.stages import review as queue

    case = queue.show(line.capabilities, key)
    shown = case.shown
    named = (version or shown.version, (digest or shown.digest).lower())
    if named != (shown.version, shown.digest):
        raise ConflictError(
            f"{key.document_id} is version {shown.version} now, with the digest {shown.digest}.",
            next_step="Look at it with kb review show, then decide.",
            code="not_what_was_shown",
        )
    _print(case)
    say()
    if version is None and digest is None and sys.stdin.isatty():
        confirm(f"{verb} this version?", "Nothing was decided.")
    return shown


def _print(case: ReviewCase) -> None:
    """A case as people read it."""
    row = case.document
    say(f"{row.document_id} v{row.latest_version}: {row.state}")
    say(f"digest {row.digest}")
    for finding in case.findings:
        say()
        say(f"{finding.severity.value:6} {finding.rule_id}  ({_where(finding)})")
        say(f"       {finding.explanation}")
        if finding.excerpt:  # that of a blocked version was deleted with its text
            say(paragraph(finding.excerpt, "       | "))
        if finding.decoded:
            say("       decoded:")
            say(paragraph(finding.decoded, "       | "))


def _where(finding: Finding) -> str:
    """Part of the text, the place that its reader named, and the bytes of the part."""
    place = f", {finding.place}" if finding.place else ""
    return f"{finding.part}{place}, bytes {finding.byte_start}–{finding.byte_end}"


@click.command()
@scope_option
@json_option
def rescan(scope: str | None, as_json: bool) -> int:
    """Scan again what another rule pack scanned, from the stored extraction, without parsing.

    What no longer passes leaves search at once; what passes now is published.
    Exit code 4 if a document is held or blocked by it.
    """
    with _line() as line:
        keys = line.scanned_otherwise(validate_scope(scope))
        outcomes = line.run_all(keys, start=Stage.SCAN)
        _commit(line, keys)
        rows = line.rows(list(outcomes))
    if as_json:
        for row in rows:
            dump(
                {"document_id": row.document_id, "state": row.state, "reason": row.reason},
                indent=None,
            )
    else:
        say(f"{len(rows)} documents scanned again.")
        for row in rows:
            if row.state != "indexed":
                say(f"  {row.document_id}: {row.state} – {row.reason}")
    return EXIT_REFUSED if any(row.state in ("quarantined", "blocked") for row in rows) else 0
