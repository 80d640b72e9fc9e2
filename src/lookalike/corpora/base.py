"""The base class of corpora: rows in a fixed order, read in batches, as often as needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import thread_count
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.lazy import LazyModule
from lookalike.shown import brief, counted, escape_terminal
from lookalike.suggestions import did_you_mean

if TYPE_CHECKING:
    import pyarrow

    from lookalike.corpora.remote import Spool

Rows: TypeAlias = "pyarrow.RecordBatch"
"""Some rows of a corpus, as Arrow holds them."""

BATCH_ROWS = 8192
BATCH_BYTES = 16 << 20
"""Rows and bytes of a batch; a row with more bytes is a batch by itself."""
MAX_DOCUMENT = 256 << 20
"""Default maximum bytes of a row: a line, a file, or a Parquet value."""
MAX_PAGE = 16 << 20
"""Default maximum bytes of a web page."""

UNREADABLE, UNDECODABLE = "unreadable pages", "unknown encoding"
"""Kinds of pages and files that are skipped."""

_EXAMPLES = 10
_LONGEST_EXAMPLE = 500
_NAMED = 3

_ROWS_A_PIECE = 128

Batch = TypeVar("Batch")

Added = Callable[[int, int], "dict[str, pyarrow.Array]"]
"""Columns to add to the rows from one position to another."""
Replaced = tuple[str, Callable[[int, int], "tuple[NDArray[np.bool_], pyarrow.Array]"]]
"""A column, and which rows from one position to another have other texts in it, and these."""

# bytes of memory, and threads
_LIMITS: ContextVar[tuple[int | None, int | None]] = ContextVar("limits", default=(None, None))

pa = LazyModule("pyarrow", "reading and writing corpora")
compute = LazyModule("pyarrow.compute", "reading and writing corpora")
"""Imported on first use, because that takes long."""


def arrow_positions(positions: NDArray[np.int64]) -> Any:
    """Return positions as an Arrow array, without a copy; `pyarrow.array` would import pandas."""
    return pa.Array.from_buffers(
        pa.int64(), len(positions), [None, pa.py_buffer(np.ascontiguousarray(positions))]
    )


def arrow_flags(flags: NDArray[np.bool_]) -> Any:
    """Return flags as an Arrow array, without pandas."""
    bits = np.packbits(flags, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, pa.py_buffer(bits)])


def arrow_texts(texts: Sequence[str]) -> Any:
    """Return texts as an Arrow array, without pandas."""
    parts = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers)


def native_documents(texts: Any) -> _native.Documents:
    """Return an Arrow array of texts, of which none is null, in the form that the core reads."""
    return _native.Documents.from_arrow(pa.chunked_array([texts]).__arrow_c_stream__())


def chosen_columns(batch: Any, columns: Sequence[str], kind: Any = None) -> Any:
    """Return these columns of a batch or table, in this order; nulls for those that it lacks."""
    if batch.schema.names == list(columns):
        return batch
    nulls, known = pa.nulls(len(batch), kind), set(batch.schema.names)
    found = [batch.column(name) if name in known else nulls for name in columns]
    return type(batch).from_arrays(found, names=list(columns))


@contextmanager
def limited(memory: int | None, threads: int | None) -> Iterator[None]:
    """Limit the memory in bytes and the threads for reading and writing within the block."""
    token = _LIMITS.set((memory, threads))
    try:
        yield
    finally:
        _LIMITS.reset(token)


def limits() -> tuple[int | None, int | None]:
    """Return the limits on bytes of memory and on threads; None if there is no limit."""
    return _LIMITS.get()


def reading_threads() -> int:
    """Return the number of threads that reading and writing may use now."""
    return thread_count(_LIMITS.get()[1])


def read_ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield the same batches; another thread prepares the next one meanwhile."""
    with ThreadPoolExecutor(1) as background:
        coming = background.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = background.submit(next, batches, None)
            yield batch


