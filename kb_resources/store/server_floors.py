"""The oldest PostgreSQL and pgvector that are accepted, on any server.

Belongs here: the numbers and the check. What does not: what to do about missing extensions
(`migrate`). Older ones have known holes in index builds and scans, see
https://github.com/pgvector/pgvector/blob/master/CHANGELOG.md and
https://www.postgresql.org/docs/release/.
"""

from __future__ import annotations

import re

import psycopg

from kb_resources.errors import InputError

POSTGRES_FLOORS = {16: 15, 17: 11, 18: 6}
"""Lowest minor version of each major version; later majors are accepted as they are."""
PGVECTOR_FLOOR = (0, 8, 4)

_VECTOR_VERSIONS = """
    select coalesce(installed_version, default_version)
    from pg_available_extensions where name = 'vector'
"""


def check_floors(conn: psycopg.Connection[tuple[object, ...]], *, vector: bool = True) -> None:
    """Refuse a server that is too old.

    Args:
        conn: any open connection to it.
        vector: whether pgvector must be there too.

    Raises:
        InputError: PostgreSQL or pgvector is too old (`server_too_old`), or pgvector is not
            available (`no_pgvector`).
    """
    major, minor = divmod(conn.info.server_version, 10_000)
    if too_old := postgres_too_old(major, minor):
        raise InputError(
            f"PostgreSQL {major}.{minor} is too old.", next_step=too_old, code="server_too_old"
        )
    if not vector:
        return
    row = conn.execute(_VECTOR_VERSIONS).fetchone()
    if row is None:
        raise InputError(
            "The server offers no pgvector.",
            next_step=f"Install pgvector {_dotted(PGVECTOR_FLOOR)} or later on it.",
            code="no_pgvector",
        )
    if vector_too_old(str(row[0])):
        raise InputError(
            f"pgvector {row[0]} is too old.",
            next_step=f"Install {_dotted(PGVECTOR_FLOOR)} or later on the server, then run "
            "ALTER EXTENSION vector UPDATE.",
            code="server_too_old",
        )


def postgres_too_old(major: int, minor: int) -> str:
    """What to do about a PostgreSQL version that is too old; empty when it is not."""
    lowest_major = min(POSTGRES_FLOORS)
    if major < lowest_major:
        return f"Use PostgreSQL {lowest_major}.{POSTGRES_FLOORS[lowest_major]} or later."
    floor = POSTGRES_FLOORS.get(major, 0)
    return f"Update it to {major}.{floor} or later and restart it." if minor < floor else ""


def vector_too_old(version: str) -> bool:
    """Whether a pgvector version such as `0.8.3` is below the floor."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3]) < PGVECTOR_FLOOR


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
