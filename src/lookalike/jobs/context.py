"""Limits, threads, progress and the work folder of a job."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, SupportsIndex

from lookalike.checks import whole_number
from lookalike.corpora.base import MAX_DOCUMENT
from lookalike.errors import ArgumentError, Said
from lookalike.jobs.work_folder import WorkFolder
from lookalike.progress import Progress

_BYTES_A_DOCUMENT = 150
_BYTES_A_PAIR = 100
_BYTES_AT_LEAST = 600 << 20
_BYTES_A_BYTE = 40  # memory per byte of the longest document; measured: 14 to 26, besides 150 MB


@dataclass
class JobProgress:
    """Reports the progress of each step to a listener, and adds up its seconds."""

    listener: Progress
    seconds: dict[str, float] = field(default_factory=dict)
    reused: list[str] = field(default_factory=list)
    """Steps that an earlier run has done, or a part of them."""
    overlapped: list[str] = field(default_factory=list)
    """Steps of which a part was done while documents were read."""

    def step(self, name: str, share: float) -> None:
        """Report that this share of a step is done."""
        self.listener(name, share)

    def reuse(self, *names: str) -> None:
        """Note that an earlier run has done these steps."""
        for name in names:
            self.reused.append(name)
            self.seconds.setdefault(name, 0.0)

    def overlap(self, name: str) -> None:
        """Note that a part of a step was done while documents were read."""
        if name not in self.overlapped:
            self.overlapped.append(name)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time a step, and report its beginning and end."""
        self.step(name, 0.0)
        start = time.perf_counter()
        try:
            yield
        finally:
            passed = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + passed
        self.step(name, 1.0)


@dataclass(frozen=True, kw_only=True)
class JobContext:
    """Limits, progress and work folder for the steps of a job; subclasses add settings."""

    skip_bad: bool
    memory_limit: int | None
    threads: int
    progress: JobProgress
    work: WorkFolder

    smaller_job: ClassVar[str] = "or process fewer documents"
    """Advice if the documents do not fit into memory."""

    @property
    def limits(self) -> tuple[int | None, int]:
        """Bytes of memory and threads for reading and writing."""
        return None if self.memory_limit is None else self.memory_limit // 2, self.threads

    def check_memory(self, documents: int, expected: int = 0) -> None:
        """Refuse more documents than fit into memory; `expected` is the estimated final count."""
        if self.memory_limit is None or _needed(documents) <= self.memory_limit:
            return
        needed = _needed(max(documents, expected))
        count = f"{documents:,} documents"
        if expected > documents:
            count = f"about {expected:,} documents, {documents:,} of them read,"
        raise ArgumentError(
            Said("memory_limit"),
            f" is {self.memory_limit:,} bytes, but {count} need about {needed:,}: raise it to "
            f"that, {self.smaller_job}",
        )

    def most_pairs(self, documents: int) -> int | None:
        """Return the number of pairs that fit into memory beside the documents; None: no limit."""
        if self.memory_limit is None:
            return None
        return (self.memory_limit - _needed(documents)) // _BYTES_A_PAIR


def memory_bytes(memory_limit: SupportsIndex | None) -> int | None:
    """Return a memory limit in bytes, or raise if no job fits into it."""
    if memory_limit is None:
        return None
    limit = whole_number("memory_limit", memory_limit, at_least=1)
    if limit < _BYTES_AT_LEAST:
        raise ArgumentError(
            Said("memory_limit"), f" is {limit:,} bytes; a job needs at least {_BYTES_AT_LEAST:,}"
        )
    return limit


def longest_document(given: SupportsIndex | None, limit: int | None) -> int | None:
    """Return the maximum bytes of a document, so that it can be processed within the limit."""
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
            f" of {limit:,}, the maximum is {most:,}: raise the memory limit to "
            f"{given * _BYTES_A_BYTE:,}, or lower the maximum",
        )
    return min(most, MAX_DOCUMENT) if given is None else given


def _needed(documents: int) -> int:
    return _BYTES_AT_LEAST + documents * _BYTES_A_DOCUMENT
