"""FlipIndex: most matches within a small radius, fast and in little memory.

Probabilistic simhash matching (Sood and Loguinov, 2011): signatures are sorted once by their upper
bits, the header. Bits with small weights are likely to differ between near-duplicates, so headers
are tried in the order of their probability.
"""

from __future__ import annotations

import threading
import warnings
from contextlib import suppress
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import flag, share, thread_count, whole_number
from lookalike.errors import (
    ArgumentError,
    CorruptIndexError,
    LookalikeWarning,
    ResultTooLargeError,
    Said,
)
from lookalike.indexes.base import DEFAULT_LIMIT, described
from lookalike.indexes.filters import Among, Chosen, no_masks
from lookalike.indexes.results import NO_LIMIT, Matches, too_many_matches
from lookalike.indexes.rows import Signatures
from lookalike.indexes.tables.base import TabledIndex, only_chosen
from lookalike.indexes.tables.flip_sets import (
    MOST_COST,
    MOST_FLIPS,
    SAMPLE,
    STEPS,
    Volatility,
    all_sets,
    as_weights,
    flip_tuning,
    flips_expected,
    header_start,
    not_finite,
    upper_bits,
)
from lookalike.indexes.tables.sorted_table import (
    MOST_HEADER_BITS,
    Part,
    SortedTable,
    build_parts,
    header_width,
    signature_bits,
)
from lookalike.indexes.tuning import Option, SelfTuned, Tuning
from lookalike.signatures import as_queries
from lookalike.storage.container import Container

_LEARNING = threading.Lock()  # held for moments only, so one is enough for all


