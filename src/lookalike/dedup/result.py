"""Results of a job: which items are kept, which are dropped, and why.

`TextResult` and `VectorResult` are of rows of a corpus, `MediaResult` is of files.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path, flag, whole_number
from lookalike.corpora import Corpus, check_table_target, write_table
from lookalike.corpora.base import pa
from lookalike.corpora.columns import Columns, FilteredCorpus
from lookalike.corpora.tables import TableCorpus
from lookalike.corpora.writing import local_file
from lookalike.dedup import write
from lookalike.dedup.decide import Decision
from lookalike.dedup.pairs import (
    Flags,
    Floats,
    Ints,
    VerifiedPairs,
    concatenated,
    count_every_pair,
    every_pair,
    with_copies,
)
from lookalike.dedup.settings import DedupSettings, function_name
from lookalike.dedup.sign import Signed
from lookalike.dedup.summary import (
    Summarized,
    Wording,
    columns_text,
    features_lines,
    left_out_lines,
    text_wording,
)
from lookalike.display import Column, Displayed, TableColumns, Tabular
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.jobs.documents import DocumentTable
from lookalike.media import Medium, Problem, with_article
from lookalike.pages.marks import without_marks
from lookalike.shown import escape_terminal
from lookalike.storage.files import FileState

_LONGEST_NAME = 60

if TYPE_CHECKING:
    import pyarrow

    from lookalike.storage.changes import Changes


NOT_COMPARED = ("partly_compared", "common_features", "only_common")
"""Counts of what was left out of comparing documents."""


@dataclass(frozen=True, kw_only=True, repr=False)
class DedupCounts(Displayed):
    """How many of what. A count that does not apply to a kind of items is 0."""

    documents: int
    """Items that were compared: documents, rows with vectors, images or recordings."""
    kept: int
    exact_duplicates: int
    """Items with the text, vector or bytes of an earlier one; with `keep="none"`, that one, too."""
    near_duplicates: int
    """Other dropped items that were compared with the kept item."""
    estimated_duplicates: int = 0
    """Dropped because of signatures alone: without `verify`, or because of an old document without
    text. Not among exact and near-duplicates.
    """
    below_threshold: int = 0
    """Less similar than the threshold to the kept item: with `grouping="components"`, others may
    connect the two.
    """
    lowest_similarity: float | None = None
    """Of exact and near-duplicates with the kept items; None if there are none, and on Spark."""
    lowest_estimate: float | None = None
    """Of estimated duplicates with the kept items; None if there are none."""
    in_old: int = 0
    """Dropped because of a document of the old corpus."""
    groups: int
    """Groups of two or more items."""
    largest_group: int
    """Items of the largest group; 0 if there is none."""
    without_features: int = 0
    """Kept because they cannot be compared: too short, without a vector, of one color, silent."""
    bad_rows: int = 0
    binary_files: int = 0
    other_files: int = 0
    """Of another kind than images or recordings, and not looked at."""
    proposed_pairs: int = 0
    """Pairs of different texts that signatures, samples or common features propose."""
    compared_pairs: int = 0
    """Proposed pairs that were compared. The signatures of the others suggest a similarity far
    below the threshold; with `exact`, the others cannot reach it.
    """
    partly_compared: int = 0
    """Different documents with too many possible partners, compared with only some of these;
    `warnings` say which. 0 if no such limit was reached.
    """
    common_features: int = 0
    """Features that did not count: more than `common` documents have them."""
    only_common: int = 0
    """Different documents whose features all weigh nothing, so that they are similar to none."""
    verified_pairs: int
    estimated_pairs: int = 0
    """Verified pairs that were accepted by signatures alone."""
    bytes: int = 0
    bytes_saved: int | None = None
    """None where it is not known: of vectors, and on Spark."""
    left_out: int = 0
    """Filtered (`min_words`, `min_bytes`, `language`, `min_links`), or web pages, images or
    recordings that cannot be read.
    """
    short_documents: int | None = None
    """Documents of 1 to 120 characters; None where these did not choose the features."""

    @classmethod
    def of(
        cls,
        decision: Decision,
        first_equal: Ints,
        *,
        threshold: float = 0.0,
        keep: object = "first",
        old: int = 0,
        estimated: Flags | None = None,
        **more: Any,
    ) -> DedupCounts:
        """Count what a decision says of items after the first `old` ones; `more` are other counts.

        `estimated` says whether the similarity of each new item is an estimate.
        """
        similarity, sizes = decision.similarity[old:], np.bincount(decision.group_of[old:])
        items, duplicate_of = np.arange(len(first_equal)), decision.duplicate_of[old:]
        dropped = duplicate_of >= 0
        by_signatures = np.zeros(len(dropped), bool) if estimated is None else estimated
        compared = dropped & ~by_signatures
        equal = first_equal != items
        if keep == "none":  # the first of equal items is dropped, too
            equal = np.bincount(first_equal, minlength=len(items))[first_equal] > 1
        exact = int((equal[old:] & ~by_signatures).sum())
        stands_for = np.where(dropped, duplicate_of, items[old:])
        differ = first_equal[old:] != first_equal[stands_for]
        counts: dict[str, Any] = {
            "documents": len(dropped),
            "kept": int((~dropped).sum()),
            "exact_duplicates": exact,
            "near_duplicates": int(compared.sum()) - exact,
            "estimated_duplicates": int(by_signatures.sum()),
            "below_threshold": int((differ & (similarity < threshold)).sum()),
            "lowest_similarity": _least(similarity[compared]),
            "lowest_estimate": _least(similarity[by_signatures]),
            "groups": int((sizes > 1).sum()),
            "largest_group": int(sizes[sizes > 1].max(initial=0)),
        }
        return cls(**(counts | more))


def _least(values: Floats) -> float | None:
    return float(values.min()) if len(values) else None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class DedupResult(Tabular, Summarized):
    """Which items are kept, which are dropped, and why. Arrays have an element for each item.

    The table has a row for each item: `id`, `kept`, `group_id`, `duplicate_of` and `similarity`.
    `group_id` is the id of the first item of its group. `duplicate_of` is the id of the kept item
    that replaces it, and `similarity` that of the two. What does not apply is null. `annotated`
    adds these columns to the rows of the input.

    `la.dedup` returns a `TextResult`, `VectorResult` or `MediaResult`, which add what their kind
    has.
    """

    kind: str
    """What was compared: "text", "vectors", "images", "recordings"."""
    keep: Flags
    """Whether an item is kept."""
    group_of: Ints
    """The first item of each item's group; the item itself if it has no group."""
    duplicate_of: Ints
    """The kept item that replaces a dropped one; -1 for kept items, and if an old one does."""
    similarity: Floats
    """Of a dropped item with the one that replaces it; NaN for kept items."""
    matched_old: Ints
    """The item of the old corpus that a dropped item is a duplicate of; -1 for others."""
    first_equal: Ints
    """For each item the first with the same text, vector or bytes; old items come before others."""
    different_pairs: VerifiedPairs
    """Verified pairs of items that differ, by positions that count from the first old item. Of
    equal items, the first has the pairs."""
    made: datetime = field(default_factory=lambda: datetime.now(UTC))

    @cached_property
    def kept_rows(self) -> Ints:
        """The positions of kept items, ascending."""
        return np.flatnonzero(self.keep)

    @cached_property
    def group_sizes(self) -> Ints:
        """The number of items of the group that begins with each item; 0 for other items."""
        return np.bincount(self.group_of, minlength=len(self.group_of))

    @abstractmethod
    def kept(self) -> Any:
        """Return the kept items."""

    @abstractmethod
    def id(self, row: int) -> str | int:
        """Return the id of an item: that of a row, its position, or the path of a file."""

    @abstractmethod
    def ids(self, rows: Ints) -> Column:
        """Return the ids of items; missing for -1."""

    @property
    @abstractmethod
    def old(self) -> int:
        """The number of items of the old corpus; 0 without `against`."""

    @abstractmethod
    def old_id(self, row: int) -> str | int:
        """Return the id of an item of the old corpus."""

    def pair_batches(
        self, *, collapse: bool = False
    ) -> Iterator[tuple[VerifiedPairs, VerifiedPairs]]:
        """Yield pieces of `pairs` and `old_pairs`, in order, of any number of pairs.

        With `collapse`, equal items are paired with their first only, also with `exact`.
        """
        return write.split_pairs(
            with_copies(self.different_pairs, self.first_equal, self.old), self.old
        )

    @cached_property
    def pairs(self) -> VerifiedPairs:
        """Verified pairs of items; at most 100 million, else `ResultTooLargeError` is raised.

        Equal items are paired with their first only; equal texts with `exact`, with each other.
        """
        return self._all_pairs[0]

    @cached_property
    def old_pairs(self) -> VerifiedPairs:
        """Verified pairs of items of the old corpus (left) with items of the source (right)."""
        return self._all_pairs[1]

    @cached_property
    def _all_pairs(self) -> tuple[VerifiedPairs, VerifiedPairs]:
        parts = list(self.pair_batches())
        return concatenated([new for new, _ in parts]), concatenated([old for _, old in parts])

    def found(self, begin: int, end: int) -> dict[str, Column | NDArray[Any]]:
        """Return the columns of the table but the ids, for a range of items.

        With an old corpus, all of `duplicate_of` are strings.
        """
        return write.found_columns(self, np.arange(begin, end), self.ids, self.id, self.old_id)

    @abstractmethod
    def annotated_batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of `annotated`, a few thousand at a time, in constant memory."""

    def annotated(self) -> pyarrow.Table:
        """Return every item of the input with what was found about it, as an Arrow table.

        The columns of the input are followed by `id` (if the input has no such column), `kept`,
        `group_id`, `duplicate_of` and `similarity`. Files have `path`, `bytes` and facts such as
        `width`, and also a `distance`. If the table does not fit into memory, use
        `annotated_batches` or `write_annotated`.

        Raises:
            ArgumentError: If the input has a column with one of the other names.
            DocumentError: If the input has changed since it was read.

        Examples:
            >>> import lookalike as la
            >>> text = "the early bird gets the worm and sings"
            >>> table = la.dedup([text, "another text", text]).annotated()
            >>> table.select(["id", "kept", "duplicate_of"]).to_pylist()[2]
            {'id': 2, 'kept': False, 'duplicate_of': 0}
        """
        return pa.Table.from_batches(list(self.annotated_batches()))

    def groups(self) -> list[Ints]:
        """Return the items of each group of two or more, the largest group first.

        In a group, the kept item comes first, then the others by falling similarity.
        """
        similarity = np.where(self.keep, 2.0, self.similarity)
        order = np.lexsort((np.arange(len(self.keep)), -similarity, self.group_of))
        parts = np.split(order, np.flatnonzero(np.diff(self.group_of[order])) + 1)
        return sorted((part for part in parts if len(part) > 1), key=len, reverse=True)

    def report(self, path: str | Path, *, command: Sequence[str] | None = None) -> None:
        """Write one self-contained HTML file that shows what was found.

        Args:
            path: The file to write.
            command: The command that made the result, word by word. By default, the report says
                how to make it again in Python.
        """
        with self._target(path) as file:
            self._write_report(file, command)

    @abstractmethod
    def _target(self, path: str | os.PathLike[str]) -> AbstractContextManager[Path]:
        """Return a context with the path of a file to write."""

    @abstractmethod
    def _write_report(self, path: Path, command: Sequence[str] | None) -> None: ...

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Return the settings, in plain values."""

    def to_dict(self) -> dict[str, Any]:
        """Return kind, settings, counts, seconds and warnings, in plain values."""
        return {
            "kind": self.kind,
            "settings": self.described(),
            "counts": dict(vars(self.counts)),
            "seconds": {step: round(passed, 4) for step, passed in self.seconds.items()},
            "warnings": list(self.warnings),
        }

    def _values(self) -> dict[str, object]:
        told = ("documents", "kept", "exact_duplicates", "near_duplicates", "groups")
        return {"kind": self.kind, **{name: getattr(self.counts, name) for name in told}}

    def _columns(self, begin: int, end: int) -> TableColumns:
        return {"id": self.ids(np.arange(begin, end)).all_there(), **self.found(begin, end)}

    def _row_count(self) -> int:
        return len(self.keep)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RowsResult(DedupResult):
    """A result of rows of a corpus, which is read again to write them."""

    source: Corpus
    source_identity: list[Any] | None
    """The state of the source when it was read; see `Corpus.identity`."""
    skip_bad: bool = False
    limits: tuple[int | None, int | None] = (None, None)
    """Bytes of memory and threads for reading the source again and writing."""

    def kept(self) -> Any:
        """Return the kept rows: a list for a list, a frame for a frame, an Arrow table for files.

        If they do not fit into memory, use `write`.
        """
        source = self.source
        inner = source.inner if isinstance(source, FilteredCorpus) else source
        if isinstance(inner, TableCorpus) and isinstance(source, TableCorpus | FilteredCorpus):
            return source.select(self.kept_rows)
        return write.kept_table(self)

    def _target(self, path: str | os.PathLike[str]) -> AbstractContextManager[Path]:
        return local_file(path, self.source)

    def annotated_batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of `annotated`, a few thousand at a time, in constant memory."""
        return write.annotated_batches(self)

    def write(self, path: str | Path | BinaryIO, *, in_place: bool = False) -> int:
        """Write the kept rows with all their columns, unchanged; return how many.

        Args:
            path: A file whose name tells the format, an address such as
                s3://bucket/unique.jsonl, or a stream of bytes, which gets the format of the source.
            in_place: Whether a file that the source is read from may be replaced.
        """
        return write.write_rows(self, path, in_place)

    def write_annotated(self, path: str | Path | BinaryIO, *, in_place: bool = False) -> int:
        """Write every row with `group_id`, `duplicate_of` and `similarity` added.

        `group_id` is the id of the group's first row, null for a row without a group.
        `duplicate_of` is the id of the kept row that replaces a dropped one, and `similarity` that
        of the two; both are null for kept rows.
        """
        return write.write_rows(self, path, in_place, annotated=True)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TextResult(RowsResult):
    """A result of documents."""

    kind: str = "text"
    settings: DedupSettings
    features_reason: str | None = None
    """Why these features were chosen; None if the caller or an old corpus chose them."""
    estimated: Flags
    """Whether a similarity is estimated by signatures; others are exact."""
    rejected: VerifiedPairs
    """The most similar pairs below the threshold, at most 200."""
    columns: Columns
    documents: DocumentTable
    signed: Signed

    @property
    def old(self) -> int:
        """The number of documents of the old corpus; 0 without `against`."""
        return self.documents.old

    @cached_property
    def _all_pairs(self) -> tuple[VerifiedPairs, VerifiedPairs]:
        write.check_pair_count(self, DEFAULT_LIMIT, collapse=False)
        return super()._all_pairs

    def pair_batches(
        self, *, collapse: bool = False
    ) -> Iterator[tuple[VerifiedPairs, VerifiedPairs]]:
        """Yield pieces of `pairs` and `old_pairs`, in order, of any number of pairs.

        With `collapse`, equal texts are paired with their first only, also with `exact`.
        """
        of_documents = every_pair if self.settings.exact and not collapse else with_copies
        return write.split_pairs(
            of_documents(self.different_pairs, self.first_equal, self.old), self.old
        )

    @property
    def equal_pairs(self) -> int:
        """Number of `pairs` and `old_pairs` whose two texts are equal."""
        if self.settings.exact:
            return count_every_pair(self.different_pairs[:0], self.first_equal, self.documents.old)
        return self.counts.verified_pairs - len(self.different_pairs)

    @property
    def complete(self) -> bool:
        """Whether every pair at or above the threshold is known: with `exact`."""
        return self.settings.exact

    def text(self, row: int) -> str:
        """Return the text of a row."""
        return without_marks(self.documents.texts[self._new(row)])

    def old_text(self, row: int) -> str:
        """Return the text of a row of the old corpus; empty if only its signature is known."""
        return without_marks(self.documents.texts[self._old(row)])

    def id(self, row: int) -> str | int:
        """Return the id of a row, or its number."""
        return self.documents.id_of(self._new(row))

    def old_id(self, row: int) -> str | int:
        """Return the id of a row of the old corpus, or its number."""
        return self.documents.id_of(self._old(row))

    def ids(self, rows: Ints) -> Column:
        """Return the ids of rows; missing for -1."""
        return write.id_column(None if self.documents.ids is None else self.id, rows)

    def write_pairs(
        self, path: str | Path, *, limit: SupportsIndex = DEFAULT_LIMIT, collapse: bool = False
    ) -> int:
        """Write the verified pairs: `left`, `right`, `similarity`, `distance`; return how many.

        More than `limit` pairs raise `ResultTooLargeError` before anything is written. With
        `exact`, n equal texts are n (n - 1) / 2 pairs, and with `collapse` n - 1. With an old
        corpus, the column `old` says whether left is one of it.
        """
        most = whole_number("limit", limit, at_least=0)
        write.check_pair_count(self, most, collapse=flag("collapse", collapse))
        with self._target(path) as file:
            return write.write_text_pairs(self, file, collapse=collapse)

    def save_signatures(self, path: str | os.PathLike[str]) -> None:
        """Write a file for `against`: the signatures of old documents and of the kept rows.

        Do this last: if the job is repeated after a failure, it must not know these rows yet.
        """
        with self._target(path) as file:
            write.write_signatures(self, file)

    def _write_report(self, path: Path, command: Sequence[str] | None) -> None:
        from lookalike.dedup.report.page import write_report

        write_report(self, path, command)

    def wording(self) -> Wording:
        """Return the words for documents."""
        source = self.source
        about = source.unit or ("" if source.fixed_columns else columns_text(self.columns))
        lengths = self.documents.texts.lengths[self.documents.old :]
        median = float(np.median(lengths)) if len(lengths) else 0.0
        more = [
            *features_lines(self.settings, self.features_reason, median),
            *left_out_lines(self.documents.left_out),
        ]
        return text_wording(self.settings, about, more)

    def described(self) -> dict[str, Any]:
        """Return the settings, in plain values."""
        return self.settings.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """Return the base values, why features were chosen, whether pairs are complete, reused and
        overlapped steps, the columns that were read and the files that were left out.
        """
        return {
            **super().to_dict(),
            "features_reason": self.features_reason,
            "complete": self.complete,
            "reused": list(self.reused),
            "overlapped": list(self.overlapped),
            "columns": {"text": self.columns.text, "id": self.columns.id},
            "files_left_out": list(self.documents.files_left_out),
        }

    def _new(self, row: int) -> int:
        """Return the position of a row among all documents."""
        last = max(0, len(self.keep) - 1)
        return self.documents.old + whole_number("row", row, at_least=0, at_most=last)

    def _old(self, row: int) -> int:
        return whole_number("row", row, at_least=0, at_most=max(0, self.documents.old - 1))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class VectorResult(RowsResult):
    """A result of rows that were compared by the cosine of their vectors."""

    kind: str = "vectors"
    threshold: float
    recall: float
    """The chance that a pair at the threshold is found; 1 if all pairs were compared."""
    column: str
    """The column that has the vectors."""
    id_column: str | None
    settings: DedupSettings
    """How items are put together and chosen from."""
    dimensions: int
    """Numbers of a vector; 0 if there is none."""
    names: Sequence[str] | None
    """The ids of rows; None where their positions are the ids."""
    old: int = 0
    """The number of rows of the old corpus; 0 without `against`."""
    old_names: Sequence[str] | None = None
    """The ids of old rows; None where their positions are the ids."""

    def id(self, row: int) -> str | int:
        """Return the id of a row, or its number."""
        return row if self.names is None else self.names[row]

    def old_id(self, row: int) -> str | int:
        """Return the id of a row of the old corpus, or its number."""
        return row if self.old_names is None else self.old_names[row]

    def ids(self, rows: Ints) -> Column:
        """Return the ids of rows; missing for -1."""
        return write.id_column(None if self.names is None else self.id, rows)

    def write_pairs(self, path: str | Path) -> int:
        """Write the verified pairs: `left`, `right`, `similarity`; return how many.

        With an old corpus, the column `old` says whether left is one of it.
        """
        batches = write.all_pair_batches(self, self.ids, distances=False)
        with self._target(path) as file:
            return write_table(batches, file)

    def _write_report(self, path: Path, command: Sequence[str] | None) -> None:
        from lookalike.dedup.report.media import write_vector_report

        write_vector_report(self, path, command)

    def wording(self) -> Wording:
        """Return the words for rows with vectors."""
        sure = "all pairs compared" if self.recall == 1 else f"{self.recall:.1%} of such pairs"
        return Wording(
            items="rows",
            old="a row",
            about=f"vectors of {self.dimensions} dimensions",
            equal="the same vector, number by number",
            near=f"cosine of {self.threshold:g} or more",
            pairs=f"verified; found: {sure}",
            no_features="kept: without a vector",
        )

    def described(self) -> dict[str, Any]:
        """Return column, threshold and recall."""
        return {"vectors": self.column, "threshold": self.threshold, "recall": self.recall}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MediaResult(DedupResult):
    """A result of files such as images or recordings. Nothing is deleted."""

    medium: Medium[Any]
    memory_limit: int | None = None
    root: Path | None
    """The folder, if only a folder was given."""
    name: str
    several: bool
    """Whether more than one file or folder was given."""
    files: Sequence[Path]
    states: Sequence[FileState]
    """The state of each file before it was read; a file with another state has changed."""
    old_states: Sequence[FileState] = ()
    keep_rule: Any = "best"
    """Which file of a group is kept: a rule, or a function."""
    sizes: Ints
    """Bytes of each."""
    facts: Mapping[str, Sequence[Any]]
    """What is known of each, such as width and height."""
    descriptions: Sequence[str]
    distance: NDArray[np.int32]
    """The distance as the medium counts it; -1 for kept files, or where it counts none."""
    old_signed: Sequence[str] = ()
    """The ids of items of `against` that are known only by their signatures; they come first."""
    old_files: Sequence[Path] = ()
    """The files of `against`."""
    problems: Sequence[Problem]
    """Files that were left out, by path, with the reason."""
    known: int = 0
    """Files of which an earlier run had kept all that is needed, so that they were not read."""
    related: Sequence[tuple[Path, Path]] = ()
    """Pairs that are not similar, but have something in common, such as the sound of videos."""

    @property
    def old(self) -> int:
        """The number of old items; 0 without `against`."""
        return len(self.old_signed) + len(self.old_files)

    def old_id(self, row: int) -> str:
        """Return the path of an old file, or the id of an item that has only a signature."""
        place = whole_number("row", row, at_least=0, at_most=max(0, self.old - 1))
        signed = len(self.old_signed)
        return self.old_signed[place] if place < signed else str(self.old_files[place - signed])

    @cached_property
    def names(self) -> list[str]:
        """The paths of files, relative to the folder if only one was given."""
        root = self.root
        return [str(file.relative_to(root) if root is not None else file) for file in self.files]

    def id(self, row: int) -> str:
        """Return the path of a file, relative to the folder if only one was given."""
        return self.names[whole_number("row", row, at_least=0, at_most=len(self.files) - 1)]

    def ids(self, rows: Ints) -> Column:
        """Return the paths of files, as `id` returns them; missing for -1."""
        return write.id_column(self.id, rows)

    def found(self, begin: int, end: int) -> dict[str, Column | NDArray[Any]]:
        """Return the same columns and `distance`, as the medium counts it."""
        distance = write.distance_column(self.distance[begin:end])
        return {**super().found(begin, end), "distance": distance}

    def annotated_batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows of `annotated`, a few thousand at a time, in constant memory."""
        return write.annotated_files(self)

    def kept(self) -> list[Path]:
        """Return the kept files."""
        return [self.files[place] for place in np.flatnonzero(self.keep).tolist()]

    def dropped(self) -> list[Path]:
        """Return the files that could be deleted; each is similar to a kept one."""
        return [self.files[place] for place in np.flatnonzero(~self.keep).tolist()]

    def write(self, path: str | Path) -> int:
        """Copy the kept files into a new folder, or list them in a file; return how many.

        The suffix tells which: .txt has a path per line; .jsonl, .json, .csv, .tsv and .parquet are
        tables; none is a folder.
        """
        return write.write_kept_files(self, file_path("path", path))

    def write_dropped(self, path: str | Path) -> int:
        """List the dropped files; in a table, with the kept file that replaces each."""
        target = file_path("path", path)
        write.check_file_list(target)
        dropped = np.flatnonzero(~self.keep)
        by_group = dropped[np.argsort(self.group_of[dropped], kind="stable")]
        return write.write_files(self, by_group, target)

    def write_annotated(self, path: str | Path) -> int:
        """Write a table of all files: whether each is kept, its group, and the kept file.

        `group_id` is the path of the group's first file, null for a file without a group.
        `duplicate_of` is the path of the kept or old file that replaces a dropped one, with their
        `similarity` and `distance`; these are null for kept files.
        """
        target = file_path("path", path)
        check_table_target(target)
        return write.write_files(self, np.arange(len(self.files)), target)

    def write_pairs(self, path: str | Path) -> int:
        """Write the pairs: `left`, `right`, `similarity`, `distance`; return how many.

        With old files, the column `old` says whether left is one of them.
        """
        return write.write_file_pairs(self, file_path("path", path))

    def apply(
        self,
        action: str,
        folder: str | os.PathLike[str] | None = None,
        *,
        journal: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
    ) -> Changes:
        """Move the dropped files away, or replace them by links to the kept ones.

        A file that has changed since it was read, or whose kept file has, is left alone and named.
        No file is overwritten. `la.undo(journal)` undoes it, also after a crash.

        Args:
            action: "move" to a folder, under the paths that files have in the compared folder;
                "trash", that of the desktop; "hardlink" or "symlink" for files that are equal to
                the kept one, byte for byte, while others are left alone.
            folder: The folder for "move"; it is made if need be.
            journal: The new file for the journal (default: a name with the date and time, in the
                current folder).
            dry_run: Only return what would be done.

        Returns:
            What was done, which files were left alone and why, and the journal.

        Raises:
            ArgumentError: For another action, a missing folder, or with `keep="none"`.
            FileError: If the journal cannot be written; then nothing was changed.

        Examples:
            >>> from pathlib import Path
            >>> import lookalike as la
            >>> from PIL import Image
            >>> Path("pictures").mkdir()
            >>> for name in ("a", "b"):
            ...     Image.linear_gradient("L").save(f"pictures/{name}.png")
            >>> done = la.dedup("pictures", kind="images").apply("move", "copies", journal="moved")
            >>> sorted(path.name for path in Path("copies").iterdir()), len(done.left_alone)
            (['b.png'], 0)
            >>> len(la.undo("moved").done), Path("pictures/b.png").exists()
            (1, True)
        """
        from lookalike.dedup.apply import apply_to_files  # most jobs need none of it

        target = None if folder is None else file_path("folder", folder)
        return apply_to_files(
            self,
            action,
            target,
            None if journal is None else file_path("journal", journal),
            dry_run=flag("dry_run", dry_run),
        )

    def _target(self, path: str | os.PathLike[str]) -> AbstractContextManager[Path]:
        return nullcontext(file_path("path", path))

    def _write_report(self, path: Path, command: Sequence[str] | None) -> None:
        from lookalike.dedup.report.media import write_report

        write_report(self, path, command)

    def wording(self) -> Wording:
        """Return the words for files of the medium."""
        return Wording(
            items=self.kind,
            old=with_article(self.medium.noun),
            equal="the same file, byte for byte",
            near=self.medium.criterion(),
            estimated=self.medium.signed_criterion(),
            whose="",
            saved=", if the others are deleted",
            no_features=self.medium.no_features,
            left_out="could not be read",
            other_files=f"not {self.kind}: not looked at",
            more=[*self._unread(), *self._relation()],
        )

    def _unread(self) -> list[tuple[str, str, str]]:
        """Return a line about files that were not read again, if there are any."""
        note = "unchanged since an earlier run"
        return [("not read again", f"{self.known:,}", note)] if self.known else []

    def _relation(self) -> list[tuple[str, str, str]]:
        """Return a line about pairs that have something in common, if there are any."""
        if not self.related:
            return []
        name, note = self.medium.relation
        one, other = (escape_terminal(file.name, _LONGEST_NAME) for file in self.related[0])
        return [(name, f"{len(self.related):,}", f"{note}, such as {one} and {other}")]

    def described(self) -> dict[str, Any]:
        """Return the settings of the medium, and which file of a group is kept."""
        return {**self.medium.settings(), "keep": function_name(self.keep_rule)}

    def to_dict(self) -> dict[str, Any]:
        """Return kind, settings, counts, seconds, warnings and the files that were left out."""
        problems = [{"path": str(one.path), "reason": one.reason} for one in self.problems]
        return {**super().to_dict(), "left_out": problems}


if TYPE_CHECKING:

    class AnyResult(TextResult, VectorResult, MediaResult):  # type: ignore[misc]
        """What `la.dedup` returns, for type checkers: it has the attributes of every kind."""
