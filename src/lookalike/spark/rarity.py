"""How many documents of a DataFrame have a feature, and what it weighs for that.

Equal features meet, and are counted. Those of several documents go to all workers; all others are
in one document. The weights are those of `lookalike.dedup.rarity`, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ResultTooLargeError
from lookalike.features import Vocabulary, Weights
from lookalike.features.weights import UNLIMITED
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
from lookalike.spark.positions import PositionSet, numbered_columns, told_rows
from lookalike.spark.prefixes import Lookup, documents_in, feature_bucket, listed_features
from lookalike.spark.signing import SignedTable
from lookalike.spark.work import SparkWork

MOST_SHARED = 1 << 24
"""Features that several documents have: each takes 16 bytes to send, and about 50 in every worker's
memory.
"""
_FEATURES_A_TASK = 1 << 24
_BYTES_A_FEATURE = 4
"""Of text, at least."""

_COUNTED = np.dtype([("feature", "<u8"), ("documents", "<i8")])
_FEATURES, _TOTAL = 0, 1


@dataclass(frozen=True, eq=False)
class SharedFeatures:
    """The features that several documents have, and the number of these: see `Comparer.rarity`."""

    settings: DedupSettings
    features: NDArray[np.uint64]
    documents: NDArray[np.uint64]
    all_documents: int

    @cached_property
    def weights(self) -> Weights:
        """The weights, made once in each worker process."""
        vocabulary = Vocabulary(UNLIMITED, self.settings.common)
        vocabulary._native.add(self.features, self.documents, self.documents)
        vocabulary._native.add_totals(self.all_documents, int(self.documents.sum()), 0, 0)
        return Weights(self.settings.new_weights().kind, vocabulary)


def count_features(
    work: SparkWork,
    settings: DedupSettings,
    frame: Any,
    text: str,
    signed: SignedTable,
    alone: PositionSet,
) -> Any | None:
    """Return a `SharedFeatures` that every worker has; None if features have no weights.

    Documents that are `alone` do not count: copies, and those that are too short.
    """
    if not settings.by_frequency:
        return None
    none = PositionSet.of([], signed.documents)
    lookup = work.send(Lookup(np.empty(0, np.uint32), alone, signed.old, none))
    expected = signed.text_bytes // _BYTES_A_FEATURE
    buckets = max(work.cores, -(-expected // _FEATURES_A_TASK))
    column = sql.col(f"`{text}`").cast("string")
    rows = numbered_columns(frame, [column])
    sent = map_arrow(rows, send_counts, PACKED, settings, signed.numbering, lookup, buckets)
    met = work.keep(map_arrow(shuffled(sent, buckets), add_counts, PACKED))
    told = told_rows(met.where(f"kind = {_TOTAL}"), signed.documents).get(_TOTAL, [])
    totals = np.frombuffer(b"".join(told), np.int64).reshape(-1, 2)
    shared, documents = totals.sum(axis=0).tolist()
    if shared > MOST_SHARED:
        raise ResultTooLargeError(
            f"{shared:,} features are in several documents, and weights of at most "
            f"{MOST_SHARED:,} fit into the memory of workers. Leave out ",
            settings.said_reason,
            ", use longer n-grams, or run locally",
        )
    found = told_rows(met.where(f"kind = {_FEATURES}"), signed.documents).get(_FEATURES, [])
    known = np.frombuffer(b"".join(found), _COUNTED)
    known = known[np.argsort(known["feature"])]
    return work.send(
        SharedFeatures(
            settings,
            np.ascontiguousarray(known["feature"]),
            known["documents"].astype(np.uint64),
            documents,
        )
    )


def send_counts(
    settings: DedupSettings, numbering: Any, lookup: Any, buckets: int, batches: Batches
) -> Iterator[Any]:
    """Send features, and how many of some documents have them, to where equal ones meet."""
    total = 0
    for documents, positions in documents_in(numbering, lookup.value, batches):
        _, features, _ = listed_features(settings, documents, None)
        total += len(positions)
        different, counts = np.unique(features, return_counts=True)
        entries = np.empty(len(different), _COUNTED)
        entries["feature"], entries["documents"] = different, counts
        yield from packed(entries, feature_bucket(different, buckets), _FEATURES)
    yield packed_row(_TOTAL, np.array([0, total], np.int64).tobytes())


def add_counts(batches: Batches) -> Iterator[Any]:
    """Yield the features that several documents have; how many they are, and all documents."""
    found = gathered(batches, {_FEATURES: _COUNTED, _TOTAL: np.int64})
    entries = found.get(_FEATURES, np.empty(0, _COUNTED))
    entries = entries[np.argsort(entries["feature"], kind="stable")]
    begins = np.flatnonzero(np.diff(entries["feature"], prepend=0) != 0)
    if len(entries) and entries["feature"][0] == 0:
        begins = np.concatenate([[0], begins])
    counted = entries[begins]
    if len(begins):
        counted["documents"] = np.add.reduceat(entries["documents"], begins)
    shared = counted[counted["documents"] > 1]
    yield from packed(shared, np.zeros(len(shared), np.int64), _FEATURES)
    totals = found.get(_TOTAL, np.empty(0, np.int64)).reshape(-1, 2)
    documents = int(totals[:, 1].sum())
    yield packed_row(_TOTAL, np.array([len(shared), documents], np.int64).tobytes())
