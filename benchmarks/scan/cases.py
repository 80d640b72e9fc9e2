"""The cases: exhaustive search beside its peers, in several widths, shapes and sizes of request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from benchmarks.harness import Case, Contender, Effort, Gate
from benchmarks.scan.peers import Faiss, FaissShards, Lookalike, NumKong, NumPy, Peer, USearch
from benchmarks.scan.signatures import DISTRIBUTIONS, Workload, draw
from lookalike import _native

__all__ = ["Plan", "plans"]

K = 10
BATCH = 100
COUNT = 1_000_000
LARGE_COUNT = 10_000_000
QUICK_FRACTION = 10
RADIUS = {64: 3, 256: 16, 1024: 64}
"""Near-duplicates, by width: 3 of 64 bits is what web crawls use, a 16th the same for more bits."""

EFFORT = Effort(rounds=6, seconds=0.5)
GATE_EFFORT = Effort(rounds=60, seconds=6.0)

OURS = Lookalike.name
TWO_THREADS = f"{OURS}, two threads"
READING = "only reading"

GATES = {
    "search-1024-uniform-one": (
        Gate("1.  1M x 1024, k=10, 1 query, 1 thread: only reading / ours", READING, OURS, 0.85),
        Gate("1.  1M x 1024, k=10, 1 query, 1 thread: faiss / ours", Faiss.name, OURS, None),
        Gate("3.  1M x 1024, k=10, 1 query: one thread / two threads", OURS, TWO_THREADS, 1.6),
    ),
    "search-1024-uniform-batch": (
        Gate("2.  1M x 1024, k=10, batch of 100, 2 threads: faiss / ours", Faiss.name, OURS, 2.5),
    ),
    "within-64-uniform-batch-large": (
        Gate("4.  10M x 64, within 3, batch of 100, 1 thread: faiss / ours", Faiss.name, OURS, 1.5),
    ),
}
GATE_THREADS = {
    "search-1024-uniform-one": 1,
    "search-1024-uniform-batch": 2,
    "within-64-uniform-batch-large": 1,
}
"""Gates are defined for a number of threads; the other cases use as many as they are told."""


@dataclass(frozen=True)
class Plan:
    """A case before its collection exists, so that those left out cost nothing."""

    operation: str
    bits: int
    distribution: str
    queries: int
    count: int
    threads: int
    large: bool = False

    @property
    def name(self) -> str:
        """Return what `--only` selects by."""
        request = "one" if self.queries == 1 else "batch"
        name = f"{self.operation}-{self.bits}-{self.distribution}-{request}"
        return f"{name}-large" if self.large else name

    @property
    def collection(self) -> tuple[str, int, int]:
        """Return what the collection is made from; cases in a row that share it draw it once."""
        return self.distribution, self.count, self.bits

    def draw(self) -> Workload:
        """Make the collection, with queries for a batch."""
        return draw(*self.collection, queries=BATCH)

    def case(self, workload: Workload) -> Case:
        """Build all indexes and return the case, ready to run."""
        gates = GATES.get(self.name, ())
        contenders = [self._contender(peer, workload) for peer in self._peers()]
        for gate in gates:
            if gate.slower == READING:
                read = partial(_native.read_all, workload.signatures.reshape(-1), self.threads)
                contenders.append(Contender(READING, read, is_rival=False))
            if gate.faster == TWO_THREADS:
                doubled = replace(self, threads=2)._contender(Lookalike, workload)
                contenders.append(replace(doubled, name=TWO_THREADS, is_rival=False))
        effort = GATE_EFFORT if gates else EFFORT
        return Case(self.name, self._title(), contenders, effort, gates)

    def _peers(self) -> list[type[Peer]]:
        if self.large:  # the others would take minutes, and the gate is about faiss
            return [Lookalike, Faiss]
        if self.operation == "within":
            return [Lookalike, Faiss, NumKong, NumPy]
        if self.queries == 1 and self.threads > 1:
            return [Lookalike, Faiss, FaissShards, USearch, NumKong, NumPy]
        return [Lookalike, Faiss, USearch, NumKong, NumPy]

    def _contender(self, kind: type[Peer], workload: Workload) -> Contender:
        peer = kind(workload.signatures, workload.queries[: self.queries], self.threads)
        run: Callable[[], object] = (
            partial(peer.search, K)
            if self.operation == "search"
            else partial(peer.within, RADIUS[self.bits])
        )
        return Contender(peer.name, run, scale=self.queries / len(peer.queries))

    def _title(self) -> str:
        wanted = f"{K} nearest" if self.operation == "search" else f"within {RADIUS[self.bits]}"
        asked = "1 query" if self.queries == 1 else f"{self.queries} queries"
        workers = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{wanted} of {self.count:,} x {self.bits} bits, {asked}, {workers}"


def plans(threads: int, *, quick: bool) -> Iterator[Plan]:
    """Yield all cases, those of the same collection in a row."""
    part = QUICK_FRACTION if quick else 1
    for bits, distribution in product(RADIUS, DISTRIBUTIONS):
        for operation, queries in product(("search", "within"), (1, BATCH)):
            plan = Plan(operation, bits, distribution, queries, COUNT // part, threads)
            yield replace(plan, threads=GATE_THREADS.get(plan.name, threads))
    for distribution in DISTRIBUTIONS:
        plan = Plan("within", 64, distribution, BATCH, LARGE_COUNT // part, threads, large=True)
        yield replace(plan, threads=1)
