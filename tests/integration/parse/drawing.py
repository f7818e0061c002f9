"""Pages of text drawn as pictures, for the tests of text recognition.

Belongs here: sample texts in the eight languages (Serbian in both scripts) and their drawing with
DejaVu, which Debian's fontconfig brings along with the tests' browser.
"""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Any

SAMPLES = {
    "eng": (
        "The lease ends on the last day of March. Whoever wishes to stay must say so in writing at "
        "least three months before. The owner answers within two weeks and may raise the rent once."
    ),
    "deu": (
        "Der Vertrag endet am letzten Tag im März. Wer länger bleiben möchte, muss dies mindestens "
        "drei Monate vorher schriftlich erklären. Über die Höhe der Miete wird neu verhandelt."
    ),
    "hrv": (
        "Ugovor prestaje posljednjeg dana ožujka. Tko želi ostati, mora to pismeno najaviti barem "
        "tri mjeseca ranije. Vlasnik odgovara u roku od dva tjedna i može jednom povećati cijenu."
    ),
    "slv": (
        "Pogodba preneha veljati zadnji dan v marcu. Kdor želi ostati, mora to pisno sporočiti "
        "vsaj tri mesece prej. Lastnik odgovori v dveh tednih in sme ceno enkrat zvišati."
    ),
    "srp_latn": (
        "Ugovor prestaje poslednjeg dana marta. Ko želi da ostane, mora to pismeno da najavi bar "
        "tri meseca ranije. Vlasnik odgovara u roku od dve nedelje i može jednom da poveća kiriju."
    ),
    "rus": (
        "Договор прекращается в последний день марта. Кто желает остаться, должен заявить об этом "
        "письменно не позднее чем за три месяца. Владелец отвечает в течение двух недель."
    ),
    "bul": (
        "Договорът изтича в последния ден на март. Който желае да остане, трябва да съобщи това "
        "писмено поне три месеца по-рано. Собственикът отговаря в срок от две седмици."
    ),
    "srp": (
        "Уговор престаје последњег дана марта. Ко жели да остане, мора то писмено да најави бар "
        "три месеца раније. Власник одговара у року од две недеље и може једном да повећа кирију."
    ),
    "mkd": (
        "Договорот престанува последниот ден од март. Кој сака да остане, мора тоа писмено да го "
        "најави барем три месеци порано. Сопственикот одговара во рок од две недели и ќе ја "
        "прифати или ќе ја одбие меѓу другото и цената."
    ),
}


@cache
def font(size: int) -> Any:
    """DejaVu Sans in a size in pixels."""
    from PIL import ImageFont

    found = sorted(Path("/usr/share/fonts").rglob("DejaVuSans.ttf"))
    assert found, "The tests draw with DejaVu Sans: install fonts-dejavu-core."
    return ImageFont.truetype(str(found[0]), size)


def page(
    *paragraphs: str, width: int = 1300, size: int = 38, left: int = 80, height: int | None = None
) -> Any:
    """A white page with black paragraphs, 300 pixels to the inch; `# ` starts a large line."""
    from PIL import Image, ImageDraw

    lines: list[tuple[str, int]] = []
    for paragraph in paragraphs:
        scale = 2 if paragraph.startswith("# ") else 1
        lines += [
            (line, size * scale) for line in _wrapped(paragraph, width - 2 * left, scale, size)
        ]
        lines.append(("", size))
    tall = height or int(2 * left + sum(1.45 * s for _, s in lines))
    image = Image.new("L", (width, tall), 255)
    draw, top = ImageDraw.Draw(image), float(left)
    for line, line_size in lines:
        draw.text((left, top), line, font=font(line_size), fill=0)
        top += 1.45 * line_size
    return image


def _wrapped(paragraph: str, width: int, scale: int, size: int) -> list[str]:
    lines = [""]
    for word in paragraph.removeprefix("# ").split():
        longer = f"{lines[-1]} {word}".strip()
        if font(size * scale).getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def png(image: Any) -> bytes:
    """A picture as PNG of 300 pixels to the inch."""
    out = io.BytesIO()
    image.save(out, "PNG", dpi=(300, 300))
    return out.getvalue()


def scan(*images: Any) -> bytes:
    """Pictures as a PDF without a text layer."""
    out = io.BytesIO()
    images[0].save(out, "PDF", save_all=True, append_images=images[1:], resolution=300)
    return out.getvalue()
