"""The ten tasks, as a person does them who knows nothing but what the page shows."""

from __future__ import annotations

import re
from collections.abc import Callable

from installation import PAGES, Installation, require, until, write_many
from task import Task, see


def find_failed(t: Task, here: Installation) -> None:
    """The health asset names it and says why."""
    failed = [name for name, state in here.states("suppliers").items() if state == "failed"]
    require(len(failed) == len(PAGES), f"{here.states('suppliers')}")
    t.asset("health")
    t.page.get_by_text(failed[-1]).first.wait_for()
    see(t.page, "Retry all that failed in suppliers")
    t.picture()


def health(t: Task, _: Installation) -> None:
    """What is not as it should be fails a check."""
    t.asset("health")
    t.click(t.page.get_by_role("tab", name="Checks"), "Checks")
    t.click(t.page.get_by_text("nothing_failed"), "`nothing_failed`")
    t.page.get_by_text("Latest execution").first.wait_for()
    t.picture()


def retry(t: Task, here: Installation) -> None:
    """From the row of the document to the launchpad, filled in."""
    t.asset("health")
    t.click(t.page.get_by_role("link", name="Retry", exact=True), "Retry, under the document")
    t.fitting()
    t.picture()
    t.launch()
    until(lambda: list(here.states("suppliers").values()).count("failed") == 2, "nothing retried")


def retry_all(t: Task, here: Installation) -> None:
    """The same for all that failed."""
    t.asset("health")
    words = "Retry all that failed in suppliers"
    t.click(t.page.get_by_role("link", name=words), words)
    t.fitting()
    t.launch()
    t.succeeds()
    t.picture()
    require("failed" not in here.states("suppliers").values(), "some were not retried")


def release(t: Task, here: Installation) -> None:
    """Read the findings, then decide, with a reason and a name."""
    t.asset("health")
    t.click(t.page.get_by_role("link", name="Findings").first, "Findings, under the document")
    t.page.get_by_role("link", name="Release").first.wait_for()
    t.picture()
    t.click(t.page.get_by_role("link", name="Release"), "Release")
    t.page.locator(".CodeMirror-code").get_by_text("digest").wait_for()
    t.click(t.page.locator(".CodeMirror-lines").first, "into the configuration")
    for key in ("Control+End", "ArrowLeft"):
        t.page.keyboard.press(key)
    t.type("Ana", "(type who you are")
    for key in ("ArrowUp", "End", "ArrowLeft"):
        t.page.keyboard.press(key)
    t.type("A remark to the buyer; it addresses no model.", "and why)")
    t.fitting()
    t.launch()
    t.succeeds()
    require("quarantined" not in here.states("suppliers").values(), "nothing was released")


def backfill(t: Task, here: Installation) -> None:
    """All documents of a scope through all stages, as a backfill."""
    t.link("Jobs")
    t.click(t.page.locator("a", has_text="kb_documents"), "`kb_documents`")
    t.click(t.page.get_by_role("button", name=re.compile("Materialize")), "Materialize all…")
    t.click(t.page.get_by_text("Select a partition or create one"), "Select a partition")
    t.type("suppliers:", "(type the scope and a colon)")
    t.click(t.page.get_by_text(re.compile(r"^Select all")), "Select all")
    t.picture()
    t.page.keyboard.press("Escape")
    t.click(t.page.get_by_role("button", name=re.compile("Launch (backfill|run)")), "Launch")
    t.page.locator(".dagster-dialog").first.wait_for(state="hidden")
    until(lambda: here.backfills()[:1] == ["COMPLETED_SUCCESS"], "the backfill goes on")


def reembed(t: Task, here: Installation) -> None:
    """Start it for one scope, then watch the backfill."""
    t.asset("generations")
    link = t.page.locator("a[href*='kb_reembed'][href*='handbook']")
    t.click(link, "the model, beside the scope")
    t.fitting()
    t.launch()
    t.succeeds()
    t.link("Runs")
    t.click(t.page.locator("a, [role=tab]", has_text=re.compile("^Backfills$")), "Backfills")
    t.page.get_by_text("kb/cause: reembed").first.wait_for()
    t.page.get_by_text("kb_review").first.wait_for(state="hidden")  # runs, shown until then
    t.picture()
    until(lambda: here.backfills()[0] == "COMPLETED_SUCCESS", "the re-embedding goes on")


def cost(t: Task, here: Installation) -> None:
    """A tag of the run."""
    t.link("Runs")
    t.page.get_by_text("kb/cost").first.wait_for()
    run = next(r["runId"] for r in reversed(here.runs()) if r["jobName"] == "kb_batch")
    t.click(t.page.locator(f"a[href*='/runs/{run}']"), "the run's id")
    t.click(t.page.get_by_role("button", name="View tags and config"), "View tags and config")
    t.page.get_by_role("dialog").get_by_text("kb/cost").wait_for()
    t.picture()


def pause(t: Task, here: Installation) -> None:
    """A switch."""
    t.link("Automation")
    t.page.get_by_text("watched_urls").first.wait_for()
    name = t.page.locator("a[href$='/sensors/watched_urls']")
    switch = name.locator("xpath=following::label[1]")
    t.click(switch, "the switch of `watched_urls`")
    query = (
        '{sensorOrError(sensorSelector: {repositoryLocationName: "kb", repositoryName: '
        '"__repository__", sensorName: "watched_urls"}) '
        "{... on Sensor {sensorState {status}}}}"
    )
    until(
        lambda: here.ask(query)["sensorOrError"]["sensorState"]["status"] == "STOPPED",
        "watched_urls goes on",
    )
    t.picture()


def cancel(t: Task, here: Installation) -> None:
    """What goes on ends between two documents."""
    write_many(here)
    # Until its process answers the UI offers to forget the run instead of ending it.
    query = "{runsOrError(limit: 1) {... on Runs {results {canTerminate}}}}"
    until(
        lambda: here.ask(query)["runsOrError"]["results"][0]["canTerminate"],
        "the run cannot be ended",
    )
    t.link("Runs")
    t.click(t.page.get_by_text(re.compile("^In progress")), "In progress")
    t.click(t.page.locator("a[href*='/runs/']"), "the run's id")
    t.page.locator("text=/^Started$/").first.wait_for()
    t.click(t.page.get_by_role("button", name="Terminate"), "Terminate")
    confirm = t.page.get_by_role("dialog").get_by_role("button", name="Terminate 1 run")
    confirm.wait_for()
    t.picture()
    t.click(confirm, "Terminate 1 run")
    until(lambda: any(run["status"] == "CANCELED" for run in here.runs()), "nothing was canceled")


TASKS: tuple[tuple[str, Callable[[Task, Installation], None]], ...] = (
    ("Find a failed document and why", find_failed),
    ("See today's health", health),
    ("Retry a document", retry),
    ("Retry all failed documents of a scope", retry_all),
    ("Release a document from quarantine", release),
    ("Backfill one scope", backfill),
    ("Start and watch a re-embedding", reembed),
    ("See what a run cost", cost),
    ("Pause a watcher", pause),
    ("Cancel a run", cancel),
)
"""In an order in which each finds something to do."""
