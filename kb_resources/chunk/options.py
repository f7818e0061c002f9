"""How to cut: the options, the presets and the version of the rules.

Belongs here: values and their validation. Which preset a scope uses is a setting of the scope.
Sizes follow requirements B-10 (flat), W-12 (bounds) and O-02 (400 tokens by default); that overlap
is off by default follows Chroma's chunking evaluation, https://research.trychroma.com/.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from kb_resources.errors import InputError

CHUNKER_VERSION: Final = "1"
"""Part of the chunk stage's fingerprint: raise it with every change that moves a cut."""

Strategy = Literal["hierarchical", "flat", "sentence"]

MIN_TOKENS: Final = 50
MIN_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """Where chunks may end and how long they may get.

    Attributes:
        strategy: `hierarchical` keeps paragraphs, lists, tables and code whole where they fit and
            never leaves a section; `sentence` never leaves a section either, and fills chunks with
            whole sentences across paragraphs; `flat` ignores sections and cuts by characters.
        max_tokens: upper bound of a chunk's `token_count`: context, text, prefix and special
            tokens together, by the counter in use. 400 unless a model needs less.
        overlap_tokens: text repeated from the chunk before, at most so many tokens, never across
            a page, locator or section. 0 keeps spans disjoint.
        size_chars: target length of a `flat` chunk in code points; unused otherwise.

    Raises:
        InputError: a size below its minimum, or an overlap that is negative or at least half of
            `max_tokens`.
    """

    strategy: Strategy = "hierarchical"
    max_tokens: int = 400
    overlap_tokens: int = 0
    size_chars: int = 2000

    def __post_init__(self) -> None:
        if self.strategy not in ("hierarchical", "flat", "sentence"):
            raise InputError(
                f"{self.strategy!r} is not a way to chunk.",
                next_step="Use hierarchical, flat or sentence.",
            )
        if self.max_tokens < MIN_TOKENS:
            raise InputError(
                f"max_tokens is {self.max_tokens}.", next_step=f"Use at least {MIN_TOKENS}."
            )
        if self.size_chars < MIN_CHARS:
            raise InputError(
                f"size_chars is {self.size_chars}.", next_step=f"Use at least {MIN_CHARS}."
            )
        if not 0 <= self.overlap_tokens < self.max_tokens / 2:
            raise InputError(
                f"overlap_tokens is {self.overlap_tokens} of {self.max_tokens}.",
                next_step="Use 0, or less than half of max_tokens.",
            )


PRESETS: Final[dict[str, ChunkOptions]] = {
    "hierarchical": ChunkOptions(),
    "flat": ChunkOptions(strategy="flat", max_tokens=512),
    "sentence": ChunkOptions(strategy="sentence"),
}


def preset(
    name: str,
    *,
    max_tokens: int | None = None,
    overlap_tokens: int | None = None,
    size_chars: int | None = None,
) -> ChunkOptions:
    """The preset of that name, with single values changed.

    Args:
        name: `hierarchical`, `flat` or `sentence`.
        max_tokens: the preset's own for None.
        overlap_tokens: the preset's own for None.
        size_chars: the preset's own for None.

    Raises:
        InputError: no such preset, or a value out of range.
    """
    if name not in PRESETS:
        raise InputError(
            f"There is no chunk preset {name!r}.", next_step=f"Use one of {', '.join(PRESETS)}."
        )
    base = PRESETS[name]
    return replace(
        base,
        max_tokens=base.max_tokens if max_tokens is None else max_tokens,
        overlap_tokens=base.overlap_tokens if overlap_tokens is None else overlap_tokens,
        size_chars=base.size_chars if size_chars is None else size_chars,
    )
