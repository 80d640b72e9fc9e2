"""What counts as documents: a list of `str`, an Arrow string column, or any iterable of `str`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lookalike import _native
from lookalike.checks import optional_module
from lookalike.errors import DocumentError

__all__ = ["list_batches", "text_batches"]


def text_batches(documents: Any, size: int | None) -> Iterator[_native.Documents]:
    """Yield the documents in batches of `size`; None: all in one, even if there are none.

    Columns of pyarrow, pandas, polars and whatever else speaks the Arrow C interface are read where
    they are. Of an iterable, no more than a batch is held.
    """
    column = documents if isinstance(documents, _native.Documents) else _arrow_column(documents)
    if column is not None:
        for begin in range(0, len(column), size) if size else [0]:
            yield column.part(begin, begin + (size or len(column)))
        return
    for position, batch in list_batches(documents, size):
        try:
            texts = _native.Documents.from_list(batch, position)
        except ValueError as error:
            raise DocumentError(str(error)) from None
        yield texts


def list_batches(documents: Any, size: int | None) -> Iterator[tuple[int, list[Any]]]:
    """Yield lists of `size` documents with the position of the first; None: all in one."""
    batch: list[Any] = []
    position = 0
    iterator = iterate(documents)
    while True:
        try:
            document = next(iterator)
        except StopIteration:
            break
        except Exception as error:
            error.add_note(f"raised where document {position + len(batch)} was to come")
            raise
        batch.append(document)
        if len(batch) == size:
            yield position, batch
            position += size
            batch = []
    if batch or size is None:
        yield position, batch


def iterate(documents: Any) -> Iterator[Any]:
    """Return an iterator over documents, or say what came instead of them."""
    if isinstance(documents, str | bytes | bytearray):
        raise DocumentError(
            f"documents are one {type(documents).__name__}; expected a list or column of str: "
            "for a single document pass [text]"
        )
    try:
        return iter(documents)
    except TypeError:
        raise DocumentError(
            f"documents are of type {type(documents).__name__}; expected a list of str, an Arrow "
            "string column (pyarrow, pandas, polars) or any iterable of str"
        ) from None


def _arrow_column(documents: Any) -> _native.Documents | None:
    """Return an Arrow column, or None if `documents` is no such thing."""
    if not hasattr(documents, "__arrow_c_stream__"):
        if not hasattr(documents, "__arrow_c_array__"):
            return None
        # A single array, as pyarrow's own are; made a stream of one.
        pyarrow = optional_module("pyarrow", "an Arrow array without a stream", extra="")
        documents = pyarrow.chunked_array([pyarrow.array(documents)])
    try:
        return _native.Documents.from_arrow(documents.__arrow_c_stream__())
    except ValueError as error:
        raise DocumentError(str(error)) from None
