"""What the stages are handed: plain callables and objects, one per capability.

Belongs here: the shape of the bundle and the fingerprint of its configuration. What does not:
building it from settings (`build`). The bundle is the seam for tests: real parts by default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from kb_resources.model import (
    Chunk,
    HiddenText,
    ModelStage,
    ParsedDocument,
    Refusal,
    content_hash,
)

if TYPE_CHECKING:
    from kb_resources.acquire import Acquired, BlobStore, Fetcher
    from kb_resources.answer.disclosure import Destination
    from kb_resources.embed import Embedder, ModelIdentity
    from kb_resources.language import Detection
    from kb_resources.scan import ScanResult, SecondOpinion, ShownText
    from kb_resources.store.documents import DocumentRow
    from kb_resources.store.passages import LexicalRow
    from kb_resources.store.pool import Database
    from kb_resources.store.scopes import ScopeSettings

TOKENS = "tokens "
"""Counters that begin so count tokens that went to the model whose name follows."""


class Parse(Protocol):
    """The parser."""

    def __call__(
        self, data: bytes, media_type: str, name: str, *, here: bool = False
    ) -> ParsedDocument | Refusal:
        """Blocks, body and hidden texts; `here`: nothing may be sent to another machine."""
        ...


class Scan(Protocol):
    """The scanner."""

    def __call__(
        self,
        raw_text: str,
        hidden: Sequence[HiddenText],
        *,
        shown: Sequence[ShownText],
        language: str | None,
        trusted: bool,
    ) -> ScanResult:
        """Verdict and findings for one version: its raw extraction and what is shown with it."""
        ...


_Call = TypeVar("_Call")


@dataclass(frozen=True, slots=True)
class Asking(Generic[_Call]):
    """What a stage that asks a language model is handed.

    Attributes:
        name: model, prompt and thresholds: results of another name are made anew.
        at: where texts go.
        call: what asks (`generate.Converter`, `generate.Enricher`).
        price: money and its currency for tokens of the prompt and of the reply; None: no price.
    """

    name: str
    at: Destination
    call: _Call
    price: Callable[[int, int], tuple[float, str] | None] = lambda _prompt, _reply: None


class Models(Protocol):
    """Embedding models by identity, `name@fingerprint`; UnavailableError where one is not here."""

    def identity(self, model_id: str) -> ModelIdentity:
        """What is known of it without loading it."""
        ...

    def embedder(self, model_id: str) -> Embedder:
        """Loaded with the first call."""
        ...

    def price(self, model_id: str) -> tuple[float, str] | None:
        """What a million tokens cost and in which currency, None where nobody said."""
        ...

    def resolve(self, name: str) -> ModelIdentity:
        """A model by its name in the registry, which prepares it, or by its identity."""
        ...


@dataclass(frozen=True, slots=True)
class LineVersions:
    """Code versions and configuration of every stage: what a result was reached with."""

    parser: str
    detector: str
    rule_pack: str
    chunker: str
    model_id: str
    dimensions: int
    analyzer: str
    converter: str | None = None
    enricher: str | None = None

    def model_of(self, row: DocumentRow) -> str:
        """The model that a document is embedded with: the live one of its scope."""
        return row.live_model or self.model_id

    def chunker_of(self, row: DocumentRow) -> str:
        """The chunker with the model whose tokenizer counts for the document."""
        model = self.model_of(row)
        return self.chunker if model == self.model_id else f"{self.chunker}/{model}"

    def settled(self, row: DocumentRow, digest: str) -> str:
        """Fingerprint of a document's final state: its bytes and all that acts on them."""
        return fingerprint(
            digest,
            row.origin,
            self.parser,
            self.detector,
            self.rule_pack,
            self.chunker_of(row),
            self.model_of(row),
            self.analyzer,
            sorted(row.settings.get("languages", ())),
            row.language_hint,
            row.trusted_by,
            row.audiences,
            row.requested_valid_from,
            row.supersedes,
            *scope_chunking(row.settings),
            *(("models", self.converter, self.enricher) if self.converter or self.enricher else ()),
        )


@dataclass(frozen=True, slots=True)
class Capabilities:
    """All that the eight stages call.

    Heavy parts (parser pool, model) start on first use, so that a run with nothing to do
    starts neither.
    """

    database: Database
    blobs: Callable[[str], BlobStore]
    read: Callable[[str], Acquired | Refusal]
    parse: Parse
    detect: Callable[[str], Detection]
    admit: Callable[[Detection, Sequence[str]], str | Refusal]
    scan: Scan
    chunk: Callable[[ParsedDocument, str, ScopeSettings, str], tuple[Chunk, ...]]
    embedder: Callable[[], Embedder]
    models: Models
    lexical: Callable[[Chunk, str], LexicalRow]
    versions: LineVersions
    clock: Callable[[], datetime]
    actor: str = "pipeline"
    counters: dict[str, int] | None = None
    second_opinion: SecondOpinion | None = None
    second_opinion_at: Destination | None = None
    parse_at: Destination | None = None
    open_fetcher: Callable[[], Fetcher] | None = None
    counting_warning: Callable[[], str | None] = lambda: None
    max_chunks: int = 10_000
    embed_hosting: str = "auto"
    asking: Mapping[ModelStage, Asking[Any]] = field(default_factory=dict)

    @property
    def fetcher(self) -> Fetcher | None:
        """What fetches web pages, or None where this line fetches none."""
        return self.open_fetcher() if self.open_fetcher is not None else None

    def count(self, what: str, by: int = 1) -> None:
        """Count work done, for those who watch that none is (second runs)."""
        if self.counters is not None:
            self.counters[what] = self.counters.get(what, 0) + by

    def embedder_of(self, model_id: str) -> Embedder:
        """The model of an identity; `embedder` where it is the installation's own.

        Raises:
            UnavailableError: it is not on this machine.
        """
        own = model_id == self.versions.model_id
        return self.embedder() if own else self.models.embedder(model_id)

    def dimensions_of(self, model_id: str) -> int:
        """Length of its vectors; see `embedder_of`."""
        own = model_id == self.versions.model_id
        return self.versions.dimensions if own else self.models.identity(model_id).dimensions


def scope_chunking(settings: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """What a scope's settings say about cutting, empty where they leave it to the installation."""
    return tuple(
        (name, settings[name]) for name in ("chunk_preset", "chunk_tokens") if settings.get(name)
    )


def fingerprint(*parts: Any) -> str:
    """Hash of the parts, each told from its neighbours."""
    return content_hash("\x1e".join(repr(_plain(part)) for part in parts))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return sorted((key, _plain(item)) for key, item in value.items())
    if isinstance(value, datetime):
        return value.isoformat()
    return value
