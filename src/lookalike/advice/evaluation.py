"""evaluate: measure indexes with many settings against the exhaustive scan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.advice.measures import (
    cumulative_distance_ratio,
    near_duplicate_recall,
    nearest_hit_rate,
    recall_at_k,
    recall_by_distance,
    top_in_top,
)
from lookalike.checks import seed_number, thread_count, whole_number, whole_numbers
from lookalike.display import Records
from lookalike.errors import ArgumentError, Said
from lookalike.indexes import ClusterIndex, Index, Neighbors, ScanIndex
from lookalike.indexes.kinds import KINDS, Settings
from lookalike.indexes.rows import Signatures
from lookalike.indexes.slices.lists import MOST_SLICE_BITS, slice_width
from lookalike.indexes.slices.search import rerank_count
from lookalike.indexes.tables.prefixes import MOST_ORDERS
from lookalike.indexes.tuning import (
    Measure,
    Option,
    Tuning,
    build_option,
    other_columns,
    sampling_error,
)
from lookalike.progress import Progress, listener, shows_progress
from lookalike.shown import brief
from lookalike.signatures import as_queries, as_signatures, hamming

Search = Callable[..., Neighbors]  # searches an index: takes queries, k and `explain`
Grid = list[tuple[Settings, list[Settings]]]  # build arguments, each with a list of search settings
NEAR = 0.1  # near-duplicates differ in at most this share of their bits
WIDE = 100  # smallest number of true neighbors that are searched for
SMALLEST = 1000  # smallest collection that `growth` measures
_NAMES = {"cdr": "CDR", "recall": "recall"}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Measurement(Option):
    """Cost and quality of an option, averaged over the queries."""

    recall: float = 1.0
    """Share of the true k neighbors that was found, by id."""
    count: int
    """Number of signatures."""
    milliseconds: float
    """Time of one query, searched alone."""
    batch_milliseconds: float
    """Time of one query in a batch."""
    build_seconds: float
    bytes_per_signature: float
    """Size of signature and index."""
    cdr: float
    """Cumulative distance ratio of the k nearest."""
    cdr_error: float = 0.0
    """Sampling error of the CDR: two standard errors."""
    recall_by_distance: float
    """Recall where any signature as near as the true k-th counts."""
    nearest_hit_rate: float
    """Share of queries with a nearest signature in first place."""
    near_duplicate_recall: float | None
    """Share found of those that differ in at most a tenth of the bits; None if none do."""
    top_10_in_10: float
    """Share of the first ten results that are among the true first ten."""
    top_10_in_100: float
    """Share of the first ten results that are among the true first hundred."""
    lists: float
    """Number of lists read per query."""
    touched: float
    """Share of the collection that became candidates."""
    groups: int | None = None
    """Number of groups of a `ClusterIndex`, after splits."""

    def value(self, measure: Measure) -> float:
        """Return the CDR or the recall."""
        return self.cdr if measure == "cdr" else self.recall

    def surely(self, measure: Measure) -> float:
        """Return the recall or CDR minus its sampling error."""
        return self.value(measure) - (self.cdr_error if measure == "cdr" else self.error)

    def table(self, tuning: Tuning[Any]) -> str:
        """Return a table of measurements, with the choice marked if there was a target."""
        marked = None if tuning.target is None else self
        return measurement_table(tuning.options, tuning.k or 1, marked=marked)

    def reason(self, tuning: Tuning[Any]) -> str:
        """Return why this was chosen; empty without a target."""
        if tuning.target is None:
            return ""
        scan: Measurement = tuning.options[0]
        name, tried = f"{_NAMES[tuning.measure]}@{tuning.k}", len(tuning.options) - 1
        if self is scan:
            why = f"None of {tried} settings reaches a {name} of {tuning.target:g}"
            if any(row.value(tuning.measure) >= tuning.target for row in tuning.options[1:]):
                why = f"Nothing that surely reaches a {name} of {tuning.target:g} is quicker"
            return f"{why}: the scan is exact, in {scan.milliseconds:.3f} ms a query."
        times = scan.milliseconds / self.milliseconds
        what = f"{self.get('slice_bits')}-bit slices, expand {self.get('expand')}"
        what += f", admit {self.get('admit')}"
        if self.groups is not None:
            what = f"{self.groups} groups, {self.get('probe')} of them read"
        return (
            f"Chosen of {tried}, the quickest that reaches {tuning.target:g}:\n"
            f"{what}: {name} {self.value(tuning.measure):.3f} ± {tuning.error:.3f} in "
            f"{self.milliseconds:.3f} ms a query.\nThe exhaustive scan takes "
            f"{scan.milliseconds:.3f} ms, {times:.1f} times as long."
        )


@shows_progress
def evaluate(
    signatures: ArrayLike,
    queries: ArrayLike | None = None,
    *,
    k: SupportsIndex = 10,
    sample: SupportsIndex = 200,
    slice_bits: Iterable[SupportsIndex] | None = None,
    expand: Iterable[SupportsIndex] = (0, 1, 2, 3),
    admit: Iterable[SupportsIndex] | Literal["all"] | None = None,
    seed: SupportsIndex = 0,
    threads: SupportsIndex | None = 1,
    progress: Progress | bool | None = None,
    rerank: Iterable[SupportsIndex] | None = None,
    orders: Iterable[SupportsIndex] | None = None,
    clusters: Iterable[SupportsIndex] | None = None,
    probe: Iterable[SupportsIndex] | None = None,
    kinds: Iterable[str] = (),
) -> Tuning[Measurement]:
    """Measure indexes with many combinations of settings against `ScanIndex`.

    Takes three scans of all queries, one build per index, and two searches of all queries per
    setting.

    Args:
        signatures: The collection.
        queries: Signatures to search for (default: `sample` signatures, each among the others).
        k: Number of neighbors (default: 10).
        sample: Number of sampled queries (default: 200).
        slice_bits: Slice widths to build (default: the default of `SliceIndex`).
        expand: Values of `expand` to search with.
        admit: Values of `admit`, or "all" for 0 to `expand` (default: the same as `expand`).
        seed: Random seed for the sample (default: 0).
        threads: Number of threads (default: 1); None means all cores.
        progress: Called with "evaluate" and the share of settings measured; True shows a bar.
        rerank: Values of `rerank`, each at least k, or 0 (default: the default of `SliceIndex`).
        orders: Also measure a `PrefixIndex` with each number of orders.
        clusters: Also measure a `ClusterIndex` with each number of groups.
        probe: Numbers of groups to read, with `clusters` (default: the default of the index).
        kinds: Also measure these kinds of index with default settings, such as "blocks".

    Returns:
        One option per setting. The exhaustive scan comes first and is chosen.
    """
    rows = as_signatures(signatures)
    count, bits = rows.shape[0], 8 * rows.shape[1]
    tell = listener(progress)
    workers = thread_count(threads)
    usual = GridRequest(count=count, bits=bits, k=whole_number("k", k, at_least=1))
    asked = replace(
        usual,
        slice_bits=[slice_width(count, bits)] if slice_bits is None else slice_bits,
        expand=expand,
        admit=admit,
        rerank=rerank,
        orders=orders,
        clusters=clusters,
        probe=probe,
    )
    if probe is not None and clusters is None:
        raise ArgumentError(
            Said("probe"), " goes with ", Said("clusters"), ", how many groups to make"
        )
    try:
        named = [kinds] if isinstance(kinds, str) else list(kinds)
    except TypeError:
        raise ArgumentError(
            Said("kinds"), f" are {brief(kinds)}; expected a list of names"
        ) from None
    grid = [
        (kind.name, *each)
        for kind in KINDS
        if kind.grid
        and any(
            getattr(asked, option.name, None) is not getattr(usual, option.name, None)
            for option in kind.options
        )
        for each in kind.measured(asked)
    ]
    for kind in [KINDS.get(name, "kinds") for name in named]:
        grid += [(kind.name, *each) for each in kind.measured(usual)]
    questions = Questions.of(rows, queries, k=usual.k, sample=sample, seed=seed, threads=workers)
    scan = measure_scan(questions)
    measured = [scan]
    total = sum(len(settings) for _, _, settings in grid)
    for index, parameters, settings in grid:
        for measurement in measure_index(questions, rows, index, parameters, settings):
            measured.append(measurement)
            tell("evaluate", (len(measured) - 1) / total)
    return Tuning(
        target=None,
        measure="cdr",
        k=questions.k,
        count=count,
        bits=bits,
        threads=workers,
        queries=len(questions.queries),
        sampled=count,
        chosen=scan,
        options=tuple(measured),
    )


@dataclass(frozen=True, kw_only=True)
class GridRequest:
    """What `evaluate` measures; each kind reads its own settings."""

    count: int
    bits: int
    k: int
    slice_bits: Iterable[SupportsIndex] | None = None
    expand: Iterable[SupportsIndex] = ()
    admit: Iterable[SupportsIndex] | Literal["all"] | None = None
    rerank: Iterable[SupportsIndex] | None = None
    orders: Iterable[SupportsIndex] | None = None
    clusters: Iterable[SupportsIndex] | None = None
    probe: Iterable[SupportsIndex] | None = None


def slice_grid(request: GridRequest) -> Grid:
    """Return each slice width with every combination of `expand`, `admit` and `rerank`."""
    if request.slice_bits is None:
        return [({}, [{}])]
    pairs = setting_pairs(request.expand, request.admit)
    reranks: list[Settings] = [{}]
    if request.rerank is not None:
        numbers = whole_numbers("rerank", request.rerank, at_least=0)
        reranks = [{"rerank": rerank_count(number, request.k)} for number in numbers]
    settings: list[Settings] = [
        {"expand": wide, "admit": narrow, **rerank}
        for (wide, narrow), rerank in product(pairs, reranks)
    ]
    widths = whole_numbers("slice_bits", request.slice_bits, at_least=1, at_most=MOST_SLICE_BITS)
    return [({"slice_bits": width}, settings) for width in widths]


def prefix_grid(request: GridRequest) -> Grid:
    """Return each number of orders."""
    if request.orders is None:
        return [({}, [{}])]
    numbers = whole_numbers("orders", request.orders, at_least=1, at_most=MOST_ORDERS)
    return [({"orders": number}, [{}]) for number in numbers]


def cluster_grid(request: GridRequest) -> Grid:
    """Return each number of groups with each number of them to read."""
    if request.clusters is None:
        return [({}, [{}])]
    most = max(1, request.count)
    numbers = whole_numbers("clusters", request.clusters, at_least=1, at_most=most)
    probes: list[Settings] = [{}]
    if request.probe is not None:
        probes = [{"probe": n} for n in whole_numbers("probe", request.probe, at_least=1)]
    return [({"clusters": number}, probes) for number in numbers]


def setting_pairs(
    expand: Iterable[SupportsIndex], admit: Iterable[SupportsIndex] | Literal["all"] | None
) -> Sequence[tuple[int, int]]:
    """Return every (expand, admit) with admit at most expand, in order, each once."""
    wide = whole_numbers("expand", expand, at_least=0, at_most=MOST_SLICE_BITS)
    if admit is None:
        return [(most, most) for most in wide]
    if isinstance(admit, str):
        if admit != "all":
            raise ArgumentError(
                Said("admit"), f" is {brief(admit)}; expected numbers, 'all' or None"
            )
        return [(most, narrow) for most in wide for narrow in range(most + 1)]
    narrow_ones = whole_numbers("admit", admit, at_least=0)
    return [(most, n) for most in wide for n in sorted({min(one, most) for one in narrow_ones})]


@shows_progress
def growth(
    signatures: ArrayLike,
    *,
    sizes: Iterable[SupportsIndex] | None = None,
    slice_bits: SupportsIndex | None = None,
    k: SupportsIndex = 10,
    expand: SupportsIndex = 3,
    admit: SupportsIndex | None = None,
    sample: SupportsIndex = 100,
    seed: SupportsIndex = 0,
    threads: SupportsIndex | None = 1,
    progress: Progress | bool | None = None,
) -> Records[Measurement]:
    """Measure the scan and `SliceIndex` on parts of the collection, each twice the one before.

    This is Figure 3 of the paper. Parts are random and nested; queries are not in them.

    Args:
        signatures: The collection.
        sizes: Numbers of signatures (default: 1000, 2000, ...).
        slice_bits: Slice width for all sizes (default: the default of `SliceIndex`).
        k: Number of neighbors (default: 10).
        expand: Read lists that differ from a query's slice in at most this many bits (default: 3).
        admit: Add candidates only from lists that differ in at most this many bits (default:
            `expand`).
        sample: Number of queries (default: 100, at most a tenth of the collection).
        seed: Random seed (default: 0).
        threads: Number of threads (default: 1); None means all cores.
        progress: Called with "growth" and the share of sizes measured; True shows a bar.

    Returns:
        Two rows for each size, the scan first.
    """
    rows = as_signatures(signatures)
    if len(rows) < 2:
        raise ArgumentError(f"the collection has {len(rows)} signatures; expected at least 2")
    held_out = min(whole_number("sample", sample, at_least=1), max(1, len(rows) // 10))
    counts = _sizes(sizes, len(rows) - held_out)
    tell = listener(progress)
    wide = whole_number("expand", expand, at_least=0)
    narrow = wide if admit is None else whole_number("admit", admit, at_least=0)
    settings = [{"expand": wide, "admit": min(narrow, wide)}]
    workers, bits = thread_count(threads), 8 * rows.shape[1]
    order = np.random.default_rng(seed_number(seed)).permutation(len(rows))
    queries, pool = rows[np.sort(order[:held_out])], order[held_out:]
    measured = Records(Measurement)
    for count in counts:
        part = rows[np.sort(pool[:count])]
        questions = Questions.of(part, queries, k=k, sample=1, seed=0, threads=workers)
        measured.append(measure_scan(questions))
        width = slice_width(count, bits)
        if slice_bits is not None:
            width = whole_number("slice_bits", slice_bits, at_least=1)
        measured += measure_index(questions, part, "slices", {"slice_bits": width}, settings)
        tell("growth", len(measured) / 2 / len(counts))
    return measured


def _sizes(sizes: Iterable[SupportsIndex] | None, most: int) -> list[int]:
    """Return the sizes given, or 1000, 2000, ... up to `most`; for a smaller collection, all."""
    if sizes is None:
        doublings = range((most // SMALLEST).bit_length())
        return [SMALLEST << power for power in doublings] or [most]
    counts = whole_numbers("sizes", sizes, at_least=1)
    if counts[-1] > most:
        raise ArgumentError(
            f"sizes are {counts}; expected whole numbers up to {most}, which is the collection "
            "without the queries"
        )
    return counts


@dataclass(frozen=True, eq=False, slots=True)
class Answers:
    """Result of a search, and its time."""

    neighbors: Neighbors
    seconds: float  # mean time of one query, searched alone
    batch_seconds: float  # time of one query in a batch


@dataclass(frozen=True, eq=False, slots=True)
class Questions:
    """Queries, and their true neighbors in a collection.

    Queries from the collection are not their own neighbors.
    """

    queries: Signatures
    members: NDArray[np.int64] | None
    """Positions of the queries in the collection; None if they were given."""
    k: int
    threads: int
    index: ScanIndex  # the collection
    truth: Neighbors  # true neighbors, at least 100

    @classmethod
    def of(
        cls,
        signatures: ArrayLike,
        queries: ArrayLike | None = None,
        *,
        k: SupportsIndex,
        sample: SupportsIndex,
        seed: SupportsIndex,
        threads: int,
    ) -> Questions:
        """Find the true neighbors of the queries, or of `sample` signatures."""
        collection = as_signatures(signatures)
        count, wanted = len(collection), whole_number("k", k, at_least=1)
        members = None
        if queries is not None:
            rows = as_queries(queries, 8 * collection.shape[1])
            if not len(rows):
                raise ArgumentError("there are no queries; expected at least one")
            if count == 0:
                raise ArgumentError("there are no signatures; expected at least one")
        else:
            size = whole_number("sample", sample, at_least=1)
            if count < 2:
                raise ArgumentError(
                    f"the collection has {count} signatures; expected at least 2, because a "
                    "sampled signature is looked for among the others"
                )
            rng = np.random.default_rng(seed_number(seed))
            members = np.sort(rng.choice(count, min(size, count), replace=False))
            rows = collection[members]
        index, extra = ScanIndex(collection), 0 if members is None else 1
        truth = index.search(rows, max(wanted, WIDE) + extra, threads=threads)
        return cls(rows, members, wanted, threads, index, _without(truth, members))

    def ask(self, search: Search) -> Answers:
        """Search for all queries at once, then for each alone, and measure the time."""
        wanted = self.k if self.members is None else self.k + 1
        start = time.perf_counter()
        found = search(self.queries, wanted, explain=True)
        middle = time.perf_counter()
        for query in self.queries:
            search(query, wanted, explain=False)
        count, end = len(self.queries), time.perf_counter()
        found = _without(found, self.members)
        return Answers(found, (end - middle) / count, (middle - start) / count)


def _without(found: Neighbors, members: NDArray[np.int64] | None) -> Neighbors:
    """Return all columns except that of the query itself."""
    if members is None:
        return found
    others, count = other_columns(found.ids, members), len(found.ids)
    ids = found.ids[others].reshape(count, -1)
    distances = found.distances[others].reshape(count, -1)
    scores = None if found.scores is None else found.scores[others].reshape(ids.shape)
    return Neighbors(ids, distances, found.exact, found.explanation, scores)


def near_radius(bits: int) -> int:
    """Return the largest distance of near-duplicates: a tenth of the bits."""
    return int(bits * NEAR)


def measure_scan(questions: Questions) -> Measurement:
    """Return the measurement of the exhaustive scan."""
    index = questions.index
    answers = questions.ask(partial(searched_index, index, threads=questions.threads))
    return _measurement(questions, answers, len(index), index.bits)


def measure_index(
    questions: Questions,
    signatures: Signatures,
    index: str,
    parameters: Settings,
    settings: Iterable[Settings],
) -> Iterator[Measurement]:
    """Build an index and yield the measurement of each setting, until all groups are read."""
    start = time.perf_counter()
    option = Option(index=index, parameters=parameters)
    built = build_option(option, signatures, threads=questions.threads)
    seconds = time.perf_counter() - start
    groups = built.clusters if isinstance(built, ClusterIndex) else None
    for given in settings:
        used, asked = dict(given), given.get("probe")
        if groups is not None:
            used["probe"] = min(built.stats()["probe"] if asked is None else asked, groups)
        searched = dict(used)
        if searched.get("rerank") and questions.members is not None:
            searched["rerank"] += 1  # for the query itself, which is left out afterwards
        search = partial(searched_index, built, threads=questions.threads, **searched)
        answers = questions.ask(search)
        if used.get("rerank") == 0:
            answers = _with_distances(answers, questions, signatures)
        yield replace(
            _measurement(questions, answers, len(built), built.bits),
            index=index,
            parameters=parameters,
            settings=used,
            groups=groups,
            build_seconds=seconds,
            bytes_per_signature=built.memory_bytes / len(built),
        )
        if groups is not None and asked is not None and asked >= groups:
            return


def searched_index(
    index: Index, queries: Signatures, k: int, *, explain: bool = False, **settings: Any
) -> Neighbors:
    """Search an index of any kind; some have no `explain`."""
    taken = {"explain": explain} if "explain" in index.settings("search") else {}
    return index.search(queries, k, **taken, **settings)


def _with_distances(answers: Answers, questions: Questions, signatures: Signatures) -> Answers:
    """Return results found by score alone with their distances."""
    ids = answers.neighbors.ids
    pairs = zip(questions.queries, ids, strict=True)
    distances = np.stack([hamming(query, signatures[own], threads=1) for query, own in pairs])
    known = np.where(ids >= 0, distances, -1).astype(np.int32)
    return replace(answers, neighbors=replace(answers.neighbors, distances=known))


def _measurement(questions: Questions, answers: Answers, count: int, bits: int) -> Measurement:
    """Return the measurement of a scan."""
    found, truth, k = answers.neighbors, questions.truth, questions.k
    true_ids, true_distances = truth.ids[:, :k], truth.distances[:, :k]
    work = found.explanation
    cdr = cumulative_distance_ratio(found.distances, true_distances)
    recall = recall_at_k(found.ids, true_ids)
    return Measurement(
        index="scan",
        count=count,
        milliseconds=1e3 * answers.seconds,
        batch_milliseconds=1e3 * answers.batch_seconds,
        build_seconds=0.0,
        bytes_per_signature=bits / 8,
        cdr=float(cdr.mean()),
        recall=float(recall.mean()),
        recall_by_distance=float(recall_by_distance(found.distances, true_distances).mean()),
        nearest_hit_rate=nearest_hit_rate(found.distances, true_distances),
        near_duplicate_recall=near_duplicate_recall(found, truth, near_radius(bits)),
        top_10_in_10=float(top_in_top(found.ids, truth.ids, min(k, 10), 10).mean()),
        top_10_in_100=float(top_in_top(found.ids, truth.ids, min(k, 10), 100).mean()),
        lists=float(work.lists.mean()) if work else 0.0,
        touched=float(work.candidates.mean() / count) if work else 1.0,
        cdr_error=sampling_error(cdr) if work else 0.0,
        error=sampling_error(recall) if work else 0.0,
    )


def measurement_table(
    rows: Sequence[Measurement], k: int, *, marked: Measurement | None = None, sizes: bool = False
) -> str:
    """Return a table of measurements; `sizes` adds a column."""
    headings = ["slices", "expand", "admit", "ms", "ms in batch", f"CDR@{k}", f"recall@{k}"]
    headings += ["nearest", "near-dup.", "touched", "build s", "bytes"]
    lines = [headings, *(_cells(row) for row in rows)]
    if any(row.get("rerank") is not None for row in rows):
        column = ["rerank", *(_setting(row, "rerank") for row in rows)]
        lines = [[*line[:3], own, *line[3:]] for own, line in zip(column, lines, strict=True)]
    if sizes:
        column = ["signatures", *(f"{row.count:,}" for row in rows)]
        lines = [[size, *line] for size, line in zip(column, lines, strict=True)]
    if marked is not None:
        marks = [" ", *("*" if row is marked else " " for row in rows)]
        lines = [[mark, *line] for mark, line in zip(marks, lines, strict=True)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _index(row: Measurement) -> str:
    if (orders := row.get("orders")) is not None:
        return f"{orders} order{'' if orders == 1 else 's'}"
    if row.groups is not None:
        return f"{row.get('probe')} of {row.groups} groups"
    return row.index if row.get("slice_bits") is None else f"{row.get('slice_bits')}-bit"


def _setting(row: Measurement, name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value)


def _cells(row: Measurement) -> list[str]:
    return [
        _index(row),
        _setting(row, "expand"),
        _setting(row, "admit"),
        f"{row.milliseconds:.3f}",
        f"{row.batch_milliseconds:.3f}",
        f"{row.cdr:.3f}",
        f"{row.recall:.3f}",
        f"{row.nearest_hit_rate:.1%}",
        "-" if row.near_duplicate_recall is None else f"{row.near_duplicate_recall:.1%}",
        f"{row.touched:.2%}",
        f"{row.build_seconds:.2f}",
        f"{row.bytes_per_signature:.0f}",
    ]
