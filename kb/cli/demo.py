"""`kb demo`: from a folder of documents to a cited passage, in one go."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from kb.cli.ingest import print_ends
from kb.cli.output import paragraph, say
from kb.cli.search import breadcrumb
from kb_resources.errors import InputError
from kb_resources.settings import load_settings

SCOPE = "handbook"
_QUESTIONS = Path("tools/examples/questions.json")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("examples"))
@click.option(
    "--questions",
    type=click.Path(path_type=Path),
    default=_QUESTIONS,
    help='JSON list of {"language", "question", "document", "phrase"}.',
)
def demo(folder: Path, questions: Path) -> int:
    """Ingest FOLDER (default: examples) and answer one question per language.

    Starts what it needs and stops what it started.
    """
    from kb_resources.compose import embedded_server

    if not (folder.is_dir() and questions.is_file()):
        raise InputError(
            f"There is no {folder} with {questions}.",
            next_step="Run it in the repository's folder, or name both.",
        )
    asked = json.loads(questions.read_text("utf-8"))
    settings = load_settings()
    server = None if settings.database_url else embedded_server(settings)
    was_running = server is not None and server.status().running
    try:
        missed = _run(folder, asked)
    finally:
        if server is not None and not was_running:
            server.stop()
    say("What to type next:")
    say(f"  export KB_HOME={settings.home}")
    say(f'  .venv/bin/kb search "How long do I have to report a lost laptop?" --scope {SCOPE}')
    say(f"  .venv/bin/kb documents list --scope {SCOPE}")
    say(f"  .venv/bin/kb ingest examples-update --scope {SCOPE}     a policy changes")
    say("  .venv/bin/kb ingest FOLDER --scope NAME                 your own documents")
    say("  make up                                                 the Dagster UI, port 3000")
    return 1 if missed else 0


def _run(folder: Path, asked: list[dict[str, Any]]) -> int:
    """Ingest and ask; the number of questions without the expected passage among three."""
    from kb.client import KnowledgeBase
    from kb.ingesting import Options, ingest_paths

    started = time.monotonic()
    say("Preparing the embedding model (multilingual-e5-small, MIT licence) and the database …")
    print_ends(ingest_paths([folder], Options(scope=SCOPE, through_dagster=False)))
    say(f"Ingested in {time.monotonic() - started:.0f} s.")
    say()
    missed = 0
    with KnowledgeBase() as kb:
        for item in asked:
            if not item.get("phrase"):
                continue
            say(f"[{item['language']}] {item['question']}")
            hits = kb.search(item["question"], scope=SCOPE, k=3).hits
            found = [hit for hit in hits if item["phrase"] in " ".join(hit.text.split())]
            missed += not found
            for hit in (found or list(hits))[:1]:
                page = f", page {hit.page}" if hit.page else ""
                say(f"   {breadcrumb(hit)}")
                say(
                    f"   {hit.document_id} v{hit.version}{page}, bytes {hit.byte_start}–"
                    f"{hit.byte_end} of the body, rank {hit.rank}"
                )
                say(paragraph(_around(hit.text, item["phrase"]), "   | "))
            if not found:
                say("   The expected passage is not among the first three.")
            say()
    return missed


def _around(text: str, phrase: str, reach: int = 180) -> str:
    """The part of a passage around the phrase that answers."""
    flat = " ".join(text.split())
    at = max(flat.find(phrase), 0)
    start, end = max(0, at - reach), at + len(phrase) + reach
    return ("… " if start else "") + flat[start:end] + (" …" if end < len(flat) else "")
