"""The interfaces of both `simhash` packages: 1e0ng (PyPI: simhash) and seomoz (simhash-py).

Both packages are imported as `simhash`. They share no names, so this module has those of both. The
fingerprints are the same, bit for bit, so stored ones can be compared with new ones.

Answers of indexes are exact and in the order of (distance, age). Where the originals raise
`AssertionError` or `Exception`, this module raises `la.errors.ArgumentError`. A fingerprint is a
number; its bit j is bit j of a signature: `to_signatures` and `to_values` convert many at once.
"""

from __future__ import annotations

import hashlib
import logging
import numbers
import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import thread_count, whole_number
from lookalike.errors import ArgumentError
from lookalike.indexes.all_pairs import pairs_of_rows
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.indexes.slices.index import SliceIndex
from lookalike.shown import brief
from lookalike.signatures import as_signatures
from lookalike.signatures.simhash import signature_bits

__all__ = [
    "Corpus",
    "Simhash",
    "SimhashIndex",
    "compute",
    "find_all",
    "num_differing_bits",
    "shingle",
    "to_signatures",
    "to_values",
    "unsigned_hash",
]

_SLICE_BITS = 16

Key = TypeVar("Key", bound=Hashable)


def to_signatures(values: Iterable[SupportsIndex], f: SupportsIndex = 64) -> NDArray[np.uint8]:
    """Return fingerprints of `f` bits as signatures, `uint8[n, f // 8]`; more bits are cut off."""
    bits = signature_bits(f)
    mask = (1 << bits) - 1
    try:
        raw = b"".join((whole_value(each) & mask).to_bytes(bits // 8, "little") for each in values)
    except TypeError:
        raise ArgumentError(f"values are {brief(values)}; expected whole numbers") from None
    return np.frombuffer(raw, np.uint8).reshape(-1, bits // 8).copy()


def to_values(signatures: ArrayLike) -> list[int]:
    """Return signatures as the numbers that `Simhash.value` and `compute` give."""
    return [int.from_bytes(row.tobytes(), "little") for row in as_signatures(signatures)]


def whole_value(value: SupportsIndex) -> int:
    """Return a fingerprint as a plain `int`."""
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        raise ArgumentError(f"a fingerprint is {brief(value)}; expected a whole number") from None


def majority(bits: NDArray[np.number], half: float) -> int:
    """Return the number whose bits, the highest first, are those whose sum is above `half`."""
    return int.from_bytes(np.packbits(bits > half).tobytes(), "big")


class LiveValues(Generic[Key]):
    """Keys with fingerprints that come and go, and which of them are near a fingerprint; exact."""

    def __init__(self, f: SupportsIndex) -> None:
        bits = signature_bits(f)
        self._index = SliceIndex(np.empty((0, bits // 8), np.uint8), min(_SLICE_BITS, bits))
        self._numbers: dict[Key, int] = {}
        self._keys: dict[int, Key] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._numbers)

    def __contains__(self, key: Key) -> bool:
        return key in self._numbers

    def add(self, keys: Sequence[Key], values: Sequence[int]) -> None:
        """Add these; existing keys are not changed."""
        both = zip(keys, values, strict=True)
        new = {key: value for key, value in both if key not in self._numbers}
        if new:
            numbers = self._index.add(to_signatures(new.values(), self._index.bits)).tolist()
            self._numbers |= dict(zip(new, numbers, strict=True))
            self._keys |= dict(zip(numbers, new, strict=True))

    def remove(self, keys: Iterable[Key]) -> None:
        """Remove these, if they exist."""
        gone = [key for key in dict.fromkeys(keys) if key in self._numbers]
        if gone:
            numbers = [self._numbers.pop(key) for key in gone]
            self._index.remove(numbers)
            for number in numbers:
                del self._keys[number]

    def near(self, values: Sequence[int], radius: SupportsIndex) -> list[list[Key]]:
        """Return the keys within the radius of each value, by distance, then the oldest first."""
        reach = whole_number("the number of bits that may differ", radius, at_least=0)
        found = self._index.within(to_signatures(values, self._index.bits), reach)
        return [[self._keys[number] for number in ids.tolist()] for ids, _ in found]


_WORDS = r"[\w\u4e00-\u9fcc]+"
_WINDOW = 4


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


class Simhash:
    """A fingerprint of `f` bits: of a text, of features, or a number that was stored.

    A text is lower-cased; what `reg` finds in it is put together, and cut into runs of 4 letters.
    Features are strings, (string, weight) pairs or a mapping of weights. `hashfunc` (default: md5)
    gives each a hash: bytes (the last `f // 8` count) or a number (the lowest `f` bits). Bit j is
    set where features that have it weigh more than half of all. `la.SimHash(f,
    la.features.Features(hashed=True))` sets a bit also where the weights are even.
    """

    large_weight_cutoff: ClassVar[int] = 50
    """Whole weights up to here are counted, others multiplied: with fractions the order of adding,
    and so the last bit of a sum, depends on it."""
    batch_size: ClassVar[int] = 200  # how many counted features are added at a time

    def __init__(
        self,
        value: Any,
        f: int = 64,
        reg: str | re.Pattern[str] = _WORDS,
        hashfunc: Callable[[bytes], bytes | int] | None = None,
        log: logging.Logger | None = None,
    ) -> None:
        self.f = signature_bits(f)
        self.f_bytes = self.f // 8
        self.reg = reg
        self.hashfunc = _md5 if hashfunc is None else hashfunc
        self.hashfunc_returns_int = isinstance(self.hashfunc(b"test"), numbers.Integral)
        self.log = logging.getLogger("simhash") if log is None else log
        self.value: int
        if isinstance(value, Simhash):
            self.value = value.value
        elif isinstance(value, str):
            self.build_by_text(value)
        elif isinstance(value, Iterable):
            self.build_by_features(value)
        elif isinstance(value, numbers.Integral):
            self.value = int(value)
        else:
            raise ArgumentError(
                f"value is {brief(value)}; expected a text, features, a number or a Simhash"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simhash) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]  # `build_by_text` changes the value

    def __repr__(self) -> str:
        return f"Simhash({self.value:#x}, f={self.f})"

    def build_by_text(self, content: str) -> None:
        """Set the value to that of a text."""
        letters = "".join(re.findall(self.reg, content.lower()))
        last = max(len(letters) - _WINDOW, 0)
        runs = Counter(letters[start : start + _WINDOW] for start in range(last + 1))
        self.build_by_features(dict(sorted(runs.items())))

    def build_by_features(self, features: Iterable[Any]) -> None:
        """Set the value to that of strings, (string, weight) pairs, or a mapping of weights.

        A string without a weight after some with one weighs what the one before it did.
        """
        pairs = features.items() if isinstance(features, dict) else features
        hashes, weights, weight = [], [], 1
        for each in pairs:
            if isinstance(each, str):
                feature = each
            else:
                feature, weight = each
            hashes.append(self._hash(feature.encode()))
            weights.append(weight)
        self.value = majority(self._sums(hashes, weights), sum(weights) / 2) if hashes else 0

    def distance(self, another: Simhash) -> int:
        """Return the number of the lowest `f` bits in which the other differs."""
        if self.f != another.f:
            raise ArgumentError(f"the other has {another.f} bits; expected {self.f}")
        return ((self.value ^ another.value) & ((1 << self.f) - 1)).bit_count()

    def _hash(self, feature: bytes) -> bytes:
        found: Any = self.hashfunc(feature)
        if self.hashfunc_returns_int:
            mask = (1 << self.f) - 1
            return (int(found) & mask).to_bytes(self.f_bytes, "big")
        end: bytes = found[-self.f_bytes :]
        if len(end) < self.f_bytes:
            raise ArgumentError(
                f"hashfunc gave {len(end)} bytes; expected {self.f_bytes} or more, for f={self.f}"
            )
        return end

    def _sums(self, hashes: list[bytes], weights: list[Any]) -> NDArray[Any]:
        """Return the weight of each bit, added in the order of the original."""
        rows = np.frombuffer(b"".join(hashes), np.uint8).reshape(len(hashes), -1)
        bits = np.unpackbits(rows, axis=1)
        most = self.large_weight_cutoff
        alone = np.array([each > most or not isinstance(each, int) for each in weights])
        counted, single = np.flatnonzero(~alone), np.flatnonzero(alone)
        wide = bits.astype(np.int64)  # of a byte, large weights are no multiples
        parts: list[tuple[int, NDArray[Any]]] = []
        for at in single.tolist():
            row = wide[at] if isinstance(weights[at], int) else bits[at]
            parts.append((at, row * weights[at]))
        for start in range(0, len(counted), self.batch_size):
            batch = counted[start : start + self.batch_size]
            counts = np.array([max(0, weights[at]) for at in batch], np.int64)
            full = len(batch) == self.batch_size
            parts.append((int(batch[-1]) if full else len(hashes), counts @ wide[batch]))
        parts.sort(key=lambda part: part[0])
        sums: NDArray[Any] = np.sum([part for _, part in parts], axis=0)
        return sums


class SimhashIndex:
    """Objects by their fingerprints: `get_near_dups` returns those within `k` bits, all of them.

    An object is known by `str(obj_id)` together with its fingerprint.
    """

    def __init__(
        self,
        objs: Sequence[tuple[object, Simhash]],
        f: int = 64,
        k: int = 2,
        log: logging.Logger | None = None,
    ) -> None:
        self.k = whole_number("k", k, at_least=0)
        self.f = signature_bits(f)
        self.log = logging.getLogger("simhash") if log is None else log
        self._live: LiveValues[tuple[int, str]] = LiveValues(self.f)
        self.log.info("Initializing %s data.", len(objs))
        keys = [self._key(obj_id, simhash) for obj_id, simhash in objs]
        self._live.add(keys, [value for value, _ in keys])

    def get_near_dups(self, simhash: Simhash) -> list[str]:
        """Return the ids of all objects within `k` bits, nearest first, each once."""
        value, _ = self._key("", simhash)
        (found,) = self._live.near([value], self.k)
        return list(dict.fromkeys(obj_id for _, obj_id in found))

    def add(self, obj_id: object, simhash: Simhash) -> None:
        """Add an object, unless it exists with this fingerprint."""
        key = self._key(obj_id, simhash)
        self._live.add([key], [key[0]])

    def delete(self, obj_id: object, simhash: Simhash) -> None:
        """Remove an object, if it exists with this fingerprint."""
        self._live.remove([self._key(obj_id, simhash)])

    @property
    def offsets(self) -> list[int]:
        """Where the `k + 1` parts of a fingerprint begin, of which near ones share one."""
        return [self.f // (self.k + 1) * part for part in range(self.k + 1)]

    def get_keys(self, simhash: Simhash) -> Iterator[str]:
        """Yield the parts of a fingerprint, as the original names its buckets."""
        ends = [*self.offsets[1:], self.f]
        for number, (start, end) in enumerate(zip(self.offsets, ends, strict=True)):
            yield f"{simhash.value >> start & (1 << end - start) - 1:x}:{number:x}"

    @property
    def bucket(self) -> dict[str, set[str]]:
        """The buckets of the original, computed at every access; changes are lost."""
        buckets: dict[str, set[str]] = {}
        for value, obj_id in self._live:
            for key in self.get_keys(Simhash(value, self.f)):
                buckets.setdefault(key, set()).add(f"{value:x},{obj_id}")
        return buckets

    def bucket_size(self) -> int:
        """Return the number of buckets with objects; the original also counts empty ones."""
        return len(self.bucket)

    def _key(self, obj_id: object, simhash: Simhash) -> tuple[int, str]:
        if simhash.f != self.f:
            raise ArgumentError(f"the fingerprint has {simhash.f} bits; expected {self.f}")
        return simhash.value, str(obj_id)


_BITS = 64

Token = TypeVar("Token")


def unsigned_hash(obj: bytes) -> int:
    """Return the first 8 bytes of the md5 as a number."""
    return int.from_bytes(_md5(obj)[:8], "big")


def num_differing_bits(a: SupportsIndex, b: SupportsIndex) -> int:
    """Return the number of 64 bits in which two hashes differ."""
    return ((whole_value(a) ^ whole_value(b)) & (1 << _BITS) - 1).bit_count()


def compute(hashes: Iterable[SupportsIndex]) -> int:
    """Return the number whose bits are those that more than half of the hashes have."""
    rows = to_signatures(hashes)
    bits = np.unpackbits(rows[:, ::-1], axis=1).sum(axis=0, dtype=np.int64)
    return majority(bits, len(rows) / 2)


def shingle(tokens: Iterable[Token], window: int = 4) -> Iterator[list[Token]]:
    """Yield every `window` tokens that follow each other."""
    size = whole_number("window", window, at_least=1)
    last: deque[Token] = deque(maxlen=size)
    for token in tokens:
        last.append(token)
        if len(last) == size:
            yield list(last)


def find_all(
    hashes: Iterable[SupportsIndex], number_of_blocks: SupportsIndex, different_bits: SupportsIndex
) -> list[tuple[int, int]]:
    """Return all pairs of different hashes within `different_bits`, the smaller first, sorted.

    The blocks are checked and not needed: the core chooses how to find all pairs.
    """
    radius = _checked_blocks(number_of_blocks, different_bits)
    values = sorted(set(to_values(to_signatures(hashes))))
    places = np.arange(len(values))
    found = pairs_of_rows(
        to_signatures(values), places, radius, DEFAULT_LIMIT, False, thread_count(None)
    )
    ends = zip(found.left.tolist(), found.right.tolist(), strict=True)
    return [(values[left], values[right]) for left, right in ends]


class Corpus:
    """64-bit hashes, each once, and which of them are within `diff_bits` of another; exact."""

    def __init__(self, num_blocks: SupportsIndex, diff_bits: SupportsIndex) -> None:
        self.differing_bits = _checked_blocks(num_blocks, diff_bits)
        self._live: LiveValues[int] = LiveValues(_BITS)

    def insert(self, h: SupportsIndex) -> None:
        """Add a hash."""
        self.insert_bulk([h])

    def insert_bulk(self, hashes: Iterable[SupportsIndex]) -> None:
        """Add many hashes."""
        values = to_values(to_signatures(hashes))
        self._live.add(values, values)

    def remove(self, h: SupportsIndex) -> None:
        """Remove a hash, if it exists."""
        self.remove_bulk([h])

    def remove_bulk(self, hashes: Iterable[SupportsIndex]) -> None:
        """Remove many hashes, if they exist."""
        self._live.remove(to_values(to_signatures(hashes)))

    def find_all(self, query: SupportsIndex) -> list[int]:
        """Return all hashes near this one, each once, nearest first."""
        return self.find_all_bulk([query])[0]

    def find_all_bulk(self, queries: Sequence[SupportsIndex]) -> list[list[int]]:
        """Return all hashes near each query."""
        return self._live.near(to_values(to_signatures(queries)), self.differing_bits)

    def find_first(self, query: SupportsIndex) -> int:
        """Return the nearest of the hashes near this one; 0 if there is none."""
        return self.find_first_bulk([query])[0]

    def find_first_bulk(self, queries: Sequence[SupportsIndex]) -> list[int]:
        """Return the nearest hash of each query, or 0."""
        return [found[0] if found else 0 for found in self.find_all_bulk(queries)]

    def hashes(self) -> list[int]:
        """Return all hashes, in ascending order."""
        return sorted(self._live)

    def distance(self, a: SupportsIndex, b: SupportsIndex) -> int:
        """Return the number of bits in which two hashes differ."""
        return num_differing_bits(a, b)


def _checked_blocks(number_of_blocks: SupportsIndex, different_bits: SupportsIndex) -> int:
    """Return the number of bits that may differ, if the number of blocks allows it."""
    radius = whole_number("different_bits", different_bits, at_least=0, at_most=_BITS - 1)
    blocks = whole_number("number_of_blocks", number_of_blocks, at_least=1, at_most=_BITS)
    if blocks <= radius:
        raise ArgumentError(
            f"number_of_blocks is {blocks} and different_bits {radius}; expected more blocks than "
            "bits that may differ, so that one block is equal"
        )
    return radius


for _part in ("corpus", "fingerprint", "index", "values"):  # older pickles name these
    sys.modules[f"{__name__}.{_part}"] = sys.modules[__name__]
