"""`kb explain`: how a passage came to be, from the source's bytes to its vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kb.cli.options import audience_option, json_option, scope_option
from kb.cli.output import dump, paragraph, say, table

if TYPE_CHECKING:
    from kb_resources.retrieve import Explanation, SectionNotes

_LEXEMES = 20


@click.command()
@click.argument("passage_id")
@scope_option
@audience_option("A name the reader holds; repeat for more.")
@click.option("--version", default=None, type=int, help="Version; default the newest valid one.")
@json_option
def explain(
    passage_id: str,
    scope: str | None,
    audiences: tuple[str, ...],
    version: int | None,
    as_json: bool,
) -> int:
    """Say how PASSAGE_ID came to be: bytes, version, stages, verdict, text, lexemes, vectors.

    What can be recomputed is; exit code 1 where it differs from what is stored.
    """
    from kb.client import KnowledgeBase

    with KnowledgeBase() as kb:
        found = kb.explain(passage_id, scope=scope or "", audiences=audiences, version=version)
    if as_json:
        dump(found.to_json())
    else:
        _print(found)
    return 0 if all(found.checks.values()) else 1


def _print(found: Explanation) -> None:
    _facts(
        "Bytes",
        {
            "source": found.source,
            "sha-256": found.digest,
            "type": f"{found.media_type}, {found.size_bytes:,} bytes",
        },
    )
    _facts(
        "Version",
        {
            "document": f"{found.document_id} v{found.version}, {found.title}",
            "readers": ", ".join(found.audiences) or "everyone in the scope",
            "stored": f"{found.stored_at:%Y-%m-%d %H:%M:%S}",
            "holds": f"{found.valid_from:%Y-%m-%d %H:%M} to "
            + (f"{found.valid_until:%Y-%m-%d %H:%M}" if found.valid_until else "now"),
        },
    )
    if found.converted_by:
        say(f"The body was written by {found.converted_by}, word for word from the source's text.")
        say()
    say("Stages")
    table(
        ["stage", "seconds", "ended", "counts"],
        [
            [
                stage.stage,
                f"{stage.duration_s:.3f}",
                stage.finished_at[:19].replace("T", " "),
                ", ".join(f"{name} {value:g}" for name, value in stage.counts.items()),
            ]
            for stage in found.stages
        ],
    )
    say()
    _facts(
        "Verdict",
        {
            "verdict": f"{found.verdict}, by {found.verdict_actor}, {found.verdict_at[:19]}",
            "rules": f"{found.rule_pack}, {found.findings} findings",
        },
    )
    sure = found.language_confidence
    _facts(
        "Passage",
        {
            "place": " › ".join(found.heading_path)
            + (f", page {found.page}" if found.page else ""),
            "span": f"bytes {found.byte_span[0]}–{found.byte_span[1]} of the body, characters "
            f"{found.char_span[0]}–{found.char_span[1]} of the {'page' if found.page else 'body'}",
            "language": found.language + (f", certainty {sure:.2f}" if sure is not None else ""),
            "tokens": f"{found.token_count}, with the context {found.context!r}",
        },
    )
    say(paragraph(found.text, "  | "))
    say()
    if found.notes:
        print_notes(found.notes)
        say()
    say(f"Lexemes ({len(found.lexemes)}, analyzer {found.analyzer})")
    table(
        ["weight", "passages", "words"],
        [
            [
                f"{one.weight:.2f}",
                one.passages,
                ", ".join(one.words) or "(of another analyzer)",
            ]
            for one in found.lexemes[:_LEXEMES]
        ],
    )
    if len(found.lexemes) > _LEXEMES:
        say(f"  and {len(found.lexemes) - _LEXEMES} more (--json shows all)")
    say()
    say("Vectors")
    for vector in found.vectors:
        say(
            f"  {vector.model_id}, {vector.dimensions} dimensions, norm {vector.norm:.4f}, "
            f"{vector.state}"
        )
    say()
    say("Checked now")
    for name, holds in found.checks.items():
        say(f"  {'yes' if holds else 'NO '}  {name}")


def print_notes(notes: SectionNotes) -> None:
    """Print what a model noted on a section, marked as its words."""
    say(f"Noted by {notes.made_by}, not to be quoted")
    for summary in (*notes.parent_summaries, notes.summary):
        say(paragraph(summary, "  ~ "))
    if notes.entities:
        say("  names     " + ", ".join(f"{one.text} ({one.type})" for one in notes.entities))
    if notes.keywords:
        say("  keywords  " + ", ".join(notes.keywords))


def _facts(title: str, facts: dict[str, str]) -> None:
    say(title)
    for name, value in facts.items():
        say(f"  {name:9} {value}")
    say()
