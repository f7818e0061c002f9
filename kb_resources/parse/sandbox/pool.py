"""The parent side of the sandbox: hands documents to children and survives whatever they do.

Belongs here: starting and stopping the nursery, deadlines, and what a child's end means for its
document. What runs in a child is `nursery.py`'s. Signals and their meaning: signal(7),
https://man7.org/linux/man-pages/man7/signal.7.html.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import kb_resources
from kb_resources.errors import UnavailableError
from kb_resources.model import DocumentState, ParsedDocument, Refusal
from kb_resources.parse.options import ParseOptions
from kb_resources.parse.route import READ_BY_OCR, READ_BY_SERVE
from kb_resources.parse.sandbox.limits import CPU_S, MEMORY_BYTES, OUT_OF_MEMORY, WALL_S, Limits
from kb_resources.parse.sandbox.wire import (
    WireError,
    decode,
    receive_frame,
    send_frame,
)

# What a parser may know of its surroundings; no secret of the pipeline is among it.
_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "TZ", "TESSDATA_PREFIX", "DOCLING_ARTIFACTS_PATH")
_FIXED = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "OMP_NUM_THREADS": "1",
    "OMP_THREAD_LIMIT": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "HF_HUB_OFFLINE": "1",
}
_NURSERY = "kb_resources.parse.sandbox.nursery"
_START_S = 120.0
_STOP_S = 5.0
_LEAST_ROOM_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ParseUsage:
    """What reading one document took.

    Attributes:
        wall_s: from request to answer, waiting for a free worker not counted.
        cpu_s: CPU time of the child.
        max_rss_bytes: largest resident memory of the child.
        isolated: whether the child had a network namespace of its own.
    """

    wall_s: float
    cpu_s: float
    max_rss_bytes: int
    isolated: bool


class ParserPool:
    """Parses documents in killable children, one fresh child per document.

    Thread-safe; `parse` blocks. The first document of a kind waits for its libraries to load
    (docling: seconds), later ones for a fork (milliseconds).

    Args:
        workers: most children at a time.
        memory_bytes: address space of one child.
        cpu_s: most CPU seconds of one child; a small file gets less (`Limits.for_size`).
        wall_s: most seconds from request to answer; a small file gets less.
        options: what the installation chose about parsing.
        environment: more variables for the children, never secrets.
        convert: reads PDFs and pictures elsewhere (docling-serve): bytes and name to docling's
            JSON or a Refusal. It is called in this process, its answer is read in a child.
    """

    def __init__(
        self,
        workers: int = 1,
        memory_bytes: int = MEMORY_BYTES,
        cpu_s: int = CPU_S,
        wall_s: float = WALL_S,
        *,
        options: ParseOptions | None = None,
        environment: Mapping[str, str] | None = None,
        convert: Callable[[bytes, str], bytes | Refusal] | None = None,
    ) -> None:
        self._limits = Limits(memory_bytes=memory_bytes, cpu_s=cpu_s, wall_s=wall_s)
        self._options = options or ParseOptions()
        self._environment = dict(environment or {})
        self._convert = convert
        self._free = threading.BoundedSemaphore(workers)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._closed = False
        self._owner = os.getpid()
        self._temporary = _temporary_folder()

    def parse(
        self, data: bytes, media_type: str, name: str, *, here: bool = False
    ) -> ParsedDocument | Refusal:
        """Parse one document in a child of its own.

        Args:
            data: the content.
            media_type: as sniffed by `acquire`.
            name: file name.
            here: whether it must not be sent anywhere, `convert` or not.

        Returns:
            The document, or a Refusal: the reader's own, or `failed`/`too_large` when the child
            ran into a limit or crashed.

        Raises:
            UnavailableError: the pool is closed, children cannot be started at all, or the disk of
                temporary files is full.
        """
        return self.measure(data, media_type, name, here=here)[0]

    def measure(
        self, data: bytes, media_type: str, name: str, *, here: bool = False
    ) -> tuple[ParsedDocument | Refusal, ParseUsage]:
        """Like `parse`, with what it took."""
        converted: bytes | None = None
        if self._convert is not None and media_type in READ_BY_SERVE and not here:
            answer = self._convert(data, name)
            if isinstance(answer, Refusal):
                return answer, ParseUsage(0.0, 0.0, 0, isolated=False)
            converted = answer
        with self._free:
            started = time.monotonic()
            ocr = self._options.ocr
            waits = ocr.enabled and media_type in READ_BY_OCR
            limits = self._limits
            if not self._options.models:  # what models compute does not follow the file's size
                limits = limits.for_size(len(data), ocr.document_s if waits else 0.0)
            for attempt in (1, 2):
                result, ending = self._attempt(data, media_type, name, limits, converted)
                # A nursery that died under a document is not the document's fault: once more.
                if ending is not None or attempt == 2:
                    break
            _check_room(result, self._temporary)
            ending = ending or {}
            usage = ParseUsage(
                wall_s=time.monotonic() - started,
                cpu_s=float(ending.get("cpu_s", 0.0)),
                max_rss_bytes=int(ending.get("max_rss_bytes", 0)),
                isolated=bool(ending.get("isolated", False)),
            )
            return result, usage

    def close(self) -> None:
        """End the nursery and every child; harmless when called twice."""
        with self._lock:
            self._closed = True
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _attempt(
        self, data: bytes, media_type: str, name: str, limits: Limits, converted: bytes | None
    ) -> tuple[ParsedDocument | Refusal, dict[str, Any] | None]:
        """One child. The second value says how it ended, None when the nursery was lost."""
        ours, theirs = socket.socketpair()
        with ours:
            try:
                spawned = self._ask(
                    {"op": "spawn", "media_type": media_type, "limits": asdict(limits)},
                    theirs,
                )
            finally:
                theirs.close()
            if spawned is None:
                return _lost(), None
            pid = int(spawned["pid"])
            answer: ParsedDocument | Refusal | None = None
            problem = ""
            try:
                request = {
                    "media_type": media_type,
                    "name": name,
                    "options": asdict(self._options),
                    "converted": converted is not None,
                }
                answer = _talk(ours, [data, converted], request, limits)
            except TimeoutError:
                problem = "timeout"
            except WireError as error:
                problem = str(error)
            except OSError:
                problem = "the child ended without an answer"
            finally:
                if not problem:
                    _wait_for_end(ours)
                ending = self._ask({"op": "end", "pid": pid})
        if ending is None:
            return (answer, {}) if answer is not None else (_lost(), None)
        ending["isolated"] = spawned.get("isolated", False)
        return answer if answer is not None else _refusal(problem, ending, limits), ending

    def _ask(
        self, message: Mapping[str, Any], fd: socket.socket | None = None
    ) -> dict[str, Any] | None:
        """One request to the nursery, started when needed; None when it died meanwhile."""
        with self._lock:
            if self._closed:
                raise UnavailableError("The parser pool is closed.", next_step="Open a new one.")
            if message["op"] == "spawn":
                self._start()
            control = self._control
            if control is None:
                return None
            try:
                line = json.dumps(message).encode() + b"\n"
                fds = [fd.fileno()] if fd else []
                socket.send_fds(control, [line], fds)
                answer = receive_frame(control, 1 << 16, time.monotonic() + _START_S)
                return dict(json.loads(answer))
            except (OSError, WireError, ValueError):
                self._stop()
                return None

    def _start(self) -> None:
        if self._owner != os.getpid():  # forked: the nursery is the other process' own
            self._process, self._control, self._owner = None, None, os.getpid()
        if self._process is not None and self._process.poll() is None:
            return
        self._stop()
        ours, theirs = socket.socketpair()
        home = str(Path(kb_resources.__file__).resolve().parents[1])
        environment = {key: os.environ[key] for key in _ENVIRONMENT if key in os.environ}
        environment |= _FIXED | self._environment
        environment |= {"PYTHONPATH": home, "TMPDIR": self._temporary}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _NURSERY, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise UnavailableError(
                f"The parser process could not be started: {error.strerror or error}.",
                next_step="Check memory and process limits, then try again.",
            ) from error
        finally:
            theirs.close()
        self._control = ours

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(_STOP_S)


def _talk(
    channel: socket.socket,
    payloads: Sequence[bytes | None],
    request: Mapping[str, Any],
    limits: Limits,
) -> ParsedDocument | Refusal:
    deadline = time.monotonic() + limits.wall_s
    send_frame(channel, json.dumps(request).encode(), deadline)
    for payload in payloads:
        if payload is not None:
            send_frame(channel, payload, deadline)
    return decode(receive_frame(channel, limits.result_bytes, deadline))


def _refusal(problem: str, ending: Mapping[str, Any], limits: Limits) -> Refusal:
    """What a child that gave no answer means for its document."""
    status = ending.get("status")
    rss = int(ending.get("max_rss_bytes", 0))
    details = {"exit": status, "max_rss_bytes": rss, "cpu_s": ending.get("cpu_s", 0.0)}
    if problem == "timeout":
        reason = f"Reading it took longer than {limits.wall_s:g} s and was stopped."
        return Refusal(DocumentState.FAILED, reason, details)
    if status == -signal.SIGXCPU or float(ending.get("cpu_s", 0.0)) >= limits.cpu_s:
        reason = f"Reading it took more than {limits.cpu_s} s of computing and was stopped."
        return Refusal(DocumentState.FAILED, reason, details)
    if "over the limit" in problem:
        return Refusal(DocumentState.TOO_LARGE, f"Its text is too long: {problem}.", details)
    if status in {-signal.SIGKILL, OUT_OF_MEMORY} or rss > limits.memory_bytes * 0.5:
        reason = (
            f"Reading it needs more than {limits.memory_bytes >> 20:,} MB of memory; split it "
            "or raise the limit."
        )
        return Refusal(DocumentState.TOO_LARGE, reason, details)
    name = _signal_name(status)
    return Refusal(
        DocumentState.FAILED,
        f"The parser crashed on it ({name or problem}); convert it to another format.",
        details,
    )


def _wait_for_end(channel: socket.socket) -> None:
    """Give a child that has answered a moment to leave by itself, so that its status is its own."""
    channel.settimeout(1.0)
    with contextlib.suppress(OSError):
        channel.recv(1)


def _temporary_folder() -> str:
    """Where children keep temporary files; a TMPDIR that is no folder is passed over."""
    folder = os.environ.get("TMPDIR")
    return folder if folder and Path(folder).is_dir() else tempfile.gettempdir()


def _check_room(result: ParsedDocument | Refusal, folder: str) -> None:
    """A failure on a full disk says nothing about the document.

    What the child itself wrote is deleted by now, so that no document can fill the disk for others.
    """
    if not isinstance(result, Refusal) or result.state is not DocumentState.FAILED:
        return
    with contextlib.suppress(OSError):
        if shutil.disk_usage(folder).free < _LEAST_ROOM_BYTES:
            raise UnavailableError(
                f"The disk of temporary files is full ({folder}).",
                next_step="Free space there, or set TMPDIR to another folder, then try again.",
                code="disk_full",
            )


def _lost() -> Refusal:
    return Refusal(
        DocumentState.FAILED,
        "The parser process was lost twice while reading it; look at the system's memory.",
    )


def _signal_name(status: Any) -> str:
    with contextlib.suppress(ValueError, TypeError):
        return signal.Signals(-int(status)).name
    return ""
