"""A stage over a group of documents: one look, the work on each, one writing.

Most of what a small document costs is talk with the database, so documents talk together: what is
known of them is read at once, then each is worked on outside of any transaction, then all that was
made is written in one transaction under their locks. Where writing fails, each is written alone, so
that one document's error is its own. Belongs here: groups and the order of things. What does not:
what a stage looks at, makes and writes (`Step`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kb_resources.errors import ConflictError, UnavailableError
from kb_resources.model import AnyStage, StageReport
from kb_resources.stages import common
from kb_resources.stages.capabilities import Capabilities
from kb_resources.stages.common import Made
from kb_resources.store import locks, staging, versions
from kb_resources.store.documents import Conn, DocumentRow

DOCUMENTS = 50
"""Documents of a group at most; above some thirty a document costs hardly less. Publishing takes a
subtransaction for each, of which a server keeps 64 of a transaction at hand."""
BYTES = 8 * 2**20
"""Sources, and bodies, of a group at most: they lie in memory together, with what comes of them."""
WORK_S = 1.0
"""Work is written after this time: what a kill costs, and how late progress is seen."""

Outcome = StageReport | Exception
Results = Mapping[AnyStage, staging.StageResult]
Write = Callable[[Conn, Capabilities, Sequence[Made]], Mapping[int, Exception] | None]
"""What of a document was refused, and rolled back alone, by document key."""
After = Callable[[Capabilities, Made], None]


@dataclass(frozen=True, slots=True)
class Mark:
    """What a stage's result would be reached with; `again`: work, though one was."""

    fingerprint: str
    again: bool = False


def _nothing(_conn: Conn, _rows: Sequence[DocumentRow]) -> Mapping[int, Any]:
    return {}


def _no_more(_caps: Capabilities, _made: Made) -> None:
    return


@dataclass(frozen=True, slots=True)
class Step:
    """What makes a stage its own.

    Attributes:
        stage: which.
        look: the answer where there is nothing to work on, or what a result would be reached with.
        work: makes the result, outside of transactions, from what `load` found.
        write: stores what was made of several documents, under their locks.
        load: what the work needs, by version key.
        reads: stages whose results `look` is told beside its own.
        after: done for each document once it is written.
    """

    stage: AnyStage
    look: Callable[[Conn, Capabilities, DocumentRow, Results], Mark | StageReport]
    work: Callable[[Capabilities, DocumentRow, Mark, Any], Made]
    write: Write
    load: Callable[[Conn, Sequence[DocumentRow]], Mapping[int, Any]] = _nothing
    reads: tuple[AnyStage, ...] = ()
    after: After = _no_more


def run(
    step: Step,
    caps: Capabilities,
    rows: Sequence[DocumentRow],
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[DocumentRow, Outcome]]:
    """Take documents through a stage; one answer each, in order, until it is to stop.

    Raises:
        UnavailableError: a service is away. What was made until then is written and answered.
    """
    for group in groups(rows):
        if should_stop():
            return
        try:
            ahead = _look(step, caps, group)
        except UnavailableError:
            raise
        except TooMuch:
            middle = len(group) // 2
            for half in (group[:middle], group[middle:]):
                yield from run(step, caps, half, should_stop)
            continue
        except Exception as error:  # noqa: BLE001 - one document's error stops no other
            if len(group) == 1:
                yield group[0], error
                continue
            for row in group:
                yield from run(step, caps, [row], should_stop)
            continue
        yield from _work(step, caps, ahead, should_stop)


def run_one(step: Step, caps: Capabilities, row: DocumentRow) -> StageReport:
    """Take one document through a stage; raises what `run` answers."""
    for _, outcome in run(step, caps, [row]):
        if isinstance(outcome, StageReport):
            return outcome
        raise outcome
    raise AssertionError("no answer")


def groups(rows: Sequence[DocumentRow]) -> Iterator[list[DocumentRow]]:
    """Documents that are worked on together."""
    group: list[DocumentRow] = []
    size = 0
    for row in rows:
        if group and (len(group) >= DOCUMENTS or size + (row.size_bytes or 0) > BYTES):
            yield group
            group, size = [], 0
        group.append(row)
        size += row.size_bytes or 0
    if group:
        yield group


class TooMuch(Exception):
    """Bodies of a group are too long to lie in memory together: the group is divided."""


def check_size(conn: Conn, rows: Sequence[DocumentRow]) -> None:
    """Raise TooMuch where what would be loaded of several documents is more than `BYTES`."""
    if len(rows) > 1 and versions.body_bytes(conn, [row.version_key or 0 for row in rows]) > BYTES:
        raise TooMuch


_Ahead = tuple[DocumentRow, StageReport | Mark | Exception, Any]


