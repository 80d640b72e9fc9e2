"""What was found in a folder of images or recordings, and what it can be asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path
from lookalike.dedup.media.medium import Medium, Problem
from lookalike.dedup.media.summary import summary_text
from lookalike.dedup.media.write import (
    write_annotated,
    write_dropped,
    write_pairs,
    write_survivors,
)
from lookalike.dedup.pairs import VerifiedPairs

__all__ = ["MediaCounts", "MediaResult"]


@dataclass(frozen=True)
class MediaCounts:
    """How many of what."""

    files: int
    """That were read: of this kind, and not broken."""
    kept: int
    exact_duplicates: int
    """Files whose bytes have come before; one of each such group may stay."""
    near_duplicates: int
    """The other ones that were dropped."""
    clusters: int
    """With two or more files."""
    largest_cluster: int
    pairs: int
    """Of files that differ and are alike."""
    left_out: int
    """What could not be read; `problems` names each."""
    other_files: int
    """Of another kind, and not looked at."""
    bytes: int
    bytes_saved: int

    @classmethod
    def of(
        cls,
        *,
        clusters: NDArray[np.int64],
        duplicate_of: NDArray[np.int64],
        first: NDArray[np.int64],
        sizes: NDArray[np.int64],
        pairs: int,
        left_out: int,
        other_files: int,
    ) -> MediaCounts:
        """Count."""
        members = np.bincount(clusters, minlength=1)
        dropped = duplicate_of >= 0
        equal = first != np.arange(len(first))
        return cls(
            files=len(clusters),
            kept=int((~dropped).sum()),
            exact_duplicates=int(equal.sum()),
            near_duplicates=int(dropped.sum() - equal.sum()),
            clusters=int((members > 1).sum()),
            largest_cluster=int(members.max()) if (members > 1).any() else 0,
            pairs=pairs,
            left_out=left_out,
            other_files=other_files,
            bytes=int(sizes.sum()),
            bytes_saved=int(sizes[dropped].sum()),
        )


@dataclass(frozen=True, eq=False)
class MediaResult:
    """Which files stay, which could go, and why. Nothing is deleted.

    Arrays and lists have an element for each of `files`.
    """

    medium: Medium[Any] = field(repr=False)
    root: Path | None
    """The folder, if it is all there was."""
    name: str
    several: bool
    """Whether more than one file or folder was given."""
    files: Sequence[Path] = field(repr=False)
    sizes: NDArray[np.int64] = field(repr=False)
    """Bytes of each."""
    facts: Mapping[str, Sequence[Any]] = field(repr=False)
    """What is known of each, such as width and height."""
    described: Sequence[str] = field(repr=False)
    keep: NDArray[np.bool_]
    """Whether a file stays: of those alike the best."""
    clusters: NDArray[np.int64]
    """The first file of each one's cluster; itself where it stands alone."""
    duplicate_of: NDArray[np.int64]
    """The file that stands for a dropped one; -1 for those that stay."""
    similarity: NDArray[np.float64]
    """Of a dropped file with the one that stands for it; NaN for those that stay."""
    distance: NDArray[np.int32]
    """The same as the kind counts it; -1 for those that stay, or where it counts nothing."""
    first_equal: NDArray[np.int64] = field(repr=False)
    """For each file the first with the same bytes."""
    different_pairs: VerifiedPairs = field(repr=False)
    """Of files alike that are not equal; each equal one is represented by the first."""
    counts: MediaCounts
    problems: Sequence[Problem]
    """What was left out, by path, with the reason."""
    notices: Sequence[tuple[str, int, str]]
    """More to know: name, count, note."""
    seconds: dict[str, float]
    made: datetime = field(default_factory=lambda: datetime.now(UTC), repr=False)

    @property
    def kind(self) -> str:
        """What was compared: "images", "recordings"."""
        return self.medium.name

    @cached_property
    def names(self) -> list[str]:
        """What files are called: their paths in the folder, if there is but one."""
        return [
            str(file.relative_to(self.root) if self.root is not None else file)
            for file in self.files
        ]

    def survivors(self) -> list[Path]:
        """Return the files that stay."""
        return [self.files[place] for place in np.flatnonzero(self.keep).tolist()]

    def dropped(self) -> list[Path]:
        """Return the files that could go: each is alike to one that stays."""
        return [self.files[place] for place in np.flatnonzero(~self.keep).tolist()]

    def groups(self) -> list[NDArray[np.int64]]:
        """Return the files of each cluster of two or more, the one that stays first, then the
        others from the most similar to the least; the largest cluster first.
        """
        similarity = np.where(self.keep, 2.0, self.similarity)
        order = np.lexsort((np.arange(len(self.files)), -similarity, self.clusters))
        parts = np.split(order, np.flatnonzero(np.diff(self.clusters[order])) + 1)
        return sorted((part for part in parts if len(part) > 1), key=len, reverse=True)

    def write(self, path: str | Path) -> int:
        """Copy the files that stay into a new folder, or list them in a file whose name tells how
        (.txt: a path a line; .jsonl, .json, .csv, .tsv, .parquet); return how many there are.
        """
        return write_survivors(self, file_path("path", path))

    def write_dropped(self, path: str | Path) -> int:
        """List the files that could go; in a table, with the one that stands for each."""
        return write_dropped(self, file_path("path", path))

    def write_annotated(self, path: str | Path) -> int:
        """Write a table of all files: whether each stays, its cluster, and what stands for it."""
        return write_annotated(self, file_path("path", path))

    def write_pairs(self, path: str | Path) -> int:
        """Write the pairs: `left`, `right`, `similarity`, `distance`."""
        return write_pairs(self, file_path("path", path))

    def report(self, path: str | Path, *, command: Sequence[str] | None = None) -> None:
        """Write a page that shows what is alike side by side: one HTML file that needs nothing
        else. `command` is what was typed for it.
        """
        from lookalike.dedup.media.report import write_report

        write_report(self, file_path("path", path), command)

    def summary(self) -> str:
        """Return what was found in a few lines."""
        return summary_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return kind, settings, counts, seconds and what was left out, in plain values."""
        return {
            "kind": self.kind,
            "settings": self.medium.settings(),
            "counts": dict(vars(self.counts)),
            "seconds": {step: round(passed, 4) for step, passed in self.seconds.items()},
            "left_out": [
                {"path": str(problem.path), "reason": problem.reason} for problem in self.problems
            ],
            "warnings": [],
        }

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"MediaResult(kind={self.kind!r}, files={counts.files}, kept={counts.kept}, "
            f"exact_duplicates={counts.exact_duplicates}, "
            f"near_duplicates={counts.near_duplicates}, clusters={counts.clusters}, "
            f"left_out={counts.left_out})"
        )
