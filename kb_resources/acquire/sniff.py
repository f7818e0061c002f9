"""What a file is, from its bytes; its name only decides between kinds of plain text.

Belongs here: media types. Limits are `zips.py`'s and `files.py`'s. Signatures follow
https://mimesniff.spec.whatwg.org/ and each format's own specification.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import PurePath

from kb_resources.acquire.zips import directory, read_start

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\x00\x00\xfe\xff")
ZIP_HEADS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
ODT = "application/vnd.oasis.opendocument.text"
UNKNOWN = "application/octet-stream"

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"{\\rtf", "application/rtf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"BM", "image/bmp"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"MZ", "application/x-msdownload"),
    (b"\x7fELF", "application/x-executable"),
    (b"\xca\xfe\xba\xbe", "application/x-executable"),
    (b"\xcf\xfa\xed\xfe", "application/x-executable"),
    (b"\xce\xfa\xed\xfe", "application/x-executable"),
    (b"\x00asm", "application/wasm"),
    (b"#!", "text/x-script"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "application/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/x-matroska"),
    (b"%!PS", "application/postscript"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"!<arch>", "application/x-archive"),
)
_MIMETYPE_BYTES = 200
_MAIN_PARTS = {
    "word/": DOCX,
    "xl/": XLSX,
    "ppt/": PPTX,
}
_OLE_STREAMS = (
    ("__properties_version1.0", "application/vnd.ms-outlook"),
    ("WordDocument", "application/msword"),
    ("Workbook", "application/vnd.ms-excel"),
    ("Book", "application/vnd.ms-excel"),
    ("PowerPoint Document", "application/vnd.ms-powerpoint"),
    ("EncryptedPackage", "application/x-ole-encrypted"),
)
_BY_SUFFIX = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".mdown": "text/markdown",
    ".mkd": "text/markdown",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".jsonl": "application/json",
    ".ndjson": "application/json",
    ".json": "application/json",
    ".htm": "text/html",
    ".html": "text/html",
    ".eml": "message/rfc822",
}
_CONTROLS = bytes(byte for byte in range(0x20) if byte not in b"\t\n\x0b\x0c\r\x1b\x00")
_HEADER = re.compile(rb"(?:[A-Za-z][A-Za-z0-9-]{0,60}:[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*\r?\n)+")
_MBOX = re.compile(rb"\AFrom [^\r\n]{1,200}\r?\n")
_MAIL_FIELDS = re.compile(
    rb"(?im)^(from|to|subject|date|message-id|mime-version|received|return-path|delivered-to):"
)
_HTML = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|style|table|div|p|h[1-6]|ul|ol|li|br|a"
    rb"|span|b|font|iframe|!--)(?=[\s>/-])",
    re.IGNORECASE,
)
_MARKDOWN = (
    re.compile(r"^#{1,6} +\S", re.MULTILINE),
    re.compile(r"^(?:```|~~~)", re.MULTILINE),
    re.compile(r"\[[^\[\]\n]{1,300}\]\([^()\n]{1,1000}\)"),
    re.compile(r"^\|.+\|\s*\n\|[\s:|-]+\|\s*$", re.MULTILINE),
    re.compile(r"^[^\n]+\n(?:={3,}|-{3,})\s*$", re.MULTILINE),
    re.compile(r"^(?:[-*+] |\d+\. )\S.*\n(?:[-*+] |\d+\. )\S", re.MULTILINE),
)


def sniff(data: bytes, name: str = "") -> str:
    """The media type of a file's content.

    The name is believed only where the bytes are text of some kind: it tells Markdown, CSV and
    plain text apart, and never makes a program a document.

    Args:
        data: the whole content, or at least its first 64 KiB (zip and OLE containers need all).
        name: file name.

    Returns:
        A media type; `application/octet-stream` for bytes of no known kind.
    """
    head = data[:65_536]
    if head.startswith(ZIP_HEADS):
        return _zip_kind(data)
    if head.startswith(OLE):
        return _ole_kind(data)
    if b"%PDF-" in head[:1024] and _is_pdf(data):
        return _pdf_or_program(head)
    if head[:4] == b"RIFF":
        return "image/webp" if head[8:12] == b"WEBP" else "application/x-riff"
    if head[4:8] == b"ftyp":
        return "image/heic" if head[8:12] in {b"heic", b"heix", b"mif1", b"avif"} else "video/mp4"
    for magic, kind in _MAGIC:
        if head.startswith(magic) and not (kind == "image/bmp" and is_text(head)):
            return kind
    return _text_kind(head, name) if is_text(head) else UNKNOWN


def is_text(head: bytes) -> bool:
    """Whether bytes look like text in some encoding: hardly any control characters."""
    if not head or head.startswith(
        (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\x00\x00\xfe\xff")
    ):
        return True
    zeros = head.count(0)
    if zeros > len(head) * 0.1:  # UTF-16 or UTF-32 without a mark, or binary
        wide = max(head[offset::2].count(0) for offset in (0, 1)) * 2 / len(head)
        small = max(sum(b <= 5 or b == 0x20 for b in head[o::2]) for o in (0, 1)) * 2 / len(head)
        if max(wide, small) < 0.9:
            return False
        high = [sum(b > 5 for b in head[o::2]) for o in (0, 1)]
        return max(high) * 2 / len(head) > 0.8 or zeros > len(head) * 0.7
    odd = len(head) - len(head.translate(None, _CONTROLS))
    return odd <= max(len(head) * 0.005, 2) or _is_wide(head)


def _is_wide(head: bytes) -> bool:
    """UTF-16 of a script whose high byte is 1 to 5 (Cyrillic, Greek, Hebrew)."""
    for offset in (0, 1):
        high = head[offset::2]
        low = sum(byte <= 5 or byte == 0x20 for byte in high)
        if high and low / len(high) > 0.95 and sum(b <= 5 for b in high) / len(high) > 0.7:
            return True
    return False


def _is_pdf(data: bytes) -> bool:
    """A PDF starts with its mark, or after some junk and then has objects; prose has none."""
    start = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n\x00")
    return start.startswith(b"%PDF-") or b"endobj" in data or b"startxref" in data


def _pdf_or_program(head: bytes) -> str:
    """A PDF may start with junk, but not with a program's header."""
    for magic, kind in _MAGIC:
        if head.startswith(magic) and kind.startswith(("application/x-", "text/x-")):
            return kind
    return "application/pdf"


