"""Intake: a caller says what to ingest; the ledger knows it before any byte is read.

Belongs here: the request, defaults of a new scope, expanding folders. What does not: reading.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kb_resources.errors import InputError
from kb_resources.model import (
    DocumentKey,
    Source,
    SourceKind,
    derive_document_id,
    validate_audience,
    validate_document_id,
    validate_language,
    validate_scope,
)
from kb_resources.store import documents, erasure
from kb_resources.store.documents import Conn
from kb_resources.supersede import check_instant


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """One document to ingest.

    Attributes:
        scope: scope name; made on first use.
        source: where the bytes are.
        document_id: the caller's id, or None to derive one from the source's origin.
        audiences: who may read it; empty: everyone in the scope.
        valid_from: aware time from which it holds, or None for the time of publication.
        language: stated language instead of the detected one.
        trusted_by: actor who vouches for it; the scan then records findings but holds nothing.
        supersedes: ids of documents that end when this one is published.
        actor: who asks.
        readers: audiences that the one who asks holds; None: whoever reads everything.
    """

    scope: str
    source: Source
    document_id: str | None = None
    audiences: tuple[str, ...] = ()
    valid_from: datetime | None = None
    language: str | None = None
    trusted_by: str | None = None
    supersedes: tuple[str, ...] = ()
    actor: str = "pipeline"
    readers: tuple[str, ...] | None = None


def register(conn: Conn, request: IngestRequest, languages: Sequence[str]) -> DocumentKey:
    """`register_all` for one request."""
    return register_all(conn, [request], languages)[0]


def register_all(
    conn: Conn, requests: Sequence[IngestRequest], languages: Sequence[str]
) -> list[DocumentKey]:
    """Write requests into the ledger; the documents' keys, in order.

    Args:
        conn: inside a transaction of the pipeline role.
        requests: what to ingest.
        languages: languages that a scope made now accepts.

    Raises:
        InputError: a name does not fit, the time has no zone, or it would supersede itself.
        PolicyError: the id names a document that the caller may not read (`document_id_refused`).
    """
    scopes: dict[str, documents.ScopeRow] = {}
    asked: list[documents.Registration] = []
    for request in requests:
        name = validate_scope(request.scope)
        if name not in scopes:
            scopes[name] = documents.ensure_scope(conn, name, {"languages": sorted(languages)})
        asked.append(_checked(request, scopes[name]))
    if all(each.readers is None for each in asked):
        documents.register_all(conn, asked)
    else:
        for each in asked:
            documents.register(conn, each)
    keys = []
    for request, each in zip(requests, asked, strict=True):
        key = DocumentKey(request.scope, each.document_id)
        if request.source.kind in (SourceKind.DROPZONE, SourceKind.URL):
            erasure.keep_out(conn, each.scope_id, key)
        keys.append(key)
    return keys


def _checked(request: IngestRequest, scope: documents.ScopeRow) -> documents.Registration:
    if request.valid_from is not None:
        check_instant(request.valid_from)
    document_id = (
        validate_document_id(request.document_id)
        if request.document_id
        else derive_document_id(
            request.source.origin, opaque=bool(scope.settings.get("opaque_ids"))
        )
    )
    if document_id in request.supersedes:
        raise InputError(
            f"{document_id} cannot supersede itself.",
            next_step="A new version of a document ends the one before by itself.",
        )
    return documents.Registration(
        scope.scope_id,
        document_id,
        request.source,
        audiences=[
            validate_audience(name)
            for name in request.audiences or scope.settings.get("audiences", ())
        ],
        trusted_by=request.trusted_by,
        language_hint=request.language and validate_language(request.language),
        valid_from=request.valid_from,
        supersedes=request.supersedes,
        readers=request.readers,
    )


def is_stray_link(found: Path, root: Path) -> bool:
    """Whether it is a link that leads nowhere, or out of the folder."""
    if not found.is_symlink():
        return False
    try:
        return not found.exists() or not found.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a link to itself
        return True


def check_distinct(sources: Sequence[Source]) -> None:
    """Refuse sources of one call that would be versions of one document.

    Raises:
        InputError: two of them have the same origin; the first pair is named.
    """
    seen: dict[str, Source] = {}
    for source in sources:
        first = seen.setdefault(source.origin, source)
        if first.uri != source.uri:
            raise InputError(
                f"{first.uri} and {source.uri} would be one document, {source.origin!r}: a "
                "document is known by its path below the folder that is given.",
                next_step="Give the folder that holds both, or ingest one of them with "
                "--document-id.",
                code="same_document",
            )


UNREADABLE = "a folder that may not be read"

PassedOver = Callable[[Path, str], None]
"""Told of what in a folder is not taken in, and why."""


def expand(
    path: Path,
    kind: SourceKind = SourceKind.FILE,
    *,
    passed_over: PassedOver = lambda _path, _why: None,
) -> Iterator[Source]:
    """Sources of a file, or of all files below a folder in name order.

    Hidden files and folders (a leading dot) are left out without a word; folders that cannot be
    read and links that lead nowhere or out of the folder are passed over, and told. A file's origin
    is its name; in a folder, its path relative to it. The origin makes the document: the same one
    from elsewhere is a new version of it.

    Raises:
        InputError: there is no such path, the folder cannot be read, or a name is not UTF-8, which
            no database can hold.
    """
    if path.is_dir():
        root = path.resolve()
        if not _readable(root):
            raise InputError(
                f"The folder {path} cannot be read.",
                next_step="Give the account that runs this the right to read and enter it.",
            )
        for found in sorted(root.rglob("*")):
            relative = found.relative_to(root)
            if any(part.startswith(".") for part in relative.parts):
                continue
            if is_stray_link(found, root):
                passed_over(found, "a link that leads nowhere, or out of the folder")
                continue
            if found.is_dir():
                if not _readable(found):
                    passed_over(found, UNREADABLE)
                continue
            yield Source(kind, _as_text(found), relative.as_posix())
    elif path.exists() or path.is_symlink():
        yield Source(kind, _as_text(path.absolute()), path.name)
    else:
        raise InputError(f"There is no file or folder {path}.", next_step="Check the path.")


def _readable(folder: Path) -> bool:
    return os.access(folder, os.R_OK | os.X_OK)


def _as_text(path: Path) -> str:
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The name of {str(path)!a} is not UTF-8.",
            next_step="Rename the file or folder, then ingest again.",
            code="not_text",
        ) from error
    return str(path)
