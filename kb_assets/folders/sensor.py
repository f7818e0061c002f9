"""The sensor over a watched folder: at most one batch a tick.

Belongs here: ticks, cursor, run requests. What does not: deciding what is new (`intake`).
Sensors: https://docs.dagster.io/guides/automate/sensors.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from kb_assets.batch import JOB_NAME, Priority, batch_request
from kb_assets.folders import listing
from kb_assets.folders.cursor import Cursor, ScopeCursor
from kb_assets.folders.departures import (
    Inventory,
    Renames,
    believed,
    find_renames,
    identities,
    take_stock,
)
from kb_assets.folders.intake import ACTOR, Budget, Found, look, request_for
from kb_assets.folders.listing import Entry
from kb_assets.folders.mapping import FolderMap, read_map
from kb_resources.bindings.partitions import documents
from kb_resources.errors import InputError, KbError, PolicyError
from kb_resources.model import DocumentKey, SourceKind, validate_scope
from kb_resources.stages import vanished
from kb_resources.stages.line import Line
from kb_resources.stages.orchestration import has_opaque_ids

DOCUMENTS_PER_TICK = 200
BYTES_PER_TICK = 256 * 2**20
HASHED_PER_TICK = 1024 * 2**20
SECONDS_PER_TICK = 20.0
"""Well inside the 60 s that the code server has to answer."""
INTERACTIVE_UP_TO = 5
"""So few documents at once are someone waiting; they go before bulk."""


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """A folder to watch.

    Attributes:
        name: of the source; part of the batches' cause.
        path: the folder.
        scope: scope of its files; None: the first folder below `path` names it.
        audiences: whom files are for where no kb.yaml says otherwise.
        settle_s: seconds a file has to stand unchanged.
        removal_settle_s: seconds a file has to be gone before its document leaves search.
    """

    name: str
    path: Path
    scope: str | None = None
    audiences: tuple[str, ...] = ()
    settle_s: float = 3.0
    removal_settle_s: float = 60.0


@dataclass(slots=True)
class Tick:
    """What a look at all scopes of a folder gave."""

    keys: list[DocumentKey]
    known: list[DocumentKey]
    cursor: Cursor
    notes: list[str]


def folder_sensor(
    folder: Callable[[], WatchedFolder],
    *,
    name: str,
    description: str,
    interval_s: int = 10,
) -> dg.SensorDefinition:
    """A running sensor over a folder that is looked up at every tick.

    Args:
        folder: gives the folder; called in the tick, so that no setting is read on import.
        name: of the sensor.
        description: Markdown for the sensor's page.
        interval_s: seconds between ticks at least.
    """

    @dg.sensor(
        name=name,
        job_name=JOB_NAME,
        description=description,
        minimum_interval_seconds=interval_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def sensor(
        context: dg.SensorEvaluationContext, line: dg.ResourceParam[Line]
    ) -> dg.SensorResult | dg.SkipReason:
        watched = folder()
        if not watched.path.is_dir():
            return dg.SkipReason(f"There is no folder {watched.path}.")
        known = _Partitions(context.instance)
        tick = look_at_folder(line, watched, Cursor.load(context.cursor), known)
        new = [key for key in (*tick.keys, *tick.known) if str(key) not in known]
        adding = [documents.build_add_request(sorted({str(k) for k in new}))] if new else []
        cursor = tick.cursor.dump()
        if not tick.keys:
            note = "; ".join(tick.notes) or "Nothing new has settled."
            return dg.SensorResult(
                skip_reason=note, cursor=cursor, dynamic_partitions_requests=adding
            )
        for note in tick.notes:
            context.log.warning(note)
        batch_id = line.new_batch(tick.keys, actor="dropzone", cause=f"folder {watched.name}")
        request = batch_request(
            batch_id,
            scopes=[key.scope for key in tick.keys],
            priority=Priority.INTERACTIVE if len(tick.keys) <= INTERACTIVE_UP_TO else Priority.BULK,
            cause=f"folder {watched.name}",
        )
        return dg.SensorResult(
            run_requests=[request], cursor=cursor, dynamic_partitions_requests=adding
        )

    return sensor


class _Partitions:
    """Existing partition keys, fetched when first asked for."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance
        self._keys: frozenset[str] | None = None

    def __contains__(self, key: object) -> bool:
        if self._keys is None:
            self._keys = frozenset(self._instance.get_dynamic_partitions(str(documents.name)))
        return key in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys or ())

    def __len__(self) -> int:
        return len(self._keys or ())


