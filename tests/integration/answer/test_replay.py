"""A logged search run again: the same ranks, or each difference with what caused it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kb_resources.answer.replay import Replay, replay
from kb_resources.errors import InputError
from kb_resources.model import Verdict
from kb_resources.retrieve import SearchFilters, relevance
from kb_resources.retrieve.log import QuestionKey
from kb_resources.retrieve.relevance import Calibration
from kb_resources.store import passages, versions
from tests.integration.answer.conftest import LEAVE, LOST
from tests.integration.answer.logged_searches import ADMIN, WHO, again, logged, rows, search
from tests.integration.search.conftest import TinyEmbedder, World


def causes(found: Replay) -> dict[str, str | None]:
    return {f"{p.document_id} v{p.version}": p.cause for p in found.passages if p.cause}


@pytest.mark.requirement("O-48")
def test_a_replay_gives_the_logged_ranks_again(library: World) -> None:
    made = search(library, "lost device", filters=SearchFilters(languages=["en"]), k=3)
    found = again(library, made, "lost device")
    assert found.reproduced
    assert found.unchanged
    assert [p.rank_logged for p in found.passages] == [1, 2, 3]


@pytest.mark.requirement("O-48")
@pytest.mark.parametrize(
    "options",
    [
        {"min_score": 0.9},
        {"words": "all"},
        {"words": "all_first", "fusion": "rrf"},
        {"fusion": "weighted", "meaning_weight": 0.0},
        {},
    ],
)
def test_a_replay_asks_as_was_asked(
    library: World, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a search with a floor, say, would find more passages, and neighbours be blamed."""
    halves = Calibration("tiny", "hybrid", 0.0, 0.0, 10.0, 0.5)
    monkeypatch.setattr(relevance, "calibrations", lambda: (halves,))
    plain = logged(library).search("lost the device", scope=library.scope, principal=WHO)
    made = search(library, "lost the device", **options)
    [row] = rows(library, made)
    assert row["options"] == (options or None)
    if "min_score" in options:
        assert 0 < len(row["hits"]) < len(plain.hits)
    found = again(library, made, "lost the device")
    assert (found.reproduced, found.unchanged) == (True, True)
    assert causes(found) == {}


def test_a_replay_needs_the_very_question_and_key(library: World) -> None:
    made = search(library, "lost device")
    with pytest.raises(InputError):
        again(library, made, "stolen device")
    with pytest.raises(InputError) as caught:
        replay(
            library.database,
            logged(library),
            QuestionKey(bytes(32)),
            made,
            "lost device",
            scope=library.scope,
            principal=ADMIN,
        )
    assert "KB_LOG_KEY" in str(caught.value)


def test_a_replay_names_a_new_version_and_still_reproduces(library: World) -> None:
    made = search(library, "lost device", k=1)
    soon = datetime.now(UTC) + timedelta(milliseconds=1)
    library.publish("security", ["Report a lost device to the desk."], valid_from=soon)
    found = again(library, made, "lost device")
    assert found.reproduced
    assert not found.unchanged
    assert causes(found) == {"security v1": "document", "security v2": "document"}
    assert "Version 2 holds since" in found.passages[0].why


def test_a_replay_names_removal(library: World) -> None:
    made = search(library, "lost device", k=1)
    with library.pipeline() as conn:
        passages.remove(conn, library.row("security").document_key, datetime.now(UTC))
    found = again(library, made, "lost device")
    assert causes(found)["security v1"] == "document"
    assert found.reproduced


def test_a_replay_names_changed_readers(library: World) -> None:
    made = search(library, "lost device", k=1)
    with library.pipeline() as conn:
        passages.set_audiences(conn, library.row("security").document_key, ["board"])
    found = again(library, made, "lost device")
    assert causes(found)["security v1"] == "audiences"
    assert not found.reproduced  # who may read is decided now, also for what held then


def test_a_replay_names_the_rules(library: World) -> None:
    made = search(library, "lost device", k=1)
    row = library.row("security")
    with library.pipeline() as conn:
        versions.record_verdict(conn, row, Verdict.QUARANTINE, (), rule_pack="pack-9", actor="test")
        conn.execute(
            "update kb.document set state = 'quarantined', reason = 'Looks like an attack.' "
            "where document_key = %s",
            [row.document_key],
        )
    found = again(library, made, "lost device")
    assert causes(found)["security v1"] == "rules"
    assert "pack-9" in found.passages[0].why


def test_a_replay_names_the_model(library: World) -> None:
    class Other(TinyEmbedder):
        model_id = "tiny@2"

        def embed(self, texts: Any, kind: str) -> Any:
            return -super().embed(texts, kind)

    library.publish("noise", ["Nothing of the kind at all.", "Quite another matter."])
    made = search(library, "lost device", k=2)
    library.embedder = Other()
    for name, texts in {"security": [LOST, "Doors are locked at night."], "leave": [LEAVE]}.items():
        library.publish(name, texts)
    found = again(library, made, "lost device")
    assert found.model_logged != found.model_now
    assert set(causes(found).values()) <= {"model", "document"}
    assert "model" in causes(found).values()


def test_of_several_searches_under_an_id_the_one_with_the_question_is_replayed(
    library: World,
) -> None:
    """Callers name searches by ids of their own, such as a request's, which may search twice."""
    for query in ("lost device", "annual leave"):
        search(library, query, correlation_id="request-7", k=2)
    first, second = (again(library, "request-7", q) for q in ("lost device", "annual leave"))
    assert first.reproduced
    assert second.reproduced
    assert first.passages != second.passages
    with pytest.raises(InputError):
        again(library, "request-7", "stolen device")
