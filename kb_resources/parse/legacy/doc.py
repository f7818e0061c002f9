"""Legacy Word files by way of an installed converter.

Belongs here: finding a converter and running it under limits. The binary format has no reader worth
keeping in Python; LibreOffice turns it into DOCX
(https://help.libreoffice.org/latest/en-US/text/shared/guide/start_parameters.html), antiword into
text. RTF is `rtf.py`'s.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from kb_resources.model import Coverage, DocumentState, Refusal
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.legacy.converter import find_converter
from kb_resources.parse.office.docx import read_docx
from kb_resources.parse.reading import Reading
from kb_resources.parse.sandbox.limits import as_helper, convert_prefix
from kb_resources.parse.tables import table_drafts
from kb_resources.parse.text import paragraphs

_TIMEOUT_S = 90
_ROW = re.compile(r"\|(.*)\|\s*")
_GUESSED = 0.5
_WORDS_ONLY = (
    "Read by antiword, which tells no headings; install LibreOffice (package libreoffice-writer) "
    "to read them."
)


def read_doc(data: bytes, name: str) -> Reading | Refusal:
    """Read a .doc file where a converter is installed.

    Args:
        data: the bytes.
        name: file name, for reasons.

    Returns:
        Reading, or a Refusal: `unsupported` with what to install, `failed` when the converter
        could not read the file.
    """
    converter = find_converter()
    if converter is None:
        return Refusal(
            DocumentState.UNSUPPORTED,
            "DOC files need LibreOffice; install it (package libreoffice-writer) or save the "
            "document as DOCX.",
        )
    with tempfile.TemporaryDirectory(prefix=convert_prefix(os.getpid())) as folder:
        source = Path(folder) / "document.doc"
        source.write_bytes(data)
        if converter.name == "libreoffice":
            converted = _libreoffice(converter.program, source)
            return read_docx(converted) if converted else _failed(name)
        text = _run([converter.program, "-m", "UTF-8.txt", "-w", "0", str(source)], folder)
        return _reading(text.decode("utf-8", "replace")) if text.strip() else _failed(name)


def _reading(text: str) -> Reading:
    """What antiword prints: a line a paragraph, rows of tables between pipes."""
    return Reading(
        drafts=tuple(_drafts(text.splitlines())),
        parser="antiword",
        coverage=Coverage(warnings=(_WORDS_ONLY,)),
    )


def _drafts(lines: list[str]) -> Iterator[DraftBlock]:
    """Paragraphs and tables in order; a first row may be a header, hence the low confidence."""
    prose: list[str] = []
    rows: list[tuple[str, ...]] = []
    for line in [*lines, ""]:
        found = _ROW.fullmatch(line)
        if found:
            yield from paragraphs("\n".join(prose))
            prose = []
            rows.append(tuple(cell.strip() for cell in found[1].split("|")))
            continue
        for draft in table_drafts(rows, 1, lambda _first, _last: None):
            yield replace(draft, confidence=_GUESSED)
        rows = []
        prose.append(line)
    yield from paragraphs("\n".join(prose))


def _libreoffice(office: str, source: Path) -> bytes:
    folder = source.parent
    profile = f"-env:UserInstallation=file://{folder}/profile"
    options = ["--headless", "--norestore", "--convert-to", "docx", "--outdir", str(folder)]
    _run([office, profile, *options, str(source)], str(folder))
    target = folder / "document.docx"
    return target.read_bytes() if target.is_file() else b""


def _run(command: list[str], folder: str) -> bytes:
    environment = {"PATH": os.defpath, "HOME": folder, "LANG": "C.UTF-8"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            preexec_fn=_helper(os.getpid()),
        )
    except (subprocess.TimeoutExpired, OSError):
        return b""
    return done.stdout if done.returncode == 0 else b""


def _helper(parent_pid: int) -> Callable[[], None]:
    """What the converter does first: end with us, take the memory and time set aside for it."""
    import resource

    def first() -> None:
        as_helper(parent_pid)
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))

    return first


def _failed(name: str) -> Refusal:
    return Refusal(
        DocumentState.FAILED,
        f"The installed converter could not read {name!r}; save it as DOCX and try again.",
    )
