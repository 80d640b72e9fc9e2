"""Benchmark items in training text on Spark: each worker looks for them in its own rows.

The benchmarks are sent to all workers, and nothing else moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from lookalike.cleaning.contamination import ContaminationSettings, opened_items
from lookalike.cleaning.contamination_result import ContaminatedDocument, FoundItems
from lookalike.corpora.base import Problems, Rows, pa
from lookalike.corpora.columns import Columns
from lookalike.dedup.kinds import chosen
from lookalike.dedup.pairs import Ints
from lookalike.spark.files import check_added, with_texts
from lookalike.spark.packed import Batches, map_arrow, rows_of, sql
from lookalike.spark.positions import (
    TOLD,
    Numbering,
    PositionSet,
    collect_positions,
    numbered_columns,
    pieces_of,
)
from lookalike.spark.signing import texts_of
from lookalike.spark.sources import find_columns, frame_of
from lookalike.spark.work import HeldFrames, SparkWork

_PIECE = "file string, start long, partition long, row long"
_HIT = (
    "benchmark string, item string, words long, share double, characters_begin long, "
    "characters_end long, passage string"
)
_FOUND = f"{_PIECE}, key long, count long, name string, number long, {_HIT}"
"""Rows with a `count` tell how many rows of a piece were read; the others tell of hits."""
ADDED = ("contaminated", "contaminated_by")
"""The columns that marked rows have more than others."""


def decontaminate(
    frame: Any,
    benchmarks: Any,
    *,
    rule: str = "ngram",
    ngram: SupportsIndex | None = None,
    shortest: SupportsIndex | None = None,
    min_share: SupportsFloat | None = None,
    gap: SupportsIndex | None = None,
    action: str = "drop",
    margin: SupportsIndex | None = None,
    columns: Sequence[str] | None = None,
    text: str | None = None,
    id: str | None = None,
    work: str | None = None,
) -> SparkContamination:
    """Find rows of a DataFrame that contain items of benchmarks, as `la.decontaminate` does.

    The rows, hits and counts are those of the local job on the same rows, whatever the partitions.
    The items are in the memory of every Python worker. Texts are read twice: to look for items, and
    to write the rows.

    Args:
        frame: The DataFrame. Rows are numbered in the order of the files they come from and of the
            lines there, or of the partitions.
        benchmarks: A file, a folder, a list or a mapping that the driver reads, as in
            `la.decontaminate`.
        rule: "ngram", "share", "run" or "near".
        ngram: Words of an n-gram (default: 13; near 5).
        shortest: Fewest words of an item that is looked for (default: 8).
        min_share: The least share (default: 0.5; near 0.8).
        gap: Other words between two runs, of "near" (default: 4).
        action: What is done with contaminated rows: "drop", "cut" or "mark".
        margin: Characters to cut before and after a common passage (default: 200).
        columns: The columns of benchmarks to look for, joined.
        text: The column with the document text (default: detected).
        id: The column with ids (default: detected, or the positions of rows).
        work: A folder that all workers can reach, for the table of what was found.

    Returns:
        A `SparkContamination`, with frames of the rows after the action, of marked rows and of
        hits.

    Raises:
        ArgumentError: An option has a value that is not allowed, or `frame` is not a DataFrame.
    """
    settings = ContaminationSettings(**chosen(locals(), ContaminationSettings))
    frame = frame_of("frame", frame)
    found = find_columns(frame, text, id, None)
    space = SparkWork(frame.sparkSession, work)
    try:
        with space.timed("benchmarks"):
            opened, search = opened_items(benchmarks, columns, settings)
            skipped = search.items.skipped
        with space.timed("find"):
            names = [sql.col(f"`{found.text}`")]
            if found.id is not None:
                names.append(sql.col(f"`{found.id}`").cast("string"))
            rows = numbered_columns(frame, names)
            sent = space.send(search)
            table = space.keep(map_arrow(rows, _look, _FOUND, sent))
            numbering = Numbering.told(table.where("count is not null").select(*TOLD).toArrow())
            rows_found = _FoundRows(space, frame, found, table, space.send(numbering), sent)
            contaminated = rows_found.contaminated()
        return SparkContamination(
            settings=settings,
            benchmarks=opened,
            skipped_items=skipped,
            document_count=numbering.documents,
            seconds=dict(space.seconds),
            warnings=[],
            columns=found,
            problems=Problems(),
            _contaminated=contaminated,
            _rows=rows_found,
        )
    except BaseException:
        space.close()
        raise


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SparkContamination(FoundItems, HeldFrames):
    """Which rows contain items of benchmarks. Its frames can be read until `close`."""

    _contaminated: PositionSet
    _rows: _FoundRows = field(repr=False)

    @property
    def contaminated_count(self) -> int:
        """The number of rows that contain an item."""
        return len(self._contaminated)

    @cached_property
    def contaminated_items(self) -> Ints:
        """Numbers of items that some row contains, ascending."""
        return self._rows.items()

    @cached_property
    def documents_having(self) -> Mapping[str, int]:
        """The number of rows that contain items of a benchmark, for those that have any."""
        return self._rows.by_benchmark()

    @cached_property
    def documents(self) -> Any:
        """The rows after the action, with all their columns, in the partitions that Spark reads."""
        if self.settings.action == "mark":
            return self.annotated
        return self._rows.acted(self._contaminated, self.settings.action)

    @cached_property
    def annotated(self) -> Any:
        """All rows unchanged, with `contaminated` and `contaminated_by`."""
        return self._rows.acted(self._contaminated, "mark")

    @cached_property
    def hits(self) -> Any:
        """A row for each document and item, with the columns of the local job."""
        return self._rows.hits()


@dataclass(frozen=True, eq=False)
class _FoundRows:
    """The rows, and the table of what was found in them."""

    work: SparkWork
    frame: Any
    columns: Columns
    table: Any
    """Has the columns of `_FOUND`."""
    numbering: Any
    search: Any

    @property
    def _hits(self) -> Any:
        return self.table.where("count is null")

    @cached_property
    def _placed(self) -> Any:
        """The hits with the positions of rows, and ids."""
        schema = f"position long, id string, {_HIT}"
        return map_arrow(self._hits, _placed_hits, schema, self.numbering)

    def contaminated(self) -> PositionSet:
        """Return the positions of rows that contain items."""
        return collect_positions(self._placed, ["position"], self.numbering.value.documents)

    def items(self) -> Ints:
        """Return the numbers of items that were found, ascending."""
        numbers = self._hits.select("number").distinct().toArrow()["number"].to_numpy()
        return np.sort(numbers)

    def by_benchmark(self) -> dict[str, int]:
        """Return the number of rows with items of each benchmark."""
        pairs = self._placed.select("benchmark", "position").distinct()
        return dict(map(tuple, pairs.groupBy("benchmark").count().collect()))

    def hits(self) -> Any:
        """Return the hits with the ids of rows."""
        return self._placed.drop("position")

    def acted(self, contaminated: PositionSet, action: str) -> Any:
        """Return rows after an action."""
        from pyspark.sql.types import BooleanType, StringType, StructField, StructType

        names = [f"`{name}`" for name in self.frame.columns]
        fields = list(self.frame.schema.fields)
        if action == "mark":
            check_added(self.frame, ADDED)
            kinds = (BooleanType(), StringType())
            fields += [StructField(*one) for one in zip(ADDED, kinds, strict=True)]
        found = self.work.send(contaminated)
        how = self.columns.text, self.numbering, found, self.search, action
        return map_arrow(numbered_columns(self.frame, names), _act, StructType(fields), *how)


def _look(search: Any, batches: Batches) -> Iterator[Any]:
    """Yield what is found in rows: of `numbered_columns`, text and perhaps id."""
    for (file, start, partition), row, batch, key in pieces_of(batches):
        place = {"start": start, "partition": partition, "key": key}
        yield rows_of(_FOUND, file=[file], **place, row=row, count=len(batch))
        texts, _ = texts_of(batch.column(0))
        ids = batch.column(1) if batch.num_columns > 1 else pa.nulls(len(batch), pa.string())
        found = search.value.found(texts, lambda ids=ids: ids, 0, 1)
        hits = [(one.row, hit) for one in found for hit in one.evidence]
        if not hits:
            continue
        rows, evidence = zip(*hits, strict=True)
        begins, ends = zip(*(hit.characters for hit in evidence), strict=True)
        yield rows_of(
            _FOUND,
            file=[file] * len(hits),
            **place,
            row=np.array(rows) + row,
            name=ids.take(pa.array(rows)),
            **{name: [getattr(hit, name) for hit in evidence] for name in _TOLD},
            characters_begin=begins,
            characters_end=ends,
        )


_TOLD = ("number", "benchmark", "item", "words", "share", "passage")


def _placed_hits(numbering: Any, batches: Batches) -> Iterator[Any]:
    for batch in batches:
        pieces = zip(*(batch.column(name).to_pylist() for name in TOLD[:3]), strict=True)
        firsts = np.array([numbering.value.firsts[piece] for piece in pieces], np.int64)
        positions = firsts + batch.column("row").to_numpy()
        ids = batch.column("name").to_pylist()
        named = [
            str(position) if id is None else id
            for id, position in zip(ids, positions.tolist(), strict=True)
        ]
        hit = {name: batch.column(name) for name in (one.split()[0] for one in _HIT.split(", "))}
        yield pa.record_batch({"position": pa.array(positions), "id": pa.array(named), **hit})


def _act(
    text: str, numbering: Any, contaminated: Any, search: Any, action: str, batches: Batches
) -> Iterator[Any]:
    """Yield rows after an action; items are looked for again in those that contain some."""
    for piece, row, batch, _ in pieces_of(batches):
        first = numbering.value.first(piece, row, len(batch))
        mask = contaminated.value.has(np.arange(first, first + len(batch)))
        if action == "drop":
            yield batch.filter(pa.array(~mask)) if mask.any() else batch
            continue
        found: list[ContaminatedDocument] = []
        at = np.flatnonzero(mask)
        if len(at):
            texts, _ = texts_of(batch.column(batch.schema.names.index(text)).take(pa.array(at)))
            found = search.value.found(texts, partial(pa.nulls, len(at)), 0, 1)
        if action == "cut":
            new = pa.array([one.new_text for one in found], pa.string())
            yield with_texts(batch, text, mask, new) if len(at) else batch
        else:
            yield _marked(batch, at, found)


def _marked(batch: Rows, at: Ints, found: list[ContaminatedDocument]) -> Rows:
    by = [""] * len(batch)
    for place, one in zip(at.tolist(), found, strict=True):
        by[place] = one.items_text
    columns = [pa.array([bool(one) for one in by], pa.bool_()), pa.array(by, pa.string())]
    return pa.record_batch([*batch.columns, *columns], [*batch.schema.names, *ADDED])
