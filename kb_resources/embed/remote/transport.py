"""One JSON request that survives a busy server.

Belongs here: HTTP, retries, limits. What does not: what the JSON means (`dialect`). Redirects are
not followed: an API key must not travel to another host. See RFC 9110, section 10.2.3, for
Retry-After.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kb_resources.errors import (
    InputError,
    IntegrityError,
    KbError,
    NotFound,
    PolicyError,
    UnavailableError,
)

if TYPE_CHECKING:
    import http.client
    import urllib.error
    import urllib.request

_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how long to wait for a busy server.

    Attributes:
        attempts: requests in all.
        first_wait_s: wait before the second request; doubles each time, with jitter.
        longest_wait_s: no single wait is longer; a server that asks for more is given up.
        sleep: waits so many seconds.
        jitter: a number in 0..1.
        now: seconds since the epoch.
    """

    attempts: int = 5
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    now: Callable[[], float] = time.time

    def wait_s(self, attempt: int, retry_after: str | None) -> float | None:
        """Seconds before the request after `attempt` (from 0); None to give up."""
        asked = self._asked(retry_after)
        if asked is not None:
            return asked if asked <= self.longest_wait_s else None
        backoff = self.first_wait_s * 2.0**attempt * (0.5 + self.jitter() / 2)
        return min(self.longest_wait_s, backoff)

    def _asked(self, retry_after: str | None) -> float | None:
        text = (retry_after or "").strip()
        if text.isascii() and text.isdigit():
            return float(text)
        import email.utils

        try:
            return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - self.now())
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """Posts JSON.

    Attributes:
        headers: sent with every request, the API key among them.
        by_host: host or host:port → headers that only it is sent, its API key among them.
        timeout_s: longest silence of the server.
        retry: how often and how long to wait.
        proxies: scheme → proxy URL; none by default.
        service: what is asked, for messages.
        deadline_s: longest time a call may take, retries included; None: only silence counts.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 60.0
    retry: Retry = field(default_factory=Retry)
    proxies: Mapping[str, str] = field(default_factory=dict)
    service: str = "embedding endpoint"
    deadline_s: float | None = None
    by_host: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    def post(self, url: str, payload: object, *, max_bytes: int) -> Any:
        """The JSON value that the server answers with.

        Args:
            url: an http or https address.
            payload: JSON-serialisable.
            max_bytes: an answer longer than this is refused.

        Raises:
            UnavailableError: the server is away or busy for longer than the retries allow.
            InputError: the server calls the request wrong.
            PolicyError: the server refuses the key.
            NotFound: the address or the model does not exist there.
            IntegrityError: the answer is too long or not JSON.
        """
        if not url.startswith(("http://", "https://")):
            raise InputError(
                f"{url!r} is not an http or https address.", next_step="Correct the endpoint."
            )
        import http.client  # here, because most programs never ask an endpoint
        import urllib.error
        import urllib.request

        request = urllib.request.Request(  # noqa: S310 - the scheme was checked
            url,
            data=json.dumps(payload).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json"}
            | dict(self.headers)
            | self._of_host(url),
            method="POST",
        )
        opener = _opener(self.proxies)
        until = math.inf if self.deadline_s is None else self.retry.now() + self.deadline_s
        for attempt in range(self.retry.attempts):
            retry_after = None
            left_s = min(self.timeout_s, max(0.001, until - self.retry.now()))
            try:
                with opener.open(request, timeout=left_s) as reply:
                    body = self._read(reply, max_bytes, until)
                return _parsed(body, url, self.service, max_bytes)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in _BUSY:
                        raise _refusal(url, error, self.service) from error
                    problem = f"HTTP {error.code}"
                    retry_after = error.headers.get("Retry-After")
            except (OSError, http.client.HTTPException) as error:
                problem = str(error) or type(error).__name__
            wait_s = self.retry.wait_s(attempt, retry_after)
            if wait_s is None:
                problem += f", asks to come back in {retry_after} s"
                break
            if self.retry.now() + wait_s >= until:
                break
            if attempt + 1 < self.retry.attempts:
                self.retry.sleep(wait_s)
        raise UnavailableError(
            f"The {self.service} {url} does not answer ({problem}).",
            next_step="Check that it runs and try again; nothing was stored.",
        )

    def _of_host(self, url: str) -> dict[str, str]:
        parts = urlsplit(url)
        name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return {**self.by_host.get(name, {}), **self.by_host.get(f"{name}:{port}", {})}

    def _read(self, reply: http.client.HTTPResponse, max_bytes: int, until: float) -> bytes:
        """At most one byte more than allowed; a server that dribbles runs into the deadline."""
        body = bytearray()
        while len(body) <= max_bytes and (piece := reply.read1(max_bytes + 1 - len(body))):
            body += piece
            if self.retry.now() > until:
                raise TimeoutError(f"not done after {self.deadline_s} s")
        return bytes(body)


def _opener(proxies: Mapping[str, str]) -> urllib.request.OpenerDirector:
    import urllib.request

    class NoRedirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object, **__: object) -> None:
            return None

    return urllib.request.build_opener(urllib.request.ProxyHandler(dict(proxies)), NoRedirects())


def _parsed(body: bytes, url: str, service: str, max_bytes: int) -> Any:
    check = f"Check that the address is that of your {service}."
    if len(body) > max_bytes:
        raise IntegrityError(
            f"The {service} {url} answered with more than {max_bytes} bytes.", next_step=check
        )
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise IntegrityError(
            f"The {service} {url} answered with something that is not JSON.", next_step=check
        ) from error


def _refusal(url: str, error: urllib.error.HTTPError, service: str) -> KbError:
    # The server's own words are left out: they may repeat the text that was sent.
    message = f"The {service} {url} answered with HTTP {error.code}."
    if error.code in (401, 403):
        return PolicyError(message, next_step="Check the API key and its rights.")
    if error.code == 404:
        return NotFound(message, next_step="Check the address and the model's name.")
    if 300 <= error.code < 400:
        return InputError(message, next_step="Name the final address; redirects aren't followed.")
    return InputError(message, next_step="Check the model's name and its token limit.")
