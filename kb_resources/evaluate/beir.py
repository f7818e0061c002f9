"""Labelled sets in BEIR's layout: `corpus.jsonl`, `queries.jsonl` and `qrels.tsv` in a folder.

Belongs here: reading such a folder, and every complaint by file and line. What does not: loading it
into a scope (`stages.scratch`). Layout: Thakur et al., "BEIR", 2021; the folder `qrels/` with
`test.tsv`, as distributed, is read too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb_resources.errors import InputError
from kb_resources.evaluate.questions import Label, Question
from kb_resources.model import content_hash

MAX_TEXT_CHARS = 5_000_000


@dataclass(frozen=True, slots=True)
class SetDocument:
    """A corpus row: its id in the set, title (may be empty), text, language (may be empty)."""

    id: str
    title: str
    text: str
    language: str


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """A folder in BEIR's layout, its corpus still to be read.

    Attributes:
        name: of the folder.
        folder: where it is.
        questions: those to ask; without a label they are unanswerable.
        digest: SHA-256 hex of questions and labels.
        unknown: labels whose question is not in `queries.jsonl`.
    """

    name: str
    folder: Path
    questions: tuple[Question, ...]
    digest: str
    unknown: int

    def corpus(self) -> Iterator[SetDocument]:
        """The corpus, row by row; InputError where a row is wrong or an id comes twice."""
        file = self.folder / "corpus.jsonl"
        seen: set[str] = set()
        for number, row in _rows(file):
            name = _field(row, "_id", file, number)
            if name in seen:
                raise _wrong(file, number, f"has the id {name!r} of an earlier line")
            seen.add(name)
            text = _optional(row, "text", file, number)
            title = _optional(row, "title", file, number)
            if text.strip() or title.strip():
                yield SetDocument(name, title.strip(), text if text.strip() else title, _tag(row))


def read_set(folder: Path, *, min_grade: int = 1) -> LabelledSet:
    """Read questions and labels of a set.

    A question without a label is unanswerable where `qrels.tsv` stands beside the questions, and
    left out where `qrels/test.tsv` does: there the file holds the questions of other splits too.

    Args:
        folder: the set's.
        min_grade: labels below it do not count.

    Raises:
        InputError: a file is missing or a line is wrong (`bad_set`); names file, line and fix.
    """
    for name in ("corpus.jsonl", "queries.jsonl"):
        if not (folder / name).is_file():
            raise _lacks(folder, name)
    beside, split = folder / "qrels.tsv", folder / "qrels" / "test.tsv"
    if not beside.is_file() and not split.is_file():
        raise _lacks(folder, "qrels.tsv")
    labels = _labels(beside if beside.is_file() else split, min_grade)
    questions = []
    asked = set()
    file = folder / "queries.jsonl"
    for number, row in _rows(file):
        name = _field(row, "_id", file, number)
        if name in asked:
            raise _wrong(file, number, f"has the id {name!r} of an earlier line")
        if len(name) > 200:
            raise _wrong(file, number, "has an id of more than 200 characters", "Shorten it.")
        asked.add(name)
        text = _field(row, "text", file, number)
        found = tuple(Label(document, grade=grade) for document, grade in labels.get(name, ()))
        if found or beside.is_file():
            questions.append(
                Question(
                    id=name,
                    text=text,
                    language=_tag(row) or "und",
                    slice="other" if found else "unanswerable",
                    labels=found,
                    line=number,
                )
            )
    if not questions:
        raise InputError(
            f"No question of {file} has a label.",
            next_step="Put lines of query id, corpus id and score into qrels.tsv.",
            code="bad_set",
        )
    digest = content_hash(
        json.dumps(
            [[q.id, q.text, [[one.document, one.grade] for one in q.labels]] for q in questions]
        )
    )
    unknown = sum(len(found) for name, found in labels.items() if name not in asked)
    return LabelledSet(
        folder.resolve().name[:200] or "set", folder, tuple(questions), digest, unknown
    )


def _labels(file: Path, min_grade: int) -> Mapping[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for number, line in enumerate(_text(file).split("\n"), 1):
        fields = line.rstrip("\r").split("\t")
        if not line.strip() or (number == 1 and not _is_number(fields[-1])):
            continue
        if len(fields) != 3 or not _is_number(fields[2]):
            raise _wrong(
                file,
                number,
                "is not query id, corpus id and score",
                "Separate the three by tabs; the score is a number.",
            )
        grade = int(float(fields[2]))
        if grade >= max(1, min_grade):
            found[fields[0]].append((fields[1], grade))
    return found


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < 1000
    except ValueError:
        return False


def _rows(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Objects of a JSON-lines file with their line numbers; blank lines are passed over."""
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, _object(file, number, line)
    except OSError as error:
        raise _lacks(file.parent, file.name) from error


def _object(file: Path, number: int, line: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _wrong(file, number, "is not JSON in UTF-8") from error
    if not isinstance(value, dict):
        raise _wrong(file, number, "is no JSON object")
    return value


def _field(row: Mapping[str, Any], name: str, file: Path, number: int) -> str:
    value = _optional(row, name, file, number)
    if not value.strip():
        raise _wrong(file, number, f"has no {name!r}")
    return value


def _optional(row: Mapping[str, Any], name: str, file: Path, number: int) -> str:
    value = row.get(name, "")
    if name == "_id" and isinstance(value, int):
        value = str(value)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
        raise _wrong(file, number, f"has no text as {name!r}, or more than 5,000,000 characters")
    return value.replace("\0", " ").encode("utf-8", "replace").decode()


def _tag(row: Mapping[str, Any]) -> str:
    value = row.get("lang") or row.get("language") or ""
    return value[:20] if isinstance(value, str) else ""


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file} cannot be read as UTF-8.", next_step="Save it as UTF-8.", code="bad_set"
        ) from error


def _lacks(folder: Path, name: str) -> InputError:
    return InputError(
        f"{folder} has no {name}.",
        next_step="Name a folder with corpus.jsonl, queries.jsonl and qrels.tsv.",
        code="bad_set",
    )


def _wrong(
    file: Path, number: int, what: str, fix: str = 'Write one object a line with "_id" and "text".'
) -> InputError:
    return InputError(f"{file}, line {number}: {what}.", next_step=fix, code="bad_set")
