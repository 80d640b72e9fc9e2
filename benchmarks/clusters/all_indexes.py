"""Every index beside faiss's, as one picture: the time of a query against what it finds.

Only if named in full: the graph of a million signatures takes minutes to build. It is kept in the
cache, with the time that it took.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray

import lookalike as la
from benchmarks.answers import Nearest
from benchmarks.quality import Entry, QualityResult, nearest_quality, run_entries
from benchmarks.slices.enlarged import BITS, signed_collection
from benchmarks.slices.entries import EFFORT, FEW, K, entry, hnsw, ivf, ours, theirs
from benchmarks.slices.peers import (
    Built,
    build_clusters,
    build_flat,
    build_hnsw,
    build_ivf,
    build_prefixes,
    build_slices,
)
from lookalike.advice.plots import GRAY, line_style, log_axis

__all__ = ["NAMES", "draw", "run_indexes"]

NAMES = ("indexes", "indexes-real")
"""All collections, or that of real documents alone, which takes a minute."""

Signatures = NDArray[np.uint8]
Lines = Mapping[str, Sequence[str]]
"""Contenders that are the points of a line, by what the line is called."""

COUNT, QUERIES, NEAR_QUERIES = 1_000_000, 1000, 4000
PROBES = (2, 4, 8, 16, 32, 64, 128, 256)
WIDTHS = (16, 32, 64, 128, 256, 512)
"""Candidates that the graph keeps."""
READ = (2, 4, 8, 16, 32, 64, 128)
"""Lists of the inverted file that are read."""
ORDERS = 32
EXAMINED = (200, 1000, 5000, 20_000)
RADIUS = 3
"""Of the tables."""
LEAST_CDR = 0.9
"""What the picture begins with."""


def run_indexes(
    name: str, folder: Path | None, cache: Path, *, part: int
) -> Iterator[tuple[QualityResult, Lines]]:
    """Ask all indexes, with one thread; collections of which only a `part`-th is used."""
    collection = signed_collection(
        folder, cache, COUNT // part, QUERIES, NEAR_QUERIES // part, part=part
    )
    real = collection.real
    yield _asked("indexes-real", real[QUERIES:], real[:QUERIES], 512, cache)
    if name == NAMES[0]:
        rows, queries = collection.signatures, collection.queries
        yield _asked("indexes-large", rows, queries, max(64, 4096 // part), cache)


def _asked(
    name: str, rows: Signatures, queries: Signatures, lists: int, cache: Path
) -> tuple[QualityResult, Lines]:
    scan = la.ScanIndex(rows)
    truth = scan.search(queries, K).distances
    judge, few, plain = nearest_quality(truth), queries[:FEW], Built(scan, 0.0, BITS / 8)
    graph = _kept_graph(rows, cache)
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    file = build_ivf(rows, lists)
    faiss.omp_set_num_threads(1)
    flat, groups, slices = build_flat(rows), build_clusters(rows, 2), build_slices(rows, None, 2)
    orders = build_prefixes(rows, ORDERS)
    tables = Built(la.BlockIndex(rows, RADIUS), 0.0, BITS / 8)
    flips = Built(la.FlipIndex(rows), 0.0, BITS / 8)

    def own(title: str, built: Built, some: Signatures, **settings: Any) -> Entry:
        return entry(title, built, partial(_search, built, some, settings), len(some), judge)

    by_line: dict[str, list[Entry]] = {
        "ClusterIndex": [
            own(f"clusters, probe {probe}", groups, queries, probe=probe) for probe in PROBES
        ],
        "SliceIndex": [ours(slices, few, truth, expand) for expand in range(4)],
        "PrefixIndex": [
            own(f"{ORDERS} prefixes, {most} examined", orders, few, examine=most)
            for most in EXAMINED
        ],
        "ScanIndex": [own("scan", plain, few)],
        "BlockIndex, FlipIndex": [own("blocks", tables, few), own("flips", flips, few)],
        "faiss HNSW": [hnsw(graph, few, truth, width) for width in WIDTHS],
        f"faiss IVF, {lists:,} lists": [ivf(file, queries, truth, read) for read in READ],
        "faiss Flat": [theirs("faiss Flat", flat, few, truth)],
    }
    entries = [one for some in by_line.values() for one in some]
    title = f"{K} nearest of {len(rows):,} x {BITS} bits, 1 thread"
    result = run_entries(name, title, entries, len(queries), EFFORT)
    return result, {line: [one.name for one in some] for line, some in by_line.items()}


def _search(built: Built, queries: Signatures, settings: Mapping[str, Any]) -> Nearest:
    found = built.index.search(queries, K, threads=1, **settings)
    return Nearest(found.ids, found.distances)


def _kept_graph(rows: Signatures, cache: Path) -> Built:
    """Return the graph, built with all threads, which is kind to it; or as it was kept."""
    file = cache / f"hnsw-{len(rows)}-{zlib.crc32(np.ascontiguousarray(rows).data):08x}.faiss"
    about = file.with_suffix(".json")
    if about.is_file():
        known = json.loads(about.read_text())
        return Built(faiss.read_index_binary(str(file)), known["seconds"], known["bytes"])
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    graph = build_hnsw(rows)
    faiss.write_index_binary(graph.index, str(file))
    about.write_text(json.dumps({"seconds": graph.seconds, "bytes": graph.bytes_per_signature}))
    return graph


def draw(results: Sequence[tuple[QualityResult, Lines]], path: Path) -> None:
    """Write the picture: a panel for each collection; lower and more to the right is better."""
    with rc_context({"svg.hashsalt": "lookalike", "font.size": 10}):
        figure = Figure(figsize=(2.5 + 5.2 * len(results), 5.4), layout="constrained")
        panels = figure.subplots(1, len(results), squeeze=False)[0]
        for axes, (result, lines) in zip(panels, results, strict=True):
            _draw_panel(axes, result, lines)
        names, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            names,
            [label.partition(",")[0] if "IVF" in label else label for label in labels],
            loc="outside lower center",
            ncols=4,
            frameon=False,
        )
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw_panel(axes: Any, result: QualityResult, lines: Lines) -> None:
    times = result.times()
    for number, (line, names) in enumerate(lines.items()):
        theirs = line.startswith("faiss")
        style = line_style(number)
        if theirs:
            style |= {"linestyle": "--", "markerfacecolor": "white"}
        if line.startswith("BlockIndex"):  # which scan here, and would hide what scans
            style |= {"markerfacecolor": "none", "markersize": 11}
        if number == len(lines) - 1:
            style |= {"color": GRAY, "marker": "*", "markersize": 9}
        points = [
            (result.quality[name][f"CDR@{K}"], 1e6 * times[name].best / result.queries)
            for name in names
        ]
        shown = [point for point in points if point[0] >= LEAST_CDR]
        axes.plot([x for x, _ in shown], [y for _, y in shown], label=line, **style)
    axes.set_title(result.title, loc="left", fontsize=11, fontweight="bold")
    axes.set_xlim(LEAST_CDR, 1.004)
    axes.set_xlabel(f"CDR@{K} (1 is exact)")
    axes.set_ylabel("µs a query")
    log_axis(axes)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
