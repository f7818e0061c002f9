"""Vector indexes of large scopes: which there should be, making and dropping them.

Belongs here: maintenance, run by the owner outside transactions. What does not: using them, which
`kb.search` does. Below the limit an exact scan is faster to keep and never misses; a shared index
misses small scopes. Index: Malkov and Yashunin, "Efficient and robust approximate nearest neighbor
search using Hierarchical Navigable Small World graphs", 2018, as in pgvector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from psycopg import sql as compose
from psycopg.rows import dict_row

from kb_resources.store.documents import Conn
from kb_resources.store.sql import sql

LIMIT = 50_000
"""Vectors of a scope from which it owns an index; it loses it again below 70 % of them."""
MOST = 50
"""Indexes at most: every write to `kb.embedding` checks the predicate of each."""


Action = Literal["create", "rebuild", "drop"]


@dataclass(frozen=True, slots=True)
class IndexChange:
    """One step of maintenance.

    Attributes:
        action: `create`, `rebuild` (left invalid by a broken build) or `drop`.
        name: of the index, in schema `kb`.
        model_key: whose vectors; 0 for a stray to be dropped.
        scope_id: of which scope.
        dim: dimensions.
        vectors: how many the scope has.
    """

    action: Action
    name: str
    model_key: int = 0
    scope_id: int = 0
    dim: int = 0
    vectors: int = 0


def plan(conn: Conn, *, limit: int = LIMIT, most: int = MOST) -> list[IndexChange]:
    """What has to change so that exactly the large scopes own a valid index.

    Args:
        conn: as the owner.
        limit: vectors from which a scope owns an index.
        most: indexes at most; the largest scopes come first.
    """
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(sql("ann_sizes"), {}).fetchall()
        strays = cursor.execute(sql("ann_strays"), {}).fetchall()
    changes = [IndexChange("drop", row["relname"]) for row in strays]
    kept = 0
    for row in rows:
        wanted = kept < most and row["vectors"] >= (0.7 * limit if row["present"] else limit)
        kept += wanted
        action = _action(wanted, row["present"], row["valid"])
        if action is not None:
            name = f"embedding_ann_{row['model_key']}_{row['scope_id']}"
            size = (row["model_key"], row["scope_id"], row["dim"], row["vectors"])
            changes.append(IndexChange(action, name, *size))
    return changes


def _action(wanted: bool, present: bool, valid: bool) -> Action | None:
    if not wanted:
        return "drop" if present else None
    if not present:
        return "create"
    return None if valid else "rebuild"


def apply(conn: Conn, change: IndexChange) -> None:
    """Carry out one change while readers and writers go on.

    Args:
        conn: the owner's, in autocommit (CREATE INDEX CONCURRENTLY takes no transaction).
        change: from `plan`.
    """
    name = compose.Identifier(change.name)
    if change.action != "create":
        conn.execute(compose.SQL("drop index concurrently if exists kb.{}").format(name))
    if change.action != "drop":
        conn.execute(
            compose.SQL(
                "create index concurrently {} on kb.embedding"
                " using hnsw ((vec::halfvec({})) halfvec_ip_ops)"
                " where model_key = {} and scope_id = {}"
            ).format(
                name,
                compose.Literal(change.dim),
                compose.Literal(change.model_key),
                compose.Literal(change.scope_id),
            )
        )


def maintain(conn: Conn, *, limit: int = LIMIT, most: int = MOST) -> list[IndexChange]:
    """Plan and carry out; returns what was changed.

    Args:
        conn: the owner's, in autocommit.
        limit: see `plan`.
        most: see `plan`.
    """
    changes = plan(conn, limit=limit, most=most)
    for change in changes:
        apply(conn, change)
    return changes
