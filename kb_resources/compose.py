"""The composition root: builds database, line and retriever from settings.

Belongs here: which concrete part stands behind which capability, and what starts lazily. What does
not: any decision about documents. Nobody below this module reads settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from kb_resources import lexical
from kb_resources.compose_models import Model, Shelf, open_reranker
from kb_resources.compose_parsing import open_parser, parse_destination, parse_options
from kb_resources.errors import PolicyError, UnavailableError
from kb_resources.model import Chunk, HiddenText, ParsedDocument, Refusal
from kb_resources.store.migrate import migrate, pending
from kb_resources.store.passages import LexicalRow
from kb_resources.store.pool import Database, Timeouts

if TYPE_CHECKING:
    from kb_resources.acquire import Acquired, BlobStore, Fetcher, FetchPolicy
    from kb_resources.answer.disclosure import Destination
    from kb_resources.language import DefaultDetector, Detection
    from kb_resources.retrieve import Retriever
    from kb_resources.scan import Scanner, ScanResult, SecondOpinion, ShownText
    from kb_resources.settings import Settings
    from kb_resources.stages.line import Line
    from kb_resources.store.scopes import ScopeSettings
    from kb_resources.store.server import EmbeddedServer

DEFAULT_CHUNKS = 10_000
CONNECTIONS = 8
"""Connections per role at most, unless a process with more threads asks for more."""
PIPELINE_TIMEOUTS = Timeouts(statement_s=600.0, lock_s=60.0, idle_s=3600.0)


def embedded_server(settings: Settings) -> EmbeddedServer:
    """The embedded PostgreSQL of this installation, started or not."""
    from kb_resources.store.server import EmbeddedServer

    return EmbeddedServer(settings.home / "postgres", account=settings.pg_user)


def own_server(settings: Settings) -> bool:
    """Whether the database is the operator's, by whichever role's connection it is reached."""
    return bool(
        settings.database_url or settings.pipeline_database_url or settings.app_database_url
    )


def _connect(
    settings: Settings, timeouts: Timeouts | None = None, max_size: int = CONNECTIONS
) -> Database:
    if own_server(settings):
        return Database.external(
            settings.database_url,
            pipeline_dsn=settings.pipeline_database_url,
            app_dsn=settings.app_database_url,
            timeouts=timeouts,
            max_size=max_size,
        )
    server = embedded_server(settings)
    server.start()
    return Database.embedded(server, timeouts=timeouts, max_size=max_size)


def owner_dsn(settings: Settings) -> str:
    """Connection string of the schema's owner; the embedded server is started for it.

    Raises:
        PolicyError: on the operator's server this process holds other roles only.
        UnavailableError: the embedded server does not start.
    """
    if own_server(settings):
        if not settings.database_url:
            raise PolicyError(
                "This process has no connection as the owner role.",
                next_step="Do this where KB_DATABASE_URL is set.",
                code="role_not_held",
            )
        return settings.database_url
    server = embedded_server(settings)
    server.start()
    return server.dsn("owner")


def migrate_database(settings: Settings) -> list[str]:
    """Apply missing migrations; returns their names.

    Raises:
        UnavailableError: the database is away.
        IntegrityError: an applied migration was changed.
    """
    return [migration.label for migration in migrate(owner_dsn(settings))]


@contextmanager
def open_database(
    settings: Settings, *, timeouts: Timeouts | None = None, max_size: int = CONNECTIONS
) -> Iterator[Database]:
    """The database with an up-to-date schema.

    The embedded server is started and left running. On your own server migrations are applied
    only by those who hold the owner's connection.
    """
    _bring_up_to_date(settings)
    database = _connect(settings, timeouts, max_size)
    try:
        yield database
    finally:
        database.close()


def fetch_policy(settings: Settings) -> FetchPolicy:
    """What may be fetched from the web, and within which limits."""
    from kb_resources.acquire import FetchPolicy

    return FetchPolicy(
        allow_hosts=frozenset(settings.fetch_allow_hosts),
        https_only=settings.fetch_https_only,
        max_bytes=settings.max_bytes,
        timeout_s=settings.fetch_timeout_s,
        ca_file=settings.fetch_ca_file,
    )


def _bring_up_to_date(settings: Settings) -> None:
    if settings.database_url or not own_server(settings):
        if pending(owner_dsn(settings)):
            migrate_database(settings)
    elif missing := pending(settings.pipeline_database_url or settings.app_database_url):
        raise UnavailableError(
            f"The database lacks {len(missing)} migrations of this release.",
            next_step="Run kb db migrate where KB_DATABASE_URL, the owner's connection, is set.",
            code="schema_older",
        )


def lexical_row(chunk: Chunk, language: str) -> LexicalRow:
    """Lexemes of one chunk, its context included."""
    found = lexical.analyze(chunk.text, language, context=chunk.context)
    return LexicalRow(chunk.ordinal, found.terms, found.length, lexical.ANALYZER_VERSION)


@contextmanager
def open_line(
    settings: Settings,
    *,
    actor: str = "pipeline",
    counters: dict[str, int] | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[Line]:
    """The ingestion line over the real capabilities.

    Args:
        settings: of this installation.
        actor: who the lifecycle log names.
        counters: filled with how often each kind of work was done.
        clock: aware UTC now.

    Raises:
        UnavailableError: database, model package or disk is away.
    """
    from kb_resources.acquire import open_blob_store, read_file, stored
    from kb_resources.chunk import CHUNKER_VERSION, ChunkOptions, counting_warning
    from kb_resources.compose_generate import asked_names, asking
    from kb_resources.language import DETECTOR_VERSION, language_gate
    from kb_resources.parse import parser_version
    from kb_resources.scan import SCANNER_VERSION, pack_version
    from kb_resources.stages.capabilities import Capabilities, LineVersions
    from kb_resources.stages.line import Line

    model = Model(settings)
    shelf = Shelf(settings, model)
    options = ChunkOptions(max_tokens=min(settings.chunk_tokens, model.identity.max_tokens))
    lazy = _Lazy(settings)
    asked = asking(settings)

    def chunk(
        document: ParsedDocument, document_id: str, scope: ScopeSettings, model_id: str
    ) -> tuple[Chunk, ...]:
        from kb_resources.chunk import chunk_document

        wanted = scope.chunk_options(options)
        limit = min(wanted.max_tokens, shelf.identity(model_id).max_tokens)
        return chunk_document(
            document,
            document_id=document_id,
            counter=shelf.counter(model_id),
            options=replace(wanted, max_tokens=limit),
        )

    def blobs(scope: str) -> BlobStore:
        return open_blob_store(f"{settings.blob_location.rstrip('/')}/{scope}")

    def read(uri: str) -> Acquired | Refusal:
        if uri.startswith(stored.SCHEME):
            return stored.read_stored(uri, blobs, max_bytes=settings.max_bytes)
        if uri.startswith(("http://", "https://")):
            from kb_resources.acquire import read_address

            return read_address(lazy.fetcher, uri, max_bytes=settings.max_bytes)
        return read_file(uri, max_bytes=settings.max_bytes)

    def admit(detection: Detection, allowed: Sequence[str]) -> str | Refusal:
        return language_gate(detection, allowed or settings.languages)

    with (
        open_parser(settings) as parser,
        open_database(settings, timeouts=PIPELINE_TIMEOUTS) as database,
    ):
        capabilities = Capabilities(
            database=database,
            blobs=blobs,
            read=read,
            parse=parser,
            detect=lazy.detect,
            admit=admit,
            scan=lazy.scan,
            second_opinion=second_opinion(settings, counters),
            second_opinion_at=opinion_destination(settings),
            parse_at=parse_destination(settings),
            chunk=chunk,
            embedder=lambda: model.embedder,
            models=shelf,
            lexical=lexical_row,
            versions=LineVersions(
                parser=parser_version(parse_options(settings)),
                detector=DETECTOR_VERSION,
                rule_pack=f"{pack_version()}/{SCANNER_VERSION}",
                chunker=f"{CHUNKER_VERSION}/{options}/{model.identity.model_id}"
                + (f"/{settings.max_chunks}" if settings.max_chunks != DEFAULT_CHUNKS else ""),
                model_id=model.identity.model_id,
                dimensions=model.identity.dimensions,
                analyzer=lexical.ANALYZER_VERSION,
                **asked_names(asked),
            ),
            clock=clock,
            actor=actor,
            counters=counters,
            open_fetcher=lambda: lazy.fetcher,
            counting_warning=lambda: counting_warning(shelf.counter(model.identity.model_id)),
            max_chunks=settings.max_chunks,
            embed_hosting=settings.embed_hosting,
            asking=asked,
        )
        yield Line(capabilities, settings.languages)


class _Lazy:
    """Detector, scanner and fetcher, loaded with the first document that needs them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def fetcher(self) -> Fetcher:
        from kb_resources.acquire import Fetcher

        return Fetcher(fetch_policy(self._settings))

    @cached_property
    def detector(self) -> DefaultDetector:
        from kb_resources.language import DefaultDetector

        return DefaultDetector()

    @cached_property
    def scanner(self) -> Scanner:
        from kb_resources.scan import Scanner, default_packs

        return Scanner(default_packs())

    def detect(self, text: str) -> Detection:
        return self.detector.detect(text)

    def scan(
        self,
        raw_text: str,
        hidden: Sequence[HiddenText],
        *,
        shown: Sequence[ShownText],
        language: str | None,
        trusted: bool,
    ) -> ScanResult:
        return self.scanner.scan(raw_text, hidden, shown=shown, language=language, trusted=trusted)


