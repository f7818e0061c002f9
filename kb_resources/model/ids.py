"""Identities: scope names, document ids, partition keys, passage ids, hashes.

Belongs here: pure derivation and validation. Uniqueness itself is a database constraint.
Partition keys use only `[A-Za-z0-9_:-]`, which Dagster's partition selection syntax survives.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from kb_resources.errors import InputError, ScopeRequired

_SCOPE = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_DOCUMENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_AUDIENCE = re.compile(r"[^\W_][\w.@+:/-]{0,199}")
_SLUG_MAX = 48

# ISO 9 / BGN-like romanisation, for readable slugs only; never for search.
_CYRILLIC = dict(
    zip(
        "абвгдезийклмнопрстуфхъыьјѓќљњћђ",
        [
            "a",
            "b",
            "v",
            "g",
            "d",
            "e",
            "z",
            "i",
            "y",
            "k",
            "l",
            "m",
            "n",
            "o",
            "p",
            "r",
            "s",
            "t",
            "u",
            "f",
            "h",
            "a",
            "y",
            "",
            "j",
            "g",
            "k",
            "l",
            "n",
            "c",
            "d",
        ],
        strict=True,
    )
) | {"ё": "e", "ж": "zh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "sht", "э": "e", "ю": "yu"}
_CYRILLIC |= {"я": "ya", "џ": "dzh", "ѕ": "dz", "ѐ": "e", "ѝ": "i"}
_LATIN = {"đ": "d", "ß": "ss", "ł": "l", "ø": "o", "æ": "ae", "œ": "oe"}


def sha256_hex(data: bytes) -> str:
    """Lowercase SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def content_hash(text: str) -> str:
    """Lowercase SHA-256 of a text's UTF-8 bytes."""
    return sha256_hex(text.encode())


def validate_scope(scope: str | None) -> str:
    """Return the scope name or raise.

    Raises:
        ScopeRequired: none was given.
        InputError: it is not a full match of `[a-z0-9][a-z0-9_-]{0,62}`.
    """
    if not scope:
        raise ScopeRequired("No scope was given.", next_step="Name one with --scope NAME.")
    if not _SCOPE.fullmatch(scope):
        raise InputError(
            f"{scope!r} is not a scope name.",
            next_step="Use 1 to 63 of a-z, 0-9, _ and -, starting with a letter or digit.",
        )
    return scope


def validate_document_id(document_id: str) -> str:
    """Return a caller-given document id or raise InputError."""
    if not _DOCUMENT_ID.fullmatch(document_id):
        raise InputError(
            f"{document_id!r} is not a document id.",
            next_step="Use 1 to 100 of A-Z, a-z, 0-9, _ and -, starting with a letter or digit.",
        )
    return document_id


def validate_language(code: str) -> str:
    """Return a language code or raise InputError; whether a scope takes it is another question."""
    if not _LANGUAGE.fullmatch(code):
        raise InputError(
            f"{code!r} is not a language code.", next_step="Write ISO 639 codes such as de or hr."
        )
    return code


def validate_audience(name: str) -> str:
    """Return an audience name (NFC) or raise InputError."""
    name = unicodedata.normalize("NFC", name)
    if not _AUDIENCE.fullmatch(name):
        raise InputError(
            f"{name!r} is not an audience name.",
            next_step="Use letters, digits and . @ + : / - _, at most 200, no spaces or commas.",
        )
    return name


def slug(text: str) -> str:
    """A readable ASCII slug of at most 48 characters, Cyrillic transliterated; may be empty."""
    out = []
    for char in unicodedata.normalize("NFC", text).lower():
        char = _CYRILLIC.get(char, _LATIN.get(char, char))
        out.append(unicodedata.normalize("NFKD", char))
    ascii_only = "".join(out).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_only).strip("-")[:_SLUG_MAX].strip("-")


def derive_document_id(origin: str, *, opaque: bool = False) -> str:
    """Stable id of a document from where it comes from.

    Args:
        origin: path relative to its root with `/` separators, or a canonical URL.
        opaque: leave the readable part out (scopes with sensitive names).

    Returns:
        `<slug>-<12 hex>`, the hex from SHA-256 of the NFC form of `origin`.
    """
    nfc = unicodedata.normalize("NFC", origin)
    digest = hashlib.sha256(nfc.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    readable = "" if opaque else slug(re.sub(r"^https?://", "", nfc))
    return f"{readable or 'doc'}-{digest}"


def passage_id(document_id: str, heading_path: tuple[str, ...], text_hash: str, nth: int) -> str:
    """Stable passage id: document, heading path, content hash and occurrence.

    Unique within a version; inserting a section elsewhere leaves it unchanged.

    Args:
        document_id: the document.
        heading_path: headings above the passage.
        text_hash: SHA-256 hex of the passage text.
        nth: 0-based occurrence among equal texts under the same heading path.
    """
    path = content_hash("\x1f".join(heading_path))[:8]
    return f"{document_id}.{path}.{text_hash[:12]}.{nth}"


@dataclass(frozen=True, slots=True, order=True)
class DocumentKey:
    """Scope and document: one Dagster partition, written `scope:document`."""

    scope: str
    document_id: str

    def __str__(self) -> str:
        return f"{self.scope}:{self.document_id}"

    @classmethod
    def parse(cls, key: str) -> DocumentKey:
        """Inverse of `str`; raises InputError on a malformed key."""
        scope, sep, document_id = key.partition(":")
        if not sep:
            raise InputError(f"{key!r} is not a partition key.", next_step="Write scope:document.")
        return cls(validate_scope(scope), validate_document_id(document_id))
