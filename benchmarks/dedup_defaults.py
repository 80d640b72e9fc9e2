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
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

import lookalike as la
from benchmarks.dedup_files import distinct_texts
from benchmarks.dedup_truth import NearPairs, confirm, feature_matrix, near_pairs
from lookalike import _native

__all__ = ["NAME", "run_defaults"]

NAME = "dedup-defaults"
SAMPLE = 40_000
SEED = 70
THRESHOLDS = (0.8, 0.9)
NGRAMS = (1, 2, 3, 5)
SECONDS = 120
BYTES = 6_000_000_000
CORPORA = {"arxiv": "abstracts", "debian": "package descriptions"}


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
    ("topsig", 1024): (100, 150, 175, 200, 225),
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


def run_defaults(folder: Path, cache: Path, output: Path, *, part: int) -> Path:
    """Measure all settings on samples of both corpora; print and write the tables."""
    lines: list[str] = []
    for corpus, title in CORPORA.items():
        texts = _sample(corpus, distinct_texts(folder, corpus), cache, SAMPLE // part)
        truths = {
            (measure, ngram): _truth(f"{corpus}-{len(texts)}", texts, cache, measure, ngram)
            for measure, ngram in product(("jaccard", "cosine"), NGRAMS)
        }
        lines += [f"### {len(texts):,} {title}", "", *_truth_table(texts, truths), ""]
        source = cache / f"{NAME}-{corpus}-{len(texts)}.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"text": texts}), source)
        for method in ("minhash", "simhash", "topsig"):
            lines += _HEADING
            for setting in (each for each in SETTINGS if each.method == method):
                truth = truths[setting.measure, setting.ngram]
                for line in _rows(setting, source, truth, len(texts)):
                    print(line, flush=True)
                    lines.append(line)
            lines.append("")
    path = output / f"{NAME}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


_HEADING = [
    "| method | signature | n-grams | threshold | recall | candidates | sign s | pairs s |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
]


def _rows(setting: Setting, source: Path, truth: NearPairs, count: int) -> Iterator[str]:
    """Yield a line for each threshold. Only MinHash proposes by the threshold."""
    measured: dict[str, Any] | None = None
    for threshold in THRESHOLDS:
        if measured is None or setting.method == "minhash":
            lowest = threshold if setting.method == "minhash" else THRESHOLDS[0]
            measured = _measured(setting, source, lowest)
        cells = f"| {setting.method} | {setting.words} | {threshold} |"
        if measured is None:
            yield f"{cells} - | - | - | more than {SECONDS} |"
            break
        true = truth.at(threshold).keys(count)
        pairs = np.array(measured["pairs"], np.int64).reshape(-1, 2)
        found = np.isin(true, pairs[:, 0] * count + pairs[:, 1]).sum()
        seconds = measured["seconds"]
        yield (
            f"{cells} {found / max(1, len(true)):.3f} | {measured['proposed']:,} | "
            f"{seconds['sign']:.2f} | {seconds['propose'] + seconds['verify']:.2f} |"
        )


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
    folder = Path(__file__).parent.parent
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=SECONDS)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _sample(corpus: str, texts: list[str], cache: Path, count: int) -> list[str]:
    """Return so many texts in their order, drawn by chance.

    Near-duplicates are rare among abstracts. There all that have one (a cosine of 2-grams of at
    least 0.8) are in the sample; their neighbours are, too.
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
        features = _native.TextFeatures(False, ngram, True, 1, [], False)
        documents = _native.Documents.from_list(list(texts), 0)
        matrix = feature_matrix(*features.extract(documents), measure)
        found = near_pairs(matrix, measure, THRESHOLDS[0])
        some = np.arange(0, len(texts), max(1, len(texts) // 200))
        confirm(matrix, measure, THRESHOLDS[0], found, some)
        np.savez(path, left=found.left, right=found.right, similarity=found.similarity)
    with np.load(path) as saved:
        return NearPairs(saved["left"], saved["right"], saved["similarity"])


def _truth_table(texts: list[str], truths: dict[tuple[str, int], NearPairs]) -> list[str]:
    """Return how many pairs a measure calls near-duplicates, and how many share much text."""
    lines = [
        "| measure | n-grams | threshold | pairs | of these, half of all 5-grams are shared |",
        "| --- | --- | --- | --- | --- |",
    ]
    for (measure, ngram), truth in truths.items():
        for threshold in THRESHOLDS:
            pairs = truth.at(threshold)
            overlap = la.jaccard_pairs(texts, pairs.left, pairs.right, la.Words(ngram=5))
            share = f"{(overlap >= 0.5).mean():.1%}" if len(pairs) else "-"
            lines.append(f"| {measure} | {ngram} | {threshold} | {len(pairs):,} | {share} |")
    print("\n".join(lines), flush=True)
    return lines


def main(arguments: Sequence[str]) -> None:
    """Run one setting and print its pairs and its times."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    source, options = arguments
    result = la.dedup(source, text="text", threads=2, **json.loads(options))
    pairs = np.stack([result.pairs.left, result.pairs.right], axis=1)
    found = {
        "pairs": pairs.tolist(),
        "proposed": result.counts.proposed_pairs,
        "seconds": result.seconds,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
