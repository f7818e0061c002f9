"""The git export: published documents as files, one commit for each batch that changed something.

`<scope>/<document>/document.md` is the body under front matter, `manifest.json` what is known of
it, `lifecycle.jsonl` its log. Belongs here: files and commits. What does not: when it runs. A
repository keeps what was deleted from it, so erasing is refused while the export is on. Front
matter is JSON values, which YAML 1.2 reads: https://yaml.org/spec/1.2.2/#json-compatibility.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg.rows import dict_row

from kb_resources.errors import InputError, UnavailableError
from kb_resources.model import DocumentKey
from kb_resources.stages.capabilities import Capabilities
from kb_resources.store import documents
from kb_resources.store.sql import sql

_MARK = ".kb-export"
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export did; `commit` is empty where nothing had changed."""

    documents: int
    changed: int
    deleted: int
    commit: str


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """Where the export goes; `scopes` None: every scope."""

    folder: Path
    scopes: frozenset[str] | None = None

    def takes(self, scope: str) -> bool:
        """Whether documents of the scope are exported."""
        return self.scopes is None or scope in self.scopes


@dataclass(frozen=True, slots=True)
class ExportSwitch:
    """Whether the export was turned on by hand, remembered in a file of the data folder.

    The file's first line is the target, each further line a scope.
    """

    file: Path

    def target(self) -> ExportTarget | None:
        """Where it goes; None when it is off."""
        lines = self.file.read_text("utf-8").split("\n") if self.file.exists() else []
        folder, *scopes = [line.strip() for line in lines if line.strip()] or [""]
        if not folder:
            return None
        return ExportTarget(Path(folder), frozenset(scopes) or None)

    def turn_on(self, target: Path, scopes: Sequence[str] = ()) -> None:
        """Erasing is refused from now on, and each batch of these scopes (none: all) exported."""
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.file.write_text("".join(f"{line}\n" for line in (target, *scopes)), "utf-8")

    def turn_off(self) -> ExportTarget | None:
        """Returns where it went."""
        before = self.target()
        self.file.unlink(missing_ok=True)
        return before


def export_git(caps: Capabilities, target: Path, scopes: Sequence[str]) -> Exported:
    """Bring a repository in line with all that is published, in one commit.

    Args:
        caps: of the pipeline.
        target: the repository's folder; made, or one that an export made before.
        scopes: scope names; folders of other scopes are left alone.

    Raises:
        InputError: the folder holds something else.
        NotFound: no such scope.
        UnavailableError: git is missing or failed.
    """
    return _export(caps, target, dict.fromkeys(scopes))


def export_batch(caps: Capabilities, target: ExportTarget, keys: Iterable[DocumentKey]) -> Exported:
    """Bring a repository in line with the documents of a batch, in one commit.

    Args:
        caps: of the pipeline.
        target: where to, and of which scopes.
        keys: documents that a run or a decision was about; those no longer published leave.

    Raises:
        InputError: the folder holds something else.
        UnavailableError: git is missing or failed.
    """
    wanted: dict[str, list[str]] = {}
    for key in keys:
        if target.takes(key.scope):
            wanted.setdefault(key.scope, []).append(key.document_id)
    return _export(caps, target.folder, wanted) if wanted else Exported(0, 0, 0, "")


def _export(
    caps: Capabilities, target: Path, wanted: Mapping[str, Sequence[str] | None]
) -> Exported:
    """Scope to the documents looked at there; None: all of it."""
    count = changed = deleted = 0
    with _alone(target):
        for scope, only in wanted.items():
            found = set()
            for row, log in _published(caps, scope, only):
                count += 1
                found.add(row["document_id"])
                changed += _write(target / scope / row["document_id"], scope, row, log)
            for stale in _stale(target / scope, found, only):
                shutil.rmtree(stale)
                deleted += 1
        _git(target, "add", "--all")
        if not _git(target, "status", "--porcelain"):
            return Exported(count, 0, 0, "")
        message = f"{changed} documents changed, {deleted} left: {', '.join(wanted)}"
        _git(target, "commit", "--quiet", f"--message={message}")
        return Exported(count, changed, deleted, _git(target, "rev-parse", "HEAD").strip())


