"""PowerPoint files to a Reading, a slide being a page.

Belongs here: hidden slides, speaker notes and comments before docling reads the rest. Elements
follow ECMA-376 part 1, chapter 19.
"""

from __future__ import annotations

from kb_resources.model import Coverage, HiddenText, Refusal
from kb_resources.parse.office.docling_backend import convert
from kb_resources.parse.office.docx import title_of
from kb_resources.parse.office.items import ItemWalker
from kb_resources.parse.office.package import Package, attribute, local, open_package
from kb_resources.parse.office.properties import comments, descriptions, joined_text, properties
from kb_resources.parse.reading import Reading


def read_pptx(data: bytes) -> Reading | Refusal:
    """Read a PowerPoint file.

    Returns:
        Reading with slide numbers as pages and "Slide n" as locator, or a Refusal (`corrupt`).
        Hidden slides, notes and comments are hidden text.
    """
    package = open_package(data, "PowerPoint")
    if isinstance(package, Refusal):
        return package
    facts, hidden = properties(package)
    slides = slide_parts(package)
    concealed = {n for n, part in enumerate(slides, 1) if _is_hidden(package, part)}
    hidden += [
        HiddenText("hidden_slide", f"slide {n}", text)
        for n in sorted(concealed)
        if (text := _text(package, slides[n - 1]))
    ]
    for part in package.matching("ppt/notesSlides/"):
        if text := _text(package, part):
            hidden.append(HiddenText("speaker_notes", part, text))
    hidden += comments(package, "ppt/")
    hidden += descriptions(package, iter(slides))
    _drop_pictures(package, slides)
    document = convert(package.to_bytes(), "pptx")
    if isinstance(document, Refusal):
        return document
    walked = ItemWalker(document, lambda page: f"Slide {page}" if page else None).walk()
    drafts = [draft for draft in walked.drafts if draft.page not in concealed]
    return Reading(
        drafts=tuple(drafts),
        parser="pptx",
        title=title_of(drafts, facts.get("title", "")),
        hidden=tuple(hidden),
        coverage=Coverage(pages=len(slides)),
        metadata=facts,
    )


def slide_parts(package: Package) -> list[str]:
    """Names of the slide parts in the order of the show."""
    show = package.xml("ppt/presentation.xml")
    relations = package.xml("ppt/_rels/presentation.xml.rels")
    if show is None or relations is None:
        return list(package.matching("ppt/slides/"))
    targets = {attribute(r, "Id"): attribute(r, "Target") or "" for r in relations}
    parts = []
    for element in show.iter():
        if local(element) == "sldId":
            target = next(
                (targets.get(v) for k, v in element.attrib.items() if k.endswith("}id")), None
            )
            if target:
                parts.append(target.lstrip("/") if target.startswith("/") else f"ppt/{target}")
    return parts


def _drop_pictures(package: Package, slides: list[str]) -> None:
    """Take pictures out: nobody reads them here, and decoding them costs memory."""
    for part in slides:
        root = package.xml(part)
        pictures = [e for e in root.iter() if local(e) == "pic"] if root is not None else []
        for picture in pictures:
            picture.getparent().remove(picture)
        if pictures:
            package.put_xml(part, root)


def _is_hidden(package: Package, part: str) -> bool:
    root = package.xml(part)
    return root is not None and (attribute(root, "show") or "1") in {"0", "false"}


def _text(package: Package, part: str) -> str:
    root = package.xml(part)
    return "" if root is None else joined_text(root)