def open_retriever(settings: Settings, database: Database) -> Retriever:
    """The reading side's search; the model loads with the first query that needs it."""
    from kb_resources.compose_answers import open_expander, question_gate, question_key
    from kb_resources.retrieve import Retriever
    from kb_resources.retrieve.log import RetrievalLog

    model = Model(settings)
    return Retriever(
        database,
        embedder=lambda: model.embedder,
        other_models=Shelf(settings, model).embedder,
        expander=open_expander(settings),
        reranker=open_reranker(settings),
        log=RetrievalLog(question_key(settings)),
        gate=question_gate(settings, database),
    )


def opinion_destination(settings: Settings) -> Destination | None:
    """Where clean documents are sent for a second opinion; None where nowhere."""
    if not settings.scan_opinion_url:
        return None
    from kb_resources.answer.disclosure import Destination

    return Destination(
        settings.scan_opinion_url, settings.scan_opinion_model, settings.scan_opinion_hosting
    )


def second_opinion(
    settings: Settings, counters: dict[str, int] | None = None
) -> SecondOpinion | None:
    """The model that is asked about documents the rules found clean; None where none is set.

    Args:
        settings: of the installation.
        counters: where its tokens are counted, as the endpoint says them.

    Raises:
        InputError: the settings of its endpoint do not fit.
    """
    if not settings.scan_opinion_url:
        return None
    from kb_resources.answer.endpoint import ChatEndpoint, chat_transport
    from kb_resources.answer.prompt import Message
    from kb_resources.embed.remote.transport import Retry
    from kb_resources.errors import InputError
    from kb_resources.scan import SecondOpinion
    from kb_resources.stages.capabilities import TOKENS

    if not settings.scan_opinion_model:
        raise InputError(
            "No model is named for second opinions.", next_step="Set KB_SCAN_OPINION_MODEL."
        )
    endpoint = ChatEndpoint(
        settings.scan_opinion_url,
        settings.scan_opinion_model,
        chat_transport(
            settings.scan_opinion_key, settings.scan_opinion_timeout_s, Retry(attempts=1)
        ),
    )

    def complete(system: str, user: str) -> str:
        reply = endpoint.complete([Message("system", system), Message("user", user)])
        if counters is not None:
            name = f"{TOKENS}{endpoint.name}"
            spent = (reply.prompt_tokens or 0) + (reply.answer_tokens or 0)
            counters[name] = counters.get(name, 0) + spent
        return reply.text

    return SecondOpinion(endpoint.name, complete)
