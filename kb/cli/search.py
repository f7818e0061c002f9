"""`kb search`: ranked passages with where they stand."""

from __future__ import annotations

import json
from typing import Any

import click

from kb.cli.options import audience_option, instant, json_option, scope_option
from kb.cli.output import dump, paragraph, say
from kb_resources.errors import InputError

_SPARE = 3
"""How many times more passages are asked for when those that say the same are folded."""


@click.command()
@click.argument("query")
@scope_option
@audience_option("A name the reader holds; repeat for more.")
@click.option(
    "-k", "limit", type=click.IntRange(1, 100), default=8, show_default=True,
    help="Passages at most.",
)  # fmt: skip
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "text", "vector"]),
    default="hybrid",
    show_default=True,
    help="Words and meaning, words only, or meaning only.",
)
@click.option(
    "--words",
    type=click.Choice(["any", "all", "all_first"]),
    default="any",
    show_default=True,
    help="Passages with any of the words, with all of them, or those first.",
)
@click.option("--language", "languages", multiple=True, metavar="L", help="Only in it; repeat.")
@click.option("--media-type", "media_types", multiple=True, metavar="M", help="Only of it; repeat.")
@click.option("--document", "documents", multiple=True, metavar="ID", help="Only in it; repeat.")
@click.option("--heading", "headings", multiple=True, metavar="H", help="First headings, in order.")
@click.option("--metadata", metavar="JSON", help="Only where the source's metadata contain this.")
@click.option("--as-of", metavar="T", help="What held then; a day means its end, UTC.")
@click.option("--known-at", metavar="T", help="What was known then to hold; a day means its end.")
@click.option("--include-historical", is_flag=True, help="Superseded versions too.")
@click.option(
    "--min-score",
    type=float,
    default=None,
    metavar="R",
    help="Relevance that passages need, 0 to 1; those that have none stay.",
)
@click.option("--rerank", is_flag=True, help="Wait for the reranker (KB_RERANKER) to load first.")
@click.option("--collapse", "fold", is_flag=True, help="One passage of those that say the same.")
@click.option("--join", is_flag=True, help="One hit per section, with its headings and siblings.")
@click.option("--debug", is_flag=True, help="Both ranks and scores of each passage.")
@json_option
def search(
    query: str,
    scope: str | None,
    audiences: tuple[str, ...],
    limit: int,
    mode: str,
    words: str,
    languages: tuple[str, ...],
    media_types: tuple[str, ...],
    documents: tuple[str, ...],
    headings: tuple[str, ...],
    metadata: str | None,
    as_of: str | None,
    known_at: str | None,
    include_historical: bool,
    min_score: float | None,
    rerank: bool,
    fold: bool,
    join: bool,
    debug: bool,
    as_json: bool,
) -> None:
    """Find passages for QUERY in one scope."""
    from kb.client import KnowledgeBase
    from kb_resources.retrieve import SearchFilters

    with KnowledgeBase() as kb:
        if rerank:
            kb.warm()
        found = kb.search(
            query,
            scope=scope or "",
            audiences=audiences,
            k=min(limit * _SPARE, 100) if fold else limit,
            mode=mode,
            words=words,
            as_of=instant(as_of, end_of_day=True),
            known_at=instant(known_at, end_of_day=True),
            include_historical=include_historical,
            filters=SearchFilters(
                languages=languages or None,
                media_types=media_types or None,
                documents=documents or None,
                heading_prefix=headings or None,
                metadata=_object(metadata),
            ),
            min_score=min_score,
        )
        joined = kb.joined(found, audiences=audiences) if join else ()
    if join:
        _joined(query, found, joined, as_json=as_json)
        return
    if fold:
        _collapsed(query, found, limit, debug=debug, as_json=as_json)
        return
    if as_json:
        hits = [hit.to_json(debug=debug) for hit in found.hits]
        dump(
            {
                "query": query,
                "mode": found.mode,
                "reranked": found.reranked,
                "nothing_relevant": found.nothing_relevant,
                "hits": hits,
            }
        )
        return
    _say_if_nothing(found)
    for hit in found.hits:
        print_hit(hit, debug=debug)


def _object(text: str | None) -> dict[str, Any] | None:
    """A JSON object as typed, or InputError."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InputError(
            f"{text[:100]!r} is no JSON object.",
            next_step='Write for instance --metadata \'{"author": "Ann"}\'.',
        )
    return value


def _joined(query: str, found: Any, joined: Any, *, as_json: bool) -> None:
    """One entry per section: its headings, the passages found in it and those beside them."""
    if as_json:
        sections = [one.to_json() for one in joined]
        nothing = found.nothing_relevant
        dump(
            {"query": query, "mode": found.mode, "nothing_relevant": nothing, "sections": sections}
        )
        return
    _say_if_nothing(found)
    for nth, one in enumerate(joined, 1):
        say(f"{nth}. {' › '.join(one.ancestors)}")
        say(f"   {one.hit.document_id} v{one.hit.version} · hits {', '.join(map(str, one.ranks))}")
        say(paragraph(one.text))
        say()


def _collapsed(query: str, found: Any, limit: int, *, debug: bool, as_json: bool) -> None:
    """The same without near-duplicates; each hit names those it stands for."""
    from kb_resources.retrieve import collapse

    folded = collapse(found.hits)
    pairs = list(zip(folded.hits, folded.others, strict=True))[:limit]
    if as_json:
        hits = [
            hit.to_json(debug=debug) | {"also": [one.passage_id for one in others]}
            for hit, others in pairs
        ]
        left_out = sum(len(others) for _, others in pairs)
        dump(
            {
                "query": query,
                "mode": found.mode,
                "reranked": found.reranked,
                "nothing_relevant": found.nothing_relevant,
                "hits": hits,
                "collapsed": left_out,
            }
        )
        return
    _say_if_nothing(found)
    for hit, others in pairs:
        print_hit(hit, debug=debug)
        if others:
            say(f"   and {len(others)} that say the same:")
            for one in others:
                say(f"   = {one.document_id} v{one.version}, {one.passage_id}")
            say()


def _say_if_nothing(found: Any) -> None:
    if not found.hits:
        say("Nothing was found.")
    elif found.nothing_relevant:
        say("Nothing relevant was found. These passages are the nearest:\n")


def print_hit(hit: Any, *, debug: bool = False, mark: str = "") -> None:
    """One passage for people: rank (or a mark) and title, where it stands, its text."""
    place = breadcrumb(hit)
    where = [f"{hit.document_id} v{hit.version}"]
    if hit.page is not None:
        where.append(f"page {hit.page}")
    where.append(f"bytes {hit.byte_start}–{hit.byte_end}")
    say(f"{mark or f'{hit.rank}.'} {place}")
    say("   " + " · ".join(where))
    if debug:
        say(f"   {hit.explain()}")
    say(paragraph(hit.text))
    say()


def breadcrumb(hit: Any) -> str:
    """Title and heading path, the title once."""
    path = hit.heading_path[1:] if hit.heading_path[:1] == (hit.title,) else hit.heading_path
    return " › ".join((hit.title, *path))
