"""`datasketch.minhash`: a MinHash that features are added to."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.compat.datasketch.hashfunc import sha1_hash32
from lookalike.errors import ArgumentError

__all__ = ["MinHash"]

_PRIME = (1 << 61) - 1
_MAX_HASH = np.uint64((1 << 32) - 1)
_HASH_RANGE = 1 << 32


@lru_cache(maxsize=64)
def _permutations(seed: Any, count: int) -> NDArray[np.uint64]:
    """Return factors and terms as NumPy's generator of that seed draws them, by turns."""
    random = np.random.RandomState(seed)
    drawn = [
        (
            random.randint(1, _PRIME, dtype=np.uint64),
            random.randint(0, _PRIME, dtype=np.uint64),
        )
        for _ in range(count)
    ]
    permutations = np.array(drawn, np.uint64).reshape(count, 2).T.copy()
    permutations.flags.writeable = False  # shared by all that have this seed
    return permutations


class MinHash:
    """The least hash of the values so far, under each of `num_perm` permutations."""

    seed: int
    hashvalues: NDArray[np.uint64]

    def __init__(
        self,
        num_perm: int = 128,
        seed: int = 1,
        gpu_mode: str = "disable",
        hashfunc: Callable[[Any], int] = sha1_hash32,
        hashobj: object = None,
        hashvalues: ArrayLike | None = None,
        permutations: Any = None,
    ) -> None:
        values = None if hashvalues is None else self._parse_hashvalues(hashvalues)
        self.num_perm = num_perm if values is None else len(values)
        if self.num_perm > _HASH_RANGE:
            raise ArgumentError(f"num_perm is {num_perm}; expected at most {_HASH_RANGE}")
        if not callable(hashfunc):
            raise ArgumentError("hashfunc must be a function, from a value to 32 bits")
        if hashobj is not None:
            warnings.warn(
                "hashobj does nothing any more; use hashfunc", DeprecationWarning, stacklevel=2
            )
        self.seed = seed
        self.hashfunc = hashfunc
        self.hashvalues = self._init_hashvalues(self.num_perm) if values is None else values
        self.permutations = (
            self._init_permutations(self.num_perm) if permutations is None else permutations
        )
        if len(self) != len(self.permutations[0]):
            raise ArgumentError(
                f"there are {len(self)} hash values and {len(self.permutations[0])} permutations; "
                "expected equal numbers"
            )
        self._gpu_mode = gpu_mode
        self._a_gpu = None  # part of what is pickled
        self._b_gpu = None

    def _init_hashvalues(self, num_perm: int) -> NDArray[np.uint64]:
        return np.full(num_perm, _MAX_HASH)

    def _init_permutations(self, num_perm: int) -> NDArray[np.uint64]:
        try:
            return _permutations(self.seed, num_perm)
        except TypeError:  # seeds that cannot be looked up, such as arrays
            return _permutations.__wrapped__(self.seed, num_perm)

    def _parse_hashvalues(self, hashvalues: ArrayLike) -> NDArray[np.uint64]:
        return np.array(hashvalues, np.uint64)

    def update(self, b: Any) -> None:
        """Add a value."""
        self._add([self.hashfunc(b)])

    def update_batch(self, b: Iterable[Any]) -> None:
        """Add values."""
        if self._gpu_mode == "always":
            raise RuntimeError(
                "gpu_mode='always', but hash values are computed on the processor here; use "
                "'detect' or 'disable'"
            )
        self._add([self.hashfunc(value) for value in b])

    def _add(self, hashes: list[int]) -> None:
        factors, terms = (np.ascontiguousarray(part, np.uint64) for part in self.permutations)
        minima = self.hashvalues.copy()  # who was given the array before keeps it as it was
        _native.mersenne_minima(np.array(hashes, np.uint64), factors, terms, minima)
        self.hashvalues = minima

    def jaccard(self, other: MinHash) -> float:
        """Return the estimated Jaccard similarity of the values of both."""
        self._check_same(other)
        return float(np.count_nonzero(self.hashvalues == other.hashvalues)) / float(len(self))

    def count(self) -> float:
        """Return the estimated number of distinct values."""
        return float(len(self) / np.sum(self.hashvalues / float(_MAX_HASH)) - 1.0)

    def merge(self, other: MinHash) -> None:
        """Add the values of another one."""
        self._check_same(other)
        self.hashvalues = np.minimum(other.hashvalues, self.hashvalues)

    def _check_same(self, other: MinHash) -> None:
        if other.seed != self.seed:
            raise ArgumentError(f"seeds {self.seed} and {other.seed} differ; expected the same one")
        if len(other) != len(self):
            raise ArgumentError(
                f"there are {len(self)} and {len(other)} permutations; expected as many"
            )

    def digest(self) -> NDArray[np.uint64]:
        """Return a copy of the hash values."""
        return self.hashvalues.copy()

    def is_empty(self) -> bool:
        """Return whether no value was added."""
        return bool((self.hashvalues == _MAX_HASH).all())

    def clear(self) -> None:
        """Forget all values."""
        self.hashvalues = self._init_hashvalues(len(self))

    def copy(self) -> MinHash:
        """Return another one with the same values."""
        return MinHash(
            seed=self.seed,
            hashfunc=self.hashfunc,
            hashvalues=self.hashvalues,
            permutations=self.permutations,
            gpu_mode=self._gpu_mode,
        )

    def __len__(self) -> int:
        return len(self.hashvalues)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MinHash)
            and type(self) is type(other)
            and self.seed == other.seed
            and np.array_equal(self.hashvalues, other.hashvalues)
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    @classmethod
    def union(cls, *mhs: Any) -> Self:
        """Return one with the values of all, two or more."""
        first, values = _united(mhs)
        return cls(
            seed=first.seed,
            hashfunc=first.hashfunc,
            hashvalues=values,
            permutations=first.permutations,
            gpu_mode=first._gpu_mode,
        )

    @classmethod
    def bulk(cls, b: Iterable[Iterable[Any]], **minhash_kwargs: Any) -> list[MinHash]:
        """Return one for each set of values."""
        return list(cls.generator(b, **minhash_kwargs))

    @classmethod
    def generator(cls, b: Iterable[Iterable[Any]], **minhash_kwargs: Any) -> Iterator[MinHash]:
        """Yield one for each set of values."""
        empty = cls(**minhash_kwargs)
        for values in b:
            one = empty.copy()
            one.update_batch(values)
            yield one

    def __getstate__(self) -> Any:
        return {**self.__dict__, "_a_gpu": None, "_b_gpu": None}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("_gpu_mode", "disable")  # of datasketch before it had one


def _united(several: tuple[MinHash, ...]) -> tuple[MinHash, NDArray[np.uint64]]:
    """Return the first, and the hash values of all."""
    if len(several) < 2:
        raise ArgumentError(f"a union of {len(several)}; expected 2 or more")
    for one in several:
        several[0]._check_same(one)
    return several[0], np.minimum.reduce([one.hashvalues for one in several])
