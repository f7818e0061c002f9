"""How many CPUs this process may really use.

Belongs here: reading the container's quota. What does not: choosing pool sizes for other stages.
See the Linux kernel's "Control Group v2" (cpu.max) and "CFS Bandwidth Control" (cgroup v1).
"""

from __future__ import annotations

import math
import os
from pathlib import Path

_CGROUP_ROOT = Path("/sys/fs/cgroup")
_CGROUP_SELF = Path("/proc/self/cgroup")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _own_groups(text: str) -> dict[str, str]:
    """Controller → path of `/proc/self/cgroup`; the unified hierarchy's key is empty."""
    groups = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups


def _quota_v2(folder: Path) -> float | None:
    quota, _, period = _read(folder / "cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit() and int(period):
        return int(quota) / int(period)
    return None


def _quota_v1(folder: Path) -> float | None:
    quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
    if quota.isdigit() and period.isdigit() and int(period):
        return int(quota) / int(period)
    return None


def cpu_quota(root: Path = _CGROUP_ROOT, self_file: Path = _CGROUP_SELF) -> float | None:
    """The smallest CPU quota of this process's control groups, in CPUs; None where none is set.

    Args:
        root: where the control groups are mounted.
        self_file: the process's own list of groups.
    """
    groups = _own_groups(_read(self_file))
    found = []
    for controller, mounts, read in (
        ("", (root, root / "unified"), _quota_v2),
        ("cpu", (root / "cpu", root / "cpu,cpuacct"), _quota_v1),
    ):
        own = groups.get(controller, "/").strip("/")
        for mount in mounts:
            folder = mount / own
            while True:  # a limit on any ancestor holds too
                quota = read(folder)
                if quota is not None:
                    found.append(quota)
                if folder == mount or mount not in folder.parents:
                    break
                folder = folder.parent
    return min(found, default=None)


def available_cpus() -> int:
    """CPUs this process may use: affinity mask and control-group quota, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    quota = cpu_quota()
    return max(1, allowed if quota is None else min(allowed, math.ceil(quota)))