def look_at_folder(
    line: Line,
    watched: WatchedFolder,
    cursor: Cursor,
    known: _Partitions | frozenset[str],
    *,
    now_ns: Callable[[], int] = time.time_ns,
    monotonic: Callable[[], float] = time.monotonic,
) -> Tick:
    """Register what is new in every scope of a folder, within one tick's budget.

    Args:
        line: whose ledger.
        watched: the folder.
        cursor: of the tick before.
        known: existing partition keys.
        now_ns: wall clock, nanoseconds since the epoch.
        monotonic: seconds, for the time a tick may take.
    """
    until = monotonic() + SECONDS_PER_TICK
    tick = Tick([], [], cursor, [])
    scopes: dict[str, ScopeCursor] = {}
    folders = list(_scope_folders(watched, tick.notes))
    left = Budget(DOCUMENTS_PER_TICK, BYTES_PER_TICK, HASHED_PER_TICK, lambda: monotonic() >= until)
    for place, (scope, path) in enumerate(folders):
        before = cursor.scopes.get(scope, ScopeCursor())
        # A share for each scope that may still come, so that a full one does not starve the others.
        share = replace(
            left,
            documents=-(-left.documents // (len(folders) - place)),
            queued_bytes=-(-left.queued_bytes // (len(folders) - place)),
        )
        given = (share.documents, share.queued_bytes)
        try:
            found = _look_at_scope(line, watched, scope, path, before, known, share, now_ns(), tick)
            tick.keys += line.register_many(found.requests)
        except (InputError, PolicyError, OSError, UnicodeDecodeError) as error:
            # A scope that is closed, cannot be read, or has no fitting kb.yaml stops no other.
            tick.notes.append(f"{scope}: {error}")
            found = Found(cursor=before)
        left = replace(
            left,
            documents=left.documents - (given[0] - share.documents),
            queued_bytes=left.queued_bytes - (given[1] - share.queued_bytes),
            hashed_bytes=share.hashed_bytes,
        )
        scopes[scope] = found.cursor
        tick.known += found.known
    tick.cursor = Cursor(scopes)
    return tick


def _look_at_scope(
    line: Line,
    watched: WatchedFolder,
    scope: str,
    path: Path,
    before: ScopeCursor,
    known: _Partitions | frozenset[str],
    budget: Budget,
    now_ns: int,
    tick: Tick,
) -> Found:
    entries = list(listing.walk(path, now_ns))
    folder_map = read_map(
        path, watched.audiences, watched.settle_s, known=before.mapping, now_ns=now_ns
    )
    if folder_map is None:
        return Found(cursor=before)
    print_now = listing.fingerprint(entries) + folder_map.digest
    if print_now == before.listing:
        return Found(cursor=before)
    ready = listing.settled(entries, now_ns, watched.settle_s)
    opaque = has_opaque_ids(line, scope)
    stock = take_stock(vanished.of_folder(line, scope, str(path)), entries)
    renames, waiting = _depart(line, watched, scope, stock, ready, folder_map, budget, now_ns, tick)
    found = look(
        line,
        scope,
        [entry for entry in ready if entry not in renames.undecided],
        folder_map,
        before,
        known,
        budget,
        kind=SourceKind.DROPZONE,
        identities=identities(stock, entries, opaque=opaque)
        | {entry: document.document_id for entry, document in renames.found.items()},
    )
    done = found.complete and not found.cursor.held and not found.requests
    rests = done and not waiting and len(ready) == len(entries)
    found.cursor = replace(found.cursor, listing=print_now if rests else "")
    return found


def _depart(
    line: Line,
    watched: WatchedFolder,
    scope: str,
    stock: Inventory,
    ready: Sequence[Entry],
    folder_map: FolderMap,
    budget: Budget,
    now_ns: int,
    tick: Tick,
) -> tuple[Renames, bool]:
    """Renames and removals of one scope; also whether something is still to be believed."""
    now = datetime.fromtimestamp(now_ns / 1e9, UTC)
    renames = find_renames(stock, ready, budget)
    for entry, document in renames.found.items():
        request = request_for(scope, entry, folder_map, SourceKind.DROPZONE, document.document_id)
        tick.keys.append(vanished.rename(line, document, request))
    for document in stock.returned:
        tick.keys += vanished.restore(line, scope, document, actor=ACTOR)
    followed = {document.document_key for document in renames.found.values()}
    gone = [d for d in stock.gone if d.document_key not in followed]
    vanished.note(line, gone, stock.back, now)
    ripe, note = believed(stock, renames, watched.removal_settle_s, now)
    for document in ripe:
        tick.keys += vanished.remove(line, scope, document, actor=ACTOR, now=now)
    if note:
        tick.notes.append(f"{scope}: {note}.")
    return renames, len(gone) > len(ripe) or bool(renames.undecided)


def _scope_folders(watched: WatchedFolder, notes: list[str]) -> Iterator[tuple[str, Path]]:
    if watched.scope is not None:
        yield watched.scope, watched.path
        return
    stray = []
    for path in sorted(watched.path.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_symlink() or not path.is_dir():
            stray.append(path.name)
            continue
        try:
            yield validate_scope(path.name), path
        except KbError as error:
            notes.append(str(error))
    if stray:
        others = f" and {len(stray) - 1} more" if len(stray) > 1 else ""
        notes.append(f"{stray[0]}{others}: not in the folder of a scope, and not taken up.")


def dropzone_of(environment: Mapping[str, str], home: Path) -> WatchedFolder:
    """The default dropzone, `KB_DROPZONE` or `<home>/dropzone`."""
    return WatchedFolder("dropzone", Path(environment.get("KB_DROPZONE") or home / "dropzone"))
