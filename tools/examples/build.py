"""Build the example files that cannot be written by hand: `python tools/examples/build.py`.

Belongs here: which source becomes which file, and the two broken ones. Sources lie under `source/`
with the name of the file they become and `.md` after it; everything else in `examples/` is edited
in place. PDFs embed parts of the DejaVu fonts, https://dejavu-fonts.github.io/License.html.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import office
import pdf
from markup import Source, read
from truetype import Font

HERE = Path(__file__).parent
FONTS = Path("/usr/share/fonts/truetype/dejavu")
SCAN_TEXT = (
    "EQUIPMENT HANDOVER",
    "",
    "Employee: R. Castellan     Date: 3 June 2024",
    "Laptop LBI-N-2207 with charger",
    "Badge 0419, key 12 (hall 2)",
    "",
    "I have received the items above in good order.",
    "",
    "Signature: R. Castellan",
)


def fonts(folder: Path) -> dict[str, Font]:
    """Text and heading font.

    Raises:
        SystemExit: the fonts are not there.
    """
    try:
        return {
            "R": Font(folder / "DejaVuSans.ttf"),
            "B": Font(folder / "DejaVuSans-Bold.ttf"),
        }
    except FileNotFoundError as error:
        raise SystemExit(
            f"{error.filename} is missing. Install the DejaVu fonts (Debian: fonts-dejavu-core) "
            "or name their folder with --fonts."
        ) from error


def build(target: Path, font_folder: Path) -> list[Path]:
    """Write all generated files below `target`; returns their paths."""
    loaded = fonts(font_folder)
    written = []
    for path in sorted((HERE / "source").rglob("*.md")):
        name = path.relative_to(HERE / "source").with_suffix("")
        written.append(
            _write(target / name, _rendered(name, read(path.read_text("utf-8")), loaded))
        )
    written.append(_write(target / "special/signed-handover-scan.pdf", _scan(font_folder)))
    whole = pdf.write(read((HERE / "source/en/lx40-data-sheet.pdf.md").read_text("utf-8")), loaded)
    written.append(
        _write(target / "special/interrupted-download.pdf", whole[: len(whole) * 2 // 5])
    )
    return written


def _rendered(name: Path, source: Source, loaded: dict[str, Font]) -> bytes:
    match name.suffix:
        case ".pdf":
            return pdf.write(source, loaded)
        case ".docx":
            return office.write_docx(source)
        case ".pptx":
            return office.write_pptx(source)
        case ".xlsx":
            return office.write_xlsx(source)
        case ".eml":
            return office.write_eml(source)
        case ".txt":
            return source.text.replace("\n", "\r\n").encode("cp1251")
    raise ValueError(f"Nothing here writes {name}.")


def _scan(font_folder: Path) -> bytes:
    """One page that is a black-and-white picture of text, without any text."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("L", (827, 1169), 255)
    draw = ImageDraw.Draw(picture)
    font = ImageFont.truetype(str(font_folder / "DejaVuSans.ttf"), 22)
    for number, line in enumerate(SCAN_TEXT):
        draw.text((90, 120 + 46 * number), line, font=font, fill=0)
    draw.line([(90, 560), (420, 548)], fill=0, width=2)
    picture = picture.rotate(0.6, fillcolor=255).convert("1", dither=Image.Dither.NONE)
    objects = pdf.Objects()
    image = objects.stream(
        picture.tobytes(),
        f"/Type /XObject /Subtype /Image /Width {picture.width} /Height {picture.height} "
        "/ColorSpace /DeviceGray /BitsPerComponent 1 ",
    )
    content = objects.stream(f"{pdf.WIDTH} 0 0 {pdf.HEIGHT} 0 0 cm /Scan Do".encode())
    page = objects.add(
        f"<< /Type /Page /Parent {objects.next + 1} 0 R /MediaBox [0 0 {pdf.WIDTH} {pdf.HEIGHT}] "
        f"/Resources << /XObject << /Scan {image} 0 R >> >> /Contents {content} 0 R >>".encode()
    )
    return pdf.close(objects, [page], "")


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--target", type=Path, default=HERE.parents[1] / "examples")
    parser.add_argument("--fonts", type=Path, default=FONTS)
    arguments = parser.parse_args()
    for path in build(arguments.target, arguments.fonts):
        print(f"{path.stat().st_size:8d}  {path}")


if __name__ == "__main__":
    main()
