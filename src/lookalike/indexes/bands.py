"""Bands: rows whose values agree in a whole band are a candidate pair (Broder; Manku et al.)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.errors import ArgumentError

RECALL = 0.995  # probability that a pair at the threshold becomes a candidate
LEADERS: int = _native.BAND_LEADERS
"""Number of members that all rows of a large group are paired with."""

_PAIRS_AT_A_TIME = 1 << 22


@dataclass(frozen=True)
class BandLayout:
    """`bands` bands of `rows` values each."""

    bands: int
    rows: int

    def chance(self, similarity: ArrayLike) -> NDArray[np.float64]:
        """Return the probability that a pair of this similarity shares a band: the S-curve."""
        agreeing = np.asarray(similarity, np.float64) ** self.rows
        return 1.0 - (1.0 - agreeing) ** self.bands


def choose_bands(values: int, threshold: float, recall: float = RECALL) -> BandLayout:
    """Return the longest bands that find a pair at the threshold with this probability."""
    for rows in range(values, 1, -1):
        layout = BandLayout(values // rows, rows)
        if layout.chance(threshold) >= recall:
            return layout
    return BandLayout(values, 1)


class CoreBands:
    """Makes keys and groups of bands."""

    rows_at_a_time = 1 << 16

    def fill(
        self, rows: NDArray[np.uint8], band_bytes: int, first: int, keys: NDArray[np.uint32]
    ) -> None:
        """Write the keys of rows that begin at row `first` of all."""
        _native.band_keys(rows, band_bytes, first, keys)

    def groups(
        self, keys: NDArray[np.uint32], band: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the rows of a band whose key others have, by key and row, and their offsets."""
        return _native.band_groups(keys, band)


@dataclass(eq=False)
class BandedPairs:
    """Pairs of signatures that share a band, each with the first band that they share.

    A group of more than `most` rows is not paired completely. Its rows are paired with the first 16
    of the group, the first 16 from `first_new` on, and the 16 that follow by `rank`.
    """

    signatures: NDArray[np.uint8]
    value_bytes: int  # bytes of a value of a signature
    layout: BandLayout
    keys: NDArray[np.uint32]  # uint32[bands, count]: keys of the bands, in memory or on disk
    _: KW_ONLY
    most: int
    first_new: int
    rank: NDArray[np.int64]  # order of the rows before `first_new`
    threads: int
    maker: CoreBands = field(default_factory=CoreBands)
    large_groups: int = 0
    rows_in_large_groups: int = 0  # number of rows in large groups, once per band
    partly_paired: NDArray[np.bool_] = field(init=False)  # which rows are in a large group

    def __post_init__(self) -> None:
        self.partly_paired = np.zeros(len(self.signatures), bool)
        self._large_keys: NDArray[np.uint32] = np.empty(0, np.uint32)  # of the bands so far
        self._large_offsets: NDArray[np.int64] = np.zeros(1, np.int64)

    def fill_keys(self, progress: Callable[[float], None]) -> None:
        """Compute the keys; `progress` gets the share that is done."""
        count, step = len(self.signatures), self.maker.rows_at_a_time
        for begin in range(0, count, step):
            rows = np.ascontiguousarray(self.signatures[begin : begin + step])
            self.maker.fill(rows, self.value_bytes * self.layout.rows, begin, self.keys)
            progress(min(1.0, (begin + len(rows)) / count))

    def of_band(self, band: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the pairs whose first common band is this one; call it for each band in turn."""
        rows, offsets = self.maker.groups(self.keys, band)
        sizes = np.diff(offsets)
        large = sizes > self.most
        self.large_groups += int(large.sum())
        self.rows_in_large_groups += int(sizes[large].sum())
        for group in np.flatnonzero(large).tolist():
            members = rows[offsets[group] : offsets[group + 1]]
            members[:] = members[np.argsort(self.rank[members])]
            self.partly_paired[members] = True
        pairs = np.where(large, 48 * sizes, sizes * (sizes - 1) // 2)
        parts = np.cumsum(pairs) // _PAIRS_AT_A_TIME
        bounds = np.flatnonzero(np.diff(parts, prepend=-1, append=-1))
        known = self.keys, self._large_keys, self._large_offsets
        limits = self.most, self.first_new, self.threads
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            some = offsets[begin : end + 1]
            yield _native.group_pairs(*known, band, rows, some, *limits)
        keys = np.sort(self.keys[band, rows[offsets[:-1][large]]])
        self._large_keys = np.concatenate([self._large_keys, keys])
        self._large_offsets = np.append(self._large_offsets, len(self._large_keys))


def bands_for(permutations: int, threshold: float, recall: float) -> BandLayout:
    """Return bands that miss at most half of the pairs at the threshold that may be missed."""
    wanted = _each(recall)
    layout = choose_bands(permutations, threshold, wanted)
    reached = float(layout.chance(threshold))
    if reached < wanted:
        raise ArgumentError(
            f"with permutations={permutations}, pairs of similarity {threshold} share a band with "
            f"a chance of {reached:.3f}, and recall={recall} takes {wanted:.3f}; use more "
            "permutations, or a larger threshold"
        )
    return layout


def least_equal(permutations: int, threshold: float, recall: float) -> int:
    """Return the number of equal values that a row needs, which misses at most the other half.

    Values of two rows at the threshold agree independently, so their number is binomial.
    """
    if threshold == 1:
        return permutations
    counts = np.arange(permutations + 1)
    below = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, permutations + 1)))])
    ways = below[-1] - below - below[::-1]
    logs = ways + counts * math.log(threshold) + (permutations - counts) * math.log1p(-threshold)
    missed = np.cumsum(np.exp(logs))  # the chance of at most this many equal values
    return int(np.searchsorted(missed, 1 - _each(recall), side="right"))


def _each(recall: float) -> float:
    return 1 - (1 - recall) / 2
