"""`Simhash`, as 1e0ng's package has it: the same value for the same features, bit for bit."""

from __future__ import annotations

import hashlib
import logging
import numbers
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookalike.compat.simhash.values import majority
from lookalike.errors import ArgumentError
from lookalike.shown import brief
from lookalike.signatures.simhash import signature_bits

__all__ = ["Simhash"]

_WORDS = r"[\w\u4e00-\u9fcc]+"
_WINDOW = 4


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


class Simhash:
    """A fingerprint of `f` bits: of a text, of features, or a number that was stored.

    A text is lower-cased; what `reg` finds in it is put together, and cut into runs of 4 letters.
    Features are strings, (string, weight) pairs or a mapping of weights; `hashfunc` gives each of
    them a hash, bytes (the last `f // 8` count) or a number (the lowest `f` bits), md5 unless told.
    Bit j is set where features that have it weigh more than half of all.

    `la.SimHash(f, la.Features(hashed=True))` sets a bit also where the weights are even. Of the
    complement of every hash it therefore gives the complement of `value`, exactly.
    """

    large_weight_cutoff: ClassVar[int] = 50
    """Whole weights up to here are counted, others multiplied: with fractions the order of adding,
    and so the last bit of a sum, depends on it."""
    batch_size: ClassVar[int] = 200
    """How many counted features are added at a time."""

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
        """Take the value of a text."""
        letters = "".join(re.findall(self.reg, content.lower()))
        last = max(len(letters) - _WINDOW, 0)
        runs = Counter(letters[start : start + _WINDOW] for start in range(last + 1))
        self.build_by_features(dict(sorted(runs.items())))

    def build_by_features(self, features: Iterable[Any]) -> None:
        """Take the value of strings, of (string, weight) pairs, or of a mapping of weights.

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
        """Return in how many of the lowest `f` bits the other differs."""
        self._same_width(another)
        return ((self.value ^ another.value) & ((1 << self.f) - 1)).bit_count()

    def _same_width(self, another: Simhash) -> None:
        if self.f != another.f:
            raise ArgumentError(f"the other has {another.f} bits; expected {self.f}")

    def _hash(self, feature: bytes) -> bytes:
        found: Any = self.hashfunc(feature)
        if self.hashfunc_returns_int:
            mask = (1 << self.f) - 1
            whole: bytes = (int(found) & mask).to_bytes(self.f_bytes, "big")
            return whole
        end: bytes = found[-self.f_bytes :]
        if len(end) < self.f_bytes:
            raise ArgumentError(
                f"hashfunc gave {len(end)} bytes; expected {self.f_bytes} or more, for f={self.f}"
            )
        return end

    def _sums(self, hashes: list[bytes], weights: list[Any]) -> NDArray[Any]:
        """Return how much weighs what has each bit, added in the order that theirs adds in."""
        rows = np.frombuffer(b"".join(hashes), np.uint8).reshape(len(hashes), -1)
        bits = np.unpackbits(rows, axis=1)
        alone = np.array(
            [each > self.large_weight_cutoff or not isinstance(each, int) for each in weights]
        )
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
