"""What one child may use, and taking the rest away from it.

Belongs here: the numbers and the system calls, run in the child before it sees a byte of the
document. See https://man7.org/linux/man-pages/man2/getrlimit.2.html and prctl(2), unshare(2).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

MEMORY_BYTES = 1_536 * 1024 * 1024
CPU_S = 300
WALL_S = 900.0
OUT_OF_MEMORY = 12
"""Exit status of a child that ran out of memory in Python code (the number of ENOMEM)."""

_FLOOR_CPU_S = 30
_CPU_S_PER_MIB = 60
_FLOOR_WALL_S = 60.0
_WALL_PER_CPU = 4.0

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_FORBIDDEN = frozenset(
    (
        *("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname"),
        *("socket.gethostbyaddr", "socket.sendto", "urllib.Request", "ftplib.connect"),
        *("smtplib.connect", "http.client.connect"),
    )
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for one document.

    Attributes:
        memory_bytes: address space of the child.
        cpu_s: CPU time.
        wall_s: time from request to answer.
        result_bytes: longest answer read from the child.
        file_bytes: largest file the child (a converter it starts) may write.
        helper_cpu_s: CPU time of each program the child starts (a converter, a recogniser).
    """

    memory_bytes: int = MEMORY_BYTES
    cpu_s: int = CPU_S
    wall_s: float = WALL_S
    result_bytes: int = 256 * 1024 * 1024
    file_bytes: int = 256 * 1024 * 1024
    helper_cpu_s: int = 240

    def for_size(self, size_bytes: int, waiting_s: float = 0.0) -> Limits:
        """These limits tightened for a file of this size, so that a small file costs little time.

        Honest documents take under 10 s of computing a MiB; 30 s and 60 s a MiB are allowed.

        Args:
            size_bytes: of the file.
            waiting_s: how much longer the child may wait for programs it starts; its own
                computing stays as limited as without.
        """
        allowed = _FLOOR_CPU_S + _CPU_S_PER_MIB * size_bytes // (1024 * 1024)
        cpu_s = min(self.cpu_s, allowed)
        wall_s = min(self.wall_s, max(cpu_s * _WALL_PER_CPU, _FLOOR_WALL_S))
        return replace(self, cpu_s=cpu_s, wall_s=wall_s + waiting_s)


def confine(limits: Limits, parent_pid: int) -> None:
    """Apply the limits to this process for good.

    Args:
        limits: what it may use.
        parent_pid: the process it must not outlive.
    """
    import resource

    def limit(what: int, soft: int, hard: int | None = None) -> None:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (soft, soft if hard is None else hard))

    die_with_parent(parent_pid)
    limit(resource.RLIMIT_CORE, 0)
    # A program it starts raises its own soft limit to the hard one, see `as_helper`.
    limit(resource.RLIMIT_CPU, limits.cpu_s, max(limits.cpu_s + 2, limits.helper_cpu_s))
    limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    limit(resource.RLIMIT_NOFILE, 256)
    # The hard limit leaves room for a converter, which raises its own soft limit.
    limit(resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes * 2)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _libc_call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    sys.addaudithook(_no_network)


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent dies; end now if it already has."""
    _libc_call("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


def as_helper(parent_pid: int) -> None:
    """What a program that a child starts does first: end with it, and use the CPU time set aside.

    Args:
        parent_pid: the child.
    """
    import resource

    die_with_parent(parent_pid)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))


def convert_prefix(pid: int) -> str:
    """How the temporary folders of a child begin; whoever kills the child deletes them."""
    return f"kb-convert-{pid}-"


def leave_network() -> bool:
    """Move this process (and its future children) to a network namespace with no way out.

    Returns:
        False where the system does not allow it; then the audit hook alone keeps Python code from
        connecting.
    """
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWNET | _CLONE_NEWUSER
    return _libc_call("unshare", flags)


def _no_network(event: str, _args: object) -> None:
    if event in _FORBIDDEN:
        raise PermissionError(f"A parser has no network ({event}).")


def _libc_call(name: str, *args: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None, use_errno=True), name)
        return function(*args) == 0
    except (OSError, AttributeError):
        return False