@dataclass
class Problems:
    """Rows that cannot be read: an error, or counted and skipped if `skip_bad` is set."""

    skip_bad: bool = False
    bad: int = 0
    binary: int = 0  # files of a folder that are not text
    examples: list[str] = field(default_factory=list)
    sizes_left_out: bool = False
    """Whether documents that are too long are skipped without `skip_bad`, as web pages are."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Counts of filtered documents and unreadable pages, by kind."""
    files: list[str] = field(default_factory=list)
    """Every skipped file of a folder, with the reason."""
    encodings: dict[str, list[str]] = field(default_factory=dict)
    """Files whose encoding was detected and is not UTF-8, by encoding."""
    other_utf8: dict[str, list[str]] = field(default_factory=dict)
    """Files that are valid UTF-8, but were read in the encoding that was given."""

    def report(self, where: str, reason: str) -> None:
        """Raise `DocumentError`, or count."""
        message = f"{where}: {reason}"
        if not self.skip_bad:
            raise DocumentError(f"{message}; correct it, or skip such rows with ", Said("skip_bad"))
        self.bad += 1
        self._example(message)

    def _example(self, message: str) -> None:
        if len(self.examples) < _EXAMPLES:
            self.examples.append(escape_terminal(message, _LONGEST_EXAMPLE))

    def leave_out(self, kind: str, where: str, reason: str) -> None:
        """Count a skipped document, and keep it as an example if it is one of the first."""
        self.left_out[kind] = self.left_out.get(kind, 0) + 1
        self._example(f"{where}: {reason}")

    def leave_out_file(self, kind: str | None, file: Path, reason: str) -> None:
        """Count and name a skipped file of a folder; `kind` is None if it is binary."""
        self.files.append(escape_terminal(f"{file}: {reason}", _LONGEST_EXAMPLE))
        if kind is not None:
            self.leave_out(kind, f"{file}", reason)
        else:
            self.binary += 1
            self._example(f"{file}: {reason}")

    def note_encoding(self, encoding: str, file: Path, *, given: bool) -> None:
        """Remember that the encoding of a file was detected, or given although it is UTF-8."""
        files = (self.other_utf8 if given else self.encodings).setdefault(encoding, [])
        if not files or files[-1] != f"{file}":
            files.append(f"{file}")

    def notices(self) -> list[str]:
        """Return notices about the encodings of files."""
        detected = [
            f"{_some(files)} read as {encoding}, which was detected; if that is wrong, set the "
            "encoding with --encoding (in Python encoding=)"
            for encoding, files in self.encodings.items()
        ]
        return detected + [
            f"{_some(files)} read as {encoding}, as given, but would be valid UTF-8; without "
            "--encoding (in Python encoding=) the encoding of each file is detected"
            for encoding, files in self.other_utf8.items()
        ]

    @property
    def left_out_count(self) -> int:
        """Number of skipped documents: bad rows, binary files and filtered documents."""
        return self.bad + self.binary + sum(self.left_out.values())

    def report_size(self, where: str, most: int) -> None:
        """Report a document that has more than `most` bytes."""
        if self.sizes_left_out:
            self.leave_out(UNREADABLE, where, f"has more than {most:,} bytes (max_document)")
            return
        self.report(
            where,
            f"has more than {most:,} bytes, the limit of max_document (--max-document); raise the "
            "limit, which takes about five times as much memory, or split the document",
        )


def _some(files: Sequence[str]) -> str:
    if len(files) == 1:
        return f"{escape_terminal(files[0], _LONGEST_EXAMPLE)} was"
    return f"{some_files([Path(file) for file in files])} were"


def some_files(files: Sequence[Path]) -> str:
    """Return the number of files, and the names of the first."""
    names = ", ".join(escape_terminal(file.name) for file in files[:_NAMED])
    return f"{counted(len(files), 'file')} ({names}{', ...' if len(files) > _NAMED else ''})"


