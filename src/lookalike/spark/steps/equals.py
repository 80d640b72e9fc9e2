"""Step 2, collapse: equal texts become one, the first of them.

Fingerprints meet by a shuffle. Of equal ones in a partition one goes there for all, so that a text
that half of the corpus has is no more work than another; the others of the partition go wherever
there is room, with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.spark.packed import Batches, fixed_binary, gathered, packed, packed_row
from lookalike.spark.position_set import PositionSet, packed_positions
from lookalike.spark.steps.signing import FINGERPRINT, Chunk, chunks

__all__ = [
    "COPIES",
    "EQUALS",
    "FACTS",
    "equal_rows",
    "meet_equals",
    "merged_entries",
    "send_fingerprints",
    "told_equals",
]

EQUALS = np.dtype(
    [
        ("high", "<u8"),
        ("low", "<u8"),
        ("first", "<i8"),
        ("second", "<i8"),
        ("value", "<i8"),
        ("best", "<i8"),
        ("best_value", "<i8"),
        ("count", "<i8"),
    ]
)
"""Of equal texts: the first two positions (-1: no second), the one that stays before others, and
how many there are.
"""

COPIES = np.dtype([("position", "<i8"), ("first", "<i8")])

FACTS = np.dtype([("texts", "<i8"), ("copies", "<i8"), ("largest", "<i8"), ("moved", "<i8")])
"""Texts that there are copies of, copies, the most documents that have one text, and how many
firsts of partitions are copies themselves.
"""

ENTRY, COPY, COPY_HERE, FACT, COPY_SET, FIRST_SET = range(6)
"""Rows: entries; copies; copies within a partition, with its first; how many there are of each, and
their positions.
"""


def send_fingerprints(
    numbering: Any, rule: str, buckets: int
) -> Callable[[Batches], Iterator[Any]]:
    """Return what sends fingerprints to where equal ones meet; those of documents that are too
    short to be compared stay where they are.

    Copies within the partition are told of at once, with the first of the partition.
    """

    def send(batches: Batches) -> Iterator[Any]:
        entries, copies = merged_entries(chunks(batches, numbering.value, rule))
        yield from packed(copies, copies["first"] % buckets, COPY_HERE)
        yield from packed(entries, (entries["high"] % buckets).astype(np.int64), ENTRY)

    return send


def merged_entries(documents: Iterable[Chunk]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return an entry for each different text, and the copies, of all that are long enough."""
    parts = [np.empty(0, EQUALS)]
    for chunk in documents:
        entries = np.empty(len(chunk.positions), EQUALS)
        prints = chunk.array("fingerprints", FINGERPRINT)
        entries["high"], entries["low"] = prints["high"], prints["low"]
        entries["first"] = entries["best"] = chunk.positions
        entries["second"], entries["count"] = -1, 1
        entries["value"] = entries["best_value"] = chunk.values
        parts.append(entries[chunk.compared(None)])
    return _merged(np.concatenate(parts))


def meet_equals(batches: Batches) -> Iterator[Any]:
    """Yield copies, for each text that there are copies of what there is to know of them, and how
    many there are.
    """
    kinds = {ENTRY: EQUALS, COPY_HERE: COPIES}
    found = {kind: np.empty(0, dtype) for kind, dtype in kinds.items()} | gathered(batches, kinds)
    entries, copies = _merged(found[ENTRY])
    yield from told_equals(entries, copies, found[COPY_HERE])


def told_equals(entries: NDArray[Any], copies: NDArray[Any], here: NDArray[Any]) -> Iterator[Any]:
    """Yield rows of all kinds, of merged entries, and copies that were told of before."""
    several = entries[entries["second"] >= 0]
    facts = np.zeros(1, FACTS)
    facts["texts"], facts["copies"], facts["moved"] = (
        len(several),
        len(copies) + len(here),
        len(copies),
    )
    facts["largest"] = several["count"].max(initial=0)
    of_copies = np.concatenate([copies["position"], here["position"]])
    for kind, records in ((COPY, copies), (COPY_HERE, here), (ENTRY, several), (FACT, facts)):
        yield from packed(records, np.zeros(len(records), np.int64), kind)
    for kind, positions in ((COPY_SET, of_copies), (FIRST_SET, several["first"])):
        if len(positions):
            yield packed_row(kind, packed_positions(positions))


def _merged(entries: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return an entry for each fingerprint, and the copies: whoever was first and no longer is."""
    order = np.argsort(entries["high"])
    high = entries["high"][order]
    same = np.append(high[1:] == high[:-1], False)[: len(high)]
    same[1:] |= same[:-1].copy()  # few: only these are looked at
    alone, entries = entries[order[~same]], entries[order[same]]
    merged, copies = _merged_few(entries)
    return np.concatenate([alone, merged]) if len(merged) else alone, copies


def _merged_few(entries: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    entries = entries[np.lexsort((entries["first"], entries["low"], entries["high"]))]
    same = (np.diff(entries["high"]) == 0) & (np.diff(entries["low"]) == 0)
    if not same.any():
        return entries, np.empty(0, COPIES)
    begins = np.flatnonzero(np.concatenate([[True], ~same]))
    group = np.cumsum(np.concatenate([[True], ~same])) - 1
    merged = entries[begins]
    # The second of all is the second of the first entry, or the first of another.
    huge = np.iinfo(np.int64).max
    others = np.where(np.concatenate([[False], same]), entries["first"], huge)
    seconds = np.where(entries["second"] < 0, huge, entries["second"])
    second = np.minimum.reduceat(np.minimum(others, seconds), begins)
    merged["second"] = np.where(second == huge, -1, second)
    merged["count"] = np.add.reduceat(entries["count"], begins)
    by_value = np.lexsort((entries["best"], entries["best_value"], group))
    best = entries[by_value[begins]]
    merged["best"], merged["best_value"] = best["best"], best["best_value"]
    copies = np.empty(int(same.sum()), COPIES)
    later = np.flatnonzero(np.concatenate([[False], same]))
    copies["position"] = entries["first"][later]
    copies["first"] = merged["first"][group[later]]
    return merged, copies


def equal_rows(needed: Any) -> Callable[[Batches], Iterator[Any]]:
    """Return what yields `position, data`: entries of those of the needed documents that there are
    copies of.
    """

    def select(batches: Batches) -> Iterator[Any]:
        wanted: PositionSet = needed.value
        for batch in batches:
            entries = gathered(iter([batch]), EQUALS)[ENTRY]
            entries = entries[wanted.has(entries["first"])]
            yield pa.record_batch(
                {
                    "position": pa.array(entries["first"]),
                    "data": fixed_binary(entries),
                }
            )

    return select
