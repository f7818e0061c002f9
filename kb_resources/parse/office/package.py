"""An Office Open XML package: its parts read, changed and written back, in memory.

Belongs here: the container (ECMA-376 part 2). What its parts mean is the readers' work. XML is
parsed without entities, network or DTDs; sizes were measured before a parser saw the file, and the
child's memory limit stands behind that.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from kb_resources.model import DocumentState, Refusal

_BROKEN = (
    zipfile.BadZipFile,
    EOFError,
    OSError,
    ValueError,
    KeyError,
    NotImplementedError,
    RuntimeError,
)


class Package:
    """Parts of a zip package by name.

    Args:
        data: the package.

    Raises:
        zipfile.BadZipFile: it is no zip.
    """

    def __init__(self, data: bytes) -> None:
        self._archive = zipfile.ZipFile(io.BytesIO(data))
        self.names: tuple[str, ...] = tuple(dict.fromkeys(self._archive.namelist()))
        self._changed: dict[str, bytes] = {}

    def read(self, name: str) -> bytes:
        """The bytes of a part, as changed so far; b"" for a missing one."""
        if name in self._changed:
            return self._changed[name]
        return self._archive.read(name) if name in self.names else b""

    def xml(self, name: str) -> Any | None:
        """The root element of an XML part, or None where it is missing or broken."""
        data = self.read(name)
        return parse_xml(data) if data else None

    def put_xml(self, name: str, root: Any) -> None:
        """Replace a part by an element tree."""
        from lxml import etree

        self._changed[name] = etree.tostring(root, xml_declaration=True, encoding="UTF-8")

    def matching(self, prefix: str, suffix: str = ".xml") -> Iterator[str]:
        """Names of the parts below a prefix, in natural order."""
        found = [n for n in self.names if n.startswith(prefix) and n.endswith(suffix)]
        yield from sorted(found, key=lambda n: (len(n), n))

    def to_bytes(self) -> bytes:
        """The package with the changes, stored without compression."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target:
            for name in self.names:
                if not name.endswith("/"):
                    target.writestr(name, self.read(name))
        return out.getvalue()


def parse_xml(data: bytes) -> Any | None:
    """The root of an XML text, or None when it is not well-formed; nothing external is resolved."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, recover=False
    )
    try:
        return etree.fromstring(data, parser=parser)
    except etree.XMLSyntaxError:
        return None


def open_package(data: bytes, what: str) -> Package | Refusal:
    """Open a package, or say that it is damaged."""
    try:
        return Package(data)
    except _BROKEN as error:
        return Refusal(
            DocumentState.CORRUPT,
            f"The {what} file is damaged ({error}); save it again or get an intact copy.",
        )


def local(element: Any) -> str:
    """An element's name without its namespace; "" for comments."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Any, name: str) -> str | None:
    """An attribute by local name, whatever its namespace."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return str(value)
    return None