class Corpus(ABC):
    """Documents, one per row, in an order that does not change.

    Reading holds one batch at a time (`BATCH_BYTES`, or one longer row) and can be repeated. With
    `Problems.skip_bad`, each reading skips the same bad rows. A row of a file that is longer than
    `max_document` is bad, and is not held.
    """

    name: str  # its name in messages: a path, or "the list"
    format: str  # one of `FORMATS`, or "table" for what is in memory
    typed: bool = False  # whether `read` yields values with types; else they are strings
    fixed_columns: bool = False  # whether the format decides which columns there are
    done: float = 0.0  # the share of it that the current reading has seen, from 0 to 1
    files: Sequence[Path] = ()  # the files that it is read from
    spool: Spool | None = None  # the folder of copies among its files
    root: Path | None = None  # the folder, if the corpus is all of one
    notices: Sequence[str] = ()  # notices about how it was opened
    unit: str = ""  # what a document is, where a file could also be read in another way
    max_document: int = MAX_DOCUMENT
    """Maximum bytes of a row of a file; may be set before the first reading."""
    room: int = 0
    """Bytes of decoded rows that may be held for the next reading; may be set before the first."""
    page_text: str | None = None  # the column with the texts of pages, where there are pages
    marked_text: str | None = None
    """A column with these texts and marked links; read only if it is requested."""
    described: Any = None  # settings that change the rows or their texts, in plain values

    @abstractmethod
    def columns(self) -> list[str]:
        """Return the names of its columns, as far as its beginning has them."""

    @abstractmethod
    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        """Yield batches of these columns, as strings unless `typed`; unknown columns are null."""

    def rows(self, problems: Problems) -> Iterator[Rows]:
        """Yield batches of all columns, with types."""
        return self.read(self.columns(), problems)

    def rows_at(self, positions: NDArray[np.int64], skip_bad: bool) -> list[dict[str, Any]]:
        """Return the rows at ascending positions as Python objects, in one reading."""
        batches = self.rows(Problems(skip_bad))
        return chosen_rows(
            batches, positions, lambda batch, at: batch.take(arrow_positions(at)).to_pylist()
        )

    def select(self, positions: NDArray[np.int64]) -> Any:
        """Return these rows of a table in memory, in the type of what was given."""
        raise DocumentError(f"{self.name} is not a table")

    def copy_rows(self, rows: KeptRows, target: Path | BinaryIO) -> int | None:
        """Write kept rows in the corpus's format and return how many; None if it cannot do that."""
        return None

    @abstractmethod
    def identity(self) -> list[Any] | None:
        """Return values that change with the corpus (names, sizes, times); None if it has none."""

    def place_of(self, row: int) -> str:
        """Return the place of a row for an error message; this may read the corpus again."""
        return f"{self.name}, row {row}"

    def check_identity(self, identity: list[Any] | None) -> None:
        """Refuse a corpus that has changed since it had this identity."""
        if self.identity() != identity:
            raise self.changed()

    def changed(self, rows: int | None = None, before: int = 0) -> DocumentError:
        """Return the error of a corpus that has changed, perhaps in its number of rows."""
        counts = "" if rows is None else f": it has {rows:,} rows, and had {before:,}"
        return DocumentError(
            f"{self.name} has changed since it was read{counts}. A corpus must not change while it "
            "is processed; start again when no other program writes to it"
        )

    def column_for(self, given: str | None, guesses: Sequence[str], purpose: str) -> str | None:
        """Return the given column, or the first of the guesses that exists, or None."""
        columns = self.columns()
        if given is not None:
            if not isinstance(given, str) or given not in columns:
                raise ArgumentError(
                    f"{self.name} has no column {brief(given)} for the {purpose}; its columns: "
                    f"{', '.join(columns) or 'none'}{did_you_mean(given, columns)}"
                )
            return given
        folded = {column.lower(): column for column in reversed(columns)}
        return next((folded[guess] for guess in guesses if guess in folded), None)


class DerivedCorpus(Corpus):
    """A corpus made of another one."""

    def __init__(self, inner: Corpus) -> None:
        self.inner = inner
        self.name, self.format, self.files = inner.name, inner.format, inner.files
        self.spool, self.notices, self.unit = inner.spool, inner.notices, inner.unit
        self.typed, self.fixed_columns = inner.typed, inner.fixed_columns

    def identity(self) -> list[Any] | None:
        """Return the identity of the other corpus."""
        return self.inner.identity()


def chosen_rows(
    batches: Iterator[Batch],
    positions: NDArray[np.int64],
    take: Callable[[Batch, NDArray[np.int64]], list[dict[str, Any]]],
) -> list[dict[str, Any]]:
    """Return what `take` makes of batches, each with those of ascending positions that it has."""
    found: list[dict[str, Any]] = []
    begin = 0
    for batch in batches:
        end = begin + len(batch)  # type: ignore[arg-type]
        found += take(batch, positions[slice(*np.searchsorted(positions, [begin, end]))] - begin)
        begin = end
    return found


