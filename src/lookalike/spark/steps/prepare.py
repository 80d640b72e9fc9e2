"""Step 1, read, of rows that are not compared as they are: pages become texts, and what is not
wanted is left out, by the functions of the local job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lookalike.corpora.base import Corpus, Problems, Rows, chosen_columns, limited, pa
from lookalike.corpora.columns import Columns
from lookalike.corpora.filters import FilteredCorpus, Filters, without_urls
from lookalike.corpora.formats.html import HtmlColumnCorpus
from lookalike.pages import PageLimits
from lookalike.spark.numbering import FILE, KEY, ROW, ROW_BITS, START, piece_bounds
from lookalike.spark.packed import Batches

__all__ = ["COMPARED", "LEFT_OUT", "Preparation", "StreamedRows", "prepare_rows"]

COMPARED, LEFT_OUT = "lookalike_compared", "lookalike_left_out"
"""Columns of prepared rows: the text that is compared; and why others are not wanted, or null."""

_NUMBERED = (FILE, START, KEY)


class StreamedRows(Corpus):
    """The rows of a partition, read once, as they come."""

    format, name = "table", "the DataFrame"

    def __init__(self, names: Sequence[str], batches: Batches) -> None:
        self._names, self._batches = list(names), batches

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return self._names

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        """Yield batches of these columns."""
        for batch in self._batches:
            yield chosen_columns(batch, columns)

    def identity(self) -> None:
        """Nothing tells whether it is the same another time."""


@dataclass(frozen=True)
class Preparation:
    """How rows are made ready to be compared."""

    names: list[str]
    """The columns that rows have."""
    html: str | None
    limits: PageLimits | None
    filters: Filters
    columns: Columns
    """Of rows that are ready; the text is that which is compared."""

    def corpus(self, batches: Batches) -> Corpus:
        """Return rows, with texts in place of pages."""
        rows = StreamedRows([*self.names, *_NUMBERED], batches)
        return rows if self.html is None else HtmlColumnCorpus(rows, self.html, self.limits)

    @property
    def kept(self) -> list[str]:
        """The columns of rows that are ready."""
        columns = self.corpus(iter(())).columns()
        return [name for name in columns if name not in _NUMBERED]

    @property
    def own_text(self) -> bool:
        """Whether the text that is compared is not a column that is kept."""
        return self.filters.strip_urls or self.columns.text not in self.kept


def prepare_rows(how: Preparation) -> Callable[[Batches], Iterator[Any]]:
    """Return what makes the rows of a partition ready: those of `numbered_columns`.

    Those that are wanted are numbered as if there were no others. At the end comes a row for each
    reason for which some are not, with their number as `ROW` and nothing else.
    """

    def prepared(batches: Batches) -> Iterator[Any]:
        corpus = how.corpus(batches)
        wanted = _WantedRows(corpus, how.columns, how.filters) if how.filters.any else corpus
        problems, numbers, schema = Problems(True), _Numbers(), None
        # Another worker of Spark has the next core.
        with limited(None, 1):
            columns = dict.fromkeys([*how.kept, how.columns.text, *_NUMBERED])
            for batch in wanted.read(list(columns), problems):
                made = _prepared(how, batch, numbers)
                schema = made.schema
                yield made
        if schema is not None and problems.left_out:
            reasons, counts = zip(*problems.left_out.items(), strict=True)
            told = {LEFT_OUT: pa.array(reasons), ROW: pa.array(counts, pa.int64())}
            nothing = {part.name: pa.nulls(len(reasons), part.type) for part in schema}
            yield pa.record_batch(nothing | told)

    return prepared


def _prepared(how: Preparation, batch: Rows, numbers: _Numbers) -> Rows:
    made = {name: _plain(batch.column(name)) for name in how.kept}
    if how.own_text:
        texts = batch.column(how.columns.text).cast(pa.string())
        if how.filters.strip_urls:
            values = [None if text is None else without_urls(text) for text in texts.to_pylist()]
            texts = pa.array(values, pa.string())
        made[COMPARED] = texts
    made[LEFT_OUT] = pa.nulls(len(batch), pa.string())
    return pa.record_batch(made | numbers.of(batch))


def _plain(column: Any) -> Any:
    """Return a column in a type that Spark has."""
    kind = column.type
    if pa.types.is_large_string(kind):
        return column.cast(pa.string())
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):  # perhaps the links of pages
        parts = [kind.value_type.field(at) for at in range(kind.value_type.num_fields)]
        if all(pa.types.is_large_string(part.type) for part in parts):
            return column.cast(pa.list_(pa.struct([(part.name, pa.string()) for part in parts])))
    return column


class _WantedRows(FilteredCorpus):
    """Rows that are wanted, with the URLs in their texts, too: these are written."""

    def _stripped(self, batch: Rows) -> Rows:
        return batch


class _Numbers:
    """Counts the rows of a partition, and those of each piece."""

    def __init__(self) -> None:
        self._piece: tuple[Any, Any] | None = None
        self._row = self._count = 0

    def of(self, batch: Rows) -> dict[str, Any]:
        """Return the columns that say which rows these are."""
        files, starts, keys = (batch.column(name) for name in _NUMBERED)
        rows = np.empty(len(batch), np.int64)
        if not len(batch):
            return {FILE: files, START: starts, KEY: keys, ROW: pa.array(rows)}
        for begin, end in pairwise(piece_bounds(batch)):
            piece = files[begin].as_py(), starts[begin].as_py()
            if piece != self._piece:
                self._piece, self._row = piece, 0
            rows[begin:end] = np.arange(self._row, self._row + end - begin)
            self._row += end - begin
        partition = keys[0].as_py() >> ROW_BITS << ROW_BITS
        first = partition + self._count
        self._count += len(batch)
        made = np.arange(first, first + len(batch))
        return {FILE: files, START: starts, KEY: pa.array(made), ROW: pa.array(rows)}
