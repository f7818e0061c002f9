"""The assets about answers: kept citations follow their documents, logs have room."""

from __future__ import annotations

import dagster as dg
import pytest

from kb_resources.answer.citing import CitationStatus
from kb_resources.answer.keeping import Citations
from kb_resources.model import Principal
from kb_resources.retrieve import Retriever
from tests.dagster.conftest import Plant

WHO = Principal("test:ann")
RULE = "Every employee has thirty days of paid annual leave."
TEXT = f"# Leave\n\n{RULE} It is granted in agreement with the team, in writing.\n"


@pytest.mark.requirement("O-47")
def test_citations_are_looked_at_again_and_counted_on_the_asset(plant: Plant) -> None:
    from kb_assets.answers import citations, log_partitions

    database = plant.line.capabilities.database
    retriever = Retriever(database)
    kept = Citations(database, retriever)
    plant.batch(plant.register({"leave.md": TEXT}))
    hit = retriever.search("annual leave", scope="acme", principal=WHO, mode="text").hits[0]
    kept.keep(RULE, hit.passage_id, scope="acme", principal=WHO, holder="wiki/leave")
    plant.batch(plant.register({"leave.md": TEXT.replace("# Leave", "# All about paid leave")}))

    def run() -> dict[str, object]:
        done = dg.materialize(
            [citations, log_partitions], instance=plant.instance, resources={"line": plant.line}
        )
        (made,) = done.asset_materializations_for_node("kb_scopes__citations")
        return {name: value.value for name, value in made.metadata.items()}

    first = run()
    assert first == {"checked": 1, "turned_moved": 1, "moved": 1}
    (after,) = kept.kept(scope="acme", principal=WHO)
    assert (after.status, after.version_now) == (CitationStatus.MOVED, 2)
    assert run() == {"checked": 0, "moved": 1}