def refuse_twice(name: str, added: Iterable[str], columns: Iterable[str]) -> None:
    """Refuse to add columns that rows have already; `name` says whose rows."""
    twice = sorted(set(added) & set(columns))
    if twice:
        raise ArgumentError(
            f"{name} already has a column {twice[0]!r}, which would be added; rename it first"
        )


@dataclass
class KeptRows:
    """The rows of a corpus that are to be kept, counted as they pass."""

    corpus: Corpus
    keep: NDArray[np.bool_] | None
    added: Added | None
    problems: Problems
    identity: list[Any] | None
    shard: Corpus | None = None  # the file of several whose rows are next
    replaced: Replaced | None = None
    _position: int = 0

    def __post_init__(self) -> None:
        if self.added:
            refuse_twice(self.corpus.name, self.added(0, 0), self.corpus.columns())

    def next(self, count: int) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Return which of the next `count` rows are kept, and the columns that are added to all."""
        begin, end = self._position, self._position + count
        self._position = end
        if self.keep is not None and end > len(self.keep):
            raise self.corpus.changed(end, len(self.keep))
        chosen = np.arange(count) if self.keep is None else np.flatnonzero(self.keep[begin:end])
        return chosen, self.added(begin, end) if self.added else {}

    def new_texts(self, count: int) -> dict[int, str]:
        """Return the texts that replace others in the last `count` rows of `next`, by place."""
        if self.replaced is None:
            return {}
        mask, texts = self.replaced[1](self._position - count, self._position)
        return dict(zip(np.flatnonzero(mask).tolist(), texts.to_pylist(), strict=True))

    def _with_new_texts(self, batch: Any) -> Any:
        """Return the last rows of `next` with the texts that replace others."""
        if self.replaced is None:
            return batch
        name, texts_of = self.replaced
        mask, texts = texts_of(self._position - len(batch), self._position)
        if not mask.any():
            return batch
        place = batch.schema.names.index(name)
        column = batch.column(place)
        if isinstance(column.type, pa.BaseExtensionType):  # such as JSON, which is text beneath
            column = column.storage
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if not pa.types.is_string(kind):  # views cannot be replaced
            column = column.cast(pa.large_string())
        new = compute.replace_with_mask(column, arrow_flags(mask), texts.cast(column.type))
        return batch.set_column(place, name, new)

    def finish(self) -> None:
        """Check that the corpus is what it was, after its last shard."""
        if self.shard is not None:
            return
        if self.keep is not None and self._position != len(self.keep):
            raise self.corpus.changed(self._position, len(self.keep))
        if self.identity is not None:
            self.corpus.check_identity(self.identity)

    def tables(self) -> Iterator[Any]:
        """Yield batches with all columns."""
        for batch in (self.shard or self.corpus).rows(self.problems):
            chosen, added = self.next(len(batch))
            batch = self._with_new_texts(batch)
            for name, values in added.items():
                batch = batch.append_column(name, values)
            yield from _only(batch, chosen)
        self.finish()


def _only(batch: Any, chosen: NDArray[np.int64]) -> Iterator[Any]:
    """Yield these rows of a batch: as slices, or as a copy if there would be many slices."""
    breaks = np.flatnonzero(np.diff(chosen) != 1) + 1
    if not len(chosen) or len(breaks) > len(chosen) // _ROWS_A_PIECE:
        yield batch.take(arrow_positions(chosen))
        return
    for run in np.split(chosen, breaks):
        yield batch.slice(int(run[0]), len(run))


@dataclass
class StringWriter:
    """Appends Arrow strings to two files, bytes and ends; nulls become empty strings."""

    _data: BinaryIO
    _ends: BinaryIO
    size: int = 0
    count: int = 0

    def append(self, strings: Any) -> None:
        """Append a `large_string` array."""
        if strings.null_count:
            strings = strings.fill_null("")
        if not len(strings):
            return
        _, offsets, data = strings.buffers()
        ends = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
        if ends[-1] > ends[0]:
            self._data.write(memoryview(data)[ends[0] : ends[-1]])
        self._ends.write((ends[1:] - ends[0] + self.size).tobytes())
        self.size += int(ends[-1] - ends[0])
        self.count += len(strings)

    def append_empty(self, count: int) -> None:
        """Append `count` empty strings."""
        self._ends.write(np.full(count, self.size, np.int64).tobytes())
        self.count += count