def _look(step: Step, caps: Capabilities, rows: Sequence[DocumentRow]) -> list[_Ahead]:
    """What is known, and what the work needs, in one transaction."""
    with caps.database.transaction("pipeline") as conn:
        known = known_results(conn, rows, step.stage, *step.reads)
        seen = {row.document_key: _seen(step, conn, caps, row, known) for row in rows}
        waiting = [row for row in rows if isinstance(seen[row.document_key], Mark)]
        if step.load is not _nothing:
            check_size(conn, waiting)
        loaded = step.load(conn, waiting) if waiting else {}
    return [(row, seen[row.document_key], loaded.get(row.version_key or 0)) for row in rows]


def known_results(
    conn: Conn, rows: Sequence[DocumentRow], *stages: AnyStage
) -> dict[int, dict[AnyStage, staging.StageResult]]:
    """Stored results by version key and stage."""
    found: dict[int, dict[AnyStage, staging.StageResult]] = {}
    keys = [row.version_key for row in rows if row.version_key is not None]
    for (key, stage), result in staging.results(conn, keys, *stages).items():
        found.setdefault(key, {})[stage] = result
    return found


def _seen(
    step: Step,
    conn: Conn,
    caps: Capabilities,
    row: DocumentRow,
    known: Mapping[int, Results],
) -> Mark | StageReport | Exception:
    results = known.get(row.version_key or 0, {})
    answer = step.look(conn, caps, row, results)
    if isinstance(answer, StageReport):
        return answer
    if row.version_key is None:
        return common.no_version(row)
    if answer.again:
        return answer
    before = results.get(step.stage)
    if before is None or before.fingerprint != answer.fingerprint:
        return answer
    return common.unchanged(step.stage, row, before)


def _work(
    step: Step, caps: Capabilities, ahead: Sequence[_Ahead], should_stop: Callable[[], bool]
) -> Iterator[tuple[DocumentRow, Outcome]]:
    held: list[tuple[DocumentRow, Outcome | Made]] = []
    since = time.perf_counter()
    away: UnavailableError | None = None
    for row, seen, loaded in ahead:
        if not isinstance(seen, Mark):
            held.append((row, seen))
            continue
        if time.perf_counter() - since > WORK_S:
            yield from _written(step, caps, held)
            held, since = [], time.perf_counter()
        if should_stop():
            break
        began = time.perf_counter()
        try:
            made = step.work(caps, row, seen, loaded)
        except UnavailableError as error:
            away = error
            break
        except Exception as error:  # noqa: BLE001 - one document's error stops no other
            held.append((row, error))
            continue
        made.duration_s += time.perf_counter() - began
        held.append((row, made))
    yield from _written(step, caps, held)
    if away is not None:
        raise away


def _written(
    step: Step, caps: Capabilities, held: Sequence[tuple[DocumentRow, Outcome | Made]]
) -> Iterator[tuple[DocumentRow, Outcome]]:
    all_made = [made for _, made in held if isinstance(made, Made)]
    outcomes = store(caps, step.stage, all_made, step.write, step.after)
    for row, made in held:
        yield row, outcomes[row.document_key] if isinstance(made, Made) else made


def store(
    caps: Capabilities, stage: AnyStage, made: Sequence[Made], write: Write, after: After = _no_more
) -> dict[int, Outcome]:
    """Write what was made, together or, where that fails, each alone; outcomes by document key.

    Raises:
        UnavailableError: the database is away.
    """
    if not made:
        return {}
    try:
        outcomes, standing = _store(caps, stage, made, write)
    except Exception as error:
        # What takes longer than a statement may is shorter for one.
        long = len(made) > 1 and getattr(error, "code", "") == "timeout"
        if isinstance(error, UnavailableError) and not long:
            raise
        # One document's error stops no other.
        if len(made) == 1:
            return {made[0].row.document_key: error}
        alone = (store(caps, stage, [each], write, after) for each in made)
        return {key: outcome for outcomes in alone for key, outcome in outcomes.items()}
    for each in standing:
        try:
            after(caps, each)
        except UnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            outcomes[each.row.document_key] = error
    for each in made if len(made) > 1 else ():
        if _in_the_way(outcomes[each.row.document_key]):
            outcomes |= store(caps, stage, [each], write, after)
    return outcomes


def _in_the_way(outcome: Outcome) -> bool:
    """Whether another transaction refused a document of a group; alone it may pass."""
    return isinstance(outcome, ConflictError) and outcome.code in ("conflict", "locked")


def _store(
    caps: Capabilities, stage: AnyStage, made: Sequence[Made], write: Write
) -> tuple[dict[int, Outcome], list[Made]]:
    began = time.perf_counter()
    outcomes: dict[int, Outcome] = {}
    with caps.database.transaction("pipeline") as conn:
        outcomes |= locks.hold_many(conn, [each.row for each in made])
        standing = [each for each in made if each.row.document_key not in outcomes]
        if standing:
            outcomes |= write(conn, caps, standing) or {}
            standing = [each for each in standing if each.row.document_key not in outcomes]
            share = (time.perf_counter() - began) / (len(standing) or 1)
            for each in standing:
                each.duration_s += share
            outcomes |= common.finish_all(conn, caps, stage, standing)
    return outcomes, standing
