"""Word, PowerPoint, Excel and mail files of the examples.

Belongs here: the same bytes for the same source: archives are packed again with one fixed date.
Formats: ECMA-376, https://ecma-international.org/publications-and-standards/standards/ecma-376/,
and RFC 5322.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import zipfile
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import SMTP

import docx
import pptx
import xlsxwriter
from markup import Entry, Heading, Paragraph, Part, Source, Table
from pptx.util import Inches, Pt

_DATE = dt.datetime(2024, 6, 1, 8, 0, tzinfo=dt.UTC)


def write_docx(source: Source) -> bytes:
    """A Word file with heading styles, bullet lists and tables with a marked header row."""
    document = docx.Document()
    properties = document.core_properties
    properties.title, properties.author = source.title, "Lindenbach Instruments"
    properties.created = properties.modified = _DATE
    for part in source.parts:
        match part:
            case Heading(level, text):
                document.add_heading(text, level)
            case Paragraph(text):
                document.add_paragraph(text)
            case Entry(text):
                document.add_paragraph(text, style="List Bullet")
            case Table(rows):
                table = document.add_table(len(rows), len(rows[0]), style="Table Grid")
                for cells, row in zip(rows, table.rows, strict=True):
                    for text, cell in zip(cells, row.cells, strict=True):
                        cell.text = text
                for cell in table.rows[0].cells:
                    cell.paragraphs[0].runs[0].bold = True
    out = io.BytesIO()
    document.save(out)
    return _repacked(out.getvalue())


def write_pptx(source: Source) -> bytes:
    """Slides: each heading begins one; text and entries go into its body, a table below it."""
    deck = pptx.Presentation()
    properties = deck.core_properties
    properties.title, properties.author = source.title, "Lindenbach Instruments"
    properties.created = properties.modified = _DATE
    for heading, parts in _sections(source.parts):
        tables = [part for part in parts if isinstance(part, Table)]
        slide = deck.slides.add_slide(deck.slide_layouts[5 if tables else 1])
        slide.shapes.title.text = heading
        texts = [part.text for part in parts if isinstance(part, Paragraph | Entry)]
        if not tables:
            slide.placeholders[1].text = "\n".join(texts)
        for table in tables:
            place = Inches(0.6), Inches(1.6), Inches(8.8), Inches(0.5 * len(table.rows))
            shape = slide.shapes.add_table(len(table.rows), len(table.rows[0]), *place)
            for y, row in enumerate(table.rows):
                for x, text in enumerate(row):
                    cell = shape.table.cell(y, x)
                    cell.text = text
                    cell.text_frame.paragraphs[0].font.size = Pt(16)
    out = io.BytesIO()
    deck.save(out)
    return _repacked(out.getvalue())


def write_xlsx(source: Source) -> bytes:
    """One sheet for each heading, its table from A1, numbers as numbers."""
    out = io.BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True})
    book.set_properties({"title": source.title, "created": _DATE.replace(tzinfo=None)})
    bold = book.add_format({"bold": True})
    for heading, parts in _sections(source.parts):
        sheet = book.add_worksheet(heading)
        sheet.set_column(0, 8, 24)
        for table in (part for part in parts if isinstance(part, Table)):
            for y, row in enumerate(table.rows):
                for x, text in enumerate(row):
                    value = int(text) if text.isdecimal() and y else text
                    sheet.write(y, x, value, bold if y == 0 else None)
    book.close()
    return _repacked(out.getvalue())


def write_eml(source: Source) -> bytes:
    """A plain-text mail."""
    mail = EmailMessage(policy=SMTP)
    fields = source.fields
    mail["From"], mail["To"], mail["Subject"] = fields["from"], fields["to"], fields["subject"]
    mail["Date"] = fields["date"]
    number = hashlib.sha256(fields["subject"].encode()).hexdigest()[:16]
    mail["Message-ID"] = f"<{number}@lindenbach.example>"
    mail.set_content(source.text, cte="quoted-printable")
    return mail.as_bytes()


def _sections(parts: tuple[Part, ...]) -> Iterator[tuple[str, list[Part]]]:
    heading, held = "", list[Part]()
    for part in parts:
        if isinstance(part, Heading):
            if heading:
                yield heading, held
            heading, held = part.text, []
        else:
            held.append(part)
    yield heading, held


def _repacked(data: bytes) -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new,
    ):
        for name in old.namelist():
            info = zipfile.ZipInfo(name, (2024, 6, 1, 8, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, old.read(name))
    return out.getvalue()
