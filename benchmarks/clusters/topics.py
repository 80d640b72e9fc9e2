"""Clusters of documents beside labels that people gave them, and beside scikit-learn's clusters.

The labels are the categories of arXiv abstracts, their archives (such as `math`), and the
programming language of Debian packages, which the names of packages tell. NMI is the mutual
information of clusters and labels over the mean of their entropies: 0 by chance, 1 if they are the
same. Purity is the share of documents whose label is the most frequent of their cluster. Words are
judged by their coherence (NPMI, -1 to 1: how much more often two of a cluster's ten words are in
one document than by chance) and by how many of all words shown are different.

scikit-learn runs the pipeline of its example "Clustering text documents using k-means" with the
settings given there: TF-IDF without words in more than half or fewer than five documents and
without English stop words, a truncated SVD to 100 dimensions, rows of length 1, and k-means with
one start, which is its default for k-means++, and with ten, which finds better clusters. All get
texts in memory, the same number of clusters and the same number of threads: those of BLAS and
OpenMP are set while scikit-learn runs. Times are compared with those of one start.

Other corpora with labels are read from files such as `labelled_sections.jsonl` in the folder of the
data: an object with `text` and `label` in each line.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, islice
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.dedup.files import DEBIAN
from benchmarks.harness import Verdict
from benchmarks.quality import at_least
from benchmarks.report import table
from benchmarks.signing.documents import FILE
from lookalike.checks import thread_count

__all__ = ["NAME", "agreement", "coherence", "run_topics"]

NAME = "topics"
K = 50
SEEDS = (0, 1, 2)
_JUDGED = 20_000
_THREADS = thread_count(None)
_LANGUAGES = {
    "perl": r"lib.*-perl",
    "python": r"python3?-.*",
    "ruby": r"ruby-.*",
    "javascript": r"node-.*|libjs-.*",
    "go": r"golang-.*",
    "haskell": r"libghc-.*",
    "rust": r"librust-.*",
    "r": r"r-(?:cran|bioc|other)-.*",
    "java": r"lib.*-java(?:-doc)?",
    "php": r"php-.*",
    "ocaml": r"lib.*-ocaml(?:-dev)?",
    "lua": r"lua-.*",
    "emacs": r"elpa-.*",
    "fonts": r"fonts-.*",
    "tex": r"texlive-.*",
    "localization": r".*-l10n-.*|hunspell-.*|.*-i18n-.*",
}

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Corpus:
    """Texts with labels."""

    name: str
    texts: list[str]
    labels: dict[str, Sequence[str]]
    """One label for each text, by what the labels are."""


def run_topics(folder: Path, *, part: int) -> tuple[str, list[Verdict]]:
    """Return what came out, a line for each corpus and program, and what has to be reached."""
    lines, verdicts = [], []
    others = (_labelled(path, part) for path in sorted(folder.glob("labelled_*.jsonl*")))
    for corpus in (_arxiv(folder, part), _debian(folder, part), *others):
        found, seconds = {}, {}
        for name, program in _PROGRAMS.items():
            found[name], seconds[name] = _run(corpus, program)
            for kind, (nmi, purity) in found[name].items():
                told = [corpus.name, kind, name, f"{nmi:.3f}", f"{purity:.3f}"]
                lines.append([*told, f"{seconds[name]:.1f}"])
        ours, peers = found["lookalike"], [name for name in _PROGRAMS if name != "lookalike"]
        for kind in corpus.labels:
            for which, at in (("NMI", 0), ("purity", 1)):
                best = max(found[name][kind][at] for name in peers)
                title = f"84. {corpus.name}, {kind}: {which} beside scikit-learn's best"
                verdicts.append(at_least(title, ours[kind][at] / best, 1, " x", 2))
        title = f"84. {corpus.name}: seconds of scikit-learn with one start beside ours"
        share = seconds[peers[0]] / seconds["lookalike"]
        verdicts.append(at_least(title, share, 3, " x", 2))
        words, defaults = _words(corpus)
        lines.append([corpus.name, "words", "lookalike", words, defaults, ""])
        print(f"  {corpus.name}: done", flush=True)
    heads = ["corpus", "labels", "program", "NMI", "purity", "seconds"]
    about = f"{K} clusters, mean of {len(SEEDS)} seeds, {_THREADS} threads"
    return f"{about}\n{table(heads, lines)}", verdicts


def _labelled(path: Path, part: int) -> Corpus:
    rows = list(_rows(path, part))
    name = path.name.partition(".")[0].removeprefix("labelled_").replace("_", " ")
    return Corpus(name, [row["text"] for row in rows], {"labels": [row["label"] for row in rows]})


def _arxiv(folder: Path, part: int) -> Corpus:
    rows = list(_rows(folder / FILE, part))
    first = [row["categories"].partition(",")[0] for row in rows]
    archives = [one.partition(".")[0] for one in first]
    texts = [row["abstract"] for row in rows]
    return Corpus("arXiv abstracts", texts, {"categories": first, "archives": archives})


def _debian(folder: Path, part: int) -> Corpus:
    texts, labels = [], []
    for row in _rows(folder / DEBIAN, 1):
        if language := language_of(row["package"]):
            texts.append(row["text"])
            labels.append(language)
    return Corpus("Debian packages", texts[::part], {"languages": labels[::part]})


def language_of(package: str) -> str | None:
    """Return the language of a package by its name, as Debian's policies demand it."""
    for language, pattern in _LANGUAGES.items():
        if re.fullmatch(pattern, package):
            return language
    return None


