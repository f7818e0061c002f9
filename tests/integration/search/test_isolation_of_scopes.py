"""A thousand scopes: a small one finds all of its own, and nothing tells of the others."""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
import psycopg
import pytest

from kb_resources.errors import NotFound
from kb_resources.lexical import ANALYZER_VERSION
from kb_resources.model import Principal
from kb_resources.store import passages
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer

from .conftest import START, World

WORDS = [f"word{n}" for n in range(200)]


@pytest.fixture(scope="module")
def crowd(server: EmbeddedServer, template_database: str) -> Iterator[World]:
    """A database of 1,000 scopes; the one tested has ten rows among 10 of each other one."""
    name = "kb_thousand_scopes"
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as conn:
        conn.execute(f"create database {name} template {template_database} strategy file_copy")
    with Database.embedded(server, dbname=name, application_name="kb isolation test") as opened:
        world = World(opened, "mine")
        for nth in range(10):
            world.publish(f"d{nth}", [f"shared word{nth} alpha"])
        multiply(opened, world.scope_id, 999)
        yield world


def multiply(database: Database, scope_id: int, times: int) -> None:
    """Copies of a scope's rows under other names, past the gate: they are only there to be many."""
    with database.owner_session() as conn:
        conn.execute("set session_replication_role = replica")
        conn.execute(
            "insert into kb.scope (name) select 'other' || n from generate_series(1, %s) n", [times]
        )
        conn.execute(
            """
            with others as (select scope_id from kb.scope where name like 'other%%'),
            made as (insert into kb.document (scope_id, document_id, source_kind, source_uri,
                origin)
              select o.scope_id, d.document_id, d.source_kind, d.source_uri, d.origin
              from others o cross join kb.document d where d.scope_id = %(mine)s
              returning document_key, scope_id, document_id),
            versions as (insert into kb.version (document_key, scope_id, version, digest,
                media_type, size_bytes, title, language, verdict, verdict_digest, body_digest,
                verdict_body_digest)
              select m.document_key, m.scope_id, 1, v.digest, v.media_type, v.size_bytes, v.title,
                v.language, v.verdict, v.verdict_digest, v.body_digest, v.verdict_body_digest
              from made m join kb.document d on d.scope_id = %(mine)s
                and d.document_id = m.document_id
              join kb.version v on v.document_key = d.document_key
              returning version_key, document_key, scope_id, digest)
            insert into kb.passage (version_key, scope_id, passage_id, ordinal, text, context,
              heading_path, byte_start, byte_end, char_start, char_end, content_hash, embed_hash,
              token_count, language)
            select v.version_key, v.scope_id, p.passage_id, p.ordinal, p.text, p.context,
              p.heading_path, p.byte_start, p.byte_end, p.char_start, p.char_end, p.content_hash,
              p.embed_hash, p.token_count, p.language
            from versions v join kb.version w on w.scope_id = %(mine)s and w.digest = v.digest
            join kb.passage p on p.version_key = w.version_key
            """,
            {"mine": scope_id},
        )
        conn.execute(
            """
            insert into kb.validity (document_key, version_key, scope_id, valid, known)
            select document_key, version_key, scope_id, tstzrange(%(t)s, null),
              tstzrange(%(t)s, null)
            from kb.version where scope_id <> %(mine)s
            """,
            {"t": START, "mine": scope_id},
        )
        conn.execute(
            """
            insert into kb.lex (passage_key, scope_id, valid_from, audiences, bm, keys)
            select q.passage_key, q.scope_id, l.valid_from, '{}', l.bm, array(
              select kb.scoped_key(q.scope_id, kb.scoped_key(l.scope_id, k)) from unnest(l.keys) k)
            from kb.passage q join kb.passage p on p.scope_id = %(mine)s
              and p.passage_id = q.passage_id
            join kb.lex l on l.passage_key = p.passage_key where q.scope_id <> %(mine)s
            """,
            {"mine": scope_id},
        )
        conn.execute(
            """
            insert into kb.embedding (model_key, passage_key, scope_id, valid_from, audiences, vec)
            select e.model_key, q.passage_key, q.scope_id, e.valid_from, '{}', e.vec
            from kb.passage q join kb.passage p on p.scope_id = %(mine)s
              and p.passage_id = q.passage_id
            join kb.embedding e on e.passage_key = p.passage_key where q.scope_id <> %(mine)s
            """,
            {"mine": scope_id},
        )
        conn.execute(
            "insert into kb.lexicon (scope_id, analyzer, average_length)"
            " select scope_id, %s, 100 from kb.scope on conflict do nothing",
            [ANALYZER_VERSION],
        )
        conn.execute("set session_replication_role = origin")
        conn.execute("analyze")


