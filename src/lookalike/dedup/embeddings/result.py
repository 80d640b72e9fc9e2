"""What was found among vectors, and what it can be asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import flag
from lookalike.corpora import Corpus, write_corpus, write_table
from lookalike.corpora.base import BATCH_ROWS, pa
from lookalike.corpora.writing import local_file
from lookalike.dedup.pairs import VerifiedPairs
from lookalike.dedup.summary import share_text, similarity_text

__all__ = ["VectorDedupCounts", "VectorDedupResult"]


@dataclass(frozen=True)
class VectorDedupCounts:
    """How many of what."""

    documents: int
    dimensions: int
    """Numbers that a vector has; 0 if there is none."""
    kept: int
    exact_duplicates: int
    """Rows whose vector an earlier row has, number by number, whatever the threshold; with
    `keep="none"` that earlier row, too.
    """
    near_duplicates: int
    """The other dropped rows."""
    below_threshold: int
    """Dropped though less similar than the threshold to the one that stands for them, because
    others connect the two. None but with `cluster="components"`.
    """
    lowest_similarity: float | None
    """Of dropped rows with those that stand for them; None if there are none."""
    clusters: int
    """With two or more rows."""
    largest_cluster: int
    without_vector: int
    """Rows whose vector is null: kept."""
    verified_pairs: int
    """Of different vectors."""


@dataclass(frozen=True, eq=False)
class VectorDedupResult:
    """Who stays, who goes, and why. Arrays have an element per row of the source."""

    threshold: float
    recall: float
    """The chance that a pair at the threshold is found; 1 if each was compared with each."""
    column: str
    """Which column has the vectors."""
    keep: NDArray[np.bool_]
    """Whether a row survives."""
    clusters: NDArray[np.int64]
    """The first row of each row's cluster; itself where it stands alone."""
    duplicate_of: NDArray[np.int64]
    """The row that stands for a dropped one; -1 for those that stay."""
    similarity: NDArray[np.float64]
    """The true cosine of a dropped row and the one that stands for it; NaN for those that stay."""
    pairs: VerifiedPairs = field(repr=False)
    """Pairs at or above the threshold; of equal vectors the first stands for all."""
    counts: VectorDedupCounts
    seconds: dict[str, float]
    warnings: list[str]
    ids: Sequence[str] | None = field(repr=False)
    """What rows are called; None where their numbers are."""
    first_equal: NDArray[np.int64] = field(repr=False)
    """For each row the first with the same vector."""
    source: Corpus = field(repr=False)
    source_identity: list[Any] | None = field(repr=False)

    def id(self, row: int) -> str | int:
        """Return what a row is called."""
        return row if self.ids is None else self.ids[row]

    def write(self, path: str | os.PathLike[str] | BinaryIO, *, in_place: bool = False) -> int:
        """Write the rows that stay, with all their columns, as they were; return how many."""
        return self._write(path, in_place, keep=self.keep)

    def write_annotated(
        self, path: str | os.PathLike[str] | BinaryIO, *, in_place: bool = False
    ) -> int:
        """Write all rows with `cluster`, `duplicate_of` and `similarity`, as `la.dedup` does."""
        sizes = np.bincount(self.clusters, minlength=len(self.clusters))

        def added(begin: int, end: int) -> dict[str, Any]:
            rows = slice(begin, end)
            labels, own = self.clusters[rows], self.duplicate_of[rows]
            similarity = self.similarity[rows]
            return {
                "cluster": self._named(labels, sizes[labels] < 2),
                "duplicate_of": self._named(own, own < 0),
                "similarity": pa.array(similarity, pa.float64(), mask=np.isnan(similarity)),
            }

        return self._write(path, in_place, keep=np.ones(len(self.keep), bool), added=added)

    def write_pairs(self, path: str | os.PathLike[str]) -> int:
        """Write the verified pairs: `left`, `right`, `similarity`; return how many."""
        none = np.zeros(0, bool)

        def batches() -> Any:
            for start in range(0, max(1, len(self.pairs)), BATCH_ROWS):
                part = self.pairs[np.arange(start, min(len(self.pairs), start + BATCH_ROWS))]
                yield pa.record_batch(
                    {
                        "left": self._named(part.left, none),
                        "right": self._named(part.right, none),
                        "similarity": pa.array(part.similarity),
                    }
                )

        with local_file(path, self.source) as file:
            return write_table(batches(), file)

    def summary(self) -> str:
        """Return what was found in a few lines."""
        counts = self.counts
        alike = f"cosine of {self.threshold:g} or more"
        sure = "each compared with each" if self.recall == 1 else f"{self.recall:.1%} of such pairs"
        lines = [
            ("rows", counts.documents, f"vectors of {counts.dimensions} dimensions"),
            ("exact duplicates", counts.exact_duplicates, "the same vector, number by number"),
            ("near-duplicates", counts.near_duplicates, alike),
            ("kept", counts.kept, f"{share_text(counts.kept, counts.documents)} of the rows"),
            ("clusters", counts.clusters, f"the largest has {counts.largest_cluster:,}"),
            ("pairs", counts.verified_pairs, f"verified; found: {sure}"),
        ]
        if counts.below_threshold:
            lines.append(("below threshold", counts.below_threshold, "others connect them"))
        if counts.without_vector:
            lines.append(("without vector", counts.without_vector, "kept"))
        text = [f"  {name:<18} {count:>12,}  {note}".rstrip() for name, count, note in lines]
        if counts.lowest_similarity is not None:
            lowest = similarity_text(counts.lowest_similarity)
            text.append(f"  {'lowest similarity':<18} {lowest:>12}  of a row that goes")
        text += ["", *(f"  {name:<18} {one:>12.2f} s" for name, one in self.seconds.items())]
        text += [f"\nwarning: {warning}" for warning in self.warnings]
        return "\n".join(text)

    def to_dict(self) -> dict[str, Any]:
        """Return settings, counts, seconds and warnings in plain values."""
        return {
            "settings": {
                "vectors": self.column,
                "threshold": self.threshold,
                "recall": self.recall,
            },
            "counts": asdict(self.counts),
            "seconds": {name: round(one, 4) for name, one in self.seconds.items()},
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"VectorDedupResult(documents={counts.documents}, kept={counts.kept}, "
            f"exact_duplicates={counts.exact_duplicates}, "
            f"near_duplicates={counts.near_duplicates}, clusters={counts.clusters})"
        )

    def _named(self, rows: NDArray[np.int64], missing: NDArray[np.bool_]) -> Any:
        """Return ids of rows as Arrow, null where they are missing."""
        absent = missing if len(missing) else np.zeros(len(rows), bool)
        if self.ids is None:
            return pa.array(rows, pa.int64(), mask=absent)
        named = [None if gone else self.ids[row] for row, gone in zip(rows, absent, strict=True)]
        return pa.array(named, pa.string())

    def _write(self, path: Any, in_place: bool, **rows: Any) -> int:
        named = isinstance(path, str | os.PathLike)
        with local_file(path, self.source) if named else nullcontext(path) as target:
            self.source.check_identity(self.source_identity)
            return write_corpus(
                self.source,
                target,
                identity=self.source_identity,
                in_place=flag("in_place", in_place),
                **rows,
            )