def _rows(path: Path, part: int) -> Iterator[dict[str, str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in islice(lines, 0, None, part):
            yield json.loads(line)


def _run(
    corpus: Corpus, program: Callable[[list[str], int], Labels]
) -> tuple[dict[str, tuple[float, float]], float]:
    """Return NMI and purity for each kind of labels, means of all seeds, and the best seconds."""
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in corpus.labels}
    seconds = []
    for seed in SEEDS:
        began = perf_counter()
        labels = program(corpus.texts, seed)
        seconds.append(perf_counter() - began)
        for kind, truth in corpus.labels.items():
            numbers = np.unique(truth, return_inverse=True)[1]
            found[kind].append(agreement(labels, numbers))
    means = {kind: np.mean(several, axis=0).tolist() for kind, several in found.items()}
    return {kind: (nmi, purity) for kind, (nmi, purity) in means.items()}, min(seconds)


def _lookalike(texts: list[str], seed: int) -> Labels:
    labels = la.cluster_documents(texts, K, seed=seed, threads=_THREADS).labels
    return np.unique(labels, return_inverse=True)[1]  # those without words are one more cluster


def _scikit_learn(texts: list[str], seed: int, *, starts: int) -> Labels:
    from sklearn.cluster import KMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer
    from threadpoolctl import threadpool_limits

    with threadpool_limits(_THREADS):
        vectors = TfidfVectorizer(max_df=0.5, min_df=5, stop_words="english").fit_transform(texts)
        reduced = make_pipeline(
            TruncatedSVD(n_components=100, random_state=seed), Normalizer(copy=False)
        ).fit_transform(vectors)
        means = KMeans(n_clusters=K, max_iter=100, n_init=starts, random_state=seed)
        return np.asarray(means.fit(reduced).labels_, np.int64)


_PROGRAMS: dict[str, Callable[[list[str], int], Labels]] = {
    "lookalike": _lookalike,
    "scikit-learn, 1 start": partial(_scikit_learn, starts=1),
    "scikit-learn, 10 starts": partial(_scikit_learn, starts=10),
}


def _words(corpus: Corpus) -> tuple[str, str]:
    """Return coherence and diversity of the words of clusters."""
    shown = [[word for word, _ in one.words] for one in la.cluster_documents(corpus.texts).clusters]
    different = len({word for words in shown for word in words}) / sum(map(len, shown))
    return f"NPMI {coherence(shown, corpus.texts[:_JUDGED]):.3f}", f"{different:.0%} different"


def agreement(labels: Labels, truth: Labels) -> tuple[float, float]:
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
