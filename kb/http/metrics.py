"""Prometheus metrics of one server.

Belongs here: what is counted and how it is printed. What does not: when (`middleware`, `routes`).
Names follow https://prometheus.io/docs/practices/naming/; labels are routes, states and verdicts,
never scopes, documents or people.
"""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kb_resources.model import DocumentState, Verdict

_SECONDS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_JOB_STATES = ("queued", "running", "done", "failed")


class Metrics:
    """Counters with a registry of their own, so that several servers fit into one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "kb_http_requests_total",
            "Requests by route and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "kb_http_request_seconds",
            "Time to answer by route.",
            ("method", "route"),
            registry=self.registry,
            buckets=_SECONDS,
        )
        self._searches = Counter(
            "kb_searches_total", "Searches by mode.", ("mode",), registry=self.registry
        )
        self._hits = Histogram(
            "kb_search_hits",
            "Passages a search found.",
            registry=self.registry,
            buckets=(0, 1, 3, 8, 20, 50, 100),
        )
        self._documents = self._gauge("kb_documents", "Documents by state.", "state")
        self._verdicts = self._gauge("kb_versions", "Versions by scan verdict.", "verdict")
        self._jobs = self._gauge("kb_jobs", "Jobs by state.", "state")
        self._oldest = Gauge(
            "kb_oldest_pending_seconds",
            "Age of the oldest pending document.",
            registry=self.registry,
        )
        self._waiting = Gauge(
            "kb_searches_in_progress", "Searches that run or wait.", registry=self.registry
        )

    def _gauge(self, name: str, text: str, label: str) -> Gauge:
        return Gauge(name, text, (label,), registry=self.registry)

    def seen(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def searched(self, mode: str, hits: int) -> None:
        """Count one search."""
        self._searches.labels(mode).inc()
        self._hits.observe(hits)

    def render(self, backlog: dict[str, Any], searches_inside: int) -> bytes:
        """The text exposition, with the installation's numbers as they are now."""
        for state in DocumentState:
            self._documents.labels(state.value).set(backlog["documents"].get(state.value, 0))
        for verdict in Verdict:
            self._verdicts.labels(verdict.value).set(backlog["verdicts"].get(verdict.value, 0))
        for job_state in _JOB_STATES:
            self._jobs.labels(job_state).set(backlog["jobs"].get(job_state, 0))
        self._oldest.set(backlog["oldest_pending_s"])
        self._waiting.set(searches_inside)
        return generate_latest(self.registry)
