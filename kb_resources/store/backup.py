"""The schema's dump and its return: PostgreSQL's own programs, run as the schema's owner.

Belongs here: finding and running pg_dump and pg_restore, and whether a target is empty. What does
not: blobs and the archive (`stages.backup`). Format and switches: postgresql.org/docs, "pg_dump".
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kb_resources.errors import IntegrityError, UnavailableError
from kb_resources.store.server_binaries import wheel_bin_dir

SCHEMA = "kb"


def dump_schema(dsn: str, target: Path) -> None:
    """Write a consistent dump of the schema while others go on working.

    Raises:
        UnavailableError: pg_dump is missing, older than the server, or failed.
    """
    _run(
        "pg_dump", dsn, ["--format=custom", f"--schema={SCHEMA}", "--no-owner", f"--file={target}"]
    )


def load_schema(dsn: str, dump: Path) -> None:
    """Replace the schema by a dump's, in one transaction: all of it or nothing.

    Raises:
        UnavailableError: pg_restore is missing or failed; the target is as it was.
    """
    # --clean would drop object by object; the schema goes whole, in the same transaction.
    script = dump.with_suffix(".sql")
    try:
        _run("pg_restore", dsn, ["--no-owner", f"--file={script}", str(dump)], connect=False)
        once = ["--quiet", "--no-psqlrc", "--single-transaction", "--set=ON_ERROR_STOP=1"]
        drop = f"--command=drop schema if exists {SCHEMA} cascade"
        _run("psql", dsn, [*once, drop, f"--file={script}"])
    finally:
        script.unlink(missing_ok=True)


def holds_documents(dsn: str) -> bool:
    """Whether a database holds documents, or scopes, of a knowledge base."""
    with psycopg.connect(dsn) as conn:
        known = conn.execute("select to_regclass('kb.scope') is not null").fetchone()
        if not known or not known[0]:
            return False
        row = conn.execute("select exists (select from kb.scope)").fetchone()
    return bool(row and row[0])


def _run(program: str, dsn: str, options: Sequence[str], *, connect: bool = True) -> None:
    """Run a program; the password goes by its environment, never by its arguments."""
    parts: dict[str, Any] = dict(conninfo_to_dict(dsn))
    password = parts.pop("password", None)
    target = ["--dbname=" + make_conninfo("", **parts)] if connect else []
    done = subprocess.run(
        [_program(program), *target, *options],
        env={"PGPASSWORD": str(password)} if password else {},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise UnavailableError(
            f"{program} failed: {done.stderr.strip()[-600:]}",
            next_step="Nothing was changed; look at the message, then try again.",
        )


def _program(name: str) -> str:
    """The program beside the embedded server's, which fits all older servers, else that of PATH."""
    try:
        bundled = wheel_bin_dir() / name
    except UnavailableError:
        bundled = None
    if bundled is not None and bundled.is_file():
        return str(bundled)
    found = shutil.which(name)
    if found is None:
        raise UnavailableError(
            f"There is no {name}.", next_step="Install PostgreSQL's client programs."
        )
    return found


def dump_version(dump: Path) -> None:
    """IntegrityError unless the file is a dump."""
    with dump.open("rb") as stream:
        if stream.read(5) != b"PGDMP":
            raise IntegrityError("The backup holds no database dump.")
