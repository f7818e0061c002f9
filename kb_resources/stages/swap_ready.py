"""What a swap or a rollback is refused for, quality apart: passages or an index that are missing.

Belongs here: the refusals and what to do about them. What does not: measuring (`swap_quality`).
"""

from __future__ import annotations

from kb_resources.errors import PolicyError
from kb_resources.store import ann, generations
from kb_resources.store.documents import Conn
from kb_resources.store.generations import Generation


def require_complete(conn: Conn, held: Generation, accepted: int) -> int:
    """How many passages the one beside lacks; PolicyError where that is more than accepted."""
    found = generations.progress(conn, held.scope_id, held.beside_key or 0)
    if found.missing <= accepted:
        return found.missing
    failed = generations.failed(conn, held.scope_id, held.beside_key or 0, limit=3)
    named = "".join(f" {each.document_id}: {each.error}" for each in failed)
    raise PolicyError(
        f"{found.missing} of {found.passages} passages of {held.scope!r} have no vector by "
        f"{held.beside}.{named}",
        next_step=f"Run kb reembed fill --scope {held.scope}"
        + (" --retry-failed" if failed else "")
        + f", or accept that meaning does not find them: --accept-missing {found.missing}.",
        code="generation_incomplete",
    )


def require_index(conn: Conn, held: Generation) -> None:
    """PolicyError where the live vectors have an index and those beside have none."""
    if generations.has_index(conn, held.scope_id, held.live_key) and not generations.has_index(
        conn, held.scope_id, held.beside_key or 0
    ):
        raise PolicyError(
            f"The live vectors of {held.scope!r} have an index, those of the shadow have none: "
            f"searches would slow down ({ann.LIMIT:,} vectors and more).",
            next_step="Run kb db indexes first.",
            code="index_missing",
        )


def no_shadow(scope: str) -> PolicyError:
    """The error where no shadow is being filled."""
    return PolicyError(
        f"No other model's vectors are being filled for {scope!r}.",
        next_step=f"Begin with kb reembed start --scope {scope} --model NAME.",
        code="no_shadow",
    )
