"""Files that are no longer there, and those that only changed their name.

Belongs here: telling the two apart and when to believe an absence. What does not: what becomes of
the documents (`stages.vanished`). A rename is a file gone and another come with the same bytes. An
absence is believed after a while; when most of a folder vanishes at once, which is how a lost
network share looks, after a long while.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from kb_assets.folders.intake import Budget, derived_id, digest_of
from kb_assets.folders.listing import Entry
from kb_resources.model import DocumentState
from kb_resources.store.vanished import FolderDocument

MASS = 10
"""So many documents, and more than half of the folder's, vanishing together are not believed
soon."""
MASS_SETTLE_S = 3600.0
REMOVED_PER_TICK = 500


@dataclass(frozen=True, slots=True)
class Inventory:
    """A folder's documents beside its files.

    Attributes:
        by_path: documents by the path of their file.
        gone: documents in search, or on their way, whose file is missing.
        followable: documents that a file with the same bytes may be the new place of.
        returned: documents that their file's absence removed, and that have it again.
        back: documents noted as missing that have their file.
    """

    by_path: Mapping[str, FolderDocument]
    gone: tuple[FolderDocument, ...]
    followable: tuple[FolderDocument, ...]
    returned: tuple[FolderDocument, ...]
    back: tuple[FolderDocument, ...]

    @property
    def live(self) -> int:
        """Documents that are not removed."""
        return sum(document.state != DocumentState.REMOVED for document in self.by_path.values())


def take_stock(documents: Sequence[FolderDocument], entries: Sequence[Entry]) -> Inventory:
    """Put documents and files side by side."""
    present = {str(entry.path) for entry in entries}
    missing = [d for d in documents if d.source_uri not in present]
    having = [d for d in documents if d.source_uri in present]
    by_file = [d for d in missing if d.state == DocumentState.REMOVED and d.removed_at is not None]
    gone = [d for d in missing if d.state != DocumentState.REMOVED]
    return Inventory(
        by_path={d.source_uri: d for d in documents},
        gone=tuple(gone),
        followable=tuple(d for d in (*gone, *by_file) if d.digest is not None),
        returned=tuple(
            d for d in having if d.state == DocumentState.REMOVED and d.removed_at is not None
        ),
        back=tuple(d for d in having if d.since is not None),
    )


@dataclass(slots=True)
class Renames:
    """Files recognised as documents under another name.

    Attributes:
        found: entry to the document that it is.
        undecided: entries that may be one, but there was no budget to compare them.
    """

    found: dict[Entry, FolderDocument] = field(default_factory=dict)
    undecided: set[Entry] = field(default_factory=set)


def find_renames(
    stock: Inventory,
    ready: Sequence[Entry],
    budget: Budget,
    digest: Callable[[Path], str | None] = digest_of,
) -> Renames:
    """Compare new files with missing documents of the same size, within the tick's budget."""
    renames = Renames()
    by_size: dict[int, list[FolderDocument]] = defaultdict(list)
    for document in stock.followable:
        by_size[document.size_bytes or 0].append(document)
    for entry in ready:
        candidates = by_size.get(entry.size_bytes)
        if not candidates or str(entry.path) in stock.by_path:
            continue
        if not budget.is_left():
            renames.undecided.add(entry)
            continue
        budget.hashed_bytes -= entry.size_bytes
        found = digest(entry.path)
        same = next((d for d in candidates if d.digest == found), None)
        if same is not None:
            candidates.remove(same)
            budget.documents -= 1
            renames.found[entry] = same
    return renames


def believed(
    stock: Inventory, renames: Renames, settle_s: float, now: datetime
) -> tuple[list[FolderDocument], str]:
    """Documents whose absence has lasted long enough, and a note where it is doubted.

    Documents that are being worked on wait, and so does everything while renames are undecided.
    """
    followed = {document.document_key for document in renames.found.values()}
    gone = [d for d in stock.gone if d.document_key not in followed]
    if not gone or renames.undecided:
        return [], ""
    is_mass = len(gone) >= MASS and len(gone) * 2 > stock.live
    wait = timedelta(seconds=max(settle_s, MASS_SETTLE_S) if is_mass else settle_s)
    ripe = [d for d in gone if d.state != DocumentState.PENDING and (d.since or now) + wait <= now]
    note = (
        f"{len(gone)} of {stock.live} files are missing; if they are gone for good, their "
        f"documents leave search {wait.total_seconds() / 60:g} minutes after that was noticed"
        if is_mass and not ripe
        else ""
    )
    return ripe[:REMOVED_PER_TICK], note


def identities(stock: Inventory, entries: Sequence[Entry], *, opaque: bool) -> dict[Entry, str]:
    """Document id of each file: the one it has, else one derived from its path.

    Where a document kept that id and moved on to another path that exists, the new file gets an id
    of its own.
    """
    present = {str(entry.path) for entry in entries}
    owners = {d.document_id: d.source_uri for d in stock.by_path.values()}
    found = {}
    for entry in entries:
        path = str(entry.path)
        known = stock.by_path.get(path)
        if known is not None:
            found[entry] = known.document_id
            continue
        name, number = derived_id(entry.relative, opaque=opaque), 1
        while owners.get(name, path) != path and owners[name] in present:
            number += 1
            name = derived_id(f"{entry.relative} ({number})", opaque=opaque)
        found[entry] = name
    return found
