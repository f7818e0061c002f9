"""`kill -9` at any moment of any stage: readers see one whole version, a second run gives the same.

The documents have a published version each and get a new one. All that is stored of them in the end
is compared with twins in another scope that nothing happened to.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import psycopg
import pytest

from kb_resources.model import DocumentKey, Source, SourceKind, Stage
from kb_resources.settings import as_environment
from kb_resources.stages.request import IngestRequest
from tests.faults.conftest import wait_until_idle
from tests.integration.line.conftest import Bench

_VICTIM = Path(__file__).with_name("victim.py")
_STAGES = tuple(Stage)
# What a reader can find now, by document.
_PUBLISHED = """
    select d.document_id, v.version, md5(string_agg(p.text, '|' order by p.ordinal)),
      count(*), count(l.passage_key), count(e.passage_key),
      bool_and(l.valid_until is null and e.valid_until is null)
    from kb.document d
    join kb.scope s using (scope_id)
    join kb.version v using (document_key)
    join kb.validity x on x.version_key = v.version_key
      and upper_inf(x.known) and upper_inf(x.valid)
    join kb.passage p on p.version_key = v.version_key
    left join kb.lex l using (passage_key) left join kb.embedding e using (passage_key)
    where s.name = %(scope)s
    group by 1, 2 order by 1, 2
"""
# All that is kept of a document's versions, without keys and times.
_KEPT = """
    select d.document_id, d.state, v.version, v.digest, v.verdict,
      (select md5(body) from kb.parsed b where b.version_key = v.version_key),
      (select md5(string_agg(concat_ws('|', p.passage_id, p.ordinal, p.text, p.context,
          p.byte_start, p.byte_end, l.bm, e.vec), '#' order by p.ordinal))
        from kb.passage p left join kb.lex l using (passage_key)
        left join kb.embedding e using (passage_key) where p.version_key = v.version_key),
      (select string_agg(r.stage || r.output, '#' order by r.stage) from kb.stage_result r
        where r.version_key = v.version_key),
      (select count(*) from kb.validity x where x.version_key = v.version_key
        and upper_inf(x.known)),
      (select string_agg(y.event || coalesce(y.version::text, ''), ',' order by y.lifecycle_id)
        from kb.lifecycle y where y.document_key = d.document_key)
    from kb.document d join kb.scope s using (scope_id) join kb.version v using (document_key)
    where s.name = %(scope)s order by 1, 3
"""
_LEFT_BEHIND = """
    select (select count(*) from kb.staged_chunk c join kb.scope s using (scope_id)
        where s.name = %(scope)s)
      + (select count(*) from kb.staged_vector join kb.version v using (version_key)
        join kb.scope s using (scope_id) where s.name = %(scope)s)
