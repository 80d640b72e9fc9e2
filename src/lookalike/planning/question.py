"""What a plan is asked, and what it weighs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lookalike.planning.sample import Sample

__all__ = ["BATCH", "Option", "Question"]

BATCH = 1024
"""Queries that are asked at once, unless there are fewer in all."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be searched for, and in what."""

    count: int
    bits: int
    radius: int | None
    k: int | None
    recall: float
    memory: int | None = None
    queries: int | None = None
    sample: Sample | None = None
    """What signatures are like; None: as if their bits were fair and independent."""

    @property
    def width(self) -> int:
        """Bytes of a signature."""
        return self.bits // 8

    @property
    def lines(self) -> int:
        """Lines of the cache that a signature takes."""
        return -(-self.width // 64)

    @property
    def signature_bytes(self) -> int:
        """Bytes of all signatures."""
        return self.count * self.width

    @property
    def batch(self) -> int:
        """Queries that are asked at once."""
        return min(BATCH, self.queries or BATCH)


@dataclass(frozen=True, slots=True)
class Option:
    """One way to answer, and what it is expected to cost."""

    index: str
    """ "scan", "slices", "blocks", "flips", "prefix", "clusters" or "gpu"."""
    microseconds: float
    """For one query."""
    build_seconds: float
    memory_bytes: int
    """Signatures included."""
    recall: float | None = 1.0
    """The share that was found in a trial; 1 only if the index guarantees it, None if unknown."""
    parameters: Mapping[str, int] = field(default_factory=dict)
    """What the index is built with."""
    settings: Mapping[str, float] = field(default_factory=dict)
    """What it is searched with."""
    remark: str = ""
    """What else there is to know."""
    obstacle: str | None = None
    """Why it cannot be chosen."""
    error: float = 0.0
    """By how much the recall of other queries may differ from that of the trial, 19 times out of
    20."""
    expected: float = 1.0
    """The share that steps counted in a sample let expect: it decides what is tried, no more."""

    @property
    def exact(self) -> bool:
        """Whether everything is found, and known to be."""
        return self.recall == 1.0 and not self.error

    def total_seconds(self, queries: int | None) -> float:
        """Return what counts in the choice: building and all queries, or one if there is no end."""
        if queries is None:
            return 1e-6 * self.microseconds
        return self.build_seconds + 1e-6 * self.microseconds * queries
