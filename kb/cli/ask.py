"""`kb ask`: an answer whose every quote is verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kb.cli.options import audience_option, instant, json_option, scope_option
from kb.cli.output import dump, paragraph, say

if TYPE_CHECKING:
    from kb_resources.answer.answer import Answer


@click.command()
@click.argument("question")
@scope_option
@audience_option("A name the reader holds; repeat for more.")
@click.option(
    "-k", "limit", type=click.IntRange(1, 100), default=8, show_default=True,
    help="Passages it may rest on.",
)  # fmt: skip
@click.option("--as-of", metavar="T", help="From what held then; a day means its end, UTC.")
@json_option
def ask(
    question: str,
    scope: str | None,
    audiences: tuple[str, ...],
    limit: int,
    as_of: str | None,
    as_json: bool,
) -> None:
    """Answer QUESTION from one scope, with citations.

    Without a model the answer is sentences of the documents. Set KB_ANSWER_URL and
    KB_ANSWER_MODEL to have one phrase it; its quotes are looked up, and what it made up is told.
    """
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        answer = kb.ask(
            question,
            scope=scope or "",
            audiences=audiences,
            k=limit,
            as_of=instant(as_of, end_of_day=True),
        )
    if as_json:
        dump({"question": question, **answer.to_json()})
    else:
        print_answer(answer)


def print_answer(answer: Answer) -> None:
    """An answer for people: statements, then what they rest on, then what was refused."""
    if answer.abstained:
        say("The documents do not answer this.")
        if answer.nothing_relevant:
            say("   Nothing relevant was found.")
        say(f"   {answer.passages} passages were looked at. Log: {answer.correlation_id}")
        return
    if answer.nothing_relevant:
        say("Nothing relevant was found. This rests on the nearest passages:\n")
    for statement in answer.statements:
        marks = "".join(f" [{n}]" for n in statement.citations)
        flag = "" if statement.supported else "  (not supported by any passage)"
        say(paragraph(statement.text + marks + flag, indent=""))
    say()
    for citation in answer.citations:
        hit = citation.hit
        page = f", page {hit.page}" if hit.page is not None else ""
        say(f"[{citation.n}] {hit.title} · {hit.document_id} v{hit.version}{page}")
        say(paragraph(f"“{citation.quotation.quote}”", indent="    "))
    for item in answer.rejected:
        say(f"Rejected ({item.reason.value}): {item.quote[:200]}")
    say(f"Log: {answer.correlation_id}")
