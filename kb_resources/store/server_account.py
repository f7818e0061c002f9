"""The operating system account that the embedded server runs as.

PostgreSQL refuses to run as root, so root hands the server to an unprivileged account. Belongs
here: choosing it and acting as it. What does not: where files lie (`server_place`).
See https://www.postgresql.org/docs/current/postgres-user.html.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kb_resources.errors import InputError, UnavailableError

_FALLBACKS = ("postgres", "nobody")
_ROOT = 0
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class Account:
    """An account to run server programs as.

    Attributes:
        name: login name.
        uid: user id.
        gid: group id.
        switch: whether programs must change to it because we are root.
    """

    name: str
    uid: int
    gid: int
    switch: bool

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        text: str | None = None,
        lock: int | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as this account in `/`, in its own session, with a bare environment.

        The caller's `PG*` variables do not reach it. Nothing is raised for a failing program.

        Args:
            argv: program and arguments.
            text: its standard input; default: nothing.
            lock: file descriptor of a lock that the program holds on to while it runs, even if
                we are killed meanwhile; it is its standard input where `text` is None.

        Raises:
            OSError: it cannot be started, or we may not change to the account.
        """
        source: dict[str, Any] = {"stdin": subprocess.DEVNULL if lock is None else lock}
        if text is not None:
            source = {"input": text, "pass_fds": () if lock is None else (lock,)}
        return subprocess.run(
            [str(part) for part in argv],
            capture_output=True,
            text=True,
            errors="replace",
            cwd="/",
            env=_ENVIRONMENT,
            umask=0o077,
            start_new_session=True,
            check=False,
            user=self.uid if self.switch else None,
            group=self.gid if self.switch else None,
            extra_groups=() if self.switch else None,
            **source,
        )

    def can(self, access: Literal["read", "execute"], *paths: Path) -> bool:
        """Whether the account may read, or execute or enter, every path, parents included."""
        if self.switch:
            flag = "-r" if access == "read" else "-x"
            script = f'for path in "$@"; do test {flag} "$path" || exit 1; done'
            return self.run(["/bin/sh", "-c", script, "sh", *paths]).returncode == 0
        mode = os.R_OK if access == "read" else os.X_OK
        return all(os.access(path, mode) for path in paths)

    def make_private(self, folder: Path) -> None:
        """Make a folder of mode 0700 that the account owns; parents must exist.

        Raises:
            FileExistsError: something is there already.
        """
        folder.mkdir(mode=0o700)
        if self.switch:
            os.chown(folder, self.uid, self.gid)


def choose_account(preferred: str, *, data: Path | None, home: Path) -> Account:
    """Choose whom the server runs as.

    An ordinary user is always itself. Root takes the owner of data that is already there, then
    `preferred`, then the owner of `home`, then `postgres`, then `nobody`.

    Args:
        preferred: login name the installation asks for, or empty.
        data: the server's data folder, or None where there is none yet.
        home: folder of all local data; exists.

    Raises:
        InputError: `preferred` does not exist, is root, or we are not root and not it.
        UnavailableError: no unprivileged account exists.
    """
    asked = _by_name(preferred) if preferred else None
    if preferred and (asked is None or asked.pw_uid == _ROOT):
        raise InputError(
            f"{preferred!r} is no unprivileged account of this machine.",
            next_step="Name an existing account in KB_PG_USER, or leave it empty.",
        )
    if os.geteuid() != _ROOT:
        return _myself(asked)
    for entry in (_owner(data), asked, _owner(home), *map(_by_name, _FALLBACKS)):
        if entry is not None:
            return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, switch=True)
    raise UnavailableError(
        "PostgreSQL does not run as root, and there is no account to run it as.",
        next_step="Create one (useradd --system postgres) or set KB_DATABASE_URL.",
    )


def _myself(asked: pwd.struct_passwd | None) -> Account:
    try:
        me = pwd.getpwuid(os.geteuid())
    except KeyError:
        raise UnavailableError(
            f"User id {os.geteuid()} has no name, which PostgreSQL's initdb insists on.",
            next_step="Add a line for it to /etc/passwd, or set KB_DATABASE_URL.",
        ) from None
    if asked is not None and asked.pw_uid != me.pw_uid:
        raise InputError(
            f"Only root can run the server as {asked.pw_name!r}.",
            next_step="Leave KB_PG_USER empty.",
        )
    return Account(me.pw_name, me.pw_uid, me.pw_gid, switch=False)


def _by_name(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _owner(path: Path | None) -> pwd.struct_passwd | None:
    if path is None:
        return None
    try:
        uid = path.stat().st_uid
        return pwd.getpwuid(uid) if uid != _ROOT else None
    except (OSError, KeyError):
        return None
