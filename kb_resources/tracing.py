"""Spans for OpenTelemetry: off by default, and never a word of a document or question in them.

Belongs here: making a span out of facts of ours. What does not: where spans go; that is set up by
OpenTelemetry's own agent (`opentelemetry-instrument`, variables `OTEL_*`), see docs/operations.md.
Only the API package is used, which does nothing without an agent:
https://opentelemetry.io/docs/languages/python/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kb_resources.errors import InputError

Fact = str | int | float | bool
TRACER = "dagster-kb"


@contextmanager
def span(
    name: str, *, on: bool, caller: Mapping[str, str] | None = None, **facts: Fact
) -> Iterator[dict[str, Fact]]:
    """A span around what happens inside.

    Args:
        name: low in variety: a stage, a method; no id and no text.
        on: whether traces are wanted (`KB_TRACES`); else nothing is imported and nothing is made.
        caller: headers of the request that is served here (W3C `traceparent`, `tracestate`), whose
            trace it joins; None: the span is of no request.
        facts: attributes; dots in their names are written as two underscores.

    Yields:
        Attributes, to be added to until the span ends.

    Raises:
        InputError: traces are wanted and OpenTelemetry's API is not installed.
    """
    found: dict[str, Fact] = {key.replace("__", "."): value for key, value in facts.items()}
    if not on:
        yield found
        return
    try:
        from opentelemetry import propagate, trace
    except ImportError as error:
        raise InputError(
            "KB_TRACES is on and OpenTelemetry is not installed.",
            next_step="pip install opentelemetry-distro opentelemetry-exporter-otlp, or unset it.",
        ) from error
    # What an exception says may quote a document: its class alone is kept.
    with trace.get_tracer(TRACER).start_as_current_span(
        name,
        context=None if caller is None else propagate.extract(dict(caller)),
        kind=trace.SpanKind.INTERNAL if caller is None else trace.SpanKind.SERVER,
        record_exception=False,
        set_status_on_exception=False,
    ) as made:
        try:
            yield found
        except BaseException as error:
            found["error.type"] = type(error).__name__
            made.set_status(trace.StatusCode.ERROR)
            raise
        finally:
            made.set_attributes(found)
