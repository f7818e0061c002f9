"""One connection to an address that was checked, with an end in time.

Belongs here: DNS, TCP, TLS, and reading under a deadline. A name is resolved once, every answer is
checked, and the connection goes to that very address, so that a name which answers differently a
moment later leads nowhere else ("DNS rebinding"). TLS is verified for the name, always. Proxy
variables are not read.
"""

from __future__ import annotations

import io
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kb_resources.acquire.fetch_outcome import FetchProblem, FetchRefusal, FetchStopped
from kb_resources.acquire.fetch_policy import FetchPolicy
from kb_resources.acquire.fetch_url import Target

Resolver = Callable[[str, int], Sequence[str]]
Connector = Callable[[str, int, float], socket.socket]


def system_resolver(host: str, port: int) -> list[str]:
    """Addresses of a name by the system's resolver; OSError when there are none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


def tcp_connect(address: str, port: int, timeout_s: float) -> socket.socket:
    """A TCP connection to an IP address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect((address, port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a fetch has to be over.

    Attributes:
        at: on the monotonic clock, seconds.
        monotonic: the clock.
        total_s: what was allowed in all, for the message.
    """

    at: float
    monotonic: Callable[[], float]
    total_s: float

    def left(self, most: float) -> float:
        """Seconds left, at most `most`; FetchStopped when there are none."""
        left = self.at - self.monotonic()
        if left <= 0:
            raise self.passed()
        return min(left, most)

    def passed(self) -> FetchStopped:
        """The refusal for running out of time."""
        return FetchStopped(
            FetchRefusal(
                FetchProblem.TIMEOUT,
                f"The fetch took longer than {self.total_s:g} s.",
                "Try again later, or raise KB_FETCH_TIMEOUT_S.",
            )
        )


def resolve(target: Target, resolver: Resolver, deadline: Deadline, most_s: float) -> list[str]:
    """Addresses of the target's host, as the resolver gives them.

    Raises:
        FetchStopped: the name has no address, or DNS does not answer in time.
    """
    if target.literal is not None:
        return [str(target.literal)]
    answers: queue.SimpleQueue[Sequence[str] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolver(target.host, target.port))
        except (OSError, UnicodeError) as error:
            answers.put(error if isinstance(error, OSError) else OSError(str(error)))

    # getaddrinfo knows no timeout, so it waits in a thread that nobody has to wait for.
    threading.Thread(target=ask, daemon=True, name="kb-dns").start()
    try:
        found = answers.get(timeout=deadline.left(most_s))
    except queue.Empty:
        found = OSError("no answer in time")
    if isinstance(found, OSError):
        raise _dns(target, found.strerror or str(found))
    if not found:
        raise _dns(target, "the answer is empty")
    return list(found)


def connect(
    target: Target,
    policy: FetchPolicy,
    deadline: Deadline,
    *,
    resolver: Resolver,
    connector: Connector,
    context: Callable[[], ssl.SSLContext],
) -> socket.socket:
    """Resolve, check every answer, connect to the first that answers, and verify TLS.

    Raises:
        FetchStopped: an address is not allowed, none answers, or the certificate does not hold.
    """
    policy.check_target(target)
    addresses = policy.check_addresses(
        target, resolve(target, resolver, deadline, policy.connect_s)
    )
    problem: OSError | None = None
    for address in addresses:
        try:
            plain = connector(str(address), target.port, deadline.left(policy.connect_s))
        except OSError as error:
            problem = error
            continue
        return (
            _secured(plain, target, policy, deadline, context)
            if (target.scheme == "https")
            else plain
        )
    raise FetchStopped(
        FetchRefusal(
            FetchProblem.CONNECTION,
            f"{target.authority} does not accept connections ({_words(problem)}).",
            "Check that the site is up and try again later.",
        )
    )


def _secured(
    plain: socket.socket,
    target: Target,
    policy: FetchPolicy,
    deadline: Deadline,
    context: Callable[[], ssl.SSLContext],
) -> socket.socket:
    try:
        plain.settimeout(deadline.left(policy.connect_s))
        return context().wrap_socket(plain, server_hostname=target.host)
    except ssl.SSLCertVerificationError as error:
        plain.close()
        raise FetchStopped(
            FetchRefusal(
                FetchProblem.TLS,
                f"The certificate of {target.authority} does not hold: {error.verify_message}.",
                "It is never skipped; have it renewed, or name your own authority's file in "
                "KB_FETCH_CA_FILE.",
            )
        ) from error
    except OSError as error:
        plain.close()
        raise FetchStopped(
            FetchRefusal(
                FetchProblem.TLS,
                f"{target.authority} does not speak TLS as it should ({_words(error)}).",
                "Check the address and try again later.",
            )
        ) from error
    except BaseException:
        plain.close()
        raise


class WireStream(io.RawIOBase):
    """What a server sends, under the deadline and a limit of bytes.

    Every single read is bounded, so that neither a byte a second nor endless headers go on.
    """

    def __init__(
        self, connection: socket.socket, deadline: Deadline, idle_s: float, max_bytes: int
    ) -> None:
        self._connection = connection
        self._deadline = deadline
        self._idle_s = idle_s
        self._left = max_bytes

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Some bytes; FetchStopped when time or bytes run out, OSError when the server breaks."""
        self._connection.settimeout(self._deadline.left(self._idle_s))
        try:
            count = self._connection.recv_into(buffer)
        except TimeoutError as error:
            self._deadline.left(self._idle_s)
            raise FetchStopped(
                FetchRefusal(
                    FetchProblem.TIMEOUT,
                    f"The server was silent for {self._idle_s:g} s.",
                    "Try again later.",
                )
            ) from error
        self._left -= count
        if self._left < 0:
            raise FetchStopped(too_large("sends more bytes than are read"))
        return count


class HttpSocket:
    """The little of a socket that `http.client` needs, over a `WireStream`."""

    def __init__(self, connection: socket.socket, stream: WireStream, deadline: Deadline) -> None:
        self._connection = connection
        self._stream = stream
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        """Send a request."""
        self._connection.settimeout(self._deadline.left(float("inf")))
        self._connection.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The answer."""
        return io.BufferedReader(self._stream, 65_536)

    def close(self) -> None:
        """Left to whoever opened the connection."""


def too_large(what: str) -> FetchRefusal:
    """The refusal of an answer over a limit."""
    return FetchRefusal(
        FetchProblem.TOO_LARGE,
        f"The server {what}.",
        "Name a smaller page or file, or raise KB_MAX_BYTES.",
    )


def _dns(target: Target, why: str) -> FetchStopped:
    return FetchStopped(
        FetchRefusal(
            FetchProblem.DNS,
            f"The name {target.host} leads to no address ({why}).",
            "Check the spelling and the name server, then try again.",
        )
    )


def _words(error: OSError | None) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror if error is not None else None) or str(error)
