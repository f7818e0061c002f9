"""What a re-embedding would take, and where one stands.

Belongs here: the preview and the status, both read only. What does not: deciding (`reembed`).
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kb_resources.errors import InputError, PolicyError
from kb_resources.stages.capabilities import Capabilities
from kb_resources.store import documents, generations, vectors
from kb_resources.store.documents import Conn
from kb_resources.store.generations import FailedFill, Generation, Progress

if TYPE_CHECKING:
    from kb_resources.embed import Embedder

_PROBE = (
    "Leave that is not taken by the end of the calendar year is carried over until the end of "
    "March of the following year, unless the employer has given notice in time and in writing. "
) * 6
_PROBES = 4


@dataclass(frozen=True, slots=True)
class Preview:
    """What re-embedding a scope would take; nothing was changed for it.

    Attributes:
        scope: its name.
        live: identity of the model it is searched by.
        model_id: identity of the new one.
        passages: of the scope, history included.
        carried: passages that need no computing: they have a vector by the new model already, or
            share their text with another passage.
        texts: vectors to compute.
        tokens: of these texts, as the scope's chunker counted them.
        too_long: passages the new model would cut.
        tokens_per_s: measured just now on fixed texts; 0 where nothing is to be computed.
        minutes: for all texts at that speed.
        price: of all these tokens, by `KB_PRICES` or else the registry; None where neither says
            one, as for models on this machine.
        currency: of the price.
    """

    scope: str
    live: str
    model_id: str
    passages: int
    carried: int
    texts: int
    tokens: int
    too_long: int
    tokens_per_s: float
    minutes: float
    price: float | None
    currency: str

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Status:
    """Where a scope stands.

    Attributes:
        scope: its name.
        live: identity of the model it is searched by.
        live_missing: passages without a vector of it.
        wanted: identity of the model that the installation is set to.
        beside: identity of the model that lies beside, or None.
        beside_is: `shadow` or `kept`, or None.
        since: when the one beside got there.
        total: passages of the scope, history included.
        done: of these, with a vector by the model beside.
        failed: documents that were given up for it.
        eta_s: seconds until it is full at the speed so far; None where nothing was computed yet.
        next_step: what an operator does now; empty where nothing.
    """

    scope: str
    live: str
    live_missing: int
    wanted: str
    beside: str | None
    beside_is: str | None
    since: datetime | None
    total: int
    done: int
    failed: tuple[FailedFill, ...]
    eta_s: float | None
    next_step: str

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form; times as ISO 8601."""
        since = self.since.isoformat() if self.since else None
        return asdict(self) | {"since": since, "failed": [asdict(each) for each in self.failed]}


def preview(caps: Capabilities, scope: str, model: str) -> Preview:
    """What re-embedding a scope by a model would take.

    Args:
        caps: of the line.
        scope: its name.
        model: registry name, which is prepared, or identity.

    Raises:
        NotFound: no such scope or model.
        PolicyError: the scope has no vectors to be replaced.
        UnavailableError: the model can't be had.
    """
    identity = caps.models.resolve(model)
    with caps.database.transaction("pipeline") as conn:
        held = held_by(conn, scope)
        key = vectors.model_key(conn, identity.model_id) or 0
        found = generations.progress(conn, held.scope_id, key, max_tokens=identity.max_tokens)
    speed = _tokens_per_s(caps.embedder_of(identity.model_id)) if found.texts else 0.0
    per_million, currency = caps.models.price(identity.model_id) or (None, "")
    return Preview(
        scope=scope,
        live=held.live,
        model_id=identity.model_id,
        passages=found.passages,
        carried=found.passages - found.texts,
        texts=found.texts,
        tokens=found.tokens,
        too_long=found.too_long,
        tokens_per_s=speed,
        minutes=found.tokens / speed / 60 if speed else 0.0,
        price=None if per_million is None else found.tokens / 1e6 * per_million,
        currency=currency,
    )


def status(caps: Capabilities, scope: str | None = None) -> list[Status]:
    """Where scopes with vectors stand, by name; of one scope where it is named."""
    with caps.database.transaction("pipeline") as conn:
        if scope is not None:
            documents.get_scope(conn, scope)
        return [_status(caps, conn, held) for held in generations.all_of(conn, scope)]


def held_by(conn: Conn, scope: str) -> Generation:
    """The scope's generation.

    Raises:
        NotFound: no such scope.
        PolicyError: it has no vectors yet.
    """
    documents.get_scope(conn, scope)
    held = generations.of_scope(conn, scope)
    if held is None:
        raise PolicyError(
            f"{scope!r} has no vectors yet.",
            next_step="Its first documents are embedded by the model that KB_MODEL names.",
            code="no_generation",
        )
    return held


def _status(caps: Capabilities, conn: Conn, held: Generation) -> Status:
    live = generations.progress(conn, held.scope_id, held.live_key)
    beside = live
    failed: list[FailedFill] = []
    if held.beside_key is not None:
        beside = generations.progress(conn, held.scope_id, held.beside_key)
        failed = generations.failed(conn, held.scope_id, held.beside_key)
    speed = held.embedded / held.embedded_s if held.embedded_s else 0.0
    return Status(
        scope=held.scope,
        live=held.live,
        live_missing=live.missing,
        wanted=caps.versions.model_id,
        beside=held.beside,
        beside_is=held.beside_is,
        since=held.beside_since,
        total=live.passages,
        done=beside.done if held.beside else 0,
        failed=tuple(failed),
        eta_s=beside.texts / speed if speed and held.beside else None,
        next_step=_next_step(caps, held, live, beside, bool(failed)),
    )


def _next_step(
    caps: Capabilities, held: Generation, live: Progress, beside: Progress, failed: bool
) -> str:
    name = held.scope
    if held.beside_is == "kept":
        return f"Searched by the new model; drop the old one with kb reembed drop --scope {name}."
    if held.beside_is == "shadow" and beside.missing:
        again = " --retry-failed" if failed else ""
        return f"The nightly schedule fills it, or kb reembed fill --scope {name}{again}."
    if held.beside_is == "shadow":
        return f"Complete: kb reembed swap --scope {name}."
    if held.live != caps.versions.model_id:
        return (
            f"KB_MODEL is another model: kb reembed start --scope {name}; the nightly schedule "
            "begins by itself."
        )
    if live.missing:
        return f"Some passages have no vector: kb reembed fill --scope {name}."
    return ""


def _tokens_per_s(embedder: Embedder) -> float:
    """Speed on fixed texts, so that no text of a document leaves for it."""
    embedder.embed([_PROBE], "passage")
    started = time.perf_counter()
    found = embedder.embed_detailed([_PROBE] * _PROBES, "passage")
    spent = time.perf_counter() - started
    if found is None or spent <= 0:
        raise InputError("The model could not be measured.")
    return found.tokens / spent
