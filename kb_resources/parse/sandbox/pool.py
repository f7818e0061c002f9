"""The parent side of the sandbox: hands documents to children and survives whatever they do.

Belongs here: starting and stopping the nursery, and which child reads a document. What runs in a
child is `nursery.py`'s, what is said to it `child.py`'s.
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
from kb_resources.parse.sandbox.child import Child, refusal
from kb_resources.parse.sandbox.limits import CPU_S, MEMORY_BYTES, WALL_S, Limits
from kb_resources.parse.sandbox.shared import NEXT_WALL_S, Idle, may_share, may_stay
from kb_resources.parse.sandbox.wire import WireError, receive_frame

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
        cpu_s: CPU time of the child for it.
        max_rss_bytes: largest resident memory of the child so far.
        isolated: whether the child had a network namespace of its own.
    """

    wall_s: float
    cpu_s: float
    max_rss_bytes: int
    isolated: bool


_Took = tuple[float, int, bool]
_Found = tuple[ParsedDocument | Refusal, _Took]


class ParserPool:
    """Parses documents in killable children, a fresh one for each but the plainest (`shared`).

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
        self._workers = workers
        self._closed = False
        self._temporary = _temporary_folder()
        self._begin()

    def _begin(self) -> None:
        """With no process yet, and nobody waiting."""
        self._free = threading.BoundedSemaphore(self._workers)
        self._idle = Idle()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._owner = os.getpid()

    def _after_fork(self) -> None:
        """In a forked process all that is the other's, and its threads may hold the locks."""
        if self._owner != os.getpid():
            self._begin()

    def parse(
        self, data: bytes, media_type: str, name: str, *, here: bool = False
    ) -> ParsedDocument | Refusal:
        """Parse one document in a child.

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
        self._after_fork()
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
            stays = converted is None and may_share(data, media_type)
            request = {
                "media_type": media_type,
                "name": name,
                "options": asdict(self._options),
                "converted": converted is not None,
                "stays": stays,
            }
            found = self._of_shared(data, request) if stays else None
            for attempt in (1, 2):
                if found is None:
                    found = self._of_its_own([data, converted], request, limits)
                # A nursery that died under a document is not the document's fault: once more.
                if found is not None or attempt == 2:
                    break
            result, (cpu_s, max_rss_bytes, isolated) = found or (_lost(), (0.0, 0, False))
            _check_room(result, self._temporary)
            return result, ParseUsage(time.monotonic() - started, cpu_s, max_rss_bytes, isolated)

    def close(self) -> None:
        """End the nursery and every child; harmless when called twice."""
        self._after_fork()
        with self._lock:
            self._closed = True
            self._idle.close()
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

    def _of_shared(self, data: bytes, request: dict[str, Any]) -> _Found | None:
        """By a child that has read others; None where there is none, or it gave no document."""
        child = self._idle.take(request["media_type"])
        if child is None:
            return None
        answer, problem = self._put(child, request, [data], NEXT_WALL_S)
        if isinstance(answer, ParsedDocument) and may_stay(child):
            self._idle.keep(request["media_type"], child)
        else:
            self._end(child, problem)
        # A refusal may be due to memory that others took.
        return (answer, _taken(child)) if isinstance(answer, ParsedDocument) else None

    def _of_its_own(
        self, payloads: Sequence[bytes | None], request: dict[str, Any], limits: Limits
    ) -> _Found | None:
        """By a fresh child; None where the nursery was lost."""
        ours, theirs = socket.socketpair()
        message = {"op": "spawn", "media_type": request["media_type"]}
        spawned = None
        try:
            with theirs:
                spawned = self._ask(message | {"limits": asdict(limits)}, theirs)
        finally:
            if spawned is None:
                ours.close()
        if spawned is None:
            return None
        child = Child(int(spawned["pid"]), ours, limits, bool(spawned.get("isolated", False)))
        answer, problem = self._put(child, request, payloads)
        if answer is not None and request["stays"] and may_stay(child):
            self._idle.keep(request["media_type"], child)
            return answer, _taken(child)
        ending = self._end(child, problem)
        if ending is None:
            return None if answer is None else (answer, (0.0, 0, False))
        took = (float(ending["cpu_s"]), int(ending["max_rss_bytes"]), child.isolated)
        return (refusal(problem, ending, limits) if answer is None else answer), took

    def _put(
        self,
        child: Child,
        request: Mapping[str, Any],
        payloads: Sequence[bytes | None],
        wall_s: float | None = None,
    ) -> tuple[ParsedDocument | Refusal | None, str]:
        """What a child answers; whoever is interrupted meanwhile leaves no child behind."""
        try:
            return child.ask(request, payloads, wall_s=wall_s)
        except BaseException:
            self._end(child, "interrupted")
            raise

    def _end(self, child: Child, problem: str) -> dict[str, Any] | None:
        """End a child; how it ended, or None when the nursery was lost."""
        with child.channel:
            if not problem:
                child.leave()
            ending = self._ask({"op": "end", "pid": child.pid})
        return ending if ending and ending.get("status") is not None else None

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
            except BaseException:
                self._stop()  # or its answer would be taken for that to the next question
                raise

    def _start(self) -> None:
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
        self._idle.clear()
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(_STOP_S)


def _taken(child: Child) -> _Took:
    return child.cpu_s, child.max_rss_bytes, child.isolated


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
