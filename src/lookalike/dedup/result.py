"""What a job has found, and what it can be asked for."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, SupportsIndex, cast

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import flag, whole_number
from lookalike.corpora import Corpus
from lookalike.corpora.columns import Columns, FilteredCorpus
from lookalike.corpora.tables import TableCorpus
from lookalike.corpora.writing import local_file
from lookalike.dedup.pairs import (
    VerifiedPairs,
    concatenated,
    count_every_pair,
    every_pair,
    with_copies,
)
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.sign import Signed
from lookalike.dedup.summary import summary_text
from lookalike.dedup.write import (
    check_pair_count,
    survivors_table,
    write_annotated,
    write_pairs,
    write_signatures,
    write_survivors,
)
from lookalike.errors import ArgumentError
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.jobs.documents import DocumentTable
from lookalike.pages.marks import without_marks

__all__ = ["DedupCounts", "DedupResult"]


@dataclass(frozen=True)
class DedupCounts:
    """How many of what."""

    documents: int
    kept: int
    exact_duplicates: int
    """Documents whose text has come before, byte for byte; one of each such group may stay."""
    near_duplicates: int
    """The other dropped ones that were compared with the one that stands for them."""
    estimated_duplicates: int
    """Dropped on the word of signatures alone: without `verify`, or because of an old document of
    which there is only the signature. These are not among exact and near-duplicates.
    """
    below_threshold: int
    """Dropped though less similar than the threshold to the one that stands for them, because
    others connect the two. None but with `cluster="components"`.
    """
    lowest_similarity: float | None
    """Of exact and near-duplicates with those that stand for them; None if there are none."""
    lowest_estimate: float | None
    """Of estimated duplicates with those that stand for them; None if there are none."""
    in_old: int
    """Dropped because of a document of the old corpus."""
    clusters: int
    """With two or more documents."""
    largest_cluster: int
    without_features: int
    """Too short to be compared: kept."""
    bad_rows: int
    binary_files: int
    proposed_pairs: int
    compared_pairs: int
    verified_pairs: int
    estimated_pairs: int
    """Of the verified ones, those that only signatures vouch for."""
    bytes: int
    bytes_saved: int
    left_out: int
    """Not among the documents: not wanted (`min_words`, `language`, `min_links`), or web pages that
    cannot be read.
    """


@dataclass(frozen=True, eq=False)
class DedupResult:
    """Who stays, who goes, and why. Arrays have an element per row of the source."""

    settings: DedupSettings
    keep: NDArray[np.bool_]
    """Whether a row survives."""
    clusters: NDArray[np.int64]
    """The first row of each row's cluster; itself where it stands alone."""
    duplicate_of: NDArray[np.int64]
    """The row that stands for a dropped one; -1 for those that stay or are in `matched_old`."""
    matched_old: NDArray[np.int64]
    """The row of the old corpus that a dropped row is a duplicate of; -1 for all others."""
    similarity: NDArray[np.float64]
    """Of a dropped row with the one that stands for it; NaN for those that stay. At least the
    threshold, unless `cluster` is "components".
    """
    estimated: NDArray[np.bool_]
    """Whether that similarity is what signatures say; all others are exact."""
    text_pairs: VerifiedPairs = field(repr=False)
    """Verified pairs of different texts, of documents that count from the first old one on."""
    rejected: VerifiedPairs
    """The most similar pairs below the threshold, at most 200."""
    counts: DedupCounts
    seconds: dict[str, float]
    reused: tuple[str, ...]
    """Steps of `seconds` that an earlier run in the same `work` had done, or had begun."""
    overlapped: tuple[str, ...]
    """Steps of which a part was done while documents were read: `seconds` has only the rest."""
    warnings: list[str]
    source: Corpus = field(repr=False)
    source_identity: list[Any] | None = field(repr=False)
    """What the source was when it was read; see `Corpus.identity`."""
    columns: Columns = field(repr=False)
    skip_bad: bool = field(repr=False)
    limits: tuple[int | None, int | None] = field(repr=False)
    """Bytes of memory and threads that reading the source again and writing may take."""
    documents: DocumentTable = field(repr=False)
    signed: Signed = field(repr=False)
    first_equal: NDArray[np.int64] = field(repr=False)
    """For each document, old ones first, the first with the same text."""
    made: datetime = field(default_factory=lambda: datetime.now(UTC), repr=False)
    """When."""

    @cached_property
    def pairs(self) -> VerifiedPairs:
        """Verified pairs of rows. Equal texts are paired with their first only, at similarity 1;
        with `exact`, with each other, so that every pair is there. More than 100 million raise
        `ResultTooLargeError`; `pair_batches` yields them in pieces.
        """
        return self._all_pairs[0]

    @cached_property
    def old_pairs(self) -> VerifiedPairs:
        """Verified pairs of rows of the old corpus (left) with rows of the source (right)."""
        return self._all_pairs[1]

    @cached_property
    def _all_pairs(self) -> tuple[VerifiedPairs, VerifiedPairs]:
        check_pair_count(self, DEFAULT_LIMIT, collapse=False)
        parts = list(self.pair_batches())
        return concatenated([new for new, _ in parts]), concatenated([old for _, old in parts])

    def pair_batches(
        self, *, collapse: bool = False
    ) -> Iterator[tuple[VerifiedPairs, VerifiedPairs]]:
        """Yield pieces of `pairs` and `old_pairs`, in order, so that not all are in memory.

        With `collapse`, equal texts are paired with their first only, also with `exact`.
        """
        old = self.documents.old
        of_documents = every_pair if self.settings.exact and not collapse else with_copies
        for part in of_documents(self.text_pairs, self.first_equal, old):
            is_old = part.left < old
            yield part[~is_old].moved(old, old), part[is_old].moved(0, old)

    @property
    def equal_pairs(self) -> int:
        """Number of `pairs` and `old_pairs` whose two texts are equal."""
        if self.settings.exact:
            none = self.text_pairs[np.arange(0)]
            return count_every_pair(none, self.first_equal, self.documents.old)
        return self.counts.verified_pairs - len(self.text_pairs)

    @property
    def complete(self) -> bool:
        """Whether every pair at or above the threshold is known: with `exact`."""
        return self.settings.exact

    @cached_property
    def survivors_rows(self) -> NDArray[np.int64]:
        """The rows that stay, ascending."""
        return np.flatnonzero(self.keep)

    def survivors(self) -> Any:
        """Return the rows that stay, as what came in: a list for a list, a frame for a frame.

        For files, an Arrow table; larger than memory, use `write`.
        """
        source = self.source
        inner = source.inner if isinstance(source, FilteredCorpus) else source
        if isinstance(inner, TableCorpus) and isinstance(source, TableCorpus | FilteredCorpus):
            return source.select(self.survivors_rows)
        return survivors_table(self)

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

    def write(self, path: str | Path | BinaryIO, *, in_place: bool = False) -> int:
        """Write the rows that stay to a file, or to a stream of bytes; return how many.

        See `la.dedup` for formats; to a stream, in that of the source. A file that the source is
        read from is refused, unless it is to be replaced: `in_place`. A file at an address such as
        s3://bucket/unique.jsonl is written locally first, and uploaded when it is complete.
        """
        with _target(path, self.source) as target:
            return write_survivors(self, target, in_place=flag("in_place", in_place))

    def write_annotated(self, path: str | Path | BinaryIO, *, in_place: bool = False) -> int:
        """Write every row with `cluster`, `duplicate_of` and `similarity` added."""
        with _target(path, self.source) as target:
            return write_annotated(self, target, in_place=flag("in_place", in_place))

    def write_pairs(
        self, path: str | Path, *, limit: SupportsIndex = DEFAULT_LIMIT, collapse: bool = False
    ) -> int:
        """Write the verified pairs: `left`, `right`, `similarity`, `distance`.

        More than `limit` pairs raise `ResultTooLargeError` before anything is written. With
        `exact`, n equal texts are n (n - 1) / 2 pairs, and with `collapse` n - 1: each copy is
        paired with the first one.
        """
        check_pair_count(
            self, whole_number("limit", limit, at_least=0), collapse=flag("collapse", collapse)
        )
        with local_file(path, self.source) as file:
            return write_pairs(self, file, collapse=collapse)

    def save_signatures(self, path: str | os.PathLike[str]) -> None:
        """Write a file for `against`: the signatures of old documents and of the rows that stay.

        To be done last: whoever comes back after a failure must not find these rows known.
        """
        with local_file(path, self.source) as file:
            write_signatures(self, file)

    def report(self, path: str | Path, *, command: Sequence[str] | None = None) -> None:
        """Write a page that shows what was found: one HTML file that needs nothing else.

        `command` is what was typed for it, word by word; without, the page says how to make it
        again in Python.
        """
        from lookalike.dedup.report.page import write_report

        with local_file(path, self.source) as file:
            write_report(self, file, command)

    def summary(self) -> str:
        """Return what was found in a few lines."""
        return summary_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return settings, whether pairs are complete, counts, seconds, reused and overlapped
        steps, warnings, the columns that were read and the files that were left out, in plain
        values.
        """
        return {
            "settings": self.settings.to_dict(),
            "complete": self.complete,
            "counts": dict(vars(self.counts)),
            "seconds": {step: round(passed, 4) for step, passed in self.seconds.items()},
            "reused": list(self.reused),
            "overlapped": list(self.overlapped),
            "warnings": list(self.warnings),
            "columns": {"text": self.columns.text, "id": self.columns.id},
            "files_left_out": list(self.documents.files_left_out),
        }

    def _new(self, row: int) -> int:
        """Return where a row is among all documents."""
        return self.documents.old + whole_number(
            "row", row, at_least=0, at_most=max(0, len(self.keep) - 1)
        )

    def _old(self, row: int) -> int:
        return whole_number("row", row, at_least=0, at_most=max(0, self.documents.old - 1))

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"DedupResult(documents={counts.documents}, kept={counts.kept}, "
            f"exact_duplicates={counts.exact_duplicates}, "
            f"near_duplicates={counts.near_duplicates}, clusters={counts.clusters})"
        )


@contextmanager
def _target(path: str | Path | BinaryIO, source: Corpus) -> Iterator[Path | BinaryIO]:
    """Yield a stream as it is, anything else as the file to write."""
    if isinstance(path, io.TextIOBase):
        raise ArgumentError("path is a stream of text; expected one of bytes, such as its buffer")
    if hasattr(path, "write"):
        yield cast(BinaryIO, path)
    else:
        with local_file(path, source) as file:
            yield file
