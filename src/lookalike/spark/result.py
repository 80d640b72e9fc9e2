"""What a job on Spark has found: frames, and how many of what."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lookalike.dedup.result import DedupCounts
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.summary import Wording, left_out_lines, size_text, summary_text, text_wording

if TYPE_CHECKING:
    from lookalike.spark.rows import ResultRows

__all__ = ["SparkDedup"]


@dataclass(frozen=True, eq=False)
class SparkDedup:
    """Who stays, who goes, and why. Frames are read from tables that last until `close`."""

    settings: DedupSettings
    counts: DedupCounts
    """As the local job counts. `compared_pairs` are those whose signatures looked alike, each once;
    `proposed_pairs` is 0, and the bytes saved and the lowest similarity are not known.
    """
    seconds: dict[str, float]
    """Of each step."""
    warnings: list[str]
    left_out: dict[str, int]
    """What was left out, by kind."""
    _rows: ResultRows = field(repr=False)
    reused: tuple[str, ...] = ()
    overlapped: tuple[str, ...] = ()

    @cached_property
    def survivors(self) -> Any:
        """The rows that stay, with all their columns, in the partitions that Spark reads: it begins
        with the largest pieces of files, whatever their names.
        """
        return self._rows.survivors()

    @cached_property
    def annotated(self) -> Any:
        """All rows, with `row` (its number) and, as the local job has it, `cluster`,
        `duplicate_of` and `similarity`: ids, or the numbers of rows where there are none.
        """
        return self._rows.annotated()

    @cached_property
    def pairs(self) -> Any:
        """Verified pairs: `left`, `right`, `similarity` and `distance`. Equal texts are paired
        with their first; with `exact`, with each other, so that every pair is there. With an old
        corpus also `old`: whether left is one of it.
        """
        return self._rows.pairs()

    @cached_property
    def fates(self) -> Any:
        """What was found of rows that are like others, by their numbers: `position`, `cluster`,
        `duplicate_of` (null for those that stay) and `similarity`; with an old corpus also
        `matched_old`, the row of it that one is a duplicate of.
        """
        return self._rows.fates

    @property
    def complete(self) -> bool:
        """Whether every pair at or above the threshold is known: with `exact`."""
        return self.settings.exact

    def wording(self) -> Wording:
        """Return the words for its documents."""
        lines = left_out_lines(self.left_out)
        return text_wording(self.settings, size_text(self.counts.bytes), lines)

    def summary(self) -> str:
        """Return what was found in a few lines."""
        return summary_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return settings, whether pairs are complete, counts, seconds and warnings, in plain
        values.
        """
        return {
            "settings": self.settings.to_dict(),
            "complete": self.complete,
            "counts": dict(vars(self.counts)),
            "seconds": {step: round(passed, 4) for step, passed in self.seconds.items()},
            "warnings": list(self.warnings),
        }

    def close(self) -> None:
        """Remove the tables; the frames cannot be used any more."""
        self._rows.work.close()

    def __enter__(self) -> SparkDedup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
