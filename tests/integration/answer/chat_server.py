"""A chat endpoint on a real port that answers as a test tells it to.

Belongs here: the wire. What does not: assertions. It reads the prompt as a model would: passages
are what stands between lines with the mark that the system message names.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_MARK = re.compile(r"<question ([0-9a-f]+)>")


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        return str(self.body["messages"][1]["content"])

    @property
    def mark(self) -> str:
        found = _MARK.search(self.system)
        assert found is not None
        return found[1]

    @property
    def passages(self) -> list[str]:
        """Texts between the fences that carry the mark, without their first line."""
        fence = re.compile(
            rf"^<passage \d+ {self.mark}>\n[^\n]*\n(.*?)\n</passage \d+ {self.mark}>$",
            re.MULTILINE | re.DOTALL,
        )
        return fence.findall(self.user)


Answering = Callable[[Asked], Any]


@dataclass
class ChatServer:
    """What it is to say, and what it was asked.

    Attributes:
        replies: one per request, the last for all that follow: a text is the model's message, a
            number an HTTP status, a callable makes either from the request.
        asked: requests so far.
        delay_s: wait before each reply.
        dribble_s: wait before each byte of the body.
        headers: sent with statuses.
        finish: why the model ended its message.
        raw: sent instead of JSON.
    """

    replies: list[Any] = field(default_factory=lambda: ['{"statements": []}'])
    asked: list[Asked] = field(default_factory=list)
    delay_s: float = 0.0
    dribble_s: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    finish: str = "stop"
    raw: bytes | None = None
    url: str = ""

    def says(self, *statements: tuple[str, list[tuple[int, str]]]) -> None:
        """Answer with these statements and their quotes."""
        self.replies = [reply(*statements)]

    def next(self, asked: Asked) -> Any:
        self.asked.append(asked)
        told = self.replies[min(len(self.asked), len(self.replies)) - 1]
        return told(asked) if callable(told) else told


def reply(*statements: tuple[str, list[tuple[int, str]]]) -> str:
    """The JSON a good model sends."""
    return json.dumps(
        {
            "statements": [
                {"text": text, "quotes": [{"passage": n, "quote": quote} for n, quote in quotes]}
                for text, quotes in statements
            ]
        }
    )


@contextmanager
def chatting() -> Iterator[ChatServer]:
    """A running server."""
    state = ChatServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            asked = Asked(dict(self.headers), json.loads(self.rfile.read(size)))
            told = state.next(asked)
            time.sleep(state.delay_s)
            status = told if isinstance(told, int) else 200
            value = {
                "choices": [
                    {
                        "message": {"role": "assistant", "content": told},
                        "finish_reason": state.finish,
                    }
                ],
                "usage": {"prompt_tokens": 100, "completion_tokens": 7},
            }
            body = json.dumps(value if status == 200 and isinstance(told, str) else told).encode()
            body = body if state.raw is None else state.raw
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                for name, text in state.headers.items():
                    self.send_header(name, text)
                self.end_headers()
                for at in range(len(body)) if state.dribble_s else ():
                    self.wfile.write(body[at : at + 1])
                    time.sleep(state.dribble_s)
                if not state.dribble_s:
                    self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                return  # the client has gone, which is what some tests are about

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
