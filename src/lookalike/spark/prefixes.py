"""Step 4 without signatures (`exact`, containment, weights), on Spark: every pair is found.

As in `native/pairs/set_join.hpp`: if two sets have much in common, their first elements, in one
order of all, have one in common, too. For containment, the first ones of the smaller set and any of
the larger. With common features last, few documents share their first ones. A pass of its own
counts roughly, in slots, how common features are. Then documents meet by their first features.
Where features have weights, the first ones end where the rest is too light to make a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.pairs import Floats, Ints
from lookalike.dedup.propose import LARGEST_SAMPLED_GROUP, MISSED, sample_size
from lookalike.dedup.settings import DedupSettings
from lookalike.features import Weights
from lookalike.features.base import refuse_below_zero
from lookalike.spark.bands import PAIRS, first_pairs, send_pairs
from lookalike.spark.packed import (
    PACKED,
    Batches,
    gathered,
    map_arrow,
    packed,
    packed_row,
    rows_of,
    runs,
    shuffled,
    sql,
    steps,
)
from lookalike.spark.positions import (
    PositionSet,
    collect_positions,
    numbered_columns,
    packed_positions,
    pieces_of,
    told_rows,
)
from lookalike.spark.propose import ENTRIES_A_TASK, Proposed, distinct_pairs, other_rows
from lookalike.spark.signing import Chunks, SignedTable, documents_of, weights_of
from lookalike.spark.work import SparkWork

_FEATURES_A_DOCUMENT = 32
"""About as many are sent: a fifth of those of an abstract, at a threshold of 0.8."""


def propose_by_prefixes(
    work: SparkWork,
    settings: DedupSettings,
    frame: Any,
    text: str,
    signed: SignedTable,
    alone: PositionSet,
    rarity: Any | None,
) -> Proposed:
    """Return the pairs of documents that share a feature at the beginning of both.

    Those that are `alone` take no part; `rarity` is a `SharedFeatures` that all workers have.
    """
    column = sql.col(f"`{text}`").cast("string")
    common = map_arrow(frame.select(column), common_slots, COMMON, settings)
    counts = np.zeros(SLOTS, np.uint32)
    sums = sql.sum("count").alias("count"), sql.max("count").alias("most")
    found = common.groupBy("slot").agg(*sums).toArrow()
    slots, sizes = found["slot"].to_numpy(), found["most"].to_numpy()
    told = slots >= 0
    counts[slots[told]] = np.minimum(found["count"].to_numpy()[told], 0xFFFFFFFF)
    largest = int(sizes[~told].max(initial=0))
    again = PositionSet.of([], signed.documents)
    if settings.exact and signed.old and signed.collapsed.count:  # every pair, also of copies
        new = signed.collapsed.copy_rows.where(f"position >= {signed.old}")
        again = collect_positions(new, ["first"], signed.documents)
    lookup = work.send(Lookup(counts, alone, signed.old, again, rarity))
    buckets = max(work.cores, -(-signed.documents * _FEATURES_A_DOCUMENT // ENTRIES_A_TASK))
    how = settings, signed.numbering, lookup, buckets
    sent = map_arrow(numbered_columns(frame, [column]), send_prefixes, PACKED, *how)
    met = map_arrow(shuffled(sent, buckets), meet_prefixes, PACKED, settings, buckets)
    pairs = distinct_pairs(work, met, buckets)
    warnings = more_than_local(settings, signed.documents, largest, int(counts.max()))
    return Proposed.of(pairs, other_rows(pairs, signed), signed.documents, warnings)


def more_than_local(
    settings: DedupSettings, documents: int, features: int, shared_by: int
) -> list[str]:
    """Return a warning if the local job may find fewer pairs."""
    if settings.exact or (
        features <= sample_size(documents) and shared_by <= LARGEST_SAMPLED_GROUP
    ):
        return []
    return [
        "all features of the documents were compared. The local job samples features, and misses a "
        f"pair at the threshold with a probability of {MISSED:.1%}"
    ]


def alone_positions(signed: SignedTable) -> PositionSet:
    """Return the documents that are not compared: too short, or with a text that came before."""
    found = map_arrow(signed.columns("enough"), _tell_short, PACKED, signed.chunks)
    short = PositionSet.of(told_rows(found, signed.documents).get(0, []), signed.documents)
    copies: PositionSet = signed.copies.value
    return copies | short


def _tell_short(chunks: Chunks, batches: Batches) -> Iterator[Any]:
    found = [chunk.positions[~chunk.enough] for chunk in chunks.of(batches)]
    yield packed_row(0, packed_positions(np.concatenate([np.empty(0, np.int64), *found])))


SLOTS = 1 << 22
"""Slots that features are counted in: 16 MB in the memory of every worker."""

COMMON, LARGEST = "slot int, count long", -1

MOST_AT_A_PLACE = 4096
"""Documents that are to meet by one feature in one place, about."""

ENTRY = np.dtype([("feature", "<u8"), ("position", "<i8"), ("size", "<u4"), ("role", "<u4")])
"""`role` is a sum of those below, and of `_PLACE` for each place of a common feature."""

_SMALLER, _LARGER, _OLD, _PLACE = 1, 2, 4, 8
"""May be the smaller one of a pair by this feature; the larger one; is of an old corpus alone."""

_LEAST_COUNT, _TIMES_THE_MEAN = 8, 4
_DOCUMENTS_AT_A_TIME = 1 << 14
_PAIRS_AT_A_TIME = 1 << 22
_LIGHTEST = 1e-9  # of a document with features that weigh anything
_ROUNDING, _SLACK, _SUMMED = 2e-12, 1e-9, 1e-7
"""As in `native/pairs/set_measure.hpp`: bounds may be too low, never too high."""


def common_slots(settings: DedupSettings, batches: Batches) -> Iterator[Any]:
    """Tell the common slots of a partition; `LARGEST` has the most features of a document."""
    counts, most = np.zeros(SLOTS, np.uint32), 0
    for batch in batches:
        for begin in range(0, len(batch), _DOCUMENTS_AT_A_TIME):
            some = batch.column(0).slice(begin, _DOCUMENTS_AT_A_TIME)
            offsets, features, _ = listed_features(settings, documents_of(some)[0], None)
            most = max(most, int(np.diff(offsets).max()))
            counts += np.bincount(_slots(features), minlength=SLOTS).astype(np.uint32)
    usual = _LEAST_COUNT + _TIMES_THE_MEAN * counts.mean()
    common = np.flatnonzero(counts > usual)
    yield rows_of(COMMON, slot=np.append(common, LARGEST), count=np.append(counts[common], most))


def _slots(features: NDArray[np.uint64]) -> Ints:
    mixed = features * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - (SLOTS - 1).bit_length())
    return mixed.astype(np.int64)


def listed_features(
    settings: DedupSettings, documents: _native.Documents, weights: Weights | None
) -> tuple[Ints, NDArray[np.uint64], Floats]:
    """Return the different features of documents with weights: those given, counts of cosines, 1.

    They are as `_native.list_features` returns them, without those that weigh nothing.
    """
    source = settings.feature_kind().source(documents)
    refuse_below_zero(source)
    if weights is None:
        counted = settings.measure == "cosine"
        kind = _native.WeightKind.count if counted else _native.WeightKind.uniform
        return _native.list_features(source, kind, None, 1)
    offsets, features, found = _native.list_features(source, *weights.native(), 1)
    heavy = found > 0
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(heavy)])
    return before[offsets], features[heavy], found[heavy]


@dataclass(frozen=True, eq=False)
class Lookup:
    """Which documents take part, and which features are common."""

    counts: NDArray[np.uint32]
    """Of documents, by slot."""
    alone: PositionSet
    """Documents that take no part: too short, or with a text that has come before."""
    old: int
    again: PositionSet
    """Old documents whose texts have come again in the corpus, so that they are as new."""
    rarity: Any | None = None
    """What features weigh, a `SharedFeatures` that was sent; None: they have no weights."""

    @property
    def weights(self) -> Weights | None:
        """What features weigh, in a worker."""
        return weights_of(self.rarity)


def send_prefixes(
    settings: DedupSettings, numbering: Any, lookup: Any, buckets: int, batches: Batches
) -> Iterator[Any]:
    """Send the first features of documents to where equal ones meet.

    A common one meets in several places. A document that may be the larger of a pair goes to one of
    them, a document that may be the smaller to all.
    """
    here: Lookup = lookup.value
    for documents, positions in documents_in(numbering, here, batches):
        entries = prefix_entries(settings, documents, positions, here)
        yield from packed(entries, bucket_of(entries, buckets), PAIRS)


def documents_in(
    numbering: Any, here: Lookup, batches: Batches
) -> Iterator[tuple[_native.Documents, Ints]]:
    """Yield the documents of a partition that take part, some at a time, and their positions."""
    for piece, row, batch, _ in pieces_of(batches):
        first = numbering.value.first(piece, row, len(batch))
        for begin in range(0, len(batch), _DOCUMENTS_AT_A_TIME):
            some = batch.column(0).slice(begin, _DOCUMENTS_AT_A_TIME)
            positions = np.arange(first + begin, first + begin + len(some))
            which = np.flatnonzero(~here.alone.has(positions))
            yield documents_of(some.take(pa.array(which)))[0], positions[which]


def prefix_entries(
    settings: DedupSettings, documents: _native.Documents, positions: Ints, here: Lookup
) -> NDArray[Any]:
    """Return the first features of documents as entries, those of common features split."""
    offsets, features, weights = listed_features(settings, documents, here.weights)
    sizes = np.diff(offsets)
    document = np.repeat(np.arange(len(sizes)), sizes)
    common = here.counts[_slots(features)]
    order = np.lexsort((features, common, document))
    features, common, weights = features[order], common[order], weights[order]
    place = steps(sizes)
    if settings.measure == "cosine":
        squares = weights**2
        shares = squares / np.bincount(document, squares, minlength=len(sizes))[document]
        least = np.full(len(sizes), _bound(settings) ** 2)
        indexed = probed = _heavy_prefix(shares, least, document, place)
        sizes = np.zeros(len(sizes), np.int64)
    elif here.rarity is not None:
        totals = np.bincount(document, weights, minlength=len(sizes)).astype(np.float64)
        shares, whole = weights / totals[document], np.maximum(totals, _LIGHTEST)
        as_larger, as_smaller = _least_shared(settings, totals)
        probed = _heavy_prefix(shares, as_larger / whole, document, place)
        indexed = _heavy_prefix(shares, as_smaller / whole, document, place)
        sizes = np.floor(totals).astype(np.int64)
    else:
        probed = sizes - np.minimum(sizes, _least_sizes(settings, sizes)) + 1
        share = _bound(settings)
        if settings.measure == "jaccard":
            share = 2 * share / (1 + share)
        indexed = sizes - np.minimum(sizes, _at_least(share * sizes)) + 1
    chosen = np.flatnonzero(place < probed[document])
    document, features, common = document[chosen], features[chosen], common[chosen]
    entries = np.empty(len(chosen), ENTRY)
    entries["feature"], entries["position"] = features, positions[document]
    entries["size"] = sizes[document]
    is_old = (positions < here.old) & ~here.again.has(positions)
    entries["role"] = _LARGER + np.where(place[chosen] < indexed[document], _SMALLER, 0)
    entries["role"] += np.where(is_old[document], _OLD, 0).astype(np.uint32)
    return _dealt(entries, common.astype(np.int64))


def _dealt(entries: NDArray[Any], common: Ints) -> NDArray[Any]:
    """Return entries with those of common features in their places."""
    places = 1 + common // MOST_AT_A_PLACE
    split = np.flatnonzero(places > 1)
    if not len(split):
        return entries
    own = entries["position"] % places
    entries["role"] += (own * _PLACE).astype(np.uint32)
    split = split[entries["role"][split] & _SMALLER > 0]
    more_places = places[split] - 1
    others = np.repeat(split, more_places)
    more = entries[others]
    elsewhere = (own[others] + 1 + steps(more_places)) % places[others]
    more["role"] = (more["role"] & _OLD) + _SMALLER + (elsewhere * _PLACE).astype(np.uint32)
    return np.concatenate([entries, more])


def bucket_of(entries: NDArray[Any], buckets: int) -> Ints:
    """Return the bucket in which the entries of a feature meet."""
    place = (entries["role"] // _PLACE).astype(np.int64)
    return feature_bucket(entries["feature"], buckets, place)


def feature_bucket(features: NDArray[np.uint64], buckets: int, place: Ints | int = 0) -> Ints:
    """Return the bucket in which equal features meet; those of a common one in several places."""
    mixed = features * np.uint64(0xD6E8FEB86659FD93) >> np.uint64(32)
    return (mixed.astype(np.int64) + place) % buckets


def _heavy_prefix(shares: Floats, least: Floats, document: Ints, place: Ints) -> Ints:
    """Return after how many features what follows is too light to make a pair by itself.

    `shares` are those of features in the weight of their documents, and `least` what a document
    must have in common with another.
    """
    # Those of each document are 1 together; documents without features have no place in the sum.
    with_features = np.cumsum(np.bincount(document, minlength=len(least)) > 0) - 1
    before = np.cumsum(shares) - shares - with_features[document]
    heavy = 1 - before >= least[document] * (1 - _SUMMED)
    prefix = np.zeros(len(least), np.int64)
    np.maximum.at(prefix, document[heavy], place[heavy] + 1)
    return prefix


def _least_shared(settings: DedupSettings, totals: Floats) -> tuple[Floats, Floats]:
    """Return the least weight that documents share in a pair, as the larger and the smaller one.

    Sizes are whole numbers. So the smaller one may be heavier, by less than 1.
    """
    bound = _bound(settings)
    if settings.contains:
        return np.zeros(len(totals)), bound * np.maximum(0.0, totals - 1)
    return bound * totals, bound / (1 + bound) * np.maximum(0.0, 2 * totals - 1)


def _bound(settings: DedupSettings) -> float:
    return max(0.0, settings.threshold - _ROUNDING)


def _at_least(numbers: Floats) -> Ints:
    return np.maximum(1, np.ceil(numbers * (1 - _SLACK) - _SLACK)).astype(np.int64)


def _least_sizes(settings: DedupSettings, sizes: NDArray[np.integer[Any]]) -> Ints:
    """Return the least size of a set that makes a pair with one of each of these."""
    if settings.set_measure != "jaccard":  # of cosines, sizes are 0
        return np.full(len(sizes), 0 if settings.by_frequency or not settings.contains else 1)
    least = _bound(settings) * sizes.astype(np.float64)
    if settings.by_frequency:  # rounded down
        return np.floor(least * (1 - _SLACK)).astype(np.int64)
    return _at_least(least)


def meet_prefixes(settings: DedupSettings, buckets: int, batches: Batches) -> Iterator[Any]:
    """Pair the documents that meet, a smaller one with a larger one; some come more than once."""
    entries = gathered(batches, ENTRY).get(PAIRS)
    if entries is None:
        return
    place = entries["role"] // _PLACE
    order = np.lexsort((entries["position"], entries["size"], place, entries["feature"]))
    entries, place = entries[order], place[order]
    changes = (np.diff(entries["feature"]) != 0) | (np.diff(place) != 0)
    group = np.concatenate([[0], np.cumsum(changes)]).astype(np.int64)
    keys = group << 32 | entries["size"]
    least = _least_sizes(settings, entries["size"])
    may_be_smaller = entries["role"] & _SMALLER > 0
    before: Ints = np.cumsum(may_be_smaller) - may_be_smaller
    smaller = np.flatnonzero(may_be_smaller)
    # Those of enough elements are in a row; the first may be the larger one itself, or later.
    begins = np.append(before, len(smaller))[np.searchsorted(keys, group << 32 | least)]
    counts = np.where(entries["role"] & _LARGER > 0, np.maximum(0, before - begins), 0)
    for begin, end in runs(np.cumsum(counts) // _PAIRS_AT_A_TIME):
        some = counts[begin:end]
        larger = np.repeat(np.arange(begin, end), some)
        yield from _pairs(entries, smaller[begins[larger] + steps(some)], larger, buckets)


def _pairs(entries: NDArray[Any], smaller: Ints, larger: Ints, buckets: int) -> Iterator[Any]:
    role = entries["role"]
    fine = role[smaller] & role[larger] & _OLD == 0
    one, two = (entries["position"][side[fine]] for side in (smaller, larger))
    left, right = np.minimum(one, two), np.maximum(one, two)
    which = first_pairs(left, right)
    yield from send_pairs(left[which], right[which], buckets)
