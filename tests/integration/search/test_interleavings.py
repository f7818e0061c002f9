"""Any two operations on one document, at once and in each order, on real Postgres.

Two connections run one operation each. One begins and holds its transaction open; the other starts
and has to wait or to answer; then the first commits. Afterwards the invariants hold, whoever won.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kb_resources.errors import KbError
from kb_resources.model.chunk import embedding_input
from kb_resources.store import erasure, lifecycle, locks, selections, vectors
from tests.integration.search.conftest import DIM, START

if TYPE_CHECKING:
    from kb_resources.model import Chunk
    from kb_resources.store.documents import DocumentRow
    from tests.integration.search.conftest import World

OTHER_MODEL = "tiny@2"
OLD, NEW = "walrus old", "walrus new"


@dataclass
class Prepared:
    """A published document with its next version staged, and another that can supersede it."""

    world: World
    old: DocumentRow
    row: DocumentRow
    chunks: tuple[Chunk, ...]
    rival: DocumentRow
    rival_chunks: tuple[Chunk, ...]


Operation = Callable[[Prepared, Any], None]


def put(p: Prepared, conn: Any) -> None:
    p.world.put(p.row, p.chunks, valid_from=START + timedelta(days=1), conn=conn)


def remove(p: Prepared, conn: Any) -> None:
    lifecycle.remove(conn, p.row, START + timedelta(days=2), "asked")


def restore(p: Prepared, conn: Any) -> None:
    lifecycle.restore(conn, p.row, START + timedelta(days=3))


def set_audiences(p: Prepared, conn: Any) -> None:
    lifecycle.decide_audiences(conn, p.row, ["hr"], actor="test")


def put_embeddings(p: Prepared, conn: Any) -> None:
    """Vectors of the staged version computed again and staged in place of the first."""
    model = vectors.ensure_model(conn, p.world.embedder.model_id, DIM)
    _stage(p, conn, model)


def re_embed(p: Prepared, conn: Any) -> None:
    """Vectors of another model for what is published."""
    model = vectors.ensure_model(conn, OTHER_MODEL, DIM)
    locks.lock(conn, p.old.document_key)
    conn.execute(
        "insert into kb.embedding (model_key, passage_key, scope_id, valid_from, valid_until, "
        "earlier, audiences, vec) select %s, l.passage_key, l.scope_id, l.valid_from, "
        "l.valid_until, l.earlier, l.audiences, %s::halfvec "
        "from kb.lex l join kb.passage g using (passage_key) where g.version_key = %s "
        "on conflict do nothing",
        [model, "[" + ",".join(["0.25"] * DIM) + "]", p.old.version_key],
    )


def supersede(p: Prepared, conn: Any) -> None:
    """Another document is published and ends this one."""
    p.world.put(p.rival, p.rival_chunks, valid_from=START + timedelta(days=4), conn=conn)
    locks.lock(conn, p.row.document_key)
    for current in selections.current_of(conn, p.row.scope_id, [p.row.document_id]):
        conn.execute(
            "select kb.close_validity(%s, %s)",
            [current.document_key, START + timedelta(days=4)],
        )


def erase(p: Prepared, conn: Any) -> None:
    erasure.erase_rows(conn, p.row.document_key, alias=f"erased-{p.row.document_key}", reason="x")


OPERATIONS: dict[str, Operation] = {
    made.__name__: made
    for made in (
        put, remove, restore, set_audiences, put_embeddings, re_embed, supersede, erase,
    )
}  # fmt: skip


def _stage(p: Prepared, conn: Any, model: int) -> None:
    texts = [embedding_input(chunk.context, chunk.text) for chunk in p.chunks]
    made = p.world.embedder.embed(texts, "passage").astype(np.float32)
    vectors.stage_vectors(
        conn, p.row.version_key or 0, model, [c.embed_hash for c in p.chunks], made
    )


def prepare(world: World, name: str) -> Prepared:
    world.publish(name, [OLD])
    old = world.row(name)
    row, chunks = world.stage(name, [NEW])
    world.embed(row, chunks)
    rival, rival_chunks = world.stage(f"{name}-rival", ["walrus rival"])
    world.embed(rival, rival_chunks)
    return Prepared(world, old, row, chunks, rival, rival_chunks)


def check(p: Prepared) -> None:
    """What holds whatever happened to a document."""
    key = p.row.document_key
    with p.world.pipeline() as conn:

        def count(query: str) -> int:
            found = conn.execute(query.encode(), {"key": key}).fetchone()
            assert found is not None
            return int(found[0])

        current = count(
            "select count(*) from kb.validity where document_key = %(key)s and upper_inf(known) "
            "and upper_inf(valid)"
        )
        [state] = conn.execute(
            "select state from kb.document where document_key = %s", [key]
        ).fetchone()
        assert current <= 1
        assert not (state in ("removed", "erased") and current)
        assert (
            count(
                "select count(*) from kb.passage p join kb.version v using (version_key) "
                "join kb.document d using (document_key) "
                "join lateral (select audiences from kb.lex l where l.passage_key = p.passage_key "
                "union all select audiences from kb.embedding e "
                "where e.passage_key = p.passage_key) x "
                "on x.audiences <> d.audiences where d.document_key = %(key)s"
            )
            == 0
        ), "a search row has other readers than its document"
        assert (
            count(
                "select count(*) from kb.passage p join kb.version v using (version_key) "
                "cross join lateral kb.version_intervals(v.version_key) i "
                "join kb.lex l using (passage_key) left join kb.embedding e using (passage_key) "
                "where v.document_key = %(key)s and ((l.valid_from, l.valid_until) is distinct "
                "from (i.valid_from, i.valid_until) or e.passage_key is not null and "
                "(e.valid_from, e.valid_until) is distinct from (i.valid_from, i.valid_until))"
            )
            == 0
        ), "a search row holds at another time than the ledger says"
        if state == "erased":
            assert count("select count(*) from kb.version where document_key = %(key)s") == 0
            assert (
                count(
                    "select (select count(*) from kb.staged_chunk c left join kb.version v "
                    "using (version_key) where v.version_key is null)"
                    " + (select count(*) from kb.staged_vector s left join kb.version v "
                    "using (version_key) where v.version_key is null)"
                )
                == 0
            )
    decided = p.world.ask(
        "select audiences_set_by, audiences from kb.document where document_key = %(key)s", key=key
    )
    if decided[0] is not None:
        assert decided[1] == ["hr"], "a decision about readers was undone"
        assert p.row.document_id not in p.world.found(
            "walrus", as_of=datetime(2030, 1, 1, tzinfo=UTC)
        )


@contextmanager
def _session(p: Prepared) -> Iterator[Any]:
    with p.world.pipeline() as conn:
        conn.execute("set local lock_timeout = '15s'")
        yield conn


def _attempt(p: Prepared, operation: Operation) -> None:
    """One operation in a transaction of its own; being refused is an answer too."""
    with suppress(KbError), _session(p) as conn:
        operation(p, conn)


@pytest.mark.requirement("O-20", "P-33")
@pytest.mark.parametrize(("first", "second"), list(itertools.product(OPERATIONS, repeat=2)))
def test_two_operations_at_once(world: World, first: str, second: str) -> None:
    p = prepare(world, f"{first}-{second}".replace("_", "-"))
    waiting = threading.Thread(target=_attempt, args=(p, OPERATIONS[second]))
    try:
        with _session(p) as conn:
            OPERATIONS[first](p, conn)
            waiting.start()
            waiting.join(0.05)
    finally:
        if waiting.ident is not None:
            waiting.join(20)
    assert not waiting.is_alive()
    check(p)


def _race(world: World, pairs: int) -> int:
    """Pairs of puts of two versions of one document at once; returns passages of losers read."""
    read: list[str] = []
    over = threading.Event()
    name = "raced"
    world.publish(name, ["walrus 0"])
    numbers = itertools.count(1)

    def watch() -> None:
        while not over.is_set():
            hits = world.search("walrus", mode="text", k=20).hits
            versions = {hit.version for hit in hits if hit.document_id == name}
            if len(versions) > 1:
                read.append(f"versions {sorted(versions)} at once")

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for _ in range(pairs):
            staged = []
            for _ in range(2):
                row, chunks = world.stage(name, [f"walrus {next(numbers)}", "walrus tail"])
                world.embed(row, chunks)
                staged.append((row, chunks))
            at = START + timedelta(seconds=next(numbers))
            writers = [
                threading.Thread(target=lambda s=s, at=at: world.put(*s, valid_from=at))
                for s in staged
            ]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            current = world.ask(
                "select count(*), count(distinct x.version_key) from kb.validity x "
                "join kb.document d using (document_key) where d.document_id = %(name)s "
                "and d.scope_id = %(scope_id)s and upper_inf(x.known) and upper_inf(x.valid)",
                name=name,
            )
            assert current == (1, 1)
    finally:
        over.set()
        watcher.join()
    return len(read)


@pytest.mark.requirement("O-20")
def test_racing_puts_leave_one_version_and_no_reader_sees_two(world: World) -> None:
    assert _race(world, 12) == 0


@pytest.mark.long
@pytest.mark.requirement("O-20")
def test_two_hundred_racing_puts(world: World) -> None:
    assert _race(world, 200) == 0
