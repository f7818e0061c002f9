"""A Word file made plain before docling reads it: hidden text out, each paragraph one text.

Belongs here: changes to WordprocessingML. docling cuts a paragraph at every change of format and
trims the pieces, so that the spaces between them are lost; with the formats gone it reads whole
paragraphs. Pictures go too: nobody reads them here and decoding them costs memory. Elements follow
ECMA-376 part 1, chapter 17.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kb_resources.model import HiddenText
from kb_resources.parse.office.package import Package, attribute, local
from kb_resources.parse.office.properties import joined_text

_GONE = frozenset(("del", "moveFrom"))
_UNWRAP = frozenset(("ins", "moveTo", "hyperlink", "smartTag", "customXml", "dir", "bdo"))
_MARKS = frozenset(
    (
        *("proofErr", "bookmarkStart", "bookmarkEnd", "lastRenderedPageBreak", "permStart"),
        *("permEnd", "softHyphen"),
    )
)
_CHARACTERS = {"noBreakHyphen": "-", "tab": " ", "ptab": " "}
_OFF = frozenset(("0", "false", "off", "none"))
_WHITE = frozenset(("ffffff", "fefefe", "fdfdfd"))


def make_plain(package: Package) -> list[HiddenText]:
    """Take hidden text, formats and pictures out of the text parts of a Word package.

    Args:
        package: changed in place.

    Returns:
        The hidden text with its way of hiding and its part.
    """
    hidden: list[HiddenText] = []
    vanishing = _vanishing_styles(package)
    for name in _text_parts(package):
        root = package.xml(name)
        if root is None:
            continue
        hidden += _strip(root, name, vanishing)
        package.put_xml(name, root)
    return hidden


def margin_texts(package: Package) -> list[str]:
    """Texts of headers and footers, each once."""
    texts = []
    for name in package.names:
        if name.startswith(("word/header", "word/footer")) and name.endswith(".xml"):
            root = package.xml(name)
            if root is not None and (text := joined_text(root)):
                texts.append(text)
    return list(dict.fromkeys(texts))


def _text_parts(package: Package) -> Iterator[str]:
    for name in package.names:
        if name.startswith("word/") and name.endswith(".xml") and "/" not in name[5:]:
            stem = name[5:].rstrip(".xml0123456789")
            if stem in {"document", "footnotes", "endnotes", "header", "footer"}:
                yield name


def _vanishing_styles(package: Package) -> frozenset[str]:
    root = package.xml("word/styles.xml")
    if root is None:
        return frozenset()
    found = set()
    for style in root.iter():
        if local(style) != "style":
            continue
        for properties in style:
            if local(properties) == "rPr" and _vanishes(properties):
                found.add(attribute(style, "styleId") or "")
    return frozenset(found - {""})


def _strip(root: Any, part: str, vanishing: frozenset[str]) -> list[HiddenText]:
    hidden: list[HiddenText] = []
    has_background = any(local(e) == "background" for e in root.iter())
    for element in list(root.iter()):
        name = local(element)
        if name in _GONE:
            _note(hidden, "deleted_text", part, joined_text(element))
            _drop(element)
        elif name in _UNWRAP:
            _unwrap(element)
        elif name == "sdt" and local(element.getparent()) == "p":
            _unwrap_control(element)
        elif name == "r":
            way = _run_way(element, vanishing, has_background)
            if way:
                _note(hidden, way, part, joined_text(element))
                _drop(element)
            else:
                _flatten(element, hidden, part)
        elif name in _MARKS or name in {"pic", "imagedata"}:
            _drop(element)
        elif name in {"docPr", "cNvPr", "shape"}:
            for key in ("descr", "title", "alt"):
                _note(hidden, "attribute", f"{part} {key} of a picture", attribute(element, key))
    return _merged(hidden)


def _run_way(run: Any, vanishing: frozenset[str], has_background: bool) -> str | None:
    properties = next((child for child in run if local(child) == "rPr"), None)
    paragraph = run.getparent()
    while paragraph is not None and local(paragraph) != "p":
        paragraph = paragraph.getparent()
    styles = {_value(properties, "rStyle"), _paragraph_style(paragraph)} - {None}
    if styles & vanishing:
        return "vanish"
    if properties is None:
        return None
    if _vanishes(properties):
        return "vanish"
    size = _value(properties, "sz")
    if size and size.isdecimal() and int(size) <= 4:
        return "tiny_text"
    colour = (_value(properties, "color") or "").lower()
    if colour in _WHITE and not has_background and not _shaded(run):
        return "white_text"
    return None


def _shaded(run: Any) -> bool:
    """Whether something behind the run may be dark: shading, a table, a text box."""
    at = run
    while at is not None:
        name = local(at)
        if name in {"tbl", "txbxContent"}:
            return True
        if name in {"r", "p"}:
            for properties in at:
                if local(properties) in {"rPr", "pPr"} and any(
                    local(p) in {"shd", "highlight"} for p in properties
                ):
                    return True
        at = at.getparent()
    return False


def _vanishes(properties: Any) -> bool:
    return any(
        local(p) in {"vanish", "webHidden", "specVanish"}
        and (attribute(p, "val") or "1").lower() not in _OFF
        for p in properties
    )


def _value(properties: Any, name: str) -> str | None:
    if properties is None:
        return None
    return next((attribute(p, "val") for p in properties if local(p) == name), None)


def _paragraph_style(paragraph: Any) -> str | None:
    if paragraph is None:
        return None
    properties = next((child for child in paragraph if local(child) == "pPr"), None)
    return _value(properties, "pStyle")


def _flatten(run: Any, hidden: list[HiddenText], part: str) -> None:
    for child in list(run):
        name = local(child)
        if name == "rPr":
            for item in list(child):
                if local(item) != "rFonts":
                    child.remove(item)
        elif name in {"instrText", "delText", "delInstrText"}:
            _note(hidden, "field_code", part, child.text)
            run.remove(child)
        elif name in _CHARACTERS:
            child.tag = child.tag.removesuffix(name) + "t"
            child.text = _CHARACTERS[name]
            child.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")


def _note(hidden: list[HiddenText], kind: str, place: str, text: str | None) -> None:
    if text and text.strip():
        hidden.append(HiddenText(kind, place, text))


def _merged(hidden: list[HiddenText]) -> list[HiddenText]:
    """Neighbouring runs hidden in the same way are one text."""
    out: list[HiddenText] = []
    for item in hidden:
        same = out and (out[-1].kind, out[-1].place) == (item.kind, item.place)
        if same and item.kind != "attribute":
            out[-1] = HiddenText(item.kind, item.place, out[-1].text + item.text)
        else:
            out.append(item)
    return out


def _drop(element: Any) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _unwrap_control(control: Any) -> None:
    """A content control inside a paragraph gives way to what it holds."""
    content = next((child for child in control if local(child) == "sdtContent"), None)
    if content is None:
        return
    parent = control.getparent()
    for child in list(content):
        control.addprevious(child)
    parent.remove(control)


def _unwrap(element: Any) -> None:
    parent = element.getparent()
    if parent is None:
        return
    at = parent.index(element)
    for child in list(element):
        if not local(child).endswith("Pr"):
            parent.insert(at, child)
            at += 1
    parent.remove(element)
