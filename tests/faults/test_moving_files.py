"""Files that grow, are overwritten, replaced or renamed while they are read: never a torn read.

A writer process works without pause on one path, in pieces. Whatever the reader admits is what the
file held at one moment, never the beginning of one moment and the end of another; where it changed
meanwhile the attempt ends with "changed while it was read". A file that its writer left half done
for a while is another matter: sensors wait until a file has stood still (`tests/dagster`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from kb_resources.acquire import Acquired, read_file
from kb_resources.errors import ConflictError, InputError
from kb_resources.model import Refusal

SIZE = 3_000_000
EDITIONS = 4
SWAPPED = ("replaced", "renamed")
WRITER = textwrap.dedent(
    """
    import os, sys
    path, how, size, editions = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    texts = [(f"edition {n} " * size).encode()[:size] for n in range(editions)]
    number = 0
    while os.getppid() == int(sys.argv[5]):
        text = texts[number % editions]
        number += 1
        if how == "replaced":                       # as editors and downloads do
            with open(path + ".new", "wb") as file:
                file.write(text)
            os.replace(path + ".new", path)
        elif how == "renamed":                      # away, and another comes in its place
            with open(path + ".new", "wb") as file:
                file.write(text)
            os.rename(path, path + ".old")
            os.rename(path + ".new", path)
        elif how == "overwritten":                  # in place, in pieces, the size stays
            with open(path, "r+b", buffering=0) as file:
                for start in range(0, size, 100_000):
                    file.write(text[start:start + 100_000])
        elif how == "grown":                        # emptied and filled again
            with open(path, "wb", buffering=0) as file:
                for start in range(0, size, 100_000):
                    file.write(text[start:start + 100_000])
        if number == 1:
            print("ready", flush=True)
    """
)


@cache
def editions() -> list[bytes]:
    """What the writer writes in turn."""
    return [(f"edition {n} ".encode() * SIZE)[:SIZE] for n in range(EDITIONS)]


def existed(data: bytes, how: str) -> bool:
    """Whether the file held exactly these bytes at one moment.

    A write goes from front to back, so that the file is the beginning of one edition and, where it
    is overwritten, the rest of the edition before.
    """
    texts = editions()
    if how == "grown":
        return any(text.startswith(data) for text in texts)
    if how == "overwritten":
        return any(mixed(data, text, texts[n - 1]) for n, text in enumerate(texts))
    return data in texts


def mixed(data: bytes, new: bytes, old: bytes) -> bool:
    """Whether it begins as one text and goes on as the other."""
    if len(data) != len(old):
        return False
    low, high = 0, len(data)
    while low < high:  # the longest beginning that is of the new text
        middle = (low + high + 1) // 2
        low, high = (middle, high) if data[:middle] == new[:middle] else (low, middle - 1)
    return data[low:] == old[low:]


def read_often(path: Path, how: str, times: int) -> Counter[str]:
    """Outcomes of reading beside a writer: `whole`, `torn`, and those that say why not."""
    path.write_bytes(editions()[0])
    arguments = [str(path), how, str(SIZE), str(EDITIONS), str(os.getpid())]
    seen: Counter[str] = Counter()
    command = [sys.executable, "-c", WRITER, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            deadline = time.monotonic() + 120 + times / 5  # for a machine that hangs
            # Between two renames there may be no file, for as long as the writer has to wait.
            while seen.total() < times or (how in SWAPPED and not seen["whole"]):
                assert time.monotonic() < deadline, seen
                try:
                    got = read_file(path)
                except ConflictError:
                    seen["changing"] += 1
                except InputError:
                    seen["away"] += 1
                else:
                    assert isinstance(got, Acquired | Refusal)
                    if isinstance(got, Refusal):
                        seen[got.state.value] += 1
                    else:
                        seen["whole" if existed(got.data, how) else "torn"] += 1
        finally:
            writer.kill()
    return seen


@pytest.mark.parametrize(
    "times", [40, pytest.param(2000, marks=[pytest.mark.long, pytest.mark.timeout(900)])]
)
@pytest.mark.parametrize("how", ["replaced", "renamed", "overwritten", "grown"])
def test_what_is_admitted_was_there_at_one_moment(tmp_path: Path, how: str, times: int) -> None:
    seen = read_often(tmp_path / "rules.txt", how, times)
    assert seen.total() >= times
    assert seen["torn"] == 0, seen
