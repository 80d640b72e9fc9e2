"""Cleaning texts beside a suffix array, and decontamination beside datatrove's filter.

`clean-spans`: abstracts into which runs of others were copied, and all runs of 50 words that occur
again. Whole programs read a file and write a file; of the suffix array, sorting and what follows
is also shown alone. `decontaminate-ngrams`: the same corpus with copies of some of 100,000 items,
and all runs of 13 words. We are a whole program; of datatrove, only the filter is timed, on a part
of the corpus.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cleaning.suffix_array import kept_words, numbered
from benchmarks.cleaning.texts import COLUMN, Corpus, items, planted, words_of
from benchmarks.dedup.large import Run, watched
from benchmarks.harness import Measurement, Result, Verdict, WrongAnswerError
from benchmarks.passages.windows import window_hashes
from benchmarks.quality import at_least, at_most

__all__ = ["CASES", "run_cleaning", "selected_cases"]

CASES = ("clean-spans", "decontaminate-ngrams")
LONG_CASES = ("clean-spans-1gb",)
"""Run only if they are named: a suffix array of a gigabyte takes minutes and 10 GB of memory."""

TIMES, LONG_TIMES, TRAINING_TIMES = 2, 11, 3
LEAST, NGRAM = 50, 13
ITEMS = 100_000
PART_OF_NGRAMS, PART_OF_SENTENCES = 100, 100
"""Of the documents, datatrove gets one of these."""
MEMORY_LIMIT, LONG_LIMIT = "700MB", "1000MB"
ROUNDS, LONG_ROUNDS, SLOW_ROUNDS = 3, 2, 1
ARRAY = "benchmarks.cleaning.suffix_array"


def selected_cases(only: str) -> list[str]:
    """Return the cases with that in their name."""
    return [name for name in CASES if only in name] + [name for name in LONG_CASES if name == only]


def run_cleaning(
    names: Sequence[str], folder: Path | None, cache: Path, *, part: int
) -> Iterator[Result]:
    """Run cases one after the other, on a `part`-th of the abstracts."""
    for name in names:
        times = {"clean-spans": TIMES, "clean-spans-1gb": LONG_TIMES}.get(name, TRAINING_TIMES)
        corpus = planted(folder, cache, times, part)
        with tempfile.TemporaryDirectory(dir=cache) as place:
            if name == "decontaminate-ngrams":
                yield _decontaminate(name, corpus, folder, cache, Path(place), ITEMS // part)
            else:
                yield _clean(name, corpus, Path(place))


def _clean(name: str, corpus: Corpus, place: Path) -> Result:
    target, arrays = place / "clean.jsonl", place / "arrays.npz"
    options = ("--boundary", "word", "--min-left", "0")
    ours = partial(_lookalike, "clean", corpus.path, target, *options)
    rounds, limit = (LONG_ROUNDS, LONG_LIMIT) if name in LONG_CASES else (ROUNDS, MEMORY_LIMIT)
    runs: list[Run] = []
    single: list[Run] = []
    limited: list[Run] = []
    theirs: list[dict[str, float]] = []
    for number in range(rounds):
        runs.append(ours("--threads", "2"))
        found = Corpus(target).texts if number == 0 else []
        single.append(ours("--threads", "1"))
        limited.append(ours("--threads", "2", "--memory-limit", limit))
        theirs.append(_program(ARRAY, corpus.path, place / "other.jsonl", LEAST, arrays))
        if number == 0:
            _check_words(name, found, arrays)
    part = len(corpus.texts) // PART_OF_SENTENCES
    sentences = []
    for _ in range(SLOW_ROUNDS):
        with tempfile.TemporaryDirectory(dir=place) as other:
            sentences.append(_peer("sentences", corpus.path, Path(other), str(part)))
    size = corpus.text_bytes
    measured = [
        _measured("lookalike clean, 2 threads", [run.seconds for run in runs]),
        _measured("lookalike clean, 1 thread", [run.seconds for run in single]),
        _measured(f"the same, --memory-limit {limit}", [run.seconds for run in limited]),
        _measured("pydivsufsort, whole program", [one["seconds"] for one in theirs]),
        _measured("pydivsufsort, array and what follows", [one["array"] for one in theirs]),
        _measured("our step find, 2 threads", [run.summary["seconds"]["find"] for run in runs]),
        _measured("datatrove, sentences", sentences, scale=PART_OF_SENTENCES),
    ]
    whole, array = measured[3:5]
    peak = min(run.peak_bytes for run in runs)
    private = min(run.private_bytes for run in runs)
    held = max(run.peak_bytes for run in limited)
    allowed = float(limit.removesuffix("MB"))
    verdicts = [
        at_least(
            f"C1. {name}: whole program with pydivsufsort / ours",
            whole.times_as_long_as(measured[0]), 10, " x",
        ),
        Verdict(f"{name}: array of words that are numbered / our step find", "informs",
                f"{array.times_as_long_as(measured[5]):.1f} x", None),
        at_most(f"C2. {name}: peak of memory / text", peak / size, 1.5, " x", 2),
        at_most(f"C3. {name}: peak with --memory-limit", held / 1e6, allowed, " MB", 0),
        Verdict(f"{name}: memory beside mapped files / text", "informs", f"{private / size:.2f} x",
                None),
        Verdict(f"{name}: peak of pydivsufsort / text", "informs",
                f"{theirs[0]['peak'] / size:.2f} x", None),
    ]  # fmt: skip
    counts = runs[0].summary["counts"]
    title = (
        f"{counts['documents']:,} documents, {size / 1e6:,.0f} MB of text, runs of {LEAST} words, "
        f"{counts['words']:,} words removed"
    )
    return Result(name, title, measured, verdicts)


def _check_words(name: str, found: list[str], arrays: Path) -> None:
    """Raise an error if the suffix array leaves other words; it is used until it finds nothing."""
    with np.load(arrays) as saved:
        words, ends, removed = saved["words"], saved["ends"], saved["removed"]
    kept = kept_words(words, ends, LEAST, removed)
    ends_left = np.flatnonzero(np.isin(kept, ends, assume_unique=True))
    counts = np.diff(ends_left, prepend=-1) - 1
    ours = [words_of(text) for text in found]
    if [len(own) for own in ours] != counts.tolist():
        raise WrongAnswerError(f"{name}: the suffix array leaves another number of words")
    numbers: dict[str, int] = {}
    left = words[kept[np.isin(kept, ends, assume_unique=True, invert=True)]]
    pairs = zip((word for own in ours for word in own), left.tolist(), strict=True)
    if any(numbers.setdefault(word, number) != number for word, number in pairs):
        raise WrongAnswerError(f"{name}: the suffix array leaves other words")


def _decontaminate(
    name: str, corpus: Corpus, folder: Path | None, cache: Path, place: Path, count: int
) -> Result:
    wanted, corpus = items(corpus, folder, cache, count)
    target, hits = place / "clean.jsonl", place / "hits.jsonl"
    truth = _documents_with_ngrams(corpus.texts, wanted.texts)
    runs = [
        _lookalike("decontaminate", corpus.path, target, "--benchmarks", str(wanted.path),
                   "--columns", COLUMN, "--shortest", str(NGRAM), "--threads", "2",
                   "--hits", str(hits))
        for _ in range(ROUNDS)
    ]  # fmt: skip
    with hits.open(encoding="utf-8") as lines:
        found = {int(json.loads(line)["id"]) for line in lines}
    if found != truth:
        raise WrongAnswerError(f"{name}: {len(found ^ truth)} documents differ from all n-grams")
    part = len(corpus.texts) // PART_OF_NGRAMS
    theirs = place / "rows.npy"
    peers = [
        _peer("ngrams", corpus.path, wanted.path, str(part), str(theirs))
        for _ in range(SLOW_ROUNDS)
    ]
    other, own = set(np.load(theirs).tolist()), {row for row in truth if row < part}
    size = corpus.text_bytes
    measured = [
        _measured("lookalike decontaminate", [run.seconds for run in runs]),
        _measured("datatrove, n-grams", peers, scale=PART_OF_NGRAMS),
    ]
    ratio = measured[1].times_as_long_as(measured[0])
    verdicts = [
        at_least(f"C4. {name}: text", size / 1e6 / measured[0].best, 100, " MB/s", 0),
        at_least(f"C5. {name}: datatrove / ours", ratio, 20, " x"),
        at_least(f"C6. {name}: recall of documents with a run of {NGRAM} words",
                 len(found & truth) / max(1, len(truth)), 1, "", 4),
        Verdict(f"{name}: documents of {part:,} that only we find, only datatrove finds", "informs",
                f"{len(own - other)}, {len(other - own)} of {len(own)}", None),
        Verdict(f"{name}: peak of memory", "informs",
                f"{max(run.peak_bytes for run in runs) / 1e6:,.0f} MB", None),
    ]  # fmt: skip
    title = (
        f"{len(corpus.texts):,} documents, {size / 1e6:,.0f} MB of text, {len(wanted.texts):,} "
        f"items, runs of {NGRAM} words; {len(truth):,} documents contain some; two cores"
    )
    return Result(name, title, measured, verdicts)


def _documents_with_ngrams(texts: Sequence[str], wanted: Sequence[str]) -> set[int]:
    """Return the documents with an n-gram of an item, by the hashes of all n-grams."""
    words, ends = numbered([*wanted, *texts])
    first = len(wanted)
    hashes = window_hashes(words.astype(np.int64), NGRAM)
    own = np.searchsorted(ends, np.arange(len(hashes)))
    whole = np.arange(len(hashes)) + NGRAM <= ends[own]
    of_items = whole & (own < first)
    known = np.unique(hashes[of_items])
    rest = np.flatnonzero(whole & (own >= first))
    having = rest[np.isin(hashes[rest], known)]
    return set((own[having] - first).tolist())


def _lookalike(command: str, source: Path, target: Path, *more: str) -> Run:
    program = [sys.executable, "-m", "lookalike.cli", command, str(source), "-o", str(target)]
    return watched([*program, "--json", *more], 0)


def _peer(name: str, *arguments: Path | str) -> float:
    return float(_program("benchmarks.cleaning.peers", name, *arguments)["seconds"])


def _program(module: str, *arguments: object) -> Any:
    program = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(
        program, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def _measured(name: str, seconds: Sequence[float], scale: float = 1.0) -> Measurement:
    turns = [scale * each for each in seconds]
    median = float(np.median(turns))
    return Measurement(name, min(turns), median, len(turns), turns, scale, True)
