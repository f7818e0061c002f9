"""What a file is: by its bytes, never by its name."""

from __future__ import annotations

import io
import zipfile

import pytest

from kb_resources.acquire import sniff
from kb_resources.acquire.sniff import DOCX, ODT, PPTX, UNKNOWN, XLSX


def zip_of(**parts: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name.replace("__", "/"), data)
    return out.getvalue()


def ooxml(part: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(part, "<x/>")
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (b"%PDF-1.7\n...", "a.txt", "application/pdf"),
        (b"junk before\n%PDF-1.4\n1 0 obj endobj", "a", "application/pdf"),
        (b"Each file starts with %PDF-1.4, they say.", "a.txt", "text/plain"),
        (b"MZ\x90\x00" + b"\x00" * 60 + b"%PDF-1.4 endobj", "a.pdf", "application/x-msdownload"),
        (b"\x7fELF\x02\x01" + b"\x00" * 20, "report.pdf", "application/x-executable"),
        (b"#!/bin/sh\necho hi\n", "notes.txt", "text/x-script"),
        (ooxml("word/document.xml"), "a.pdf", DOCX),
        (ooxml("xl/workbook.xml"), "a.docx", XLSX),
        (ooxml("ppt/presentation.xml"), "a.zip", PPTX),
        (zip_of(mimetype=b"application/vnd.oasis.opendocument.text"), "a.docx", ODT),
        (zip_of(mimetype=b"application/epub+zip"), "a.zip", "application/epub+zip"),
        (zip_of(readme=b"hello"), "a.docx", "application/zip"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a.pdf", "image/png"),
        (b"\xff\xd8\xff\xe0", "a.txt", "image/jpeg"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "a", "image/webp"),
        (b"{\\rtf1\\ansi hello}", "a.doc", "application/rtf"),
        (b"<!DOCTYPE html><p>x", "a.txt", "text/html"),
        (b"  <p>x</p>", "a.html", "text/html"),
        (b"# Title\n\ntext", "a.md", "text/markdown"),
        (b"# Title\n\n[a](b)\n", "README", "text/markdown"),
        (b"a;b\n1;2\n", "a.csv", "text/csv"),
        (b'{"a": 1}', "a.json", "application/json"),
        (b'{"a": 1}', "a", "application/json"),
        (b'<?xml version="1.0"?><doc/>', "a.xml", "application/xml"),
        (b'<?xml version="1.0"?><html xmlns="x"><body/></html>', "a.xhtml", "text/html"),
        (b"From: a@b.c\nTo: d@e.f\nSubject: hi\n\nbody", "mail", "message/rfc822"),
        (b"From x@y Mon Jan 1 00:00:00 2024\nX-A: 1\nSubject: hi\n\nb", "m.eml", "message/rfc822"),
        (b"just words", "a.docx", "text/plain"),
        ("Привет, мир".encode("utf-16"), "a.txt", "text/plain"),
        ("Члан 1. Сва људска бића".encode("utf-16-be"), "a.txt", "text/plain"),
        (b"First line.\x00Second line.\n", "a.txt", "text/plain"),
        (bytes(range(256)) * 4, "a.txt", UNKNOWN),
    ],
)
def test_the_bytes_decide(data: bytes, name: str, expected: str) -> None:
    assert sniff(data, name) == expected


@pytest.mark.requirement("W-05")
def test_a_hashtag_line_is_not_markdown() -> None:
    assert sniff(b"#hashtag\n", "note") == "text/plain"
    assert sniff(b"#hashtag\nmore words\n#another\n", "note") == "text/plain"


def test_outlook_and_word_share_a_container_and_are_told_apart() -> None:
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600
    outlook = head + "__properties_version1.0".encode("utf-16-le")
    word = head + "WordDocument".encode("utf-16-le")
    locked = head + "EncryptedPackage".encode("utf-16-le")
    assert sniff(outlook, "a.doc") == "application/vnd.ms-outlook"
    assert sniff(word, "a.msg") == "application/msword"
    assert sniff(locked, "a.docx") == "application/x-ole-encrypted"
