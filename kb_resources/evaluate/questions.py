"""Labelled questions: JSON lines in, checked values out.

Belongs here: the file's format and every complaint about it, by line and with what to do. What does
not: whether the scope holds what a label names (`labels`). A label names a document and, inside it,
a section or bytes of its body, never a passage: passages are cut anew by the next chunker.
Format: https://jsonlines.org.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from kb_resources.errors import InputError

Half = Literal["dev", "test"]
Slice = Literal[
    "paraphrase", "exact", "identifier", "compound", "cross-lingual", "unanswerable", "other"
]
SLICES: tuple[str, ...] = get_args(Slice)
MAX_QUESTIONS = 100_000
MAX_GRADE = 10
_FIELDS = ("id", "text", "language", "slice", "group", "relevant")
_LABEL_FIELDS = ("document", "section", "node", "bytes", "version", "grade")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z]{2,8})?")
_NODE = re.compile(r"[0-9a-f]{8}")
_EXAMPLE = '{"id": "q1", "text": "How long is leave?", "relevant": [{"document": "leave.md"}]}'


@dataclass(frozen=True, slots=True)
class Label:
    """What answers a question.

    Attributes:
        document: document id, or the source as hits name it.
        section: first headings of the section's path, from the root down; None: anywhere.
        node: outline node id (8 hex digits) at or below which it stands; None: anywhere.
        span: bytes of the body, half-open; None: anywhere.
        version: number of the version `span` counts in; None: the one that is found.
        grade: 1 and up; more is better.
    """

    document: str
    section: tuple[str, ...] | None = None
    node: str | None = None
    span: tuple[int, int] | None = None
    version: int | None = None
    grade: int = 1

    @property
    def whole_document(self) -> bool:
        """Whether any passage of the document will do."""
        return self.section is None and self.node is None and self.span is None


@dataclass(frozen=True, slots=True)
class Question:
    """One labelled question.

    Attributes:
        id: unique in its file.
        text: as a person would ask it.
        language: ISO 639-1 code, with a script or region where that matters; or `und`.
        slice: one of `SLICES`.
        labels: what answers it; empty: nothing in the scope does.
        group: questions of one group (translations of each other) fall into the same half.
        line: in the file, from 1; 0 where it has none.
    """

    id: str
    text: str
    language: str = "und"
    slice: str = "other"
    labels: tuple[Label, ...] = ()
    group: str = ""
    line: int = 0

    @property
    def half(self) -> Half:
        """The half it belongs to, the same in every run."""
        return half_of(self.group or self.id)


def half_of(name: str) -> Half:
    """The half of a question's id or group: one bit of its SHA-256, so it never moves."""
    return "dev" if hashlib.sha256(name.encode()).digest()[0] & 1 else "test"


