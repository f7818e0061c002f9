"""A version's body with its blocks and passages, all by their place in the body.

Belongs here: what a view of a whole document needs. What does not: laying it out. Stored blocks of
a paged format count code points from the start of their page; here everything counts from the
start of the body, in both units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kb_resources.model import Principal
from kb_resources.retrieve.outline import node_id, read_version
from kb_resources.retrieve.retriever import Database


@dataclass(frozen=True, slots=True)
class TextBlock:
    """One block of the body.

    Attributes:
        node_id: the outline node it stands under (a heading: its own).
        kind: as `model.Block.kind`.
        level: 1 to 6 for headings, else None.
        heading_path: headings above, a heading's own text last.
        page: 1-based page or None.
        char_start: in the body, code points.
        char_end: exclusive.
        byte_start: in the body, UTF-8 bytes.
        byte_end: exclusive.
    """

    node_id: str
    kind: str
    level: int | None
    heading_path: tuple[str, ...]
    page: int | None
    char_start: int
    char_end: int
    byte_start: int
    byte_end: int


@dataclass(frozen=True, slots=True)
class PassagePlace:
    """Where a passage stands in the body, in both units."""

    passage_id: str
    page: int | None
    char_start: int
    char_end: int
    byte_start: int
    byte_end: int


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A readable version.

    Attributes:
        scope: scope name.
        document_id: the document.
        version: number within the document.
        digest: SHA-256 hex of the source bytes.
        title: the version's title.
        language: ISO 639-1 code or `und`.
        media_type: of the source.
        source: where the document comes from.
        body: canonical Markdown.
        blocks: in reading order.
        passages: in reading order; none while the version is not published.
    """

    scope: str
    document_id: str
    version: int
    digest: str
    title: str
    language: str
    media_type: str
    source: str
    body: str
    blocks: tuple[TextBlock, ...]
    passages: tuple[PassagePlace, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form."""
        return asdict(self)


def document_text(
    database: Database,
    document_id: str,
    *,
    scope: str,
    principal: Principal,
    version: int | None = None,
) -> DocumentText:
    """The body of a document: of the version named, else of the one that holds now.

    Raises:
        ScopeRequired: no scope.
        NotFound: no such scope, document or version for this principal.
    """
    row, passages = read_version(
        database, document_id, scope=scope, principal=principal, version=version
    )
    return DocumentText(
        scope=scope,
        document_id=row["document_id"],
        version=row["version"],
        digest=row["digest"],
        title=row["title"] or row["document_id"],
        language=row["language"] or "und",
        media_type=row["media_type"],
        source=row["source"],
        body=row["body"],
        blocks=_blocks(row["blocks"], row["pages"]),
        passages=_places(passages, row["body"]),
    )


def _blocks(
    rows: Sequence[Mapping[str, Any]], pages: Sequence[Sequence[int]]
) -> tuple[TextBlock, ...]:
    page_starts: dict[int | None, int] = {page[0]: page[3] for page in pages}
    times: dict[tuple[str, ...], int] = {}
    blocks = []
    for row in rows:
        path = tuple(row.get("path", ()))
        if row["kind"] == "heading":
            times[path] = times.get(path, 0) + 1
        shift = page_starts.get(row.get("page"), 0)
        blocks.append(
            TextBlock(
                node_id=node_id(path, max(0, times.get(path, 0) - 1)),
                kind=row["kind"],
                level=row.get("level"),
                heading_path=path,
                page=row.get("page"),
                char_start=shift + row["chars"][0],
                char_end=shift + row["chars"][1],
                byte_start=row["bytes"][0],
                byte_end=row["bytes"][1],
            )
        )
    return tuple(blocks)


def _places(rows: Sequence[Mapping[str, Any]], body: str) -> tuple[PassagePlace, ...]:
    """Byte places to code points, in one walk, since passages are disjoint and in order."""
    data = body.encode()
    places = []
    at_byte = at_char = 0
    for row in rows:
        start = at_char + len(data[at_byte : row["byte_start"]].decode())
        end = start + len(data[row["byte_start"] : row["byte_end"]].decode())
        at_byte, at_char = row["byte_end"], end
        places.append(
            PassagePlace(
                row["passage_id"], row["page"], start, end, row["byte_start"], row["byte_end"]
            )
        )
    return tuple(places)
