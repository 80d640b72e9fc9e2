"""Read the documents of a corpus: texts and ids on disk, and signatures on an idle core."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora import Corpus, Problems, format_of, open_corpus
from lookalike.corpora.base import StringWriter, compute, native_documents, pa
from lookalike.corpora.columns import (
    Columns,
    Filters,
    columns_for,
    filtered,
    find_columns,
    id_strings,
    text_strings,
    title_column,
    title_strings,
    undictionaried,
)
from lookalike.corpora.opening import with_old_pages
from lookalike.errors import ArgumentError, CorruptIndexError, DocumentError
from lookalike.features import FeatureKind
from lookalike.jobs.context import JobContext
from lookalike.jobs.work_folder import WorkFolder, digest, release
from lookalike.pages import PageLimits
from lookalike.pages.marks import without_marks
from lookalike.signatures.signer import DocumentSigner
from lookalike.storage.files import file_errors

# maximum expansion of compressed files, and the size that is always accepted
_EXPANSION, _EXPANDED_BYTES = 10_000, 4 << 30

# limit of early signatures and waiting texts; its share of a memory limit
_MOST_BYTES, _SHARE = 64 << 20, 128


class StringsOnDisk:
    """Memory-mapped strings: all bytes in one file, the ends of the strings in another."""

    def __init__(self, work: WorkFolder, name: str) -> None:
        self._data: NDArray[np.uint8] = work.array(f"{name}.bytes", np.uint8)
        ends: NDArray[np.int64] = work.array(f"{name}.ends", np.int64)
        self.offsets = np.concatenate([np.zeros(1, np.int64), ends])
        if (np.diff(self.offsets) < 0).any() or self.offsets[-1] != len(self._data):
            raise CorruptIndexError(
                f"{work.path(name)}.ends does not fit {work.path(name)}.bytes; one of them is "
                "damaged: remove them"
            )

    @staticmethod
    def writer(files: ExitStack, work: WorkFolder, name: str) -> StringWriter:
        """Return what writes the two files; `files` closes them."""
        data = files.enter_context(work.writer(f"{name}.bytes"))
        return StringWriter(data, files.enter_context(work.writer(f"{name}.ends")))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, position: int) -> str:
        return self._bytes(position).tobytes().decode()

    def size(self, position: int) -> int:
        """Return the length of one string in bytes."""
        return len(self._bytes(position))

    def equal(self, one: int, two: int) -> bool:
        """Return whether two strings are equal byte for byte."""
        return np.array_equal(self._bytes(one), self._bytes(two))

    def beginning(self, position: int, most: int) -> str:
        """Return at most `most` bytes of one string, without a cut character or link marks."""
        data = self._bytes(position)[:most].tobytes()
        return without_marks(data.decode(errors="ignore"))

    def _bytes(self, position: int) -> NDArray[np.uint8]:
        return self._data[self.offsets[position] : self.offsets[position + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each string in bytes."""
        return np.diff(self.offsets)

    @cached_property
    def arrow(self) -> Any:
        """All strings, as an Arrow array."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self._data)]
        return pa.Array.from_buffers(pa.large_string(), len(self), buffers)

    @cached_property
    def documents(self) -> _native.Documents:
        """All strings, in the form that the core reads."""
        return native_documents(self.arrow)

    def release(self) -> None:
        """Drop the text from memory; reading it again loads it."""
        release(self._data)


@dataclass(frozen=True)
class Source:
    """A corpus to read."""

    corpus: Corpus
    columns: Columns
    identity: list[Any] | None  # its state when the job began; see `Corpus.identity`
    made_from: list[Any] | None = None  # the state of what a temporary file was made from

    def described(self) -> list[Any]:
        """Return what the documents depend on."""
        corpus = self.corpus
        filters = [] if corpus.described is None else [corpus.described]
        known_by = self.identity if self.made_from is None else self.made_from
        return [known_by, corpus.format, self.columns.to_dict(), corpus.max_document, *filters]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the corpora of a job are opened."""

    format: str | None
    encoding: str | None
    html: str | None
    page_limits: PageLimits | None
    filters: Filters
    longest: int | None  # maximum bytes of a document, of `longest_document`
    was_given: bool  # whether it was requested; else a smaller maximum of the format applies

    def source(
        self,
        given: Any,
        features: FeatureKind,
        text: str | None,
        id: str | None,
        order: str | None,
        *,
        titles: bool = False,
        title: str | None = None,
    ) -> Source:
        """Open the corpus of a job. `order` names a column to rank documents by.

        Titles are read only with `titles`, from the column `title` or one with a usual name.
        """
        corpus = open_corpus(given, self.format, encoding=self.encoding)
        corpus = open_corpus(corpus, html=self.html, page_limits=self.page_limits)
        self._limit(corpus)
        found = find_columns(corpus, text, id, order)
        if titles:
            found = replace(found, title=title_column(corpus, title, found.text))
        columns = columns_for(corpus, found, features)
        corpus = filtered(corpus, columns, self.filters)
        return Source(corpus, columns, corpus.identity())

    def old_source(self, given: Any, features: FeatureKind, new: Columns) -> Source:
        """Open an old corpus, with the columns of the new one where it has them."""
        # The given format is that of the source; the extension of an old file may be another.
        unnamed = isinstance(given, str | os.PathLike) and format_of(Path(given)) is None
        corpus = open_corpus(given, self.format if unnamed else None, encoding=self.encoding)
        corpus = with_old_pages(corpus, self.html, self.page_limits)
        self._limit(corpus)
        known = corpus.columns()
        text, id = (name if name in known else None for name in (new.text, new.id))
        columns = columns_for(corpus, find_columns(corpus, text, id, None), features)
        filters = self.filters.for_old()
        return Source(filtered(corpus, columns, filters), columns, corpus.identity())

    def _limit(self, corpus: Corpus) -> None:
        if self.longest is not None:
            default = type(corpus).max_document
            corpus.max_document = self.longest if self.was_given else min(self.longest, default)


