"""The parent's end of one child: a question, an answer, and what no answer means.

Belongs here: talking with a child and reading its end. What does not: starting and killing it
(`pool`, `nursery`), who else may be read by it (`shared`). Signals and their meaning: signal(7),
https://man7.org/linux/man-pages/man7/signal.7.html.
"""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kb_resources.model import DocumentState, ParsedDocument, Refusal
from kb_resources.parse.sandbox.limits import OUT_OF_MEMORY, Limits
from kb_resources.parse.sandbox.wire import WireError, decode, receive_frame, send_frame

_MAX_TOLD = 1 << 12


@dataclass(slots=True)
class Child:
    """One process under a document's control.

    Attributes:
        pid: its number.
        channel: stream socket to it.
        limits: what it may use.
        isolated: whether it has no network.
        read: documents it has answered for.
        cpu_s: computed for the last document, by its own word.
        max_rss_bytes: largest resident memory so far, by its own word.
    """

    pid: int
    channel: socket.socket
    limits: Limits
    isolated: bool
    read: int = 0
    cpu_s: float = 0.0
    max_rss_bytes: int = 0

    def ask(
        self,
        request: Mapping[str, Any],
        payloads: Sequence[bytes | None],
        *,
        wall_s: float | None = None,
    ) -> tuple[ParsedDocument | Refusal | None, str]:
        """Have it read one document.

        Args:
            request: what to read and how; with `stays`, the child waits for more and tells what
                it took.
            payloads: the document, and what is to be read in its place.
            wall_s: seconds until the answer, where fewer than its limits allow.

        Returns:
            The answer, or None with what went wrong instead.
        """
        most = self.limits.wall_s
        deadline = time.monotonic() + (most if wall_s is None else min(wall_s, most))
        try:
            send_frame(self.channel, json.dumps(request).encode(), deadline)
            for payload in payloads:
                if payload is not None:
                    send_frame(self.channel, payload, deadline)
            answer = decode(receive_frame(self.channel, self.limits.result_bytes, deadline))
            if request["stays"]:
                told = json.loads(receive_frame(self.channel, _MAX_TOLD, deadline))
                self.cpu_s, self.max_rss_bytes = float(told["cpu_s"]), int(told["max_rss_bytes"])
        except TimeoutError:
            return None, "timeout"
        except WireError as error:
            return None, str(error)
        except OSError:
            return None, "the child ended without an answer"
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None, "the child's answer is malformed"
        self.read += 1
        return answer, ""

    def leave(self) -> None:
        """Let it end by itself for a moment after its answer, so that its status is its own."""
        self.channel.settimeout(1.0)
        with contextlib.suppress(OSError):
            self.channel.shutdown(socket.SHUT_WR)
            self.channel.recv(1)


def refusal(problem: str, ending: Mapping[str, Any], limits: Limits) -> Refusal:
    """What a child that gave no answer (`problem`) and ended so means for its document."""
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


def _signal_name(status: Any) -> str:
    with contextlib.suppress(ValueError, TypeError):
        return signal.Signals(-int(status)).name
    return ""
