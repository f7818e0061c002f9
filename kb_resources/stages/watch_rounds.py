"""A round over hosts: several at once, each asked politely, one request after the other.

Belongs here: order, pauses, robots.txt and rest for a host that is busy. What does not: rows, and
what an answer means for a document (`watch_outcome`). Everything that waits or is random comes as
an argument. See RFC 9309 and RFC 9110 section 10.2.3.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kb_resources.acquire.expand import Listing, read_listing
from kb_resources.acquire.fetch_outcome import (
    Fetched,
    FetchOutcome,
    FetchProblem,
    FetchRefusal,
    Validators,
)
from kb_resources.acquire.robots import Robots, read_robots
from kb_resources.store.watches import Claim, HostRow, WatchedListing, WatchedPage

Fetch = Callable[..., FetchOutcome]
REST_S = 300.0
"""How long a host is left alone that is busy and does not say for how long."""
_RESTING = frozenset({429, 503})
_WAITING_ANSWERS = 16


@dataclass(frozen=True, slots=True)
class Manners:
    """How hosts are asked.

    Attributes:
        delay_s: least seconds between two requests to a host; its robots.txt may ask for more.
        workers: hosts asked at the same time.
        until: on the monotonic clock; what is not asked by then is given back.
        monotonic: seconds.
        sleep: waits so many seconds.
        now: aware time.
    """

    delay_s: float
    workers: int
    until: float
    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    now: Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """What a page's address gave."""

    page: WatchedPage
    outcome: FetchOutcome


@dataclass(frozen=True, slots=True)
class ListingAnswer:
    """What a sitemap or feed gave; `listing` where it could be read."""

    listed: WatchedListing
    outcome: FetchOutcome
    listing: Listing | None = None


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """A host's share of the round is over.

    Attributes:
        host: which.
        busy_until: aware time until which it is left alone.
        robots: its rules, where they were read anew.
        left: pages and listings there was no time for.
    """

    host: str
    busy_until: datetime
    robots: Robots | None = None
    left: tuple[WatchedPage | WatchedListing, ...] = ()


Answer = PageAnswer | ListingAnswer | HostAnswer


def ask_all(claim: Claim, fetch: Fetch, manners: Manners) -> Generator[Answer]:
    """Ask everything that was claimed; answers come as they are there, in no order of hosts.

    At most a few answers wait to be taken, so that memory stays bounded. Close it when no more are
    taken, so that no more is asked. An unexpected error at one host is raised when all the others
    have answered; what is left of its share comes back with the lease.
    """
    shares = _shares(claim)
    answers: queue.Queue[Answer | BaseException] = queue.Queue(_WAITING_ANSWERS)
    stopped = threading.Event()
    with ThreadPoolExecutor(manners.workers, thread_name_prefix="kb-watch") as pool:
        try:
            for host, share in shares:
                pool.submit(_Visit(host, share, fetch, manners, answers, stopped).run)
            over, problem = 0, None
            while over < len(shares):
                answer = answers.get()
                over += isinstance(answer, HostAnswer | BaseException)
                if isinstance(answer, BaseException):
                    problem = problem or answer
                else:
                    yield answer
            if problem is not None:
                raise problem
        finally:
            stopped.set()
            while not answers.empty():
                answers.get_nowait()


def _shares(claim: Claim) -> list[tuple[HostRow, list[WatchedListing | WatchedPage]]]:
    shares: dict[str, list[WatchedListing | WatchedPage]] = {h.host: [] for h in claim.hosts}
    for listing in claim.listings:
        shares[listing.host].append(listing)
    for page in claim.pages:
        shares[page.host].append(page)
    return [(host, shares[host.host]) for host in claim.hosts]  # listings first, they add pages


class _Stopped(Exception):
    """The one who takes the answers has gone."""


