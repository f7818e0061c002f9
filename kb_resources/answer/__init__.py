"""Answers whose every quote is verified: grounding, prompts, extraction.

Belongs here: what becomes of passages once they are found. What does not: finding them
(`retrieve`), sending prompts anywhere (a callable is handed in).
"""

from kb_resources.answer.ground import (
    Citation,
    Claim,
    ClaimedQuote,
    Grounded,
    GroundedStatement,
    RejectedQuote,
    RejectReason,
    ground,
    locate,
)
from kb_resources.answer.normalise import Folded, fold

__all__ = [
    "Citation",
    "Claim",
    "ClaimedQuote",
    "Folded",
    "Grounded",
    "GroundedStatement",
    "RejectReason",
    "RejectedQuote",
    "fold",
    "ground",
    "locate",
]
