"""Which columns of a corpus are what, texts and ids, and documents by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lookalike.corpora.base import Corpus, Problems, Rows, compute, pa
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.features import FeatureKind
from lookalike.features.base import reads_links

TEXT_GUESSES = ("text", "content", "body", "document", "abstract", "description", "sentence")
ID_GUESSES = (
    "id", "_id", "doc_id", "docid", "document_id", "uid", "key", "path", "url", "file",
)  # fmt: skip
_EXAMPLES = 3


@dataclass(frozen=True)
class Columns:
    """Which columns of a corpus are what."""

    text: str
    id: str | None
    order: str | None = None
    """The one that decides who survives."""

    @property
    def names(self) -> list[str]:
        """Those that have to be read."""
        return [self.text, *([self.id] if self.id else []), *([self.order] if self.order else [])]

    def ids(self, batch: Rows, first_row: int) -> Any:
        """Return the ids of a batch of `names`, or the numbers of its rows."""
        column = batch.column(1) if self.id else pa.nulls(len(batch))
        return id_strings(column, first_row)


def find_columns(
    corpus: Corpus, text: str | None, id: str | None, order: str | None = None
) -> Columns:
    """Return the columns to read: those named, or the only obvious ones."""
    chosen = text_column(corpus, text)
    if chosen is None:
        columns = corpus.columns()
        if not columns:
            return Columns("text", None)  # there is nothing to read
        raise ArgumentError(
            f"{corpus.name} has the columns {', '.join(columns)}; say which one has the text",
            Said(" with text=", " with --text COLUMN"),
        )
    if order is not None:
        corpus.column_for(order, (), "choice of survivors")
    return Columns(chosen, id_column(corpus, id), order)


def columns_for(corpus: Corpus, columns: Columns, features: FeatureKind) -> Columns:
    """Return columns whose texts have what features read: links, where they read links."""
    if corpus.marked_text is None or columns.text != corpus.page_text or not reads_links(features):
        return columns
    return replace(columns, text=corpus.marked_text)


def text_column(corpus: Corpus, given: str | None) -> str | None:
    """Return the column with the texts: the one named, or the obvious one, or the only one."""
    if given is None and corpus.page_text is not None:
        return corpus.page_text
    columns = corpus.columns()
    only = columns[0] if len(columns) == 1 else None
    return corpus.column_for(given, TEXT_GUESSES, "text") or only


def id_column(corpus: Corpus, given: str | None) -> str | None:
    """Return the column with the ids: the one named, or the obvious one."""
    return corpus.column_for(given, ID_GUESSES, "ids")


def text_strings(column: Any, name: str, corpus: Corpus) -> Any:
    """Return a column as `large_string`; numbers are no text."""
    if isinstance(column.type, pa.BaseExtensionType):  # such as JSON, which is text beneath
        column = column.storage
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_text = (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_null(kind)
    )
    if not is_text:
        raise DocumentError(f"{corpus.name}: the column {name!r} is of type {kind}; expected text")
    return _large(undictionaried(column))


def _large(column: Any) -> Any:
    """Return a column as `large_string`; strings over the same bytes, with wider offsets."""
    kind = pa.large_string()
    if column.type == kind:
        return column
    if column.type != pa.string() or not len(column):
        return column.cast(kind)
    valid, offsets, data = column.buffers()
    wide = np.frombuffer(offsets, np.int32, column.offset + len(column) + 1).astype(np.int64)
    return pa.Array.from_buffers(
        kind, len(column), [valid, pa.py_buffer(wide), data], column.null_count, column.offset
    )


def undictionaried(column: Any) -> Any:
    """Return a column without a dictionary; Arrow casts not every type of one."""
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.large_string())
    return values.take(column.indices)


def id_strings(column: Any, first_row: int) -> Any:
    """Return ids as strings; a row that has none gets its number."""
    try:
        strings = _large(undictionaried(column))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        strings = pa.array([str(value.as_py()) for value in column], pa.large_string())
    if strings.null_count:
        rows = pa.array(range(first_row, first_row + len(strings)), pa.int64())
        strings = compute.coalesce(strings, rows.cast(pa.large_string()))
    return strings


def find_documents(
    corpus: Corpus, columns: Columns, wanted: Sequence[str], *, skip_bad: bool = False
) -> list[str]:
    """Return the texts of documents, by id or, without a column of ids, by row, counted from 0.

    Of several with one id, the first. Reads no further than needed, and holds a batch at a time.
    """
    found: dict[str, str] = {}
    examples: list[str] = []
    rows = 0
    for batch in corpus.read(columns.names, Problems(skip_bad)):
        texts = text_strings(batch.column(0), columns.text, corpus)
        ids = columns.ids(batch, rows)
        examples += ids[: _EXAMPLES - len(examples)].to_pylist()
        for name in wanted:
            if name not in found and (at := compute.index(ids, name).as_py()) >= 0:
                found[name] = texts[at].as_py() or ""
        rows += len(batch)
        if len(found) == len(set(wanted)):
            return [found[name] for name in wanted]
    missing = next(name for name in wanted if name not in found)
    what = f"no document whose {columns.id!r} is" if columns.id else "no row"
    shown = f"the first are {', '.join(map(repr, examples))}" if examples else "it is empty"
    raise ArgumentError(f"{corpus.name} has {what} {missing!r} among {rows:,} documents; {shown}")
