"""Title, author, date and publication of a page, as the page states them.

Belongs here: reading `<title>`, meta elements and JSON-LD before hidden text is cut out.
Vocabulary: https://schema.org/Article and https://ogp.me/.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kb_resources.parse.clean import one_line

_MAX_JSON_LD = 200_000
_META = {
    "author": (
        "author",
        "article:author",
        "byl",
        "dc.creator",
        "dcterms.creator",
        "parsely-author",
    ),
    "date": (
        *("article:published_time", "date", "dc.date", "dcterms.date", "dcterms.issued", "pubdate"),
        *("publish-date", "og:published_time", "datepublished", "parsely-pub-date"),
    ),
    "publication": ("og:site_name", "application-name", "dc.publisher", "cre"),
    "description": ("description", "og:description"),
    "language": ("content-language", "dc.language"),
}


def page_facts(root: Any) -> tuple[str, dict[str, str]]:
    """Title and facts of a page.

    Args:
        root: lxml tree of the page, not changed.

    Returns:
        The title (without the site's name where the page's own heading shows it), and facts under
        the keys author, date, publication, description, language.
    """
    metas = dict(_metas(root))
    facts = {}
    for key, names in _META.items():
        if value := next((metas[n] for n in names if metas.get(n)), ""):
            facts[key] = value
    for article in _articles(root):
        facts |= {key: value for key, value in _article(article).items() if value}
    if lang := root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang"):
        facts["language"] = lang
    return _title(root, metas), {key: one_line(value)[:500] for key, value in facts.items()}


def _title(root: Any, metas: dict[str, str]) -> str:
    element = root.find(".//title")
    title = one_line("".join(element.itertext())) if element is not None else ""
    headings = [one_line("".join(h.itertext())) for h in root.iter("h1")]
    for candidate in (*headings, one_line(metas.get("og:title", ""))):
        if candidate and candidate in title:
            return candidate
    return title or next((h for h in headings if h), "")


def _metas(root: Any) -> Iterator[tuple[str, str]]:
    for meta in root.iter("meta"):
        name = meta.get("property") or meta.get("name") or meta.get("itemprop")
        name = name or meta.get("http-equiv") or ""
        if (content := meta.get("content")) and name:
            yield name.lower(), content


def _articles(root: Any) -> Iterator[dict[str, Any]]:
    for script in root.iter("script"):
        if "ld+json" not in (script.get("type") or "") or len(script.text or "") > _MAX_JSON_LD:
            continue
        try:
            found = json.loads(script.text or "")
        except (ValueError, RecursionError):
            continue
        graph = found.get("@graph", found) if isinstance(found, dict) else found
        for item in graph if isinstance(graph, list) else [graph]:
            if isinstance(item, dict) and str(item.get("@type", "")).endswith(
                ("Article", "Posting")
            ):
                yield item


def _article(item: dict[str, Any]) -> dict[str, str]:
    return {
        "author": ", ".join(_names(item.get("author"))),
        "date": str(item.get("datePublished") or ""),
        "publication": ", ".join(_names(item.get("publisher"))),
    }


def _names(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    names = [v.get("name") if isinstance(v, dict) else v for v in values]
    return [name for name in names if isinstance(name, str) and name]
