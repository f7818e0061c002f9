"""What a reader or a model sees of a version besides its text: names, title, breadcrumbs, facts.

Belongs here: naming those texts, so that the scan reads all that leaves the system. Does not belong
here: how a breadcrumb is cut to fit a model, which is `chunk`'s work and only shortens it.
Source: OWASP LLM01:2025, indirect injection: any field that reaches a prompt is a way in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kb_resources.model import HiddenText, ParsedDocument

TITLE, NAME, BREADCRUMB, FACT = "title", "name", "breadcrumb", "fact"
# Signs that stand for spaces in the names of files and addresses.
SEPARATORS = str.maketrans("_-.+/~", "      ")
# Of a heading in a breadcrumb; longer ones are read whole where they stand in the text.
_HEADING_CHARS = 200
# Breadcrumbs repeat headings that the text has too; what they add is how two of them join.
_MAX_BREADCRUMBS = 200_000
_MAX_FACT_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text that goes along with a version's passages.

    Attributes:
        kind: "title", "name", "breadcrumb" or "fact"; a finding's `part`.
        place: for a person.
        text: as it is shown.
    """

    kind: str
    place: str
    text: str

    @property
    def is_name(self) -> bool:
        """Whether other signs may stand for its spaces."""
        return self.kind in {TITLE, NAME}


def shown_texts(
    document: ParsedDocument, names: Sequence[str], hidden: Sequence[HiddenText] = ()
) -> tuple[ShownText, ...]:
    """All that is shown with a document, each text once.

    Args:
        document: with title, blocks and metadata.
        names: of the source, as listed: file name, path or address, a caller's id.
        hidden: texts that are scanned anyway and need not be read again.
    """
    known = {part.text.strip() for part in hidden}
    found = [ShownText(TITLE, "title", document.title)]
    found += name_texts(names)
    if crumbs := "\n\n".join(_breadcrumbs(document)):
        found.append(ShownText(BREADCRUMB, "title and headings", crumbs))
    found += _facts(document.metadata, known)
    return tuple(found)


def name_texts(names: Sequence[str]) -> tuple[ShownText, ...]:
    """The names of a source, each once."""
    return tuple(
        ShownText(NAME, "name of the source", name) for name in dict.fromkeys(names) if name
    )


def _breadcrumbs(document: ParsedDocument) -> Iterator[str]:
    """Each heading path with the title in front, where more than one of them meet."""
    left = _MAX_BREADCRUMBS
    for path in dict.fromkeys(block.heading_path for block in document.blocks):
        parts = [part[:_HEADING_CHARS] for part in (document.title, *path) if part]
        if len(parts) > 2 and parts[0] == parts[1]:
            del parts[0]
        line = " > ".join(parts)
        left -= len(line)
        if left < 0:
            return
        if len(parts) > 1:
            yield line


def _facts(metadata: Mapping[str, str], known: set[str]) -> Iterator[ShownText]:
    for name, value in sorted(metadata.items()):
        text = f"{name}: {value}"
        if value.strip() not in known and text.strip() not in known:
            yield ShownText(FACT, f"metadata {name[:60]}", text[:_MAX_FACT_CHARS])
