"""What somebody unknown can make the server hold: heads, bodies, connections; and its port."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import pytest
import uvicorn
from click.testing import CliRunner

from kb.cli.serve import serve
from kb.http import listening
from kb_resources.errors import InputError, KbError, UnavailableError

Connect = Callable[[], socket.socket]


class Impatient(listening.BoundedProtocol):
    """Deadlines that a test can wait for."""

    head_s = 0.3
    body_s = 0.9


class Paced(listening.BoundedProtocol):
    """A deadline comes with every 64 KiB; all bodies but uploads are late by then."""

    body_s = 0.0
    seen = 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.seen += len(data)
        if self.seen >= 2**16 and self._awaited == "body":
            self.seen = 0
            self._due()


class Noted(listening.BoundedProtocol):
    """Notes the deadlines that it sets, in seconds, and None where it ends one."""

    noted: ClassVar[list[float | None]] = []

    def _again(self, seconds: float | None) -> None:
        self.noted.append(seconds)
        super()._again(seconds)


async def answering(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body and says how long it was."""
    if scope["type"] != "http":
        return
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


@contextmanager
def running(config: uvicorn.Config) -> Iterator[Connect]:
    config.lifespan = "off"
    bound = listening.bind("127.0.0.1", 0)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=[[bound]], daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    made: list[socket.socket] = []

    def connect() -> socket.socket:
        made.append(socket.create_connection(bound.getsockname(), timeout=60))
        return made[-1]

    yield connect
    for one in made:
        one.close()
    server.should_exit = True
    thread.join(30)


@pytest.fixture(scope="module")
def impatient() -> Iterator[Connect]:
    with running(listening.configured(answering, Impatient)) as connect:
        yield connect


@pytest.fixture(scope="module")
def patient() -> Iterator[Connect]:
    with running(listening.configured(answering)) as connect:
        yield connect


def told(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    got = b""
    with suppress(ConnectionError):
        while part := connection.recv(65536):
            got += part
    return got


def taken(connection: socket.socket, block: bytes) -> int:
    """How many bytes of an endless stream went out before the other side closed."""
    sent = 0
    try:
        while sent < 64 * 2**20:
            connection.sendall(block)
            sent += len(block)
    except OSError:
        pass
    return sent


@pytest.mark.parametrize("begin", [b"GET /", b"GET / HTTP/1.1\r\nX-A: "])
def test_a_head_without_an_end_is_cut_off(patient: Connect, begin: bytes) -> None:
    connection = patient()
    connection.sendall(begin)
    assert taken(connection, b"a" * 2**16) < 32 * 2**20  # most of it in the sockets between


def test_many_headers_are_cut_off_and_a_large_cookie_is_not(patient: Connect) -> None:
    connection = patient()
    connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
    assert taken(connection, (b"X: " + b"a" * 1000 + b"\r\n") * 64) < 32 * 2**20
    connection = patient()
    cookie = b"a" * (listening.MAX_HEAD_BYTES - 1000)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: " + cookie)
    connection.sendall(b"\r\n\r\n")
    assert told(connection).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: a\r\nX",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n{",
        b"POST /api/v1/documents HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n{",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /again HTTP/1.1\r\nX",
    ],
)
def test_who_stops_in_the_middle_is_let_go(impatient: Connect, begin: bytes) -> None:
    connection = impatient()
    connection.sendall(begin)
    answers = told(connection)  # ends only when the server closes
    assert b"408" in answers or b"200 OK" in answers


def test_a_drop_now_and_then_buys_no_time(impatient: Connect) -> None:
    connection = impatient()
    connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
    connection.settimeout(0.1)
    for _ in range(600):
        try:
            connection.sendall(b"a")
            assert connection.recv(100).startswith(b"HTTP/1.1 408")
            return
        except TimeoutError:
            continue
        except ConnectionError:
            return
    pytest.fail("it waited a minute for a body whose deadline is a second")


@pytest.mark.parametrize(
    ("path", "in_time"), [(b"/api/v1/documents", True), (b"/api/v1/search", False)]
)
def test_an_upload_may_take_long_as_long_as_it_comes(path: bytes, in_time: bool) -> None:
    with running(listening.configured(answering, Paced)) as connect:
        connection = connect()
        parts, part = 35, b"a" * 2**14
        connection.sendall(
            b"POST %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            % (path, parts * len(part))
        )
        with suppress(ConnectionError):
            for _ in range(parts):
                connection.sendall(part)
        assert told(connection).startswith(b"HTTP/1.1 200") is in_time


def test_requests_after_one_another_have_each_their_own_time() -> None:
    """The first head's deadline ends with it; between requests none of ours runs."""
    with running(listening.configured(answering, Noted)) as connect:
        connection = connect()
        for _ in range(8):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        assert Noted.noted == [listening.HEAD_S, None]


def test_more_connections_than_allowed_are_turned_away() -> None:
    config = listening.configured(answering)
    config.limit_concurrency = 5
    with running(config) as connect:
        held = [connect() for _ in range(5)]
        extra = [connect() for _ in range(20)]
        assert [told(one)[:12] for one in extra] == [b"HTTP/1.1 503"] * 20
        for one in held:
            one.close()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            last = connect()
            last.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            if told(last).startswith(b"HTTP/1.1 200"):
                return
        pytest.fail("it still turns people away")


def test_a_port_that_is_taken_says_so() -> None:
    with listening.bind("127.0.0.1", 0) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(UnavailableError) as caught:
            listening.bind("127.0.0.1", port)
    assert caught.value.code == "port_taken"
    assert "--port" in caught.value.next_step


@pytest.mark.parametrize(
    "host", ["203.0.113.7", "no.such.host.invalid", "a" * 300, "\ud800", "::z"]
)
def test_a_host_that_is_not_here_is_the_callers_mistake(host: str) -> None:
    with pytest.raises(InputError):
        listening.bind(host, 0)


@pytest.mark.parametrize("port", ["-1", "65536", "99999999999", "http"])
def test_a_port_that_is_none_is_a_usage_error(port: str) -> None:
    assert CliRunner().invoke(serve, ["--port", port]).exit_code == 2


def test_serve_fails_by_type_before_it_makes_anything(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    with listening.bind("127.0.0.1", 0) as first:
        first.listen()
        found = CliRunner().invoke(serve, ["--port", str(first.getsockname()[1])])
    assert isinstance(found.exception, KbError)
    assert not (tmp_path / "home" / "secret").exists()
