"""Reading a collection at one version, and writing the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from lookalike.collection.search.kept import KeptIndex
from lookalike.collection.stores.base import StaleView, State, Store, View, Writer
from lookalike.errors import CollectionError, NotFoundError

T = TypeVar("T")

_TRIES = 20


class Versions:
    """The versions of one collection, each seen whole."""

    def __init__(self, store: Store, opened: State, native: KeptIndex[Any, Any]) -> None:
        self.opened = opened
        """The row of the collection as it was opened."""
        self._store = store
        self._native = native

    def read(self, work: Callable[[View, State], T]) -> T:
        """Do the work at one version; again, if what is read has moved on meanwhile."""
        for _ in range(_TRIES):
            taken_in = self._native.version  # committed, so a view from now on has it
            try:
                with self._store.reading() as view:
                    state = self.state(view)
                    if state.version < taken_in:
                        self._native.went_back(state)
                    return work(view, state)
            except StaleView:
                continue
        raise CollectionError(
            "the collection is written to faster than a search can begin; try again"
        )

    @contextmanager
    def writing(self) -> Iterator[tuple[Writer, State]]:
        """Hold the row of the collection; what is written becomes visible at the end."""
        with self._store.writing() as writer:
            yield writer, self._known(writer.lock(self.opened.name))

    def state(self, view: View) -> State:
        """Return the row of the collection, as it is in the view."""
        return self._known(view.state(self.opened.name))

    def _known(self, state: State | None) -> State:
        """Return the row of the collection if it is still the sort that was opened."""
        opened = self.opened
        if state is None:
            raise NotFoundError(f"the collection {opened.name!r} at {self._store.shown} is gone")
        kind = (state.bits, state.signer, state.parts)
        if kind != (opened.bits, opened.signer, opened.parts):
            raise CollectionError(
                f"the collection {opened.name!r} was replaced by one with another signer; "
                "open it again"
            )
        return state
