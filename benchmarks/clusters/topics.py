"""Clusters of abstracts beside the categories that their authors gave them.

NMI is the mutual information of both over the mean of their entropies: 0 by chance, 1 if they are
the same. Purity is the share of documents whose category is the most frequent of their cluster.
Words are judged by their coherence (NPMI, -1 to 1: how much more often two of a cluster's ten words
are in one document than by chance) and by how many of all words shown are different.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.report import table
from benchmarks.signing.documents import FILE

__all__ = ["NAME", "agreement", "coherence", "run_topics"]

NAME = "topics"
K = 50
SETTINGS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "stem english": {"stem": "english"},
    "stem, stop words english": {"stem": "english", "stop_words": "english"},
    "log-likelihood": {"weights": "log-likelihood"},
    "1024 bits": {"bits": 1024},
    "simhash": {"method": "simhash"},
}
_JUDGED = 20_000


def run_topics(folder: Path, *, part: int) -> str:
    """Return what came out, a line for each setting."""
    with gzip.open(folder / FILE, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, 0, None, part)]
    texts = [row["abstract"] for row in rows]
    first = [row["categories"].partition(",")[0] for row in rows]
    found = []
    for name, settings in SETTINGS.items():
        result = la.cluster_documents(texts, K, **settings)
        known = np.flatnonzero(result.labels >= 0)
        line = [name, f"{sum(result.seconds.values()):.1f}"]
        for level in (first, [one.partition(".")[0] for one in first]):
            truth = np.unique(level, return_inverse=True)[1]
            line += [f"{one:.3f}" for one in agreement(result.labels[known], truth[known])]
        shown = [[word for word, _ in one.words] for one in result.clusters]
        different = len({word for words in shown for word in words}) / sum(map(len, shown))
        line += [f"{coherence(shown, texts[:_JUDGED]):.3f}", f"{different:.2f}"]
        found.append(line)
        print(f"  {name}: done", flush=True)
    heads = ["settings", "seconds", "NMI", "purity", "NMI of archives", "purity", "NPMI", "diverse"]
    return f"{len(texts):,} abstracts in {K} clusters\n{table(heads, found)}"


def agreement(labels: NDArray[np.int64], truth: NDArray[np.int64]) -> tuple[float, float]:
    """Return NMI and purity."""
    counts = np.zeros((labels.max() + 1, truth.max() + 1))
    np.add.at(counts, (labels, truth), 1)
    both = counts / counts.sum()
    one, two = both.sum(axis=1), both.sum(axis=0)
    some = both > 0
    shared = float((both[some] * np.log(both[some] / np.outer(one, two)[some])).sum())
    entropy = sum(float(-(part[part > 0] * np.log(part[part > 0])).sum()) for part in (one, two))
    return 2 * shared / entropy, float(counts.max(axis=1).sum() / counts.sum())


def coherence(clusters: Sequence[Sequence[str]], texts: Sequence[str]) -> float:
    """Return the NPMI of words, of all pairs in each cluster, on average."""
    every = sorted({word for words in clusters for word in words})
    column = {word: at for at, word in enumerate(every)}
    having = np.zeros((len(texts), len(every)), np.float32)
    for row, text in enumerate(texts):
        for word in set(re.findall(r"\w+", text.lower())) & column.keys():
            having[row, column[word]] = 1
    both = having.T @ having / len(texts)
    values = []
    for words in clusters:
        for one, two in combinations([column[word] for word in words], 2):
            together = float(both[one, two])
            chance = float(both[one, one] * both[two, two])
            values.append(-1.0 if together == 0 else np.log(together / chance) / -np.log(together))
    return float(np.mean(values))
