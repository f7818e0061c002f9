"""A docling-serve server asked for the JSON of one document.

Belongs here: the HTTP of submitting, waiting and fetching, under limits. What the JSON means is
`reader.py`'s, in the sandbox: an answer is as little trusted as a document. Redirects are not
followed, an API key must not travel. The API:
https://docling-project.github.io/docling/usage/api_server/rest_api/.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from typing import IO, Any

from kb_resources.errors import InputError, PolicyError, UnavailableError
from kb_resources.model import DocumentState, Refusal

_WAIT_S = 5.0
_PAUSE_S = 0.2
_REQUEST_S = 60.0
_MAX_ANSWER = 256 * 1024 * 1024
_READY = ("success", "partial_success")
_RUNNING = ("pending", "started")


@dataclass(frozen=True, slots=True)
class DoclingServe:
    """A configured server.

    Attributes:
        url: its address without the path of the API.
        key: sent as X-Api-Key, "" for none.
        timeout_s: most seconds from submitting to the answer.
        ocr: whether it may read pictures.
        clock: monotonic seconds.
        sleep: waits so many seconds.

    Raises:
        InputError: the address is not an http or https one.
    """

    url: str
    key: str = ""
    timeout_s: float = 900.0
    ocr: bool = True
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise InputError(
                f"{self.url!r} is no address of a docling-serve.",
                next_step="Set KB_DOCLING_URL to something like http://127.0.0.1:5001.",
            )

    def convert(self, data: bytes, name: str) -> bytes | Refusal:
        """The document's JSON as docling writes it.

        Args:
            data: the file.
            name: its name; the server goes by the extension.

        Returns:
            JSON of a `DoclingDocument`, not yet believed, or a Refusal (`failed`) where the server
            could not convert this document.

        Raises:
            UnavailableError: it cannot be reached, is too slow, or answers something else.
            PolicyError: it refuses the key.
        """
        deadline = self.clock() + self.timeout_s
        task = self._submit(data, name, deadline)
        state = str(task.get("task_status", "pending"))
        task_id = str(task.get("task_id") or "")
        if not task_id.replace("-", "").replace("_", "").isalnum():
            raise self._nonsense("it gave no task id")
        while state in _RUNNING:
            if self.clock() >= deadline:
                raise self._slow()
            told = self._ask(f"/v1/status/poll/{task_id}?wait={_WAIT_S:g}", deadline)
            state = str(told.get("task_status", ""))
            if state in _RUNNING:
                self.sleep(_PAUSE_S)
        if state not in _READY:
            return _failed(state, told.get("error_message") if state == "failure" else None)
        return self._document(self._ask(f"/v1/result/{task_id}", deadline))

    def _submit(self, data: bytes, name: str, deadline: float) -> Mapping[str, Any]:
        order = {
            "options": {
                "to_formats": ["json"],
                "image_export_mode": "placeholder",
                "do_ocr": self.ocr,
                "do_table_structure": True,
            },
            "sources": [
                {
                    "kind": "file",
                    "base64_string": base64.b64encode(data).decode(),
                    "filename": name or "document.pdf",
                }
            ],
            "target": {"kind": "inbody"},
        }
        return self._ask("/v1/convert/source/async", deadline, json.dumps(order).encode())

    def _document(self, result: Mapping[str, Any]) -> bytes | Refusal:
        status = str(result.get("status", ""))
        if status not in _READY:
            errors = result.get("errors") or [{}]
            first = errors[0] if isinstance(errors, list) else {}
            return _failed(status, first.get("error_message") if isinstance(first, dict) else None)
        holder = result.get("document") or result.get("content")
        content = holder.get("json_content") if isinstance(holder, dict) else None
        if not isinstance(content, dict):
            raise self._nonsense("the result holds no json_content")
        return json.dumps(content, ensure_ascii=False).encode()

    def _ask(self, path: str, deadline: float, body: bytes | None = None) -> Mapping[str, Any]:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.key:
            headers["X-Api-Key"] = self.key
        request = urllib.request.Request(  # noqa: S310 - __post_init__ has looked at the scheme
            self.url.rstrip("/") + path, body, headers
        )
        left = min(deadline - self.clock(), _REQUEST_S + _WAIT_S)
        if left <= 0:
            raise self._slow()
        try:
            with urllib.request.build_opener(_Stay).open(request, timeout=left) as answer:
                text = _read(answer, deadline, self.clock)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error.code) from error
        except TimeoutError as error:
            raise self._slow() from error
        except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
            if isinstance(getattr(error, "reason", None), TimeoutError):
                raise self._slow() from error
            raise UnavailableError(
                f"docling-serve at {self.url} cannot be reached ({type(error).__name__}).",
                next_step="Start it, or correct KB_DOCLING_URL.",
            ) from error
        if text is None:
            raise self._nonsense(f"its answer is longer than {_MAX_ANSWER >> 20} MiB")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._nonsense("its answer is no JSON") from error
        if not isinstance(value, dict):
            raise self._nonsense("its answer is no JSON object")
        return value

    def _refused(self, code: int) -> UnavailableError | PolicyError:
        if code in (401, 403):
            return PolicyError(
                f"docling-serve at {self.url} refuses the key (HTTP {code}).",
                next_step="Set KB_DOCLING_KEY to a key it accepts.",
            )
        return UnavailableError(
            f"docling-serve at {self.url} answered HTTP {code}.",
            next_step="Look at its log; KB_DOCLING_URL must be the address without a path.",
        )

    def _slow(self) -> UnavailableError:
        return UnavailableError(
            f"docling-serve at {self.url} took longer than {self.timeout_s:g} s.",
            next_step="Try again, or raise KB_DOCLING_TIMEOUT_S.",
        )

    def _nonsense(self, why: str) -> UnavailableError:
        return UnavailableError(
            f"docling-serve at {self.url} answered nonsense: {why}.",
            next_step="Check that KB_DOCLING_URL names a docling-serve of version 1 or later.",
        )


class _Stay(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for the error it is."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        """No second request."""


def _read(answer: Any, deadline: float, clock: Callable[[], float]) -> bytes | None:
    """The body, None when it is too long; TimeoutError once the deadline has passed."""
    parts, size = [], 0
    while part := answer.read1(1 << 20):
        parts.append(part)
        size += len(part)
        if size > _MAX_ANSWER:
            return None
        if clock() >= deadline:
            raise TimeoutError
    return b"".join(parts)


def _failed(status: str, message: Any) -> Refusal:
    why = f" ({str(message)[:200]})" if message else ""
    return Refusal(
        DocumentState.FAILED,
        f"docling-serve could not convert it{why}; look at it, or add it without KB_DOCLING_URL.",
        {"status": status},
    )
