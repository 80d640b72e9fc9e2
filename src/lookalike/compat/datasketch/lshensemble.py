"""`datasketch.lshensemble` and its partition: which sets contain this one (Zhu et al.)?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from lookalike.compat.datasketch.lsh import (
    MinHashLSH,
    best_params_for_containment,
    check_parameters,
)
from lookalike.errors import ArgumentError


def optimal_partitions(
    sizes: Sequence[int], counts: Sequence[int], num_part: int
) -> list[tuple[int, int]]:
    """Return the least and the largest size of each part; sizes ascend.

    A set of size x in a part up to u counts (u - x) / u: it is taken to be as large as u.
    """
    if num_part < 2:
        return [(sizes[0], sizes[-1])]
    if num_part >= len(sizes):
        return [(size, size) for size in sizes]
    size, count = np.array(sizes, np.float64), np.array(counts, np.float64)
    sets = np.concatenate([[0.0], np.cumsum(count)])
    mass = np.concatenate([[0.0], np.cumsum(count * size)])

    def cost(first: int, last: int) -> float:
        return float((sets[last + 1] - sets[first]) - (mass[last + 1] - mass[first]) / size[last])

    # best[last] is the least cost of the sizes up to it, in as many parts as there were rounds.
    best = [cost(0, last) for last in range(len(sizes))]
    ends: list[list[int]] = []  # of the part before the last one, in each round
    for part in range(1, num_part):
        before, best, chosen = best, [float("inf")] * len(sizes), [0] * len(sizes)
        for last in range(part, len(sizes)):
            best[last], chosen[last] = min(
                (before[end] + cost(end + 1, last), end) for end in range(part - 1, last)
            )
        ends.append(chosen)
    bounds = [len(sizes) - 1]
    for chosen in reversed(ends):
        bounds.insert(0, chosen[bounds[0]])
    firsts = [0, *(end + 1 for end in bounds[:-1])]
    return [(sizes[first], sizes[last]) for first, last in zip(firsts, bounds, strict=True)]


class MinHashLSHEnsemble:
    """Sets in parts of like size; in each, bands that fit its largest size and the query's."""

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        num_part: int = 16,
        m: int = 8,
        weights: tuple[float, float] = (0.5, 0.5),
        storage_config: dict[str, Any] | None = None,
        prepickle: bool | None = None,
    ) -> None:
        check_parameters(threshold, num_perm, weights, storage_config)
        if num_part < 1:
            raise ArgumentError(f"num_part is {num_part}; expected 1 or more")
        if not 2 <= m <= num_perm:
            raise ArgumentError(f"m is {m}; expected a whole number from 2 to {num_perm}")
        self.threshold = threshold
        self.h = num_perm
        self.m = m
        self.xqs = np.exp(np.linspace(-5, 5, 10))
        chosen = [
            best_params_for_containment(threshold, num_perm, m, ratio, *weights)
            for ratio in self.xqs.tolist()
        ]
        self.params = np.array(chosen, int)
        self.indexes = [
            {
                r: MinHashLSH(num_perm=num_perm, params=(num_perm // r, r), prepickle=prepickle)
                for r in sorted({r for _, r in chosen})
            }
            for _ in range(num_part)
        ]
        self.lowers: list[int | None] = [None] * num_part
        self.uppers: list[int | None] = [None] * num_part

    def index(self, entries: Iterable[tuple[Hashable, Any, int]]) -> None:
        """Take all keys, MinHashes and sizes of sets; once."""
        if not self.is_empty():
            raise ArgumentError("Cannot call index again on a non-empty index")
        several = sorted(entries, key=lambda entry: entry[2])
        if not several:
            raise ArgumentError("entries is empty")
        if several[0][2] <= 0:
            raise ArgumentError(f"a set has the size {several[0][2]}; expected 1 or more")
        counted = Counter(size for _, _, size in several)
        sizes = sorted(counted)
        parts = optimal_partitions(sizes, [counted[size] for size in sizes], len(self.indexes))
        for part, (lower, upper) in enumerate(parts):
            self.lowers[part], self.uppers[part] = lower, upper
        part = 0
        for key, minhash, size in several:
            while size > parts[part][1]:
                part += 1
            for lsh in self.indexes[part].values():
                lsh.insert(key, minhash)

    def query(self, minhash: Any, size: int) -> Iterator[Any]:
        """Yield the keys of sets that probably contain the set of this MinHash and size."""
        for upper, index in zip(self.uppers, self.indexes, strict=True):
            if upper is not None:
                at = int(np.searchsorted(self.xqs, float(upper) / float(size), side="left"))
                b, r = self.params[min(at, len(self.params) - 1)].tolist()
                yield from index[r]._query_b(minhash, b)

    def __contains__(self, key: Hashable) -> bool:
        return any(key in lsh for index in self.indexes for lsh in index.values())

    def is_empty(self) -> bool:
        """Return whether there is no key."""
        return all(lsh.is_empty() for index in self.indexes for lsh in index.values())
