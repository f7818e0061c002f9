"""Which model a question is embedded with: the live one of the scopes that are searched.

Belongs here: what is known of scopes' live models between two searches, and noticing a swap. What
does not: swapping (`stages.reembed`), loading models (`compose`). A search verifies in its own
transaction what it took from here, as optimistic concurrency control does (Kung, Robinson 1981).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from kb_resources.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from kb_resources.retrieve.embedded import QueryEmbedder
    from kb_resources.store.search import SearchScope

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class ModelSwapped(Exception):
    """Another model became live between embedding the question and searching."""


def again_when_swapped(
    search: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Let a method run again for as long as it raises `ModelSwapped`."""

    @wraps(search)
    def searching(searcher: S, /, *given: P.args, **named: P.kwargs) -> R:
        while True:
            try:
                return search(searcher, *given, **named)
            except ModelSwapped:
                continue

    return searching


class LiveModels:
    """Remembers the live model of each scope that was searched.

    Args:
        default: gives the model of scopes without vectors; None: there is none at all.
        others: gives the model of an identity; None: every scope is searched by the default one.
    """

    def __init__(
        self,
        default: Callable[[], QueryEmbedder] | None,
        others: Callable[[str], QueryEmbedder] | None,
    ) -> None:
        self._default = default
        self._others = others
        self._known: dict[str, str | None] = {}
        self._doubted: set[str] = set()

    @property
    def any(self) -> bool:
        """Whether there is any model at all."""
        return self._default is not None

    def knows(self, names: Iterable[str]) -> bool:
        """Whether these scopes' models were learned, and nothing hints at a swap since."""
        found = [self._known.get(name, "") for name in names]
        return "" not in found and len(set(found) - {None}) <= 1

    def learn(self, scopes: Iterable[SearchScope]) -> bool:
        """Remember what scopes are searched by; whether that is news of one that was known."""
        changed = False
        for scope in scopes:
            changed |= self._known.get(scope.name, scope.live) != scope.live
            self._known[scope.name] = scope.live
        return changed

    def model(self, names: Sequence[str], mode: str) -> QueryEmbedder | None:
        """The model that searches of these scopes embed with.

        Args:
            names: scopes; those that are not known count as being without vectors.
            mode: of the search.

        Returns:
            None where there is none on this machine; such a search is one by text.

        Raises:
            ModelSwapped: what is remembered may be out of date.
            InputError: the scopes are searched by different models.
            UnavailableError: its endpoint is away; or mode `vector`, and it is not here.
        """
        if self._default is None:
            return None
        wanted = {live for name in names if (live := self._known.get(name)) is not None}
        if len(wanted) > 1:
            raise InputError(
                f"These scopes are searched by different models: {', '.join(sorted(wanted))}.",
                next_step="Search them one by one, or with mode text, or re-embed one of them.",
                code="models_differ",
            )
        if not wanted or self._others is None:
            return self._default()
        (live,) = wanted
        try:
            return self._others(live)
        except UnavailableError as error:
            if error.code == "model_missing" and not self._doubted.issuperset(names):
                self._doubted.update(names)
                for name in names:
                    self._known.pop(name, None)
                raise ModelSwapped from error  # perhaps: look whether it is live still
            self._doubted.difference_update(names)
            if mode == "vector" or error.code != "model_missing":
                raise
            return None
