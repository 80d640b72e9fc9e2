"""Masked search beside the plain one, per compared row; titles that look for their abstracts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import bm25s
import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.harness import Contender, Effort, measure
from benchmarks.quality import (
    Entry,
    Quality,
    QualityResult,
    at_least,
    ratio_verdict,
    run_entries,
)
from benchmarks.signing.documents import FILE

__all__ = ["CASES", "run_masks"]

COUNT = 1_000_000
BATCH = 100
TITLES = 1_000
K = 10
TOUCHED = 0.36
"""The share of 1024 bits that the words of a title touch, on average."""

ORIGINAL = 0.70
"""Titles among whose first ten the abstract is, by the original code of TopSig."""

EFFORT = Effort(rounds=20, seconds=2.0)
CASES = ("masks-speed-one", "masks-speed-batch", "masks-titles")


def run_masks(names: Sequence[str], folder: Path | None, *, part: int) -> Iterator[QualityResult]:
    """Run cases one after the other; that of titles needs real ones, and is left out without."""
    runs: dict[str, Callable[[str], QualityResult]] = {
        "masks-speed-one": partial(_speed, count=COUNT // part, queries=1),
        "masks-speed-batch": partial(_speed, count=COUNT // part, queries=BATCH),
    }
    if folder is not None:
        runs["masks-titles"] = partial(_titles, folder=folder, part=part)
    for name in names:
        if name in runs:
            yield runs[name](name)


def _speed(name: str, count: int, queries: int) -> QualityResult:
    """Compare the same queries with the same rows, with masks and without, with one thread."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 256, (count, 128), dtype=np.uint8)
    asked = rng.integers(0, 256, (queries, 128), dtype=np.uint8)
    counted = rng.random((queries, 1024)) < TOUCHED
    masks = np.packbits(counted, axis=1, bitorder="little")
    index = la.ScanIndex(rows)
    masked, plain = "with masks", "without"
    contenders = [
        Contender(masked, lambda: index.search(asked, K, masks=masks, threads=1)),
        Contender(plain, lambda: index.search(asked, K, threads=1), is_rival=False),
    ]
    measured = measure(contenders, EFFORT)
    title = f"{K} nearest of {count:,} x 1024 bits, {queries} at once, 1 thread"
    nothing: dict[str, Any] = {masked: None, plain: None}
    quality: dict[str, Quality] = {masked: {}, plain: {}}
    result = QualityResult(name, title, measured, [], queries, nothing, nothing, quality)
    gate = f"M{'1' if queries == 1 else '2'}. {title}: without masks / with"
    return replace(result, verdicts=[ratio_verdict(gate, result.times(), plain, masked, 0.95)])


def _titles(name: str, folder: Path, part: int) -> QualityResult:
    """Look for abstracts by their titles, among all."""
    with gzip.open(folder / FILE, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    records = records[: len(records) // part]
    abstracts = [record["abstract"] for record in records]
    right = np.random.default_rng(0).choice(len(records), TITLES, replace=False)
    titles = [records[at]["title"] for at in right]

    def judge(ids: NDArray[np.int64]) -> Quality:
        found = ids == right[:, None]
        return {"found@1": float(found[:, 0].mean()), f"found@{K}": float(found.any(axis=1).mean())}

    start = perf_counter()
    signer = la.TopSig().fit(abstracts, threads=1)
    index = la.SliceIndex(signer.sign(abstracts, threads=1), threads=1)
    signing = perf_counter() - start
    start = perf_counter()
    cosine = la.SimHash(1024, weights="tfidf").fit(abstracts, threads=1)
    other = la.SliceIndex(cosine.sign(abstracts, threads=1), threads=1)
    hashing = perf_counter() - start
    start = perf_counter()
    words = bm25s.tokenize(abstracts, stopwords=None, show_progress=False)
    ranked = bm25s.BM25()
    ranked.index(words, show_progress=False)
    indexing = perf_counter() - start

    def masked(by: la.TopSig | la.SimHash, among: la.SliceIndex) -> NDArray[np.int64]:
        signatures, masks = by.sign(titles, mask=True, threads=1)
        return among.search(signatures, K, masks=masks, threads=1).ids

    def plain(by: la.TopSig | la.SimHash, among: la.SliceIndex) -> NDArray[np.int64]:
        return among.search(by.sign(titles, threads=1), K, exact=True, threads=1).ids

    def by_words() -> NDArray[np.int64]:
        asked = bm25s.tokenize(titles, stopwords=None, show_progress=False)
        ids, _ = ranked.retrieve(asked, k=K, show_progress=False, n_threads=1)
        return np.asarray(ids, np.int64)

    ours = "TopSig, masks"
    entries = [
        Entry(ours, partial(masked, signer, index), TITLES, judge, signing),
        Entry("TopSig, all bits", partial(plain, signer, index), TITLES, judge, signing),
        Entry("SimHash, masks", partial(masked, cosine, other), TITLES, judge, hashing),
        Entry("SimHash, all bits", partial(plain, cosine, other), TITLES, judge, hashing),
        Entry("bm25s", by_words, TITLES, judge, indexing),
    ]
    title = (
        f"{TITLES:,} titles look for their abstracts among {len(records):,}, 1024 bits, 1 thread"
    )
    result = run_entries(name, title, entries, TITLES, Effort(rounds=2, seconds=1.0))
    found = 100 * result.quality[ours][f"found@{K}"]
    gate = "M3. titles whose abstract is among the first ten, TopSig with masks"
    verdict = at_least(gate, found, 100 * ORIGINAL - 2, "%")
    return replace(result, verdicts=[verdict])
