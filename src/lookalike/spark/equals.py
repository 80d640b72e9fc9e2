"""Step 2, collapse: equal texts become one, the first of them.

Fingerprints meet by a shuffle. Of equal ones in a partition one goes there for all, so that a text
that half of the corpus has is no more work than another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.spark.numbering import Numbering
from lookalike.spark.packed import Batches, gathered, packed
from lookalike.spark.signing import FINGERPRINT, chunks

__all__ = ["COPIES", "EQUALS", "meet_equals", "send_fingerprints"]

EQUALS = np.dtype(
    [
        ("high", "<u8"),
        ("low", "<u8"),
        ("first", "<i8"),
        ("second", "<i8"),
        ("value", "<i8"),
        ("best", "<i8"),
        ("best_value", "<i8"),
    ]
)
"""Of equal texts: the first two positions (-1: no second), and the one that stays before others."""

COPIES = np.dtype([("position", "<i8"), ("first", "<i8")])

ENTRY, COPY = 0, 1


def send_fingerprints(
    numbering: Any, rule: str, buckets: int
) -> Callable[[Batches], Iterator[Any]]:
    """Return what sends fingerprints to where equal ones meet; those of documents that are too
    short to be compared stay where they are.

    Copies within the partition are told of at once, with the first of the partition.
    """

    def send(batches: Batches) -> Iterator[Any]:
        known: Numbering = numbering.value
        parts = []
        for chunk in chunks(batches, known, rule):
            entries = np.empty(len(chunk.positions), EQUALS)
            prints = chunk.array("fingerprints", FINGERPRINT)
            entries["high"], entries["low"] = prints["high"], prints["low"]
            entries["first"] = entries["best"] = chunk.positions
            entries["second"] = -1
            entries["value"] = entries["best_value"] = chunk.values
            parts.append(entries[chunk.compared(None)])
        if parts:
            entries, copies = _merged(np.concatenate(parts))
            yield from packed(copies, np.zeros(len(copies), np.int64), COPY)
            yield from packed(entries, (entries["high"] % buckets).astype(np.int64), ENTRY)

    return send


def meet_equals(batches: Batches) -> Iterator[Any]:
    """Yield copies, and for each text that there are copies of what there is to know of them."""
    found = gathered(batches, EQUALS)
    if ENTRY not in found:
        return
    entries, copies = _merged(found[ENTRY])
    zeros = np.zeros(len(copies), np.int64)
    yield from packed(copies, zeros, COPY)
    several = entries[entries["second"] >= 0]
    yield from packed(several, np.zeros(len(several), np.int64), ENTRY)


def _merged(entries: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return an entry for each fingerprint, and the copies: whoever was first and no longer is."""
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
    by_value = np.lexsort((entries["best"], entries["best_value"], group))
    best = entries[by_value[begins]]
    merged["best"], merged["best_value"] = best["best"], best["best_value"]
    copies = np.empty(int(same.sum()), COPIES)
    later = np.flatnonzero(np.concatenate([[False], same]))
    copies["position"] = entries["first"][later]
    copies["first"] = merged["first"][group[later]]
    return merged, copies


def as_columns(dtype: Any, kind: int) -> Callable[[Batches], Iterator[Any]]:
    """Return what makes a row of each record of a kind, and a column of each of its fields."""

    def unpack(batches: Batches) -> Iterator[Any]:
        for batch in batches:
            found = gathered(iter([batch]), dtype).get(kind)
            if found is not None:
                yield pa.record_batch(
                    {
                        name: pa.array(
                            np.ascontiguousarray(found[name]).view(
                                np.int64 if found[name].dtype.itemsize == 8 else found[name].dtype
                            )
                        )
                        for name in found.dtype.names or ()
                    }
                )

    return unpack
