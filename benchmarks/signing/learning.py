"""b-bit signatures as vectors for a linear classifier, beside kernels of exact resemblance.

The labels are the archives of arXiv abstracts (such as `math`). Half of the abstracts are learned
from, the others are judged. A linear support vector machine learns from `BBitMinHash.to_csr`; a
kernel machine from the exact Jaccard similarity of the same features, of each pair of abstracts.
The linear machine learns the features themselves, too: 0/1 vectors of all distinct words. Each
machine's C is chosen from four by cross-validation on the half that is learned from.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.harness import Verdict
from benchmarks.quality import at_least
from benchmarks.report import table
from benchmarks.signing.documents import FILE

__all__ = ["NAME", "run_learning"]

NAME = "learning"
COUNT = 6_000
SETTINGS = [(1, 128), (1, 512), (2, 256), (4, 128), (4, 512), (8, 128), (8, 512)]
"""Bits a value, and permutations."""
_LEAST = 200  # abstracts of an archive that is learned
_STRENGTHS = (0.01, 0.1, 1.0, 10.0)


def run_learning(folder: Path, *, part: int) -> tuple[str, list[Verdict]]:
    """Return a table of all machines, and the verdict on the best b-bit one."""
    from sklearn.feature_extraction.text import CountVectorizer

    texts, labels = _abstracts(folder, COUNT // part, _LEAST // part)
    half = len(texts) // 2
    sets = [sorted(set(re.findall(r"\w+", text.lower()))) for text in texts]
    plain = CountVectorizer(analyzer=_as_it_is, binary=True, dtype=np.float32).fit_transform(sets)
    size = f"{4 * plain.nnz / len(texts):.0f}"
    rows: list[list[Any]] = []
    best = 0.0
    for b, permutations in SETTINGS:
        signer = la.BBitMinHash(permutations, b, la.features.Features())
        right, seconds = _linear(signer.to_csr(signer.sign(sets)), labels, half)
        best = max(best, right)
        rows.append([f"b={b}, {permutations} values", f"{signer.bits // 8}", right, seconds])
    rows.append([f"{plain.shape[1]:,} words", size, *_linear(plain, labels, half)])
    exact, seconds = _by_kernel(_resemblance(plain), labels, half)
    rows.append(["exact resemblance, a kernel", size, exact, seconds])
    heading = ["vectors", "bytes a text", "share right", "seconds to learn"]
    shown = [[first, bytes, f"{right:.3f}", f"{took:.1f}"] for first, bytes, right, took in rows]
    title = f"{len(texts):,} abstracts of {len(set(labels))} archives, half of them learned from"
    verdict = at_least(
        "85. share right: best b-bit beside exact resemblance", best / exact, 0.98, digits=3
    )
    return f"{title}\n{table(heading, shown)}", [verdict]


def _as_it_is(words: list[str]) -> list[str]:
    return words


def _linear(vectors: Any, labels: NDArray[np.str_], half: int) -> tuple[float, float]:
    """Return the share that a linear machine gets right, and the seconds it takes."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import LinearSVC

    begin = perf_counter()
    choice = GridSearchCV(LinearSVC(), {"C": [one / 100 for one in _STRENGTHS]}, cv=3)
    choice.fit(vectors[:half], labels[:half])
    return float(choice.score(vectors[half:], labels[half:])), perf_counter() - begin


def _by_kernel(
    kernel: NDArray[np.float64], labels: NDArray[np.str_], half: int
) -> tuple[float, float]:
    """The same for a machine that learns from the similarity of all pairs."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    begin = perf_counter()
    choice = GridSearchCV(SVC(kernel="precomputed"), {"C": list(_STRENGTHS)}, cv=3)
    choice.fit(kernel[:half, :half], labels[:half])
    return float(choice.score(kernel[half:, :half], labels[half:])), perf_counter() - begin


def _resemblance(sets: Any) -> NDArray[np.float64]:
    """Return the Jaccard similarity of each pair."""
    common = (sets @ sets.T).toarray().astype(np.float64)
    sizes = np.asarray(sets.sum(axis=1)).reshape(-1)
    shares: NDArray[np.float64] = common / (sizes[:, None] + sizes[None] - common)
    return shares


def _abstracts(folder: Path, count: int, least: int) -> tuple[list[str], NDArray[np.str_]]:
    """Return abstracts and their archives, of those that have enough."""
    with gzip.open(folder / FILE, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in islice(file, 2 * count)]
    archives = [row["categories"].split()[0].partition(".")[0] for row in rows]
    numbers = Counter(archives)
    chosen = [at for at, one in enumerate(archives) if numbers[one] >= least][:count]
    return [rows[at]["abstract"] for at in chosen], np.array([archives[at] for at in chosen])
