"""One task: its clicks, counted, and its pictures."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass, field
from pathlib import Path

from installation import WAIT_S, require
from PIL import Image
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Locator, Page, expect

MAX_BYTES = 150_000
SHOWN_WIDTH = 1280
HEAD_PX = 200


@dataclass
class Task:
    """One task: what is clicked, and its picture."""

    page: Page
    name: str
    title: str
    folder: Path
    steps: list[str] = field(default_factory=list)
    clicks: int = 0

    def click(self, what: Locator, words: str) -> None:
        """Click as a person does: on something visible, once."""
        what.first.click()
        self.clicks += 1
        self.steps.append(words)

    def type(self, text: str, words: str) -> None:
        """Keys are no clicks."""
        self.page.keyboard.type(text)
        self.steps.append(words)

    def link(self, name: str) -> None:
        """Click a link of the navigation on the left."""
        self.click(self.page.locator("a", has_text=re.compile(f"^{name}$")), name)

    def asset(self, name: str) -> None:
        """From anywhere to an asset's page."""
        self.link("Catalog")
        row = self.page.locator("a", has_text=re.compile(rf"{name}$"))
        self.page.locator("text=Asset name").wait_for()
        for _ in range(20):  # the list is drawn as far as it is seen
            if row.count():
                break
            self.page.mouse.move(800, 600)
            self.page.mouse.wheel(0, 300)
            self.page.wait_for_timeout(200)
        self.click(row, f"`kb_scopes / {name}`")
        self.page.get_by_text("Latest materialization").first.wait_for()

    def fitting(self) -> None:
        """Wait until the launchpad calls the configuration right and lets it be launched."""
        self.page.get_by_text("No errors").first.wait_for()
        expect(self.page.get_by_role("button", name="Launch Run").first).to_be_enabled()

    def succeeds(self) -> None:
        """Wait for the run whose page this is."""
        self.page.locator("text=/^Success$/").first.wait_for(timeout=WAIT_S * 1000)
        self.page.get_by_text("RUN_SUCCESS").first.wait_for()

    def launch(self) -> None:
        """The launchpad's button, once the configuration was looked at."""
        button = self.page.get_by_role("button", name="Launch Run")
        self.click(button, "Launch Run")
        self.page.wait_for_url("**/runs/**")

    def picture(self) -> None:
        """Keep what is on the screen."""
        keep(self.page, self.folder / f"{self.name}.png")


def keep(page: Page, path: Path, width: int = SHOWN_WIDTH) -> None:
    """A picture of the screen, `width` pixels wide, small enough for a page of documentation."""
    page.mouse.move(5, 890)
    with contextlib.suppress(PlaywrightError):  # pages that ask again and again are never idle
        page.wait_for_load_state("networkidle", timeout=10_000)
    shot = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    height = round(shot.height * width / shot.width)
    small = shot.resize((width, height), Image.Resampling.LANCZOS)
    path.parent.mkdir(parents=True, exist_ok=True)
    small.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
        path, optimize=True
    )
    require(path.stat().st_size <= MAX_BYTES, f"{path} has {path.stat().st_size} bytes")


def see(page: Page, words: str) -> None:
    """Scroll words that stand on the page to its top, below what stays there."""
    found = page.get_by_text(words).first
    found.wait_for()
    found.evaluate(
        f"each => {{ each.style.scrollMarginTop = '{HEAD_PX}px'; each.scrollIntoView() }}"
    )
    page.evaluate("document.querySelectorAll('*').forEach(each => { each.scrollLeft = 0 })")
