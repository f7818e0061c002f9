"""What a connection may cost before anybody is known: sizes, deadlines, their number, and the port.

Belongs here: the socket and the protocol below the application. What does not: limits of requests
that arrived whole (`middleware`). The parser is h11, since it bounds what it buffers; httptools
takes heads without an end (https://h11.readthedocs.io/en/latest/api.html, "max_incomplete_event_
size"). Deadlines are those of a "slowloris" defence: a head in one go, a body at a pace.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kb.http.middleware import UPLOAD_PATH
from kb_resources.errors import InputError, UnavailableError

MAX_HEAD_BYTES = 64 * 1024
"""Request line and headers together."""
MAX_CONNECTIONS = 1000
"""Connections at once, fewer where the process may open fewer files; more are turned away."""
HEAD_S = 10.0
"""Seconds for request line and headers, from the connection or from their first byte."""
BODY_S = 60.0
"""Seconds for a body; an upload may take longer, at a pace."""
PACE_BYTES = 16 * 1024
"""Bytes that an upload brings every `HEAD_S` at least, while we are ready to take them."""

_LATE = (
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: text/plain\r\n"
    b"content-length: 27\r\n\r\nThe request came too slow.\n"
)
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n"
    b"content-type: text/plain\r\ncontent-length: 22\r\n\r\nToo many connections.\n"
)


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 whose senders have to keep to deadlines; closes those who don't, with 408."""

    head_s = HEAD_S
    body_s = BODY_S

    _timer: asyncio.TimerHandle | None = None
    _awaited = ""
    _taken = 0
    _body_until = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or turn it away where there are too many."""
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency:
            self._end(_FULL)
            return
        self._await("head")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline with the connection."""
        self._await("")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, then see what the sender owes now."""
        self._taken += len(data)
        super().data_received(data)
        state = self.conn.their_state
        self._await("head" if state is h11.IDLE else "body" if state is h11.SEND_BODY else "")

    def on_response_complete(self) -> None:
        """Between requests the server's own keep-alive deadline runs."""
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE:
            self._await("")

    def _await(self, what: str) -> None:
        if what == self._awaited:
            return
        self._awaited = what
        self._body_until = self.loop.time() + self.body_s
        self._again(self.head_s if what else None)

    def _again(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._taken = 0
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._due)

    def _due(self) -> None:
        """A deadline has come: a head is late, a body only when it lags behind its pace."""
        if self._awaited == "body":
            upload = self.scope["method"] == "POST" and self.scope["path"] == UPLOAD_PATH
            paced = self._taken >= PACE_BYTES or self.flow.read_paused
            if paced if upload else self.loop.time() < self._body_until:
                self._again(self.head_s)
                return
        self._end(b"" if self.cycle is not None and self.cycle.response_started else _LATE)

    def _end(self, said: bytes) -> None:
        """Close, with a last word where no answer has begun."""
        self._again(None)
        if not self.transport.is_closing():
            if said:
                self.transport.write(said)
            self.transport.close()


def configured(
    app: Any, protocol: type[BoundedProtocol] = BoundedProtocol, **more: Any
) -> uvicorn.Config:
    """The server's settings around an application; `more` are uvicorn's own."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = MAX_CONNECTIONS if files == resource.RLIM_INFINITY else files // 2
    logging.getLogger("uvicorn.error").addFilter(_is_ours)
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        limit_concurrency=min(MAX_CONNECTIONS, allowed),
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=10,
        **more,
    )


def bind(host: str, port: int) -> socket.socket:
    """A socket at an address of this machine; it listens once the server runs.

    Raises:
        InputError: no such host, or none of this machine's.
        UnavailableError: the port is taken (`port_taken`), or this account may not have it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.set_inheritable(True)
    except (OSError, TypeError, ValueError) as error:  # odd names are no text to the resolver
        made.close()
        raise _unbound(host, port, error) from error
    return made


def _unbound(host: str, port: int, error: Exception) -> InputError | UnavailableError:
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.EADDRINUSE:
        return UnavailableError(
            f"Something listens on port {port} already.",
            next_step="Choose another with --port, or stop what listens there.",
            code="port_taken",
        )
    if code in (errno.EACCES, errno.EPERM):
        return UnavailableError(
            f"This account may not listen on port {port}.",
            next_step="Choose a port from 1024 on with --port.",
            code="port_taken",
        )
    return InputError(
        f"{host[:100]!r} is no address of this machine.",
        next_step="Give --host 127.0.0.1, 0.0.0.0 for all, or an address that this machine has.",
    )


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a line of the server's is worth a line of the log: broken requests are not."""
    return record.msg not in ("Invalid HTTP request received.", "Exceeded concurrency limit.")
