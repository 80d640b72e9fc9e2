"""`datasketch.lshforest`: the keys that share the longest beginnings of bands (Bawa et al.)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.compat.datasketch.minhash import check_same_scheme
from lookalike.errors import ArgumentError


class MinHashLSHForest:
    """`l` trees of prefixes, as sorted lists; what is added is found after `index`."""

    def __init__(self, num_perm: int = 128, l: int = 8) -> None:  # noqa: E741  # its name
        if l <= 0 or num_perm <= 0:
            raise ArgumentError(f"num_perm is {num_perm} and l is {l}; expected 1 or more of both")
        if l > num_perm:
            raise ArgumentError(f"l is {l}; expected no more than num_perm={num_perm}")
        self.l = l
        self.k = num_perm // l
        self.hashtables: list[dict[bytes, list[Any]]] = [defaultdict(list) for _ in range(l)]
        self.hashranges = [(tree * self.k, (tree + 1) * self.k) for tree in range(l)]
        self.keys: dict[Any, list[bytes]] = {}
        self._minhash_scheme: str | None = None
        self.sorted_hashtables: list[list[bytes]] = [[] for _ in range(l)]

    def add(self, key: Hashable, minhash: Any) -> None:
        """Add a MinHash under a new key."""
        self._check(minhash)
        if key in self.keys:
            raise ArgumentError("The given key has already been added")
        self._minhash_scheme = check_same_scheme(self._minhash_scheme, minhash)
        self.keys[key] = [_bytes(minhash.hashvalues[begin:end]) for begin, end in self.hashranges]
        for values, table in zip(self.keys[key], self.hashtables, strict=True):
            table[values].append(key)

    def index(self) -> None:
        """Let everything that was added be found."""
        self.sorted_hashtables = [sorted(table) for table in self.hashtables]

    def query(self, minhash: Any, k: int) -> list[Any]:
        """Return at most `k` keys, those that share longer prefixes first taken."""
        if k <= 0:
            raise ArgumentError(f"k is {k}; expected 1 or more")
        self._check(minhash)
        found: dict[Any, None] = {}
        for length in range(self.k, 0, -1):
            for key in self._sharing(minhash, length):
                found[key] = None
                if len(found) >= k:
                    return list(found)
        return list(found)

    def _sharing(self, minhash: Any, length: int) -> Iterator[Any]:
        """Yield keys that share the first `length` values of a tree."""
        for (begin, _), order, table in zip(
            self.hashranges, self.sorted_hashtables, self.hashtables, strict=True
        ):
            prefix = _bytes(minhash.hashvalues[begin : begin + length])
            at = bisect_left(order, prefix)
            while at < len(order) and order[at].startswith(prefix):
                yield from table[order[at]]
                at += 1

    def get_minhash_hashvalues(self, key: Hashable) -> NDArray[Any]:
        """Return the hash values of what was added under a key."""
        if key not in self.keys:
            raise KeyError(f"The provided key does not exist in the LSHForest: {key}")
        values = b"".join(self.keys[key])
        narrow = len(values) == 4 * self.k * self.l
        return np.frombuffer(values, np.uint32 if narrow else np.uint64).byteswap()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"_minhash_scheme": None, **state})

    def is_empty(self) -> bool:
        """Return whether nothing can be found."""
        return not all(self.sorted_hashtables)

    def __contains__(self, key: Hashable) -> bool:
        return key in self.keys

    def _check(self, minhash: Any) -> None:
        check_same_scheme(self._minhash_scheme, minhash)
        if len(minhash) < self.k * self.l:
            raise ArgumentError(
                f"the minhash has {len(minhash)} values; expected {self.k * self.l} or more"
            )


def _bytes(values: NDArray[Any]) -> bytes:
    return bytes(values.byteswap().data)
