"""A document's headings as a tree, with the passages under each.

Belongs here: building the tree from the headings and passages of one version, and walking it.
What does not: finding headings, which parsing does. A node's id is the hash that its passages'
ids carry too, so that it survives sections being inserted elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from kb_resources.model import Principal, content_hash
from kb_resources.retrieve.retriever import Database
from kb_resources.retrieve.visible import asked_id, held_audiences, no_document, readable_scope
from kb_resources.store import reading


@dataclass(frozen=True, slots=True)
class OutlineNode:
    """One heading; the root stands for the document itself.

    Attributes:
        node_id: stable id: hash of the heading path, `-2` and on where a path recurs.
        parent_id: None for the root.
        title: the heading; of the root, the document's title.
        level: distance from the root, whatever the source called it.
        heading_path: headings from the root down, this one included; of the root, empty.
        page: 1-based page or None.
        byte_start: where it stands in the body, UTF-8 bytes.
        passage_ids: passages directly under it, in reading order.
    """

    node_id: str
    parent_id: str | None
    title: str
    level: int
    heading_path: tuple[str, ...]
    page: int | None
    byte_start: int
    passage_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outline:
    """The headings of one version.

    Attributes:
        scope: scope name.
        document_id: the document.
        version: number within the document.
        title: the version's title.
        nodes: in reading order, the root first.
    """

    scope: str
    document_id: str
    version: int
    title: str
    nodes: tuple[OutlineNode, ...]

    @cached_property
    def _by_id(self) -> dict[str, OutlineNode]:
        return {node.node_id: node for node in self.nodes}

    @cached_property
    def _children(self) -> dict[str | None, list[OutlineNode]]:
        children: dict[str | None, list[OutlineNode]] = {}
        for node in self.nodes:
            children.setdefault(node.parent_id, []).append(node)
        return children

    def node(self, node_id: str) -> OutlineNode | None:
        """A node by id, None where there is none."""
        return self._by_id.get(node_id)

    def node_of(self, passage_id: str) -> OutlineNode | None:
        """The node a passage stands directly under, None for an unknown passage."""
        return next((node for node in self.nodes if passage_id in node.passage_ids), None)

    def ancestors(self, node_id: str) -> tuple[OutlineNode, ...]:
        """From the root down to the node itself; empty for an unknown id."""
        found = []
        node = self._by_id.get(node_id)
        while node is not None:
            found.append(node)
            node = self._by_id.get(node.parent_id or "")
        return tuple(reversed(found))

    def children(self, node_id: str) -> tuple[OutlineNode, ...]:
        """Nodes directly below; empty for an unknown id."""
        return tuple(self._children.get(node_id, ()))

    def subtree(self, node_id: str) -> tuple[OutlineNode, ...]:
        """The node and all below it, in reading order; empty for an unknown id."""
        kept: set[str] = {node_id} & self._by_id.keys()
        for node in self.nodes:  # a parent stands before its children
            if node.parent_id in kept:
                kept.add(node.node_id)
        return tuple(node for node in self.nodes if node.node_id in kept)

    def passages(self, node_id: str) -> tuple[str, ...]:
        """Ids of all passages at or below a node, in reading order; empty for an unknown id."""
        return tuple(one for node in self.subtree(node_id) for one in node.passage_ids)

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form, children nested."""
        return {
            "scope": self.scope,
            "document_id": self.document_id,
            "version": self.version,
            "title": self.title,
            "outline": self._nested(self.nodes[0]),
        }

    def _nested(self, node: OutlineNode) -> dict[str, Any]:
        return {
            "node_id": node.node_id,
            "title": node.title,
            "level": node.level,
            "heading_path": list(node.heading_path),
            "page": node.page,
            "byte_start": node.byte_start,
            "passage_ids": list(node.passage_ids),
            "children": [self._nested(child) for child in self._children.get(node.node_id, ())],
        }


