"""Which elements a page's own style sheets and style attributes hide.

Belongs here: the declarations that make text unreadable and a small selector matcher (type, class,
id, attribute, descendants). Collecting the hidden text is `hidden.py`'s work. Properties follow
https://www.w3.org/TR/CSS22/visufx.html; sheets outside the page are never fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(r"[{};]")
_APPLIES = re.compile(r"@(?:media\s+(?:all|screen)\b|supports\b|layer\b|scope\b)")
_COMPOUND = re.compile(r"^([a-zA-Z][\w-]*|\*)?((?:[.#][\w-]+|\[[^\]]+\])*)$")
_PART = re.compile(r"([.#])([\w-]+)|\[\s*([\w-]+)\s*(?:=\s*[\"']?([^\"'\]]*)[\"']?\s*)?\]")
_LENGTH = re.compile(
    r"(-?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))\s{0,9}(px|pt|em|rem|%|vw|vh|cm|mm|in)?", re.IGNORECASE
)
_MAX_RULES = 5_000
_MAX_LOOKS = 200_000
_WHITE = {"white", "#fff", "#ffffff", "#fefefe", "#fdfdfd", "rgb(255,255,255)", "#ffffffff"}


@dataclass(frozen=True, slots=True)
class HidingRule:
    """One selector of a style sheet whose declarations hide what it matches.

    Attributes:
        compounds: (tag or "*", attribute tests) from the outermost ancestor to the element.
        way: how it hides ("display_none", "white_text", …).
    """

    compounds: tuple[tuple[str, tuple[tuple[str, str, str | None], ...]], ...]
    way: str

    def matches(self, element: Any) -> bool:
        """Whether the element is hidden by this rule."""
        if not _fits(element, self.compounds[-1]):
            return False
        at = element.getparent()
        for compound in reversed(self.compounds[:-1]):
            while at is not None and not _fits(at, compound):
                at = at.getparent()
            if at is None:
                return False
            at = at.getparent()
        return True


def declarations(style: str) -> dict[str, str]:
    """A style attribute or rule body as lower-case property → value."""
    found = {}
    for part in split_comments(style)[0].split(";"):
        name, colon, value = part.partition(":")
        if colon:
            found[name.strip().lower()] = value.replace("!important", "").strip().lower()
    return found


def hiding_way(style: dict[str, str], *, background_known: bool = False) -> str | None:
    """How a set of declarations hides text, or None.

    Args:
        style: from `declarations`.
        background_known: an ancestor or a sheet may set a dark background, so that white text
            without a background of its own is no sign of hiding.
    """
    get = style.get
    if get("display") == "none":
        return "display_none"
    if get("visibility") in {"hidden", "collapse"}:
        return "visibility_hidden"
    if get("content-visibility") == "hidden":
        return "display_none"
    if _number(get("opacity", "1")) <= 0.05:
        return "transparent"
    if "font-size" in style and _is_tiny(style["font-size"]):
        return "tiny_text"
    if _is_off_screen(style):
        return "off_screen"
    return _colour_way(style, background_known=background_known)


class HidingRules:
    """Rules looked up by what their last part must match, so that a page costs little per element.

    Args:
        rules: in the order of the sheets.
    """

    def __init__(self, rules: Iterable[HidingRule]) -> None:
        self._by_key: dict[str, list[HidingRule]] = {}
        self._looks = _MAX_LOOKS
        for rule in rules:
            tag, tests = rule.compounds[-1]
            named = (kind + name for kind, name, _ in tests if kind in {".", "#"})
            self._by_key.setdefault(next(named, tag), []).append(rule)

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def way(self, element: Any) -> str | None:
        """How the sheets hide an element, or None."""
        keys = [f".{name}" for name in (element.get("class") or "").split()]
        keys += [f"#{element.get('id')}", element.tag, "*"]
        for key in keys:
            rules = self._by_key.get(key, ())
            self._looks -= len(rules)
            if self._looks < 0:  # a page made to cost time; what is left counts as visible
                return None
            for rule in rules:
                if rule.matches(element):
                    return rule.way
        return None


def hiding_rules(sheets: Iterable[str]) -> HidingRules:
    """Rules of the page's own sheets that hide something; selectors beyond the matcher are left."""
    return HidingRules(_rules(sheets))


