"""How datasketch's permutations are drawn and computed: three ways, which cannot be mixed.

"legacy" is that of all versions before 2, and what is taken here unless told; "affine32" is what
version 2 takes unless told, "affine64" its way for very large sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.compat.datasketch.hashfunc import sha1_hash32, sha1_hash64
from lookalike.errors import ArgumentError

__all__ = ["LEGACY", "SCHEMES", "Scheme", "check_same_scheme", "scheme_of_code"]

_PRIME = (1 << 61) - 1
_AT_A_TIME = 4096
_MIX: dict[Any, tuple[tuple[int, int], ...]] = {  # MurmurHash3's finalisers: shift, factor
    np.uint32: ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)),
    np.uint64: ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53), (33, 1)),
}


@dataclass(frozen=True)
class Scheme:
    """One way to compute hash values."""

    name: str
    code: int
    """In serialized forms; 0 if these have none."""
    dtype: Any
    greatest: int
    """The value where nothing was added."""
    hashfunc: Callable[[bytes], int]
    value_format: str
    """Of `struct`."""

    def permutations(self, seed: Any, count: int) -> NDArray[Any]:
        """Return factors and terms as NumPy's generator of that seed draws them."""
        try:
            return _drawn(self.name, seed, count)
        except TypeError:  # a seed that cannot be looked up
            return _drawn.__wrapped__(self.name, seed, count)

    def minima(self, values: NDArray[Any], hashes: list[Any], permutations: Any) -> NDArray[Any]:
        """Return the least of the values and of all hashes permuted."""
        factors, terms = (np.ascontiguousarray(part, self.dtype) for part in permutations)
        try:
            array = np.array(hashes, self.dtype)
        except OverflowError as error:
            raise ArgumentError(
                f"hashfunc returned a value that does not fit: {error}; scheme {self.name!r} takes "
                f"{8 * np.dtype(self.dtype).itemsize} bits"
            ) from error
        least = values.copy()  # who was given the array before keeps it as it was
        if self.name == LEGACY:
            _native.mersenne_minima(array, factors, terms, least)
            return least
        for shift, factor in _MIX[self.dtype]:
            array = (array ^ (array >> self.dtype(shift))) * self.dtype(factor)
        for begin in range(0, len(array), _AT_A_TIME):
            permuted = array[begin : begin + _AT_A_TIME, None] * factors + terms
            np.minimum(least, permuted.min(axis=0), out=least)
        return least


LEGACY = "legacy"
SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme(LEGACY, 0, np.uint64, 2**32 - 1, sha1_hash32, "I"),
        Scheme("affine32", 1, np.uint32, 2**32 - 1, sha1_hash32, "I"),
        Scheme("affine64", 2, np.uint64, 2**64 - 1, sha1_hash64, "Q"),
    )
}


def scheme_of_code(code: int) -> str:
    """Return the scheme that a serialized form names."""
    for name, scheme in SCHEMES.items():
        if scheme.code == code and code:
            return name
    raise ArgumentError(f"the permutation scheme has the code {code}; expected 1 or 2")


def check_same_scheme(known: str | None, minhash: Any) -> str | None:
    """Return the scheme that an index has from now on; raise if this one has another."""
    scheme: str | None = getattr(minhash, "scheme", known)
    if known is not None and scheme != known:
        raise ArgumentError(f"the MinHash has scheme {scheme!r}, those before it {known!r}")
    return scheme


@lru_cache(maxsize=64)
def _drawn(name: str, seed: Any, count: int) -> NDArray[Any]:
    random = np.random.RandomState(seed)
    if name == LEGACY:
        drawn = [
            (random.randint(1, _PRIME, dtype=np.uint64), random.randint(0, _PRIME, dtype=np.uint64))
            for _ in range(count)
        ]
        permutations = np.array(drawn, np.uint64).reshape(count, 2).T.copy()
    else:
        dtype = SCHEMES[name].dtype
        width = 8 * np.dtype(dtype).itemsize
        halves = random.randint(0, 1 << (width - 1), count, dtype=dtype)
        terms = random.randint(0, 1 << width, count, dtype=dtype)
        permutations = np.array([halves * dtype(2) + dtype(1), terms])
    permutations.flags.writeable = False  # shared by all that have this seed
    return permutations
