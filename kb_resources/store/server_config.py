"""Settings of the embedded server.

Belongs here: values for one small machine, scaled to its memory. What does not: the settings of
your own server, which stay yours. Later `ALTER SYSTEM` wins over all of these but the cluster
name. See https://www.postgresql.org/docs/current/runtime-config.html.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_MIB = 2**20
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def render(settings: Mapping[str, str]) -> str:
    """Text of a postgresql.conf fragment; values are quoted."""
    lines = (f"{name} = {_quoted(value)}" for name, value in settings.items())
    return "\n".join(lines) + "\n"


def default_settings(memory_bytes: int, *, shared_memory_bytes: int | None) -> dict[str, str]:
    """Settings for a machine of this memory.

    Args:
        memory_bytes: what this machine or container may use.
        shared_memory_bytes: free space of /dev/shm; None where there is none.
    """
    maintenance = _share(memory_bytes, 16, 64, 1024)
    # Containers get 64 MiB of /dev/shm, in which a parallel index build fails.
    roomy = shared_memory_bytes is None or shared_memory_bytes >= 2 * maintenance * _MIB
    return {
        "listen_addresses": "",
        "max_connections": "200",
        "unix_socket_permissions": "0700",
        "shared_buffers": f"{_share(memory_bytes, 8, 64, 512)}MB",
        "maintenance_work_mem": f"{maintenance}MB",
        "work_mem": f"{_share(memory_bytes, 128, 8, 32)}MB",
        "effective_cache_size": f"{_share(memory_bytes, 2, 256, 65536)}MB",
        "dynamic_shared_memory_type": "posix" if roomy else "mmap",
        "jit": "off",
        "random_page_cost": "1.1",
        "wal_compression": "pglz",
        "max_wal_size": "2GB",
        "checkpoint_timeout": "15min",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "lc_messages": "C",
        "logging_collector": "on",
        "log_directory": "log",
        "log_filename": "kb-%a.log",
        "log_truncate_on_rotation": "on",
        "log_rotation_age": "1d",
        "log_rotation_size": "0",
        # Statements and row values hold document text, which must not reach a log.
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
    }


def available_memory_bytes() -> int:
    """Memory this process may use: the machine's, or its control group's limit where lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in map(Path, _CGROUP_LIMITS):
        try:
            total = min(total, int(file.read_text("ascii")))
        except (OSError, ValueError):
            continue  # no such controller, or no limit ("max")
    return total


def free_shared_memory_bytes() -> int | None:
    """Free space of /dev/shm in bytes; None where the system has none."""
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108 (measured, not written)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _share(memory_bytes: int, part: int, least_mib: int, most_mib: int) -> int:
    return max(least_mib, min(most_mib, memory_bytes // part // _MIB))


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
