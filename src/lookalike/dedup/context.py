"""What every step of a job is given, besides what the steps before it have made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsIndex

from lookalike.checks import whole_number
from lookalike.dedup.progress import JobProgress
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.work_folder import WorkFolder
from lookalike.errors import ArgumentError

__all__ = ["JobContext", "memory_bytes"]

_BYTES_A_DOCUMENT = 150
_BYTES_A_PAIR = 100
_BYTES_AT_LEAST = 600 << 20


@dataclass(frozen=True)
class JobContext:
    """What is to be done, and by what means."""

    settings: DedupSettings
    skip_bad: bool
    memory_limit: int | None
    threads: int
    progress: JobProgress
    work: WorkFolder

    def check_memory(self, documents: int) -> None:
        """Refuse more documents than there is memory for."""
        needed = _needed(documents)
        if self.memory_limit is not None and needed > self.memory_limit:
            raise ArgumentError(
                f"memory_limit is {self.memory_limit:,} bytes; {documents:,} documents take about "
                f"{needed:,}: raise it, or de-duplicate parts one after the other, each against "
                "those before"
            )

    def most_pairs(self, documents: int) -> int | None:
        """Return for how many pairs so many documents leave memory; None if it does not matter."""
        if self.memory_limit is None:
            return None
        return (self.memory_limit - _needed(documents)) // _BYTES_A_PAIR


def memory_bytes(memory_limit: SupportsIndex | None) -> int | None:
    """Return a limit, if there is one and any job keeps to it."""
    if memory_limit is None:
        return None
    limit = whole_number("memory_limit", memory_limit, at_least=1)
    if limit < _BYTES_AT_LEAST:
        raise ArgumentError(
            f"memory_limit is {limit:,} bytes; a job takes {_BYTES_AT_LEAST:,} at least"
        )
    return limit


def _needed(documents: int) -> int:
    return _BYTES_AT_LEAST + documents * _BYTES_A_DOCUMENT
