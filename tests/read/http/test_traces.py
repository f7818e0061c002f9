"""Spans of requests and errors, given to whatever OpenTelemetry provider the process has."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanKind, StatusCode, Tracer, TracerProvider

from kb_resources.tracing import span
from tests.read.http.conftest import Installation, serving

CALLER = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}


class Kept(NonRecordingSpan):
    """A span that keeps what it is told."""

    def __init__(self, name: str) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.name = name
        self.attributes: dict[str, Any] = {}
        self.status: Any = None
        self.parent = trace.INVALID_SPAN_CONTEXT
        self.kind = SpanKind.INTERNAL

    def set_attributes(self, attributes: Any) -> None:
        self.attributes |= attributes

    def set_status(self, status: Any, description: str | None = None) -> None:  # noqa: ARG002
        self.status = status


@dataclass
class Provider(TracerProvider):
    """Keeps spans, as an agent's would before it sends them."""

    spans: list[Kept] = field(default_factory=list)

    def get_tracer(self, *_: Any, **__: Any) -> Tracer:
        return KeepingTracer(self.spans)


class KeepingTracer(Tracer):
    def __init__(self, spans: list[Kept]) -> None:
        self.spans = spans

    def start_span(self, name: str, *_: Any, **__: Any) -> Kept:
        self.spans.append(Kept(name))
        return self.spans[-1]

    @contextmanager
    def start_as_current_span(self, name: str, *_: Any, **named: Any) -> Iterator[Kept]:
        assert not named["record_exception"]
        assert not named["set_status_on_exception"]
        made = self.start_span(name)
        made.parent = trace.get_current_span(named["context"]).get_span_context()
        made.kind = named["kind"]
        yield made


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Sequence[Kept]:
    provider = Provider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return provider.spans


@pytest.mark.parametrize(("on", "expected"), [(True, 1), (False, 0)])
def test_a_request_has_a_span_where_traces_are_on_and_no_word_of_it(
    installation: Installation, spans: Sequence[Kept], on: bool, expected: int
) -> None:
    settings = replace(installation.settings, traces=on)
    with serving(settings, run_worker=False) as served:
        client = served.client.with_key(installation.keys["viewer"])
        asked = {"query": "thirty days of annual leave", "scope": "acme", "mode": "text"}
        assert client("POST", "/api/v1/search", json=asked, headers=CALLER).status == 200
        # FastAPI would make a span of its own, with the address and what is asked in it.
        assert client("GET", "/page/acme?q=days+of+leave").status < 500
    assert [kept.name for kept in spans] == ["HTTP"] * 2 * expected
    assert "leave" not in str([kept.attributes for kept in spans])
    if on:
        assert f"{spans[0].parent.trace_id:032x}" in CALLER["traceparent"]
        assert spans[0].kind is SpanKind.SERVER
        found = spans[0].attributes
        assert found["http.route"] == "/api/v1/search"
        assert found["http.response.status_code"] == 200
        assert found["http.request.method"] == "POST"
        assert set(found) == {
            "http.request.method", "http.route", "http.response.status_code", "kb.correlation_id",
        }  # fmt: skip


def test_an_error_is_told_by_its_class_and_not_by_its_words(spans: Sequence[Kept]) -> None:
    words = "the text of a document"

    def broken() -> None:
        with span("kb.parse", on=True, kb__run_id="r1") as facts:
            facts["kb.documents"] = 3
            raise ValueError(words)

    with pytest.raises(ValueError, match=words):
        broken()
    [kept] = spans
    assert kept.name == "kb.parse"
    assert kept.status == StatusCode.ERROR
    assert kept.attributes == {
        "kb.run_id": "r1", "kb.documents": 3, "error.type": "ValueError",
    }  # fmt: skip


def test_nothing_of_opentelemetry_is_loaded_where_traces_are_off() -> None:
    code = (
        "import sys\nfrom kb_resources.tracing import span\n"
        "with span('x', on=False): pass\n"
        "print(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
