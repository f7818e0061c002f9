"""Queries overtake bulk work."""

from __future__ import annotations

import threading
import time

import pytest

from kb_resources.embed.priority import QueryFirst


def test_bulk_starts_at_once_while_nobody_asks() -> None:
    order = QueryFirst(patience_s=60)
    started = time.monotonic()
    order.before_bulk_batch()
    assert time.monotonic() - started < 5


def test_bulk_waits_for_all_queries_in_work() -> None:
    order = QueryFirst(patience_s=60)
    bulk_started = threading.Event()

    def bulk() -> None:
        order.before_bulk_batch()
        bulk_started.set()

    with order.query():
        with order.query():
            thread = threading.Thread(target=bulk)
            thread.start()
            assert not bulk_started.wait(0.1)
        assert not bulk_started.wait(0.1)
    assert bulk_started.wait(30)
    thread.join()


def test_bulk_never_starves() -> None:
    order = QueryFirst(patience_s=0.05)
    with order.query():
        order.before_bulk_batch()  # returns although the query never ends


def test_a_failed_query_lets_bulk_go_on() -> None:
    order = QueryFirst(patience_s=60)
    with pytest.raises(ZeroDivisionError), order.query():
        print(1 // 0)
    order.before_bulk_batch()
