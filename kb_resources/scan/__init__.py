"""Injection scan: does a text speak to the model that will read it?

Belongs here: rules, decoders, structural detectors, verdict. Does not belong here: storing
findings, review, parsing.
"""

from typing import TYPE_CHECKING

from kb_resources.lazy import on_demand
from kb_resources.scan.verdict import verdict
from kb_resources.scan.version import SCANNER_VERSION, pack_version

if TYPE_CHECKING:
    from kb_resources.scan.opinion import Opinion, SecondOpinion
    from kb_resources.scan.packs import Packs, default_packs, parse_packs
    from kb_resources.scan.result import ScanResult
    from kb_resources.scan.scanner import Scanner
    from kb_resources.scan.shown import ShownText, name_texts, shown_texts
else:
    __getattr__ = on_demand(
        __name__,
        {
            "opinion": (
                "Opinion",
                "SecondOpinion",
            ),
            "packs": (
                "Packs",
                "default_packs",
                "parse_packs",
            ),
            "result": ("ScanResult",),
            "scanner": ("Scanner",),
            "shown": (
                "ShownText",
                "name_texts",
                "shown_texts",
            ),
        },
    )

__all__ = [
    "SCANNER_VERSION",
    "Opinion",
    "Packs",
    "ScanResult",
    "Scanner",
    "SecondOpinion",
    "ShownText",
    "default_packs",
    "name_texts",
    "pack_version",
    "parse_packs",
    "shown_texts",
    "verdict",
]
