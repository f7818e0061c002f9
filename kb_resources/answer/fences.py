"""Fences around text that is data: a mark that the text inside cannot have.

Belongs here: making the mark, laying the fence. What does not: what is inside (`context`,
`prompt`). The mark is random for each call, and drawn anew if any text holds it, so that no text
can close its fence, whatever its author knew. See OWASP, "LLM Prompt Injection Prevention".
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable

_LOOKALIKE = re.compile(r"<(?=\s*/?\s*(?:data|passage|question)s?\b)", re.IGNORECASE)


def random_mark() -> str:
    """64 random bits as hex: short, since it is repeated around every passage."""
    return secrets.token_hex(8)


def unforgeable_mark(texts: Iterable[str], draw: Callable[[], str] = random_mark) -> str:
    """A mark that none of the texts contains, in whatever case."""
    held = [text.lower() for text in texts]
    mark = draw().lower()
    while any(mark in text for text in held):
        mark = hashlib.sha256(f"{mark}\0{draw()}".encode()).hexdigest()[:16]
    return mark


def fenced(name: str, mark: str, text: str) -> str:
    """The text between an opening and a closing line that carry the mark."""
    return f"<{name} {mark}>\n{text}\n</{name} {mark}>"


def disarmed(text: str) -> str:
    """The text without anything that looks like a fence of ours: `<` of such a tag becomes `‹`.

    The mark alone decides what is a fence; this keeps a model from being fooled by a likeness.
    """
    return _LOOKALIKE.sub("\u2039", text)
