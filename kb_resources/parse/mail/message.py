"""A message, whatever file it came in, to a Reading.

Belongs here: which parts are read and in which order, the same for EML and MSG. Taking files apart
is `eml.py`'s and `msg.py`'s. A mail program shows the HTML of a multipart/alternative
(https://www.rfc-editor.org/rfc/rfc2046#section-5.1.4), so the HTML is what is read here too, and
the plain text is compared with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kb_resources.model import Coverage, HiddenText
from kb_resources.parse.clean import one_line
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.html.reader import read_page
from kb_resources.parse.reading import Reading
from kb_resources.parse.text import paragraphs

_SHOWN = ("From", "To", "Cc", "Date")
_WORD = re.compile(r"\w+")
_DIFFERENT = 0.25


@dataclass(frozen=True, slots=True)
class Part:
    """One body part.

    Attributes:
        number: its place, "1.2".
        subtype: "plain" or "html".
        text: decoded text.
    """

    number: str
    subtype: str
    text: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message; its name and size are facts, its text is for the scan.

    Attributes:
        number: its place, "2".
        name: file name.
        media_type: as declared.
        size_bytes: decoded size.
        text: decoded text of a textual attachment, else "".
    """

    number: str
    name: str
    media_type: str
    size_bytes: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A decoded message.

    Attributes:
        headers: decoded header fields by their usual names.
        choices: the body; each entry lists the alternatives of one part.
        attachments: files.
        inner: attached messages with their part numbers.
        extra: other headers and defects as hidden text.
    """

    headers: Mapping[str, str]
    choices: Sequence[Sequence[Part]]
    attachments: Sequence[Attachment] = ()
    inner: Sequence[tuple[str, Message]] = ()
    extra: Sequence[HiddenText] = field(default_factory=tuple)


def read_message(message: Message, parser: str) -> Reading:
    """Read a message with its attached messages.

    Args:
        message: the decoded message.
        parser: name of the reader.

    Returns:
        Reading with the subject as heading, the main header fields, the body, and "Part n" as
        locator. Attachments are named in the metadata and warnings; their text is hidden text.
    """
    drafts, hidden, warnings = _message(message, "", 1)
    names = ", ".join(a.name for a in message.attachments)
    facts = {
        "author": message.headers.get("From", ""),
        "date": message.headers.get("Date", ""),
        "to": message.headers.get("To", ""),
        "attachments": names,
    }
    return Reading(
        tuple(drafts),
        parser,
        title=message.headers.get("Subject", ""),
        hidden=tuple(hidden),
        coverage=Coverage(warnings=tuple(warnings)),
        metadata={key: value for key, value in facts.items() if value},
    )


def _message(
    message: Message, prefix: str, level: int
) -> tuple[list[DraftBlock], list[HiddenText], list[str]]:
    place = f"Part {prefix}" if prefix else "Headers"
    drafts: list[DraftBlock] = []
    if subject := message.headers.get("Subject", ""):
        drafts.append(DraftBlock("heading", subject, level=min(level, 6), locator=place))
    drafts += [
        DraftBlock("paragraph", f"{name}: {message.headers[name]}", locator=place)
        for name in _SHOWN
        if message.headers.get(name)
    ]
    hidden = list(message.extra)
    warnings = []
    for alternatives in message.choices:
        body, concealed, warning = _body(alternatives)
        drafts += body
        hidden += concealed
        warnings += warning
    for attachment in message.attachments:
        warnings.append(
            f"Attachment {attachment.name!r} ({attachment.media_type}, "
            f"{attachment.size_bytes:,} bytes) is not part of the text; add it as its own file."
        )
        hidden.append(HiddenText("attachment_name", f"part {attachment.number}", attachment.name))
        if attachment.text.strip():
            where = f"part {attachment.number}, {attachment.name}"
            hidden.append(HiddenText("attachment", where, attachment.text))
    for number, inner in message.inner:
        more, concealed, warning = _message(inner, number, level + 1)
        drafts += more
        hidden += concealed
        warnings += warning
    return drafts, hidden, warnings


def _body(
    alternatives: Sequence[Part],
) -> tuple[list[DraftBlock], list[HiddenText], list[str]]:
    """Read the richest alternative; the others are hidden, and compared with it."""
    chosen = next((p for p in alternatives if p.subtype == "html"), alternatives[0])
    drafts, hidden = _part(chosen)
    if not drafts and (plain := next((p for p in alternatives if p is not chosen), None)):
        chosen = plain
        drafts, more = _part(chosen)
        hidden += more
    warnings = []
    shown = set(_WORD.findall(" ".join(d.text + " ".join(map(" ".join, d.rows)) for d in drafts)))
    for part in alternatives:
        if part is chosen:
            continue
        hidden.append(
            HiddenText("alternative_part", f"part {part.number} ({part.subtype})", part.text)
        )
        words = set(_WORD.findall(part.text)) if part.subtype == "plain" else set()
        if len(words - shown) > max(len(words) * _DIFFERENT, 3):
            warnings.append(
                f"Part {part.number} (plain text) says something else than the HTML that is read."
            )
    return drafts, hidden, warnings


def _part(part: Part) -> tuple[list[DraftBlock], list[HiddenText]]:
    locator = f"Part {part.number}"
    if part.subtype == "html":
        reading = read_page(part.text, locator=locator, noise=False)
        return list(reading.drafts), list(reading.hidden)
    drafts = [
        DraftBlock(d.kind, _unquoted(d.text), level=d.level, marker=d.marker, locator=locator)
        for d in paragraphs(part.text)
    ]
    return [draft for draft in drafts if one_line(draft.text)], []


def _unquoted(text: str) -> str:
    """A paragraph without the `>` that marks quoted lines."""
    lines = text.split("\n")
    if all(line.lstrip().startswith(">") for line in lines):
        lines = [line.lstrip().lstrip("> ") for line in lines]
    return "\n".join(lines)
