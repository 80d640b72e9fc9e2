"""Copied passages among long documents, and snippets among parts: all found, how quickly?

`passages-overlaps`: 1,500 documents of some 40 KB, abstracts one after the other, into which
passages of others were copied, half of them word for word, half with words changed, inserted or
left out. The truth of equal runs comes from `windows`: the hashes of all windows of 50 words,
sorted. The truth of edited copies is where they were put.

`passages-parts`: three million parts of 32 bits, as 100 hours of sound have; a query is 80 parts
in a row of which each has up to three bits changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.harness import Measurement, Result, Verdict
from benchmarks.passages.windows import Run, equal_runs
from benchmarks.signing.documents import read_documents
from lookalike.checks import thread_count

__all__ = ["CASES", "run_passages"]

CASES = ("passages-overlaps", "passages-parts")

DOCUMENTS, ABSTRACTS = 1500, 84_000
COPIES = 1000  # of each sort
MIN_WORDS = 50
ITEMS, PARTS, SNIPPET, SNIPPETS = 2000, 1500, 80, 400


def run_passages(names: Sequence[str], folder: Path | None, *, part: int) -> Iterator[Result]:
    """Run cases one after the other, of which only a `part`-th is used."""
    for name in names:
        if name == "passages-parts":
            yield _find_snippets(name, ITEMS // part)
        else:
            yield _find_copies(name, folder, part)


@dataclass(frozen=True)
class _Copy:
    """A passage that was put into a document, in words."""

    source: int
    target: int
    begin: int
    at: int
    length: int
    equal: int
    """Words that stayed, in runs that are long enough to count."""


def _find_copies(name: str, folder: Path | None, part: int) -> Result:
    documents = read_documents(folder, ABSTRACTS // part)
    plain = [text.encode("ascii", "ignore").decode() for text in documents.texts]
    words = _long_documents([text.split() for text in plain], DOCUMENTS // part)
    copies = _plant(words, COPIES // part)
    texts = [" ".join(own) for own in words]
    megabytes = sum(map(len, texts)) / 1e6
    times: dict[str, list[float]] = {"lookalike": [], "lookalike, exact": [], "all windows": []}
    for _ in range(2):
        start = perf_counter()
        found = la.overlaps(texts, min_words=MIN_WORDS)
        times["lookalike"].append(perf_counter() - start)
        start = perf_counter()
        exact = la.overlaps(texts, min_words=MIN_WORDS, gap=0)
        times["lookalike, exact"].append(perf_counter() - start)
    start = perf_counter()
    truth = equal_runs(texts, MIN_WORDS)
    times["all windows"].append(perf_counter() - start)
    runs = {(one.left_row, one.right_row, *one.runs[0]) for one in exact}
    edited = _recall_of_copies(found, copies)
    covered = _recall_of_runs(found, truth)
    in_both = len(runs & truth) / max(1, len(truth))
    best = {each: min(seconds) for each, seconds in times.items()}
    workers = f"{thread_count(None)} threads"
    verdicts = [
        Verdict(f"copied passages, {workers}", "<= 60 s", f"{best['lookalike']:.1f} s",
                best["lookalike"] <= 60),
        *(
            Verdict(title, ">= 0.99", f"{recall:.4f}", recall >= 0.99)
            for title, recall in (
                ("equal runs found, of all windows'", in_both),
                ("equal runs within passages that were found", covered),
                ("edited copies of 50 equal words found", edited),
            )
        ),
        Verdict("equal runs that all windows do not have", "0", str(len(runs - truth)),
                runs <= truth),
    ]  # fmt: skip
    title = (
        f"{len(texts):,} documents of {documents.origin}, {megabytes:.0f} MB, {found.words:,} "
        f"words: {len(truth):,} equal runs of {MIN_WORDS} words, {len(found):,} passages; "
        f"{found.common_windows:,} common windows; seconds"
    )
    return Result(name, title, _measurements(times), verdicts)


def _long_documents(abstracts: list[list[str]], count: int) -> list[list[str]]:
    each = len(abstracts) // count
    return [
        [word for abstract in abstracts[at * each : (at + 1) * each] for word in abstract]
        for at in range(count)
    ]


def _plant(words: list[list[str]], count: int) -> list[_Copy]:
    """Copy passages from one document into another; return the edited ones."""
    random = np.random.default_rng(17)
    edited = []
    for number in range(2 * count):
        source, target = random.choice(len(words), 2, replace=False).tolist()
        length = int(random.integers(60, 250))
        begin = int(random.integers(0, len(words[source]) - length))
        at = int(random.integers(0, len(words[target])))
        passage = words[source][begin : begin + length]
        if number % 2:
            passage, equal = _edited(passage, random)
            edited.append(_Copy(source, target, begin, at, length, equal))
        words[target][at:at] = passage
    return edited


def _edited(passage: list[str], random: np.random.Generator) -> tuple[list[str], int]:
    """Return a passage with a word changed, inserted or left out every 15 to 30 words."""
    result: list[str] = []
    at = equal = 0
    while at < len(passage):
        length = int(random.integers(15, 30))
        piece = passage[at : at + length]
        result += piece
        equal += len(piece) if len(piece) >= 15 else 0
        at += length
        change = int(random.integers(0, 3))
        if at < len(passage) and change < 2:
            result.append(f"changed{int(random.integers(10**6))}")
        at += change != 1  # 0: changed, 1: inserted, 2: left out
    return result, equal


def _recall_of_copies(found: la.results.Overlaps, copies: Sequence[_Copy]) -> float:
    """Return how many edited copies with enough equal words are passages of these documents.

    Passages that came later may lie in an earlier copy, and have moved it; so it is the documents
    and the number of words that are looked at.
    """
    words: dict[tuple[int, int], int] = {}
    for one in found:
        key = one.left_row, one.right_row
        words[key] = words.get(key, 0) + one.words
    wanted = [copy for copy in copies if copy.equal >= MIN_WORDS]
    hits = sum(
        words.get((min(copy.source, copy.target), max(copy.source, copy.target)), 0) >= MIN_WORDS
        for copy in wanted
    )
    return hits / max(1, len(wanted))


def _recall_of_runs(found: la.results.Overlaps, truth: set[Run]) -> float:
    """Return how many equal runs lie within a passage that was found."""
    ranges: dict[tuple[int, int], list[la.results.Overlap]] = {}
    for one in found:
        ranges.setdefault((one.left_row, one.right_row), []).append(one)
    hits = 0
    for left, right, begin, other, length in truth:
        hits += any(
            one.left_words[0] <= begin
            and begin + length <= one.left_words[1]
            and one.right_words[0] <= other
            and other + length <= one.right_words[1]
            for one in ranges.get((left, right), ())
        )
    return hits / max(1, len(truth))


def _find_snippets(name: str, items: int) -> Result:
    random = np.random.default_rng(18)
    sounds = random.integers(0, 2**32, (items, PARTS), dtype=np.uint32)
    parts = la.PartIndex(32)
    start = perf_counter()
    parts.add_many(range(items), sounds)
    parts.search(sounds[0, :SNIPPET])
    built = perf_counter() - start
    times: dict[str, list[float]] = {}
    verdicts = []
    for radius in (2, 3, 4, 5):
        spent, hits = [], 0
        for number in random.integers(0, items, SNIPPETS).tolist():
            at = int(random.integers(0, PARTS - SNIPPET))
            snippet = sounds[number, at : at + SNIPPET] ^ _noise(random)
            start = perf_counter()
            answer = parts.search(snippet, radius=radius)
            spent.append(perf_counter() - start)
            hits += bool(len(answer)) and (answer[0].item, answer[0].offset) == (number, at)
        times[f"within {radius} bits"] = spent
        recall, median = hits / SNIPPETS, float(np.median(spent))
        verdicts += [
            Verdict(f"snippets found, radius {radius}", ">= 0.98", f"{recall:.3f}", recall >= 0.98),
            Verdict(f"a snippet, radius {radius}, median", "<= 50 ms", f"{1e3 * median:.1f} ms",
                    median <= 0.05),
        ]  # fmt: skip
    title = (
        f"{parts.part_count:,} parts of 32 bits, {SNIPPET} parts a query, {thread_count(None)} "
        f"threads; built in {built:.1f} s; seconds a query"
    )
    return Result(name, title, _measurements(times), verdicts)


def _noise(random: np.random.Generator) -> NDArray[np.uint32]:
    """Return up to three bits for each part of a snippet."""
    bits = np.uint32(1) << random.integers(0, 32, (3, SNIPPET), dtype=np.uint32)
    chosen = np.arange(3)[:, None] < random.integers(0, 4, SNIPPET)
    noise: NDArray[np.uint32] = np.bitwise_xor.reduce(np.where(chosen, bits, np.uint32(0)), axis=0)
    return noise


def _measurements(times: dict[str, list[float]]) -> list[Measurement]:
    return [
        Measurement(
            name, min(seconds), float(np.median(seconds)), len(seconds), seconds, 1.0, False
        )
        for name, seconds in times.items()
    ]