def _zip_kind(data: bytes) -> str:
    try:
        archive = directory(data)
        if archive is None:
            return _broken_zip_kind(data)
        with archive:
            names = archive.namelist()
            if "mimetype" in names:
                start = read_start(archive, "mimetype", _MIMETYPE_BYTES)
                declared = start.decode("ascii", "replace").strip()
                if declared.startswith(("application/epub+zip", "application/vnd.oasis.")):
                    return declared
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, RuntimeError):
        return _broken_zip_kind(data)
    if "[Content_Types].xml" in names or "_rels/.rels" in names:
        for prefix, kind in _MAIN_PARTS.items():
            if any(name.startswith(prefix) for name in names):
                return kind
    if "META-INF/container.xml" in names:
        return "application/epub+zip"
    return "application/zip"


def _broken_zip_kind(data: bytes) -> str:
    """A zip whose directory is lost: the local headers still name the parts."""
    for prefix, kind in _MAIN_PARTS.items():
        if prefix.encode() in data[:65_536]:
            return kind
    return DOCX if b"[Content_Types].xml" in data[:4096] else "application/zip"


def _ole_kind(data: bytes) -> str:
    """The kind of an OLE container, by the UTF-16 stream names in its directory."""
    for stream, kind in _OLE_STREAMS:
        if stream.encode("utf-16-le") in data:
            return kind
    return "application/x-ole-storage"


def _text_kind(head: bytes, name: str) -> str:
    suffix = PurePath(name).suffix.lower()
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n\x00")
    text = _loose_text(head)
    begin = text.lstrip("\ufeff \t\r\n")
    if _HTML.match(begin[:64].encode("utf-8", "ignore")) and suffix not in {".md", ".markdown"}:
        return "text/html"
    if begin.startswith("<?xml") or (begin.startswith("<") and suffix in {".xml", ".xhtml"}):
        lowered = begin[:2000].lower()
        return "text/html" if "<html" in lowered else "application/xml"
    if begin[:1] in {"{", "["} and _is_json(begin, suffix):
        return "application/json"
    match = _HEADER.match(_MBOX.sub(b"", start, count=1))
    if match and len(set(_MAIL_FIELDS.findall(match[0]))) >= (1 if suffix == ".eml" else 2):
        return "message/rfc822"
    if suffix in _BY_SUFFIX:
        return "text/plain" if suffix in {".json", ".eml"} else _BY_SUFFIX[suffix]
    if suffix in {"", ".txt", ".text"} or suffix not in _BY_SUFFIX:
        return "text/markdown" if suffix == "" and _is_markdown(text) else "text/plain"
    return "text/plain"


def _loose_text(head: bytes) -> str:
    """The beginning as text, good enough to look at ASCII marks."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head[: len(head) // 2 * 2].decode("utf-16", "replace")
    if head.count(0) > len(head) * 0.2:
        return head.replace(b"\x00", b"").decode("latin-1")
    return head.decode("utf-8", "replace")


def _is_json(begin: str, suffix: str) -> bool:
    if suffix in {".json", ".jsonl", ".ndjson"}:
        return True
    if suffix not in {"", ".txt"}:
        return False
    try:
        json.loads(begin)
    except RecursionError:
        return True
    except ValueError:
        return bool(re.match(r'[\[{]\s*(?:"(?:[^"\\]|\\.)*"\s*[:,]|[\[{])', begin))
    return True


def _is_markdown(text: str) -> bool:
    """Two different kinds of Markdown marks; "#hashtag" alone is none."""
    return sum(bool(pattern.search(text)) for pattern in _MARKDOWN) >= 2
