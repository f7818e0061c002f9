"""What a parse result depends on beside the bytes: our code, and what reads pictures here.

Belongs here: the parse stage's share of the fingerprint. Installing a recogniser, a pack or a
converter changes it, so that the next run reads what it left unread; a patch of one does not.
"""

from __future__ import annotations

from kb_resources.parse.options import ParseOptions

PARSER_VERSION = "3"
"""Part of the parse stage's fingerprint: raise it whenever the same bytes may parse differently."""


def parser_version(options: ParseOptions) -> str:
    """Version of the parser with what is installed, e.g. "3/tesseract 5 deu+eng/antiword"."""
    from kb_resources.parse.legacy.converter import find_converter
    from kb_resources.parse.ocr import find_rapid, find_tesseract

    parts = [PARSER_VERSION]
    engine = find_tesseract() if options.ocr.enabled else None
    if engine is not None:
        packs = sorted(set(options.ocr.languages) & engine.packs)
        parts += [f"tesseract {engine.version} {'+'.join(packs)}"] if packs else []
        second = find_rapid() if packs else None
        parts += [second.module] if second is not None else []
    converter = find_converter()
    parts += [converter.name] if converter is not None else []
    parts += ["docling models"] * options.models + ["docling-serve"] * options.served
    return "/".join(parts)
