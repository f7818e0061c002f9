"""Parse: bytes of any format to a canonical Markdown body with exact offsets.

`ParserPool.parse` is the way in for untrusted bytes; `parse_here` runs in the calling process.
"""

from typing import TYPE_CHECKING

from kb_resources.lazy import on_demand
from kb_resources.parse.options import OcrOptions, ParseOptions
from kb_resources.parse.version import PARSER_VERSION, parser_version

if TYPE_CHECKING:
    from kb_resources.parse.body import Body, serialise
    from kb_resources.parse.doubts import reading_findings
    from kb_resources.parse.draft import DraftBlock
    from kb_resources.parse.export import with_front_matter
    from kb_resources.parse.reading import Reading
    from kb_resources.parse.route import READ_BY_SERVE, parse_here
    from kb_resources.parse.sandbox.limits import Limits
    from kb_resources.parse.sandbox.pool import ParserPool, ParseUsage
    from kb_resources.parse.tree import Node, build_tree, split_sentences
else:
    __getattr__ = on_demand(
        __name__,
        {
            "body": (
                "Body",
                "serialise",
            ),
            "doubts": ("reading_findings",),
            "draft": ("DraftBlock",),
            "export": ("with_front_matter",),
            "reading": ("Reading",),
            "route": (
                "READ_BY_SERVE",
                "parse_here",
            ),
            "sandbox.limits": ("Limits",),
            "sandbox.pool": (
                "ParserPool",
                "ParseUsage",
            ),
            "tree": (
                "Node",
                "build_tree",
                "split_sentences",
            ),
        },
    )

__all__ = [
    "PARSER_VERSION",
    "READ_BY_SERVE",
    "Body",
    "DraftBlock",
    "Limits",
    "Node",
    "OcrOptions",
    "ParseOptions",
    "ParseUsage",
    "ParserPool",
    "Reading",
    "build_tree",
    "parse_here",
    "parser_version",
    "reading_findings",
    "serialise",
    "split_sentences",
    "with_front_matter",
]
