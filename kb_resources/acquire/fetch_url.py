"""An address as a person or a server wrote it, read in one way only.

Belongs here: what is an address at all, and its canonical form. Whom it leads to is
`fetch_address.py`'s. Two readers that disagree about a URL are how a check is passed by, so
whatever could be read in two ways is refused. See https://url.spec.whatwg.org/#host-parsing and
RFC 3986.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from kb_resources.acquire.fetch_address import Address
from kb_resources.acquire.fetch_outcome import FetchProblem, FetchRefusal, FetchStopped

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_URL_CHARS = 4096
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\]")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_DOT_SEGMENT = re.compile(r"(?:%2e|\.){1,2}", re.IGNORECASE)
# IDNA 2003 (the standard library's) and 2008 send these to different hosts.
_DEVIATIONS = frozenset("ßς\u200c\u200d")


@dataclass(frozen=True, slots=True)
class Target:
    """One address to ask.

    Attributes:
        scheme: `http` or `https`.
        host: ASCII, lower case, without a trailing dot; an IPv6 address without brackets.
        port: number.
        path: request target: path and query, percent-encoded, starting with `/`.
        literal: the address where the host is one, else None.
    """

    scheme: str
    host: str
    port: int
    path: str
    literal: Address | None = None

    @property
    def authority(self) -> str:
        """Host and, unless it is the scheme's own, port: the Host header."""
        host = f"[{self.host}]" if isinstance(self.literal, IPv6Address) else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme and authority; credentials stay within one."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """Canonical form, without a fragment."""
        return self.origin + self.path


def read_url(text: str, base: Target | None = None) -> Target:
    """Read an address.

    Args:
        text: as written.
        base: the page it stands in, for relative ones.

    Raises:
        FetchStopped: it is not one http or https address that can be read in one way only.
    """
    text = text.strip(" \t\r\n")
    if not text or len(text) > MAX_URL_CHARS or _AMBIGUOUS.search(text):
        raise _bad("The address is empty, too long, or holds spaces, control signs or backslashes.")
    try:
        parts = urlsplit(urljoin(base.url, text) if base else text)
        port = parts.port
    except ValueError as error:
        raise _bad(f"The address cannot be read ({error}).") from error
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS:
        told = f"The scheme {scheme!r} is not fetched" if scheme else "The address has no scheme"
        raise _bad(f"{told}; only http and https are.")
    if "@" in parts.netloc:
        raise _bad("The address holds a user name or password.")
    if port == 0:
        raise _bad("Port 0 is no port.")
    host, literal = _host(parts)
    target = _path(parts.path) + (f"?{_encoded(parts.query)}" if parts.query else "")
    return Target(scheme, host, port or DEFAULT_PORTS[scheme], target, literal)


def canonical_url(text: str) -> str | FetchRefusal:
    """Canonical form of an address, what a document's identity is derived from."""
    try:
        return read_url(text).url
    except FetchStopped as stopped:
        return stopped.refusal


def file_name(target: Target, content_type: str) -> str:
    """A file name for what an address gave: its last path part, with a suffix that tells."""
    last = unquote(target.path.split("?")[0].rsplit("/", 1)[-1]).replace("\x00", "")
    last = last.replace("/", "_").replace("\\", "_")[-150:]
    suffix = _SUFFIXES.get(content_type, "")
    if not last:
        return target.host + (suffix or ".html")
    known = re.search(r"\.[A-Za-z0-9]{1,8}$", last)
    return last if known and known[0].lower() not in _SCRIPTS else last + suffix


_SUFFIXES = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "text/csv": ".csv",
    "application/json": ".json",
    "application/pdf": ".pdf",
}
_SCRIPTS = (".php", ".asp", ".aspx", ".jsp", ".cgi", ".do")


def _host(parts: SplitResult) -> tuple[str, Address | None]:
    raw = parts.netloc.rpartition("@")[2]
    if raw.startswith("["):
        return _bracketed(raw)
    host = parts.hostname or ""
    if "%" in host or ":" in host:
        raise _bad(f"The host {host!r} is written with percent signs or colons.")
    if _DEVIATIONS & set(host):
        raise _bad(f"The host {host!r} has letters that two standards read differently.")
    try:
        # Folds full-width digits and other scripts' dots, as a browser does.
        host = host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError as error:
        raise _bad(f"The host {host!r} is not a name.") from error
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return host, IPv4Address(host)
        except AddressValueError as error:
            raise _bad(f"The host {host!r} is a number, but not an address like 192.0.2.1.") from (
                error
            )
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise _bad(f"The host {host!r} is not a name.")
    return host, None


def _bracketed(raw: str) -> tuple[str, Address]:
    inside = raw[1:].partition("]")[0]
    try:
        address = IPv6Address(inside)
    except AddressValueError as error:
        raise _bad(f"The host [{inside}] is not an IPv6 address.") from error
    return str(address), address


def _path(path: str) -> str:
    """Percent-encoded, dot segments resolved, starting with `/`."""
    kept: list[str] = []
    parts = _encoded(path).split("/")[1:] if path else []
    for place, part in enumerate(parts):
        if not _DOT_SEGMENT.fullmatch(part):
            kept.append(part)
            continue
        if len(part.lower().replace("%2e", ".")) == 2 and kept:
            kept.pop()
        if place == len(parts) - 1:
            kept.append("")
    return "/" + "/".join(kept)


def _encoded(text: str) -> str:
    return quote(text, safe="/?:@!$&'()*+,;=-._~%[]|^`{}", encoding="utf-8", errors="replace")


def _bad(reason: str) -> FetchStopped:
    return FetchStopped(
        FetchRefusal(
            FetchProblem.URL, reason, "Write it as https://host/path, without user or password."
        )
    )