"""


def text_of(number: int, edition: int) -> str:
    """Two editions share a section, differ in another, and each has one of its own."""
    return (
        f"# Office {number}\n\n## Keys\n\nThe keys of office {number} lie in the blue box.\n\n"
        f"## Hours\n\nOffice {number} opens at {6 + edition} on every working day.\n\n"
        f"## Note {edition}\n\nEdition {edition} of the rules of office {number} holds now.\n"
    )


class Victims:
    """The process that forks victims."""

    def __init__(self, bench: Bench) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(_VICTIM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | as_environment(bench.settings),
        )
        assert self._hear() == "ready"

    def run(self, keys: Sequence[DocumentKey], stage: Stage, at: int | None) -> str:
        assert self._process.stdin is not None
        ids = [key.document_id for key in keys]
        asked = {"scope": keys[0].scope, "document_ids": ids, "stage": stage, "at": at}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture
def victims(bench: Bench) -> Iterator[Victims]:
    made = Victims(bench)
    yield made
    made.end()


class Trial:
    """Documents of one scope, in their second edition."""

    def __init__(self, bench: Bench, scope: str, count: int) -> None:
        self._bench = bench
        self.scope = scope
        self.keys = [self._written(number, 1) for number in range(count)]
        bench.line.run_all(self.keys)
        self.first = self.look()
        for number in range(count):
            self._written(number, 2)

    def _written(self, number: int, edition: int) -> DocumentKey:
        name = f"office-{number}.md"
        self._bench.write(f"{self.scope}/{name}", text_of(number, edition))
        source = Source(SourceKind.FILE, str(self._bench.folder / self.scope / name), name)
        request = IngestRequest(scope=self.scope, source=source, actor="test")
        return self._bench.line.register(request)

    def look(self) -> list[tuple[object, ...]]:
        return self._rows(_PUBLISHED)

    def kept(self) -> list[tuple[object, ...]]:
        return self._rows(_KEPT)

    def left_behind(self) -> list[tuple[object, ...]]:
        return self._rows(_LEFT_BEHIND)

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self._bench.settings.database_url) as conn:
            return conn.execute(query.encode(), {"scope": self.scope}).fetchall()

    def run_until(self, stage: Stage) -> None:
        for before in _STAGES[: _STAGES.index(stage)]:
            assert len(list(self._bench.line.run_stage(before, self.keys))) == len(self.keys)


def moments(calls: int, count: int, seeded: random.Random) -> list[int]:
    """One in each of `count` equal parts of a stage."""
    step = calls / count
    return [1 + int(step * (number + seeded.random())) for number in range(count)]


def kill_at(
    bench: Bench,
    victims: Victims,
    points: int,
    seeds: tuple[int, ...],
    stages: tuple[Stage, ...],
    together: int = 1,
) -> dict[str, int]:
    """Kill stages at `points` moments a seed; returns how many victims were killed, by stage.

    A victim has `together` documents. One more than that many lives: it tells how many calls the
    stage makes.
    """
    count = (points + 1) * together
    twin = Trial(bench, "twin", count)
    bench.line.run_all(twin.keys)
    second, kept = twin.look(), twin.kept()
    assert [row[1] for row in twin.first] == [1] * count
    assert [row[1] for row in second] == [2] * count
    killed = dict.fromkeys(map(str, stages), 0)
    for stage, seed in product(stages, seeds):
        seeded = random.Random(f"{stage}{seed}")
        trial = Trial(bench, f"{stage}-{seed}", count)
        trial.run_until(stage)
        living, *dying = [
            trial.keys[start : start + together] for start in range(0, count, together)
        ]
        counted = victims.run(living, stage, None)
        assert counted.startswith("done "), counted
        at_calls = moments(int(counted.split()[1]), points, seeded)
        for keys, at in zip(dying, at_calls, strict=True):
            said = victims.run(keys, stage, at)
            # A stage that makes a few calls less than when they were counted ends first.
            assert said == "killed" or said.startswith("done"), said
            killed[stage] += said == "killed"
        wait_until_idle(bench.settings.database_url)
        for now, old, new in zip(trial.look(), trial.first, second, strict=True):
            assert now in (old, new), f"mixed after a kill in {stage}"
        bench.line.run_all(trial.keys)
        assert trial.look() == second
        assert trial.kept() == kept
        assert trial.left_behind() == [(0,)]
    return killed


@pytest.mark.requirement("O-10", "B-28")
def test_a_stage_killed_at_any_moment_leaves_one_version_and_converges(
    bench: Bench, victims: Victims
) -> None:
    stages = (Stage.ACQUIRE, Stage.SCAN, Stage.EMBED, Stage.INDEX)
    killed = kill_at(bench, victims, 2, (1,), stages, together=2)
    assert all(number >= 1 for number in killed.values()), killed


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.requirement("O-10", "B-28")
@pytest.mark.parametrize("seed", [1, 2, 3], ids="seed{}".format)
@pytest.mark.parametrize("stage", _STAGES, ids=str)
def test_a_stage_killed_at_fifty_moments_by_three_seeds(
    bench: Bench, victims: Victims, stage: Stage, seed: int
) -> None:
    killed = kill_at(bench, victims, 50, (seed,), (stage,))
    print(f"killed, of 50: {killed}")
    assert killed[stage] >= 45, killed


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.requirement("O-10", "B-28")
@pytest.mark.parametrize("seed", [1, 2, 3], ids="seed{}".format)
@pytest.mark.parametrize("stage", _STAGES, ids=str)
def test_a_stage_killed_over_several_documents_at_once(
    bench: Bench, victims: Victims, stage: Stage, seed: int
) -> None:
    """A stage may take several in one transaction, or leave some done and some not."""
    killed = kill_at(bench, victims, 17, (seed,), (stage,), together=4)
    print(f"killed, of 17: {killed}")
    assert killed[stage] >= 15, killed
