"""The process children are forked from: warm, single-threaded, never reads a document.

Belongs here: the child side of `pool.py`. Run as its own program, it imports what a format needs
once, then forks children, so that a child starts in milliseconds, has the library's memory shared
and takes nothing of one document to the next, unless nothing can be taken (`shared.py`). It ends
when its control socket closes, whatever ended the parent. The idea is that of
https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods (forkserver),
without importing the caller's main module.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

from kb_resources.parse.options import options_from_json
from kb_resources.parse.route import PRELOADS, SAMPLES, parse_here, parse_with_docling
from kb_resources.parse.sandbox.limits import (
    OUT_OF_MEMORY,
    Limits,
    confine,
    convert_prefix,
    leave_network,
)
from kb_resources.parse.sandbox.wire import WireError, encode, receive_frame, send_frame

_MAX_REQUEST = 1 << 16
_MAX_DOCUMENT = 1 << 32
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def main(control_fd: int) -> None:
    """Serve until the control socket closes.

    Args:
        control_fd: inherited stream socket to the pool.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    isolated = leave_network()
    # Left to itself, tempfile looks for another folder once this one is full.
    tempfile.tempdir = os.environ.get("TMPDIR") or tempfile.gettempdir()
    control = socket.socket(fileno=control_fd)
    Nursery(control, isolated).serve()


class Nursery:
    """Answers `spawn` and `end` requests, one at a time.

    Args:
        control: stream socket to the pool.
        isolated: whether the process has no network, reported to the pool.
    """

    def __init__(self, control: socket.socket, isolated: bool) -> None:
        self._control = control
        self._isolated = isolated
        self._children: set[int] = set()
        self._warm: set[str] = set()
        self._pid = os.getpid()

    def serve(self) -> None:
        """Loop over requests; on the way out no child is left."""
        try:
            while True:
                message, fds = self._request()
                if message is None:
                    return
                answer = self._answer(message, fds)
                send_frame(self._control, json.dumps(answer).encode())
        except (WireError, OSError):
            return
        finally:
            for pid in list(self._children):
                self._end(pid)

    def _request(self) -> tuple[dict[str, Any] | None, list[int]]:
        """One JSON line, with the descriptor that came with it."""
        data, fds = b"", []
        while not data.endswith(b"\n"):
            part, got, _, _ = socket.recv_fds(self._control, _MAX_REQUEST, 1)
            fds += got
            if not part:
                return None, fds
            data += part
        return json.loads(data), fds

    def _answer(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        if message["op"] == "spawn":
            self._warm_up(message["media_type"])
            pid = self._spawn(fds[0], Limits(**message["limits"]))
            os.close(fds[0])
            return {"pid": pid, "isolated": self._isolated}
        return self._end(message["pid"])

    def _warm_up(self, media_type: str) -> None:
        if media_type in self._warm:
            return
        self._warm.add(media_type)
        for module in PRELOADS.get(media_type, ()):
            with contextlib.suppress(ImportError):  # the child says what is missing
                importlib.import_module(module)
        if media_type in SAMPLES:
            with contextlib.suppress(Exception):  # likewise
                parse_here(SAMPLES[media_type], media_type, "sample")
        gc.collect()
        gc.freeze()

    def _spawn(self, fd: int, limits: Limits) -> int:
        pid = os.fork()
        if not pid:
            self._control.close()
            _work(fd, limits, self._pid)
        self._children.add(pid)
        return pid

    def _end(self, pid: int) -> dict[str, Any]:
        """Kill a child that still runs, reap it, and say how it ended."""
        if pid not in self._children:
            return {"status": None}
        for kill in (os.killpg, os.kill):  # a converter it started is in its group
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        self._children.discard(pid)
        if status:
            _delete_left_behind(pid)
        return {
            "status": os.waitstatus_to_exitcode(status),
            "max_rss_bytes": usage.ru_maxrss * _RSS_UNIT,
            "cpu_s": usage.ru_utime + usage.ru_stime,
        }


def _delete_left_behind(pid: int) -> None:
    """A killed child deletes none of its temporary folders, which hold a document."""
    for folder in Path(tempfile.gettempdir()).glob(f"{convert_prefix(pid)}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _work(fd: int, limits: Limits, parent_pid: int) -> NoReturn:
    """The child: limits first, then its document, or those it stays for; out without clean-up."""
    code = OUT_OF_MEMORY
    try:
        os.setpgid(0, 0)
        confine(limits, parent_pid)
        with socket.socket(fileno=fd) as channel:
            while _read(channel) and channel.recv(1, socket.MSG_PEEK):
                pass
        code = 0
    except MemoryError:
        pass  # whatever was being built is lost; the exit status says why
    except BaseException:  # noqa: BLE001 - nothing may climb into the nursery's loop
        code = 1
    finally:
        os._exit(code)


def _read(channel: socket.socket) -> bool:
    """Answer for one document; whether the pool wants the child to stay."""
    request = json.loads(receive_frame(channel, _MAX_REQUEST))
    started = time.process_time()
    data = receive_frame(channel, _MAX_DOCUMENT)
    kind, name = request["media_type"], request["name"]
    if request["converted"]:
        converted = receive_frame(channel, _MAX_DOCUMENT)
        result = encode(parse_with_docling(data, kind, name, converted))
    else:
        result = encode(parse_here(data, kind, name, options_from_json(request["options"])))
    send_frame(channel, result)
    if not request["stays"]:
        return False
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {
        "cpu_s": time.process_time() - started,
        "max_rss_bytes": used.ru_maxrss * _RSS_UNIT,
    }
    send_frame(channel, json.dumps(told).encode())
    return True


if __name__ == "__main__":
    main(int(sys.argv[1]))
