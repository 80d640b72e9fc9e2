"""MinHash (Broder), b-bit MinHash (Li and König) and weighted MinHash (Ioffe)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import cached_property, lru_cache
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import as_array, real_array, thread_count, whole_number
from lookalike.errors import ArgumentError, DocumentError, Said, SignatureError
from lookalike.features import FeatureKind, Features, Weights, Words
from lookalike.features.base import GrowingArray, none_below_zero
from lookalike.features.ready import feature_hashes
from lookalike.features.weights import LEARNED
from lookalike.lazy import LazyModule
from lookalike.shown import brief, counted
from lookalike.signatures.arrays import as_signatures
from lookalike.signatures.random import random_words
from lookalike.signatures.signer import DedupDefaults, DocumentSigner, WeightedSigner

VALUE_BYTES = 2  # bytes of a value in `dedup`
EMPTY = np.uint32(2**32 - 1)  # each value of a document without features
_PERMUTATIONS, _PACKED_PERMUTATIONS = 128, 512
_MOST_PERMUTATIONS = 2**20
_MOST_ENTRIES = 100_000
_UNPACKED = 1 << 24  # bits that are unpacked at a time, a byte each
_MOST_VALUE = 2**32 - 2
_FORMS = "(a, c, m) for the function (a*x + c) modulo m, or a table {feature: value}"
GivenHash = tuple[SupportsIndex, SupportsIndex, SupportsIndex] | Mapping[Any, SupportsIndex]
"""(a, c, m), or a table of values by feature."""
_sparse = LazyModule("scipy.sparse", "vectors for linear models", extra="learn")


class SignedRows(np.ndarray[tuple[int, ...], np.dtype[np.uint32]]):
    """An array that knows the settings of its signer; results of computations are plain arrays."""

    mark: str | None = None

    def __array_finalize__(self, other: object) -> None:
        self.mark = getattr(other, "mark", None)

    def __array_wrap__(
        self, array: NDArray[Any], context: Any = None, return_scalar: bool = False
    ) -> Any:
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __reduce__(self) -> Any:
        return marked, (np.asarray(self), self.mark)


def marked(values: NDArray[np.uint32], mark: str | None) -> NDArray[np.uint32]:
    """Return the same values with a mark."""
    rows = values.view(SignedRows)
    rows.mark = mark
    return rows


def mark_of(values: object) -> str | None:
    """Return the mark of rows; None if they have none."""
    return values.mark if isinstance(values, SignedRows) else None


def same_mark(first: str | None, second: str | None) -> None:
    """Raise if both are known and differ."""
    if first is None or second is None or first == second:
        return
    one, other = json.loads(first), json.loads(second)
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    differing = [
        ", ".join(f"{name}={brief(side.get(name))}" for name in names) for side in (one, other)
    ]
    raise SignatureError(
        f"rows signed with {differing[1]} cannot be compared with rows signed with {differing[0]}: "
        "their values mean nothing to each other; sign both with the same signer"
    )


class ValueSigner(DocumentSigner):
    """A signer whose rows are values; the share of equal ones estimates the similarity."""

    permutations: int

    @property
    def bits(self) -> int:  # type: ignore[override]
        """Bits of a row of values."""
        return 32 * self.permutations

    @property
    def mark(self) -> str:
        """The mark of its rows: its description as text, with a checksum of what it has learned."""
        description = self.to_dict()
        weights = description.get("weights")
        if isinstance(weights, dict) and not ("common" in weights or weights["kind"] in LEARNED):
            description["weights"] = {**weights, "vocabulary": None}  # not used
        elif isinstance(weights, dict) and weights.get("vocabulary") is not None:
            learned = json.dumps(weights["vocabulary"], sort_keys=True).encode()
            checksum = _native.xxh64(np.frombuffer(learned, np.uint8))
            description["weights"] = {**weights, "vocabulary": f"{checksum:016x}"}
        return json.dumps(description, sort_keys=True)

    def similarity(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """Return the estimated similarity of each row of `a` with the same row of `b`.

        A single row on either side is compared with all of the other. The similarity of a document
        without features is 0. Raises if another signer made the rows.
        """
        left, right = self._paired(a, b)
        shares: NDArray[np.float64] = ((left == right) & (left != EMPTY)).mean(axis=1)
        return shares

    def standard_error(self, similarity: ArrayLike) -> NDArray[np.float64]:
        """Return the standard error of an estimate where the truth is `similarity`."""
        truth = real_array("similarity", similarity, at_least=0, at_most=1)
        return np.sqrt(truth * (1 - truth) / self.permutations)

    def _paired(self, a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        left, right = self._values(a, "the first values"), self._values(b, "the second values")
        check_paired(left, right)
        return left, right

    def _values(self, array: ArrayLike, name: str) -> NDArray[np.uint32]:
        values = as_array(name, array)
        if values.ndim == 1:
            values = values[None]
        if values.dtype != np.uint32 or values.ndim != 2 or values.shape[1] != self.permutations:
            raise SignatureError(
                f"{name} are {values.dtype} of shape {values.shape}; "
                f"expected uint32 with {self.permutations} columns, as sign() gives"
            )
        same_mark(self.mark, mark_of(array))
        return values


def check_paired(left: NDArray[Any], right: NDArray[Any], what: str = "rows") -> None:
    """Raise unless there are as many of one as of the other, or one of either."""
    if len(left) != len(right) and 1 not in (len(left), len(right)):
        raise SignatureError(
            f"there are {len(left)} first {what} and {len(right)} second ones; "
            "pairing them needs equal numbers"
        )


class GivenHashes:
    """Functions from features to whole numbers below 2**32 - 1, in place of random permutations.

    Each is (a, c, m), which maps a feature x (64 bits) to (a·x + c) modulo m, or a table of all
    features. A feature is a hash, or the number itself for `la.features.Features(hashed=True)`.
    """

    def __init__(self, hashes: Iterable[GivenHash], features: FeatureKind) -> None:
        try:
            several = [] if isinstance(hashes, str | bytes | Mapping) else list(hashes)
        except TypeError:
            several = []
        if not 1 <= len(several) <= _MOST_PERMUTATIONS:
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
                "use functions (a, c, m) instead",
            )

    def _add(self, place: int, given: Any, hashed: bool) -> list[Any]:
        """Pass a function to the core, and return it in plain values."""
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
        cls,
        hashes: Iterable[GivenHash] | GivenHashes | None,
        signer: DocumentSigner,
        permutations: SupportsIndex,
        default: int,
    ) -> tuple[GivenHashes | None, int]:
        """Return the functions of a signer, or None, and the number of permutations."""
        number = whole_number("permutations", permutations, at_least=1, at_most=_MOST_PERMUTATIONS)
        if hashes is None:
            return None, number
        given = hashes if isinstance(hashes, GivenHashes) else cls(hashes, signer.features)
        if number not in (default, len(given)):
            raise ArgumentError(
                Said("permutations"),
                f" is {number}, and there {'are' if len(given) > 1 else 'is'} "
                f"{counted(len(given), 'function')} in hashes; leave it out",
            )
        if signer.seed != 0:
            raise ArgumentError(
                Said("seed"), f" is {signer.seed}, and does nothing with hashes; leave it out"
            )
        return given, len(given)

    def __len__(self) -> int:
        return len(self._plain)

    def __repr__(self) -> str:
        shown = (
            str(tuple(one)) if _is_linear(one) else f"a table of {counted(len(one), 'feature')}"
            for one in self._plain
        )
        return f"[{', '.join(shown)}]"

    def to_dict(self) -> list[Any]:
        """Return all functions in plain values; tables are pairs of a feature's hash and value."""
        return deepcopy(self._plain)

    def minima(
        self, source: _native.Source, position: int, threads: int, values: NDArray[np.uint32]
    ) -> None:
        """Fill in the least values of documents, the first of which has this position."""
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
    """Return values by the hashes of features, from a mapping or as `to_dict` has them."""
    pairs: list[tuple[int, Any]] = []
    if isinstance(given, Mapping):
        try:
            pairs = list(zip(feature_hashes(list(given), hashed), given.values(), strict=True))
        except TypeError as error:
            raise ArgumentError(Said(name), f" {error}") from None
    elif isinstance(given, list) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in given
    ):
        pairs = [
            (whole_number(f"a feature of {name}", feature, at_least=0, at_most=2**64 - 1), value)
            for feature, value in given
        ]
    if not pairs:
        raise ArgumentError(Said(name), f" is {brief(given)}; expected {_FORMS}")
    table = {
        feature: whole_number(f"a value of {name}", value, at_least=0, at_most=_MOST_VALUE)
        for feature, value in pairs
    }
    if len(table) < len(pairs):
        raise ArgumentError(Said(name), " has a feature twice; expected each but once")
    return table