def read_questions(file: Path) -> tuple[Question, ...]:
    """Questions of a JSON-lines file.

    Raises:
        InputError: it is missing, not UTF-8, empty, or a line is wrong; names line and fix.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(
            f"{file} cannot be read ({error.strerror}).",
            next_step="Name a file of JSON lines, one question each.",
            code="bad_questions",
        ) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise _wrong(str(file), line, "is not UTF-8", "Save the file as UTF-8.") from error
    return parse_questions(text, str(file))


def parse_questions(text: str, name: str = "questions") -> tuple[Question, ...]:
    """Questions of JSON lines; blank lines are passed over.

    Args:
        text: the file's content.
        name: what complaints call it.

    Raises:
        InputError: a line is wrong (`bad_questions`); names line and fix.
    """
    found: list[Question] = []
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        question = _Line(name, number).question(line)
        if question.id in lines:
            raise _wrong(
                name,
                number,
                f"has the id {question.id!r} of line {lines[question.id]}",
                "Give each question an id of its own.",
            )
        lines[question.id] = number
        found.append(question)
        if len(found) > MAX_QUESTIONS:
            raise _wrong(
                name, number, f"is question {MAX_QUESTIONS + 1:,}", "Split the file into several."
            )
    if not found:
        raise InputError(
            f"{name} holds no question.",
            next_step=f"Write one JSON object a line, such as {_EXAMPLE}",
            code="bad_questions",
        )
    return tuple(found)


def _wrong(name: str, line: int, what: str, fix: str) -> InputError:
    return InputError(f"{name}, line {line}: {what}.", next_step=fix, code="bad_questions")


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a file, read with complaints that name it."""

    name: str
    number: int

    def question(self, line: str) -> Question:
        value = self._object(line)
        self._known(value, _FIELDS, "a question")
        if "relevant" not in value:
            raise self._wrong(
                "says nothing of what answers the question",
                'Add "relevant": [{"document": "…"}], or "relevant": [] where nothing does.',
            )
        labels = tuple(self._labels(value["relevant"]))
        text = self._text(value, "text")
        if not text.strip():
            raise self._wrong("has a blank text", 'Write the question as "text".')
        group = self._text(value, "group") if "group" in value else ""
        return Question(
            id=self._id(value),
            text=text,
            language=self._language(value),
            slice=self._slice(value, bool(labels)),
            labels=labels,
            group=group,
            line=self.number,
        )

    def _object(self, line: str) -> dict[str, Any]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            where = f" (column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
            raise self._wrong(
                f"is not JSON{where}", f"Write one object a line, such as {_EXAMPLE}"
            ) from error
        if not isinstance(value, dict):
            raise self._wrong("is no JSON object", f"Write it as {_EXAMPLE}")
        return value

    def _known(self, value: Mapping[str, Any], names: tuple[str, ...], what: str) -> None:
        if unknown := sorted(set(value) - set(names)):
            raise self._wrong(
                f"has {unknown[0]!r}, which is no field of {what}",
                f"Use {', '.join(names)}.",
            )

    def _text(self, value: Mapping[str, Any], name: str) -> str:
        text = value.get(name)
        if not isinstance(text, str):
            raise self._wrong(f"has no text as {name!r}", f'Add "{name}": "…".')
        if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
            raise self._wrong(f"holds NUL or half a surrogate pair in {name!r}", "Take it out.")
        return text

    def _id(self, value: Mapping[str, Any]) -> str:
        text = self._text(value, "id")
        if not 1 <= len(text) <= 200:
            raise self._wrong("has an id that is empty or too long", "Use 1 to 200 characters.")
        return text

    def _language(self, value: Mapping[str, Any]) -> str:
        code = value.get("language", "und")
        if not isinstance(code, str) or not _LANGUAGE.fullmatch(code):
            raise self._wrong(
                f"has the language {code!r}", "Use an ISO 639-1 code such as de, or leave it out."
            )
        return code

    def _slice(self, value: Mapping[str, Any], answerable: bool) -> str:
        given = value.get("slice", "other" if answerable else "unanswerable")
        if given not in SLICES:
            raise self._wrong(f"has the slice {given!r}", f"Use one of {', '.join(SLICES)}.")
        if (given == "unanswerable") == answerable:
            raise self._wrong(
                f"has the slice {given!r} and {'labels' if answerable else 'no label'}",
                "Unanswerable questions, and only they, have an empty list as relevant.",
            )
        return str(given)

    def _labels(self, value: Any) -> Iterator[Label]:
        if not isinstance(value, list):
            raise self._wrong("has no list as 'relevant'", 'Write "relevant": [{"document": "…"}].')
        for item in value:
            if not isinstance(item, dict):
                raise self._wrong("has a label that is no object", 'Write {"document": "…"}.')
            self._known(item, _LABEL_FIELDS, "a label")
            yield self._label(item)

    def _label(self, item: Mapping[str, Any]) -> Label:
        section, node = item.get("section"), item.get("node")
        if section is not None and not (
            isinstance(section, list)
            and section
            and all(isinstance(part, str) and part for part in section)
        ):
            raise self._wrong(
                "has a section that is no list of headings", 'Write "section": ["Leave", "Sick"].'
            )
        if node is not None and not (isinstance(node, str) and _NODE.fullmatch(node)):
            raise self._wrong(
                f"has the node {node!r}",
                "Use the 8 hex digits of kb documents outline, or a section or bytes instead.",
            )
        grade = item.get("grade", 1)
        if not (_is_int(grade) and 1 <= grade <= MAX_GRADE):
            raise self._wrong(f"has the grade {grade!r}", f"Use a whole number 1 to {MAX_GRADE}.")
        version = item.get("version")
        if version is not None and not (_is_int(version) and version > 0):
            raise self._wrong(f"has the version {version!r}", "Use a number from 1, or none.")
        return Label(
            document=self._text(item, "document"),
            section=None if section is None else tuple(section),
            node=node,
            span=self._span(item),
            version=version,
            grade=grade,
        )

    def _span(self, item: Mapping[str, Any]) -> tuple[int, int] | None:
        value = item.get("bytes")
        if value is None:
            return None
        if (
            isinstance(value, list)
            and len(value) == 2
            and all(_is_int(place) for place in value)
            and 0 <= value[0] < value[1]
        ):
            return value[0], value[1]
        raise self._wrong(
            f"has the bytes {value!r}", 'Write "bytes": [start, end], end after start, in the body.'
        )

    def _wrong(self, what: str, fix: str) -> InputError:
        return _wrong(self.name, self.number, what, fix)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
