"""Lists of positions by hash, in sorted runs: what hash indexes look up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = ["HashLists", "Probes", "flip_masks", "hashes_of"]

Words = NDArray[np.uint64]
Places = NDArray[np.int64]


def hashes_of(rows: NDArray[np.uint8], start: int, width: int) -> Words:
    """Return bits `start` to `start + width` of each signature as a number; at most 64 bits."""
    first, shift = divmod(start, 8)
    wide = np.zeros((len(rows), 16), np.uint8)
    part = rows[:, first : first + 9]  # 64 bits that begin inside a byte touch nine
    wide[:, : part.shape[1]] = part
    low, high = wide.view("<u8").T.astype(np.uint64)
    words = low >> np.uint64(shift)
    if shift:
        words |= high << np.uint64(64 - shift)
    return words & np.uint64((1 << width) - 1)


def flip_masks(width: int, most: int) -> Words:
    """Return every number of `width` bits with at most `most` of them set."""
    masks = [
        sum(1 << bit for bit in chosen)
        for count in range(most + 1)
        for chosen in combinations(range(width), count)
    ]
    return np.array(masks, np.uint64)


@dataclass(frozen=True)
class Probes:
    """Parts of sorted runs that queries look at."""

    lists: int
    """How many lists they are."""
    parts: list[tuple[Places, Places, Places, Places]]
    """Of each run: whose each part is, where it begins, how long it is, and the run's positions."""

    @property
    def size(self) -> int:
        """How many positions they have."""
        return sum(int(lengths.sum()) for _, _, lengths, _ in self.parts)

    def queries(self) -> Places:
        """Return the query of each position."""
        whose = [np.repeat(query, lengths) for query, _, lengths, _ in self.parts]
        return np.concatenate([np.empty(0, np.int64), *whose])

    def places(self) -> Places:
        """Return the positions."""
        found = [np.empty(0, np.int64)]
        for _, begins, lengths, places in self.parts:
            ends = np.cumsum(lengths)
            inside = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
            found.append(places[np.repeat(begins, lengths) + inside])
        return np.concatenate(found)


class HashLists:
    """Positions by hash. What is added is sorted when it is first looked for; runs of similar
    length are put together, so that adding and looking in turn stays cheap.
    """

    def __init__(self) -> None:
        self._count = 0
        self._runs: list[tuple[Words, Places]] = []
        self._new: list[Words] = []

    def add(self, hashes: Words) -> None:
        """Take in the hashes of the next positions."""
        self._new.append(hashes)

    def values(self) -> Words:
        """Return all hashes that there are, each once."""
        self._sort()
        return np.unique(
            np.concatenate([np.empty(0, np.uint64), *(keys for keys, _ in self._runs)])
        )

    def probes(self, hashes: Words, masks: Words | None, most: int) -> Probes:
        """Return what the lists within `most` bits of the hashes hold.

        `masks` are all flips of that many bits. Where they are more than there are hashes, or None,
        all of these are compared instead.
        """
        self._sort()
        if masks is None or len(masks) > self._count:
            values = self.values()
            differ = np.bitwise_count(hashes[:, None] ^ values[None])
            query, which = np.nonzero(differ <= most)
            wanted = values[which]
        else:
            query = np.repeat(np.arange(len(hashes)), len(masks))
            wanted = (hashes[:, None] ^ masks[None]).reshape(-1)
        parts, read = [], np.zeros(len(wanted), bool)
        for keys, places in self._runs:
            begins = np.searchsorted(keys, wanted, "left")
            lengths = np.searchsorted(keys, wanted, "right") - begins
            some = lengths > 0
            read |= some
            parts.append((query[some], begins[some], lengths[some], places))
        return Probes(int(read.sum()), parts)

    def _sort(self) -> None:
        if self._new:
            hashes = np.concatenate(self._new)
            order = np.argsort(hashes, kind="stable")
            self._runs.append((hashes[order], order + self._count))
            self._count += len(hashes)
            self._new = []
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            (left, first), (right, second) = self._runs[-2:]
            keys, places = np.concatenate([left, right]), np.concatenate([first, second])
            order = np.argsort(keys, kind="stable")
            self._runs[-2:] = [(keys[order], places[order])]
