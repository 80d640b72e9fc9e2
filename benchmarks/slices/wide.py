"""Cases of slice lists on wide signatures: a million of 1024 bits, nearest neighbors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.answers import Matched, Nearest
from benchmarks.floor import LINE, Floor, share_of_floor
from benchmarks.quality import (
    Quality,
    QualityResult,
    at_least,
    ratio_informs,
    ratio_verdict,
    run_entries,
)
from benchmarks.slices.enlarged import BITS, Collection, signed_collection
from benchmarks.slices.entries import (
    EFFORT,
    EXPAND,
    FEW,
    FEWER,
    FLAT,
    K,
    entry,
    equal_to,
    exact,
    hnsw,
    ivf,
    ours,
    ours_singly,
    ours_within,
    theirs,
)
from benchmarks.slices.peers import (
    Built,
    build_flat,
    build_hnsw,
    build_ivf,
    build_multi_hash,
    build_slices,
)
from lookalike.advice.measures import near_duplicate_recall

__all__ = ["WideCases"]

WIDTH = 16
"""Slices of 16 bits, as the paper has them for a million signatures."""
WIDER = 18
"""Shorter lists, so that more of them can be read in the same time: better where expand is 2."""
WIDER_EXPAND_2 = f"slices of {WIDER}, expand 2"
NEAR = BITS // 10
"""Neighbors within a tenth of the bits are near-duplicates."""
FIRST_SHARE, MORE_SHARE = 0.35, 0.5
"""Of the floor that searches have to reach, with expand 0 and with expand 2."""
LISTS, FEW_LISTS = 1024, 256
"""Of the inverted file, for all signatures and for those of the graph."""


@dataclass(frozen=True)
class WideCases:
    """The cases that share one collection, and indexes of it; each is made when first needed."""

    folder: Path | None
    cache: Path
    count: int
    graph_count: int
    """Of these many signatures HNSW is built: of all it takes more than ten minutes."""
    queries: int
    near_queries: int
    part: int
    """Every so-manieth document is used."""

    @cached_property
    def collection(self) -> Collection:
        """Signatures and queries."""
        return signed_collection(
            self.folder, self.cache, self.count, self.queries, self.near_queries, part=self.part
        )

    @cached_property
    def slices(self) -> Built:
        """Our index of all, built with one thread."""
        return build_slices(self.collection.signatures, WIDTH)

    @cached_property
    def flat(self) -> Built:
        """The exhaustive index of faiss."""
        return build_flat(self.collection.signatures)

    @cached_property
    def ivf(self) -> Built:
        """The inverted file of faiss."""
        return build_ivf(self.collection.signatures, LISTS)

    @cached_property
    def graph(self) -> Built:
        """HNSW of the first signatures."""
        return build_hnsw(self.collection.signatures[: self.graph_count])

    # Cases

    def search(self, name: str) -> QualityResult:
        """Search for the nearest among all."""
        queries = self.collection.queries
        truth = la.ScanIndex(self.collection.signatures).search(queries, K).distances
        hashes = build_multi_hash(self.collection.signatures, BITS // WIDTH, WIDTH)
        slices, flat = self.slices, self.flat
        wider = build_slices(self.collection.signatures, WIDER)
        entries = [
            *(ours(slices, queries, truth, expand) for expand in (0, 1, 2)),
            ours(wider, queries, truth, 2, WIDER_EXPAND_2),
            ours(slices, queries[:FEW], truth, 3),
            ours_singly(slices, queries[:FEW], truth, 0),
            exact(FLAT, flat, flat.search, queries, truth),
            exact(f"{FLAT}, one by one", flat, flat.search_singly, queries[:FEWER], truth),
            *(ivf(self.ivf, queries, truth, probes) for probes in (8, 32, 128)),
            theirs(f"faiss MultiHash {BITS // WIDTH} x {WIDTH}", hashes, queries[:FEW], truth),
            *(
                _floor(built, queries, expand).entry(_floor_of(name), len(queries))
                for name, built, expand in ((EXPAND[0], slices, 0), (WIDER_EXPAND_2, wider, 2))
            ),
        ]
        title = (
            f"{K} nearest of {self.count:,} x {BITS} bits, slices of {WIDTH}, "
            f"{len(queries):,} queries at once, 1 thread"
        )
        result = run_entries(name, title, entries, len(queries), EFFORT)
        times, quality = result.times(), result.quality
        verdicts = []
        gates = (("10", EXPAND[0], FIRST_SHARE, 0.88), ("11", WIDER_EXPAND_2, MORE_SHARE, 0.93))
        for number, contender, share, cdr in gates:
            what = f"{self.size} {contender}, batch, 1 thread"
            verdicts += [
                share_of_floor(
                    f"{number}a. {what}: floor / ours",
                    times[_floor_of(contender)],
                    times[contender],
                    share,
                ),
                ratio_informs(f"{number}a. {what}: {FLAT} / ours", times, FLAT, contender),
                at_least(
                    f"{number}b. {what}: CDR@{K}", quality[contender][f"CDR@{K}"], cdr, digits=4
                ),
            ]
        return replace(result, verdicts=verdicts, notes=self._distribution(truth[:, 0]))

    def search_graph(self, name: str) -> QualityResult:
        """Search fewer signatures, of which a graph can be built in reasonable time."""
        signatures = self.collection.signatures[: self.graph_count]
        queries = self.collection.queries
        truth = la.ScanIndex(signatures).search(queries, K).distances
        slices, flat = build_slices(signatures, None), build_flat(signatures)
        lists = build_ivf(signatures, FEW_LISTS)
        graph = self.graph
        entries = [
            *(ours(slices, queries, truth, expand) for expand in range(4)),
            exact(FLAT, flat, flat.search, queries[:FEW], truth),
            *(ivf(lists, queries, truth, probes) for probes in (8, 32)),
            *(hnsw(graph, queries, truth, width) for width in (16, 64, 256)),
        ]
        title = (
            f"{K} nearest of {self.graph_count:,} x {BITS} bits, slices of "
            f"{slices.index.slice_bits}, {len(queries):,} queries at once, 1 thread"
        )
        return run_entries(name, title, entries, len(queries), EFFORT)

    def near(self, name: str) -> QualityResult:
        """Search for near-duplicates, with queries that have some."""
        scan = la.ScanIndex(self.collection.signatures)
        held_out = self.collection.near_queries
        has_near = scan.search(held_out, 1).distances[:, 0] <= NEAR
        queries = held_out[has_near][: self.queries]
        truth, matches = scan.search(queries, K), scan.within(queries, NEAR)
        everything = Matched(matches.offsets, matches.ids, matches.distances)

        def found(answer: Nearest) -> Quality:
            part = la.results.Neighbors(answer.ids, answer.distances.astype(np.int32), False)
            asked = len(answer.ids)
            first = la.results.Neighbors(truth.ids[:asked], truth.distances[:asked], True)
            return {"near found": near_duplicate_recall(part, first, NEAR) or 0.0}

        def all_found(answer: Matched) -> Quality:
            equal_to(everything)(answer)
            return {"near found": 1.0}

        slices, flat = self.slices, self.flat
        few = queries[:FEW]
        entries = [
            *(replace(ours(slices, queries, truth.distances, one), judge=found) for one in (0, 1)),
            entry(
                f"slices, within {NEAR}",
                slices,
                partial(ours_within, slices, queries, NEAR),
                len(queries),
                all_found,
            ),
            entry(FLAT, flat, partial(flat.search, queries, K), len(queries), found),
            entry(
                f"{FLAT}, within {NEAR}", flat, partial(flat.within, few, NEAR), len(few), all_found
            ),
            *(
                replace(ivf(self.ivf, queries, truth.distances, probes), judge=found)
                for probes in (8, 32, 128)
            ),
        ]
        title = f"{self.count:,} x {BITS} bits, {len(queries):,} queries with near-duplicates"
        result = run_entries(name, title, entries, len(queries), EFFORT)
        times, quality = result.times(), result.quality
        good = [each for each in EXPAND[:2] if quality[each]["near found"] >= 0.999]
        chosen = min(good or EXPAND[1:2], key=lambda each: times[each].best)
        what = f"neighbors within {NEAR} bits, {chosen}"
        more = np.count_nonzero(np.diff(matches.offsets) > K)
        return replace(
            result,
            verdicts=[
                at_least(f"12a. {what}: found", 100 * quality[chosen]["near found"], 99.9, "%", 2),
                ratio_verdict(f"12b. {what}, 1 thread: {FLAT} / ours", times, FLAT, chosen, 20),
            ],
            notes=[
                f"{len(matches.ids):,} neighbors within {NEAR}; {more} queries have more than "
                f"{K}, of which the {K} nearest count"
            ],
        )

    @property
    def size(self) -> str:
        """How many of how many bits, in words."""
        return f"{self.count:,} x {BITS},"

    def _distribution(self, nearest: NDArray[np.int32]) -> list[str]:
        """Say how far nearest neighbors are, among the real and among all."""
        real = self.collection.real
        held, rest = real[: self.queries], real[self.queries :]
        among = {
            f"{count:,} real": la.ScanIndex(rest[:count]).search(held, 1).distances[:, 0]
            for count in (len(rest) // 8, len(rest))
        }
        among[f"{self.count:,} enlarged"] = nearest
        return [
            f"made from {self.collection.origin}; distances of nearest neighbors, quantiles:",
            *(f"  {name}: {_quantiles(found)}" for name, found in among.items()),
        ]


def _floor(built: Built, queries: NDArray[np.uint8], expand: int) -> Floor:
    """Return what a query reads: where lists begin, lists, and the signatures re-ranked."""
    work = built.index.search(queries, K, expand=expand, explain=True, threads=1).explanation
    lists, postings, rows = (
        float(each.mean()) for each in (work.lists, work.postings, work.reranked)
    )
    in_order = 4 * postings + rows * (BITS // 8 - LINE)
    return Floor(2 * lists + rows, in_order, built.index.memory_bytes)


def _floor_of(name: str) -> str:
    return f"floor of {name}"


def _quantiles(distances: NDArray[np.int32]) -> str:
    shares = (1, 5, 25, 50, 75, 95)
    found = np.percentile(distances, shares)
    return ", ".join(f"{share}%: {one:.0f}" for share, one in zip(shares, found, strict=True))