def _stale(folder: Path, found: Collection[str], only: Sequence[str] | None) -> list[Path]:
    """Folders of documents that were looked at and are no longer published."""
    if not folder.is_dir():
        return []
    names = sorted(entry.name for entry in folder.iterdir()) if only is None else sorted(set(only))
    return [folder / name for name in names if name not in found and (folder / name).is_dir()]


def _published(
    caps: Capabilities, scope: str, only: Sequence[str] | None
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    after = 0
    while True:
        with (
            caps.database.transaction("pipeline") as conn,
            conn.cursor(row_factory=dict_row) as cursor,
        ):
            documents.get_scope(conn, scope)
            given = {
                "scope": scope,
                "only": None if only is None else list(only),
                "after": after,
                "limit": _PAGE,
            }
            rows = cursor.execute(sql("export_page"), given).fetchall()
            logs = [
                cursor.execute(
                    sql("export_lifecycle"), {"document_key": row["document_key"]}
                ).fetchall()
                for row in rows
            ]
        yield from zip(rows, logs, strict=True)
        if len(rows) < _PAGE:
            return
        after = rows[-1]["document_key"]


def _write(
    folder: Path, scope: str, row: Mapping[str, Any], log: Sequence[Mapping[str, Any]]
) -> bool:
    """Write the three files where they differ; whether any did."""
    head = {
        "title": row["title"],
        "document_id": row["document_id"],
        "scope": scope,
        "version": row["version"],
        "digest": row["digest"],
        "language": row["language"],
        "audiences": row["audiences"],
    }
    front = "".join(f"{name}: {_json(value)}\n" for name, value in head.items())
    manifest = head | {
        "source": row["origin"],
        "source_kind": row["source_kind"],
        "type": row["media_type"],
        "status": row["state"],
        "body_digest": row["body_digest"],
        "parser": row["parser"],
        "models": row["models"],
        "verdict": row["verdict"],
        "rule_pack": row["rule_pack"],
        "metadata": row["metadata"],
        "intervals": row["intervals"],
    }
    files = {
        "document.md": f"---\n{front}---\n\n{row['body']}",
        "manifest.json": _json(manifest, indent=1) + "\n",
        "lifecycle.jsonl": "".join(_json(entry) + "\n" for entry in log),
    }
    folder.mkdir(parents=True, exist_ok=True)
    changed = False
    for name, text in files.items():
        file, data = folder / name, text.encode()
        if not file.exists() or file.read_bytes() != data:
            file.write_bytes(data)
            changed = True
    return changed


def _json(value: Any, *, indent: int | None = None) -> str:
    def plain(item: Any) -> str:
        if isinstance(item, datetime):
            return item.isoformat()
        raise TypeError(f"{type(item).__name__} is not JSON")

    return json.dumps(value, ensure_ascii=False, indent=indent, default=plain)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """The repository, made where there is none, while no other process writes to it."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(target, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _prepare(target)
        yield
    finally:
        os.close(descriptor)


def _prepare(target: Path) -> None:
    if not (target / _MARK).exists() and any(target.iterdir()):
        raise InputError(
            f"{target} is not empty and no export made it.", next_step="Name an empty folder."
        )
    (target / _MARK).write_text("Written by kb export git; do not edit by hand.\n")
    if not (target / ".git").exists():
        _git(target, "init", "--quiet")


def _git(target: Path, *arguments: str) -> str:
    """Run git in the repository without the user's configuration or hooks."""
    who = {"GIT_AUTHOR_NAME": "kb", "GIT_COMMITTER_NAME": "kb"}
    mail = {"GIT_AUTHOR_EMAIL": "kb@localhost", "GIT_COMMITTER_EMAIL": "kb@localhost"}
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    options = ["-c", f"core.hooksPath={os.devnull}", "-c", f"safe.directory={target.absolute()}"]
    try:
        done = subprocess.run(
            ["git", *options, *arguments],
            cwd=target,
            env=kept | who | mail | quiet,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise UnavailableError("There is no git.", next_step="Install git.") from error
    if done.returncode:
        raise UnavailableError(
            f"git {arguments[0]} failed: {done.stderr.strip()[-400:]}",
            next_step="Look at the repository, then export again.",
        )
    return done.stdout
