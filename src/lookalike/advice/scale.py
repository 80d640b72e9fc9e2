"""What billions of documents take, on paper: from constants that were measured on smaller runs.

Dedup on Spark: time of cores, bytes that are shuffled and stored, memory of tasks, and the largest
task with skewed data. Search: machines or GPUs, and their memory. docs/scale.md has the runs that
the constants come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.advice.planner import plan
from lookalike.checks import one_of, share, whole_number
from lookalike.display import Displayed
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.bands import choose_bands

Engine = Literal["spark", "shards", "gpu"]
ENGINES = ("spark", "shards", "gpu")

# Skew: sizes of groups that share bands fall like rank**-0.61 in 66,807 Debian descriptions, of
# which 14% are in such groups. Steeper ones, and more documents in groups, are drawn too.
_EXPONENTS = (0.6, 0.8, 1.0, 1.3)
_IN_GROUPS = 0.3
_MORE_SHARDS = 10  # steps of a quarter, up to 7.5 times as many machines
_HOT_KEYS = 3  # keys of the largest possible size that meet in a task
_MOST_DOCUMENTS = 10**13


@dataclass(frozen=True, slots=True)
class SparkConstants:
    """What a document takes, measured with abstracts of 740 bytes and 21 bands.

    Each million more took 22 core-seconds from one million to three: half of it for signing, a
    quarter for bands, a quarter for reading texts that are compared.
    """

    text_seconds: float = 16.5e-6 / 740
    """Of a core, for each byte of text."""
    band_seconds: float = 5.5e-6 / 21
    """Of a core, for each band of a document."""
    start_seconds: float = 6.0
    """Of a core, whatever the size."""
    band_bytes: float = 12.2
    """Shuffled for each band of a document: its key and the position."""
    fingerprint_bytes: int = 30
    stored_bytes: int = 24
    """In `work` for each document, beside two bytes for each permutation."""
    pair_bytes: int = 180
    """Shuffled for each pair: three times 60."""
    compared_bytes: int = 256
    """Shuffled for each document that is compared, beside its text."""
    component_pair_bytes: int = 28
    """In one task, for each pair of a large component."""
    entries_a_task: int = 4_000_000
    """Bands of documents."""
    hot_rows: int = 200
    """Rows of one key that a partition sends; of more, only their number."""
    paired_with: int = 32
    """Rows that a row of a hot key is paired with, at most: the 16 best and the next 16."""
    compared_at_once: int = 20_000
    """Documents of a task that compares."""
    features_times: int = 5
    """Size of texts and their features, times the texts."""


SPARK = SparkConstants()

# One NVIDIA H200, 500 million signatures of 1024 bits: 64 GB, in passes for up to 256 queries.
GPU_BYTES = 141e9
GPU_SHARE = 0.9
_GPU_PASS_SECONDS = 24.9e-3 / 64e9
_GPU_ONE_SECONDS = 14.1e-3 / 64e9
_GPU_START_SECONDS = 3e-3
GPU_BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScalePlan(Displayed):
    """What a number of documents takes on an engine: figures by name, and notes on them."""

    engine: Engine
    documents: int
    figures: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all values, fit for JSON."""
        return {
            "engine": self.engine,
            "documents": self.documents,
            "figures": dict(self.figures),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        width = max(map(len, self.figures))
        lines = [f"{self.documents:,} documents, engine {self.engine}", ""]
        lines += [f"  {name.ljust(width)}  {_shown(name, v)}" for name, v in self.figures.items()]
        return "\n".join([*lines, "", *self.notes])


def _shown(name: str, value: float) -> str:
    if "bytes" in name or "memory" in name or "shuffled" in name or "disk" in name:
        for unit, large in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
            if value >= large:
                return f"{value / large:,.3g} {unit}"
        return f"{value:,.0f} bytes"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.3g}"


