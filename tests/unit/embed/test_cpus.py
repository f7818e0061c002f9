"""The CPU quota of containers, read from files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb_resources.embed import cpus
from kb_resources.embed.cpus import available_cpus, cpu_quota


def _write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {}, None),
        ("0::/a/b\n", {"a/cpu.max": "50000 100000\n", "a/b/cpu.max": "max 100000\n"}, 0.5),
        ("0::/a/b\n", {"cpu.max": "300000 100000\n", "a/b/cpu.max": "400000 100000\n"}, 3.0),
        (
            "3:cpu,cpuacct:/docker/x\n0::/\n",
            {
                "cpu,cpuacct/docker/x/cpu.cfs_quota_us": "200000\n",
                "cpu,cpuacct/docker/x/cpu.cfs_period_us": "100000\n",
            },
            2.0,
        ),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        # Inside a container the own path of the host may not exist under the mount.
        ("0::/../outside\n", {"cpu.max": "100000 100000\n"}, 1.0),
        ("0::/\n", {"cpu.max": "nonsense\n"}, None),
    ],
)
def test_quota(tmp_path: Path, groups: str, files: dict[str, str], expected: float | None) -> None:
    root = _write(tmp_path / "cgroup", files)
    self_file = tmp_path / "self"
    self_file.write_text(groups)
    assert cpu_quota(root, self_file) == expected


def test_quota_without_control_groups(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path / "none", tmp_path / "nothing") is None


@pytest.mark.requirement("P-59")
@pytest.mark.parametrize(("quota", "expected"), [(0.25, 1), (1.0, 1), (1.5, 2), (None, 8), (64, 8)])
def test_threads_follow_the_quota_and_the_affinity_mask(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, expected: int
) -> None:
    monkeypatch.setattr(cpus.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cpus, "cpu_quota", lambda: quota)
    assert available_cpus() == expected
