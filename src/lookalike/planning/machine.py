"""What single steps cost on the machine at hand, in nanoseconds, and where that is remembered."""

from __future__ import annotations

import json
import math
import os
import platform
import zlib
from bisect import bisect_left
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from lookalike import _native
from lookalike.signatures.arrays import kernels
from lookalike.storage import user_cache_folder

__all__ = ["FORMAT", "Access", "MachineCosts", "access_time", "machine_costs"]

FORMAT = 6
"""To be raised when the meaning of a cost changes: older files are then measured again."""


Access = tuple[tuple[float, float], ...]
"""(bytes, nanoseconds) of reads at random places, in ascending order."""


def access_time(access: Access, size: float) -> float:
    """Return what a read at a random place of `size` bytes costs.

    Between sizes that were measured by the number of doublings; beyond the largest one as if the
    growth over the upper half of them went on.
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
    """Nanoseconds on one thread, for data that is in the cache, unless said otherwise.

    `access` is added for data that is not. Costs of a search were measured with the search itself,
    so that they hold everything it does on the way.
    """

    access: Access
    """(bytes, nanoseconds): a read at a random place of so many bytes, asked for in time."""
    waiting: Access
    """The same where the next place depends on what is read."""
    reading_byte: float
    """A byte of a long array, read from beginning to end."""
    query: float
    """A query, beside its steps."""
    scanned_byte: float
    """A byte of a signature, compared where many queries share the reading."""
    nearest: float
    """A neighbour that is among the k nearest so far."""
    match: float
    """A signature within the radius, handed out."""
    row: float
    """Comparing with a signature that lies at a place of its own."""
    row_byte: float
    """The same, for each byte of the signature."""
    within_list: float
    """A list looked up by a search within a radius."""
    within_sketch: float
    """A sketch of such a list, where there are some."""
    top_query: float
    """A query for nearest neighbours by lists, beside its steps."""
    top_list: float
    """A list looked up by a search for nearest neighbours."""
    top_posting: float
    """An entry of such a list, added to a score."""
    top_candidate: float
    """A candidate, chosen by its score and re-ranked."""
    slice_build: float
    """An entry of a list, written."""
    table_query: float
    """A query of a sorted table, beside its steps."""
    bucket: float
    """A bucket of a sorted table, looked up."""
    bucket_word: float
    """Eight bytes of a signature of such a bucket, compared."""
    table_build: float
    """A signature sorted into a table, among others with other headers."""
    table_byte: float
    """A byte of a signature, copied to its place in a new table."""
    table_sort: float
    """A signature sorted among others with the same header, each time these are twice as many."""
    centre: float
    """A centre of a group, put in order, beside comparing it."""
    group: float
    """A group read, beside the signatures in it."""
    grouped_row: float
    """A signature given to the nearest centre while groups are made, beside comparing."""
    grouped_centre: float
    """A centre that it is compared with, beside the bytes."""

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
        """Return the costs that `to_dict` gave; raises `ValueError` if these are none."""
        names = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or values.keys() != names:
            raise ValueError("not the costs of this version")
        access, waiting = (_curve(name, values[name]) for name in ("access", "waiting"))
        rest = {name: _cost(values[name]) for name in names - {"access", "waiting"}}
        return cls(access=access, waiting=waiting, **rest)


def _curve(name: str, points: Any) -> Access:
    if not isinstance(points, list | tuple) or len(points) < 2:
        raise ValueError(f"{name} is no list of points")
    curve = tuple((_cost(size), _cost(time)) for size, time in points)
    if any(a[0] >= b[0] for a, b in pairwise(curve)) or not curve[0][0]:
        raise ValueError(f"{name} is not in ascending order")
    return curve


def _cost(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is no cost")
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{value!r} is no cost")
    return float(value)


_known: dict[str, MachineCosts] = {}


def machine_costs(*, refresh: bool = False) -> MachineCosts:
    """Return the costs on this machine, measured once, in less than a second.

    They are kept in the user's cache folder (`XDG_CACHE_HOME`, or `~/.cache`), by processor,
    distance kernel and version. A file that is damaged is measured and written again; where
    nothing can be written they are remembered as long as the process lives. `refresh` measures
    anew, for a machine that was busy the first time.
    """
    machine = _machine()
    name = "-".join(str(part) for part in machine.values())
    if not refresh and name in _known:
        return _known[name]
    folder = user_cache_folder()
    path = folder / f"costs-{zlib.crc32(name.encode()):08x}.json" if folder else None
    costs = None if refresh or path is None else _read(path, machine)
    if costs is None:
        from lookalike.planning.measure import measure_costs  # builds indexes, so not at import

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
    """Return the costs in a file, or None if it is not there, not whole or of another machine."""
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
        if contents["machine"] != machine:
            return None
        return MachineCosts.from_dict(contents["costs"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, machine: dict[str, Any], costs: MachineCosts) -> None:
    """Write whole or not at all, and say nothing where that cannot be: it is only a cache."""
    text = json.dumps({"machine": machine, "costs": costs.to_dict()}, indent=1, allow_nan=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(text + "\n", encoding="utf-8")
        unfinished.replace(path)
    except OSError:
        return