class FlipIndex(SelfTuned, TabledIndex):
    """Find most matches within a radius, using the weights of the query's bits.

    Keeps one sorted copy of the signatures: n · (bits / 8 + 4) + 4 · 2^header_bits bytes. Results
    are not exact unless all flips are allowed. `fit_volatility` and `tune_flips` change the index
    for all its users; searching does not.

    Args:
        signatures: Array `uint8[n, bits // 8]`; it is copied.
        header_bits: Number of header bits (default: log2 n, the fastest). Fewer bits take less
            memory.
        ids: Ids of the signatures, distinct and at least 0 (default: their positions).
        threads: Number of threads (default: all cores).

    Examples:
        >>> signer = la.SimHash(bits=64)
        >>> signatures, weights = signer.sign_with_weights(["some text", "other words"])
        >>> index = la.FlipIndex(signatures)
        >>> index.within(signatures[:1], radius=3, weights=weights[:1]).ids.tolist()
        [0]
    """

    kind = "flips"

    def __init__(
        self,
        signatures: ArrayLike,
        header_bits: SupportsIndex | None = None,
        ids: ArrayLike | None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> None:
        rows = self._take_rows(signatures, ids)
        bits = 8 * rows.shape[1]
        most = min(bits, MOST_HEADER_BITS)
        self.header_bits: int = min(header_width(len(rows)), bits)
        if header_bits is not None:
            self.header_bits = whole_number("header_bits", header_bits, at_least=0, at_most=most)
        runs = upper_bits(bits, self.header_bits)
        self._parts = build_parts(rows, [runs], thread_count(threads))
        self.volatility = Volatility.normal()

    @classmethod
    def of_sorted(cls, signatures: Signatures, header_bits: int, threads: int) -> FlipIndex:
        """Return an index of sorted signatures, used in place; ids are positions."""
        index = cls.__new__(cls)
        index.header_bits = header_bits
        runs = upper_bits(8 * signatures.shape[1], header_bits)
        index._parts = (Part(0, (SortedTable.of_sorted(signatures, runs, threads),)),)
        index._ids = None
        index.volatility = Volatility.normal()
        return index

    def summary(self) -> str:
        """Return a one-line description of the index."""
        return f"{super().summary()}, a header of {self.header_bits} bits"

    def stats(self) -> dict[str, Any]:
        """Return facts about the index, fit for JSON."""
        return {
            **super().stats(),
            "header_bits": self.header_bits,
            "tables": 1 + len(self._parts) * 2.0**self.header_bits / max(1, len(self)),
            "tunings": self._saved_tunings(),
        }

    def fit_volatility(self, weights: ArrayLike, others: ArrayLike | None = None) -> None:
        """Learn how likely bits are to flip, and drop all tunings.

        Args:
            weights: Sample of weights, `(documents, bits)`.
            others: Weights of a near-duplicate of each row of `weights` (default: rows are compared
                with random other rows, as in the paper).
        """
        fitted = Volatility.fitted(weights, others)
        with _LEARNING:
            self.volatility, self._tunings = fitted, ()

    def tune_flips(
        self,
        queries: ArrayLike,
        weights: ArrayLike,
        radius: SupportsIndex = 3,
        *,
        recall: SupportsFloat = 0.95,
        first: bool = False,
        sample: SupportsIndex = SAMPLE,
        threads: SupportsIndex | None = None,
    ) -> Tuning[Option]:
        """Measure the number of flips that reach a recall, and save it with the index.

        `within` uses it for the same radius, recall and `first`. To leave the index unchanged, tune
        a copy (`copy.copy`) and pass `flips`.

        Args:
            queries: Signatures to search for; some must have matches.
            weights: Weights of their bits, `(queries, bits)`.
            radius: Largest Hamming distance (default: 3).
            recall: Share of matches to find (default: 0.95).
            first: Count queries that find a match, instead of matches.
            sample: Maximum number of queries to try, evenly spaced (default: 5000).
            threads: Number of threads (default: all cores).
        """
        rows = as_queries(queries, self.bits, signer=self.signer)
        values = as_weights(weights, len(rows), self.bits)
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        target = share("recall", recall)
        most = whole_number("sample", sample, at_least=1)
        one, workers = flag("first", first), thread_count(threads)
        tuning = self.measured(rows, values, near, target, one, workers, most)
        if not tuning.matches:
            raise ArgumentError(
                f"none of the {tuning.queries} queries tried has a match within radius {near}; "
                "tune_flips needs queries that have some, or a larger sample"
            )
        with _LEARNING:
            self._keep(tuning)
        return tuning

    def measured(
        self,
        rows: Signatures,
        weights: NDArray[Any],
        radius: int,
        recall: float,
        first: bool,
        threads: int,
        sample: int = SAMPLE,
    ) -> Tuning[Option]:
        """Return the result of `tune_flips` for validated arguments, without saving it."""
        size = min(sample, len(rows))
        chosen = np.unique(np.linspace(0, len(rows) - 1, size).astype(np.int64))
        attempts = self.attempts(rows[chosen], weights[chosen], radius, threads=threads)
        return flip_tuning(attempts, radius, first, recall)

    def attempts(
        self,
        queries: ArrayLike,
        weights: ArrayLike | None,
        radius: SupportsIndex,
        *,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return the number of the attempt that finds each match, in place of ids; exact.

        0 is the query's own header, 1 the first flip.
        """
        rows = as_queries(queries, self.bits, signer=self.signer)
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        workers = thread_count(threads)
        matches = self.within_checked(
            rows, None, near, MOST_FLIPS, False, DEFAULT_LIMIT, workers, differences=True
        )
        query = matches.query
        values = None if weights is None else as_weights(weights, len(rows), self.bits)
        attempts = np.empty(len(matches.ids), np.int64)
        own = _native.FlipWeights(None if values is None else values[query], self._start)
        order = self.volatility.native(), self.header_bits, near
        try:
            _native.flip_attempts(matches.ids.view(np.uint64), own, *order, workers, attempts)
        except _native.NotFinite as error:
            raise not_finite(int(query[error.query])) from None
        return Matches(matches.offsets, attempts, matches.distances, exact=True)

    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        weights: ArrayLike | None = None,
        flips: SupportsIndex | None = None,
        recall: SupportsFloat = 0.95,
        first: bool = False,
        limit: SupportsIndex = DEFAULT_LIMIT,
        among: Among = None,
        masks: None = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return most signatures within Hamming distance `radius` of each query.

        Looks up the query's own header and `flips` more, most likely first.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or a single signature.
            radius: Largest Hamming distance.
            weights: Weights of the queries' bits, `(queries, bits)`, float32 or quantized (default:
                all flips are tried, which is exact and slow).
            flips: Number of flips (default: as `tune_flips` measured for the `recall`, or an
                estimate).
            recall: Share of matches to find (default: 0.95); 1 tries all flips.
            first: Stop each query at its first match.
            limit: Maximum number of matches of all queries together.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: Not supported; raises if given.
            threads: Number of threads (default: all cores).

        Returns:
            The matches. `exact` is True if all flips were allowed.
        """
        no_masks(self, masks)
        rows = as_queries(queries, self.bits, signer=self.signer)
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        most = whole_number("limit", limit, at_least=0)
        target = share("recall", recall)
        one, workers = flag("first", first), thread_count(threads)
        values = None if weights is None else as_weights(weights, len(rows), self.bits)
        if flips is not None:
            tries = min(whole_number("flips", flips, at_least=0), MOST_FLIPS)
        elif values is None or target == 1:
            tries = MOST_FLIPS
        else:
            tries = self._flips_for(near, target, one)
        if values is None and tries < all_sets(self.header_bits, near):
            warnings.warn(
                LookalikeWarning(
                    f"without weights, {tries} flips are tried in a fixed order, which finds fewer "
                    "matches. ",
                    Said(
                        "Pass weights, or allow all flips",
                        "An index of --type blocks or slices finds all matches",
                    ),
                ),
                stacklevel=2,
            )
        chosen = Chosen.of(among, self)
        if chosen is None:
            return self.within_checked(rows, values, near, tries, one, most, workers)
        with suppress(ResultTooLargeError):
            found = self.within_checked(rows, values, near, tries, False, most, workers)
            return only_chosen(found, chosen, one)
        return self._scan_within(rows, near, most, workers, chosen, one)

    def within_checked(
        self,
        rows: Signatures,
        weights: NDArray[Any] | None,
        radius: int,
        flips: int,
        first: bool,
        limit: int,
        threads: int,
        *,
        differences: bool = False,
    ) -> Matches:
        """Return the result of `within` for validated arguments.

        `weights` may be sets from `likely_sets`. With `differences`, ids are the differing header
        bits.
        """
        settings = _native.FlipSettings(
            radius=radius, flips=flips, first=first, differences=differences
        )

        def look_up(part: Part, names: Any, asked: Any, room: int) -> tuple[Any, Any, Any]:
            own = _native.FlipWeights(None if weights is None else weights[asked], self._start)
            order, most = (own, self.volatility.native(), settings), min(room, NO_LIMIT)
            table = part.tables[0].native()
            return _native.flip_within(table, names, rows[asked], *order, most, threads)

        try:
            found = self._ask_parts(len(rows), first, limit, not differences, look_up)
        except _native.TooManyResults:
            raise too_many_matches(limit, radius, len(rows)) from None
        except _native.CorruptTable:
            raise self._damaged() from None
        except _native.NotFinite as error:
            raise not_finite(error.query) from None
        return Matches(*found, exact=flips >= all_sets(self.header_bits, radius))

    def _flips_for(self, radius: int, recall: float, first: bool) -> int:
        """Return the number of flips for a recall: as measured, or an estimate."""
        for tuning in self._tunings:
            if tuning.key == (None, radius, first, recall):
                return int(tuning.search_settings["flips"])
        return flips_expected(self.bits, radius, self.header_bits, recall)

    @property
    def _start(self) -> int:
        """First bit of the header."""
        return header_start(self.bits, self.header_bits)

    def _meta(self) -> dict[str, Any]:
        return {
            **super()._meta(),
            "header_bits": self.header_bits,
            "volatility_scale": self.volatility.scale,
            "tunings": self._saved_tunings(),
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {**super()._arrays(), "volatility": self.volatility.costs}

    def _restore(self, container: Container) -> None:
        costs = container.array("volatility", np.uint16, 1)
        bits = signature_bits(container)
        meta = container.meta
        with described(container, "flips"):
            self.header_bits = int(meta["header_bits"])
            if not 0 <= self.header_bits <= min(bits, MOST_HEADER_BITS):
                raise ValueError(f"a header of {self.header_bits} bits")
            self.volatility = Volatility(costs, float(meta["volatility_scale"]))
            if len(costs) != STEPS or not 0 < self.volatility.scale < np.inf:
                raise ValueError(f"volatility of {len(costs)} steps")
            self._restore_tunings(meta["tunings"], "flips", least=0)
        if (costs[1:] < costs[:-1]).any() or costs[-1] > MOST_COST:
            raise CorruptIndexError(f"{container.path}: the volatility is invalid; it is damaged")
        self._restore_tables(container, [upper_bits(bits, self.header_bits)])
