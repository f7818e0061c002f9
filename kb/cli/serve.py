"""`kb serve`: the HTTP API and the page."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import click

from kb.cli.output import say


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Port to listen on; 0: any free.",
)
@click.option("--log-file", type=click.Path(path_type=Path), help="Log here instead of stderr.")
def serve(host: str, port: int, log_file: Path | None) -> None:
    """Serve the API and the page.

    The first start of a local installation makes its secret and prints an administrator's key,
    once. On your own database set KB_SECRET and make a key with kb keys create.
    """
    from functools import partial

    import uvicorn

    from kb.access.bootstrap import bootstrap
    from kb.http.app import create_app
    from kb.http.listening import bind, configured
    from kb.http.logs import access_log
    from kb.http.services import acts_as_pipeline, open_services
    from kb_resources.settings import load_settings

    settings = load_settings()
    listening = bind(host, port)
    first = bootstrap(settings)
    if first is not None:
        say(f"Administrator's key, shown this once: {first.token}")
    log = access_log(level=settings.log_level, form=settings.log_format, file=log_file)
    app = create_app(
        partial(open_services, settings), log=log, run_worker=acts_as_pipeline(settings)
    )
    shown = f"[{host}]" if ":" in host else host
    say(f"Serving on http://{shown}:{listening.getsockname()[1]} (Ctrl-C stops it)")
    sys.stdout.flush()
    with suppress(KeyboardInterrupt):  # Ctrl-C is how it is meant to end
        uvicorn.Server(configured(app)).run(sockets=[listening])