def plan_scale(
    documents: SupportsIndex,
    engine: str,
    *,
    text_bytes: SupportsIndex = 740,
    duplicates: SupportsFloat = 0.1,
    cores: SupportsIndex = 1600,
    memory: SupportsIndex = 64 * 10**9,
    bits: SupportsIndex = 1024,
    k: SupportsIndex | None = None,
    radius: SupportsIndex | None = None,
) -> ScalePlan:
    """Predict what dedup or search of very many documents takes.

    Args:
        documents: Number of documents.
        engine: "spark" for dedup on a cluster, "shards" or "gpu" for search.
        text_bytes: Average size of a text, for "spark".
        duplicates: Share of documents that have a near-duplicate, for "spark".
        cores: Number of cores of the cluster, for "spark".
        memory: Memory of a machine, for "shards", in bytes.
        bits: Bits of a signature, for "shards" and "gpu".
        k: Number of neighbors, for "shards" (default: 10 if there is no radius).
        radius: Largest Hamming distance, for "shards".

    Returns:
        The predictions by name.

    Examples:
        >>> found = la.advice.plan_scale(10**9, "gpu", bits=1024)
        >>> found.figures["GPUs"]
        2
    """
    count = whole_number("documents", documents, at_least=1, at_most=_MOST_DOCUMENTS)
    kind = one_of("engine", engine, ENGINES)
    if kind == "spark":
        size = whole_number("text_bytes", text_bytes, at_least=1)
        workers = whole_number("cores", cores, at_least=1)
        return _on_spark(count, size, share("duplicates", duplicates), workers)
    width = whole_number("bits", bits, at_least=8)
    if kind == "gpu":
        return _on_gpus(count, width)
    room = whole_number("memory", memory, at_least=10**6)
    return _on_shards(count, width, room, k, radius)


def _on_spark(count: int, text_bytes: int, duplicates: float, cores: int) -> ScalePlan:
    """Dedup by MinHash of 128 permutations at a threshold of 0.8."""
    permutations, threshold = 128, 0.8
    bands = choose_bands(permutations, threshold).bands
    seconds = SPARK.start_seconds + count * (
        SPARK.text_seconds * text_bytes + SPARK.band_seconds * bands
    )
    entries = count * bands
    tasks = max(1, math.ceil(entries / SPARK.entries_a_task))
    partitions = max(1, math.ceil(count / 100_000))
    compared = duplicates * count
    shuffled = count * (SPARK.band_bytes * bands + SPARK.fingerprint_bytes)
    shuffled += compared * (text_bytes + SPARK.compared_bytes) + compared * SPARK.pair_bytes
    skewed = max(
        int(
            simulate_skew(
                count, partitions=partitions, bands=bands, exponent=one, in_groups=_IN_GROUPS
            ).max()
        )
        for one in _EXPONENTS
    )
    bound = SPARK.entries_a_task + largest_task(partitions, _HOT_KEYS)
    figures = {
        "core-hours": seconds / 3600,
        "minutes on all cores": seconds / 60 / cores,
        "shuffled": shuffled,
        "shuffled for bands": count * SPARK.band_bytes * bands,
        "disk in work": count * (2 * permutations + SPARK.stored_bytes) + 30 * compared,
        "band tasks": tasks,
        "memory of a band task": 3 * 16 * min(entries, SPARK.entries_a_task),
        "memory of a comparing task": SPARK.features_times * text_bytes * SPARK.compared_at_once,
        "memory of each bit array": count / 8,
        "rows of the largest band task": skewed,
        "rows with three hot keys": bound,
        "memory of the largest band task": 3 * 16 * max(skewed, bound),
    }
    return ScalePlan(
        engine="spark",
        documents=count,
        figures=figures,
        notes=(
            f"MinHash of {permutations} permutations, {bands} bands, threshold {threshold:g}, "
            f"texts of {text_bytes:,} bytes,",
            f"{duplicates:.0%} of the documents with a near-duplicate, {partitions:,} input "
            "partitions of up to 100,000 documents.",
            "A key of a band is in one task, which gets at most "
            f"{SPARK.hot_rows} of its rows from each partition.",
            f"The largest task is drawn with {_IN_GROUPS:.0%} of the documents in groups of Zipf "
            "sizes; with three hot keys: three of the largest keys meet.",
            "Extrapolated from runs of 1 to 3 million documents on two cores.",
        ),
    )


def largest_task(partitions: int, keys: int = 1) -> int:
    """Return how many rows of hot keys a task gets at most, if it has this number of them."""
    return SPARK.hot_rows * partitions * keys


