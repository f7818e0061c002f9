"""A look at what is due: fetch politely, tell news from noise, hand changed pages to the line.

Belongs here: the use case, Dagster-free. What does not: asking hosts (`watch_rounds`) and what an
answer means (`watch_outcome`). A page changed when its canonical text did: the parser's body,
without banners, navigation, scripts and hidden parts. Bytes that were taken become a blob, which
the acquire stage then reads, so that a run publishes exactly what was looked at.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from kb_resources.acquire import Acquired, admit
from kb_resources.acquire.fetch_outcome import Fetched, FetchRefusal, NotModified
from kb_resources.acquire.fetch_url import read_url
from kb_resources.acquire.stored import stored_uri
from kb_resources.errors import InputError, PolicyError, UnavailableError
from kb_resources.model import (
    GONE,
    DocumentKey,
    DocumentState,
    Refusal,
    Source,
    SourceKind,
    content_hash,
    sha256_hex,
)
from kb_resources.stages import removal
from kb_resources.stages import watch_outcome as outcome_of
from kb_resources.stages.line import Line
from kb_resources.stages.request import IngestRequest, register
from kb_resources.stages.watch_rounds import (
    Fetch,
    HostAnswer,
    ListingAnswer,
    Manners,
    PageAnswer,
    ask_all,
)
from kb_resources.store import documents, watches
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.watches import Claim, WatchedPage

LEASE_S = 900.0
"""Beyond the look's own time; after that the pages of a look that died are due again."""
_WRITTEN_TOGETHER = 250
_COMPARED_AS_TEXT = frozenset(
    {
        *("text/html", "text/plain", "text/markdown", "text/csv", "text/tab-separated-values"),
        *("application/xml", "application/json"),
    }
)
_MAX_COMPARED_BYTES = 5 * 2**20


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How much one look may do, and what it waits with.

    Attributes:
        pages: pages at most.
        hosts: hosts at most.
        seconds: after so long nothing more is asked.
        delay_s: least seconds between two requests to one host.
        workers: hosts asked at the same time.
        clock: aware now.
        monotonic: seconds.
        sleep: waits so many seconds.
        chance: a number in 0..1.
    """

    pages: int = 5_000
    hosts: int = 500
    seconds: float = 30.0
    delay_s: float = 1.0
    workers: int = 8
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


@dataclass(slots=True)
class CheckReport:
    """What a look came to.

    Attributes:
        keys: documents that the line has to take up now, each once.
        counts: pages by `unchanged`, `changed`, `missing`, `removed`, `failing`, `refused`, and
            `listed` for pages that sitemaps and feeds named.
        left: pages and listings that were due but not asked for want of time.
    """

    keys: dict[DocumentKey, None] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    left: int = 0

    def __str__(self) -> str:
        said = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        return (said or "Nothing was due") + (f", {self.left} left for later" if self.left else "")


def check_due(
    line: Line, fetch: Fetch, options: CheckOptions, *, watch_ids: Sequence[str] | None = None
) -> CheckReport:
    """Look at pages that are due and register those that changed.

    Args:
        line: whose ledger and parser.
        fetch: as `Fetcher.fetch`.
        options: bounds, clock and chance.
        watch_ids: only these watches; None: all.

    Returns:
        What it came to; the documents in it are pending, so that they are not lost when the
        caller dies before the line takes them up.
    """
    now = options.clock()
    of_host = int(options.seconds / options.delay_s) + 1 if options.delay_s else options.pages
    with line.capabilities.database.transaction("pipeline") as conn:
        claim = watches.claim(
            conn,
            now=now,
            lease=now + timedelta(seconds=LEASE_S + options.seconds),
            hosts=options.hosts,
            of_host=of_host,
            limit=options.pages,
            watches=watch_ids,
        )
    return _Check(line, options).run(claim, fetch)


def check_now(
    line: Line, watch_ids: Sequence[str], options: CheckOptions, *, hurry: bool = True
) -> CheckReport:
    """Look at watches now, also at pages that a sitemap or feed names in this very look.

    Args:
        line: whose ledger, parser and fetcher.
        watch_ids: the watches.
        options: bounds, clock and chance.
        hurry: whatever their interval; a host that wants rest still gets it.

    Raises:
        UnavailableError: the line was opened without a fetcher.
    """
    fetcher = line.capabilities.fetcher
    if fetcher is None:
        raise UnavailableError("This line cannot fetch.", next_step="Open it with open_line.")
    if hurry:
        with line.capabilities.database.transaction("pipeline") as conn:
            watches.hurry(conn, watch_ids, options.clock())
    report = check_due(line, fetcher.fetch, options, watch_ids=watch_ids)
    if report.counts["listed"]:
        options.sleep(options.delay_s)
        more = check_due(line, fetcher.fetch, options, watch_ids=watch_ids)
        report.keys |= more.keys
        report.counts += more.counts
        report.left = more.left
    return report


class _Check:
    """One look's work on the ledger."""

    def __init__(self, line: Line, options: CheckOptions) -> None:
        self._line = line
        self._caps = line.capabilities
        self._options = options
        self._report = CheckReport()
        self._rows: list[dict[str, Any]] = []

    def run(self, claim: Claim, fetch: Fetch) -> CheckReport:
        """Take every answer; rows are written in groups, changes at once."""
        options = self._options
        manners = Manners(
            delay_s=options.delay_s,
            workers=options.workers,
            until=options.monotonic() + options.seconds,
            monotonic=options.monotonic,
            sleep=options.sleep,
            now=options.clock,
        )
        with closing(ask_all(claim, fetch, manners)) as answers:
            try:
                for answer in answers:
                    if isinstance(answer, PageAnswer):
                        self._page(answer)
                    elif isinstance(answer, ListingAnswer):
                        self._listing(answer)
                    else:
                        self._host(answer)
                    if len(self._rows) >= _WRITTEN_TOGETHER:
                        self._write()
            finally:
                self._write()
        return self._report

    def _page(self, answer: PageAnswer) -> None:
        page, outcome = answer.page, answer.outcome
        now, chance = self._options.clock(), self._options.chance
        if isinstance(outcome, FetchRefusal):
            row = outcome_of.page_refused(page, outcome, now, chance)
            if row["state"] == "removed":
                self._remove(page, row, outcome.reason)
            else:
                self._note(row)
            return
        if page.state == "removed":
            self._restore(page)
        if isinstance(outcome, NotModified):
            self._note(outcome_of.page_answered(page, outcome.validators, now, chance))
            return
        digest = sha256_hex(outcome.data)
        if digest == page.digest:
            self._note(outcome_of.page_answered(page, outcome.validators, now, chance))
            return
        self._compare(page, outcome, digest)

    def _compare(self, page: WatchedPage, outcome: Fetched, digest: str) -> None:
        now, chance = self._options.clock(), self._options.chance
        got = admit(outcome.data, outcome.name, max_bytes=max(1, len(outcome.data)))
        if isinstance(got, Refusal) and page.document_id is not None:
            # What it said last stays: an empty or broken answer is trouble, not news.
            self._note(outcome_of.page_unfit(page, got.reason, now, chance))
            return
        text = digest if isinstance(got, Refusal) else self._canonical(got)
        row = outcome_of.page_answered(page, outcome.validators, now, chance, digest=digest)
        if text == page.text_digest:
            self._note(row)
        else:
            self._take(page, None if isinstance(got, Refusal) else got, text, row)

    def _canonical(self, got: Acquired) -> str:
        """Digest of what the page says; of its bytes where telling would cost a whole parse."""
        if got.media_type not in _COMPARED_AS_TEXT or got.size_bytes > _MAX_COMPARED_BYTES:
            return got.digest
        parsed = self._caps.parse(got.data, got.media_type, got.name)
        return got.digest if isinstance(parsed, Refusal) else content_hash(parsed.body)

    def _take(
        self, page: WatchedPage, got: Acquired | None, text: str, row: dict[str, Any]
    ) -> None:
        """Hand the document to the line, in one transaction with what the page is now.

        What no document can be made of the line fetches itself, and says why not.
        """
        uri = page.url if got is None else stored_uri(page.scope, got.digest, got.name)
        request = IngestRequest(
            scope=page.scope,
            source=Source(SourceKind.URL, uri, page.url),
            document_id=page.document_id,
            audiences=tuple(page.audiences),
            language=page.language,
            actor=_actor(page),
            # A document that the page did not bring may be for others than the watch's readers.
            readers=tuple(page.audiences) if page.document_id is None else None,
        )
        with self._caps.database.transaction("pipeline") as conn:
            try:
                key = register(conn, request, self._line.languages)
            except (InputError, PolicyError) as error:
                # Closed scopes and watches of an older release; no other page waits for them.
                self._refuse(conn, row, str(error))
                return
            document = documents.load_one(conn, key)
            if document.state in GONE:
                self._refuse(
                    conn, row, f"The document was {document.state} by somebody; it stays so."
                )
                return
            if got is not None:
                self._caps.blobs(page.scope).put(got.data)
            documents.reopen(conn, document)
            watches.save_pages(conn, [row])
            watches.save_change(
                conn,
                {
                    "page_key": page.page_key,
                    "document_id": key.document_id,
                    "text_digest": text,
                    "now": row["now"],
                },
            )
        self._report.keys[key] = None
        self._report.counts["changed"] += 1

    def _refuse(self, conn: Conn, row: dict[str, Any], reason: str) -> None:
        """The page was read and brings nothing; it is looked at anew as if it never had been."""
        row["reason"], row["digest"] = reason, None
        watches.save_pages(conn, [row])
        self._report.counts["refused"] += 1

    def _remove(self, page: WatchedPage, row: dict[str, Any], reason: str) -> None:
        """Take a missing page's document out of search, unless somebody did already.

        That it was us is written first, since it decides whether the page may bring it back.
        """
        document = self._document(page)
        is_ours = document is not None and (document.state not in GONE or page.state == "removed")
        if document is None or not is_ours:
            self._note(row | {"state": "missing"})
            return
        self._note(row)
        self._write()
        if document.state not in GONE:
            decided = removal.remove(self._caps, document.key, actor=_actor(page), reason=reason)
            self._report.keys |= dict.fromkeys(decided.to_run)

    def _restore(self, page: WatchedPage) -> None:
        document = self._document(page)
        if document is not None and document.state == DocumentState.REMOVED:
            reason = "Its page answers again."
            decided = removal.restore(self._caps, document.key, actor=_actor(page), reason=reason)
            self._report.keys |= dict.fromkeys(decided.to_run)

    def _document(self, page: WatchedPage) -> DocumentRow | None:
        if page.document_id is None:
            return None
        rows = self._line.rows([DocumentKey(page.scope, page.document_id)])
        return rows[0] if rows else None

    def _listing(self, answer: ListingAnswer) -> None:
        listed, outcome = answer.listed, answer.outcome
        now, chance = self._options.clock(), self._options.chance
        with self._caps.database.transaction("pipeline") as conn:
            if isinstance(outcome, FetchRefusal):
                row = outcome_of.listing_row(listed, now, chance, refusal=outcome)
                watches.save_listing(conn, row)
                self._report.counts["failing" if outcome.retryable else "refused"] += 1
                return
            reason, validators = "", outcome.validators
            if answer.listing is not None:
                found = answer.listing
                pages = [(p.url, read_url(p.url).origin, p.changed) for p in found.pages]
                before = watches.count_pages(conn, listed.watch_id)
                watches.add_pages(conn, listed.watch_id, listed.scope_id, pages, now)
                added = watches.count_pages(conn, listed.watch_id) - before
                self._report.counts["listed"] += added
                if found.passed_over:
                    reason = f"{found.passed_over} entries are other sites' or not to be fetched."
                if found.kind == "sitemapindex":
                    # Its own date says nothing about the sitemaps that it names.
                    validators = type(validators)(validators.url)
            row = outcome_of.listing_row(listed, now, chance, validators=validators, reason=reason)
            watches.save_listing(conn, row)

    def _host(self, answer: HostAnswer) -> None:
        left_pages = [item.page_key for item in answer.left if isinstance(item, WatchedPage)]
        left_watches = [item.watch_id for item in answer.left if not isinstance(item, WatchedPage)]
        self._report.left += len(answer.left)
        with self._caps.database.transaction("pipeline") as conn:
            now = self._options.clock()
            if answer.robots is not None:
                until = now + timedelta(seconds=answer.robots.keep_s)
                watches.save_robots(conn, answer.host, answer.robots.text, until)
            watches.give_back(conn, left_pages, left_watches, now)
            watches.release_host(conn, answer.host, answer.busy_until)

    def _note(self, row: dict[str, Any]) -> None:
        self._report.counts["unchanged" if row["state"] == "current" else row["state"]] += 1
        self._rows.append(row)

    def _write(self) -> None:
        if self._rows:
            with self._caps.database.transaction("pipeline") as conn:
                watches.save_pages(conn, self._rows)
            self._rows = []


def _actor(page: WatchedPage) -> str:
    return f"watch:{page.watch_id}"
