"""`IndexBinaryIDMap` and `IndexBinaryIDMap2`: labels of the caller's for what has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from lookalike.compat.faiss.base import FaissError, IndexBinary, State
from lookalike.compat.faiss.flat import Growing
from lookalike.compat.faiss.selectors import IDSelector, IDSelectorTranslated
from lookalike.errors import CorruptIndexError
from lookalike.indexes.results import Matches, Neighbors
from lookalike.shown import brief

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["IndexBinaryIDMap", "IndexBinaryIDMap2"]


class IndexBinaryIDMap(IndexBinary):
    """Another index, which has to be empty, under labels: any int64, repeated or not."""

    def __init__(self, index: IndexBinary) -> None:
        if not isinstance(index, IndexBinary):
            raise FaissError(f"index is {brief(index)}; expected a binary index")
        if index.ntotal:
            raise FaissError("index must be empty on input")
        super().__init__(index.d)
        self.index = index
        self.own_fields = True
        self._map = Growing(np.empty(0, np.int64))

    @property
    def id_map(self) -> NDArray[np.int64]:
        """The label of each position."""
        labels: NDArray[np.int64] = self._map.rows  # type: ignore[assignment]
        return labels

    @property
    def ntotal(self) -> int:
        """How many signatures there are."""
        return len(self.id_map)

    def reset(self) -> None:
        """Take out everything, of the other index too."""
        self.index.reset()
        self._map = Growing(np.empty(0, np.int64))

    def _add(self, rows: NDArray[np.uint8], labels: NDArray[np.int64] | None) -> None:
        if labels is None:
            raise FaissError(f"add needs labels: use add_with_ids of {type(self).__name__}")
        self.index._add(rows, None)
        self._map.add(labels)

    def _search(self, rows: NDArray[np.uint8], k: int, chosen: IDSelector | None) -> Neighbors:
        return self.index._search(rows, k, self._translated(chosen))

    def _within(self, rows: NDArray[np.uint8], radius: int, chosen: IDSelector | None) -> Matches:
        return self.index._within(rows, radius, self._translated(chosen))

    def _translated(self, chosen: IDSelector | None) -> IDSelector | None:
        return None if chosen is None else IDSelectorTranslated(self.id_map, chosen)

    def _labels(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        inner = self.index._labels(positions)
        labels = np.full(inner.shape, -1, np.int64)
        labels[inner >= 0] = self.id_map[inner[inner >= 0]]
        return labels

    def _remove(self, selector: IDSelector) -> int:
        removed = self.index._remove(IDSelectorTranslated(self.id_map, selector))
        self._map.keep(~selector.members(self.id_map))
        return removed

    def _state(self) -> State:
        from lookalike.compat.faiss.files import serialize_index_binary

        return {}, {"index": serialize_index_binary(self.index), "id_map": self.id_map}

    @classmethod
    def _restored(cls, container: Container) -> Self:
        from lookalike.compat.faiss.files import index_in

        index = cls.__new__(cls)
        index.index = index_in(container.inner("index"))
        IndexBinary.__init__(index, index.index.d)
        index.own_fields = True
        index._map = Growing(container.array("id_map", np.int64, 1))
        if index.ntotal != index.index.ntotal:
            raise CorruptIndexError(
                f"{container.path} holds {index.index.ntotal} signatures and {index.ntotal} labels"
            )
        return index


class IndexBinaryIDMap2(IndexBinaryIDMap):
    """The same, and `reconstruct` by label: of repeated ones, the last that was added."""

    @property
    def rev_map(self) -> dict[int, int]:
        """The position of each label, put together at every look."""
        return dict(zip(self.id_map.tolist(), range(self.ntotal), strict=True))

    def construct_rev_map(self) -> None:
        """Do nothing: labels are looked up in `id_map`."""

    def check_consistency(self) -> None:
        """Raise if a label is there more than once."""
        if len(np.unique(self.id_map)) != self.ntotal:
            raise FaissError("a label is there more than once")

    def _signature(self, label: int) -> NDArray[np.uint8]:
        places = np.flatnonzero(self.id_map == label)
        if not len(places):
            raise FaissError(f"key {label} not found")
        return self.index._signature(int(places[-1]))
