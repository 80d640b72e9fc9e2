"""`datasketch.minhash`: a MinHash that features are added to."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import one_of
from lookalike.compat.datasketch.schemes import LEGACY, SCHEMES, check_same_scheme
from lookalike.errors import ArgumentError

__all__ = ["MinHash"]

_HASH_RANGE = 1 << 32


class MinHash:
    """The least hash of the values so far, under each of `num_perm` permutations."""

    seed: int
    hashvalues: NDArray[Any]
    scheme: str

    def __init__(
        self,
        num_perm: int = 128,
        seed: int = 1,
        gpu_mode: str = "disable",
        hashfunc: Callable[[Any], int] | None = None,
        hashobj: object = None,
        hashvalues: ArrayLike | None = None,
        permutations: Any = None,
        scheme: str | None = None,
    ) -> None:
        self.scheme = LEGACY if scheme is None else one_of("scheme", scheme, SCHEMES)
        values = None if hashvalues is None else self._parse_hashvalues(hashvalues)
        self.num_perm = num_perm if values is None else len(values)
        if self.num_perm > _HASH_RANGE:
            raise ArgumentError(f"num_perm is {num_perm}; expected at most {_HASH_RANGE}")
        if hashfunc is None:
            hashfunc = SCHEMES[self.scheme].hashfunc
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

    def _init_hashvalues(self, num_perm: int) -> NDArray[Any]:
        kind = SCHEMES[self.scheme]
        return np.full(num_perm, kind.greatest, kind.dtype)

    def _init_permutations(self, num_perm: int) -> NDArray[Any]:
        return SCHEMES[self.scheme].permutations(self.seed, num_perm)

    def _parse_hashvalues(self, hashvalues: ArrayLike) -> NDArray[Any]:
        kind = SCHEMES[self.scheme]
        if not isinstance(hashvalues, np.ndarray):
            hashvalues = np.array(hashvalues, np.uint64)  # or large ones would become floats
        if hashvalues.size and hashvalues.max() > kind.greatest:
            raise ArgumentError(
                f"a hash value is {hashvalues.max()}; scheme {self.scheme!r} has at most "
                f"{kind.greatest}"
            )
        return hashvalues.astype(kind.dtype)

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
        kind = SCHEMES[self.scheme]
        self.hashvalues = kind.minima(self.hashvalues, hashes, self.permutations)

    def jaccard(self, other: MinHash) -> float:
        """Return the estimated Jaccard similarity of the values of both."""
        self._check_same(other)
        return float(np.count_nonzero(self.hashvalues == other.hashvalues)) / float(len(self))

    def count(self) -> float:
        """Return the estimated number of distinct values."""
        return float(
            len(self) / np.sum(self.hashvalues / float(SCHEMES[self.scheme].greatest)) - 1.0
        )

    def merge(self, other: MinHash) -> None:
        """Add the values of another one."""
        self._check_same(other)
        self.hashvalues = np.minimum(other.hashvalues, self.hashvalues)

    def _check_same(self, other: MinHash) -> None:
        check_same_scheme(self.scheme, other)
        if other.seed != self.seed:
            raise ArgumentError(f"seeds {self.seed} and {other.seed} differ; expected the same one")
        if len(other) != len(self):
            raise ArgumentError(
                f"there are {len(self)} and {len(other)} permutations; expected as many"
            )

    def digest(self) -> NDArray[Any]:
        """Return a copy of the hash values."""
        return self.hashvalues.copy()

    def is_empty(self) -> bool:
        """Return whether no value was added."""
        return bool((self.hashvalues == SCHEMES[self.scheme].greatest).all())

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
            scheme=self.scheme,
        )

    def __len__(self) -> int:
        return len(self.hashvalues)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MinHash)
            and type(self) is type(other)
            and (self.seed, self.scheme) == (other.seed, other.scheme)
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
            scheme=first.scheme,
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
        self.__dict__.setdefault("_gpu_mode", "disable")  # of datasketch before it had them
        self.__dict__.setdefault("scheme", LEGACY)


def _united(several: tuple[MinHash, ...]) -> tuple[MinHash, NDArray[Any]]:
    """Return the first, and the hash values of all."""
    if len(several) < 2:
        raise ArgumentError(f"a union of {len(several)}; expected 2 or more")
    for one in several:
        several[0]._check_same(one)
    return several[0], np.minimum.reduce([one.hashvalues for one in several])
