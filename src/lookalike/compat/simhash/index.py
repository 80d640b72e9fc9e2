"""`SimhashIndex`, as 1e0ng's package has it, over live slice lists."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from lookalike.checks import whole_number
from lookalike.compat.simhash.fingerprint import Simhash
from lookalike.compat.simhash.values import LiveValues
from lookalike.errors import ArgumentError
from lookalike.signatures.simhash import signature_bits

__all__ = ["SimhashIndex"]


class SimhashIndex:
    """Objects by their fingerprints: `get_near_dups` returns those within `k` bits, all of them.

    An object is known by its id, as `str(obj_id)`, together with its fingerprint: one that changed
    is deleted with the old fingerprint and added with the new.
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
        """Take in an object; one that is there with this fingerprint stays."""
        key = self._key(obj_id, simhash)
        self._live.add([key], [key[0]])

    def delete(self, obj_id: object, simhash: Simhash) -> None:
        """Take out an object, if it is there with this fingerprint."""
        self._live.remove([self._key(obj_id, simhash)])

    @property
    def offsets(self) -> list[int]:
        """Where the `k + 1` parts of a fingerprint begin, of which near ones share one."""
        return [self.f // (self.k + 1) * part for part in range(self.k + 1)]

    def get_keys(self, simhash: Simhash) -> Iterator[str]:
        """Yield the parts of a fingerprint, as theirs names its buckets."""
        ends = [*self.offsets[1:], self.f]
        for number, (start, end) in enumerate(zip(self.offsets, ends, strict=True)):
            yield f"{simhash.value >> start & (1 << end - start) - 1:x}:{number:x}"

    @property
    def bucket(self) -> dict[str, set[str]]:
        """What theirs keeps its objects in, put together anew at every look; changes are lost."""
        buckets: dict[str, set[str]] = {}
        for value, obj_id in self._live:
            for key in self.get_keys(Simhash(value, self.f)):
                buckets.setdefault(key, set()).add(f"{value:x},{obj_id}")
        return buckets

    def bucket_size(self) -> int:
        """Return how many buckets have objects; theirs counts emptied and looked up ones, too."""
        return len(self.bucket)

    def _key(self, obj_id: object, simhash: Simhash) -> tuple[int, str]:
        if simhash.f != self.f:
            raise ArgumentError(f"the fingerprint has {simhash.f} bits; expected {self.f}")
        return simhash.value, str(obj_id)
