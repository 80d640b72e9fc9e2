"""Many sorted runs become one, in memory that does not grow with them."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import CorruptIndexError
from lookalike.indexes.batch.run_headers import (
    PAGE,
    Run,
    end_page,
    file_header,
    pages,
    raw_bytes,
    run_header,
    write_at,
)
from lookalike.indexes.tables.flip_sets import upper_bits
from lookalike.indexes.tables.sorted_table import SortedTable, header_width
from lookalike.storage.container import checksums

__all__ = ["merged_pieces", "sorted_run", "write_merged"]

_Rows = tuple[NDArray[np.uint8], NDArray[np.int64]]

_PIECE_BYTES = 1 << 26


def sorted_run(signatures: NDArray[np.uint8], ids: NDArray[np.int64], threads: int) -> _Rows:
    """Return signatures in the order of a run, with their ids."""
    bits = 8 * signatures.shape[1]
    header = upper_bits(bits, min(header_width(len(signatures)), bits))
    table = SortedTable.build(signatures, header, threads)
    return table.signatures, ids[table.rows]


def write_merged(path: Path, runs: Sequence[_Rows], width: int, threads: int) -> None:
    """Write a new signature file of one run, with all that these have."""
    for signatures, ids in runs:
        SortedTable.of_sorted(signatures, upper_bits(8 * width, 0), threads)
        if len(ids) and int(ids.min()) < 0:
            raise CorruptIndexError("the signature file has negative ids; it is damaged")
    count = sum(len(ids) for _, ids in runs)
    largest = max((int(ids.max(initial=-1)) for _, ids in runs), default=-1)
    places = [2 * PAGE, 2 * PAGE + pages(count * width)]
    lengths = [count * width, 8 * count]
    end = places[1] + pages(lengths[1])
    with open(path, "x+b") as file:
        descriptor = file.fileno()
        file.truncate(end + PAGE)
        size = max(1, _PIECE_BYTES // width)
        written = 0
        for signatures, ids in merged_pieces(runs, size, threads):
            write_at(descriptor, places[0] + written * width, raw_bytes(signatures).data)
            names = np.ascontiguousarray(ids, "<i8")
            write_at(descriptor, places[1] + 8 * written, raw_bytes(names).data)
            written += len(ids)
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as mapping:
            found = checksums(mapping, list(zip(places, lengths, strict=True)))
        run = Run(PAGE, count, largest, found[0], found[1])
        write_at(descriptor, 0, file_header(width))
        write_at(descriptor, PAGE, run_header(run))
        write_at(descriptor, end, end_page(end, (run,)))


def merged_pieces(runs: Sequence[_Rows], size: int, threads: int) -> Iterator[_Rows]:
    """Yield all signatures of sorted runs in order, about `size` or less at a time.

    Runs are cut at signatures that stand in equal distances in a sample of all of them. What equals
    one of these is not sorted, only passed on, so that a million copies need no more memory.
    """
    step = max(1, size // (4 * max(1, len(runs))))
    sample = sorted(_key(row) for signatures, _ in runs for row in signatures[::step])
    at = [0] * len(runs)
    for bound in dict.fromkeys(sample[:: 2 * max(1, len(runs))]):
        ends = [_place(run[0], bound, low, after=False) for run, low in zip(runs, at, strict=True)]
        yield from _sorted_together(runs, at, ends, threads)
        for number, (signatures, ids) in enumerate(runs):
            at[number] = _place(signatures, bound, ends[number], after=True)
            for begin in range(ends[number], at[number], size):
                equal = slice(begin, min(begin + size, at[number]))
                yield signatures[equal], ids[equal]
    yield from _sorted_together(runs, at, [len(ids) for _, ids in runs], threads)


def _sorted_together(
    runs: Sequence[_Rows], begins: Sequence[int], ends: Sequence[int], threads: int
) -> Iterator[_Rows]:
    parts = [
        (signatures[begin:end], ids[begin:end])
        for (signatures, ids), begin, end in zip(runs, begins, ends, strict=True)
        if begin < end
    ]
    if len(parts) == 1:
        yield parts[0]
    elif parts:
        signatures = np.concatenate([signatures for signatures, _ in parts])
        yield sorted_run(signatures, np.concatenate([ids for _, ids in parts]), threads)


def _key(row: NDArray[np.uint8]) -> bytes:
    """Return bytes that compare as signatures are ordered: by words, the first counts most."""
    data = row.tobytes()
    return b"".join(data[begin : begin + 8][::-1] for begin in range(0, len(data), 8))


def _place(signatures: NDArray[np.uint8], key: bytes, low: int, *, after: bool) -> int:
    """Return where a key would stand in sorted signatures from `low` on, before or after equals."""
    high = len(signatures)
    while low < high:
        middle = (low + high) // 2
        found = _key(signatures[middle])
        if found < key or (after and found == key):
            low = middle + 1
        else:
            high = middle
    return low
