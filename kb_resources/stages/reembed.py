"""Re-embedding a scope without a gap: start, fill, look, swap, go back, drop.

Belongs here: the decisions. What does not: what is told before them (`reembed_view`), vectors
(`fill`), measuring quality (`swap_quality`), rows (`store.generations`). Search uses the live
generation throughout; the swap is one update of one row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kb_resources.errors import ConflictError, PolicyError
from kb_resources.stages import fill, swap_quality
from kb_resources.stages.capabilities import Capabilities
from kb_resources.stages.reembed_view import held_by
from kb_resources.stages.swap_quality import Quality
from kb_resources.stages.swap_ready import no_shadow, require_complete, require_index
from kb_resources.store import generations, scopes, vectors
from kb_resources.store.documents import Conn
from kb_resources.store.generations import Generation


@dataclass(frozen=True, slots=True)
class Swapped:
    """A swap or a rollback that happened.

    Attributes:
        scope: its name.
        live: identity of the model it is searched by now.
        beside: identity of the model before.
        missing: passages without a vector by the live model, which were accepted.
        quality: what was measured before; None where it was not.
    """

    scope: str
    live: str
    beside: str
    missing: int
    quality: Quality | None = None


def start(caps: Capabilities, scope: str, model: str, *, actor: str) -> Generation:
    """Begin to fill a shadow generation; documents ingested from now on get both vectors.

    Raises:
        NotFound: no such scope or model.
        PolicyError: the scope has no vectors, is searched by that model already, or another one
            lies beside.
        UnavailableError: the model can't be had.
    """
    identity = caps.models.resolve(model)
    with caps.database.transaction("pipeline") as conn:
        held = held_by(conn, scope)
        key = vectors.ensure_model(conn, identity.model_id, identity.dimensions)
        if held.live_key == key:
            raise PolicyError(
                f"{scope!r} is searched by {identity.model_id} already.",
                next_step="Nothing needs to be done.",
                code="already_live",
            )
        if (held.beside_key, held.beside_is) != (key, "shadow"):
            if not generations.start(conn, held.scope_id, key):
                kept = held.beside_key == key
                raise PolicyError(
                    f"Vectors of {held.beside} lie beside the live ones of {scope!r}.",
                    next_step=f"Go back to them: kb reembed rollback --scope {scope}."
                    if kept
                    else f"Drop them first: kb reembed drop --scope {scope}.",
                    code="generation_beside",
                )
            details = {"from": held.live, "to": identity.model_id}
            scopes.log(conn, scope, "reembed_started", actor=actor, details=details)
        return held_by(conn, scope)


def fill_scope(
    caps: Capabilities,
    scope: str,
    *,
    limit: int | None = None,
    batch: int = fill.BATCH_TEXTS,
    should_stop: Callable[[], bool] = lambda: False,
    seen: Callable[[fill.Filled], None] = lambda _: None,
) -> fill.Filled:
    """Fill what lies beside, and gaps of the live generation before it.

    Args:
        caps: of the line.
        scope: its name.
        limit: documents to look at, at most; None: all.
        batch: texts that go to the model together.
        should_stop: asked between batches.
        seen: told after each batch.

    Raises:
        NotFound: no such scope.
        PolicyError: the scope has no vectors at all.
        UnavailableError: a model or the database is away.
    """
    with caps.database.transaction("pipeline") as conn:
        held = held_by(conn, scope)
        gaps = generations.unfilled(conn, held.scope_id, held.live_key, limit=1)
    done = fill.Filled()
    targets = [(held.live, held.live_key)] if gaps else []
    if held.beside and held.beside_key:
        targets.append((held.beside, held.beside_key))
    for model_id, model_key in targets:
        made = fill.fill(
            caps,
            fill.Target(scope, held.scope_id, model_id, model_key),
            limit=limit,
            batch=batch,
            should_stop=should_stop,
            seen=seen,
        )
        done.add(made)
        if done.stopped:
            break
    return done


def retry(caps: Capabilities, scope: str) -> int:
    """Let documents that were given up be tried again; returns how many."""
    with caps.database.transaction("pipeline") as conn:
        held = held_by(conn, scope)
        keys = [key for key in (held.live_key, held.beside_key) if key is not None]
        return sum(generations.retry(conn, held.scope_id, key) for key in keys)


def measure(caps: Capabilities, scope: str, *, folder: Path | None = None) -> Quality:
    """Compare the shadow with the live generation; see `swap_quality`.

    Args:
        caps: of the line.
        scope: its name.
        folder: of files with labelled questions.

    Raises:
        PolicyError: no shadow is being filled.
    """
    with caps.database.transaction("pipeline") as conn:
        held = held_by(conn, scope)
    if held.beside_is != "shadow":
        raise no_shadow(scope)
    return swap_quality.measure(caps, held, folder)


def measure_full(caps: Capabilities, *, folder: Path | None = None) -> dict[str, Quality]:
    """`measure` of every open scope whose shadow lacks nothing, by name of the scope."""
    with caps.database.transaction("pipeline") as conn:
        full = [
            held
            for held in generations.all_of(conn)
            if held.beside_is == "shadow"
            and held.closed_at is None
            and not generations.progress(conn, held.scope_id, held.beside_key or 0).missing
        ]
    return {held.scope: swap_quality.measure(caps, held, folder) for held in full}


def swap(
    caps: Capabilities,
    scope: str,
    *,
    actor: str,
    accept_missing: int = 0,
    folder: Path | None = None,
) -> Swapped:
    """Search a scope by its shadow from now on; the generation before is kept beside.

    Args:
        caps: of the line.
        scope: its name.
        actor: who decides.
        accept_missing: how many passages without a vector are accepted, at most.
        folder: of files with labelled questions.

    Raises:
        NotFound: no such scope.
        PolicyError: no shadow is being filled, it is not complete, its quality does not hold, or
            the scope is large and the shadow has no vector index yet.
        ConflictError: another model's vectors lie beside since its quality was measured.
    """
    with caps.database.transaction("pipeline") as conn:
        held = held_by(conn, scope)
        if held.beside_is != "shadow":
            raise no_shadow(scope)
        require_complete(conn, held, accept_missing)
    measured = held.beside_key
    quality = swap_quality.measure(caps, held, folder)
    if quality.problems:
        raise PolicyError(
            f"The shadow of {scope!r} is not as good as what it would replace: "
            f"{'; '.join(quality.problems)}.",
            next_step="Look at kb reembed check, fill what is missing, or drop the shadow.",
            code="quality_gate",
        )
    with caps.database.transaction("pipeline") as conn:
        generations.lock(conn, held_by(conn, scope).scope_id)
        held = held_by(conn, scope)
        if held.beside_is != "shadow":
            raise no_shadow(scope)
        if held.beside_key != measured:
            raise ConflictError(
                f"{held.beside} lies beside the live vectors of {scope!r} now, not what was "
                "measured.",
                next_step="Look at kb reembed status, then swap again.",
            )
        missing = require_complete(conn, held, accept_missing)
        require_index(conn, held)
        return _turn(conn, held, "kept", "reembed_swapped", actor, missing, quality)


def roll_back(caps: Capabilities, scope: str, *, actor: str, accept_missing: int = 0) -> Swapped:
    """Search a scope by the kept generation again; what was live becomes the shadow.

    Args:
        caps: of the line.
        scope: its name.
        actor: who decides.
        accept_missing: how many passages published since the swap may be without a vector of the
            kept generation.

    Raises:
        NotFound: no such scope.
        PolicyError: nothing is kept, or it lacks more passages.
    """
    with caps.database.transaction("pipeline") as conn:
        generations.lock(conn, held_by(conn, scope).scope_id)
        held = held_by(conn, scope)
        if held.beside_is != "kept":
            raise PolicyError(
                f"Nothing is kept of {scope!r} to go back to.",
                next_step="Look at kb reembed status.",
                code="nothing_kept",
            )
        missing = require_complete(conn, held, accept_missing)
        return _turn(conn, held, "shadow", "reembed_rolled_back", actor, missing, None)


def drop(caps: Capabilities, scope: str, *, actor: str) -> int:
    """Give up what lies beside, and delete its vectors; returns how many.

    What a drop that was cut off left behind goes too.
    """
    with caps.database.transaction("pipeline") as conn:
        generations.lock(conn, held_by(conn, scope).scope_id)
        held = held_by(conn, scope)
        if generations.leave(conn, held.scope_id):
            details = {"model": held.beside, "was": held.beside_is}
            scopes.log(conn, scope, "reembed_dropped", actor=actor, details=details)
    deleted = 0
    while True:
        with caps.database.transaction("pipeline") as conn:
            batch = generations.delete_others(conn, held.scope_id)
        deleted += batch
        if not batch:
            return deleted


def start_where_wanted(caps: Capabilities, *, actor: str) -> list[str]:
    """Begin a shadow in every open scope that is searched by another model than is set.

    Returns:
        Names of the scopes. Those with something beside already are left as they are.
    """
    wanted = caps.versions.model_id
    with caps.database.transaction("pipeline") as conn:
        found = generations.all_of(conn)
    begun = []
    for held in found:
        if held.live != wanted and held.beside is None and held.closed_at is None:
            start(caps, held.scope, wanted, actor=actor)
            begun.append(held.scope)
    return begun


def _turn(
    conn: Conn,
    held: Generation,
    left_as: generations.Beside,
    event: str,
    actor: str,
    missing: int,
    quality: Quality | None,
) -> Swapped:
    if held.beside is None or held.beside_key is None:
        raise no_shadow(held.scope)
    if not generations.turn(conn, held.scope_id, held.beside_key, left_as=left_as):
        raise ConflictError(f"The generations of {held.scope!r} were changed meanwhile.")
    details = {"from": held.live, "to": held.beside, "missing": missing}
    if quality is not None and quality.live_here:
        details |= {"overlap": round(quality.overlap, 4), "recall": round(quality.recall, 4)}
    scopes.log(conn, held.scope, event, actor=actor, details=details)
    return Swapped(held.scope, held.beside, held.live, missing, quality)
