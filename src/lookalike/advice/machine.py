"""Cost of single steps on this machine in nanoseconds, measured once and kept.

Small searches with different numbers of steps are timed, and the costs are fitted to the times.
Memory and disk are measured separately.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import tempfile
import zlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import count, pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from lookalike import _native
from lookalike.errors import FileError
from lookalike.indexes.clusters.groups import MOST_WORK, group_count
from lookalike.indexes.clusters.index import ClusterIndex
from lookalike.indexes.clusters.majority import CANDIDATES, PER_CENTER, ROUNDS, ROUNDS_A_PASS
from lookalike.indexes.rows import Signatures
from lookalike.indexes.scan import ScanIndex
from lookalike.indexes.slices.index import SliceIndex
from lookalike.indexes.tables.blocks import BlockChoice, BlockIndex
from lookalike.indexes.tables.flip_sets import Volatility, likely_sets
from lookalike.signatures.arrays import kernels
from lookalike.storage.files import user_cache_folder, whole_file

FORMAT = 7  # raised when the meaning of a cost changes: older files are then measured again
Access = tuple[tuple[float, float], ...]
"""(bytes, nanoseconds) of reads at random places, in ascending order."""


def access_time(access: Access, size: float) -> float:
    """Return the cost of a read at a random position of `size` bytes.

    Interpolated by doublings, and extrapolated beyond the largest size.
    """
    sizes = [bytes_ for bytes_, _ in access]
    at = max(bisect_left(sizes, size), 1)
    if at < len(sizes):
        (low, least), (high, most) = access[at - 1], access[at]
    else:
        (low, least), (high, most) = access[(len(sizes) - 1) // 2], access[-1]
    share = math.log(max(size, sizes[0]) / low) / math.log(high / low)
    return least + share * (most - least)


@dataclass(frozen=True, slots=True)
class MachineCosts:
    """Nanoseconds on one thread for cached data; `access` is added for other data."""

    access: Access
    """(bytes, nanoseconds): a prefetched read at a random place in that many bytes."""
    waiting: Access  # the same where the next place depends on what is read
    reading_byte: float  # a byte of a long array, read from beginning to end
    query: float  # a query, beside its steps
    scanned_byte: float  # a byte of a signature, compared where many queries share the reading
    nearest: float  # a neighbor that is among the k nearest so far
    match: float  # a signature within the radius, handed out
    row: float  # comparing with a signature that lies at a place of its own
    row_byte: float  # the same, for each byte of the signature
    within_list: float  # a list looked up by a search within a radius
    within_sketch: float  # a sketch of such a list, where there are some
    top_query: float  # a query for nearest neighbors by lists, beside its steps
    top_list: float  # a list looked up by a search for nearest neighbors
    top_posting: float  # an entry of such a list, added to a score
    top_candidate: float  # a candidate, chosen by its score and re-ranked
    slice_build: float  # an entry of a list, written
    table_query: float  # a query of a sorted table, beside its steps
    bucket: float  # a bucket of a sorted table, looked up
    bucket_word: float  # eight bytes of a signature of such a bucket, compared
    table_build: float  # a signature sorted into a table, among others with other headers
    table_byte: float  # a byte of a signature, copied to its place in a new table
    table_sort: float
    """A signature sorted among others with the same header, each time these are twice as many."""
    center: float  # a center of a group, put in order, beside comparing it
    group: float  # a group read, beside the signatures in it
    grouped_row: float
    """A signature given to the nearest center while groups are made, beside comparing."""
    grouped_center: float  # a center that it is compared with, beside the bytes
    flip: float  # a set of flips chosen by weights, each time these are twice as many
    disk_byte: float
    """A byte of a file that is not in memory, read from beginning to end; elapsed time."""

    def access_to(self, size: float) -> float:
        """Return what a read at a random place of `size` bytes costs."""
        return access_time(self.access, size)

    def missing(self, size: float) -> float:
        """Return what such a read costs more than one of what is in the cache."""
        return max(0.0, self.access_to(size) - self.access[0][1])

    def missing_wait(self, size: float) -> float:
        """Return the same for a read that is waited for."""
        return max(0.0, access_time(self.waiting, size) - self.waiting[0][1])

    def to_dict(self) -> dict[str, Any]:
        """Return the costs in plain values, fit for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> MachineCosts:
        """Return the costs that `to_dict` returned, or raise `ValueError`."""
        names = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or values.keys() != names:
            raise ValueError("not the costs of this version")
        access, waiting = (_curve(name, values[name]) for name in ("access", "waiting"))
        rest = {name: _cost(values[name]) for name in names - {"access", "waiting"}}
        return cls(access=access, waiting=waiting, **rest)


