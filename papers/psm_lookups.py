"""Probabilistic near-duplicate detection using simhash (Sood and Loguinov, 2011): section 8.3.

The paper tried interpolation in place of binary search for permuted tables: fewer looks at memory,
and more time. Here both, beside the header tables that our indexes have. The loops are in C++, and
compiled when this runs: they are no part of the product.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookalike.advice.plots import short_count
from lookalike.errors import MissingDependencyError
from lookalike.indexes.rows import empty_in_large_pages
from lookalike.indexes.tables.sorted_table import header_width
from papers.page import Section, Verdict
from papers.shared import World, median_seconds

__all__ = ["Lookups", "run"]

HALVING, INTERPOLATION, HEADER = "binary search", "interpolation", "header table"
PAPER = {HALVING: "26", INTERPOLATION: "11", HEADER: ""}
ROUNDS = 3
MOST_QUERIES = 1_000_000
_SEED = 28
_SOURCE = Path(__file__).with_name("lookups.cpp")

Words = NDArray[np.uint64]


class Lookups:
    """Sorted fingerprints, and three ways to find where a header of some bits begins."""

    def __init__(self, fingerprints: Words, bits: int) -> None:
        self.bits = bits
        self.sorted = empty_in_large_pages((len(fingerprints),), np.uint64)
        self.sorted[:] = fingerprints
        self.sorted.sort()
        headers = np.bincount((self.sorted >> np.uint64(64 - bits)).view(np.int64))
        self.offsets = empty_in_large_pages(((1 << bits) + 1,), np.uint32)
        self.offsets[:] = len(fingerprints)
        self.offsets[0] = 0
        self.offsets[1 : len(headers) + 1] = np.cumsum(headers)
        self._library = _compiled()

    def ways(self, queries: Words) -> dict[str, Callable[[], tuple[Words, int]]]:
        """Return what looks for the headers of these: the places, and looks at memory in all."""
        shift = np.uint64(64 - self.bits)
        targets = np.ascontiguousarray(queries >> shift << shift)
        places = np.empty(len(targets), np.uint64)

        def way(name: str, table: NDArray[np.generic], size: int) -> tuple[Words, int]:
            function = getattr(self._library, name)
            function.restype = ctypes.c_uint64
            looks = function(
                ctypes.c_void_p(table.ctypes.data),
                ctypes.c_size_t(size),
                ctypes.c_void_p(targets.ctypes.data),
                ctypes.c_size_t(len(targets)),
                ctypes.c_void_p(places.ctypes.data),
            )
            return places.copy(), int(looks)

        return {
            HALVING: lambda: way("by_halving", self.sorted, len(self.sorted)),
            INTERPOLATION: lambda: way("by_interpolation", self.sorted, len(self.sorted)),
            HEADER: lambda: way("by_header", self.offsets, self.bits),
        }


def run(world: World) -> Iterator[Section]:
    """Look for headers in generated fingerprints, and in ones that are spread evenly."""
    data = world.generated
    count = len(data.signatures)
    generator = np.random.default_rng(_SEED)
    sources = {
        "like text's": (data.signatures, data.queries[:MOST_QUERIES]),
        "even": (
            generator.integers(0, 2**64, count, dtype=np.uint64),
            generator.integers(0, 2**64, min(MOST_QUERIES, len(data.queries)), dtype=np.uint64),
        ),
    }
    bits = header_width(count)
    lines, looked, times = [], {}, {}
    for source, (fingerprints, queries) in sources.items():
        lookups = Lookups(fingerprints, bits)
        for name, way in lookups.ways(queries).items():
            looked[source, name] = way()[1] / len(queries)
            times[source, name] = 1e9 * median_seconds(way, ROUNDS) / len(queries)
            lines.append(
                (
                    f"{source}, {name}",
                    PAPER[name] if source == "like text's" else "",
                    f"{looked[source, name]:.1f}",
                    f"{times[source, name]:.0f}",
                    f"{times[source, HALVING] / times[source, name]:.1f}",
                )
            )
        del lookups
    own = "like text's"
    slower = times[own, INTERPOLATION] > times[own, HALVING]
    fewer = looked[own, INTERPOLATION] < looked[own, HALVING]
    yield Section(
        "Section 8.3: interpolation in place of binary search",
        f"{short_count(count)} generated fingerprints, sorted. The task is to find where the run "
        f"of a query's first {bits} bits begins. The paper (d = 26): interpolation needs 11 "
        "memory accesses instead of 26, but takes longer because of the arithmetic of each jump. "
        "(Also, the first accesses of a binary search are the same for all queries, and in the "
        f"cache.) Processor time of one thread, median of {ROUNDS}. Fingerprints of texts are not "
        "uniform, because some bits are set more often than others; with uniform ones, "
        "interpolation needs only a few accesses. A table of where each header begins needs one "
        "access, no arithmetic, and 4 bytes per header: `BlockIndex` and `FlipIndex` have it.",
        ("fingerprints, way", "looks, paper", "looks, ours", "ns a search", "times as quick"),
        lines,
        verdict=Verdict.of(
            [fewer, slower],
            f"Interpolation needs {looked[own, INTERPOLATION]:.0f} memory accesses instead of "
            f"{looked[own, HALVING]:.0f} (paper 11 of 26), and takes "
            f"{times[own, INTERPOLATION]:.0f} ns instead of {times[own, HALVING]:.0f} (paper: "
            f"slower). Our header tables need one access and {times[own, HEADER]:.0f} ns.",
        ),
    )


def _compiled() -> ctypes.CDLL:
    """Compile the loops and load them."""
    compiler = os.environ.get("CXX") or "c++"
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "lookups.so"
        command = [compiler, "-std=c++20", "-O3", "-shared", "-fPIC"]
        try:
            subprocess.run([*command, str(_SOURCE), "-o", str(library)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise MissingDependencyError(
                f"{_SOURCE.name} cannot be compiled ({error}); expected a C++ compiler: name it in "
                "CXX"
            ) from error
        return ctypes.CDLL(str(library))
