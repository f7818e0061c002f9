"""What the tools do: arguments in, plain results out.

Belongs here: one function per tool with the words a model chooses by. What does not: transports
(`server`). The descriptions are part of the interface; see
https://modelcontextprotocol.io/specification/latest/server/tools.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from kb.advice import over_mcp
from kb.mcp.results import Checked, Found, Outline, Section, Surroundings, passage_of
from kb_resources.answer.ground import MAX_QUOTE
from kb_resources.errors import KbError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kb.mcp.server import PrincipalOf
    from kb.reader import Reader
    from kb_resources.model import Principal

MAX_HITS = 20
MAX_AROUND = 10

Scope = Annotated[
    str, Field(description="Name of the scope; every call names one.", max_length=200)
]
PassageId = Annotated[str, Field(description="passage_id of a hit.", max_length=400)]
Version = Annotated[
    int | None, Field(description="Version number; default: the one that holds now.", ge=1)
]


def bind(reader: Reader, principal_of: PrincipalOf) -> list[Callable[..., Any]]:
    """The tools over one reader, in the order a model should think of them."""
    made = Tools(reader, principal_of)
    return [made.search, made.passage_context, made.document_outline, made.cite_check]


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools; each call resolves who asks and speaks for that principal only."""

    reader: Reader
    principal_of: PrincipalOf

    def search(
        self,
        query: Annotated[
            str, Field(description="A question or words, in any language.", max_length=8000)
        ],
        scope: Scope,
        ctx: Context[Any, Any],
        k: Annotated[int, Field(description="Passages at most.", ge=1, le=MAX_HITS)] = 8,
        as_of: Annotated[
            str | None,
            Field(description="ISO 8601 instant: what held then instead of now.", max_length=100),
        ] = None,
        words: Annotated[
            Literal["any", "all", "all_first"],
            Field(description="Passages with any of the words, with all of them, or those first."),
        ] = "any",
    ) -> Found:
        """Find passages of a scope, best first, with document, version, page and place.

        `nothing_relevant` says that none of them answers: then say so instead of guessing.
        """
        from kb.cli.options import instant

        with self._asking(ctx) as principal:
            found = self.reader.search(
                query,
                scope=scope,
                principal=principal,
                k=k,
                mode="hybrid",
                as_of=instant(as_of, end_of_day=True),
                include_historical=False,
                words=words,
            )
        return Found(
            passages=[passage_of(hit) for hit in found.hits],
            mode=found.mode,
            nothing_relevant=found.nothing_relevant or not found.hits,
            correlation_id=found.correlation_id,
        )

    def passage_context(
        self,
        passage_id: PassageId,
        scope: Scope,
        ctx: Context[Any, Any],
        before: Annotated[int, Field(description="Passages before it.", ge=0, le=MAX_AROUND)] = 2,
        after: Annotated[int, Field(description="Passages after it.", ge=0, le=MAX_AROUND)] = 2,
        version: Version = None,
    ) -> Surroundings:
        """Read a passage together with its neighbours, in the order of the document."""
        with self._asking(ctx) as principal:
            found = self.reader.context(
                passage_id,
                scope=scope,
                principal=principal,
                version=version,
                before=before,
                after=after,
            )
        return Surroundings(
            before=[passage_of(hit) for hit in found.before],
            passage=passage_of(found.passage),
            after=[passage_of(hit) for hit in found.after],
        )

    def document_outline(
        self,
        document_id: Annotated[str, Field(description="document_id of a hit.", max_length=100)],
        scope: Scope,
        ctx: Context[Any, Any],
        version: Version = None,
    ) -> Outline:
        """List a document's headings in reading order, with pages and passage ids."""
        with self._asking(ctx) as principal:
            found = self.reader.outline(
                document_id, scope=scope, principal=principal, version=version
            )
        return Outline(
            scope=found.scope,
            document_id=found.document_id,
            version=found.version,
            title=found.title,
            sections=[
                Section(
                    heading_path=list(node.heading_path),
                    level=node.level,
                    page=node.page,
                    passage_ids=list(node.passage_ids),
                )
                for node in found.nodes
            ],
        )

    def cite_check(
        self,
        quote: Annotated[
            str, Field(description="The words as you would quote them.", max_length=MAX_QUOTE)
        ],
        passage_id: PassageId,
        scope: Scope,
        ctx: Context[Any, Any],
        version: Version = None,
    ) -> Checked:
        """Check that a quote stands in a passage, word for word, and whether that still holds.

        `accepted` is false with a `reason` for words that are not there. `quote` is the document's
        own text, to be used instead of yours. `status` says whether the document still says so:
        stands, superseded (a newer version, same place), moved (same words elsewhere), missing.
        """
        with self._asking(ctx) as principal:
            found = self.reader.citations.verify(
                quote, passage_id, scope=scope, principal=principal, version=version
            )
        return Checked.model_validate(found.to_json())

    @contextmanager
    def _asking(self, ctx: Context[Any, Any]) -> Iterator[Principal]:
        """Who asks; typed errors inside become the tool's error, with what to do next."""
        try:
            yield self.principal_of(ctx.request_context.request)
        except KbError as error:
            told = f"[{error.code}] {error.message} {over_mcp(error.next_step)}".strip()
            raise ToolError(told) from error
