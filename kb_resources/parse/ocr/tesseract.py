"""The Tesseract program: found, asked for its packs, run on one picture at a time.

Belongs here: the command line and its tab separated answer. Which language to ask for and what to
believe is `recogniser.py`'s. Columns and page segmentation modes:
https://github.com/tesseract-ocr/tesseract/blob/main/doc/tesseract.1.asc.
"""

from __future__ import annotations

import contextlib
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from kb_resources.parse.ocr.picture import Picture

AUTO, BLOCK, ORIENTATION = 3, 6, 0
"""Page segmentation modes: full page, one uniform block, script and orientation only."""

_ASK_S = 20.0
_LEAST_S = 1.0
_ROTATE = re.compile(r"^Rotate: (\d+)", re.MULTILINE)
_ROTATE_SURE = re.compile(r"^Orientation confidence: ([\d.]+)", re.MULTILINE)
_LEAST_SURE = 1.0
_WORD_ROW = "5"


class RecognitionFailed(Exception):
    """Tesseract gave no answer for a picture; the message is a sentence for a person."""


@dataclass(frozen=True, slots=True)
class OcrWord:
    """One word as recognised, pixels of the picture, origin top left.

    Attributes:
        text: what it says.
        left: left edge.
        top: upper edge.
        right: right edge, exclusive.
        bottom: lower edge, exclusive.
        confidence: 0..1.
        line: block, paragraph and line it stands in.
    """

    text: str
    left: int
    top: int
    right: int
    bottom: int
    confidence: float
    line: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Tesseract:
    """An installed Tesseract.

    Attributes:
        program: its path.
        packs: language packs it has.
        version: its major version.
    """

    program: str
    packs: frozenset[str]
    version: str

    def read(
        self, picture: Picture, language: str, mode: int, timeout_s: float
    ) -> tuple[OcrWord, ...]:
        """Words of a picture in Tesseract's reading order.

        Raises:
            RecognitionFailed: it ran out of time, crashed or lacks the pack.
        """
        options = ["-l", language, "--psm", str(mode), "-c", "tessedit_create_tsv=1"]
        return parse_tsv(self._run(picture, options, timeout_s))

    def rotation(self, picture: Picture, timeout_s: float) -> int:
        """Degrees to turn the picture clockwise until its text is upright; 0 when unclear."""
        if "osd" not in self.packs:
            return 0
        with contextlib.suppress(RecognitionFailed):
            told = self._run(picture, ["-l", "osd", "--psm", str(ORIENTATION)], timeout_s)
            turn, sure = _ROTATE.search(told), _ROTATE_SURE.search(told)
            if turn and sure and float(sure[1]) >= _LEAST_SURE:
                return int(turn[1]) % 360
        return 0

    def _run(self, picture: Picture, options: list[str], timeout_s: float) -> str:
        command = [self.program, "stdin", "stdout", "--dpi", str(round(picture.dpi)), *options]
        try:
            done = subprocess.run(
                command,
                input=picture.to_pgm(),
                capture_output=True,
                timeout=max(timeout_s, _LEAST_S),
                env=_environment(),
                check=False,
                preexec_fn=_die_together(os.getpid()),
            )
        except subprocess.TimeoutExpired as error:
            raise RecognitionFailed(
                f"Text recognition took longer than {timeout_s:.0f} s on a page."
            ) from error
        except OSError as error:
            raise RecognitionFailed(f"Tesseract could not be started: {error.strerror}.") from error
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            why = f" ({said[-1][:200]})" if said else ""
            raise RecognitionFailed(f"Tesseract ended with status {done.returncode}{why}.")
        return done.stdout.decode("utf-8", "replace")


def find_tesseract() -> Tesseract | None:
    """The installed program, or None where there is none that answers."""
    program = shutil.which("tesseract")
    if program is None:
        return None
    try:
        listed, told = (
            subprocess.run(
                [program, option],
                capture_output=True,
                timeout=_ASK_S,
                env=_environment(),
                check=True,
            )
            for option in ("--list-langs", "--version")
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = (listed.stdout or listed.stderr).decode("utf-8", "replace").splitlines()[1:]
    version = re.search(rb"tesseract v?(\d+)", told.stdout or told.stderr)
    return Tesseract(
        program=program,
        packs=frozenset(line.strip() for line in lines if line.strip()),
        version=version[1].decode() if version else "",
    )


def parse_tsv(text: str) -> tuple[OcrWord, ...]:
    """Words of Tesseract's tab separated output; rows that are none are passed over."""
    words = []
    for row in csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        said = (row.get("text") or "").strip()
        if row.get("level") != _WORD_ROW or not said:
            continue
        left, top = int(row["left"]), int(row["top"])
        words.append(
            OcrWord(
                text=said,
                left=left,
                top=top,
                right=left + int(row["width"]),
                bottom=top + int(row["height"]),
                confidence=min(max(float(row["conf"]) / 100, 0.0), 1.0),
                line=(int(row["block_num"]), int(row["par_num"]), int(row["line_num"])),
            )
        )
    return tuple(words)


def _environment() -> dict[str, str]:
    kept = {key: os.environ[key] for key in ("PATH", "TESSDATA_PREFIX") if key in os.environ}
    return kept | {"OMP_THREAD_LIMIT": "1", "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"}


def _die_together(parent_pid: int) -> Callable[[], None] | None:
    """What the child does first: never outlive us, and take the CPU time set aside for helpers."""
    if not sys.platform.startswith("linux"):
        return None
    from kb_resources.parse.sandbox.limits import as_helper

    def first() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        as_helper(parent_pid)

    return first