def _on_gpus(count: int, bits: int) -> ScalePlan:
    """Exhaustive search of signatures that are shared out to GPUs."""
    size = count * bits / 8
    cards = max(1, math.ceil(size / (GPU_BYTES * GPU_SHARE)))
    each = size / cards
    batch = _GPU_START_SECONDS + each * _GPU_PASS_SECONDS
    return ScalePlan(
        engine="gpu",
        documents=count,
        figures={
            "signature bytes": size,
            "GPUs": cards,
            "memory of a GPU": each,
            "ms for one query": 1e3 * (1.2e-3 + each * _GPU_ONE_SECONDS),
            f"ms for {GPU_BATCH} queries": 1e3 * batch,
            "queries a second": GPU_BATCH / batch,
        },
        notes=(
            f"Exact search of {bits}-bit signatures; {GPU_SHARE:.0%} of {GPU_BYTES / 1e9:.0f} GB "
            "of a GPU hold signatures.",
            "From 500 million signatures of 1024 bits on one NVIDIA H200; several GPUs search at "
            "the same time.",
        ),
    )


def _on_shards(
    count: int,
    bits: int,
    memory: int,
    k: SupportsIndex | None,
    radius: SupportsIndex | None,
) -> ScalePlan:
    """Search of indexes on several machines, each with as much as its memory holds."""
    if k is None and radius is None:
        k = 10
    width = bits // 8
    if width > memory:
        raise ArgumentError(
            Said("memory"), f" is {memory} bytes; a signature of {bits} bits alone takes {width}"
        )
    # As few machines as hold the signatures, or more if an index then fits that does not scan.
    least = max(1, math.ceil(count * width / (0.9 * memory)))
    tried = sorted({math.ceil(least * 1.25**step) for step in range(_MORE_SHARDS)})
    asked: dict[str, Any] = {"bits": bits, "k": k, "radius": radius, "memory": int(0.9 * memory)}
    shards, found = least, plan(count=math.ceil(count / least), **asked)
    for number in tried[1:]:
        if found.chosen.index != "scan":
            break
        other = plan(count=math.ceil(count / number), **asked)
        if other.chosen.index != "scan":
            shards, found = number, other
    each = math.ceil(count / shards)
    chosen = found.chosen
    return ScalePlan(
        engine="shards",
        documents=count,
        figures={
            "signature bytes": count * width,
            "shards": shards,
            "documents of a shard": each,
            "memory of a shard": chosen.memory_bytes,
            "memory of all shards": shards * chosen.memory_bytes,
            "core-hours to build": shards * chosen.build_seconds / 3600,
            "ms for a query in each shard": 1e-3 * chosen.microseconds,
            "queries a second of a core": 1e6 / max(chosen.microseconds, 1e-3),
        },
        notes=(
            f"Index {chosen.index} of {bits}-bit signatures on machines of {memory / 1e9:,.0f} GB, "
            "one thread each, queries in batches.",
            "Every shard is asked, so more machines shorten a query and do not raise the number of "
            "queries.",
            "Predicted by `plan` from the cost of steps on this machine.",
        ),
    )


def simulate_skew(
    documents: int,
    *,
    partitions: int,
    bands: int,
    exponent: float,
    in_groups: float,
    groups: int = 1000,
    tasks: int | None = None,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Draw near-duplicate groups of Zipf sizes, and return how many band rows each task gets.

    Groups share all their bands, which is the worst case. The largest group has a share of the
    documents in groups that follows from the exponent: size number r is proportional to
    r**-exponent. Rows are spread over partitions at random. A partition with more than 200 rows of
    a key sends one row for it.
    """
    generator = np.random.default_rng(seed)
    number = max(1, math.ceil(documents * bands / SPARK.entries_a_task)) if tasks is None else tasks
    sizes = np.arange(1, groups + 1, dtype=np.float64) ** -exponent
    sizes = np.maximum(2, sizes * (in_groups * documents / sizes.sum())).astype(np.int64)
    sent = np.array([rows_sent(int(size), partitions) for size in sizes])
    cold = max(0, documents - int(sizes.sum()))
    # Keys of documents without a group, which are spread evenly.
    load = generator.poisson(cold * bands / number, number).astype(np.int64)
    for _ in range(bands):
        np.add.at(load, generator.integers(number, size=groups), sent)
    return load


def rows_sent(size: int, partitions: int) -> int:
    """Return how many rows of a key with this number of rows are expected at its task."""
    average = size / partitions
    counts = np.arange(SPARK.hot_rows + 1)
    logs = counts * math.log(average) - average
    logs -= np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    chances = np.exp(logs)  # of each number of rows in a partition
    sent = float(counts @ chances) + max(0.0, 1 - float(chances.sum()))
    return min(size, round(partitions * sent))
