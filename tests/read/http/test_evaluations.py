"""Kept evaluations over HTTP: who reads them, and that no document shows that one may not read."""

from __future__ import annotations

from kb_resources import evaluate
from kb_resources.evaluate import Found, Label, Question, keeping
from kb_resources.model import Principal
from kb_resources.retrieve import Hit
from kb_resources.store.pool import Database
from tests.read.http.conftest import Installation, Served

READER = Principal("test", roles=frozenset({"system"}))


def keep(database: Database, hits: tuple[Hit, ...]) -> str:
    questions = (
        Question("q1", "?", labels=(Label(hits[0].document_id),)),
        Question("q2", "?", labels=(Label("nowhere"),)),
    )
    made = evaluate.run("acme", questions, lambda _: Found(hits))
    with database.transaction("pipeline") as conn:
        return keeping.keep(
            conn,
            made,
            scope="acme",
            name="acme.jsonl",
            questions_digest=keeping.digest_of(questions),
            config={"mode": "text"},
            actor="test",
            duration_s=0.1,
        )


def test_editors_read_the_runs_of_their_scopes(served: Served, installation: Installation) -> None:
    database = served.app.state.services.database
    hits = served.app.state.services.reader.retriever.search(
        "annual leave", scope="acme", principal=READER, mode="text"
    ).hits
    run_id = keep(database, hits)
    editor = served.client.with_key(installation.keys["editor"])
    system = served.client.with_key(installation.keys["system"])
    (listed,) = [
        item
        for item in editor("GET", "/api/v1/evaluations?scope=acme").json["items"]
        if item["run_id"] == run_id
    ]
    assert listed["figures"]["all"]["means"]["r_1"] == 0.5
    assert listed["ndcg_10"] == 0.5
    shown = editor("GET", f"/api/v1/evaluations/acme/{run_id[:10]}").json
    assert [(one["id"], one["first"], one["top"]) for one in shown["questions"]] == [
        ("q1", 1, None),
        ("q2", None, None),
    ]
    shown = system("GET", f"/api/v1/evaluations/acme/{run_id}").json
    assert shown["questions"][0]["top"][0] == hits[0].document_id
    assert editor("GET", "/api/v1/evaluations/acme/ffff").status == 404
    assert editor("GET", "/api/v1/evaluations/acme/%00").status == 422
    assert editor("GET", "/api/v1/evaluations?scope=acme&limit=0").status == 422
