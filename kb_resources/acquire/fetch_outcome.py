"""What a fetch can come to: bytes, "not modified", or a refusal that says what to do.

Belongs here: the shapes. What does not: deciding (`fetch.py`). A refusal is a value, since an
address that may not be asked and a page that is gone are expected ends of a fetch.
Status codes: https://www.rfc-editor.org/rfc/rfc9110#section-15.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kb_resources.model import DocumentState, Refusal


class FetchProblem(StrEnum):
    """Why there are no bytes."""

    URL = "url"
    ADDRESS = "address"
    DNS = "dns"
    TLS = "tls"
    CONNECTION = "connection"
    TIMEOUT = "timeout"
    REDIRECT = "redirect"
    TOO_LARGE = "too_large"
    ENCODING = "encoding"
    PROTOCOL = "protocol"
    MISSING = "missing"
    DENIED = "denied"
    BUSY = "busy"
    STATUS = "status"
    ROBOTS = "robots"


_PASSING = frozenset(
    {
        *(FetchProblem.DNS, FetchProblem.TLS, FetchProblem.CONNECTION, FetchProblem.TIMEOUT),
        *(FetchProblem.PROTOCOL, FetchProblem.BUSY),
    }
)


@dataclass(frozen=True, slots=True)
class FetchRefusal:
    """A fetch that gave no bytes.

    Attributes:
        problem: why, for programs.
        reason: one sentence for a person.
        next_step: one sentence that says what to do.
        status: HTTP status where a server gave one.
        retry_after_s: seconds the server asks to be left alone, or None.
    """

    problem: FetchProblem
    reason: str
    next_step: str
    status: int | None = None
    retry_after_s: float | None = None

    @property
    def retryable(self) -> bool:
        """Whether the same fetch may succeed later without anyone changing anything."""
        return self.problem in _PASSING

    def __str__(self) -> str:
        return f"{self.reason} {self.next_step}"

    def as_refusal(self) -> Refusal:
        """The same as the end of a document's way."""
        large = self.problem is FetchProblem.TOO_LARGE
        return Refusal(
            DocumentState.TOO_LARGE if large else DocumentState.FAILED,
            str(self),
            {"fetch": self.problem.value, "status": self.status},
        )


class FetchStopped(Exception):
    """Carries a refusal out of the depths of one fetch; never leaves `Fetcher.fetch`."""

    def __init__(self, refusal: FetchRefusal) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server gave to ask "has it changed?" with.

    Attributes:
        url: the address that gave them, after redirects; sent to no other.
        etag: entity tag as sent, or None.
        last_modified: Last-Modified as sent, or None.
    """

    url: str
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """Bytes of an address.

    Attributes:
        url: canonical form of the address asked for.
        data: the content, decompressed.
        validators: for the next conditional fetch; holds the final address.
        content_type: media type the server states, lower case without parameters; a hint only.
        name: file name for sniffing and titles.
        redirects: hops followed.
    """

    url: str
    data: bytes
    validators: Validators
    content_type: str
    name: str
    redirects: int


@dataclass(frozen=True, slots=True)
class NotModified:
    """The server says that nothing changed since the validators were given."""

    validators: Validators


FetchOutcome = Fetched | NotModified | FetchRefusal
