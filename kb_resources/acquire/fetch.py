"""Fetch one address: a conditional GET that follows redirects and trusts nobody.

Belongs here: the request, redirects, what stays within an origin, and what a status means. What
does not: which address may be asked (`fetch_policy`), how (`fetch_connect`), how much of an answer
is read (`fetch_body`). Built on the standard library's `http.client`, see docs/adr/0006-fetcher.md.
"""

from __future__ import annotations

import http.client
import http.cookies
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property

from kb_resources.acquire.fetch_body import read_body
from kb_resources.acquire.fetch_connect import (
    Connector,
    Deadline,
    HttpSocket,
    Resolver,
    WireStream,
    connect,
    system_resolver,
    tcp_connect,
)
from kb_resources.acquire.fetch_outcome import (
    Fetched,
    FetchOutcome,
    FetchProblem,
    FetchRefusal,
    FetchStopped,
    NotModified,
    Validators,
)
from kb_resources.acquire.fetch_policy import FetchPolicy
from kb_resources.acquire.fetch_url import Target, file_name, read_url
from kb_resources.acquire.files import MAX_BYTES, Acquired, admit
from kb_resources.errors import InputError
from kb_resources.model import DocumentState, Refusal

_HEADER_BYTES = 2**20
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MISSING = frozenset({404, 410})
_DENIED = frozenset({401, 402, 403, 407, 451})
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_MAX_RETRY_AFTER_S = 7 * 86_400.0
_ACCEPT = "text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8"


