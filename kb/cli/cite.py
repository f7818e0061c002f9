"""`kb cite`: quotes that are kept, and whether their documents still say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kb.cli.options import audience_option, json_option, scope_option
from kb.cli.output import dump, say, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kb_resources.answer.keeping import KeptCitation

_HOLDER = "Whose citation it is: a person, a page, a record elsewhere."
_STATUSES = ("stands", "superseded", "moved", "missing")


@click.group()
def cite() -> None:
    """Keep quotes of passages, list them, look at them again."""


@cite.command()
@click.argument("passage_id")
@click.option("--quote", required=True, help="The words, as they stand in the passage.")
@scope_option
@audience_option("A name the reader holds; repeat for more.")
@click.option("--holder", default=None, metavar="H", help=f"{_HOLDER} Default: you.")
@click.option("--note", default="", help="For the holder, at most 2,000 characters.")
@click.option("--version", default=None, type=int, help="Version; default the newest valid one.")
@click.option("--correlation-id", default=None, metavar="ID", help="The search it comes from.")
@json_option
def add(
    passage_id: str,
    quote: str,
    scope: str | None,
    audiences: tuple[str, ...],
    holder: str | None,
    note: str,
    version: int | None,
    correlation_id: str | None,
    as_json: bool,
) -> None:
    """Verify a quote in PASSAGE_ID and keep it."""
    from kb.client import KnowledgeBase
    from kb.ingesting import local_actor

    with KnowledgeBase(principal_id=local_actor()) as kb:
        kept = kb.keep_citation(
            quote,
            passage_id,
            scope=scope or "",
            holder=holder or local_actor(),
            audiences=audiences,
            note=note,
            version=version,
            correlation_id=correlation_id,
        )
    if as_json:
        dump(kept.to_json())
        return
    say(f"{kept.citation_id} {kept.status.value}: “{kept.quotation.quote}”")
    say(kept.quotation.link)


@cite.command("list")
@scope_option
@audience_option("A name the reader holds; repeat for more.")
@click.option("--holder", default=None, metavar="H", help="Only this holder's.")
@click.option("--document", "document_id", default=None, metavar="D", help="Only of this document.")
@click.option("--status", type=click.Choice(_STATUSES), default=None, help="Only these.")
@click.option("--limit", default=1000, show_default=True, help="Citations at most.")
@json_option
def list_(
    scope: str | None,
    audiences: tuple[str, ...],
    holder: str | None,
    document_id: str | None,
    status: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Kept citations of a scope, oldest first."""
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        found = kb.citations(
            scope=scope or "",
            audiences=audiences,
            holder=holder,
            document_id=document_id,
            status=status,
            limit=limit,
        )
    _print(found, as_json)


@cite.command()
@click.argument("citation_id", required=False)
@scope_option
@audience_option("A name the reader holds; repeat for more.")
@click.option("--holder", default=None, metavar="H", help="Only this holder's.")
@json_option
def check(
    citation_id: str | None,
    scope: str | None,
    audiences: tuple[str, ...],
    holder: str | None,
    as_json: bool,
) -> None:
    """Look again now at CITATION_ID, or at all of a scope or holder.

    stands: the cited version holds. superseded: a newer one says the same at the same place.
    moved: the words stand elsewhere. missing: they are gone, or the document is.
    """
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        found = kb.check_citations(
            scope=scope or "", audiences=audiences, holder=holder, citation_id=citation_id
        )
    _print(found, as_json)


@cite.command()
@click.argument("citation_id")
@scope_option
def remove(citation_id: str, scope: str | None) -> None:
    """Forget CITATION_ID."""
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        kb.drop_citation(citation_id, scope=scope or "")
    say(f"{citation_id} is forgotten.")


def _print(found: Sequence[KeptCitation], as_json: bool) -> None:
    if as_json:
        dump([kept.to_json() for kept in found])
        return
    table(
        ["citation", "status", "holder", "document", "version", "page", "quote"],
        [
            [
                kept.citation_id,
                kept.status.value,
                kept.holder,
                kept.quotation.document_id,
                f"{kept.quotation.version} (now {kept.version_now or '-'})",
                kept.quotation.page,
                kept.quotation.quote or "(erased)",
            ]
            for kept in found
        ],
    )
