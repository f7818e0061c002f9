"""The same operations on both stores, drawn at random: no difference may be seen.

Every answer is compared, refusals by class and code too. Ranks are compared by the sets they are
over and by each list's scores: BM25 weights come from statistics that Postgres refreshes now and
then, so only vector scores are numbers that must agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from kb_resources.errors import KbError
from kb_resources.store import ann, vectors
from kb_resources.store import documents as documents_of
from kb_resources.store.contract import KnowledgeStore
from kb_resources.store.memory import MemoryStore
from kb_resources.store.postgres import PgStore
from kb_resources.store.records import Event, Found

from .conftest import DAY, LIMITS, SPACE, START, Clock, edition, vector_of

_numbers = itertools.count(1)
DOCUMENTS = ("a", "b", "c")
TEXTS = ("leave is granted", "pay is due", "leave and pay", "travel is refunded")
documents = st.sampled_from(DOCUMENTS)
texts = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3).map(tuple)
instants = st.integers(0, 4).map(lambda days: START + days * DAY)
readers = st.sampled_from([(), ("board",), ("hr", "board"), None])
names = st.sampled_from([(), ("board",), ("hr",)])


class BothStores(RuleBasedStateMachine):
    """Applies each operation to the reference and to Postgres."""

    database: ClassVar[Any]

    @initialize(pinned=st.booleans(), indexed=st.booleans())
    def begin(self, pinned, indexed) -> None:
        """A scope named by each call or pinned; with no index of its own, or as large ones are."""
        self.name = f"f{next(_numbers)}"
        self.scope = None if pinned else self.name
        self.indexed = indexed
        self.clock = Clock()
        # Each store reads its own clock as often as it likes: both stand still but for `pass_time`.
        still: Callable[[], Any] = lambda: self.clock.now  # noqa: E731
        self.memory = MemoryStore(SPACE, limits=LIMITS, clock=still)
        self.postgres = PgStore(self.database, SPACE, limits=LIMITS, clock=still)
        self.both("scopes", lambda s: s.scopes.create(self.name))
        if pinned:
            self.memory = self.memory.pinned_to(self.name)
            self.postgres = self.postgres.pinned_to(self.name)
        if indexed:
            self.index("create")
        self.both("subscribe", lambda s: s.subscribe("mirror", scope=self.scope))
        self.vectors: dict[str, Any] = {}

    def both(self, what: str, call: Callable[[KnowledgeStore], Any]) -> Any:
        """Apply, compare, return."""
        self.clock.forward(seconds=1)
        answers = [_answer(call, store) for store in (self.memory, self.postgres)]
        assert answers[0] == answers[1], what
        return answers[0]

    @rule(
        document=documents,
        texts=texts,
        at=instants,
        audiences=names,
        embedded=st.sampled_from([True, False, (0,)]),
        title=st.sampled_from(["T", "U"]),
        digest=st.sampled_from([None, "0" * 64]),
    )
    def put(self, document, texts, at, audiences, embedded, title, digest) -> None:
        values: dict[str, Any] = {} if digest is None else {"digest": digest}
        made = edition(
            document, *texts, title=title, valid_from=at, audiences=audiences, vectors=embedded,
            **values,
        )  # fmt: skip
        whole = edition(document, *texts, title=title)
        self.vectors |= whole.vectors
        self.both("put", lambda s: s.put(made, scope=self.scope))

    @rule(document=documents)
    def remove(self, document) -> None:
        self.both("remove", lambda s: s.remove(document, scope=self.scope))

    @rule(document=documents)
    def restore(self, document) -> None:
        self.both("restore", lambda s: s.restore(document, scope=self.scope))

    @rule(document=documents, audiences=names)
    def decide(self, document, audiences) -> None:
        self.both("decide", lambda s: s.set_audiences(document, audiences, scope=self.scope))

    @rule(document=documents, share=st.integers(0, 2))
    def embed(self, document, share) -> None:
        missing = self.both("missing", lambda s: s.missing(document, scope=self.scope))
        if isinstance(missing, tuple):
            some = [item.embed_hash for item in missing][: share + 1]
            given = {each: self.vectors[each] for each in some if each in self.vectors}
            self.both("add", lambda s: s.add_vectors(document, given, scope=self.scope))

    @rule(holder=st.sampled_from(["w1", "w2"]))
    def claim(self, holder) -> None:
        self.both("claim", lambda s: s.claim(holder=holder, lease_s=100, scope=self.scope))

    @rule(
        document=documents, holder=st.sampled_from(["w1", "w2"]), error=st.sampled_from(["", "x"])
    )
    def settle(self, document, holder, error) -> None:
        self.both(
            "settle",
            lambda s: s.settle(document, holder=holder, error=error, attempts=2, scope=self.scope),
        )

    @rule(hours=st.integers(0, 30))
    def pass_time(self, hours) -> None:
        self.clock.forward(hours=hours)
        self.both("recover", lambda s: s.recover(scope=self.scope, attempts=2))

    @rule(document=documents)
    def requeue(self, document) -> None:
        self.both("requeue", lambda s: s.requeue(document, scope=self.scope))

    @rule(closed=st.booleans())
    def close(self, closed) -> None:
        act = "close" if closed else "reopen"
        self.both(act, lambda s: getattr(s.scopes, act)(self.name).closed_at is None)

    @rule(audiences=readers, document=documents)
    def read(self, audiences, document) -> None:
        look: dict[str, Any] = {"scope": self.scope, "audiences": audiences}
        self.both("get", lambda s: s.get(document, **look))
        self.both("list", lambda s: s.documents(**look).items)
        self.both("passages", lambda s: s.passages(document, **look))
        self.both("count", lambda s: s.count(scope=self.scope))
        self.both("works", lambda s: s.works(scope=self.scope))
        self.both("work", lambda s: s.work(document, scope=self.scope))

    @rule(
        text=st.sampled_from([None, "leave", "pay refunded", "nothing"]),
        near=st.sampled_from([None, *TEXTS]),
        audiences=readers,
        as_of=st.one_of(st.none(), instants),
        historical=st.booleans(),
        only=st.sampled_from([None, ("a",), ()]),
        floor=st.sampled_from([None, None, 0.5]),
    )
    def search(self, text, near, audiences, as_of, historical, only, floor) -> None:
        self.both(
            "search",
            lambda s: _comparable(
                s.search(
                    scope=self.scope,
                    text=text,
                    vector=None if near is None else vector_of(near),
                    audiences=audiences,
                    as_of=as_of,
                    historical=historical,
                    document_ids=only,
                    min_vector_score=floor,
                    k=100,
                )
            ),
        )

    @rule(count=st.integers(1, 3))
    def consume(self, count) -> None:
        told = [
            store.events("mirror", scope=self.scope, limit=1000)
            for store in (self.memory, self.postgres)
        ]
        assert [_plain(event) for event in told[0]] == [_plain(event) for event in told[1]]
        for store, events in zip((self.memory, self.postgres), told, strict=True):
            ids = [event.event_id for event in events[:count]]
            assert store.acknowledge("mirror", ids, scope=self.scope) == len(ids)

    def index(self, action: Any) -> None:
        """Make or drop the scope's own vector index."""
        with self.database.transaction("pipeline") as conn:
            model = vectors.ensure_model(conn, SPACE.model_id, SPACE.dimensions)
            scope_id = documents_of.get_scope(conn, self.name).scope_id
        name = f"embedding_ann_{model}_{scope_id}"
        with self.database.owner_session() as conn:
            ann.apply(conn, ann.IndexChange(action, name, model, scope_id, SPACE.dimensions))

    def teardown(self) -> None:
        if hasattr(self, "name"):
            self.consume(count=3)
            self.read(audiences=None, document="a")
            if self.indexed:
                self.index("drop")


