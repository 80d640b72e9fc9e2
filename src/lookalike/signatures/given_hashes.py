"""Hash functions for MinHash that the caller gives: of a textbook, a table worked by hand, or
another program whose values are wanted again.

They are plain values, so that whatever was signed with them says so wherever it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import whole_number
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.features import FeatureKind, Features
from lookalike.features.ready import feature_hashes
from lookalike.shown import brief, counted

__all__ = ["GivenHash", "GivenHashes"]

GivenHash = tuple[SupportsIndex, SupportsIndex, SupportsIndex] | Mapping[Any, SupportsIndex]
"""(a, c, m), or a table of values by feature."""

_MOST_FUNCTIONS = 2**20
_MOST_ENTRIES = 100_000
_MOST_VALUE = 2**32 - 2  # one more is what documents without features have

_FORMS = "(a, c, m) for the function (a*x + c) modulo m, or a table {feature: value}"


class GivenHashes:
    """Functions from features to whole numbers below 2**32 - 1, in place of random permutations.

    Each is (a, c, m), which takes a feature x, all 64 bits of it, to (a·x + c) modulo m; or a table
    that has every feature there is, as `la.Features` takes them. A feature is a number itself where
    the signer's features are `la.Features(hashed=True)`, and otherwise a hash.
    """

    def __init__(self, hashes: Iterable[GivenHash], features: FeatureKind) -> None:
        try:
            several = [] if isinstance(hashes, str | bytes | Mapping) else list(hashes)
        except TypeError:
            several = []
        if not 1 <= len(several) <= _MOST_FUNCTIONS:
            raise ArgumentError(
                Said("hashes"), f" are {brief(hashes)}; expected a list, each of them {_FORMS}"
            )
        hashed = isinstance(features, Features) and features.hashed
        self._native = _native.GivenHashes()
        self._plain = [self._add(place, one, hashed) for place, one in enumerate(several)]
        entries = sum(len(one) for one in self._plain if not _is_linear(one))
        if entries > _MOST_ENTRIES:
            raise ArgumentError(
                Said("hashes"),
                f" have tables of {entries} features in all; expected at most {_MOST_ENTRIES}: "
                "take functions (a, c, m) for so many",
            )

    def _add(self, place: int, given: Any, hashed: bool) -> list[Any]:
        """Make a function known to the core, and return it in plain values."""
        name = f"hashes[{place}]"
        if _is_linear(given):
            a, c = (whole_number(name, one, at_least=0, at_most=2**64 - 1) for one in given[:2])
            m = whole_number(f"the modulus of {name}", given[2], at_least=1, at_most=2**32 - 1)
            self._native.add_linear(a, c, m)
            return [a, c, m]
        table = _table(name, given, hashed)
        features = sorted(table)
        values = [table[feature] for feature in features]
        self._native.add_table(np.array(features, np.uint64), np.array(values, np.uint32))
        return [list(pair) for pair in zip(features, values, strict=True)]

    @classmethod
    def of(
        cls, hashes: Iterable[GivenHash] | GivenHashes | None, features: FeatureKind
    ) -> GivenHashes | None:
        """Return functions for features of that kind; None where none were given."""
        if hashes is None or isinstance(hashes, GivenHashes):
            return hashes
        return cls(hashes, features)

    def count(self, permutations: SupportsIndex, default: int, seed: int) -> int:
        """Return how many functions there are; refuse numbers that say something else."""
        number = whole_number("permutations", permutations, at_least=1, at_most=_MOST_FUNCTIONS)
        if number not in (default, len(self)):
            raise ArgumentError(
                Said("permutations"),
                f" is {number}, and there {'are' if len(self) > 1 else 'is'} "
                f"{counted(len(self), 'function')} in hashes; leave it out",
            )
        if seed != 0:
            raise ArgumentError(
                Said("seed"), f" is {seed}, and does nothing with hashes; leave it out"
            )
        return len(self)

    def __len__(self) -> int:
        return len(self._plain)

    def __repr__(self) -> str:
        shown = (
            str(tuple(one)) if _is_linear(one) else f"a table of {counted(len(one), 'feature')}"
            for one in self._plain
        )
        return f"[{', '.join(shown)}]"

    def to_dict(self) -> list[Any]:
        """Return all functions in plain values, tables as pairs of a feature's hash and its value;
        to be given again.
        """
        return deepcopy(self._plain)

    def minima(
        self, source: _native.Source, position: int, threads: int, values: NDArray[np.uint32]
    ) -> None:
        """Fill in the least values of documents, the first of which has that position."""
        document, function = self._native.minima(source, threads, values)
        if document >= 0:
            raise DocumentError(
                f"document {position + document} has a feature that the table hashes[{function}] "
                "does not have; a table has to have them all"
            )


def _is_linear(given: Any) -> bool:
    return (
        isinstance(given, list | tuple)
        and len(given) == 3
        and not any(isinstance(one, Iterable) for one in given)
    )


def _table(name: str, given: Any, hashed: bool) -> dict[int, int]:
    """Return values by the hashes of features."""
    if isinstance(given, Mapping):
        try:
            pairs = list(zip(feature_hashes(list(given), hashed), given.values(), strict=True))
        except TypeError as error:
            raise ArgumentError(Said(name), f" {error}") from None
    else:  # as `to_dict` has it
        pairs = _pairs(name, given)
    if not pairs:
        raise ArgumentError(Said(name), f" is {brief(given)}; expected {_FORMS}")
    table = {
        feature: whole_number(f"a value of {name}", value, at_least=0, at_most=_MOST_VALUE)
        for feature, value in pairs
    }
    if len(table) < len(pairs):
        raise ArgumentError(Said(name), " has a feature twice; expected each but once")
    return table


def _pairs(name: str, given: Any) -> list[tuple[int, Any]]:
    if not isinstance(given, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in given
    ):
        raise ArgumentError(Said(name), f" is {brief(given)}; expected {_FORMS}")
    return [
        (whole_number(f"a feature of {name}", feature, at_least=0, at_most=2**64 - 1), value)
        for feature, value in given
    ]
