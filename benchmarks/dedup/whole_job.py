"""De-duplicating files end to end, beside the same job done with datasketch, gaoya and rensa."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

import lookalike as la
from benchmarks.dedup.boilerplate import NAME as BOILERPLATE
from benchmarks.dedup.boilerplate import boilerplate
from benchmarks.dedup.contained import NAME as CONTAINED
from benchmarks.dedup.contained import contained
from benchmarks.dedup.exact import NAME as EXACT
from benchmarks.dedup.exact import exact
from benchmarks.dedup.files import COLUMN, abstracts, distinct_texts
from benchmarks.dedup.large import LargeResult, command, large, large_table
from benchmarks.dedup.peers import (
    THRESHOLD,
    DataSketchCrc,
    DataSketchTwoProcesses,
    Gaoya,
    RensaDeduplicator,
    RensaTwoProcesses,
)
from benchmarks.dedup.short import NAMES as SHORT
from benchmarks.dedup.short import NEEDS_DATA, short
from benchmarks.dedup.truth import NearPairs, confirm, feature_matrix, near_pairs
from benchmarks.harness import Effort, Result, Verdict, WrongAnswerError
from benchmarks.importing import compiled_environment
from benchmarks.quality import Entry, QualityResult, at_least, quality_table, run_entries
from benchmarks.signing.peers import word_shingles

__all__ = ["CASES", "dedup_table", "run_dedup", "selected_cases"]

COUNT = 100_000
OURS = "lookalike dedup"
TIMED = (
    Gaoya.name,
    RensaTwoProcesses.name,
    RensaDeduplicator.name,
    DataSketchTwoProcesses.name,
    DataSketchCrc.name,
)
JUDGED = (Gaoya.name, RensaTwoProcesses.name, DataSketchTwoProcesses.name)

CASES = (
    "dedup-jsonl",
    "dedup-parquet",
    "dedup-quality-arxiv",
    "dedup-quality-debian",
    EXACT,
    CONTAINED,
    *SHORT,
    BOILERPLATE,
)
LONG_CASES = ("dedup-large",)
"""Run only if they are named: minutes, and gigabytes on disk."""


def selected_cases(only: str) -> list[str]:
    """Return the cases with that in their name."""
    return [name for name in CASES if only in name] + [name for name in LONG_CASES if name == only]


def run_dedup(
    names: Sequence[str], folder: Path | None, cache: Path, *, part: int
) -> Iterator[Result]:
    """Run cases one after the other, on a `part`-th of the documents."""
    runs: dict[str, Callable[[str], Result]] = {
        "dedup-jsonl": partial(timed, "jsonl", folder, cache, COUNT // part, "a"),
        "dedup-parquet": partial(timed, "parquet", folder, cache, COUNT // part, "b"),
        "dedup-quality-arxiv": partial(quality, "arxiv", folder, cache, "a", part),
        "dedup-quality-debian": partial(quality, "debian", folder, cache, "b", part),
        "dedup-large": partial(large, cache=cache, part=part),
        EXACT: partial(exact, cache=cache, part=part),
        CONTAINED: partial(contained, folder=folder, cache=cache, part=part),
        **{name: partial(short, folder=folder, part=part) for name in SHORT},
        BOILERPLATE: partial(boilerplate, folder=folder, part=part),
    }
    for name in names:
        if folder is None and (name.startswith("dedup-quality") or name == NEEDS_DATA):
            print(f"\n{name}: left out, because it needs real texts: --data")
        else:
            yield runs[name](name)


def dedup_table(result: Result) -> str:
    """Return what came out of a case as a table."""
    if isinstance(result, LargeResult):
        return large_table(result)
    if not isinstance(result, QualityResult):
        raise TypeError(f"no table for {type(result).__name__}")
    return quality_table(result)


def timed(
    form: str, folder: Path | None, cache: Path, count: int, letter: str, name: str
) -> QualityResult:
    """Time whole programs, from the file to the file with what stays."""
    source = abstracts(folder, cache, count)[form]
    origin = "abstracts" if folder is not None else "made-up texts"
    with tempfile.TemporaryDirectory(dir=cache) as place:
        target = Path(place) / f"unique.{form}"
        environment = compiled_environment(place)
        runs: dict[str, Callable[[], Any]] = {
            OURS: partial(_ours, source, target, environment),
            **{peer: partial(_peer, peer, source, target, environment) for peer in TIMED},
        }
        entries = [
            Entry(contender, partial(_with_processor_time, run), count, _kept)
            for contender, run in runs.items()
        ]
        result = run_entries(
            name,
            f"{count:,} {origin} in, those that stay out, {form}, two cores",
            entries,
            count,
            Effort(rounds=5, seconds=20.0),
            unit="document",
        )
        steps = _ours(source, target, environment)["seconds"]
    notes = ["our steps: " + ", ".join(f"{step} {passed:.2f} s" for step, passed in steps.items())]
    return replace(result, verdicts=_speed_verdicts(result, letter), notes=notes)


def _speed_verdicts(result: QualityResult, letter: str) -> list[Verdict]:
    times = result.times()
    ours = times[OURS]

    def faster_than(number: int, rivals: Sequence[str], target: float) -> Verdict:
        ratio, rival = min((times[each].times_as_long_as(ours), each) for each in rivals)
        title = f"{number}{letter}. {result.name}: {rival} / ours"
        return at_least(title, ratio, target, " x", 2)

    rate = result.queries / ours.best
    return [
        at_least(f"30{letter}. {result.name}: documents", rate, 25_000, " /s", 0),
        faster_than(31, [DataSketchTwoProcesses.name], 20),
        faster_than(32, [Gaoya.name], 5),
        faster_than(33, [RensaTwoProcesses.name, RensaDeduplicator.name], 5),
    ]


def quality(
    corpus: str, folder: Path | None, cache: Path, letter: str, part: int, name: str
) -> QualityResult:
    """Compare the pairs that are found with all there are; each text occurs once."""
    texts = distinct_texts(folder or Path(), corpus)[::part]
    truth = _truth(corpus, texts, cache)
    count = len(texts)

    def judge(found: NDArray[np.int64]) -> dict[str, float]:
        found = np.unique(np.sort(found, axis=1), axis=0)
        keys, true = found[:, 0] * count + found[:, 1], truth.keys(count)
        right = np.isin(keys, true).sum()
        return {
            "pairs": len(keys),
            "precision": right / max(1, len(keys)),
            "recall": right / max(1, len(true)),
        }

    with tempfile.TemporaryDirectory(dir=cache) as place:
        source, target = Path(place) / "texts.parquet", Path(place) / "unique.parquet"
        pyarrow.parquet.write_table(pyarrow.table({COLUMN: texts}), source)
        pairs = Path(place) / "pairs.npy"
        entries = [
            Entry("lookalike dedup", partial(_our_pairs, source), count, judge),
            *(
                Entry(peer, partial(_peer_pairs, peer, source, target, pairs), count, judge)
                for peer in JUDGED
            ),
        ]
        result = run_entries(
            name,
            f"{count:,} different texts, {len(truth):,} pairs of Jaccard similarity >= {THRESHOLD}",
            entries,
            count,
            Effort(rounds=1, seconds=0.0),
            unit="document",
        )
    ours = result.quality[OURS]
    verdicts = [
        at_least(f"34{letter}. {name}: precision", ours["precision"], 1.0, "", 4),
        at_least(f"35{letter}. {name}: recall", ours["recall"], 0.99, "", 4),
    ]
    notes = ["times are of one run each, and only inform"]
    return replace(result, verdicts=verdicts, notes=notes)


def _truth(corpus: str, texts: Sequence[str], cache: Path) -> NearPairs:
    """Return all pairs by brute force, of the very shingles that peers are given."""
    path = cache / f"jaccard-{corpus}-{len(texts)}.npz"
    if not path.exists():
        shingles = [np.fromiter(map(hash, word_shingles(text)), np.int64) for text in texts]
        offsets = np.concatenate([[0], np.cumsum([len(each) for each in shingles])])
        matrix = feature_matrix(offsets, np.concatenate(shingles).view(np.uint64), "jaccard")
        found = near_pairs(matrix, "jaccard", THRESHOLD)
        confirm(matrix, "jaccard", THRESHOLD, found, np.arange(0, len(texts), len(texts) // 500))
        np.savez(path, left=found.left, right=found.right, similarity=found.similarity)
    with np.load(path) as saved:
        return NearPairs(saved["left"], saved["right"], saved["similarity"])


def _ours(source: Path, target: Path, environment: dict[str, str]) -> Any:
    done = subprocess.run(
        command(source, target), stdout=subprocess.PIPE, env=environment, check=True
    )
    summary = json.loads(done.stdout)
    if summary["counts"]["estimated_pairs"]:
        raise WrongAnswerError("pairs were estimated, not verified")
    return summary


def _with_processor_time(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return an answer, and the seconds of all cores that the processes took."""
    before = _processor_time()
    answer = run()
    return answer, _processor_time() - before


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _peer(
    name: str, source: Path, target: Path, environment: dict[str, str] | None, *more: str
) -> Any:
    program = [sys.executable, "-m", "benchmarks.dedup.peers", name]
    folder = Path(__file__).parents[2]
    arguments = [str(source), COLUMN, str(target), *more]
    subprocess.run([*program, *arguments], cwd=folder, env=environment, check=True)
    return target


def _kept(answer: tuple[Any, float]) -> dict[str, float]:
    """Return how many documents stay, and the processor time of the last run."""
    done, seconds = answer
    if isinstance(done, dict):
        kept = done["counts"]["kept"]
    elif done.suffix == ".parquet":
        kept = pyarrow.parquet.read_metadata(done).num_rows
    else:
        kept = done.read_bytes().count(b"\n")
    return {"kept": kept, "cpu s": seconds}


def _our_pairs(source: Path) -> NDArray[np.int64]:
    pairs = la.dedup(source, text=COLUMN, threads=2).pairs
    return np.stack([pairs.left, pairs.right], axis=1)


def _peer_pairs(name: str, source: Path, target: Path, pairs: Path) -> NDArray[np.int64]:
    _peer(name, source, target, None, str(pairs))
    found: NDArray[np.int64] = np.load(pairs)
    return found
