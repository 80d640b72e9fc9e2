"""Which signatures a search may find: the ids or the mask that `among` was given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import as_array
from lookalike.errors import ArgumentError
from lookalike.indexes.results import Matches
from lookalike.indexes.rows import as_ids

__all__ = ["Among", "Chosen", "only_chosen", "worth_copying"]

_COPY = 16
"""How many comparisons copying a row costs."""


@dataclass(frozen=True, eq=False, slots=True)
class Chosen:
    """Ids that may be found: those listed, or those whose place in a mask is True."""

    ids: NDArray[np.int64] | None
    """In ascending order, each once."""
    mask: NDArray[np.bool_] | None

    @classmethod
    def of(cls, among: Among, next_id: int) -> Chosen:
        """Return what `among` says, or what is wrong with it."""
        if isinstance(among, Chosen):
            return among
        array = as_array("among", among)
        if array.dtype != np.bool_:
            try:
                return cls(np.unique(as_ids(array)), None)
            except ArgumentError as error:
                raise ArgumentError(f"among: {error}; or a mask of bool") from None
        if array.shape != (next_id,):
            raise ArgumentError(
                f"among is a mask of shape {array.shape}; expected ({next_id},): True or False for "
                "each id from 0 to the largest there has been. Where ids are large, list them"
            )
        return cls(None, array)

    def has(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of these ids are chosen."""
        found: NDArray[np.bool_] = np.zeros(len(ids), bool)
        if self.mask is not None:
            inside = ids < len(self.mask)
            found[inside] = self.mask[ids[inside]]
            return found
        if self.ids is None or not len(self.ids):
            return found
        places = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        found[:] = self.ids[places] == ids
        return found

    def shifted(self, shift: int, count: int) -> Chosen:
        """Return the choice for a part whose ids begin at `shift`, and are `count` at most."""
        if self.mask is not None:
            return Chosen(None, self.mask[shift : shift + count])
        if self.ids is None:
            return self
        begin, end = np.searchsorted(self.ids, [shift, shift + count])
        return Chosen(self.ids[begin:end] - shift, None)


Among = ArrayLike | Chosen
"""What callers give, and what an index gives to its shards."""


def worth_copying(count: int, queries: int) -> int:
    """Return how many of `count` rows are better copied, and only they compared with queries.

    Where more are chosen, all are compared, and others left out.
    """
    return queries * count // (_COPY + queries)


def only_chosen(matches: Matches, chosen: Chosen) -> Matches:
    """Return the matches whose ids are chosen."""
    kept = chosen.has(matches.ids)
    counts = np.concatenate([[0], np.cumsum(kept)])
    return Matches(
        counts[matches.offsets],
        matches.ids[kept],
        matches.distances[kept],
        matches.exact,
        matches.explanation,
    )