def document_outline(
    database: Database,
    document_id: str,
    *,
    scope: str,
    principal: Principal,
    version: int | None = None,
) -> Outline:
    """The headings of a document: of the version named, else of the one that holds now.

    Raises:
        ScopeRequired: no scope.
        NotFound: no such scope, document or version for this principal.
    """
    row, passages = read_version(
        database, document_id, scope=scope, principal=principal, version=version
    )
    title = row["title"] or document_id
    headings = [block for block in row["blocks"] if block["kind"] == "heading" and "path" in block]
    return Outline(
        scope=scope,
        document_id=document_id,
        version=row["version"],
        title=title,
        nodes=tree(title, headings, passages),
    )


def read_version(
    database: Database,
    document_id: str,
    *,
    scope: str,
    principal: Principal,
    version: int | None,
) -> tuple[reading.Row, list[reading.Row]]:
    """Rows of a version that the principal may read, and of its passages in reading order.

    Raises:
        ScopeRequired: no scope.
        NotFound: no such scope, document or version for this principal.
    """
    name = readable_scope(scope, principal)
    with database.transaction("app", name) as conn:
        row = reading.version(
            conn,
            name,
            asked_id(document_id),
            audiences=held_audiences(principal),
            version=version,
        )
        if row is None:
            raise no_document(document_id, name, version)
        return row, reading.passages(conn, row["version_key"])


def node_id(heading_path: Sequence[str], nth: int = 0) -> str:
    """Id of the nth section (from 0) with this heading path."""
    path = content_hash("\x1f".join(heading_path))[:8]
    return f"{path}-{nth + 1}" if nth else path


def tree(
    title: str, headings: Iterable[Mapping[str, Any]], passages: Iterable[Mapping[str, Any]]
) -> tuple[OutlineNode, ...]:
    """Nodes in reading order, the root first.

    Args:
        title: of the document, for the root.
        headings: heading blocks as stored: `path`, `bytes`, perhaps `page`.
        passages: `passage_id`, `heading_path`, `page`, `byte_start`, `byte_end`. One whose path no
            heading has (sheets, keys of JSON) makes the missing nodes.
    """
    growing = _Growing(title)
    events: list[tuple[int, int, Mapping[str, Any]]] = [
        *((heading["bytes"][0], 0, heading) for heading in headings),
        # A passage begins with the headings above it that have no text of their own.
        *((passage["byte_end"] - 1, 1, passage) for passage in passages),
    ]
    for at, kind, row in sorted(events, key=lambda event: event[:2]):
        if kind == 0:
            growing.open(tuple(row["path"]), at, row.get("page"))
        else:
            growing.add(row, row["byte_start"])
    return growing.finished()


class _Growing:
    """The tree while it is read from top to bottom; a path means its newest node."""

    def __init__(self, title: str) -> None:
        root = OutlineNode(node_id(()), None, title, 0, (), None, 0)
        self._nodes = [root]
        self._passages: dict[str, list[str]] = {root.node_id: []}
        self._newest: dict[tuple[str, ...], str] = {(): root.node_id}
        self._times: dict[tuple[str, ...], int] = {}

    def open(self, path: tuple[str, ...], at: int, page: int | None) -> str:
        """A new node, and those above it that no heading made."""
        if not path:
            return self._newest[()]
        parent = self._newest.get(path[:-1]) or self.open(path[:-1], at, page)
        nth = self._times.get(path, 0)
        self._times[path] = nth + 1
        made = OutlineNode(node_id(path, nth), parent, path[-1], len(path), path, page, at)
        self._nodes.append(made)
        self._passages[made.node_id] = []
        self._newest[path] = made.node_id
        return made.node_id

    def add(self, passage: Mapping[str, Any], at: int) -> None:
        """Hang a passage under its heading."""
        path = tuple(passage["heading_path"])
        key = self._newest.get(path) or self.open(path, at, passage["page"])
        self._passages[key].append(passage["passage_id"])

    def finished(self) -> tuple[OutlineNode, ...]:
        """The nodes with their passages, in reading order."""
        return tuple(
            replace(node, passage_ids=tuple(self._passages[node.node_id])) for node in self._nodes
        )
