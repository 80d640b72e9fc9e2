"""Where the vectors of a job are: in memory, or in a work folder, from which they are mapped."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.dedup.pairs import Ints
from lookalike.errors import ArgumentError, ResultTooLargeError, Said
from lookalike.jobs.documents import StringsOnDisk
from lookalike.jobs.work_folder import WorkFolder, release

_BASE = 600 << 20  # bytes of a job without vectors
_BYTES_A_VECTOR = 640  # besides the vectors themselves, which are mapped; measured: 330 to 450
_BYTES_A_PAIR, _BYTES_A_CANDIDATE = 200, 64
_AT_A_TIME = 8 << 20  # bytes of vectors that are copied together
FEWER = "or de-duplicate parts one after the other, each against those before"


class MemoryRows:
    """Vectors in memory."""

    disk = False

    def __init__(self) -> None:
        self._parts: list[NDArray[Any]] = []
        self.count = 0

    @property
    def width(self) -> int | None:
        """The number of dimensions; None before there are vectors."""
        return self._parts[0].shape[1] if self._parts else None

    def add(self, vectors: NDArray[Any]) -> None:
        """Add vectors of the same width."""
        self._parts.append(vectors)
        self.count += len(vectors)

    def array(self) -> NDArray[Any]:
        """Return all vectors."""
        if not self._parts:
            return np.empty((0, 1), np.float32)
        self._parts = [np.concatenate(self._parts) if self._parts[1:] else self._parts[0]]
        return self._parts[0]

    def take(self, vectors: NDArray[Any], places: Ints, name: str) -> NDArray[Any]:
        """Return the vectors at ascending places; a view if these are all in a range."""
        return _range(vectors, places) if _is_range(places) else vectors[places]

    def names(self, number: int) -> NameList:
        """Return what collects the ids of a corpus."""
        return NameList()

    def check(self, rows: int, done: float = 1.0) -> None:
        """Raise if this many rows, the share `done` of all, do not fit into the memory limit."""

    def most_pairs(self, rows: int) -> tuple[int, int] | None:
        """Return how many pairs, and proposed pairs, fit into memory; None: any number."""
        return None

    def close(self) -> None:
        """Forget files that are open."""


class DiskRows(MemoryRows):
    """Vectors in a work folder, as float32: memory has signatures and pairs."""

    disk = True

    def __init__(self, work: WorkFolder, limit: int | None) -> None:
        super().__init__()
        self.work, self.limit = work, limit
        self._width: int | None = None
        self._left = ExitStack()
        self._file = self._left.enter_context(work.writer("vectors"))

    @classmethod
    def known(cls, work: WorkFolder, limit: int | None, count: int, width: int) -> DiskRows:
        """Return vectors that an earlier job has written."""
        rows = cls.__new__(cls)
        MemoryRows.__init__(rows)
        rows.work, rows.limit, rows.count = work, limit, count
        rows._width, rows._left = width if count else None, ExitStack()
        return rows

    @property
    def width(self) -> int | None:
        """The number of dimensions; None before there are vectors."""
        return self._width

    def add(self, vectors: NDArray[Any]) -> None:
        """Write vectors of the same width."""
        self._width = vectors.shape[1]
        self._file.write(np.ascontiguousarray(vectors, np.float32).data)
        self.count += len(vectors)

    def array(self) -> NDArray[Any]:
        """Return all vectors, mapped; none can be added after that."""
        if self._width is None:
            return np.empty((0, 1), np.float32)
        self.close()
        return self.work.array("vectors", np.float32, self._width)

    def take(self, vectors: NDArray[Any], places: Ints, name: str) -> NDArray[Any]:
        """Return the vectors at ascending places: a view, or a file of this name, mapped."""
        if _is_range(places):
            return _range(vectors, places)
        shape = len(places), vectors.shape[1]
        made: NDArray[Any] = self.work.scratch(f"{name}.vectors", np.float32, shape)
        for own in blocks(len(places), vectors.shape[1]):
            made[own] = vectors[places[own]]
            release(vectors)
        return made

    def names(self, number: int) -> NameList:
        """Return what collects the ids of a corpus in files."""
        return DiskNames(self.work, f"ids{number}")

    def check(self, rows: int, done: float = 1.0) -> None:
        """Raise if this many rows, the share `done` of all, do not fit into the memory limit."""
        if self.limit is None or _BASE + rows * _BYTES_A_VECTOR <= self.limit:
            return
        every = rows if not 0 < done < 1 else int(rows / done)
        needed = _BASE + every * _BYTES_A_VECTOR
        about = "about " if every > rows else ""
        raise ArgumentError(
            Said("memory_limit"),
            f" is {self.limit:,} bytes, and {about}{every:,} vectors need {needed:,}: raise it to "
            f"that, {FEWER}",
        )

    def most_pairs(self, rows: int) -> tuple[int, int] | None:
        """Return how many pairs, and proposed pairs, fit into memory; None: any number."""
        if self.limit is None:
            return None
        room = self.limit - _BASE - rows * _BYTES_A_VECTOR
        return room // 2 // _BYTES_A_PAIR, room // 2 // _BYTES_A_CANDIDATE

    def close(self) -> None:
        """Close the file, if it is open."""
        self._left.close()


def too_many_pairs(limit: int | None, error: ResultTooLargeError) -> Exception:
    """Return the error of a job whose pairs do not fit into its memory limit."""
    if limit is None:
        return error
    return ArgumentError(
        Said("memory_limit"),
        f" is {limit:,} bytes, and there are more similar vectors than fit into it ({error}). "
        f"Raise it, raise the threshold, {FEWER}",
    )


class NameList:
    """Ids of rows, in memory."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def add(self, strings: Any) -> None:
        """Add an Arrow array of ids."""
        self._names += strings.to_pylist()

    def finish(self) -> Sequence[str]:
        """Return all ids."""
        return self._names


class DiskNames(NameList):
    """Ids of rows, in a work folder."""

    def __init__(self, work: WorkFolder, name: str) -> None:
        self._work, self._name = work, name
        self._left = ExitStack()
        self._writer = StringsOnDisk.writer(self._left, work, name)

    def add(self, strings: Any) -> None:
        """Write an Arrow array of ids."""
        self._writer.append(strings.cast(pa.large_string()))

    def finish(self) -> Sequence[str]:
        """Return all ids, mapped."""
        self._left.close()
        return StringsOnDisk(self._work, self._name)  # type: ignore[return-value]


def blocks(count: int, width: int) -> list[slice]:
    """Return ranges of rows, each of a few megabytes."""
    step = max(1, _AT_A_TIME // (4 * max(1, width)))
    return [slice(at, min(at + step, count)) for at in range(0, count, step)]


def _is_range(places: Ints) -> bool:
    return not len(places) or int(places[-1]) - int(places[0]) + 1 == len(places)


def _range(vectors: NDArray[Any], places: Ints) -> NDArray[Any]:
    begin = int(places[0]) if len(places) else 0
    return vectors[begin : begin + len(places)]


def write_array(work: WorkFolder, name: str, array: NDArray[Any]) -> str:
    """Write an array to a file of the work folder, and return its name."""
    with work.writer(name) as file:
        file.write(np.ascontiguousarray(array).data)
    return name


def file_identity(path: Path) -> list[Any]:
    """Return what changes with a file."""
    state = path.stat()
    return [str(path.resolve()), state.st_size, state.st_mtime_ns]