@dataclass
class Fetcher:
    """Fetches addresses under one policy; safe to share between threads.

    Attributes:
        policy: limits and opened hosts.
        resolver: names to addresses; asked once a hop.
        connector: makes the TCP connection to an address that was checked.
        monotonic: seconds, for deadlines.
        now: seconds since the epoch, for Retry-After dates.
    """

    policy: FetchPolicy = field(default_factory=FetchPolicy)
    resolver: Resolver = system_resolver
    connector: Connector = tcp_connect
    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time

    @cached_property
    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.policy.ca_file:
            try:
                context.load_verify_locations(self.policy.ca_file)
            except OSError as error:
                raise InputError(
                    f"The certificates in {self.policy.ca_file} cannot be read ({error}).",
                    next_step="Name a PEM file in KB_FETCH_CA_FILE.",
                ) from error
        return context

    def fetch(
        self,
        url: str,
        *,
        validators: Validators | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> FetchOutcome:
        """Get an address.

        Args:
            url: http or https address.
            validators: of the last fetch; sent only to the address that gave them.
            headers: sent to the origin of `url` alone, Authorization for example.

        Returns:
            The bytes, NotModified, or a FetchRefusal; whatever a server does, nothing is raised.

        Raises:
            InputError: the policy's file of certificates cannot be read.
        """
        total_s = self.policy.timeout_s
        deadline = Deadline(self.monotonic() + total_s, self.monotonic, total_s)
        try:
            first = read_url(url)
            return self._follow(first, validators, dict(headers or {}), deadline)
        except FetchStopped as stopped:
            return stopped.refusal

    def _follow(
        self,
        first: Target,
        validators: Validators | None,
        private: dict[str, str],
        deadline: Deadline,
    ) -> FetchOutcome:
        """Ask, and ask on where a redirect leads; every hop is checked like the first."""
        target, cookies, hops = first, http.cookies.SimpleCookie(), 0
        while True:
            sent = validators if validators and validators.url == target.url else None
            reply = self._ask(target, self._headers(target, sent, private, cookies), deadline)
            if not isinstance(reply, _Redirect):
                return self._finish(reply, first, target, sent, hops)
            hops += 1
            if hops > self.policy.max_redirects:
                raise _redirect(f"The page is redirected more than {hops - 1} times.")
            there = read_url(reply.location, target)
            if there.origin == target.origin:
                _keep(cookies, reply.cookies)
            else:
                private, cookies = {}, http.cookies.SimpleCookie()
            target = there

    def _headers(
        self,
        target: Target,
        validators: Validators | None,
        private: Mapping[str, str],
        cookies: http.cookies.SimpleCookie,
    ) -> dict[str, str]:
        headers = {
            "Host": target.authority,
            "User-Agent": self.policy.user_agent,
            "Accept": _ACCEPT,
            "Accept-Encoding": "gzip",
            "Connection": "close",
            **private,
        }
        if cookies:
            headers["Cookie"] = "; ".join(f"{c.key}={c.coded_value}" for c in cookies.values())
        if validators and validators.etag:
            headers["If-None-Match"] = validators.etag
        if validators and validators.last_modified:
            headers["If-Modified-Since"] = validators.last_modified
        return headers

    def _ask(
        self, target: Target, headers: Mapping[str, str], deadline: Deadline
    ) -> _Reply | _Redirect:
        plain = connect(
            target,
            self.policy,
            deadline,
            resolver=self.resolver,
            connector=self.connector,
            context=lambda: self._context,
        )
        with plain:
            limit = self.policy.max_bytes + _HEADER_BYTES
            stream = WireStream(plain, deadline, self.policy.idle_s, limit)
            client = http.client.HTTPConnection(target.host, target.port)
            client.sock = HttpSocket(plain, stream, deadline)
            try:
                client.putrequest("GET", target.path, skip_host=True, skip_accept_encoding=True)
                for name, value in headers.items():
                    client.putheader(name, value)
                client.endheaders()
                with client.getresponse() as response:
                    return self._read(response, target)
            except (http.client.HTTPException, ValueError) as error:
                raise FetchStopped(
                    FetchRefusal(
                        FetchProblem.PROTOCOL,
                        f"{target.authority} does not answer in HTTP ({type(error).__name__}).",
                        "Check the address and try again later.",
                    )
                ) from error
            except OSError as error:
                raise FetchStopped(
                    FetchRefusal(
                        FetchProblem.CONNECTION,
                        f"{target.authority} broke the connection ({error.strerror or error}).",
                        "Try again later.",
                    )
                ) from error

    def _read(self, response: http.client.HTTPResponse, target: Target) -> _Reply | _Redirect:
        status = response.status
        if status in _REDIRECTS:
            location = response.getheader("Location")
            if not location:
                raise _redirect("The page is redirected to nowhere.")
            # Servers send UTF-8 here, which http.client reads as Latin-1.
            location = location.encode("latin-1", "replace").decode("utf-8", "replace")
            return _Redirect(location, tuple(response.headers.get_all("Set-Cookie") or ()))
        data = b""
        if status in {200, 203}:
            data = read_body(response, self.policy.max_bytes, self.policy.max_ratio)
        return _Reply(
            status=status,
            data=data,
            validators=Validators(
                target.url,
                _short(response.getheader("ETag")),
                _short(response.getheader("Last-Modified")),
            ),
            content_type=response.headers.get_content_type()
            if response.getheader("Content-Type")
            else "",
            retry_after=response.getheader("Retry-After"),
        )

    def _finish(
        self,
        reply: _Reply,
        first: Target,
        target: Target,
        sent: Validators | None,
        hops: int,
    ) -> FetchOutcome:
        status = reply.status
        if status in {200, 203}:
            return Fetched(
                url=first.url,
                data=reply.data,
                validators=reply.validators,
                content_type=reply.content_type,
                name=file_name(target, reply.content_type),
                redirects=hops,
            )
        if status == 304 and sent is not None:
            given = reply.validators
            return NotModified(
                Validators(
                    target.url, given.etag or sent.etag, given.last_modified or sent.last_modified
                )
            )
        problem, step = _meaning(status)
        return FetchRefusal(
            problem,
            f"{target.authority} answers {status} {http.client.responses.get(status, '')}.",
            step,
            status=status,
            retry_after_s=self._retry_after(reply.retry_after),
        )

    def _retry_after(self, text: str | None) -> float | None:
        text = (text or "").strip()
        if text.isascii() and text.isdigit():
            return min(float(text[:9]), _MAX_RETRY_AFTER_S)
        try:
            wait = parsedate_to_datetime(text).timestamp() - self.now()
        except (ValueError, OverflowError):
            return None
        return min(max(0.0, wait), _MAX_RETRY_AFTER_S)


def read_address(fetcher: Fetcher, url: str, *, max_bytes: int = MAX_BYTES) -> Acquired | Refusal:
    """The bytes of an address, admitted as a file's would be, or why there are none."""
    outcome = fetcher.fetch(url)
    if isinstance(outcome, Fetched):
        return admit(outcome.data, outcome.name, max_bytes=max_bytes)
    if isinstance(outcome, FetchRefusal):
        return outcome.as_refusal()
    return Refusal(DocumentState.FAILED, f"{url} answers 304 though nobody asked; try again.")


@dataclass(frozen=True, slots=True)
class _Redirect:
    location: str
    cookies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    data: bytes
    validators: Validators
    content_type: str
    retry_after: str | None


def _meaning(status: int) -> tuple[FetchProblem, str]:
    if status in _MISSING:
        return FetchProblem.MISSING, "Check the address; the page may have moved."
    if status in _DENIED:
        return FetchProblem.DENIED, "Name a page that needs no sign-in, or add the file itself."
    if status in _BUSY or status >= 500:
        return FetchProblem.BUSY, "Try again later."
    if 300 <= status < 400:
        return FetchProblem.REDIRECT, "Name the final address."
    if 200 <= status < 300:
        return FetchProblem.PROTOCOL, "Check that the address gives a page."
    return FetchProblem.STATUS, "Check the address with the site's operator."


def _keep(cookies: http.cookies.SimpleCookie, lines: tuple[str, ...]) -> None:
    """Take cookies over; what cannot be read is left out, as browsers do."""
    for line in lines[:50]:
        if len(line) <= 4096:
            try:
                cookies.load(line)
            except http.cookies.CookieError:
                continue


def _short(text: str | None) -> str | None:
    return text.strip() if text and len(text) <= 500 and text.isprintable() else None


def _redirect(reason: str) -> FetchStopped:
    return FetchStopped(FetchRefusal(FetchProblem.REDIRECT, reason, "Name the final address."))
