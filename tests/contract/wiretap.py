"""A proxy on a Unix socket that counts a client's protocol messages and acts before one of them.

Belongs here: framing of frontend messages, see postgresql.org/docs, "55.7. Message Formats". What
does not: what happens at a message, which the test says.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path


class Wiretap:
    """Listens beside a server's socket and forwards; `arm` says what to do before which message."""

    def __init__(self, server_socket: Path, folder: Path) -> None:
        self._server_socket = server_socket
        self._guard = threading.Lock()
        self._counting = False
        self._at: int | None = None
        self._act: Callable[[], None] = lambda: None
        self.count = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / server_socket.name))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept)]
        self._open: list[socket.socket] = []
        self._threads[0].start()

    def arm(self, at: int | None, act: Callable[[], None] = lambda: None) -> None:
        """Count from now on; before message number `at` (from 1) call `act`."""
        with self._guard:
            self._counting, self.count, self._at, self._act = True, 0, at, act

    def disarm(self) -> int:
        """Stop counting; returns how many messages came."""
        with self._guard:
            self._counting = False
            return self.count

    def close(self) -> None:
        """End all connections and threads."""
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._server_socket))
            except OSError:  # the server is restarting: the client sees a closed connection
                client.close()
                server.close()
                continue
            self._open += [client, server]
            for target, ends in ((self._frames, (client, server)), (self._pump, (server, client))):
                thread = threading.Thread(target=target, args=ends)
                self._threads.append(thread)
                thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        _hang_up(source, sink)

    def _frames(self, source: socket.socket, sink: socket.socket) -> None:
        """Messages of a client, one by one; the first has no type byte."""
        buffered, head = b"", 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                buffered += data
                while len(buffered) >= head + 4:
                    size = head + int.from_bytes(buffered[head : head + 4], "big")
                    if len(buffered) < size:
                        break
                    self._seen()
                    sink.sendall(buffered[:size])
                    buffered, head = buffered[size:], 1
        _hang_up(source, sink)

    def _seen(self) -> None:
        with self._guard:
            if not self._counting:
                return
            self.count += 1
            if self.count == self._at:
                self._act()


def _hang_up(*ends: socket.socket) -> None:
    for each in ends:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
