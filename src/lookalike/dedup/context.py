"""What every step of a job is given, besides what the steps before it have made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsIndex

from lookalike.checks import whole_number
from lookalike.corpora.base import MAX_DOCUMENT
from lookalike.dedup.progress import JobProgress
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.work_folder import WorkFolder
from lookalike.errors import ArgumentError, Said

__all__ = ["JobContext", "longest_document", "memory_bytes"]

_BYTES_A_DOCUMENT = 150
_BYTES_A_PAIR = 100
_BYTES_AT_LEAST = 600 << 20
_BYTES_A_BYTE = 40
"""Of memory, for each byte of the longest document: it is copied, and its features are larger.

Measured: 14 (words, MinHash) to 26 (characters, SimHash or `exact`), beside some 150 MB.
"""


@dataclass(frozen=True)
class JobContext:
    """What is to be done, and by what means."""

    settings: DedupSettings
    skip_bad: bool
    memory_limit: int | None
    threads: int
    device: str
    progress: JobProgress
    work: WorkFolder

    @property
    def limits(self) -> tuple[int | None, int]:
        """Bytes of memory and threads that reading and writing may take."""
        return None if self.memory_limit is None else self.memory_limit // 2, self.threads

    def check_memory(self, documents: int, expected: int = 0) -> None:
        """Refuse more documents than there is memory for; `expected` are those when all is read."""
        if self.memory_limit is None or _needed(documents) <= self.memory_limit:
            return
        needed = _needed(max(documents, expected))
        count = f"{documents:,} documents"
        if expected > documents:
            count = f"about {expected:,} documents, {documents:,} of them read,"
        raise ArgumentError(
            Said("memory_limit"),
            f" is {self.memory_limit:,} bytes; {count} need about {needed:,}: raise it to that, or "
            "de-duplicate parts one after the other, each against those before",
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
            Said("memory_limit"),
            f" is {limit:,} bytes; a job takes {_BYTES_AT_LEAST:,} at least",
        )
    return limit


def longest_document(given: SupportsIndex | None, limit: int | None) -> int | None:
    """Return the bytes that a document may have, so that it can be worked on within the limit."""
    if given is not None:
        given = whole_number("max_document", given, at_least=1)
    if limit is None:
        return given
    most = limit // _BYTES_A_BYTE
    if given is not None and given > most:
        raise ArgumentError(
            Said("max_document"),
            f" is {given:,} bytes; within ",
            Said("memory_limit"),
            f" of {limit:,}, a document may have {most:,}: raise the limit to "
            f"{given * _BYTES_A_BYTE:,}, or allow shorter documents only",
        )
    return min(most, MAX_DOCUMENT) if given is None else given


def _needed(documents: int) -> int:
    return _BYTES_AT_LEAST + documents * _BYTES_A_DOCUMENT
