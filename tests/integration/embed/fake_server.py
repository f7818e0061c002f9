"""A real HTTP server on this machine that embeds, or misbehaves on request."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kb_resources.embed.hashing import HashingEmbedder
from kb_resources.embed.remote import Endpoint

DIMENSIONS = 384


def hashed(texts: list[str]) -> list[list[float]]:
    """The vectors of the hashing embedder."""
    rows: list[list[float]] = HashingEmbedder(DIMENSIONS).embed(texts, "passage").tolist()
    return rows


@dataclass
class FakeServer:
    """Answers like an OpenAI-compatible server or TEI, with the hashing embedder's vectors.

    Attributes:
        spoil: changes the JSON of an answer before it is sent.
        replies: status and headers of the next answers; a real one follows when they are used up.
        requests: path, headers and JSON of every request so far.
        salt: put before every text; another salt is another model.
        raw: sent instead of JSON.
        vectors: what embeds.
    """

    spoil: Callable[[Any], Any] = lambda reply: reply
    replies: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    salt: str = ""
    raw: bytes | None = None
    vectors: Callable[[list[str]], list[list[float]]] = hashed
    port: int = 0

    def endpoint(self, dialect: str = "openai", path: str = "/v1") -> Endpoint:
        url = f"http://127.0.0.1:{self.port}{path if dialect == 'openai' else ''}"
        return Endpoint(dialect, url, "tiny-model" if dialect == "openai" else "")  # type: ignore[arg-type]

    def texts(self) -> list[str]:
        """Every text received so far."""
        return [
            text for _, _, body in self.requests for text in body.get("input") or body["inputs"]
        ]

    def answer(self, path: str, body: Any) -> Any:
        texts = body["input"] if path.endswith("/embeddings") else body["inputs"]
        rows = self.vectors([f"{self.salt} {text}" for text in texts])
        if path.endswith("/embed"):
            return rows
        data = [{"object": "embedding", "index": at, "embedding": r} for at, r in enumerate(rows)]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return {"object": "list", "data": data, "model": body["model"], "usage": usage}


class _Handler(BaseHTTPRequestHandler):
    fake: FakeServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fake = self.fake
        fake.requests.append((self.path, dict(self.headers), body))
        status, headers = fake.replies.pop(0) if fake.replies else (200, {})
        if status == 200:
            payload = fake.raw
            if payload is None:
                payload = json.dumps(fake.spoil(fake.answer(self.path, body))).encode()
        else:
            payload = json.dumps({"error": "no", "echo": body}).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that has read enough
            super().handle_error(request, client_address)


@contextmanager
def running(state: FakeServer) -> Iterator[FakeServer]:
    """Serve until the block ends."""
    handler = type("Handler", (_Handler,), {"fake": state})
    with _Server(("127.0.0.1", 0), handler) as server:
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