@lru_cache(maxsize=4)  # a job makes its signer more than once
def _permutations(seed: int, count: int) -> tuple[list[int], list[int]]:
    """Return the factors and terms of random permutations of 32-bit numbers."""
    words = random_words(seed, count)
    factors = (words.astype(np.uint32) | np.uint32(1)).tolist()
    return factors, (words >> np.uint64(32)).astype(np.uint32).tolist()


class MinHash(ValueSigner):
    """Signatures of texts for Jaccard similarity: the least value under each random permutation.

    Two documents have equal values with probability J, their Jaccard similarity. The share of equal
    values estimates J without bias, with standard error sqrt(J·(1 - J) / permutations). A document
    without features has 2**32 - 1 everywhere.

    Args:
        permutations: Number of values (default: 128).
        features: Features of a document (default: `la.Words(ngram=5)`).
        seed: Random seed (default: 0).
        hashes: Functions in place of random permutations: (a, c, m) for (a·x + c) modulo m of a
            feature x, or tables {feature: value} of all features.

    Examples:
        >>> signer = la.MinHash(permutations=256, features=la.Words())
        >>> rows = signer.sign(["a b c d", "a b c e"])
        >>> rows.shape
        (2, 256)
        >>> bool(abs(signer.similarity(rows[0], rows[1])[0] - 0.6) < 0.15)
        True
    """

    measure = "jaccard"
    dedup_defaults = DedupDefaults(ngram=5, by_bands=True)
    _added_later: ClassVar[dict[str, Any]] = {"hashes": None}

    def __init__(
        self,
        permutations: SupportsIndex = _PERMUTATIONS,
        features: FeatureKind | None = None,
        seed: SupportsIndex = 0,
        *,
        hashes: Iterable[GivenHash] | GivenHashes | None = None,
    ) -> None:
        super().__init__(Words(ngram=5) if features is None else features, seed)
        self.hashes, self.permutations = GivenHashes.of(hashes, self, permutations, _PERMUTATIONS)
        self._factors, self._terms = _permutations(self.seed, self.permutations)

    @classmethod
    def _for_dedup(
        cls, features: FeatureKind, *, bits: int, permutations: int, seed: SupportsIndex
    ) -> DocumentSigner:
        return BBitMinHash(permutations, 8 * VALUE_BYTES, features, seed)

    @cached_property
    def mark(self) -> str:
        """The mark of its rows, which cannot change."""
        return super().mark

    def sign(self, documents: Any, *, threads: SupportsIndex | None = None) -> NDArray[np.uint32]:
        """Return the values, `uint32[n, permutations]`, which know the settings of their signer."""
        threads = thread_count(threads)
        values = GrowingArray((self.permutations,), np.uint32, documents)
        position = 0
        for source in none_below_zero(self.features.sources(documents)):
            block = values.block(len(source))
            if self.hashes is None:
                _native.minhash(source, self._factors, self._terms, threads, block)
            else:
                self.hashes.minima(source, position, threads, block)
            position += len(source)
        return marked(values.take(), self.mark)

    def union(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.uint32]:
        """Return the rows that documents with the features of both sides would have.

        A single row on either side is united with all of the other.
        """
        return marked(np.minimum(*self._paired(a, b)), self.mark)

    def update(
        self, values: ArrayLike, documents: Any, *, threads: SupportsIndex | None = None
    ) -> NDArray[np.uint32]:
        """Return rows with the features of `documents` added, a document to a row.

        No n-gram spans what was signed before and what is added.
        """
        return self.union(values, self.sign(documents, threads=threads))

    def count(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the estimated number n of distinct features of each row.

        Where u is the least of n uniform values, -ln(1 - u) is exponential with the rate n. The
        estimate is without bias; its standard error is n / sqrt(permutations - 2).
        """
        if self.hashes is not None:
            raise ArgumentError(
                "values of given hashes say nothing of how many features there are; count() needs "
                "random permutations, or ask feature_counts(documents)"
            )
        rows = self._values(values, "the values")
        shares = (rows.astype(np.float64) + 0.5) * 2.0**-32
        rates = -np.log1p(-shares).sum(axis=1)
        counts: NDArray[np.float64] = max(1, self.permutations - 1) / rates
        counts[(rows == EMPTY).all(axis=1)] = 0.0
        return counts


class BBitMinHash(DocumentSigner):
    """The lowest b bits of each MinHash value, packed: small signatures for any index.

    Unequal values agree in b bits with probability C = 2**-b, so a share P = C + (1 - C)·J of
    values agrees. `similarity` returns J = (P - C) / (1 - C). Its standard error is sqrt(P·(1 - P)
    / permutations) / (1 - C).

    Args:
        permutations: Number of values (default: 512).
        b: Bits per value, 1 to 16 (default: 1).
        features: Features of a document (default: `la.Words(ngram=5)`).
        seed: Random seed (default: 0).
        hashes: Functions in place of random permutations; see `MinHash`.

    Examples:
        >>> la.BBitMinHash(permutations=512, b=1).sign(["some text"]).shape
        (1, 64)
    """

    measure = "jaccard"
    usual_bits = _PACKED_PERMUTATIONS
    _added_later: ClassVar[dict[str, Any]] = {"hashes": None}

    def __init__(
        self,
        permutations: SupportsIndex = _PACKED_PERMUTATIONS,
        b: SupportsIndex = 1,
        features: FeatureKind | None = None,
        seed: SupportsIndex = 0,
        *,
        hashes: Iterable[GivenHash] | GivenHashes | None = None,
    ) -> None:
        super().__init__(Words(ngram=5) if features is None else features, seed)
        self.hashes, self.permutations = GivenHashes.of(
            hashes, self, permutations, _PACKED_PERMUTATIONS
        )
        self.b = whole_number("b", b, at_least=1, at_most=16)
        self._factors, self._terms = _permutations(self.seed, self.permutations)
        if self.bits % 8:
            raise ArgumentError(
                Said("permutations"),
                f" is {self.permutations}, of {counted(self.b, 'bit')} each: {self.bits} bits; "
                "expected a multiple of 8",
            )

    @property
    def bits(self) -> int:  # type: ignore[override]
        """Bits of a signature."""
        return self.permutations * self.b

    @cached_property
    def _minhash(self) -> MinHash:
        """The signer of whole values."""
        return MinHash(self.permutations, self.features, self.seed, hashes=self.hashes)

    def sign(self, documents: Any, *, threads: SupportsIndex | None = None) -> NDArray[np.uint8]:
        """Return the packed signatures, `uint8[n, bits // 8]`."""
        if self.hashes is not None:
            return self.pack(self._minhash.sign(documents, threads=threads))
        width, threads = self.bits // 8, thread_count(threads)
        signatures = GrowingArray((width,), np.uint8, documents)
        for source in none_below_zero(self.features.sources(documents)):
            block = signatures.block(len(source))
            _native.packed_minhash(source, self._factors, self._terms, self.b, threads, block)
        return signatures.take()

    def _estimate(self, distances: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
        return 1 - 2 * distances / bits  # unequal values differ in half of their bits on average

    def _expected_distance(self, similarity: float, bits: int) -> tuple[float, float]:
        differing = self.permutations * (1 - similarity)
        variance = differing * similarity * (self.b / 2) ** 2 + differing * self.b / 4
        return differing * self.b / 2, variance

    def pack(self, values: ArrayLike) -> NDArray[np.uint8]:
        """Return the signatures of MinHash values with the same permutations, features and seed."""
        minima = np.ascontiguousarray(self._minhash._values(values, "the values"))
        signatures = np.empty((len(minima), self.bits // 8), np.uint8)
        _native.pack_minima(minima, self.b, self.hashes is None, 1, signatures)
        return signatures

    def to_csr(self, signatures: ArrayLike) -> Any:
        """Return signatures as sparse 0/1 vectors, which linear models can learn from.

        Value v of permutation i becomes a 1 in column i·2**b + v, so the product of two vectors is
        the number of their values that agree, and an estimate of the Jaccard similarity follows
        from it. Needs the extra `learn`.

        Args:
            signatures: Signatures of this signer, `uint8[n, bits // 8]`, or a single one.

        Returns:
            A `scipy.sparse.csr_array` of float32, `[n, permutations · 2**b]`, with one 1 for each
            permutation in every row. It takes 8 bytes for each of them.

        Examples:
            >>> signer = la.BBitMinHash(permutations=64, b=2)
            >>> vectors = signer.to_csr(signer.sign(["some text", "some other text"]))
            >>> vectors.shape, vectors.nnz
            ((2, 256), 128)
        """
        rows = self._rows(signatures, "the signatures")
        columns = self.permutations << self.b
        wide = max(columns, len(rows) * self.permutations) > np.iinfo(np.int32).max
        number = np.int64 if wide else np.int32
        indices = np.empty((len(rows), self.permutations), number)
        first: NDArray[Any] = np.arange(0, columns, 1 << self.b, dtype=number)
        at_once = max(1, _UNPACKED // self.bits)
        for begin in range(0, len(rows), at_once):
            part = np.unpackbits(rows[begin : begin + at_once], axis=1, bitorder="little")
            powers = np.left_shift(1, np.arange(self.b), dtype=number)
            values = part.reshape(len(part), self.permutations, self.b) @ powers
            indices[begin : begin + at_once] = first + values
        ends = np.arange(len(rows) + 1, dtype=number) * self.permutations
        ones = np.ones(indices.size, np.float32)
        return _sparse.csr_array((ones, indices.reshape(-1), ends), shape=(len(rows), columns))

    def similarity(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """Return the estimated Jaccard similarity of each row of `a` with the same row of `b`.

        A single row on either side is compared with all of the other. The correction for chance
        can make estimates negative. Two documents without features (see `feature_counts`) have 1.
        """
        left, right = self._rows(a, "the first signatures"), self._rows(b, "the second signatures")
        check_paired(left, right, "signatures")
        left, right = (np.ascontiguousarray(side) for side in np.broadcast_arrays(left, right))
        equal = np.empty(len(left), np.int32)
        _native.equal_values(left, right, self.permutations, self.b, equal)
        chance = 2.0**-self.b
        return (equal / self.permutations - chance) / (1 - chance)

    def standard_error(self, similarity: ArrayLike) -> NDArray[np.float64]:
        """Return the standard error of an estimate where the truth is `similarity`."""
        chance = 2.0**-self.b
        truth = real_array("similarity", similarity, at_least=0, at_most=1)
        agreeing = chance + (1 - chance) * truth
        return np.sqrt(agreeing * (1 - agreeing) / self.permutations) / (1 - chance)

    def _rows(self, array: ArrayLike, name: str) -> NDArray[np.uint8]:
        rows = as_signatures(array, name, single=True)
        if 8 * rows.shape[1] != self.bits:
            raise SignatureError(
                f"{name} have {8 * rows.shape[1]} bits, this signer gives {self.bits}"
            )
        return rows


class WeightedMinHash(ValueSigner, WeightedSigner):
    """Signatures of texts for weighted Jaccard similarity (Ioffe's ICWS).

    A value is a hash of a feature, drawn with a probability that grows with its weight. The share
    of equal values estimates the weighted Jaccard similarity J, with standard error sqrt(J·(1 - J)
    / permutations). A document without features has 2**32 - 1 everywhere. Takes about 40 ns per
    feature and permutation, many times more than `MinHash`.

    Args:
        permutations: Number of values (default: 128).
        features: Features of a document (default: `la.Words()`).
        weights: Kind of weights, as for `SimHash` (default: "count").
        seed: Random seed (default: 0).

    Examples:
        >>> la.WeightedMinHash(permutations=64).sign(["some text"]).shape
        (1, 64)
    """

    measure = "weighted_jaccard"

    def __init__(
        self,
        permutations: SupportsIndex = _PERMUTATIONS,
        features: FeatureKind | None = None,
        weights: str | Weights = "count",
        seed: SupportsIndex = 0,
    ) -> None:
        super().__init__(Words() if features is None else features, weights, seed)
        self.permutations = whole_number(
            "permutations", permutations, at_least=1, at_most=_MOST_PERMUTATIONS
        )

    def sign(self, documents: Any, *, threads: SupportsIndex | None = None) -> NDArray[np.uint32]:
        """Return the values, `uint32[n, permutations]`, which know the settings of their signer."""
        kind, vocabulary = self.weights.native()
        values = GrowingArray((self.permutations,), np.uint32, documents)
        for source in none_below_zero(self.features.sources(documents)):
            block = values.block(len(source))
            _native.weighted_minhash(
                source, kind, vocabulary, self.seed, thread_count(threads), block
            )
        return marked(values.take(), self.mark)