@dataclass(frozen=True)
class OldSignatures:
    """Documents of an old corpus that are known only by their signatures."""

    signatures: NDArray[np.uint8]
    ids: Sequence[str] | None
    identity: list[Any]  # changes when the file of the signatures does


@dataclass(frozen=True, eq=False)
class DocumentTable:
    """The documents that were read. The first `old` ones are those of an old corpus."""

    texts: StringsOnDisk
    ids: StringsOnDisk | None
    old_ids: Sequence[str] | StringsOnDisk | None
    old: int
    order: NDArray[np.int64] | None
    """Dense ranks of all documents by a column, from 1; -1 without a value."""
    key: str
    signatures_only: int  # the number of documents without text: the first ones
    bad: int
    binary: int
    examples: list[str]
    left_out: dict[str, int]  # counts of filtered documents and unreadable pages, by kind
    files_left_out: list[str]  # files of a folder that were left out, each with the reason
    notices: list[str]  # warnings about how files were read
    titles: StringsOnDisk | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def id_of(self, position: int) -> str | int:
        """Return the id of a document, or its row in its own corpus if it has none."""
        ids, row = (
            (self.old_ids, position) if position < self.old else (self.ids, position - self.old)
        )
        return row if ids is None else ids[row]


@dataclass(eq=False)
class EarlySignatures:
    """Signatures of the first documents, made while later ones are read."""

    signer: DocumentSigner
    row_bytes: int
    threads: int
    room: int
    pool: ThreadPoolExecutor
    _made: deque[Future[NDArray[np.uint8]]] = field(default_factory=deque, init=False)
    _waiting: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)

    def add(self, texts: Any) -> None:
        """Sign an Arrow array of texts in the background; none once they are too many."""
        self._waiting += texts.nbytes
        self._bytes += len(texts) * self.row_bytes
        if self._waiting > self.room or self._bytes > self.room:
            self.room = 0
        else:
            self._made.append(self.pool.submit(self._sign, texts))

    def taken(self) -> Iterator[NDArray[np.uint8]]:
        """Yield the signatures in the order of the documents, each once."""
        while self._made:
            yield self._made.popleft().result()

    def _sign(self, texts: Any) -> NDArray[np.uint8]:
        filled = texts.fill_null("") if texts.null_count else texts
        signatures = self.signer.sign(native_documents(filled), threads=self.threads)
        self._waiting -= texts.nbytes
        return signatures