def _answer(call: Callable[[KnowledgeStore], Any], store: KnowledgeStore) -> Any:
    try:
        return call(store)
    except KbError as error:
        return type(error), error.code


def _plain(event: Event) -> tuple[str, str, int | None]:
    return event.document_id, event.kind, event.version


class _Near(float):
    """Equal to what differs by no more than half-precision vectors do."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and abs(float(self) - float(other)) < 5e-3


def _comparable(hits: tuple[Found, ...]) -> list[Any]:
    return sorted(
        (
            [
                hit.passage,
                hit.text_score is not None,
                _Near(-2.0 if hit.vector_score is None else hit.vector_score),
            ]
            for hit in hits
        ),
        key=lambda item: (item[0].document_id, item[0].version, item[0].byte_start),
    )


@pytest.mark.requirement("O-09", "W-14", "W-27", "W-29")
def test_no_sequence_of_operations_tells_the_stores_apart(contract_database) -> None:
    BothStores.database = contract_database
    run_state_machine_as_test(
        BothStores, settings=settings(max_examples=25, stateful_step_count=12, deadline=None)
    )


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.requirement("O-09", "W-14", "W-27", "W-29")
@pytest.mark.parametrize("part", range(25))
def test_no_sequence_of_five_thousand_tells_the_stores_apart(contract_database, part) -> None:
    """Two hundred in each part, drawn anew with every run."""
    BothStores.database = contract_database
    run_state_machine_as_test(
        BothStores,
        settings=settings(
            max_examples=200, stateful_step_count=12, deadline=None, derandomize=False
        ),
    )