def _curve(name: str, points: Any) -> Access:
    if not isinstance(points, list | tuple) or len(points) < 2:
        raise ValueError(f"{name} is not a list of points")
    curve = tuple((_cost(size), _cost(time)) for size, time in points)
    if any(a[0] >= b[0] for a, b in pairwise(curve)) or not curve[0][0]:
        raise ValueError(f"{name} is not in ascending order")
    return curve


def _cost(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{value!r} is not a cost")
    return float(value)


_known: dict[str, MachineCosts] = {}


def machine_costs(*, refresh: bool = False) -> MachineCosts:
    """Return the costs on this machine, measured once, in about a second.

    They are kept in the user's cache folder (`XDG_CACHE_HOME`, or `~/.cache`).

    Args:
        refresh: Measure again, if the machine was busy the first time.
    """
    machine = _machine()
    name = "-".join(str(part) for part in machine.values())
    if not refresh and name in _known:
        return _known[name]
    folder = user_cache_folder()
    path = folder / f"costs-{zlib.crc32(name.encode()):08x}.json" if folder else None
    costs = None if refresh or path is None else _read(path, machine)
    if costs is None:
        costs = measure_costs()
        if path is not None:
            _write(path, machine, costs)
    _known[name] = costs
    return costs


def _machine() -> dict[str, Any]:
    """Return what the costs depend on."""
    return {
        "format": FORMAT,
        "lookalike": _native.__version__,
        "kernel": next(kernel.name for kernel in kernels() if kernel.active),
        "processor": _processor(),
        "host": platform.node(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _read(path: Path, machine: dict[str, Any]) -> MachineCosts | None:
    """Return the costs in a file, or None if it is missing, damaged or of another machine."""
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        if contents["machine"] != machine:
            return None
        return MachineCosts.from_dict(contents["costs"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, machine: dict[str, Any], costs: MachineCosts) -> None:
    """Write the cache file atomically; ignore errors."""
    text = json.dumps({"machine": machine, "costs": costs.to_dict()}, indent=1, allow_nan=False)
    with contextlib.suppress(OSError, FileError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished:
            unfinished.write_text(text + "\n", encoding="utf-8")


# Measuring

_SEED = 7
_MEMORY = 1 << 27  # bytes that are read at random places: more than caches hold
_SIZES = (*(1 << power for power in (17, 20, 22, 24, 25, 26)), _MEMORY)
_AHEAD = 8
_READS = 40_000
_COUNT = 1 << 14  # signatures of the small collections: few enough for the second-level cache
_QUERIES = 256
_DISK = 1 << 24  # bytes of the file that is read from disk


def best_time(run: Callable[[], object], runs: int = 3) -> float:
    """Return the shortest processor time of some runs, in nanoseconds."""
    times = []
    for _ in range(runs):
        start = process_time()
        run()
        times.append(process_time() - start)
    return 1e9 * min(times)


def explain_times(steps: Sequence[Sequence[float]], times: Sequence[float]) -> list[float]:
    """Return the non-negative costs of steps that fit the times best."""
    shares = np.asarray(steps, float) / np.asarray(times, float)[:, None]
    free = list(range(shares.shape[1]))
    costs = np.zeros(shares.shape[1])
    while free:
        found = np.linalg.lstsq(shares[:, free], np.ones(len(shares)))[0]
        if (found >= 0).all():
            costs[free] = found
            break
        del free[int(found.argmin())]
    return [float(cost) for cost in costs]


class _Timed:
    """Timed searches, and the number of steps of each."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._steps: list[Sequence[float]] = []
        self._times: list[float] = []

    def add(self, time: float, *steps: float) -> None:
        self._times.append(time)
        self._steps.append(steps)

    def costs(self) -> dict[str, float]:
        """Return the cost of each step."""
        return dict(zip(self._names, explain_times(self._steps, self._times), strict=True))


def measure_costs() -> MachineCosts:
    """Measure all costs; takes about a second, 128 MB of memory and 16 MB of disk."""
    generator = np.random.default_rng(_SEED)
    memory, scan = _memory(), _scan(generator)
    costs: dict[str, Any] = {
        **memory,
        **scan,
        "nearest": _nearest(generator, **scan),
        "match": _match(generator),
        **_slice_within(generator, scan["query"]),
        **_slice_nearest(generator),
        **_blocks(generator),
        **_table_builds(generator),
        **_groups(generator, **scan),
        "flip": _flip(generator),
        "disk_byte": max(memory["reading_byte"], _disk()),
    }
    return MachineCosts(**costs)


def _memory() -> dict[str, Any]:
    """Time random reads by size, prefetched and waited for, and sequential reads."""
    words = np.ones(_MEMORY // 8, np.uint64)
    places = count(step=_READS)  # others each time, or they would be in the cache from last time

    def read(size: int, ahead: int, reads: int) -> float:
        part = words[: size // 8]
        return best_time(lambda: _native.read_at_random(part, next(places), reads, ahead)) / reads

    def by_size(ahead: int, reads: int) -> Access:
        curve: list[tuple[float, float]] = []
        for size in _SIZES:
            # What fits into a cache is there when a search is not the first: read it all before.
            _native.read_all(words[: size // 8].view(np.uint8), 1)
            read(size, _AHEAD, _READS)
            # Larger is never quicker, whatever the machine was doing just then.
            curve.append((float(size), max(read(size, ahead, reads), curve[-1][1] if curve else 0)))
        return tuple(curve)

    reading = best_time(lambda: _native.read_all(words.view(np.uint8), 1), 2) / words.nbytes
    access, waiting = by_size(_AHEAD, _READS), by_size(0, _READS // 8)
    return {"access": access, "waiting": waiting, "reading_byte": reading}


def _scan(generator: np.random.Generator) -> dict[str, float]:
    """Time the scan of narrow and wide signatures, few and many."""
    timed = _Timed("query", "scanned_byte")
    for width in (8, 32, 128):
        for size in (64, _COUNT // 4):
            index = ScanIndex(_uniform(generator, size, width))
            queries = _uniform(generator, _QUERIES, width)
            time = best_time(lambda: index.within(queries, 0, threads=1))  # noqa: B023
            timed.add(time / _QUERIES, 1.0, size * width)
    return timed.costs()


def _nearest(generator: np.random.Generator, query: float, scanned_byte: float) -> float:
    """Time a scan for the nearest, minus comparing."""
    width, k = 8, 32
    index = ScanIndex(_uniform(generator, _COUNT, width))
    queries = _uniform(generator, _QUERIES, width)
    time = best_time(lambda: index.search(queries, k, threads=1)) / _QUERIES
    rest = time - query - _COUNT * width * scanned_byte
    return max(0.0, rest) / pushes(_COUNT, k)


def _match(generator: np.random.Generator) -> float:
    """Time a scan within a radius that contains half of all signatures."""
    width = 8
    index = ScanIndex(_uniform(generator, _COUNT // 4, width))
    queries = _uniform(generator, _QUERIES // 4, width)
    found = len(index.within(queries, 4 * width, threads=1).ids)
    none = best_time(lambda: index.within(queries, 0, threads=1))
    return max(0.0, best_time(lambda: index.within(queries, 4 * width, threads=1)) - none) / found


def _slice_within(generator: np.random.Generator, query: float) -> dict[str, float]:
    """Time searches within a radius: few, many and long lists, with and without sketches."""
    cases = [(8, 12, 0), (8, 12, 5), (8, 14, 7), (8, 16, 6), (8, 9, 3), (8, 4, 1), (8, 5, 2)]
    cases += [(16, 12, 7), (16, 14, 9), (32, 12, 10), (32, 8, 1), (128, 12, 30), (128, 10, 40)]
    cases += [(128, 6, 1), (128, 7, 2)]
    timed = _Timed("within_list", "within_sketch", "row", "row_byte")
    for width, slice_bits, radius in cases:
        size = 64 * _COUNT // max(width, 16)  # or it would be scanned
        index = SliceIndex(_uniform(generator, size, width), slice_bits, threads=1)
        queries = _uniform(generator, _QUERIES, width)
        work = index.within(queries, radius, explain=True, threads=1).explanation
        if work is None or not work.lists.all():
            continue  # it scanned: nothing to learn about lists
        time = best_time(lambda: index.within(queries, radius, threads=1)) / _QUERIES  # noqa: B023
        sketches = float(work.postings.mean()) if _native.has_sketches(8 * width) else 0.0
        rows = float(work.candidates.mean())
        timed.add(_beside(query, time), float(work.lists.mean()), sketches, rows, rows * width)
    return timed.costs()


def _slice_nearest(generator: np.random.Generator) -> dict[str, float]:
    """Time searches for the nearest, with few postings and many, and building."""
    cases = [(1, 128, 14, (0, 1, 2)), (1, 128, 18, (1,)), (1, 32, 14, (0, 1)), (1, 32, 12, (0,))]
    cases += [(1, 128, 10, (0, 1)), (1, 32, 10, (0, 1, 2)), (4, 32, 12, (0,))]
    timed = _Timed("top_query", "top_list", "top_posting", "top_candidate")
    build = 0.0
    for times_as_many, width, slice_bits, expands in cases:
        rows = _uniform(generator, times_as_many * _COUNT, width)
        index = SliceIndex(rows, slice_bits, threads=1)
        if not build:
            build = best_time(lambda: SliceIndex(rows, slice_bits, threads=1), 1)  # noqa: B023
            build /= index.slices * len(rows)
        queries = _uniform(generator, _QUERIES // 2, width)
        for expand in expands:
            found = index.search(queries, 10, expand=expand, explain=True, threads=1)
            work = found.explanation
            if work is None:
                continue
            time = best_time(lambda: index.search(queries, 10, expand=expand, threads=1), 2)  # noqa: B023
            taken = (work.lists, work.postings, work.reranked)
            timed.add(time / len(queries), 1.0, *(float(each.mean()) for each in taken))
    return {**timed.costs(), "slice_build": build}


def _blocks(generator: np.random.Generator) -> dict[str, float]:
    """Time few and many tables, short and long buckets, wide signatures."""
    cases = [(8, 0, 1, 1), (8, 3, 4, 1), (8, 3, 5, 2), (8, 4, 6, 2), (8, 7, 8, 1), (8, 11, 12, 1)]
    cases += [(16, 3, 5, 2), (16, 7, 8, 1), (32, 3, 5, 2)]
    timed = _Timed("table_query", "bucket", "bucket_word")
    for width, radius, blocks, lead in cases:
        rows = _uniform(generator, _COUNT // (width // 8), width)
        index = BlockIndex(rows, radius, blocks=blocks, lead=lead, threads=1)
        queries = _uniform(generator, 4 * _QUERIES, width)
        time = best_time(lambda: index.within(queries, radius, threads=1)) / len(queries)  # noqa: B023
        taken = BlockChoice(8 * width, blocks, lead).steps(len(rows))
        timed.add(time, 1.0, taken.buckets, taken.rows * (width // 8))
    return timed.costs()


def _table_builds(generator: np.random.Generator) -> dict[str, float]:
    """Time building tables: per signature, per byte, and per doubling of equal headers."""

    def build(rows: Signatures) -> float:
        return best_time(lambda: BlockIndex(rows, 0, blocks=1, lead=1, threads=1), 2) / len(rows)

    new = best_time(lambda: np.ones(_MEMORY // 8, np.uint8), 2) / (_MEMORY // 8)
    wide, narrow = _uniform(generator, 4 * _COUNT, 64), _uniform(generator, _COUNT, 16)
    alike = narrow.copy()
    alike[:, :6] = alike[:, -6:] = 0  # one header for all, wherever it is
    alone = build(narrow)
    byte = max(0.0, build(wide) - alone) / (64 - 16)
    sort = max(0.0, build(alike) - alone) / math.log2(_COUNT)
    # Memory of large tables is new, which that of small ones is not.
    row = max(0.0, alone - 16 * byte)
    return {"table_build": row, "table_byte": byte + new, "table_sort": sort}


def _groups(generator: np.random.Generator, query: float, scanned_byte: float) -> dict[str, float]:
    """Time reading and building groups."""
    width, k = 32, 10
    read, built = _Timed("center", "group"), _Timed("grouped_row", "grouped_center")
    for size in (_COUNT // 4, _COUNT):
        rows = _uniform(generator, size, width)
        queries = _uniform(generator, _QUERIES, width)
        made = group_count(size)
        start = process_time()
        index = ClusterIndex(rows, made, threads=1)
        time = 1e9 * (process_time() - start) / rows_assigned(size, made, index.clusters)
        built.add(_beside(made * width * scanned_byte, time), 1.0, made)
        for probe in (4, 32, made // 2):
            found = index.search(queries, k, probe=probe, explain=True, threads=1)
            if found.explanation is None:
                continue
            compared = index.clusters + float(found.explanation.candidates.mean())
            time = best_time(lambda: index.search(queries, k, probe=probe, threads=1))  # noqa: B023
            known = query + compared * width * scanned_byte
            read.add(_beside(known, time / _QUERIES), index.clusters, probe)
    return {**read.costs(), **built.costs()}


def _flip(generator: np.random.Generator) -> float:
    """Time choosing the likeliest sets of flips."""
    weights = generator.normal(size=(_QUERIES, 64)).astype(np.float32)
    normal, sets = Volatility.normal(), 32
    time = best_time(lambda: likely_sets(weights, None, 20, normal, 3, sets, 1))
    return time / (_QUERIES * sets * math.log2(1 + sets))


def _disk() -> float:
    """Time reading a file that is not cached; 0 if none can be written."""
    forget = getattr(os, "posix_fadvise", None)
    with contextlib.suppress(OSError), tempfile.TemporaryFile() as file:
        file.write(np.random.default_rng(_SEED).bytes(_DISK))
        file.flush()
        os.fsync(file.fileno())
        times = []
        for _ in range(2):
            if forget is not None:
                forget(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            start = perf_counter()
            while file.read(1 << 20):
                pass
            times.append(perf_counter() - start)
        return 1e9 * min(times) / _DISK
    return 0.0


def pushes(count: int, k: int) -> float:
    """Return how many of `count` in random order are among the k nearest so far."""
    most = min(k, count)
    return most * (1 + math.log(max(1.0, count / most))) if most else 0.0


def rows_assigned(count: int, made: int, groups: int) -> float:
    """Return how often a signature is assigned to a center while groups are built."""
    passes = -(-ROUNDS // ROUNDS_A_PASS)
    cheap = (ROUNDS - passes) * min(1.0, CANDIDATES / made)
    trained = min(count, PER_CENTER * made) * (passes + cheap)
    split = min(MOST_WORK, max(0.0, groups / made - 1.1))
    return trained + count * (1 + split)


def _beside(known: float, time: float) -> float:
    """Return a time minus that of steps of known cost; at least a tenth of it."""
    return max(time - known, 0.1 * time)


def _uniform(generator: np.random.Generator, count: int, width: int) -> Signatures:
    return generator.integers(0, 256, (count, width), dtype=np.uint8)