@contextmanager
def early_signatures(
    job: JobContext, signer: DocumentSigner, row_bytes: int
) -> Iterator[EarlySignatures | None]:
    """Yield a signer that works while documents are read; None if no core is idle."""
    if job.threads < 2:
        yield None
        return
    room = _MOST_BYTES
    if job.memory_limit is not None:
        room = min(room, job.memory_limit // _SHARE)
    pool = ThreadPoolExecutor(1)
    try:
        yield EarlySignatures(signer, row_bytes, job.threads, room, pool)
    finally:
        pool.shutdown(cancel_futures=True)


def read_documents(
    job: JobContext,
    source: Source,
    old: Source | OldSignatures | None,
    early: EarlySignatures | None,
) -> DocumentTable:
    """Read an old corpus, if there is one, and the corpus of the job.

    Documents known only by their signatures come first, with empty texts. `early` gets all texts.
    """
    work = job.work
    signatures = old if isinstance(old, OldSignatures) else None
    without_text = 0 if signatures is None else len(signatures.signatures)
    sources = [*([old] if isinstance(old, Source) else []), source]
    described = [one.described() for one in sources]
    repeatable = all(one.identity is not None for one in sources)
    known = None if signatures is None else signatures.identity
    key = digest("read", described, known, job.skip_bad)
    facts = work.facts("read", key) if repeatable else None
    if facts is not None:
        job.progress.reuse("read")
    else:
        work.begin("read")
        facts = _read_all(job, sources, without_text, early)
        names = ["texts", *(f"ids{at}" for at, one in enumerate(sources) if one.columns.id)]
        names += ["titles"] if source.columns.title else []
        made = [f"{name}.{part}" for name in names for part in ("bytes", "ends")]
        ordered = ["order.arrow"] if source.columns.order and facts["counts"][-1] else []
        work.complete("read", key, facts, [*made, *ordered])
    job.check_memory(sum(facts["counts"]) + without_text)
    last = len(sources) - 1
    count = without_text or sum(facts["counts"][:last])
    old_ids: Sequence[str] | StringsOnDisk | None = None
    if signatures is not None:
        old_ids = signatures.ids
    elif last and sources[0].columns.id:
        old_ids = StringsOnDisk(work, "ids0")
    return DocumentTable(
        texts=StringsOnDisk(work, "texts"),
        ids=StringsOnDisk(work, f"ids{last}") if source.columns.id else None,
        old_ids=old_ids,
        old=count,
        order=_ranks(work, count, facts["counts"][last]) if source.columns.order else None,
        key=key if repeatable else digest(key, np.random.default_rng().bytes(16).hex()),
        signatures_only=without_text,
        **{name: facts[name] for name in ("bad", "binary", "examples")},
        # Folders of earlier versions do not have these.
        left_out=facts.get("left_out", {}),
        files_left_out=facts.get("files", []),
        notices=facts.get("notices", []),
        titles=StringsOnDisk(work, "titles") if source.columns.title else None,
    )


def _read_all(
    job: JobContext, sources: Sequence[Source], without_text: int, early: EarlySignatures | None
) -> dict[str, Any]:
    """Write `without_text` empty texts, then all texts and ids; return facts about them."""
    problems = Problems(job.skip_bad)
    counts = []
    with ExitStack() as files:
        texts = StringsOnDisk.writer(files, job.work, "texts")
        texts.append_empty(without_text)
        for number, source in enumerate(sources):
            begin = texts.count
            ids = None
            if source.columns.id:
                ids = StringsOnDisk.writer(files, job.work, f"ids{number}")
            titles = None
            if source.columns.title:
                titles = StringsOnDisk.writer(files, job.work, "titles")
            _read(job, source, texts, ids, titles, early, problems)
            source.corpus.check_identity(source.identity)
            counts.append(texts.count - begin)
    pa.default_memory_pool().release_unused()  # batches are gone: later steps get their memory
    told = {
        name: getattr(problems, name) for name in ("bad", "binary", "examples", "left_out", "files")
    }
    return {"counts": counts, **told, "notices": problems.notices()}


def _read(
    job: JobContext,
    source: Source,
    texts: StringWriter,
    ids: StringWriter | None,
    titles: StringWriter | None,
    early: EarlySignatures | None,
    problems: Problems,
) -> None:
    """Append the documents of one corpus."""
    corpus, columns = source.corpus, source.columns
    row = 0
    order: list[Any] = []
    for batch in corpus.read(columns.names, problems):
        # Here `done` is that of the batches before.
        job.check_memory(texts.count, texts.count - row + round(row / (corpus.done or 1.0)))
        strings = text_strings(batch.column(0), columns.text, corpus)
        if early is not None:
            early.add(strings)
        texts.append(strings)
        if ids is not None:
            ids.append(id_strings(batch.column(1), row))
        if titles is not None and columns.title:
            titles.append(title_strings(batch.column(columns.names.index(columns.title))))
        if columns.order:
            order.append(comparable(batch.column(len(columns.names) - 1)))
        row += len(batch)
        _check_expansion(corpus, texts.size)
        job.progress.step("read", corpus.done)
    if columns.order and order:
        table = pa.table({"order": pa.chunked_array(order)})
        with (
            job.work.writer("order.arrow") as file,
            pa.ipc.new_file(file, table.schema) as writer,
        ):
            writer.write_table(table)


def _check_expansion(corpus: Corpus, size: int) -> None:
    """Refuse compressed files that were made to fill the disk."""
    packed = sum(file.stat().st_size for file in corpus.files) if size > _EXPANDED_BYTES else size
    if corpus.files and size > _EXPANSION * packed:
        raise DocumentError(
            f"{corpus.name} has {packed:,} bytes and expands to more than {size:,}. Above "
            f"{_EXPANDED_BYTES:,} bytes, the limit is {_EXPANSION:,} times the compressed size. If "
            "you trust the file, decompress it first"
        )


def comparable(column: Any) -> Any:
    """Return a column in a type that Arrow can rank."""
    column = undictionaried(column)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_floating(column.type):  # NaN is not a value
        return compute.if_else(compute.is_nan(column), None, column)
    return column


def dense_ranks(values: Any) -> NDArray[np.int64]:
    """Return dense ranks from 1, as numbers if every text is one; -1 for missing values."""
    ranks = np.full(len(values), -1, np.int64)
    if values.null_count == len(values):  # of any type, or of none
        return ranks
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        for kind in (pa.int64(), pa.float64()):
            with suppress(pa.ArrowInvalid):
                values = values.cast(kind)
                break
    try:
        dense = compute.rank(values, tiebreaker="dense")
    except pa.ArrowNotImplementedError as error:
        raise ArgumentError(
            f"the column to keep by is of type {values.type}, which has no order"
        ) from error
    there = values.is_valid().to_numpy()
    ranks[there] = dense.to_numpy()[there]
    return ranks


def _ranks(work: WorkFolder, old: int, count: int) -> NDArray[np.int64]:
    """Return the ranks of the column to keep by; -1 for old documents and missing values."""
    ranks = np.full(old + count, -1, np.int64)
    path = work.path("order.arrow")
    if count:
        with file_errors(path, "read"), pa.memory_map(str(path)) as file:
            ranks[old:] = dense_ranks(pa.ipc.open_file(file).read_all()["order"])
    return ranks
