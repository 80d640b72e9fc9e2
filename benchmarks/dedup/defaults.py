"""Which settings find what: recall, candidates and time of each, measured against brute force.

`python -m benchmarks --only dedup-defaults` takes half an hour on two idle cores, more where truth
is not in the cache yet, and writes `dedup-defaults.md`. A run that takes more than two minutes, or
more than 6 GB, is given up, and has no figures.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

import lookalike as la
from benchmarks.dedup.files import distinct_texts
from benchmarks.dedup.truth import ROUNDING, NearPairs, confirm, feature_matrix, near_pairs
from benchmarks.harness import WrongAnswerError
from lookalike import _native

__all__ = ["NAME", "run_defaults"]

NAME = "dedup-defaults"
SAMPLE = 40_000
SEED = 70
THRESHOLDS = (0.8, 0.9)
NGRAMS = (1, 2, 3, 5)
SECONDS = 120
BYTES = 6_000_000_000
CORPORA = {"arxiv": "abstracts", "debian": "packages"}
METHODS = ("minhash", "simhash", "topsig")


@dataclass(frozen=True)
class Setting:
    """One way to propose pairs."""

    method: str
    ngram: int
    permutations: int = 128
    bits: int | None = None
    radius: int | None = None

    @property
    def measure(self) -> str:
        """What decides."""
        return "jaccard" if self.method == "minhash" else "cosine"

    @property
    def words(self) -> str:
        """The cells of a table that tell what it is."""
        if self.method == "minhash":
            return f"{self.permutations} values | {self.ngram}"
        return f"{self.bits} bits, radius {self.radius} | {self.ngram}"


RADII = {
    ("simhash", 64): (3, 6, 10, 14, 18),
    ("simhash", 128): (6, 14, 28, 32, 36),
    ("topsig", 512): (100, 150),
    ("topsig", 1024): (100, 150, 200, 210, 225),
}
"""Cosines of 0.8 and 0.9 are angles of 20% and 14% of the bits, on average."""

SETTINGS = [
    *(Setting("minhash", 5, permutations) for permutations in (64, 128, 256)),
    *(Setting("minhash", ngram) for ngram in NGRAMS if ngram != 5),
    *(
        Setting(method, ngram, bits=bits, radius=radius)
        for (method, bits), radii in RADII.items()
        for ngram, radius in product(NGRAMS, radii)
    ),
]


@dataclass(frozen=True)
class Found:
    """What a setting found in one corpus, at one threshold."""

    recall: float
    candidates: int
    sign_seconds: float
    pair_seconds: float


def run_defaults(folder: Path, cache: Path, output: Path, *, part: int) -> Path:
    """Measure all settings on samples of both corpora; print and write the tables."""
    found: dict[tuple[Setting, float], dict[str, Found | None]] = {}
    truths: dict[tuple[str, int, float], dict[str, str]] = {}
    for corpus in CORPORA:
        texts = _sample(corpus, distinct_texts(folder, corpus), cache, SAMPLE // part)
        truth = {
            (measure, ngram): _truth(f"{corpus}-{len(texts)}", texts, cache, measure, ngram)
            for measure, ngram in product(("jaccard", "cosine"), NGRAMS)
        }
        for (measure, ngram), threshold in product(truth, THRESHOLDS):
            cells = _pairs_cells(texts, truth[measure, ngram].at(threshold))
            truths.setdefault((measure, ngram, threshold), {})[corpus] = cells
        source = cache / f"{NAME}-{corpus}-{len(texts)}.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"text": texts}), source)
        for setting in SETTINGS:
            near = truth[setting.measure, setting.ngram]
            for threshold, result in _measured_at(setting, source, near, len(texts)):
                print(corpus, setting.words, threshold, result, flush=True)
                found.setdefault((setting, threshold), {})[corpus] = result
    path = output / f"{NAME}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*_truth_table(truths), *_tables(found)]) + "\n", encoding="utf-8")
    return path


def _truth_table(truths: dict[tuple[str, int, float], dict[str, str]]) -> Iterator[str]:
    names = " | ".join(f"{title}: pairs | sharing half" for title in CORPORA.values())
    yield f"| measure | n-grams | threshold | {names} |"
    yield "| --- " * (3 + 2 * len(CORPORA)) + "|"
    for (measure, ngram, threshold), cells in truths.items():
        yield f"| {measure} | {ngram} | {threshold} | {' | '.join(cells.values())} |"


def _tables(found: dict[tuple[Setting, float], dict[str, Found | None]]) -> Iterator[str]:
    """Yield a table for each method, both corpora side by side."""
    names = " | ".join(f"{title}: recall | candidates | seconds" for title in CORPORA.values())
    for method in METHODS:
        yield f"\n| {method} | n-grams | threshold | {names} |"
        yield "| --- " * (3 + 3 * len(CORPORA)) + "|"
        for (setting, threshold), results in found.items():
            if setting.method == method:
                cells = " | ".join(_cells(results.get(corpus)) for corpus in CORPORA)
                yield f"| {setting.words} | {threshold} | {cells} |"


def _cells(found: Found | None) -> str:
    if found is None:
        return "- | - | given up"
    seconds = found.sign_seconds + found.pair_seconds
    return f"{found.recall:.3f} | {found.candidates:,} | {seconds:.1f}"


def _measured_at(
    setting: Setting, source: Path, truth: NearPairs, count: int
) -> Iterator[tuple[float, Found | None]]:
    """Yield what is found at each threshold. Only MinHash proposes by the threshold."""
    measured: dict[str, Any] | None = None
    for threshold in THRESHOLDS:
        if threshold == THRESHOLDS[0] or setting.method == "minhash":
            measured = _measured(setting, source, threshold)
        if measured is None:
            yield threshold, None
            continue
        # Cosines that are the threshold but for rounding are found if they were proposed.
        near = measured["pairs"].at(threshold - ROUNDING)
        seconds = measured["seconds"]
        yield (
            threshold,
            Found(
                _recall(truth.at(threshold), near, count),
                measured["proposed"],
                seconds["sign"],
                seconds["propose"] + seconds["verify"],
            ),
        )


def _recall(truth: NearPairs, found: NearPairs, count: int) -> float:
    """Return the share of true pairs whose documents found pairs connect.

    Of documents with equal signatures only the first is paired with the others, which is enough to
    put them together.
    """
    sparse, graphs = import_module("scipy.sparse"), import_module("scipy.sparse.csgraph")
    graph = sparse.coo_matrix((np.ones(len(found)), (found.left, found.right)), (count, count))
    labels = graphs.connected_components(graph, directed=False)[1]
    return float((labels[truth.left] == labels[truth.right]).mean()) if len(truth) else 1.0


def _measured(setting: Setting, source: Path, threshold: float) -> dict[str, Any] | None:
    """Run a setting in a process of its own; None if it takes too long or too much."""
    options = {
        "method": setting.method,
        "ngram": setting.ngram,
        "threshold": threshold,
        **({"permutations": setting.permutations} if setting.method == "minhash" else {}),
        **({"bits": setting.bits, "radius": setting.radius} if setting.bits else {}),
    }
    command = [sys.executable, "-m", __name__, str(source), json.dumps(options)]
    folder = Path(__file__).parents[2]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None
    except subprocess.CalledProcessError as error:
        if any(name in error.stderr for name in (b"MemoryError", b"ResultTooLargeError")):
            return None
        raise WrongAnswerError(f"{options}: {error.stderr.decode()}") from error
    found: dict[str, Any] = json.loads(done.stdout)
    left, right, similarity = found["pairs"]
    found["pairs"] = NearPairs(
        np.array(left, np.int64), np.array(right, np.int64), np.array(similarity)
    )
    return found


def _sample(corpus: str, texts: list[str], cache: Path, count: int) -> list[str]:
    """Return so many texts in their order, drawn by chance.

    Near-duplicates are rare among abstracts. There all that have one (a cosine of 2-grams of at
    least 0.8) are in the sample; their neighbors are, too.
    """
    chosen = np.random.default_rng(SEED).permutation(len(texts))
    if corpus == "arxiv":
        near = _truth(f"{corpus}-{len(texts)}", texts, cache, "cosine", 2)
        first = np.isin(chosen, np.concatenate([near.left, near.right]))
        chosen = np.concatenate([chosen[first], chosen[~first]])
    return [texts[at] for at in np.sort(chosen[:count]).tolist()]


def _truth(name: str, texts: Sequence[str], cache: Path, measure: str, ngram: int) -> NearPairs:
    """Return all pairs of at least the lowest threshold."""
    path = cache / f"{measure}-{ngram}-{name}.npz"
    if not path.exists():
        features = _native.TextFeatures(False, [ngram], True, 1, [], False)
        documents = _native.Documents.from_list(list(texts), 0)
        matrix = feature_matrix(*features.extract(documents), measure)
        found = near_pairs(matrix, measure, THRESHOLDS[0])
        some = np.arange(0, len(texts), max(1, len(texts) // 200))
        confirm(matrix, measure, THRESHOLDS[0], found, some)
        np.savez(path, left=found.left, right=found.right, similarity=found.similarity)
    with np.load(path) as saved:
        return NearPairs(saved["left"], saved["right"], saved["similarity"])


def _pairs_cells(texts: list[str], pairs: NearPairs) -> str:
    """Return how many pairs there are, and how many of them share half of all 5-grams."""
    overlap = la.features.similarity_pairs(
        "jaccard", texts, pairs.left, pairs.right, la.Words(ngram=5)
    )
    share = f"{(overlap >= 0.5).mean():.0%}" if len(pairs) else "-"
    return f"{len(pairs):,} | {share}"


def main(arguments: Sequence[str]) -> None:
    """Run one setting and print its pairs and its times."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    source, options = arguments
    result = la.dedup(source, text="text", threads=2, **json.loads(options))
    pairs = result.pairs
    found = {
        "pairs": [each.tolist() for each in (pairs.left, pairs.right, pairs.similarity)],
        "proposed": result.counts.proposed_pairs,
        "seconds": result.seconds,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
