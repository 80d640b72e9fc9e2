"""Titles that look for their abstracts, and synopses for their descriptions, by words."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter

import bm25s
import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.dedup.files import DEBIAN
from benchmarks.harness import Effort, Verdict
from benchmarks.quality import Entry, Quality, QualityResult, at_least, at_most, run_entries
from benchmarks.signing.documents import FILE
from lookalike.collection.search.postings import WordIndex
from lookalike.collection.search.words import words_of_query
from lookalike.collection.signing import WordKind
from lookalike.collection.stores.entries import Entries
from lookalike.collection.stores.words import bags_of

__all__ = ["CASES", "run_words"]

QUERIES = 1_000
SHORT_TEXTS = 8_000
K = 10
MILLION = 1_000_000
BATCH = 10_000
SUITE, OTHER_SUITE = "bullseye", "bookworm"
CHANGED = "debian_changed_pairs.tsv"
LEAST_WORDS = 20
"""A shorter description has too little to be found by."""
MADE = 20_000
"""Texts without spaces that are made."""
CASES = (
    "words-titles", "words-synopses", "words-sources", "words-unspaced", "words-edited",
    "words-fusion-titles", "words-fusion-synopses", "words-million", "words-import",
)  # fmt: skip
DEPTH, SMOOTHING = 100, 60
"""Documents of each ranking that are fused, and what is added to their ranks before (Cormack)."""
SHARES = (0.5, 0.75, 0.9)
"""Weights of the ranks by words in fusions; those by signatures have the rest."""

Pairs = list[tuple[str, str]]
"""A query, and the text that it looks for."""


def run_words(names: Sequence[str], folder: Path | None, *, part: int) -> Iterator[QualityResult]:
    """Run cases one after the other; all of them need real texts, and are left out without."""
    if folder is None:
        return
    runs: dict[str, Callable[[str], QualityResult]] = {
        "words-titles": partial(_found, pairs=partial(_titles, folder, part), gate="W1", least=88),
        "words-synopses": partial(
            _found, pairs=partial(_synopses, folder, part), gate="W2", least=85
        ),
        "words-sources": partial(
            _found, pairs=partial(_sources, folder, part), gate="W5", least=85
        ),
        "words-fusion-titles": partial(_fused, pairs=partial(_titles, folder, part)),
        "words-fusion-synopses": partial(_fused, pairs=partial(_synopses, folder, part)),
        "words-edited": partial(_edited, folder=folder, part=part),
        "words-unspaced": partial(_unspaced, count=MADE // part),
        "words-million": partial(_million, folder=folder, count=MILLION // part),
        "words-import": partial(_import, folder=folder, part=part),
    }
    for name in names:
        if name in runs:
            yield runs[name](name)


def _titles(folder: Path, part: int) -> Pairs:
    with gzip.open(folder / FILE, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return [(one["title"], one["abstract"]) for one in records[: len(records) // part]]


def _synopses(folder: Path, part: int) -> Pairs:
    """Return the first line of each different description of a release, and the rest of it."""
    found: dict[str, str] = {}
    with gzip.open(folder / DEBIAN, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            synopsis, _, description = record["text"].partition("\n")
            if record["suite"] == SUITE and len(description.split()) >= LEAST_WORDS:
                found.setdefault(description, synopsis)
    pairs = [(synopsis, description) for description, synopsis in found.items()]
    return pairs[: len(pairs) // part]


def _sources(folder: Path, part: int) -> Pairs:
    """Return synopsis and description of one package of each source of the other release."""
    found: dict[str, tuple[str, str]] = {}
    with gzip.open(folder / DEBIAN, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            synopsis, _, description = record["text"].partition("\n")
            if record["suite"] == OTHER_SUITE and len(description.split()) >= LEAST_WORDS:
                found.setdefault(record["source"], (synopsis, description))
    pairs = list(found.values())
    return pairs[: len(pairs) // part]


def _unspaced(name: str, count: int) -> QualityResult:
    """Look for made texts without spaces, such as Chinese, by a few of their words."""
    rng = np.random.default_rng(2)
    characters = [chr(0x4E00 + at) for at in range(3_000)]
    lengths = rng.choice([1, 2, 3, 4], 20_000, p=[0.1, 0.6, 0.2, 0.1]).tolist()
    frequent = 1 / np.arange(10, len(characters) + 10)
    chosen = [rng.choice(len(characters), size, p=frequent / frequent.sum()) for size in lengths]
    words = ["".join(characters[at] for at in word) for word in chosen]
    weights = 1 / np.arange(5, len(words) + 5)
    rows = rng.choice(len(words), (count, 60), p=weights / weights.sum())
    texts = ["".join(words[at] for at in row) for row in rows]
    right = rng.choice(count, min(QUERIES, count), replace=False)
    asked = ["".join(words[at] for at in rng.choice(rows[one], 4, replace=False)) for one in right]

    def search(docs: la.Collection) -> NDArray[np.int64]:
        found = [docs.search(query, K, by="words").ids for query in asked]
        return np.array([[*map(int, ids), *[-1] * (K - len(ids))] for ids in found])

    def judge(ids: NDArray[np.int64]) -> Quality:
        return {f"found@{K}": float((ids == right[:, None]).any(axis=1).mean())}

    title = f"{len(asked):,} times four words look for their text without spaces among {count:,}"
    with tempfile.TemporaryDirectory() as place:
        kinds: tuple[WordKind, ...] = ("porter", "trigram")
        made = {kind: _filled(Path(place) / f"{kind}.db", texts, kind) for kind in kinds}
        for docs in made.values():
            docs.search(asked[0], by="words")
        entries = [
            Entry(kind, partial(search, docs), len(asked), judge) for kind, docs in made.items()
        ]
        result = run_entries(name, title, entries, len(asked), Effort(rounds=2, seconds=1.0))
        for docs in made.values():
            docs.close()
    found = {kind: 100 * result.quality[kind][f"found@{K}"] for kind in kinds}
    verdict = at_least(
        f"W6. {title}: by pairs as many as by three", found["porter"], found["trigram"], "%"
    )
    return replace(result, verdicts=[verdict])


def _edited(name: str, folder: Path, part: int) -> QualityResult:
    """Look for documents by an earlier version of them: by signatures, and by words.

    Weights of TopSig are learned from the first documents, as a collection could do it.
    """
    with gzip.open(folder / DEBIAN, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    known = {one["id"]: one["text"] for one in records if one["suite"] == OTHER_SUITE}
    places = {id: at for at, id in enumerate(known)}
    before = {one["id"]: one["text"] for one in records if one["suite"] == SUITE}
    rows = (folder / CHANGED).read_text(encoding="utf-8").splitlines()
    pairs = [row.split("\t")[:2] for row in rows][::part]
    texts, asked = [*known.values()], [before[old] for old, _ in pairs]
    right = np.array([places[new] for _, new in pairs])

    def judge(ids: NDArray[np.int64]) -> Quality:
        found = ids == right[:, None]
        return {"found@1": float(found[:, 0].mean()), f"found@{K}": float(found.any(axis=1).mean())}

    def by_signatures(
        signer: la.SimHash | la.TopSig,
    ) -> tuple[Callable[[], NDArray[np.int64]], float]:
        start = perf_counter()
        if isinstance(signer, la.TopSig):
            signer.fit(texts[:BATCH])
        index = la.ScanIndex(signer.sign(texts))
        seconds = perf_counter() - start
        return lambda: np.asarray(index.search(signer.sign(asked), K).ids, np.int64), seconds

    start = perf_counter()
    index = _word_index(texts)
    building = perf_counter() - start
    entries = []
    for title, signer in (
        ("SimHash, 128 bits", la.SimHash(bits=128)),
        ("TopSig, 1024 bits", la.TopSig(1024, features=la.Words(ngram=1))),
    ):
        search, seconds = by_signatures(signer)
        size = signer.bits / 8
        entries.append(Entry(title, search, len(asked), judge, seconds, size))
    size = index.memory_bytes / len(texts)
    by_words = partial(_best_by_words, index, asked, K)
    entries.append(Entry("by words", by_words, len(asked), judge, building, size))
    title = f"{len(asked):,} edited documents look for their new version among {len(texts):,}"
    return run_entries(name, title, entries, len(asked), Effort(rounds=2, seconds=1.0))


def _word_index(texts: Sequence[str]) -> WordIndex:
    """Return the index in memory that a collection would have of these texts."""
    parts = ((at, texts[at : at + BATCH]) for at in range(0, len(texts), BATCH))
    return WordIndex.build(
        Entries.of(at, [str(one) for one in range(len(some))], bags_of(some, "porter"))
        for at, some in parts
    )


def _best_by_words(index: WordIndex, asked: Sequence[str], most: int) -> NDArray[np.int64]:
    """Return the best documents of each query, -1 where there are fewer."""
    found = np.full((len(asked), most), -1, np.int64)
    for row, query in zip(found, asked, strict=True):
        numbers = index.search(words_of_query(query, "porter"), most).numbers
        row[: len(numbers)] = numbers
    return found


def fused(rankings: Sequence[NDArray[np.int64]], weights: Sequence[float]) -> NDArray[np.int64]:
    """Return the first K of each query by reciprocal rank fusion; -1 is no document."""
    found = np.full((len(rankings[0]), K), -1, np.int64)
    for number, row in enumerate(found):
        scores: dict[int, float] = {}
        for ranking, weight in zip(rankings, weights, strict=True):
            for rank, id in enumerate(ranking[number].tolist(), start=1):
                if id >= 0:
                    scores[id] = scores.get(id, 0.0) + weight / (SMOOTHING + rank)
        best = sorted(scores, key=lambda id: (-scores[id], id))[:K]
        row[: len(best)] = best
    return found


def _fused(name: str, pairs: Callable[[], Pairs]) -> QualityResult:
    """Look for texts by words, by fitted TopSig with masks, and by both ranks together.

    Queries are those of `_found`, some of them. No gate: it decides whether ranks should be fused.
    """
    known = pairs()
    texts = [text for _, text in known]
    odd = np.arange(1, len(known), 2)
    right = np.random.default_rng(0).choice(odd, min(2 * QUERIES, len(odd)), replace=False)
    asked = [known[at][0] for at in right]
    start = perf_counter()
    words = _word_index(texts)
    building = perf_counter() - start
    start = perf_counter()
    signer = la.TopSig(1024, features=la.Words(ngram=1)).fit(texts)
    index = la.ScanIndex(signer.sign(texts))
    signing = perf_counter() - start

    def judge(ids: NDArray[np.int64]) -> Quality:
        found = ids[:, :K] == right[:, None]
        return {"found@1": float(found[:, 0].mean()), f"found@{K}": float(found.any(axis=1).mean())}

    def by_signatures() -> NDArray[np.int64]:
        signatures, masks = signer.sign(asked, mask=True)
        return np.asarray(index.search(signatures, DEPTH, masks=masks).ids, np.int64)

    by_words = partial(_best_by_words, words, asked, DEPTH)

    def by_both(share: float) -> NDArray[np.int64]:
        return fused([by_words(), by_signatures()], [share, 1 - share])

    entries = [
        Entry("by words", by_words, len(asked), judge, building),
        Entry("TopSig, masks", by_signatures, len(asked), judge, signing),
        *(
            Entry(f"both, words {share:.0%}", partial(by_both, share), len(asked), judge)
            for share in SHARES
        ),
    ]
    title = f"{len(asked):,} short texts look for their own among {len(texts):,}, ranks fused"
    return run_entries(name, title, entries, len(asked), Effort(rounds=1, seconds=0.1))


def _found(name: str, pairs: Callable[[], Pairs], gate: str, least: int) -> QualityResult:
    """Look for texts in a collection on disk by their short forms, one query after the other.

    Queries are those at odd positions; the constants were chosen by those at even ones.
    """
    known = pairs()
    texts = [text for _, text in known]
    odd = np.arange(1, len(known), 2)
    right = np.random.default_rng(0).choice(odd, min(SHORT_TEXTS, len(odd)), replace=False)
    asked = [known[at][0] for at in right]

    def judge(ids: NDArray[np.int64]) -> Quality:
        found = ids == right[:, None]
        return {"found@1": float(found[:, 0].mean()), f"found@{K}": float(found.any(axis=1).mean())}

    def by_words() -> NDArray[np.int64]:
        rows = np.full((len(asked), K), -1, np.int64)
        for at, query in enumerate(asked):
            ids = docs.search(query, K, by="words").ids
            rows[at, : len(ids)] = [int(id) for id in ids]
        return rows

    def by_bm25s() -> NDArray[np.int64]:
        tokens = bm25s.tokenize(asked, stopwords=None, show_progress=False)
        ids, _ = ranked.retrieve(tokens, k=K, show_progress=False, n_threads=1)
        return np.asarray(ids, np.int64)

    start = perf_counter()
    ranked = bm25s.BM25()
    ranked.index(bm25s.tokenize(texts, stopwords=None, show_progress=False), show_progress=False)
    indexing = perf_counter() - start
    ours, title = "by words", f"{len(asked):,} short texts look for their own among {len(texts):,}"
    with tempfile.TemporaryDirectory() as place:
        start = perf_counter()
        with _filled(Path(place) / "docs.db", texts, "porter") as docs:
            docs.search(asked[0], by="words")
            importing = perf_counter() - start
            entries = [
                Entry(ours, by_words, len(asked), judge, importing),
                Entry("bm25s", by_bm25s, len(asked), judge, indexing),
            ]
            result = run_entries(name, title, entries, len(asked), Effort(rounds=2, seconds=1.0))
    share = 100 * result.quality[ours][f"found@{K}"]
    most = 100 * result.quality["bm25s"][f"found@{K}"]
    verdicts = [
        at_least(f"{gate}. {title}: among the first ten", share, least, "%"),
        at_least(f"{gate}. {title}: as many as bm25s", share, most, "%"),
    ]
    return replace(result, verdicts=verdicts)


def _filled(path: Path, texts: Sequence[str], words: WordKind | None) -> la.Collection:
    docs = la.open_collection(path, signer=la.SimHash(bits=128), words=words, durable=False)
    for begin in range(0, len(texts), BATCH):
        some = texts[begin : begin + BATCH]
        docs.add([str(at) for at in range(begin, begin + len(some))], some)
    return docs


def _million(name: str, folder: Path, count: int) -> QualityResult:
    """Search an index in memory, on one core; texts are halves of two abstracts each."""
    pairs = _titles(folder, 1)
    halves = [(text[: len(text) // 2], text[len(text) // 2 :]) for _, text in pairs]
    rng = np.random.default_rng(1)
    start = perf_counter()

    def batches() -> Iterator[Entries]:
        for begin in range(0, count, BATCH):
            chosen = rng.integers(0, len(pairs), (min(BATCH, count - begin), 2)).tolist()
            texts = [f"{halves[one][0]} {halves[other][1]}" for one, other in chosen]
            ids = [str(begin + at) for at in range(len(texts))]
            yield Entries.of(begin, ids, bags_of(texts, "porter"))

    index = WordIndex.build(batches())
    building = perf_counter() - start
    asked = [pairs[at][0] for at in rng.choice(len(pairs), QUERIES, replace=False)]

    def search() -> None:
        for query in asked:
            index.search(words_of_query(query, "porter"), K)

    ours, title = "by words", f"{K} best of {count:,} texts for a title, in memory, 1 thread"
    entry = Entry(ours, search, len(asked), lambda _: {}, building, index.memory_bytes / count)
    result = run_entries(name, title, [entry], len(asked), Effort(rounds=2, seconds=1.0))
    milliseconds = 1000 * result.times()[ours].best / len(asked)
    verdict = at_most(f"W3. {title}: milliseconds a query", milliseconds, 5, " ms")
    return replace(result, verdicts=[verdict])


def _import(name: str, folder: Path, part: int) -> QualityResult:
    """Import a file into a new collection on disk, with a keyword index and without."""
    texts = [text for _, text in _titles(folder, part)][:30_000]

    def write(corpus: Path, words: WordKind | None) -> None:
        path = corpus.with_name("docs.db")
        with la.open_collection(path, signer=la.SimHash(bits=128), words=words) as docs:
            docs.import_file(corpus)
        path.unlink()

    ours, plain = "with a keyword index", "without"
    title = f"{len(texts):,} texts imported into a new collection"
    with tempfile.TemporaryDirectory() as place:
        corpus = Path(place) / "corpus.jsonl"
        rows = [{"id": str(at), "text": text} for at, text in enumerate(texts)]
        corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        entries = [
            Entry(ours, partial(write, corpus, "porter"), len(texts), lambda _: {}),
            Entry(plain, partial(write, corpus, None), len(texts), lambda _: {}),
        ]
        effort = Effort(rounds=3, seconds=1.0)
        result = run_entries(name, title, entries, len(texts), effort, unit="text")
    times = result.times()
    ratio = times[ours].times_as_long_as(times[plain])
    verdict: Verdict = at_most(f"W4. {title}: with a keyword index / without", ratio, 1.6, " x")
    return replace(result, verdicts=[verdict])