@dataclass
class _Visit:
    """One host's share, worked on in one thread."""

    host: HostRow
    share: Sequence[WatchedListing | WatchedPage]
    fetch: Fetch
    manners: Manners
    answers: queue.Queue[Answer | BaseException]
    stopped: threading.Event
    next_at: float = 0.0
    rest_until: datetime | None = None
    fresh: Robots | None = field(default=None)

    def run(self) -> None:
        """Never raises; an unexpected error is given to the one who takes the answers."""
        try:
            self._run()
        except _Stopped:
            return
        except Exception as error:  # noqa: BLE001 - it is raised where the answers are taken
            self._give(error)

    def _run(self) -> None:
        robots = self._robots() if self.share else Robots("")
        delay_s = max(self.manners.delay_s, robots.delay_s)
        left: list[WatchedPage | WatchedListing] = []
        for item in self.share:
            allowed = robots.allows(item.url)
            if self.rest_until is not None or (allowed and not self._is_time()):
                left.append(item)
            elif isinstance(item, WatchedPage):
                outcome = self._ask(item, delay_s) if allowed else _forbidden(item.url)
                self._give(PageAnswer(item, outcome))
            else:
                self._give(self._list(item, delay_s, robots))
        wait = timedelta(seconds=max(0.0, self.next_at - self.manners.monotonic()))
        rests = self.rest_until or self.manners.now() + wait
        self._give(HostAnswer(self.host.host, rests, self.fresh, tuple(left)))

    def _robots(self) -> Robots:
        known, until = self.host.robots, self.host.robots_until
        if known is not None and until is not None and until > self.manners.now():
            return Robots(known)
        outcome = self._fetch(f"{self.host.host}/robots.txt", self.manners.delay_s)
        self.fresh = read_robots(outcome)
        return self.fresh

    def _list(self, item: WatchedListing, delay_s: float, robots: Robots) -> ListingAnswer:
        """A listing with the sitemaps that an index names, as far as time and its limit go."""
        if not robots.allows(item.url):
            return ListingAnswer(item, _forbidden(item.url))
        outcome = self._ask(item, delay_s)
        if not isinstance(outcome, Fetched):
            return ListingAnswer(item, outcome)
        whole = read_listing(outcome.data, outcome.validators.url, limit=item.page_limit)
        if isinstance(whole, FetchRefusal):
            return ListingAnswer(item, whole)
        pages = {page.url: page for page in whole.pages}
        passed_over = whole.passed_over
        for url in whole.sitemaps:
            if len(pages) >= item.page_limit or not self._is_time():
                break
            part = self._fetch(url, delay_s) if robots.allows(url) else _forbidden(url)
            read = (
                read_listing(part.data, part.validators.url, limit=item.page_limit - len(pages))
                if isinstance(part, Fetched)
                else part
            )
            if isinstance(read, Listing):
                pages |= {page.url: page for page in read.pages}
                passed_over += read.passed_over
            else:
                passed_over += 1
        allowed = [page for page in pages.values() if self._may_list(page.url, robots)]
        passed_over += len(pages) - len(allowed)
        found = Listing(whole.kind, tuple(allowed[: item.page_limit]), (), passed_over)
        return ListingAnswer(item, outcome, found)

    def _may_list(self, url: str, robots: Robots) -> bool:
        """Pages of other hosts (feeds may name them) are asked about at their own host."""
        return not url.startswith(f"{self.host.host}/") or robots.allows(url)

    def _ask(self, item: WatchedPage | WatchedListing, delay_s: float) -> FetchOutcome:
        known = None
        if item.final_url is not None and (item.etag or item.last_modified):
            known = Validators(item.final_url, item.etag, item.last_modified)
        return self._fetch(item.url, delay_s, known)

    def _fetch(
        self, url: str, delay_s: float, validators: Validators | None = None
    ) -> FetchOutcome:
        self._wait()
        outcome = self.fetch(url, validators=validators)
        self.next_at = self.manners.monotonic() + delay_s
        if isinstance(outcome, FetchRefusal) and outcome.status in _RESTING:
            rest_s = REST_S if outcome.retry_after_s is None else outcome.retry_after_s
            self.rest_until = self.manners.now() + timedelta(seconds=rest_s)
        return outcome

    def _wait(self) -> None:
        while (left_s := self.next_at - self.manners.monotonic()) > 0:
            if self.stopped.is_set():
                raise _Stopped
            self.manners.sleep(min(left_s, 1.0))

    def _is_time(self) -> bool:
        return max(self.manners.monotonic(), self.next_at) < self.manners.until

    def _give(self, answer: Answer | BaseException) -> None:
        while not self.stopped.is_set():
            try:
                self.answers.put(answer, timeout=0.2)
                return
            except queue.Full:
                continue
        raise _Stopped


def _forbidden(url: str) -> FetchRefusal:
    return FetchRefusal(
        FetchProblem.ROBOTS,
        f"The site's robots.txt asks programs not to fetch {url}.",
        "Ask the site's operator, or add the page as a file.",
    )
