"""What a step does about documents that broke: retry, or fail the run at the end naming them.

Belongs here: turning errors into Dagster's. A verdict is a value and never comes here; a hand
launch of a single document that was refused does, so that it leaves a red run.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from kb_resources.bindings.metadata import table
from kb_resources.errors import KbError
from kb_resources.model import AnyStage, DocumentKey, StageReport

MAX_RETRIES = 2
WAIT_S = 10.0


def retry_where_it_may_help(
    context: dg.OpExecutionContext, broken: Sequence[tuple[DocumentKey | None, Exception]]
) -> None:
    """Ask for another try of a step; call it before `done` lets the next step begin.

    The next step would otherwise go on without the documents that this try is for, and leave them.

    Raises:
        RetryRequested: every error may pass by itself, and tries are left.
    """
    passing = all(isinstance(error, KbError) and error.retryable for _, error in broken)
    if broken and passing and context.retry_number < MAX_RETRIES:
        raise dg.RetryRequested(max_retries=MAX_RETRIES, seconds_to_wait=WAIT_S)


def raise_for(
    stage: AnyStage,
    broken: Sequence[tuple[DocumentKey | None, Exception]],
    refused: Sequence[StageReport],
) -> None:
    """Raise if the step cannot count as done.

    Args:
        stage: which stage.
        broken: documents with their errors; None as key where the whole step broke off.
        refused: refusals that should fail the run.

    Raises:
        Failure: naming the documents.
    """
    if broken:
        raise dg.Failure(
            f"{stage.value}: {len(broken)} broke: {_names(broken)}",
            metadata={"broken": _table(broken)},
            allow_retries=False,
        ) from broken[0][1]
    if refused:
        raise dg.Failure(
            f"{stage.value} refused {refused[0].scope}:{refused[0].document_id}. "
            f"{refused[0].reason}",
            allow_retries=False,
        )


def _names(broken: Sequence[tuple[DocumentKey | None, Exception]]) -> str:
    names = [str(key) if key else "the step itself" for key, _ in broken]
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more


def _table(broken: Sequence[tuple[DocumentKey | None, Exception]]) -> dg.TableMetadataValue:
    return table(
        dict.fromkeys(("document", "error", "what", "do"), "string"),
        (
            {
                "document": str(key) if key else "—",
                "error": _code(error),
                "what": str(error)[:500],
                "do": _next_step(error),
            }
            for key, error in broken
        ),
    )


def _code(error: Exception) -> str:
    return error.code if isinstance(error, KbError) else type(error).__name__


def _next_step(error: Exception) -> str:
    if isinstance(error, KbError) and error.next_step:
        return error.next_step
    return "Look at the step's log; then launch kb_batch with where: failed."