def _rules(sheets: Iterable[str]) -> list[HidingRule]:
    rules: list[HidingRule] = []
    for sheet in sheets:
        for selectors, body in _style_rules(split_comments(sheet)[0]):
            way = hiding_way(declarations(body), background_known=True)
            if way is None:
                continue
            rules.extend(
                HidingRule(compounds, way)
                for selector in selectors.split(",")
                if (compounds := _compounds(selector.strip()))
            )
            if len(rules) > _MAX_RULES:
                return rules
    return rules


def split_comments(sheet: str) -> tuple[str, list[str]]:
    """A sheet without its comments, and the comments; linear, whatever is left open."""
    kept, comments, at = [], [], 0
    while (start := sheet.find("/*", at)) >= 0:
        end = sheet.find("*/", start + 2)
        kept.append(sheet[at:start])
        comments.append(sheet[start + 2 : end if end >= 0 else len(sheet)])
        at = end + 2 if end >= 0 else len(sheet)
    return "".join([*kept, sheet[at:]]), comments


def _style_rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Selectors and body of each style rule that applies on a screen, nested at-rules resolved."""
    preludes: list[str] = []
    start = blocked = 0
    for token in _TOKEN.finditer(sheet):
        text = sheet[start : token.start()]
        if token[0] == "{":
            preludes.append(text.strip())
            blocked += _is_blocked(preludes[-1])
            start = token.end()
        elif token[0] == "}" and preludes:
            prelude = preludes.pop()
            blocked -= _is_blocked(prelude)
            if not blocked and not prelude.startswith("@"):
                yield prelude, text
            start = token.end()
        elif not preludes or preludes[-1].startswith("@"):
            start = token.end()


def _is_blocked(prelude: str) -> bool:
    """Whether a block does not apply on a screen: print, fonts, animation steps."""
    return prelude.startswith("@") and not _APPLIES.match(prelude)


def _compounds(
    selector: str,
) -> tuple[tuple[str, tuple[tuple[str, str, str | None], ...]], ...] | None:
    found = []
    for word in selector.replace(">", " ").split():
        match = _COMPOUND.match(word)
        if not match or word in {"*", "html", "body"}:
            return None
        tests = tuple(
            (part[1] or "[", part[2] or part[3], part[4]) for part in _PART.finditer(match[2])
        )
        found.append(((match[1] or "*").lower(), tests))
    return tuple(found) or None


def _fits(element: Any, compound: tuple[str, tuple[tuple[str, str, str | None], ...]]) -> bool:
    tag, tests = compound
    if tag not in ("*", element.tag):
        return False
    for kind, name, value in tests:
        if kind == ".":
            if name not in (element.get("class") or "").split():
                return False
        elif kind == "#":
            if element.get("id") != name:
                return False
        elif element.get(name) is None or (value is not None and element.get(name) != value):
            return False
    return True


def _number(text: str) -> float:
    match = _LENGTH.match(text)
    return float(match[1]) if match else 1.0


def _is_tiny(size: str) -> bool:
    match = _LENGTH.fullmatch(size)
    if not match:
        return False
    value, unit = float(match[1]), (match[2] or "px").lower()
    return (
        value == 0
        or (unit in {"px", "pt"} and value <= 2)
        or (unit in {"em", "rem"} and value < 0.1)
    )


def _is_off_screen(style: dict[str, str]) -> bool:
    for name in ("text-indent", "left", "right", "top", "margin-left", "margin-top"):
        if (match := _LENGTH.match(style.get(name, ""))) and float(match[1]) <= -900:
            return True
    if style.get("position") in {"absolute", "fixed"} and (
        re.match(r"rect\(\s*[01](?:px)?[\s,]+[01]", style.get("clip", ""))
        or style.get("clip-path", "").startswith("inset(50%")
        or style.get("clip-path", "").startswith("inset(100%")
    ):
        return True
    small = [_LENGTH.fullmatch(style.get(name, "")) for name in ("width", "height")]
    return style.get("overflow") == "hidden" and any(m and float(m[1]) <= 1 for m in small)


def _colour_way(style: dict[str, str], *, background_known: bool) -> str | None:
    colour = style.get("color", "").replace(" ", "")
    background = style.get("background-color", style.get("background", "")).replace(" ", "")
    if not colour:
        return None
    if colour == "transparent" or re.fullmatch(r"rgba\([\d.,%]+,0(?:\.0+)?\)", colour):
        return "transparent"
    if background and _same_colour(colour, background):
        return "white_text"
    if colour in _WHITE and not background and not background_known:
        return "white_text"
    return None


def _same_colour(colour: str, background: str) -> bool:
    return colour == background or (colour in _WHITE and background in _WHITE)
