"""Ten tasks of an operator, done by clicking in the real Dagster UI, counted and photographed.

`make operator-screenshots` starts an installation of its own in a temporary folder, ingests
examples with some that are refused, held back or fail, does every task as a person would from the
UI's first page, looks in the ledger whether it worked, and writes `docs/img/operator/*.png` and the
tasks in docs/operations.md. A task of more than `MAX_CLICKS` clicks, or one that did nothing, ends
it with an error, and nothing of the documentation changes. Typing is no click; the browser's
address bar is not used.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path

from installation import ROOT, Installation, Shop, installation, require
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from task import Task, keep
from tasks import TASKS, retry

PAGE = ROOT / "docs" / "operations.md"
IMAGES = ROOT / "docs" / "img"
MAX_CLICKS = 6
TIMEOUT_S = 240.0
VIEW: ViewportSize = {"width": 1440, "height": 900}
WIDE: ViewportSize = {"width": 2400, "height": 460}


def sights(page: Page, here: Installation, folder: Path) -> None:
    """What docs/operations.md shows beside the tasks."""
    blocked = next(name for name, state in here.states("handbook").items() if state == "blocked")
    run = next(r["runId"] for r in reversed(here.runs()) if r["jobName"] == "kb_batch")
    scan = "/assets/kb/scan?view="
    for name, address, words in (
        ("partitions", f"{scan}partitions&partition=handbook:{blocked}", "rule_pack"),
        ("checks", f"{scan}checks&checkDetail=verdict_clean", "Latest execution"),
        ("run", f"/runs/{run}", "RUN_SUCCESS"),
        ("overview", "/assets/kb/index?view=overview", "heading_path"),
    ):
        page.goto(f"{here.url}{address}")
        page.locator(f"text={words} >> visible=true").first.wait_for()
        keep(page, folder / f"dagster-{name}.png")


def lineage(browser: Browser, here: Installation, folder: Path) -> None:
    """The whole line; what a node says is shown from a certain size on."""
    page = browser.new_page(viewport=WIDE)
    page.set_default_timeout(TIMEOUT_S * 1000)
    page.goto(f"{here.url}/locations/kb/asset-groups/documents")
    page.get_by_text("Hide navigation").click()
    page.reload()
    page.locator("text=supersede >> visible=true").first.wait_for()
    page.get_by_text("Loading").first.wait_for(state="hidden")
    keep(page, folder / "dagster-lineage.png", 1600)
    page.close()


def operate(page: Page, here: Installation, folder: Path) -> list[Task]:
    """Do all of them, each from the UI's first page on; one that fails stops no other.

    Raises:
        SystemExit: naming those that failed.
    """
    done, failed = [], []
    for title, act in TASKS:
        if act is retry:
            Shop.is_back = True
        page.goto(here.url)
        page.locator("a", has_text=re.compile("^Jobs$")).first.wait_for()
        made = Task(page, act.__name__.replace("_", "-"), title, folder)
        try:
            act(made, here)
            require(made.clicks <= MAX_CLICKS, f"{made.clicks} clicks")
        except (PlaywrightError, SystemExit) as error:
            page.screenshot(path=str(Path(tempfile.gettempdir()) / f"failed-{made.name}.png"))
            failed.append(f"{title}: {error}")
            print(f"failed: {failed[-1]}", file=sys.stderr, flush=True)
            continue
        done.append(made)
        print(f"{made.clicks} clicks: {title}: {' → '.join(made.steps)}", flush=True)
    require(not failed, "\n".join(failed))
    return done


def write_page(done: list[Task]) -> None:
    """The tasks' part of docs/operations.md."""
    parts = []
    for t in done:
        noun = "click" if t.clicks == 1 else "clicks"
        parts.append(
            f"### {t.title}\n\n{t.clicks} {noun}: {' → '.join(t.steps)}.\n\n"
            f"![{t.title}](img/operator/{t.name}.png)\n"
        )
    begin, end = "<!-- tasks: begin -->", "<!-- tasks: end -->"
    text = PAGE.read_text()
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    body = "\n".join(parts)
    PAGE.write_text(f"{before}{begin}\n\n{body}\n{end}{after}")


def main() -> None:
    """Do all tasks and write pictures and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=ROOT / ".kb" / "models")
    given = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    require(bool(chromium), "Chromium is missing: run tools/system-packages")
    with (
        tempfile.TemporaryDirectory() as made,
        installation(given.models.resolve()) as here,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport=VIEW)
        page.set_default_timeout(TIMEOUT_S * 1000)
        pictures = Path(made)
        lineage(browser, here, pictures)
        sights(page, here, pictures)
        done = operate(page, here, pictures / "operator")
        browser.close()
        shutil.copytree(pictures, IMAGES, dirs_exist_ok=True)
    write_page(done)


if __name__ == "__main__":
    main()
