"""Embedding models: the composition root's part for those that embed.

Belongs here: the installation's own model, and those that scopes are searched by or re-embedded
with, each loaded once when first needed. What does not: choosing one.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING

from kb_resources import embed

if TYPE_CHECKING:
    from kb_resources.chunk import TokenCounter
    from kb_resources.embed import Embedder, ModelIdentity, OnnxEmbedder
    from kb_resources.embed.cross_encoder import CrossEncoder
    from kb_resources.embed.remote import HttpTransport, RemoteEmbedder
    from kb_resources.retrieve.reranking import Reranker
    from kb_resources.settings import Settings


def open_reranker(settings: Settings) -> Reranker | None:
    """What orders hits by a cross-encoder, not loaded yet; None where no folder is set."""
    if settings.reranker is None:
        return None
    from kb_resources.retrieve.reranking import Reranker

    folder = settings.reranker

    def load() -> CrossEncoder:
        from kb_resources.embed.cross_encoder import CrossEncoder

        return CrossEncoder.open(folder)

    return Reranker(load, time_limit_s=settings.rerank_timeout_s, depth=settings.rerank_candidates)


def embedding_transport(settings: Settings) -> HttpTransport | None:
    """What asks embedding endpoints, each with its own key and headers; None: a plain one."""
    if not settings.embed_keys and not settings.embed_headers:
        return None
    from urllib.parse import unquote

    from kb_resources.embed.remote import HttpTransport

    by_host: dict[str, dict[str, str]] = {}
    for part in settings.embed_keys:
        host, _, key = part.partition("=")
        by_host.setdefault(host.lower(), {})["Authorization"] = f"Bearer {unquote(key)}"
    for part in settings.embed_headers:
        host, _, header = part.partition("=")
        name, _, value = header.partition(":")
        by_host.setdefault(host.lower(), {})[name] = unquote(value).strip()
    return HttpTransport(by_host=by_host)


class Model:
    """The configured embedding model; prepared and loaded when first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._guard = threading.Lock()
        self._embedder: OnnxEmbedder | RemoteEmbedder | None = None

    @cached_property
    def identity(self) -> ModelIdentity:
        """Read from the manifest alone, without loading the model."""
        return embed.prepare(self._settings.models_path, self._settings.model).identity

    @property
    def embedder(self) -> OnnxEmbedder | RemoteEmbedder:
        """Loaded once, with its golden vectors or canary texts checked."""
        with self._guard:
            if self._embedder is None:
                _ = self.identity
                self._embedder = embed.load(
                    self._settings.models_path,
                    self._settings.model,
                    threads=self._settings.embed_threads,
                    transport=embedding_transport(self._settings),
                )
            return self._embedder


class Shelf:
    """Models on this machine by identity; implements `stages.capabilities.Models`."""

    def __init__(self, settings: Settings, own: Model) -> None:
        self._settings = settings
        self._own = own
        self._guard = threading.Lock()
        self._loaded: dict[str, Embedder] = {}

    def identity(self, model_id: str) -> ModelIdentity:
        """What is known of a build without loading it; UnavailableError where it is not here."""
        if model_id == self._own.identity.model_id:
            return self._own.identity
        return embed.identity_of_build(self._settings.models_path, model_id)

    def embedder(self, model_id: str) -> Embedder:
        """The build, loaded with the first call; UnavailableError where it is not here."""
        with self._guard:
            if model_id == self._own.identity.model_id:
                return self._own.embedder
            if model_id not in self._loaded:
                self._loaded[model_id] = embed.open_build(
                    self._settings.models_path,
                    model_id,
                    self._settings.embed_threads,
                    transport=embedding_transport(self._settings),
                )
            return self._loaded[model_id]

    def counter(self, model_id: str) -> TokenCounter:
        """The model's own tokenizer; an estimate only for endpoints, which lend none."""
        from kb_resources.chunk import EstimateCounter
        from kb_resources.embed.hashing import HashingEmbedder

        found = self.embedder(model_id)
        if isinstance(found, embed.OnnxEmbedder):
            return found.tokenizer
        return found if isinstance(found, HashingEmbedder) else EstimateCounter()

    def price(self, model_id: str) -> tuple[float, str] | None:
        """What a million tokens cost by KB_PRICES, else by the registry, and the currency."""
        from kb_resources.stages.usage import Prices

        prices = Prices.read(self._settings.prices, self._settings.currency)
        if stated := prices.of_tokens(model_id, 1_000_000):
            return stated.amount, stated.currency
        listed = embed.find_model(model_id.partition("@")[0]).price_per_million
        return None if listed is None else (listed, "USD")

    def resolve(self, name: str) -> ModelIdentity:
        """A model by its registry name, prepared where it can be, or by its identity.

        Raises:
            NotFound: the registry has no such model.
            InputError, UnavailableError: it can't be prepared here, or is not here.
        """
        if "@" in name:
            return self.identity(name)
        return embed.prepare(self._settings.models_path, name).identity
