"""Sort more records than fit into memory: sorted runs in files, which are merged."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from lookalike.incoming.records import Record
from lookalike.jobs.work_folder import naming

_OVERHEAD = 700
"""Bytes of a record in memory, beside its characters."""
_MOST_RUNS = 64
_BUFFER = 1 << 18


class SortedRecords:
    """Records that are added in any order and read in order; at most `memory` bytes are held."""

    def __init__(self, folder: Path, memory: int) -> None:
        self._folder, self._memory = folder, memory
        self._held: list[Record] = []
        self._bytes = 0
        self._runs: list[Path] = []
        self._made = 0

    @property
    def runs(self) -> int:
        """Number of runs in files."""
        return len(self._runs)

    def add(self, record: Record) -> None:
        """Add a record."""
        self._held.append(record)
        target, _, _, *texts = record
        self._bytes += _OVERHEAD + len(target) + sum(map(len, texts))
        if self._bytes > self._memory:
            self._held.sort()
            self._write(iter(self._held))
            self._held, self._bytes = [], 0
            if len(self._runs) >= _MOST_RUNS:
                self._merge_runs()

    def __iter__(self) -> Iterator[Record]:
        self._held.sort()
        with ExitStack() as opened:
            yield from heapq.merge(*(self._read(run, opened) for run in self._runs), self._held)

    def _merge_runs(self) -> None:
        """Make one run of all."""
        old, self._runs = self._runs, []
        with ExitStack() as opened:
            self._write(heapq.merge(*(self._read(run, opened) for run in old)))
        for run in old:
            run.unlink()

    def _write(self, records: Iterator[Record]) -> None:
        path = self._folder / f"run-{self._made}"
        self._made += 1
        with naming(path, "written"), open(path, "w", _BUFFER, "ascii", newline="\n") as file:
            for record in records:
                file.write(json.dumps(record))
                file.write("\n")
        self._runs.append(path)

    def _read(self, path: Path, opened: ExitStack) -> Iterator[Record]:
        with naming(path, "read"):
            file = open(path, encoding="ascii", buffering=_BUFFER)  # noqa: SIM115  # by `opened`
            for line in opened.enter_context(file):
                yield tuple(json.loads(line))
