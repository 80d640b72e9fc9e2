"""Tables in memory: lists, Arrow, pandas and polars, Hugging Face datasets and their splits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import BATCH_ROWS, Corpus, Problems, Rows, chosen_columns, pa
from lookalike.errors import ArgumentError, DocumentError

_SPLIT = "split"


class TableCorpus(Corpus):
    """The rows of a table, as far as possible without a copy.

    A list of `str` has a column `text`, a 2-dimensional array of numbers a column `vector`.
    `select` returns the given type, or an Arrow table for a source that can be read only once.
    """

    format = "table"
    typed = True

    def __init__(self, source: Any) -> None:
        self.name = f"the {type(source).__name__}"
        self._is_lazy = _is_polars(source) and hasattr(source, "collect")
        if self._is_lazy:
            source = source.collect()
        if isinstance(source, Iterable) and _is_plain_iterable(source):
            source = list(source)  # an iterator can be read once only
        self._source = source
        self._table = as_table(source, self.name)
        is_stream = hasattr(source, "with_format") and not hasattr(source, "select")
        if isinstance(source, pa.RecordBatchReader) or is_stream:
            self._source = self._table  # it can be read only once

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def columns(self) -> list[str]:
        return list(self._table.column_names)

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        seen = 0
        for batch in chosen_columns(self._table, columns).to_batches(max_chunksize=BATCH_ROWS):
            yield batch
            seen += len(batch)
            self.done = seen / len(self)

    def rows(self, problems: Problems) -> Iterator[Rows]:
        return map(_without_views, self.read(self.columns(), problems))

    def identity(self) -> None:
        """Return None: tables in memory cannot be compared with those of another run."""

    def select(self, positions: NDArray[np.int64]) -> Any:
        source = self._source
        if is_vectors(source):
            return source[positions]
        if hasattr(source, "iloc"):  # pandas
            return source.iloc[positions]
        if hasattr(source, "select") and hasattr(source, "with_format"):  # a dataset
            return source.select(positions)
        if _is_polars(source):
            chosen = source[positions.tolist()]
            return chosen.lazy() if self._is_lazy else chosen
        if hasattr(source, "take") and hasattr(source, "schema"):  # an Arrow table
            return _without_views(source).take(positions)
        if _is_arrow(source):
            taken = _without_views(self._table).take(positions)
            return taken["text"] if not hasattr(source, "columns") else taken
        return [source[position] for position in positions.tolist()]


def _without_views(table: Any) -> Any:
    """Return a table or batch without Arrow's views, of which it cannot take rows."""
    fields = [field.with_type(_without_view(field.type)) for field in table.schema]
    if all(field.type == old.type for field, old in zip(fields, table.schema, strict=True)):
        return table
    return table.cast(pa.schema(fields, table.schema.metadata))


def _without_view(kind: Any) -> Any:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        inner = [kind.field(at) for at in range(kind.num_fields)]
        return pa.struct([field.with_type(_without_view(field.type)) for field in inner])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(kind.value_field.with_type(_without_view(kind.value_type)))
    return kind


def _is_polars(source: Any) -> bool:
    return type(source).__module__.partition(".")[0] == "polars"


def _is_plain_iterable(source: Any) -> bool:
    """Return whether this is an iterable of documents, not a table or a document."""
    if isinstance(source, str | bytes | Mapping) or getattr(source, "ndim", 1) == 0:
        return False
    table = is_vectors(source) or hasattr(source, "with_format") or hasattr(source, "iloc")
    return not (table or _is_arrow(source))


def is_vectors(source: Any) -> bool:
    """Return whether this is an array of numbers with a vector in each row."""
    if not isinstance(source, np.ndarray) or source.ndim != 2 or source.shape[1] == 0:
        return False
    return source.dtype.kind in "fiu" and source.dtype.itemsize <= 8


def _is_arrow(source: Any) -> bool:
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


