"""`datasketch.minhash`, `lean_minhash`, `b_bit_minhash` and `hashfunc`.

Permutations are drawn and computed in one of three schemes, which cannot be mixed. "legacy" is that
of all versions before 2, and the default here. "affine32" is the default of version 2, and
"affine64" is for very large sets.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha1
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import one_of
from lookalike.errors import ArgumentError


def sha1_hash32(data: bytes) -> int:
    """Return 32 bits of the SHA-1 of some bytes."""
    return int.from_bytes(sha1(data).digest()[:4], "little")


def sha1_hash64(data: bytes) -> int:
    """Return 64 bits of the SHA-1 of some bytes."""
    return int.from_bytes(sha1(data).digest()[:8], "little")


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
    code: int  # in serialized forms; 0 if these have none
    dtype: Any
    greatest: int  # the value where nothing was added
    hashfunc: Callable[[bytes], int]
    value_format: str  # of `struct`

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
        least = values.copy()  # callers that have the array keep it unchanged
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
        return MinHash(**self._like(self.hashvalues))

    def _like(self, values: NDArray[Any]) -> dict[str, Any]:
        """Return the arguments of one with other values."""
        names = ("seed", "hashfunc", "permutations", "scheme")
        given = {name: getattr(self, name) for name in names}
        return {**given, "hashvalues": values, "gpu_mode": self._gpu_mode}

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
        return cls(**first._like(values))

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


class LeanMinHash(MinHash):
    """Hash values and their seed, without what adding to them takes.

    Serialized it is the seed in 8 bytes, the number of values in 4, and 4 for each value. Of
    another scheme than "legacy" the number is negative, and a byte with the scheme follows it.
    """

    __slots__ = ("hashvalues", "scheme", "seed")

    def __init__(
        self,
        minhash: MinHash | None = None,
        seed: int | None = None,
        hashvalues: ArrayLike | None = None,
        scheme: str | None = None,
    ) -> None:
        if minhash is not None:
            seed, hashvalues, scheme = minhash.seed, minhash.hashvalues, minhash.scheme
        if seed is None or hashvalues is None:
            raise ArgumentError("a LeanMinHash is made of a minhash, or of seed and hashvalues")
        self._initialize_slots(seed, hashvalues, LEGACY if scheme is None else scheme)

    def _initialize_slots(self, seed: int, hashvalues: ArrayLike, scheme: str) -> None:
        self.seed = seed
        self.scheme = one_of("scheme", scheme, SCHEMES)
        self.hashvalues = self._parse_hashvalues(hashvalues)

    def update(self, b: Any) -> None:
        """Raise: it is as it is."""
        raise TypeError("a LeanMinHash takes no more values; make a MinHash of it, with its seed")

    def update_batch(self, b: Any) -> None:
        """Raise, as `update` does."""
        self.update(b)

    def copy(self) -> LeanMinHash:
        """Return another one with the same values."""
        return LeanMinHash(self)

    def bytesize(self, byteorder: str = "@") -> int:
        """Return how many bytes `serialize` writes."""
        return struct.calcsize(self._format(byteorder))

    def serialize(self, buf: Any, byteorder: str = "@") -> None:
        """Write to a buffer, in one of the byte orders of `struct`."""
        if len(buf) < self.bytesize(byteorder):
            raise ArgumentError(
                f"the buffer has {len(buf)} bytes; expected {self.bytesize(byteorder)} or more"
            )
        code = SCHEMES[self.scheme].code
        head = (-len(self), code) if code else (len(self),)
        values = self.hashvalues.tolist()
        struct.pack_into(self._format(byteorder), buf, 0, self.seed, *head, *values)

    def _format(self, byteorder: str) -> str:
        kind = SCHEMES[self.scheme]
        return f"{byteorder}qi{'B' if kind.code else ''}{len(self)}{kind.value_format}"

    @classmethod
    def deserialize(cls, buf: Any, byteorder: str = "@") -> LeanMinHash:
        """Return what `serialize` wrote."""
        one = cls.__new__(cls)
        one._initialize_slots(*_read(buf, byteorder))
        return one

    def __getstate__(self) -> bytearray:
        buffer = bytearray(self.bytesize())
        self.serialize(buffer)
        return buffer

    def __setstate__(self, state: Any) -> None:
        self._initialize_slots(*_read(state, "@"))

    def __hash__(self) -> int:  # type: ignore[override]  # it does not change
        return hash((self.scheme, self.seed, tuple(self.hashvalues)))

    @classmethod
    def union(cls, *lmhs: Any) -> Any:
        """Return one with the values of all, two or more."""
        first, values = _united(lmhs)
        return cls(seed=first.seed, hashvalues=values, scheme=first.scheme)


def _read(buffer: Any, byteorder: str) -> tuple[int, NDArray[np.uint64], str]:
    """Return seed, values and scheme."""
    seed, count = struct.unpack_from(f"{byteorder}qi", buffer, 0)
    scheme, code = LEGACY, ""
    if count < 0:
        at = struct.calcsize(f"{byteorder}qi")
        scheme, code = scheme_of_code(struct.unpack_from("B", buffer, at)[0]), "B"
    letter = SCHEMES[scheme].value_format
    begin = struct.calcsize(f"{byteorder}qi{code}0{letter}")
    values = struct.unpack_from(f"{byteorder}{abs(count)}{letter}", buffer, begin)
    return seed, np.array(values, np.uint64), scheme


_HEAD = struct.Struct("<qBdi")  # seed, b, r, how many values; then words with the values


class bBitMinHash:  # noqa: N801  # its name
    """The lowest `b` bits of a MinHash's values; `r` is the share of all things that are in it."""

    __slots__ = ("b", "hashvalues", "r", "scheme", "seed")

    def __init__(self, minhash: MinHash, b: int = 1, r: float = 0.0) -> None:
        self.b, self.r = int(b), float(r)
        if not 0 <= self.b <= 32:
            raise ArgumentError(f"b is {b}; expected a whole number from 0 to 32")
        if self.r > 1:
            raise ArgumentError(f"r is {r}; expected a share from 0 to 1")
        mask = np.uint64((1 << self.b) - 1)
        self.hashvalues = (minhash.hashvalues.astype(np.uint64) & mask).astype(np.uint32)
        self.seed = minhash.seed
        self.scheme = minhash.scheme

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, bBitMinHash)
            and (self.seed, self.scheme) == (other.seed, other.scheme)
            and (self.b, self.r) == (other.b, other.r)
            and np.array_equal(self.hashvalues, other.hashvalues)
        )

    __hash__ = None  # type: ignore[assignment]  # like theirs

    def jaccard(self, other: bBitMinHash) -> float:
        """Return the estimated Jaccard similarity, corrected for bits that agree by chance."""
        if (self.b, self.seed) != (other.b, other.seed):
            raise ArgumentError(
                f"b={self.b}, seed={self.seed} and b={other.b}, seed={other.seed} differ; expected "
                "the same"
            )
        check_same_scheme(self.scheme, other)
        equal = np.count_nonzero(self.hashvalues == other.hashvalues) / self.hashvalues.size
        first, second = self._chance(), other._chance()
        if self.r == other.r == 0:
            return float((equal - first) / (1 - second))
        both = self.r + other.r
        c1 = (first * other.r + second * self.r) / both
        c2 = (first * self.r + second * other.r) / both
        return float((equal - c1) / (1 - c2))

    def _chance(self) -> float:
        """Return what Li and König call A, as datasketch computes it."""
        if self.r == 0:
            return 1.0 / (1 << self.b)
        return float(self.r * (1 - self.r) ** (2**self.b - 1) / (1 - (1 - self.r) ** (2 * self.b)))

    def bytesize(self) -> int:
        """Return how many bytes it takes pickled."""
        code = 1 if SCHEMES[self.scheme].code else 0
        return _HEAD.size + code + 8 * -(-self.hashvalues.size // len(self._shifts()))

    def __getstate__(self) -> bytearray:
        shifts = self._shifts()
        padded = np.zeros(-(-self.hashvalues.size // len(shifts)) * len(shifts), np.uint64)
        padded[: self.hashvalues.size] = self.hashvalues
        words = np.bitwise_or.reduce(padded.reshape(-1, len(shifts)) << shifts, axis=1)
        code, count = SCHEMES[self.scheme].code, self.hashvalues.size
        head = _HEAD.pack(self.seed, self.b, self.r, -count if code else count)
        head += bytes([code] if code else [])
        return bytearray(head + words.astype("<u8").tobytes())

    def __setstate__(self, state: Any) -> None:
        self.seed, self.b, self.r, count = _HEAD.unpack_from(state, 0)
        begin = _HEAD.size
        self.scheme = LEGACY
        if count < 0:  # a byte with the scheme follows
            self.scheme, count, begin = scheme_of_code(state[begin]), -count, begin + 1
        shifts = self._shifts()
        words = np.frombuffer(state, "<u8", -(-count // len(shifts)), begin).astype(np.uint64)
        values = words[:, None] >> shifts & np.uint64((1 << 64 // len(shifts)) - 1)
        self.hashvalues = values.ravel()[:count].astype(np.uint32)

    def _shifts(self) -> NDArray[np.uint64]:
        """Return where values are in a word when pickled: the first in its highest bits."""
        for slot in (1, 2, 4, 8, 16, 32):
            if 1 <= self.b <= slot:
                return np.arange(64 - slot, -1, -slot, dtype=np.uint64)
        raise ArgumentError(f"b is {self.b}; expected a whole number from 1 to 32 to be pickled")
