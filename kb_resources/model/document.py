"""A document's source, states and what a stage reports about it; shapes only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Stage(StrEnum):
    """The eight stages in order; each is the Dagster asset `kb/<name>`."""

    ACQUIRE = "acquire"
    PARSE = "parse"
    LANGUAGE = "language"
    SCAN = "scan"
    CHUNK = "chunk"
    EMBED = "embed"
    INDEX = "index"
    SUPERSEDE = "supersede"


class ModelStage(StrEnum):
    """Stages that ask a language model; off by default, and then in no line and no graph."""

    CONVERT = "convert"
    ENRICH = "enrich"


AnyStage = Stage | ModelStage
ORDER: tuple[AnyStage, ...] = (
    *(Stage.ACQUIRE, Stage.PARSE, Stage.LANGUAGE, Stage.SCAN, ModelStage.CONVERT),
    *(Stage.CHUNK, Stage.EMBED, Stage.INDEX, ModelStage.ENRICH, Stage.SUPERSEDE),
)
"""All stages in order, those too that are off."""


def stage_of(name: str) -> AnyStage:
    """The stage of a name; ValueError where there is none."""
    return ModelStage(name) if name in frozenset(ModelStage) else Stage(name)


class DocumentState(StrEnum):
    """Where a document's newest version stands. `pending` is the only one not terminal."""

    PENDING = "pending"
    INDEXED = "indexed"
    DUPLICATE = "duplicate"
    QUARANTINED = "quarantined"
    BLOCKED = "blocked"
    LANGUAGE_REFUSED = "language_refused"
    NEEDS_OCR = "needs_ocr"
    UNSUPPORTED = "unsupported"
    TOO_LARGE = "too_large"
    ENCRYPTED = "encrypted"
    CORRUPT = "corrupt"
    EMPTY = "empty"
    FAILED = "failed"
    REMOVED = "removed"
    ERASED = "erased"


TERMINAL_STATES = frozenset(DocumentState) - {DocumentState.PENDING}
GONE = (DocumentState.REMOVED, DocumentState.ERASED)
"""Only a decision brings a document back from these."""


class SourceKind(StrEnum):
    """By which door the bytes came."""

    FILE = "file"
    DROPZONE = "dropzone"
    URL = "url"
    UPLOAD = "upload"
    API = "api"


@dataclass(frozen=True, slots=True)
class Source:
    """Where bytes come from.

    Attributes:
        kind: the door.
        uri: absolute path or URL, as the pipeline can open it.
        origin: what the document id is derived from: path relative to its root, or canonical URL.
    """

    kind: SourceKind
    uri: str
    origin: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """An expected end of the line for a document: a value, never an exception.

    Attributes:
        state: the terminal state.
        reason: one sentence for a person; says what to do where something can be done.
        details: numbers and names for metadata, JSON-serialisable.
    """

    state: DocumentState
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageReport:
    """What one stage did with one document.

    Attributes:
        stage: which.
        scope: scope name.
        document_id: the document.
        version: version number, None before acquire gave one.
        worked: False when the fingerprint was known and nothing was done.
        state: the terminal state if the document's way ended in this stage (for supersede:
            `indexed`), else None.
        reason: why it ended, a sentence; empty when it goes on.
        refused: True when a gate stage refused to work on the version (no clean verdict).
        counts: numbers for plots.
        details: JSON-serialisable facts for people.
        duration_s: wall time.
    """

    stage: AnyStage
    scope: str
    document_id: str
    version: int | None = None
    worked: bool = True
    state: DocumentState | None = None
    reason: str = ""
    refused: bool = False
    counts: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    duration_s: float = 0.0

    @property
    def goes_on(self) -> bool:
        """Whether the next stage has work to do with this document."""
        return self.state is None and not self.refused
