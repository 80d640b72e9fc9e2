"""Step 4 without signatures (`exact`, containment), on Spark: every pair at the threshold is found.

As in `native/pairs/set_join.hpp`: if two sets have much in common, the first elements of both, in
one order of all, have one in common, too. For containment, the first ones of the smaller and any of
the larger. Any order is right; with the common features last, few others share the first ones. How
common they are is counted roughly, in slots, by a pass of its own. Then the first features of
documents are the keys that these meet by, as bands are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.propose import LARGEST_SAMPLED_GROUP, MISSED, sample_size
from lookalike.dedup.settings import DedupSettings
from lookalike.features.base import refuse_below_zero
from lookalike.spark.bands import PAIRS, distinct_pairs, send_pairs
from lookalike.spark.packed import (
    PACKED,
    Batches,
    gathered,
    map_arrow,
    packed,
    packed_row,
    shuffled,
    sql,
)
from lookalike.spark.positions import (
    Numbering,
    PositionSet,
    collect_positions,
    numbered_columns,
    packed_positions,
    pieces_of,
    told_rows,
)
from lookalike.spark.propose import ENTRIES_A_TASK, Proposed, SignedTable
from lookalike.spark.signing import chunks, documents_of
from lookalike.spark.work import SparkWork

_FEATURES_A_DOCUMENT = 32
"""That are sent, about: a fifth of those of an abstract, at a threshold of 0.8."""


def propose_by_prefixes(
    work: SparkWork, settings: DedupSettings, frame: Any, text: str, signed: SignedTable
) -> Proposed:
    """Return the pairs of documents that share a feature at the beginning of both."""
    column = sql.col(f"`{text}`").cast("string")
    common = map_arrow(frame.select(column), common_slots(settings), COMMON)
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
    alone = signed.copies.value | _too_short(signed)
    lookup = work.send(Lookup(counts, alone, signed.old, again))
    buckets = max(work.cores, -(-signed.documents * _FEATURES_A_DOCUMENT // ENTRIES_A_TASK))
    send = send_prefixes(settings, signed.numbering, lookup, buckets)
    sent = map_arrow(numbered_columns(frame, [column]), send, PACKED)
    met = map_arrow(shuffled(sent, buckets), meet_prefixes(settings, buckets), PACKED)
    pairs = work.keep(map_arrow(shuffled(met, buckets), distinct_pairs(buckets), PACKED))
    warnings = more_than_local(settings, signed.documents, largest, int(counts.max()))
    return Proposed.of_packed(pairs, signed, warnings)


def more_than_local(
    settings: DedupSettings, documents: int, features: int, shared_by: int
) -> list[str]:
    """Return what people should know who compare the result with that of one machine."""
    if settings.exact or (
        features <= sample_size(documents) and shared_by <= LARGEST_SAMPLED_GROUP
    ):
        return []
    return [
        "documents were looked up by all of their features; the job on one machine draws some of "
        f"each, and may miss a few of these pairs, with a chance of {MISSED:.1%} at the threshold"
    ]


def _too_short(signed: SignedTable) -> PositionSet:
    """Return the documents that are too short to be compared."""
    numbering, rule = signed.numbering, signed.rule

    def tell(batches: Batches) -> Iterator[Any]:
        found = [
            chunk.positions[~chunk.compared(None)]
            for chunk in chunks(batches, numbering.value, rule)
        ]
        yield packed_row(0, packed_positions(np.concatenate([np.empty(0, np.int64), *found])))

    told = told_rows(map_arrow(signed.columns("enough"), tell, PACKED), signed.documents)
    return PositionSet.of(told.get(0, []), signed.documents)


SLOTS = 1 << 22
"""That features are counted in: 16 MB in the memory of every worker."""

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
_ROUNDING, _SLACK, _SUMMED = 2e-12, 1e-9, 1e-7
"""As in `native/pairs/set_measure.hpp`: bounds may be too low, never too high."""


def common_slots(settings: DedupSettings) -> Callable[[Batches], Iterator[Any]]:
    """Return what tells the slots that more documents of a partition have than most; and in place
    of one, `LARGEST`, the most features that a document has.
    """

    def count(batches: Batches) -> Iterator[Any]:
        counts, most = np.zeros(SLOTS, np.uint32), 0
        for batch in batches:
            for begin in range(0, len(batch), _DOCUMENTS_AT_A_TIME):
                some = batch.column(0).slice(begin, _DOCUMENTS_AT_A_TIME)
                offsets, features, _ = _features(settings, documents_of(some)[0])
                most = max(most, int(np.diff(offsets).max()))
                counts += np.bincount(_slots(features), minlength=SLOTS).astype(np.uint32)
        usual = _LEAST_COUNT + _TIMES_THE_MEAN * counts.mean()
        common = np.flatnonzero(counts > usual)
        yield pa.record_batch(
            {
                "slot": pa.array(np.append(common, LARGEST).astype(np.int32)),
                "count": pa.array(np.append(counts[common], most).astype(np.int64)),
            }
        )

    return count


def _slots(features: NDArray[np.uint64]) -> NDArray[np.int64]:
    mixed = features * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - (SLOTS - 1).bit_length())
    return mixed.astype(np.int64)


def _features(
    settings: DedupSettings, documents: _native.Documents
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float64]]:
    source = settings.feature_kind().source(documents)
    refuse_below_zero(source)
    counted = settings.measure == "cosine"
    kind = _native.WeightKind.count if counted else _native.WeightKind.uniform
    return _native.list_features(source, kind, 1)


@dataclass(frozen=True, eq=False)
class Lookup:
    """What says which documents have a part in it, and what is common."""

    counts: NDArray[np.uint32]
    """Of documents, by slot."""
    alone: PositionSet
    """Documents that have no part in it: too short, or with a text that has come before."""
    old: int
    again: PositionSet
    """Old documents whose texts have come again in the corpus, so that they are as new."""


def send_prefixes(
    settings: DedupSettings, numbering: Any, lookup: Any, buckets: int
) -> Callable[[Batches], Iterator[Any]]:
    """Return what sends the first features of documents to where equal ones meet.

    A common one meets in several places: who may be the larger of a pair is in one of them, who may
    be the smaller in all.
    """

    def send(batches: Batches) -> Iterator[Any]:
        known: Numbering = numbering.value
        here: Lookup = lookup.value
        for piece, row, batch, _ in pieces_of(batches):
            first = known.first(piece, row, len(batch))
            for begin in range(0, len(batch), _DOCUMENTS_AT_A_TIME):
                some = batch.column(0).slice(begin, _DOCUMENTS_AT_A_TIME)
                positions = np.arange(first + begin, first + begin + len(some))
                which = np.flatnonzero(~here.alone.has(positions))
                documents, _ = documents_of(some.take(pa.array(which)))
                entries = _entries(settings, documents, positions[which], here)
                yield from packed(entries, _bucket(entries, buckets), PAIRS)

    return send


def _entries(
    settings: DedupSettings,
    documents: _native.Documents,
    positions: NDArray[np.int64],
    here: Lookup,
) -> NDArray[Any]:
    """Return the first features of documents."""
    offsets, features, weights = _features(settings, documents)
    sizes = np.diff(offsets)
    document = np.repeat(np.arange(len(sizes)), sizes)
    common = here.counts[_slots(features)]
    order = np.lexsort((features, common, document))
    features, common, weights = features[order], common[order], weights[order]
    place = np.arange(len(features)) - np.repeat(offsets[:-1], sizes)
    if settings.measure == "cosine":
        indexed = probed = _weighty(settings, weights, offsets, document, place)
        sizes = np.zeros(len(sizes), np.int64)
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


def _dealt(entries: NDArray[Any], common: NDArray[np.int64]) -> NDArray[Any]:
    """Return entries with those of common features in their places."""
    places = 1 + common // MOST_AT_A_PLACE
    split = np.flatnonzero(places > 1)
    if not len(split):
        return entries
    own = entries["position"] % places
    entries["role"] += (own * _PLACE).astype(np.uint32)
    split = split[entries["role"][split] & _SMALLER > 0]
    others = np.repeat(split, places[split] - 1)
    step = np.arange(len(others)) - np.repeat(
        np.cumsum(places[split] - 1) - (places[split] - 1), places[split] - 1
    )
    more = entries[others]
    elsewhere = (own[others] + 1 + step) % places[others]
    role = (more["role"] & _OLD) + _SMALLER + (elsewhere * _PLACE).astype(np.uint32)
    more["role"] = role
    return np.concatenate([entries, more])


def _bucket(entries: NDArray[Any], buckets: int) -> NDArray[np.int64]:
    place = (entries["role"] // _PLACE).astype(np.uint64)
    mixed = entries["feature"] * np.uint64(0xD6E8FEB86659FD93) >> np.uint64(32)
    return ((mixed + place) % np.uint64(buckets)).astype(np.int64)


def _weighty(
    settings: DedupSettings,
    weights: NDArray[np.float64],
    offsets: NDArray[np.int64],
    document: NDArray[np.int64],
    place: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return after how many features what follows is too light to make a pair by itself."""
    count = len(offsets) - 1
    shares = weights**2 / np.bincount(document, weights**2, minlength=count)[document]
    before = np.cumsum(shares) - shares - document  # those of each document are 1 together
    heavy = 1 - before >= _bound(settings) ** 2 * (1 - _SUMMED)
    prefix = np.zeros(count, np.int64)
    np.maximum.at(prefix, document[heavy], place[heavy] + 1)
    return prefix


