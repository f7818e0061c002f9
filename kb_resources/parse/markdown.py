"""Markdown to a Reading, by way of HTML.

Belongs here: CommonMark with pipe tables, front matter, and what Markdown hides. Rendering by
markdown-it-py and walking the HTML gives inline HTML, nested lists and tables the same treatment as
pages: each text once, comments and attributes out (https://spec.commonmark.org/0.31.2/).
"""

from __future__ import annotations

import re
from typing import Any

from kb_resources.model import Coverage, HiddenText, Refusal
from kb_resources.parse.encoding import decode
from kb_resources.parse.html.reader import read_page
from kb_resources.parse.reading import Reading
from kb_resources.parse.text import paragraphs, uncertain, undecodable

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FACT = re.compile(r"^([A-Za-z][\w-]{0,40}):[ \t]*(.+)$", re.MULTILINE)
_DEFINITION = re.compile(r"^ {0,3}\[([^\]\n]+)\]:[ \t]*(\S+)(?:[ \t]+(.+))?$", re.MULTILINE)
_LINK_TITLE = re.compile(
    r"\]\([^()\n]{0,2000}?[ \t]{1,9}(?:\"([^\"\n]+)\"|'([^'\n]+)'|\(([^()\n]+)\))\)"
)
_FENCE_INFO = re.compile(r"^ {0,3}(?:`{3,}(?!`)|~{3,}(?!~))[ \t]*(\S+[ \t]+\S.*)$", re.MULTILINE)
_FACTS = frozenset(
    ("title", "author", "date", "description", "language", "lang", "subject", "tags")
)
_MAX_NESTING = 60


def read_markdown(data: bytes, name: str) -> Reading | Refusal:
    """Read Markdown.

    Returns:
        Reading, or a Refusal (`unsupported`) for an unknown encoding. Front matter becomes
        metadata; comments, link titles and reference definitions are hidden text.
    """
    decoded = decode(data)
    if decoded is None:
        return undecodable(name)
    text = decoded.text.lstrip("\ufeff").replace("\x00", "")
    facts, hidden, text = _front_matter(text)
    page = read_page(render(text), noise=False)
    # Nested beyond what the parser follows: better read as plain text than lost.
    drafts = page.drafts or tuple(paragraphs(text))
    hidden += page.hidden
    hidden += _concealed(text)
    warnings = () if decoded.certain else (uncertain(decoded.encoding),)
    return Reading(
        drafts,
        "markdown",
        title=facts.get("title", ""),
        hidden=tuple(hidden),
        coverage=Coverage(warnings=warnings),
        metadata=facts,
    )


def render(text: str) -> str:
    """CommonMark with tables as HTML."""
    return str(_parser().render(text))


def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING, "html": True})
    return parser.enable(["table", "strikethrough"])


def _front_matter(text: str) -> tuple[dict[str, str], list[HiddenText], str]:
    match = _FRONT_MATTER.match(text)
    if not match or ":" not in match[1]:
        return {}, [], text
    facts = {
        key.lower(): value.strip().strip("\"'")
        for key, value in _FACT.findall(match[1])
        if key.lower() in _FACTS
    }
    return facts, [HiddenText("metadata", "front matter", match[1])], text[match.end() :]


def _concealed(text: str) -> list[HiddenText]:
    found = [
        HiddenText("reference_definition", f"[{m[1][:40]}]", " ".join(filter(None, m.groups())))
        for m in _DEFINITION.finditer(text)
    ]
    found += [
        HiddenText("link_title", "title of a link", m[1] or m[2] or m[3])
        for m in _LINK_TITLE.finditer(text)
    ]
    found += [
        HiddenText("code_info", "info line of a code block", m[1])
        for m in _FENCE_INFO.finditer(text)
    ]
    return found
