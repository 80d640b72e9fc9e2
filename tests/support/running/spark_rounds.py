"""The rounds of `lookalike.spark.repeats` without Spark: partitions are lists of batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from lookalike.cleaning.settings import CleanSettings
from lookalike.spark import repeats
from lookalike.spark.positions import (
    FILE,
    KEY,
    ROW_BITS,
    START,
    Numbering,
    PositionSet,
    packed_positions,
)

__all__ = ["found_pieces"]


class Rows:
    """Partitions of batches, with what the rounds use of a DataFrame."""

    def __init__(self, parts: Sequence[Sequence[Any]]) -> None:
        self.parts = [list(part) for part in parts]

    def union(self, other: Rows) -> Rows:
        return Rows([*self.parts, *other.parts])

    def batches(self) -> Iterator[Any]:
        return (batch for part in self.parts for batch in part)

    def of_kind(self, kind: int) -> Rows:
        return Rows([[one.filter(pa.array(one["kind"].to_numpy() == kind)) for one in part]
                     for part in self.parts])  # fmt: skip

    def by_bucket(self, count: int) -> Rows:
        parts: list[list[Any]] = [[] for _ in range(count)]
        for batch in self.batches():
            buckets = batch.column("bucket").to_numpy()
            for bucket in np.unique(buckets).tolist():
                parts[bucket].append(batch.filter(pa.array(buckets == bucket)))
        return Rows(parts)

    def map(self, function: Any, *before: Any) -> Rows:
        return Rows([list(function(*before, iter(part))) for part in self.parts])

    def told(self, kind: int) -> list[bytes]:
        found = self.of_kind(kind).batches()
        return [data for batch in found for data in batch.column("data").to_pylist()]


def sent(value: Any) -> Any:
    return SimpleNamespace(value=value)


def frame_of(parts: Sequence[Sequence[str]], rows_a_batch: int) -> tuple[Rows, Numbering]:
    """Return partitions as `numbered_columns` has them, and their numbering."""
    made, counts, keys = [], {}, {}
    for number, texts in enumerate(parts):
        key = number << ROW_BITS
        piece = ("", -1, number)
        if texts:
            counts[piece], keys[piece] = len(texts), key
        batches = []
        for begin in range(0, len(texts), rows_a_batch):
            some = texts[begin : begin + rows_a_batch]
            count = len(some)
            columns = {
                "text": pa.array(some, pa.string()),
                FILE: pa.array([""] * count),
                START: pa.array([-1] * count, pa.int64()),
                KEY: pa.array(np.arange(key + begin, key + begin + count)),
            }
            batches.append(pa.record_batch(columns))
        made.append(batches)
    return Rows(made), Numbering.of(counts, keys)


def found_pieces(
    texts: list[str], cuts: list[int], rows_a_batch: int, options: dict[str, Any]
) -> tuple[list[tuple[int, ...]], int, Any]:
    """Return document, bytes, words and copy of every removed range, the rounds, and units."""
    settings = CleanSettings(**{**_DEFAULTS, **options})
    edges = [0, *sorted(min(cut, len(texts)) for cut in cuts), len(texts)]
    parts = [texts[begin:end] for begin, end in pairwise(edges)]
    frame, numbering = frame_of(parts, rows_a_batch)
    size = sum(len(text.encode()) for text in texts)
    plan = repeats.RepeatPlan.of(settings, sent(numbering), len(texts), size, 3)
    changed: Rows | None = None
    positions: PositionSet | None = None
    found: list[Rows] = []
    units: Any = []

    def scan(function: Any, *before: Any) -> Rows:
        made = frame.map(function, *before)
        return made if changed is None else made.union(changed.map(function, *before))

    def hashed(rows: Rows) -> PositionSet:
        return PositionSet.of(rows.told(repeats._BITS), 1 << plan.bits)

    partial = settings.boundary not in ("word", "auto")
    while True:
        joined = bool(found) and not partial
        known, numbers = None if positions is None else sent(positions), None
        if plan.words:
            if joined and changed is not None:
                told = changed.map(repeats.send_made, plan)
            else:
                anchors = scan(repeats.send_anchors, plan, known)
                told = anchors.by_bucket(plan.tasks).map(repeats.meet_anchors, plan)
            numbers = sent(hashed(told))
        choice = repeats.Choice(plan, known, numbers, joined)
        places = scan(repeats.send_places, choice).by_bucket(plan.tasks)
        met = places.map(repeats.meet_places, plan, joined)
        repeated = None
        if not plan.words:
            repeated = sent(hashed(met))
            units = [np.frombuffer(one, repeats.RECORD) for one in met.told(repeats.UNIT_ROWS)]
        documents = scan(repeats.send_documents, choice, repeated)
        rows = documents.union(met.of_kind(repeats._TOLD)).by_bucket(plan.buckets)
        now = rows.map(repeats.cut_documents, choice, len(found))
        ids = [one for batch in now.batches() for one in batch.column("position").to_pylist()]
        if not ids:
            return _told_pieces(found), len(found), units
        found.append(now)
        new = PositionSet.of([packed_positions(np.array(ids))], len(texts))
        rest = Rows([]) if changed is None else changed.map(repeats._without, sent(new))
        changed = now.union(rest)
        positions = new if positions is None else positions | new
        if settings.unit is not None:
            return _told_pieces(found), len(found), units


_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("words", "unit", "max_documents", "boundary")),
    "remove": "copies",
    "keep": "first",
    "min_left": 1,
}


def _told_pieces(found: list[Rows]) -> list[tuple[int, ...]]:
    made: list[tuple[int, ...]] = []
    for batch in (one for rows in found for one in rows.batches()):
        columns = (batch[name].to_pylist() for name in ("position", "pieces"))
        for position, data in zip(*columns, strict=True):
            pieces = np.frombuffer(data, repeats.PIECE).tolist()
            made += [(position, *piece[:4]) for piece in pieces]
    return sorted(made)
