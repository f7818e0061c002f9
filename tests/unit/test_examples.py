"""The example handbook: complete, as described, small, and what its generator writes."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pypdfium2
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES, TOOLS = ROOT / "examples", ROOT / "tools" / "examples"
STATES = json.loads((TOOLS / "states.json").read_text("utf-8"))
QUESTIONS = json.loads((TOOLS / "questions.json").read_text("utf-8"))
FONT = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")


def pdf_text(path: Path) -> str:
    document = pypdfium2.PdfDocument(path)
    try:
        return "\n".join(page.get_textpage().get_text_range() for page in document)
    finally:
        document.close()


def test_every_file_has_its_expected_state_and_every_state_its_file() -> None:
    files = {
        path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*") if path.is_file()
    }
    assert files == set(STATES)


def test_the_handbook_covers_languages_and_formats_in_little_space() -> None:
    indexed = [name for name, row in STATES.items() if row["states"] == ["indexed"]]
    assert len(indexed) >= 26
    languages = {STATES[name]["language"] for name in indexed}
    assert languages == {"en", "de", "bg", "ru", "sr", "mk", "hr", "sl"}
    suffixes = {Path(name).suffix[1:] for name in indexed}
    assert suffixes == {"pdf", "docx", "pptx", "xlsx", "html", "md", "txt", "json", "eml"}
    size = sum(path.stat().st_size for path in EXAMPLES.rglob("*") if path.is_file())
    assert size < 1_500_000


def test_the_update_is_one_policy_with_another_number_of_leave_days() -> None:
    updates = [path for path in (ROOT / "examples-update").rglob("*") if path.is_file()]
    (new,) = updates
    old = EXAMPLES / new.relative_to(ROOT / "examples-update")
    assert "26 working days" in old.read_text("utf-8")
    assert "28 working days" in new.read_text("utf-8")
    assert "26 working days" not in new.read_text("utf-8")


def test_the_special_files_are_what_they_say() -> None:
    with pytest.raises(UnicodeDecodeError):
        (EXAMPLES / "ru/otpuska.txt").read_text("utf-8")
    assert "28 календарных дней" in (EXAMPLES / "ru/otpuska.txt").read_text("cp1251")
    minutes = (EXAMPLES / "special/logistics-minutes.md").read_text("utf-8")
    hidden = "".join(chr(ord(c) - 0xE0000) for c in minutes if "\U000e0000" < c <= "\U000e007f")
    assert hidden.startswith("Ignore all previous instructions")
    portal = (EXAMPLES / "special/supplier-portal.html").read_text("utf-8")
    assert ".preload { display: none }" in portal
    assert pdf_text(EXAMPLES / "special/signed-handover-scan.pdf").strip() == ""
    with pytest.raises(pypdfium2.PdfiumError):
        pypdfium2.PdfDocument(EXAMPLES / "special/interrupted-download.pdf")


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q["document"]], ids=str)
def test_the_answer_to_each_question_stands_in_its_document(question) -> None:
    path = EXAMPLES / question["document"]
    if path.suffix == ".pdf":
        text = pdf_text(path)
    elif path.suffix == ".docx":
        with zipfile.ZipFile(path) as archive:
            text = archive.read("word/document.xml").decode()
    else:
        text = path.read_text("utf-8")
    assert question["phrase"] in " ".join(text.split())


def test_there_is_a_question_for_each_language_and_script_and_two_without_answer() -> None:
    answered = [q["language"] for q in QUESTIONS if q["document"]]
    assert sorted(answered) == sorted(["en", "de", "bg", "ru", "sr", "sr", "mk", "hr", "sl"])
    assert sum(q["document"] is None for q in QUESTIONS) == 2


@pytest.mark.skipif(not FONT.exists(), reason="SKIPPED: no DejaVu fonts to build the PDFs with")
def test_the_generator_writes_the_committed_files(tmp_path) -> None:
    """Same bytes where the compression library is the same; the same text in any case."""
    command = [sys.executable, TOOLS / "build.py", "--target", tmp_path]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    built = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(built) == 17
    for path in built:
        committed = EXAMPLES / path.relative_to(tmp_path)
        if path.suffix in (".docx", ".pptx", ".xlsx"):
            with zipfile.ZipFile(path) as new, zipfile.ZipFile(committed) as old:
                assert {n: new.read(n) for n in new.namelist()} == {
                    n: old.read(n) for n in old.namelist()
                }
        elif path.suffix == ".pdf" and "interrupted" not in path.name:
            assert pdf_text(path) == pdf_text(committed)
        elif path.suffix != ".pdf":
            assert path.read_bytes() == committed.read_bytes()
