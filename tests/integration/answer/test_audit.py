"""Administrators read the logs: from an answer to bytes, searches of late, what erasure leaves."""

from __future__ import annotations

import pytest

from kb.reader import Reader
from kb_resources.answer.audit import recent_searches, trace
from kb_resources.errors import NotFound, PolicyError
from kb_resources.store import logs
from tests.integration.answer.conftest import LOST
from tests.integration.answer.logged_searches import ADMIN, WHO, again, search
from tests.integration.search.conftest import World


@pytest.mark.requirement("O-49")
def test_an_audit_walks_from_an_answer_to_bytes(library: World, reader: Reader) -> None:
    answer = reader.ask("report a lost device", scope=library.scope, principal=WHO)
    cited = answer.citations[0].hit
    body = "\n\n".join([LOST, "Doors are locked at night."]).encode()
    read = []

    def blob(scope: str, digest: str) -> bytes | None:
        read.append(digest)
        return body if (scope, digest) == (library.scope, cited.digest) else None

    found = trace(
        library.database,
        answer.correlation_id,
        scope=library.scope,
        principal=ADMIN,
        read_blob=blob,
    )
    assert (len(found.retrievals), len(found.disclosures), len(found.answers)) == (1, 0, 1)
    first = found.sources[0]
    assert (first.document_id, first.cited, first.ranks) == ("security", True, (cited.rank,))
    assert (first.known, first.is_slice, first.bytes_hold) == (True, True, True)
    assert first.accounted_for
    assert len(found.sources) > len(read) == len(set(read))
    assert all(not source.cited for source in found.sources[1:])
    broken = trace(
        library.database,
        answer.correlation_id,
        scope=library.scope,
        principal=ADMIN,
        read_blob=lambda _scope, _digest: b"other bytes",
    )
    assert not broken.sources[0].accounted_for


def test_recent_searches_are_listed_newest_first_without_questions(library: World) -> None:
    ids = [search(library, "lost device") for _ in range(3)]
    found = recent_searches(library.database, scope=library.scope, principal=ADMIN, limit=2)
    assert [row["correlation_id"] for row in found] == ids[:0:-1]
    assert set(found[0]) == {"correlation_id", "at", "actor", "mode", "hits"}
    older = recent_searches(
        library.database, scope=library.scope, principal=ADMIN, before=found[-1]["at"]
    )
    assert [row["correlation_id"] for row in older] == ids[:1]
    with pytest.raises(PolicyError):
        recent_searches(library.database, scope=library.scope, principal=WHO)


def test_only_administrators_read_the_logs(library: World) -> None:
    made = search(library, "lost device")
    with pytest.raises(PolicyError):
        trace(library.database, made, scope=library.scope, principal=WHO)
    with pytest.raises(PolicyError):
        again(library, made, "lost device", principal=WHO)
    with pytest.raises(NotFound):
        trace(library.database, "unknown", scope=library.scope, principal=ADMIN)


def test_erasure_takes_a_document_out_of_the_logs(library: World, reader: Reader) -> None:
    answer = reader.ask("report a lost device", scope=library.scope, principal=WHO)
    with library.pipeline() as conn:
        conn.execute("select kb.forget_answers(%s)", [library.row("security").document_key])
    with library.database.transaction("app", library.scope) as conn:
        said = [
            *logs.retrievals(conn, answer.correlation_id),
            *logs.answers(conn, answer.correlation_id),
        ]
    assert "security" not in str(said)
    assert "leave" in str(said)
    found = again(library, answer.correlation_id, "report a lost device")
    assert found.erased
    assert not found.reproduced
    traced = trace(library.database, answer.correlation_id, scope=library.scope, principal=ADMIN)
    assert traced.erased == 2
    assert {source.document_id for source in traced.sources} == {"leave"}