def _bound(settings: DedupSettings) -> float:
    return max(0.0, settings.threshold - _ROUNDING)


def _at_least(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.maximum(1, np.ceil(numbers * (1 - _SLACK) - _SLACK)).astype(np.int64)


def _least_sizes(settings: DedupSettings, sizes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the least size of a set that makes a pair with one of each of these."""
    if settings.measure != "jaccard":  # of weighted sets, sizes are 0
        return np.full(len(sizes), 1 if settings.measure == "containment" else 0)
    return _at_least(_bound(settings) * sizes.astype(np.float64))


def meet_prefixes(settings: DedupSettings, buckets: int) -> Callable[[Batches], Iterator[Any]]:
    """Return what pairs the documents that meet, a smaller one with a larger one; some come more
    than once.
    """

    def meet(batches: Batches) -> Iterator[Any]:
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
        before: NDArray[np.int64] = np.cumsum(may_be_smaller) - may_be_smaller
        smaller = np.flatnonzero(may_be_smaller)
        # Those of enough elements are in a row; the first may be the larger one itself, or later.
        begins = np.append(before, len(smaller))[np.searchsorted(keys, group << 32 | least)]
        counts = np.where(entries["role"] & _LARGER > 0, np.maximum(0, before - begins), 0)
        parts = np.cumsum(counts) // _PAIRS_AT_A_TIME
        bounds = np.flatnonzero(np.diff(parts, prepend=-1, append=-1))
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            some = counts[begin:end]
            larger = np.repeat(np.arange(begin, end), some)
            step = np.arange(len(larger)) - np.repeat(np.cumsum(some) - some, some)
            yield from _pairs(entries, smaller[begins[larger] + step], larger, buckets)

    return meet


def _pairs(
    entries: NDArray[Any], smaller: NDArray[np.int64], larger: NDArray[np.int64], buckets: int
) -> Iterator[Any]:
    role = entries["role"]
    fine = role[smaller] & role[larger] & _OLD == 0
    one, two = (entries["position"][side[fine]] for side in (smaller, larger))
    left, right = np.minimum(one, two), np.maximum(one, two)
    order = np.lexsort((right, left))
    left, right = left[order], right[order]
    new = (np.diff(left, prepend=-1) != 0) | (np.diff(right, prepend=-1) != 0)
    yield from send_pairs(left[new], right[new], buckets)