@pytest.mark.requirement("W-28", "O-30")
@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
def test_all_ten_rows_of_a_small_scope_are_found_among_ten_thousand(
    crowd: World, mode: str
) -> None:
    hits = crowd.search("shared alpha", mode=mode, k=10).hits
    assert sorted(hit.document_id for hit in hits) == sorted(f"d{n}" for n in range(10))
    assert {hit.scope for hit in hits} == {"mine"}
    assert [hit.rank for hit in hits] == list(range(1, 11))


@pytest.mark.requirement("O-21", "B-23")
def test_scores_ranks_and_errors_do_not_tell_of_other_scopes(crowd: World) -> None:
    alone = World(crowd.database, "alone")
    for nth in range(10):
        alone.publish(f"d{nth}", [f"shared word{nth} alpha"])
    for query in ("shared alpha", "word3", "alpha word5 nothing"):
        for mode in ("hybrid", "text", "vector"):
            mine, other = (
                [
                    (hit.document_id, hit.score, hit.text_score, hit.vector_score, hit.relevance)
                    for hit in world.search(query, mode=mode, k=10).hits
                ]
                for world in (crowd, alone)
            )
            assert mine == other
    held = Principal("test", scopes=frozenset({"mine"}))
    said = []
    for name in ("other1", "nowhere1"):
        with pytest.raises(NotFound) as raised:
            crowd.search("shared", scope=name, principal=held)
        said.append(str(raised.value).replace(name, "X"))
    assert said[0] == said[1]


@pytest.mark.long
@pytest.mark.requirement("O-21")
def test_time_does_not_tell_a_scope_that_is_hidden_from_one_that_is_not_there(
    crowd: World,
) -> None:
    """Mann and Whitney's test over interleaved calls; a leak of tens of microseconds would show.

    Only a difference that is both beyond chance and larger than a tenth of the call is one: on a
    loaded machine the former alone happens.
    """
    held = Principal("test", scopes=frozenset({"mine"}))
    retriever = crowd.retriever()

    def refused(name: str) -> float:
        started = time.perf_counter()
        with pytest.raises(NotFound):
            retriever.search("shared", principal=held, scope=name)
        return time.perf_counter() - started

    def absent(word: str) -> float:
        started = time.perf_counter()
        retriever.search(word, principal=held, scope="mine", mode="text")
        return time.perf_counter() - started

    names = itertools.cycle([f"other{n}" for n in range(1, 900)])
    nowhere = itertools.cycle([f"nobody{n}" for n in range(1, 900)])
    assert _alike(lambda: refused(next(names)), lambda: refused(next(nowhere)))
    # A word that others' scopes hold and one that nobody's does.
    assert _alike(lambda: absent("sharedelsewhere"), lambda: absent("quetzalcoatl"))


def _alike(one: Callable[[], float], other: Callable[[], float], rounds: int = 1500) -> bool:
    chance = random.Random(3)
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(rounds):
        order = [True, False]
        chance.shuffle(order)
        for first in order:
            times[first].append(one() if first else other())
    medians = [statistics.median(values) for values in times.values()]
    joined = np.concatenate([times[True], times[False]])
    ranks = np.empty(len(joined))
    ranks[joined.argsort()] = np.arange(1, len(joined) + 1)
    u = ranks[:rounds].sum() - rounds * (rounds + 1) / 2
    z = (u - rounds**2 / 2) / (rounds**2 * (2 * rounds + 1) / 12) ** 0.5
    return abs(z) < 4 or abs(medians[0] - medians[1]) < 0.1 * max(medians)


def test_statistics_of_other_scopes_do_not_weigh_words(crowd: World) -> None:
    with crowd.pipeline() as conn:
        passages.refresh_statistics(conn, crowd.scope_id)
    counted = crowd.ask("select max(df) from kb.term where scope_id = %(scope_id)s")
    assert counted[0] == 10
