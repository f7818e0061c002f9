"""The application: routes, errors, the page, and what starts and stops with it.

Belongs here: putting the parts together. What does not: any route's work. Import this module only
to serve; nothing is opened before the application starts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from logging import Logger
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from kb.http import logs, mcp_mount, problems
from kb.http.description import describe
from kb.http.metrics import Metrics
from kb.http.middleware import Outermost
from kb.http.routes import (
    ask,
    audit,
    changes,
    citations,
    documents,
    erasures,
    evaluations,
    history,
    keys,
    operations,
    passages,
    reviews,
    search,
    session,
    sign_in,
    uploads,
    watches,
)
from kb.http.services import Services
from kb.http.supervisor import Supervisor
from kb.http.uploads import drop_orphans
from kb_resources.errors import KbError

PAGE = Path(__file__).parent / "page"
ROUTERS = (
    operations.router,
    session.router,
    sign_in.router,
    search.router,
    ask.router,
    documents.router,
    history.router,
    passages.router,
    changes.router,
    erasures.router,
    citations.router,
    audit.router,
    reviews.router,
    uploads.router,
    watches.router,
    evaluations.router,
    keys.router,
)


def create_app(
    open_services: Callable[[], AbstractContextManager[Services]],
    *,
    log: Logger | None = None,
    run_worker: bool = True,
) -> FastAPI:
    """The HTTP side of one installation.

    Args:
        open_services: opens everything when the application starts (`services.open_services`).
        log: of accesses; default: JSON lines on stderr.
        run_worker: start the ingest process when jobs wait; False where it runs elsewhere.
    """
    log = log or logs.access_log(level="INFO", form="json")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with open_services() as services:
            app.state.services = services
            with suppress(KbError, OSError):  # what is away now is tidied by the next start
                await services.work.run(drop_orphans, services.database, services.settings)
            supervised = _supervised(services, log) if run_worker else nullcontext()
            async with mcp.running(services), supervised:
                yield

    app = FastAPI(
        title="kb",
        version="1",
        summary="A knowledge base that people and models can cite.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        # Its own spans hold addresses with what was asked, its log what an error quotes (ADR 15).
        telemetry={"tracing": False, "logs": False},
        generate_unique_id_function=_operation_id,
    )
    app.state.metrics = Metrics()
    for router in ROUTERS:
        app.include_router(router)
    mcp = mcp_mount.mount(app)
    _mount_page(app)
    app.openapi = partial(describe, app)  # type: ignore[method-assign]
    app.add_exception_handler(KbError, problems.handle_error)
    app.add_exception_handler(RequestValidationError, problems.handle_validation)
    app.add_exception_handler(HTTPException, problems.handle_http)
    app.add_middleware(Outermost, owner=app, log=log)
    return app


@asynccontextmanager
async def _supervised(services: Services, log: Logger) -> AsyncIterator[None]:
    """The worker's supervisor, for as long as the server runs."""
    services.jobs_waiting.set()  # jobs may have waited through a restart
    task = asyncio.create_task(Supervisor(services, log).run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _mount_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    files = _PageFiles(directory=PAGE, check_dir=False)
    app.mount("/static", GZipMiddleware(files, minimum_size=500), name="static")


class _PageFiles(StaticFiles):
    """Files a browser asks about each time, so that parts of two releases never meet."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


def _operation_id(route: APIRoute) -> str:
    return re.sub(r"[^a-z0-9]+", "_", route.name.lower()).strip("_")
