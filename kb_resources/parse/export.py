"""A parsed document as one Markdown file with YAML front matter.

Belongs here: writing metadata in front of the body. Inside the system body and metadata live apart,
so a body cannot forge metadata; strings are written as JSON, which YAML 1.2 reads as such
(https://yaml.org/spec/1.2.2/#13-relation-to-json).
"""

from __future__ import annotations

import json

from kb_resources.model import ParsedDocument


def with_front_matter(document: ParsedDocument) -> str:
    """The body under a front matter of title, media type and the document's own facts."""
    facts = {"title": document.title, "media_type": document.media_type}
    facts |= {key: value for key, value in sorted(document.metadata.items()) if key not in facts}
    lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in facts.items()]
    return "\n".join(["---", *lines, "---", "", document.body, ""])
