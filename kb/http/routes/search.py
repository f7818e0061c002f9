"""Searching: ranked passages with the places of the question's words.

Belongs here: one search. What does not: ranking (`kb_resources.retrieve`).
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from kb.access.identity import Identity
from kb.http.guard import Viewer
from kb.http.metrics import Metrics
from kb.http.schemas import SearchRequest, SearchResponse
from kb.http.services import Services, ServicesDep, metrics_of
from kb_resources.retrieve import SearchFilters, SearchResult
from kb_resources.retrieve.highlight import highlight

router = APIRouter(prefix="/api/v1", tags=["search"])


@router.post("/search", response_model=SearchResponse)
async def search(
    given: SearchRequest,
    identity: Viewer,
    request: Request,
    services: ServicesDep,
    metrics: Annotated[Metrics, Depends(metrics_of)],
) -> Any:
    """Ranked passages of one scope; filters act before ranking."""
    found, response = await services.searches.run(
        _search, services, identity, given, request.state.correlation_id
    )
    metrics.searched(found.mode, len(found.hits))
    return response


def _search(
    services: Services, identity: Identity, given: SearchRequest, correlation_id: str
) -> tuple[SearchResult, Response]:
    """The result and its response; the thread writes the JSON, which would hold up the loop.

    What is made here is not validated once more; the fuzz test does that.
    """
    found = run_search(services, identity, given, correlation_id)
    hits = [hit.to_json(debug=identity.reads_everything) for hit in found.hits]
    for item, spans in zip(hits, highlight(given.query, found.hits), strict=True):
        item["highlights"] = spans
    content = {
        "query": given.query,
        "mode": found.mode,
        "score_kind": found.score_kind,
        "reranked": found.reranked,
        "nothing_relevant": found.nothing_relevant,
        "hits": hits,
        "correlation_id": correlation_id,
    }
    return found, JSONResponse(content)


def run_search(
    services: Services, identity: Identity, given: SearchRequest, correlation_id: str
) -> SearchResult:
    """The search itself, for somebody who may."""
    return services.reader.retriever.search(
        given.query,
        scope=identity.use_scope(given.scope),
        principal=identity.principal(given.audiences),
        k=given.k,
        mode=given.mode,
        words=given.words,
        as_of=given.as_of,
        known_at=given.known_at,
        include_historical=given.include_historical,
        filters=SearchFilters(
            languages=None if given.language is None else [given.language],
            media_types=None if given.media_type is None else [given.media_type],
            documents=given.document_ids,
            heading_prefix=given.heading_prefix,
            metadata=given.metadata,
        ),
        correlation_id=correlation_id,
        min_score=given.min_score,
    )
