"""Health, readiness and metrics.

Belongs here: what a load balancer and Prometheus ask. What does not: counting (`metrics`).
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from kb.http.guard import Admin
from kb.http.metrics import Metrics
from kb.http.services import Services, ServicesDep, metrics_of
from kb_resources.store import access

router = APIRouter(tags=["operations"])


class Health(BaseModel):
    """The process answers."""

    status: str


@router.get("/health")
async def health() -> Health:
    """Whether the process answers; asks nothing of others."""
    return Health(status="ok")


@router.get("/ready")
async def ready(services: ServicesDep) -> Health:
    """Whether a search would work: database there, model loaded; 503 otherwise."""
    await services.work.run(_look, services)
    return Health(status="ready")


@router.get("/metrics", response_class=Response)
async def metrics(
    _identity: Admin,
    services: ServicesDep,
    counted: Annotated[Metrics, Depends(metrics_of)],
) -> Response:
    """Prometheus text about the whole installation; scrape it with a system key of its own."""
    backlog = await services.work.run(_backlog, services)
    text = counted.render(backlog, services.searches.inside)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def _look(services: Services) -> None:
    with services.database.transaction("app") as conn:
        conn.execute("select 1")
    services.reader.retriever.warm()


def _backlog(services: Services) -> dict[str, Any]:
    with services.database.transaction("app") as conn:
        return access.backlog(conn)
