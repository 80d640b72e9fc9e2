"""FlipIndex: most of what is within a small radius, quickly and in little memory.

Probabilistic simhash matching (Sood and Loguinov, 2011): signatures are sorted once, by their upper
bits, the header. Bits with small weights are those that differ between near-duplicates, so the
headers that a near-duplicate may have are tried in the order of their probability.
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
    """Search within a radius with the weights behind the query's bits.

    One sorted copy and a table of 2^header_bits places: n · (bits / 8 + 4) + 4 · 2^header_bits
    bytes. The caller's array is not kept. Answers are a part of what there is, and `exact` is
    False, unless all flips were allowed. Searching changes nothing: `fit_volatility` and
    `tune_flips` do, for all who share the index.

    Args:
        header_bits: Bits of the header, the upper ones of the first 64 bits (default: log2 n, which
            is quickest). Fewer take less memory and compare more.
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
        """Return an index of sorted signatures, used in place; ids are places in them."""
        index = cls.__new__(cls)
        index.header_bits = header_bits
        runs = upper_bits(8 * signatures.shape[1], header_bits)
        index._parts = (Part(0, (SortedTable.of_sorted(signatures, runs, threads),)),)
        index._ids = None
        index.volatility = Volatility.normal()
        return index

    def summary(self) -> str:
        """Return what the index holds, and what was chosen for it, in a few words."""
        return f"{super().summary()}, a header of {self.header_bits} bits"

    def stats(self) -> dict[str, Any]:
        """Return what there is to know about the index, in plain values."""
        return {
            **super().stats(),
            "header_bits": self.header_bits,
            "tables": 1 + len(self._parts) * 2.0**self.header_bits / max(1, len(self)),
            "tunings": self._saved_tunings(),
        }

    def fit_volatility(self, weights: ArrayLike, others: ArrayLike | None = None) -> None:
        """Learn how likely bits are to flip from a sample of weights, `(documents, bits)`.

        With `others`, row i of which is a near-duplicate of row i of `weights`: from how their
        weights differ. Without: from the differences of random pairs, as the paper does. Only the
        order of attempts depends on it. Earlier tunings are forgotten.
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
        """Find out how many flips it takes to find a share `recall` of all matches.

        Searches exactly, with all flips, for up to `sample` of the queries, evenly spaced, and
        looks at which attempt finds each match. With `first`, the share of queries with a match
        that find one. The result is saved with the index, and `within` uses it for the same radius,
        recall and `first`. To leave the index as it is, tune a copy (`copy.copy`), and give
        `flips`.
        """
        rows = as_queries(queries, self.bits)
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
        """Return what `tune_flips` does, without keeping it, for arguments that were checked."""
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
        """Return which attempt finds each match within the radius, in place of ids; exact.

        0 is the query's own header, 1 the first flip. Costs all flips.
        """
        rows = as_queries(queries, self.bits)
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        workers = thread_count(threads)
        matches = self.within_checked(
            rows, None, near, MOST_FLIPS, False, DEFAULT_LIMIT, workers, differences=True
        )
        query = matches.columns()["query"]
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
        """Return signatures at distance `radius` or less from each query, most of them.

        The query's own header is looked up, and `flips` more, likely ones first. `exact` is True if
        all flips were allowed: nothing within the radius is missing, or, with `first`, a query
        without a match has none. `masks` are refused.

        Args:
            weights: Those behind the queries' bits, `(queries, bits)`, float32 or quantized.
                Without them all flips are tried, which is exact and slow; if `flips` limits them,
                those of fewer and lower bits come first, and a warning says so.
            flips: Number of flips (default: what `tune_flips` found to reach the `recall`, or else
                what reached it for near-duplicates among texts of ours).
            recall: Share of matches to find (default: 0.95); 1 takes all flips.
            first: Stop each query at the first match met.
            among: Search only these ids, or those whose place in a mask is True.
            limit: More matches than this in all raise `ResultTooLargeError`.
        """
        no_masks(self, masks)
        rows = as_queries(queries, self.bits)
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
                    Said("FlipIndex.within has no weights", "an index of flips knows no weights"),
                    f": {tries} flips are tried in the order of their size and position, which "
                    "finds less than the likeliest would; ",
                    Said(
                        "give weights, or allow all flips",
                        "an index of --kind blocks or slices finds everything",
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
        """Return what `within` does for arguments that were checked already.

        In place of weights there may be sets of `likely_sets`, `flips` of each query; in place of
        ids, if asked for, the `differences` of headers from the query's.
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
        """Return how many flips a recall takes: as was found out, or else as is expected."""
        for tuning in self._tunings:
            if tuning.key == (None, radius, first, recall):
                return int(tuning.search_settings["flips"])
        return flips_expected(self.bits, radius, self.header_bits, recall)

    @property
    def _start(self) -> int:
        """The first bit of the header."""
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
            raise CorruptIndexError(f"{container.path}: the volatility is none; it is damaged")
        self._restore_tables(container, [upper_bits(bits, self.header_bits)])
