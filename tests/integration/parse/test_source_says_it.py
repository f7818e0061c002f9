"""Every block of every example says what its file says, read in another way, and nothing else."""

from __future__ import annotations

import email
import html
import io
import re
import zipfile
from collections.abc import Iterator
from email import policy
from pathlib import Path

import pytest

from kb_resources.acquire import Acquired, read_file
from kb_resources.model import Block, ParsedDocument
from kb_resources.parse import ParserPool

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = [
    path
    for path in sorted(EXAMPLES.rglob("*.*"))
    if not {"scan", "interrupted"} & set(re.split(r"[-.]", path.name))
]
_ITEM = re.compile(r"\s*(?:-|\d+\.)\s+")


def letters(text: str) -> str:
    """Letters and digits alone: neither spaces nor any mark count."""
    return re.sub(r"[\W_]+", "", text)


def said_by(file: Acquired) -> str:
    """The file's text without our readers: tags stripped, parts decoded, pages by PDFium."""
    data = file.data
    if file.media_type == "application/pdf":
        return " ".join(pdf_pages(data))
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            xml = [package.read(name) for name in package.namelist() if name.endswith(".xml")]
        return without_tags(" ".join(part.decode() for part in xml))
    if file.media_type == "message/rfc822":
        message = email.message_from_bytes(data, policy=policy.default)
        texts = [f"{name}: {value}" for name, value in message.items()]
        parts = [part for part in message.walk() if part.get_content_maintype() == "text"]
        texts += [without_tags(part.get_content()) for part in parts]
        return " ".join(texts)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("cp1251")
    return without_tags(text) if file.media_type == "text/html" else text


def without_tags(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", text))


def pdf_pages(data: bytes) -> Iterator[str]:
    import pypdfium2

    for page in pypdfium2.PdfDocument(data):
        yield page.get_textpage().get_text_bounded().replace("\x02", "").replace("\ufffe", "")


def pieces(block: Block) -> list[str]:
    """What of a block stands together in its source: a cell, or the text without its mark."""
    if block.kind == "table":
        return [cell for line in block.text.splitlines() for cell in line.split("|")]
    return [_ITEM.sub("", block.text, count=1) if block.kind == "list_item" else block.text]


@pytest.mark.requirement("O-01")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_block_holds_what_the_source_says(pool: ParserPool, path: Path) -> None:
    file = read_file(path)
    assert isinstance(file, Acquired)
    document = pool.parse(file.data, file.media_type, file.name)
    assert isinstance(document, ParsedDocument), document
    source = letters(said_by(file))
    assert document.blocks
    for block in document.blocks:
        assert block.page is None or block.page >= 1
        assert block.text.strip()
        for piece in pieces(block):
            assert letters(piece) in source
