"""Frozen value types shared by all capabilities; no I/O, nothing but the standard library."""

from kb_resources.model.chunk import Chunk
from kb_resources.model.document import (
    GONE,
    TERMINAL_STATES,
    DocumentState,
    Refusal,
    Source,
    SourceKind,
    Stage,
    StageReport,
)
from kb_resources.model.ids import (
    DocumentKey,
    content_hash,
    derive_document_id,
    passage_id,
    sha256_hex,
    validate_audience,
    validate_document_id,
    validate_language,
    validate_scope,
)
from kb_resources.model.parsed import (
    BBox,
    Block,
    BlockKind,
    Coverage,
    HiddenText,
    PageSpan,
    ParsedDocument,
    RecognisedPage,
    RemovedLine,
)
from kb_resources.model.principal import Principal
from kb_resources.model.verdict import Finding, Severity, Verdict

__all__ = [
    "GONE",
    "TERMINAL_STATES",
    "BBox",
    "Block",
    "BlockKind",
    "Chunk",
    "Coverage",
    "DocumentKey",
    "DocumentState",
    "Finding",
    "HiddenText",
    "PageSpan",
    "ParsedDocument",
    "Principal",
    "RecognisedPage",
    "Refusal",
    "RemovedLine",
    "Severity",
    "Source",
    "SourceKind",
    "Stage",
    "StageReport",
    "Verdict",
    "content_hash",
    "derive_document_id",
    "passage_id",
    "sha256_hex",
    "validate_audience",
    "validate_document_id",
    "validate_language",
    "validate_scope",
]
