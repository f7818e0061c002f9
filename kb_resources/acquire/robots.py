"""robots.txt: what a site lets programs fetch, and how fast.

Belongs here: reading the rules and what a missing file means. Keeping them between fetches is the
ledger's. See RFC 9309: 4xx means "no rules", a server in trouble means "nothing for now".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from kb_resources.acquire.fetch_outcome import Fetched, FetchOutcome, FetchProblem

if TYPE_CHECKING:
    from protego import Protego

AGENT = "dagster-kb"
MAX_CHARS = 500 * 1024
KEEP_S = 86_400.0
KEEP_CLOSED_S = 3_600.0
_CLOSED = "User-agent: *\nDisallow: /\n"
_MAX_DELAY_S = 300.0


@dataclass(frozen=True, slots=True)
class Robots:
    """A site's rules as text.

    Attributes:
        text: a robots.txt; empty: everything is allowed.
        keep_s: seconds it may be used for.
    """

    text: str
    keep_s: float = KEEP_S

    def allows(self, url: str) -> bool:
        """Whether the address may be fetched by us."""
        return not self.text or bool(_parsed(self.text).can_fetch(url, AGENT))

    @property
    def delay_s(self) -> float:
        """Seconds the site asks for between two fetches."""
        asked = _parsed(self.text).crawl_delay(AGENT) if self.text else None
        return min(max(0.0, asked or 0.0), _MAX_DELAY_S)


def read_robots(outcome: FetchOutcome) -> Robots:
    """What the fetch of `/robots.txt` means."""
    if isinstance(outcome, Fetched):
        return Robots(outcome.data[: MAX_CHARS * 4].decode("utf-8", "replace")[:MAX_CHARS])
    passing = {FetchProblem.MISSING, FetchProblem.DENIED, FetchProblem.STATUS}
    if not isinstance(outcome, Fetched) and getattr(outcome, "problem", None) in passing:
        return Robots("")
    return Robots(_CLOSED, KEEP_CLOSED_S)


@lru_cache(maxsize=256)
def _parsed(text: str) -> Protego:
    from protego import Protego

    return Protego.parse(text)
