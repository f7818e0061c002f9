"""One call to a language model for a document: decided, written down, sent, entered in the bill.

Belongs here: the order of these four, the same for convert and enrich. What does not: what is
asked (`generate`), the rule (`answer.disclosure`). The log's row is committed before anything is
sent, and the bill's names no document: both carry one correlation id.
"""

from __future__ import annotations

import time
from typing import Any

from kb_resources.embed.remote.whose import destination_of
from kb_resources.generate import Answer, Model, Request
from kb_resources.model import ModelStage
from kb_resources.retrieve.log import new_correlation_id
from kb_resources.stages import outward
from kb_resources.stages.capabilities import Asking, Capabilities
from kb_resources.store import model_calls
from kb_resources.store.documents import DocumentRow

BLOCKED = "disclosure_blocked"
"""Outcome for a document whose class keeps it from the model's machine."""


def ask(
    caps: Capabilities,
    row: DocumentRow,
    stage: ModelStage,
    asking: Asking[Any],
    model: Model,
    request: Request,
) -> Answer:
    """Ask about a document, or a section of one.

    Args:
        caps: of the line.
        row: the document, cleared.
        stage: who asks.
        asking: how, and where to.
        model: who is asked.
        request: what.

    Returns:
        The answer; its outcome is `disclosure_blocked` where the document may not go there.
    """
    correlation = new_correlation_id()
    if not outward.write_down(
        caps,
        row,
        asking.at,
        purpose=stage.value,
        digest=request.digest,
        size=request.size,
        correlation_id=correlation,
    ):
        return Answer(BLOCKED)
    caps.count(f"asked to {stage.value}")
    started = time.perf_counter()
    answer = model.ask(request)
    said = answer.said
    prompt, reply = (said.prompt_tokens, said.answer_tokens) if said else (None, None)
    money = asking.price(prompt or 0, reply or 0) if said else None
    with caps.database.transaction("pipeline") as conn:
        model_calls.add_call(
            conn,
            {
                "scope_id": row.scope_id,
                "correlation_id": correlation,
                "purpose": stage.value,
                "destination": destination_of(asking.at.address),
                "model": model.name,
                "prompt": asking.name.rpartition("/")[2],
                "outcome": answer.outcome,
                "prompt_tokens": prompt,
                "answer_tokens": reply,
                "money": money[0] if money else None,
                "currency": money[1] if money else None,
                "duration_s": time.perf_counter() - started,
            },
        )
    return answer
