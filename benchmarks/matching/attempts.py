"""How many bit flips it takes to get from a document's signature to its near-duplicate's."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from papers.generated import generate_fingerprints

import lookalike as la
from benchmarks.harness import Result, Verdict
from benchmarks.quality import at_least
from benchmarks.signing.documents import read_documents
from lookalike.indexes.tables.flip_sets import Volatility

__all__ = ["AttemptsResult", "attempts", "attempts_table"]

BITS = 64
TARGETS = {1.0: 61, 0.8: 151, 0.5: 347}
"""How many times as many attempts random order takes for three bits, as the paper found."""
ABSTRACTS = 120_000
DESCRIPTIONS, CHANGED = "debian_descriptions.jsonl.gz", "debian_changed_pairs.tsv"

Weights = NDArray[np.float32]


@dataclass(frozen=True)
class AttemptsResult(Result):
    """Attempts of volatility order and of random order, by distance and recall."""

    rows: list[tuple[str, int, int, float, int, float, float]]
    """(pairs from, their number, distance, recall, attempts, random attempts, ratio)"""


def attempts(name: str, folder: Path | None) -> AttemptsResult:
    """Order sets of exactly as many bits as differ, for pairs at distance 1, 2 and 3."""
    rows = []
    verdicts: list[Verdict] = []
    for origin, left, right in _pairs(folder):
        differing = (left >= 0) != (right >= 0)
        distances = differing.sum(axis=1)
        for distance in (1, 2, 3):
            chosen = distances == distance
            if not chosen.any():
                continue
            needed = np.sort(_attempts(left[chosen], differing[chosen], distance))
            for recall, target in TARGETS.items():
                own = int(needed[int(np.ceil(recall * len(needed))) - 1])
                random = recall * comb(BITS, distance)
                rows.append((origin, len(needed), distance, recall, own, random, random / own))
                if distance == 3:
                    label = f"26.  attempts at {recall:.0%} recall, 3 bits: random / ours, {origin}"
                    verdicts.append(at_least(label, random / own, target, " x"))
    return AttemptsResult(name, "attempts to find a near-duplicate", [], verdicts, rows)


def attempts_table(result: AttemptsResult) -> str:
    """Return the figures as text."""
    lines = [f"{result.name}: {result.title}, volatility order and random order"]
    for origin, pairs, distance, recall, own, random, ratio in result.rows:
        lines.append(
            f"  {origin}: {pairs} pairs, {distance} bits, recall {recall:.0%}: {own:,} attempts, "
            f"random {random:,.0f}, {ratio:,.0f} x"
        )
    return "\n".join(lines)


def _attempts(weights: Weights, differing: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
    """Return the place of each difference among all sets of that size, in volatility order.

    That is by the sum of costs, then by the number that the ranks of the bits make, as the heap
    has it; here all sums are computed and compared.
    """
    volatility = Volatility.normal()
    sets = np.array(list(combinations(range(BITS), size)))
    numbers = (np.uint64(1) << sets.astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    steps = np.minimum(np.abs(weights) * volatility.scale, len(volatility.costs) - 1)
    order = np.argsort(steps.astype(np.int64), axis=1, kind="stable")
    costs = volatility.costs[np.take_along_axis(steps, order, axis=1).astype(np.int64)]
    flipped = np.take_along_axis(differing, order, axis=1)
    places = []
    for line, flips in zip(costs.astype(np.int64), flipped, strict=True):
        sums, own = line[sets].sum(axis=1), int(line[flips].sum())
        number = np.uint64(sum(1 << int(rank) for rank in np.flatnonzero(flips)))
        before = (sums < own) | ((sums == own) & (numbers < number))
        places.append(int(before.sum()) + 1)
    return np.array(places)


def _pairs(folder: Path | None) -> Iterator[tuple[str, Weights, Weights]]:
    """Yield weights of documents and of their near-duplicates."""
    if folder is None:
        made = generate_fingerprints(200_000, 100_000, edited=0.5)
        left = made.weights[made.partners[:, 0]]
        # The partner's weights are not kept, but only its signs are looked at.
        packed = made.signatures[made.partners[:, 1]].view(np.uint8).reshape(-1, 8)
        signs = np.unpackbits(packed, axis=1, bitorder="little").astype(np.float32) - 0.5
        yield "generated", left, signs
        return
    texts = read_documents(folder, ABSTRACTS).texts
    signer = la.SimHash(BITS, weights="tfidf").fit(texts)
    signatures, weights = signer.sign_with_weights(texts)
    near = la.SliceIndex(signatures).pairs(3)
    yield "abstracts", weights[near.left], weights[near.right]
    if not (folder / CHANGED).is_file():
        return
    with gzip.open(folder / DESCRIPTIONS, "rt", encoding="utf-8") as lines:
        described = {one["id"]: one["text"] for one in map(json.loads, lines)}
    changed = [
        line.split("\t") for line in (folder / CHANGED).read_text(encoding="utf-8").splitlines()
    ]
    signer = la.SimHash(BITS, weights="tfidf").fit(list(described.values()))
    sides = [
        signer.sign_with_weights([described[pair[side]] for pair in changed])[1] for side in (0, 1)
    ]
    yield "edited descriptions", sides[0], sides[1]
