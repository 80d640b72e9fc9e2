"""What was removed from texts, and how the rest is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import flag, whole_number
from lookalike.cleaning.repeats import Removals, UnitCounts, merged_ranges
from lookalike.cleaning.settings import UNITS, CleanSettings
from lookalike.corpora import Corpus, check_table_target, write_source, write_table
from lookalike.corpora.base import pa
from lookalike.corpora.columns import Columns
from lookalike.corpora.writing import local_file
from lookalike.dedup.pairs import Flags, Ints
from lookalike.dedup.summary import columns_text, left_out_lines, share_text, size_text
from lookalike.display import Column, Displayed, Records, TableColumns, Tabular, arrow_batch
from lookalike.features import Words
from lookalike.jobs.documents import DocumentTable
from lookalike.shown import counted

if TYPE_CHECKING:
    import pyarrow

_AT_A_TIME = 1 << 14
_TEXTS_AT_A_TIME = 1 << 12
_SCATTERED = 1 << 9
"""Texts anywhere in a file, of which the system may load more than was asked for."""


@dataclass(frozen=True, kw_only=True, repr=False)
class CleanCounts(Displayed):
    """How much was removed."""

    documents: int
    changed: int
    """Documents from which something was removed."""
    dropped: int
    """Changed documents that were left with too few words, and are not written."""
    ranges: int
    """Ranges of text that were removed."""
    words: int
    """Removed words."""
    bytes: int
    bytes_removed: int
    """Removed from texts; dropped documents do not add to it."""
    rounds: int
    """Rounds that removed text: later ones find what removing text has made."""
    bad_rows: int = 0
    binary_files: int = 0


@dataclass(frozen=True, repr=False)
class RemovedUnit(Displayed):
    """A line, sentence or paragraph that was removed from documents."""

    text: str
    documents: int
    """Documents that had it."""
    copies: int
    """Places where it was."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CleanedTexts(ABC):
    """What is known of removed text, on every engine."""

    settings: CleanSettings
    seconds: dict[str, float]
    reused: tuple[str, ...] = ()
    warnings: list[str]
    columns: Columns

    @property
    @abstractmethod
    def counts(self) -> CleanCounts:
        """How much was removed."""

    @property
    @abstractmethod
    def unit_count(self) -> int:
        """The number of different units that were removed."""

    @property
    def about_documents(self) -> str:
        """A note beside the number of documents."""
        return columns_text(self.columns)

    @property
    def left_out(self) -> Mapping[str, int]:
        """Documents that were left out, by kind."""
        return {}

    def summary(self) -> str:
        """Return counts and times, a line each."""
        lines = [f"  {name:<18} {value:>12}  {note}".rstrip() for name, value, note in about(self)]
        lines += [f"\nwarning: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return settings, counts, seconds, warnings and columns in plain values."""
        return {
            "settings": self.settings.to_dict(),
            "counts": vars(self.counts),
            "seconds": {step: round(passed, 4) for step, passed in self.seconds.items()},
            "reused": list(self.reused),
            "warnings": list(self.warnings),
            "columns": {"text": self.columns.text, "id": self.columns.id},
            "left_out": dict(self.left_out),
        }

    def read_counts(self) -> tuple[int, list[str]]:
        """Return how many rows could not be read, and examples."""
        counts = self.counts
        return counts.bad_rows + counts.binary_files + sum(self.left_out.values()), []


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CleanResult(CleanedTexts, Tabular):
    """What was removed from a corpus, and where its first copy is.

    The table has a row for each removed range of text, by document and place: `id`, `begin`, `end`
    and `words`. Places are characters of the original text, end exclusive. `copy_of` is the id of
    the document that has the first copy, at `copy_begin` to `copy_end`. Ranges that touch are
    removed together. The words of a first copy are kept, unless they are also part of a run that
    occurs even earlier.
    """

    removals: Removals
    """Ranges of bytes."""
    unit_counts: UnitCounts
    rounds: int
    changed: Ints
    """Positions of documents from which something was removed, ascending."""
    words_left: Ints
    """The number of words that each of these has left."""
    source: Corpus
    source_identity: list[Any] | None
    skip_bad: bool = False
    limits: tuple[int | None, int | None] = (None, None)
    documents: DocumentTable
    made: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __len__(self) -> int:
        return len(self.removals.documents)

    @cached_property
    def keep(self) -> Flags:
        """Whether a document is written: it has enough words left, or nothing was removed."""
        keep = np.ones(len(self.documents), np.bool_)
        keep[self.changed[self.words_left < int(self.settings.min_left)]] = False
        return keep

    @cached_property
    def counts(self) -> CleanCounts:
        """How much was removed."""
        ranges, documents = self._ranges, self.documents
        return CleanCounts(
            documents=len(documents),
            changed=len(self.changed),
            dropped=int(np.count_nonzero(~self.keep)),
            ranges=len(ranges.documents),
            words=int(self.removals.words.sum()),
            bytes=int(documents.texts.lengths.sum()),
            bytes_removed=int((ranges.ends - ranges.begins).sum()),
            rounds=self.rounds,
            bad_rows=documents.bad,
            binary_files=documents.binary,
        )

    @cached_property
    def _ranges(self) -> Removals:
        return merged_ranges(self.removals)

    @cached_property
    def _offsets(self) -> Ints:
        return self._ranges.offsets(len(self.documents))

    def id(self, row: SupportsIndex) -> str | int:
        """Return the id of a document, or its position."""
        return self.documents.id_of(self._row(row))

    def text(self, row: SupportsIndex) -> str:
        """Return the cleaned text of a document."""
        at = self._row(row)
        return str(self._cleaned(np.array([at], np.int64))[0].as_py())

    def original(self, row: SupportsIndex) -> str:
        """Return the text of a document as it was."""
        return self.documents.texts[self._row(row)]

    def removed_text(self, number: SupportsIndex) -> str:
        """Return the text of a removed range: of a row of the table."""
        at = whole_number("number", number, at_least=0, at_most=max(0, len(self) - 1))
        return self._part(self.removals.documents, self.removals.begins, self.removals.ends, at)

    def copied_text(self, number: SupportsIndex) -> str:
        """Return the first copy of a removed range, as it was."""
        at = whole_number("number", number, at_least=0, at_most=max(0, len(self) - 1))
        found = self.removals
        return self._part(found.copy_documents, found.copy_begins, found.copy_ends, at)

    def texts(self) -> list[str]:
        """Return the cleaned texts of the documents that are not dropped."""
        rows = np.flatnonzero(self.keep)
        return [
            text
            for begin in range(0, len(rows), _TEXTS_AT_A_TIME)
            for text in self._cleaned(rows[begin : begin + _TEXTS_AT_A_TIME]).to_pylist()
        ]

    def units(self, limit: SupportsIndex = 1000) -> Records[RemovedUnit]:
        """Return the removed units with their counts, at most `limit`; the most frequent first."""
        most = whole_number("limit", limit, at_least=0)
        found, texts = self.unit_counts, self.documents.texts.documents
        order = np.lexsort((found.begins, found.documents, -found.place_counts))[:most]
        made = []
        unit = UNITS.index(self.settings.unit or "line")
        for at in order.tolist():
            number = int(found.documents[at])
            text = unit_text(texts.part(number, number + 1), unit, int(found.begins[at]))
            made.append(
                RemovedUnit(text, int(found.document_counts[at]), int(found.place_counts[at]))
            )
        return Records(RemovedUnit, made)

    def write(self, path: str | Path | BinaryIO, *, in_place: bool = False) -> int:
        """Write the cleaned documents with all their columns; return how many.

        Documents from which nothing was removed are unchanged, byte for byte.

        Args:
            path: A file whose name tells the format, an address such as s3://bucket/clean.jsonl,
                or a stream of bytes, which gets the format of the source.
            in_place: Whether a file that the source is read from may be replaced.
        """
        replaced = self.columns.text, self._replaced
        return write_source(self, path, in_place, keep=self.keep, replaced=replaced)

    def write_annotated(self, path: str | Path | BinaryIO, *, in_place: bool = False) -> int:
        """Write every document unchanged, with columns that say what would be removed.

        `removed_words` is a number, `removed_ranges` lists characters such as "0-30,120-480", and
        `kept` is false for a document that would be dropped.
        """
        every = np.ones(len(self.documents), np.bool_)
        return write_source(self, path, in_place, keep=every, added=self._added)

    def write_removed(self, path: str | Path, *, with_text: bool = False) -> int:
        """Write the table of removed ranges, with their texts if asked; return how many."""
        with local_file(path, self.source) as target:
            check_table_target(target)
            return write_table(self._batches(flag("with_text", with_text)), target)

    def report(self, path: str | Path, *, command: Sequence[str] | None = None) -> None:
        """Write one self-contained HTML file that shows what was removed.

        `command` is the command that made the result, word by word. By default, the page says how
        to make it again in Python.
        """
        from lookalike.cleaning.report.page import write_report

        with local_file(path, self.source) as target:
            write_report(self, target, command)

    @property
    def unit_count(self) -> int:
        """The number of different units that were removed."""
        return len(self.unit_counts.documents)

    @property
    def about_documents(self) -> str:
        """A note beside the number of documents."""
        return self.source.unit or ("" if self.source.fixed_columns else super().about_documents)

    @property
    def left_out(self) -> Mapping[str, int]:
        """Documents that were left out, by kind."""
        return self.documents.left_out

    def to_dict(self) -> dict[str, Any]:
        """Return settings, counts, seconds, warnings and columns in plain values."""
        return {**super().to_dict(), "files_left_out": list(self.documents.files_left_out)}

    def read_counts(self) -> tuple[int, list[str]]:
        """Return how many rows could not be read, and examples."""
        return super().read_counts()[0], self.documents.examples

    def _row(self, row: SupportsIndex) -> int:
        return whole_number("row", row, at_least=0, at_most=max(0, len(self.documents) - 1))

    def _bytes(self, document: int, begin: int, end: int) -> str:
        return self.documents.texts._bytes(document)[begin:end].tobytes().decode()

    def _part(self, documents: Ints, begins: Ints, ends: Ints, at: int) -> str:
        return self._bytes(int(documents[at]), int(begins[at]), int(ends[at]))

    def _cleaned(self, rows: Ints) -> Any:
        """Return the cleaned texts of ascending rows, as Arrow."""
        ranges, offsets = self._ranges, self._offsets
        firsts, lasts = offsets[rows], offsets[rows + 1]
        places = np.concatenate([np.zeros(1, np.int64), np.cumsum(lasts - firsts)])
        chosen = np.repeat(firsts - places[:-1], lasts - firsts) + np.arange(places[-1])
        data, begins = _native.without_ranges(
            self.documents.texts.documents.take(np.ascontiguousarray(rows)),
            places,
            np.ascontiguousarray(ranges.begins[chosen]),
            np.ascontiguousarray(ranges.ends[chosen]),
        )
        self.documents.texts.release()
        buffers = [None, pa.py_buffer(begins), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_string(), len(rows), buffers)

    def _replaced(self, begin: int, end: int) -> tuple[NDArray[np.bool_], Any]:
        """Return which rows of a range have other texts, and these."""
        first, last = np.searchsorted(self.changed, [begin, end]).tolist()
        rows = np.asarray(self.changed[first:last])
        mask = np.zeros(end - begin, np.bool_)
        mask[rows - begin] = True
        return mask, self._cleaned(rows)

    def _added(self, begin: int, end: int) -> dict[str, Any]:
        first, last = np.searchsorted(self._ranges.documents, [begin, end]).tolist()
        documents = np.asarray(self._ranges.documents[first:last])
        begins, ends = self._characters(documents, self._ranges, slice(first, last))
        words = np.bincount(documents - begin, self._ranges.words[first:last], end - begin).astype(
            np.int64
        )
        listed: list[list[str]] = [[] for _ in range(end - begin)]
        for row, one, two in zip(
            (documents - begin).tolist(), begins.tolist(), ends.tolist(), strict=True
        ):
            listed[row].append(f"{one}-{two}")
        ranges = [",".join(some) for some in listed]
        batch = arrow_batch(
            {
                "removed_words": words,
                "removed_ranges": Column(ranges, str),
                "kept": self.keep[begin:end],
            }
        )
        return {name: batch.column(name) for name in batch.schema.names}

    def _characters(self, documents: Ints, found: Removals, rows: slice) -> tuple[Ints, Ints]:
        texts = self.documents.texts.documents
        numbers = np.repeat(documents, 2)
        bytes = np.stack([found.begins[rows], found.ends[rows]], axis=1).reshape(-1)
        places = _native.characters_at(texts, numbers, np.ascontiguousarray(bytes))
        return places[::2], places[1::2]

    def _batches(self, with_text: bool) -> Iterator[pyarrow.RecordBatch]:
        for begin in range(0, max(1, len(self)), _AT_A_TIME):
            end = min(begin + _AT_A_TIME, len(self))
            columns = dict(self._columns(begin, end))
            if with_text:
                columns["text"] = Column([self.removed_text(at) for at in range(begin, end)], str)
            yield arrow_batch(columns)

    def _ids(self, rows: Ints) -> NDArray[Any] | Column:
        ids = self.documents.ids
        if ids is None:
            return np.array(rows, np.int64)
        return Column([ids[row] for row in rows.tolist()], str)

    def _columns(self, begin: int, end: int) -> TableColumns:
        rows, found = slice(begin, end), self.removals
        documents = np.ascontiguousarray(found.documents[rows])
        begins, ends = self._characters(documents, found, rows)
        copies = np.ascontiguousarray(found.copy_documents[rows])
        texts = self.documents.texts.documents
        order = np.lexsort((found.copy_begins[rows], copies))
        copied = []
        for column in (found.copy_begins[rows], found.copy_ends[rows]):
            places = np.empty(len(order), np.int64)
            places[order] = _native.characters_at(
                texts, copies[order], np.ascontiguousarray(column[order])
            )
            copied.append(places)
        return {
            "id": self._ids(documents),
            "begin": begins,
            "end": ends,
            "words": np.array(found.words[rows]),
            "copy_of": self._ids(copies),
            "copy_begin": copied[0],
            "copy_end": copied[1],
        }

    def _row_count(self) -> int:
        return len(self)

    def _values(self) -> dict[str, object]:
        counts = self.counts
        return {"documents": counts.documents, "changed": counts.changed, "words": counts.words}


def unit_text(document: _native.Documents, unit: int, begin: int) -> str:
    """Return the unit of the only text that begins at a byte, without space around it."""
    begins = _native.units(document, unit)
    end = int(np.searchsorted(begins, begin, "right"))
    text = document.to_list()[0].encode()
    return text[begin : None if end == len(begins) else int(begins[end])].decode().strip()


def left_words(documents: DocumentTable, removals: Removals) -> tuple[Ints, Ints]:
    """Return the documents from which something was removed, and how many words each has left."""
    changed, first = np.unique(removals.documents, return_index=True)
    if not len(changed):
        return changed, np.empty(0, np.int64)
    removed = np.add.reduceat(removals.words, first)
    texts, kind = documents.texts.documents, Words()
    counts = []
    for begin in range(0, len(changed), _SCATTERED):
        some = texts.take(changed[begin : begin + _SCATTERED])
        counts.append(np.asarray(kind.counts(some)))
        documents.texts.release()
    return changed, np.concatenate(counts).astype(np.int64) - removed


def about(result: CleanedTexts) -> list[tuple[str, str, str]]:
    """Return the facts about a result: name, value and note."""
    counts, settings = result.counts, result.settings
    unit = settings.unit or "run"
    kind = f"runs of {settings.words} words or more" if settings.unit is None else f"{unit}s"
    kind += f" with gaps of up to {counted(int(settings.gap), 'word')}" if settings.gap else ""
    which = "and their first copies" if settings.every else "all but their first copies"
    lines = [
        ("documents", f"{counts.documents:,}", result.about_documents),
        ("changed", f"{counts.changed:,}", share_text(counts.changed, counts.documents)),
        ("removed ranges", f"{counts.ranges:,}", f"{kind} that occur again, {which}"),
        ("removed words", f"{counts.words:,}", ""),
        (
            "removed",
            share_text(counts.bytes_removed, counts.bytes),
            f"{size_text(counts.bytes_removed)} of {size_text(counts.bytes)} of text",
        ),
    ]
    if settings.unit is not None:
        found = result.unit_count
        lines.insert(2, (f"different {unit}s", f"{found:,}", "that were removed somewhere"))
    if counts.dropped:
        note = f"left with fewer than {counted(int(settings.min_left), 'word')}"
        lines.append(("dropped", f"{counts.dropped:,}", note))
    if counts.rounds > 1:
        note = "removing text made new repeats, which were removed, too"
        lines.append(("rounds", f"{counts.rounds:,}", note))
    rare = [
        ("bad rows", counts.bad_rows, "left out"),
        ("binary files", counts.binary_files, "left out: not text"),
    ]
    lines += [(name, f"{count:,}", note) for name, count, note in rare if count]
    lines += left_out_lines(result.left_out)
    steps = ", ".join(
        f"{step} {passed:.2f}{' (from an earlier run)' * (step in result.reused)}"
        for step, passed in result.seconds.items()
    )
    lines.append(("seconds", f"{sum(result.seconds.values()):.2f}", steps))
    return lines