def as_table(source: Any, name: str) -> Any:
    """Return a source as an Arrow table, over the same memory as far as possible."""
    if hasattr(source, "with_format") and hasattr(source, "iter"):  # a Hugging Face dataset
        parts = list(source.with_format("arrow").iter(BATCH_ROWS))
        return pa.concat_tables(parts) if parts else pa.table({"text": pa.array([], pa.string())})
    if hasattr(source, "iloc") and hasattr(source, "columns"):  # pandas, without its index
        try:
            return pa.Table.from_pandas(source, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
            raise DocumentError(f"{name} is not a table: {error}") from error
    if isinstance(source, pa.Table):
        return source
    if _is_arrow(source):
        return _from_arrow(source)
    if is_vectors(source):
        flat = pa.array(np.ascontiguousarray(source, source.dtype.newbyteorder("=")).reshape(-1))
        return pa.table({"vector": pa.FixedSizeListArray.from_arrays(flat, source.shape[1])})
    if not isinstance(source, list):
        raise ArgumentError(
            f"the source is of type {type(source).__name__}; expected a path, a list of str, a "
            "table (Arrow, pandas, polars), an array of vectors, or datasets"
        )
    return _from_list(source, name)


def _from_arrow(source: Any) -> Any:
    """Return a table from the Arrow C interface; a single column is `text`."""
    if hasattr(source, "columns") or isinstance(source, pa.RecordBatch | pa.RecordBatchReader):
        return pa.table(source)
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table({"text": pa.chunked_array(source)})
    return pa.table({"text": pa.array(source)})


def _from_list(rows: list[Any], name: str) -> Any:
    """Return a table of str, or of mappings from column to value."""
    if rows and isinstance(rows[0], Mapping):
        try:
            columns = dict.fromkeys(column for row in rows for column in row)
            return pa.table({column: [row.get(column) for row in rows] for column in columns})
        except (
            pa.ArrowInvalid, pa.ArrowTypeError, AttributeError, OverflowError, TypeError, ValueError
        ) as error:  # fmt: skip
            raise DocumentError(f"{name} of mappings is not a table: {error}") from error
    for position, row in enumerate(rows):
        if not isinstance(row, str):
            raise DocumentError(
                f"document {position} is of type {type(row).__name__}; expected str"
            )
    try:
        return pa.table({"text": pa.array(rows, pa.large_string())})
    except UnicodeEncodeError as error:
        raise DocumentError(
            f"a document cannot be encoded as UTF-8 ({error.reason}); remove lone surrogates, for "
            "example with text.encode('utf-8', 'replace').decode()"
        ) from error


def is_splits(source: Any) -> bool:
    """Return whether these are datasets by name."""
    if not isinstance(source, Mapping) or not source:
        return False
    return all(hasattr(part, "with_format") for part in source.values())


class SplitsCorpus(TableCorpus):
    """The rows of all splits, with a column `split` if they have none; `select` returns splits."""

    def __init__(self, splits: Mapping[str, Any]) -> None:
        self._splits = splits
        name = f"the {type(splits).__name__}"
        parts = []
        for split, part in splits.items():
            table = as_table(part, f"{name}, {split}")
            if _SPLIT not in table.column_names:
                table = table.append_column(_SPLIT, pa.array([split] * len(table), pa.string()))
            parts.append(table)
        self._sizes = [len(part) for part in parts]
        try:
            whole = pa.concat_tables(parts, promote_options="default")
        except pa.ArrowException as error:
            raise DocumentError(
                f"{name}: its splits have different types ({error}); give them one by one"
            ) from error
        super().__init__(whole)
        self.name = name

    def select(self, positions: NDArray[np.int64]) -> Any:
        chosen = {}
        begin = 0
        for (split, part), size in zip(self._splits.items(), self._sizes, strict=True):
            inside = positions[(positions >= begin) & (positions < begin + size)] - begin
            chosen[split] = TableCorpus(part).select(inside)
            begin += size
        return type(self._splits)(chosen)  # type: ignore[call-arg]
