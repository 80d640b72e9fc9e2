"""`datasketch.lean_minhash`: a MinHash that takes no more values, and little room."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import one_of
from lookalike.compat.datasketch.minhash import MinHash, _united
from lookalike.compat.datasketch.schemes import LEGACY, SCHEMES, scheme_of_code
from lookalike.errors import ArgumentError

__all__ = ["LeanMinHash"]


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
