"""What is contained in longer documents: `lookalike dedup --measure containment`, timed and judged.

The documents are those of `rfcs/*.txt` in the folder of --data, if there are any. Otherwise they
are made up as standards are: some revise an earlier one, of which they keep a part, edited or not,
among sections of their own, and all have some sections in common. Truth is brute force.
"""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.dedup.exact import every_pair
from benchmarks.dedup.large import command
from benchmarks.harness import Effort, Verdict
from benchmarks.importing import compiled_environment
from benchmarks.quality import Entry, QualityResult, at_least, at_most, run_entries
from lookalike.storage.files import whole_file

__all__ = ["NAME", "contained", "long_documents"]

NAME = "dedup-containment"
COUNT = 1_500
THRESHOLD = 0.5
SECONDS = 10.0
RECALL = 0.999
SEED = 38
VOCABULARY = 20_000
SECTION_WORDS = (60, 400)
SECTIONS = (6, 80)
COMMON_SECTIONS = 4
REVISIONS = 0.4
OURS = f"lookalike dedup --measure containment --threshold {THRESHOLD}"

Section = list[str]


def long_documents(count: int) -> list[str]:
    """Return so many made-up standards; the same every time."""
    rng = random.Random(SEED)
    words = [f"{rng.randrange(16**5):05x}"[: rng.randint(2, 5)] for _ in range(VOCABULARY)]
    shares = np.cumsum([1 / (rank + 2.7) for rank in range(VOCABULARY)]).tolist()

    def section() -> Section:
        return rng.choices(words, cum_weights=shares, k=rng.randint(*SECTION_WORDS))

    common = [section() for _ in range(COMMON_SECTIONS)]
    documents: list[list[Section]] = []
    for _ in range(count):
        sections = [section() for _ in range(rng.randint(*SECTIONS))]
        if documents and rng.random() < REVISIONS:
            earlier, kept = rng.choice(documents), rng.random()
            sections = sections[: rng.randint(0, len(sections))]
            for each in earlier:
                if rng.random() < kept:
                    sections.insert(rng.randint(0, len(sections)), _edited(rng, each, words))
        documents.append([*common, *sections])
    return ["\n\n".join(" ".join(each) for each in document) for document in documents]


def _edited(rng: random.Random, section: Section, words: list[str]) -> Section:
    edited = list(section)
    for _ in range(rng.choice([0, 0, 0, 1, 5, 20])):
        edited[rng.randrange(len(edited))] = rng.choice(words)
    return edited


def contained(name: str, *, folder: Path | None, cache: Path, part: int) -> QualityResult:
    """Time the whole program; compare its pairs with all there are, and with those of --exact."""
    source, origin = _corpus(folder, cache, COUNT // part)
    texts = [json.loads(line)["text"] for line in source.read_text().splitlines()]
    true = every_pair(texts, "containment")(THRESHOLD)
    alike = every_pair(texts)(THRESHOLD)
    with tempfile.TemporaryDirectory(dir=cache) as place:
        environment = compiled_environment(place)
        target = Path(place) / "unique.jsonl"
        entries = [
            Entry(
                OURS + (" --exact" if every else ""),
                partial(_run, source, target, environment, every),
                len(texts),
                partial(_judge, source, true, every),
            )
            for every in (False, True)
        ]
        result = run_entries(
            name,
            f"{len(texts):,} {origin} documents, {sum(map(len, texts)) / 1e6:.0f} MB; "
            f"{len(true):,} pairs of containment >= {THRESHOLD}, {len(alike):,} of Jaccard",
            entries,
            len(texts),
            Effort(rounds=3, seconds=30.0),
            unit="document",
        )
    return replace(result, verdicts=_verdicts(result, len(texts)))


def _corpus(folder: Path | None, cache: Path, count: int) -> tuple[Path, str]:
    """Return the documents as JSON Lines, and what they are."""
    files = [] if folder is None else sorted((folder / "rfcs").glob("*.txt"))[:count]
    origin = "rfc" if files else "made-up"
    source = cache / f"{NAME}-{origin}-{len(files) or count}.jsonl"
    if not source.exists():
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
        cache.mkdir(parents=True, exist_ok=True)
        with whole_file(source) as temporary, temporary.open("x") as lines:
            for text in texts or long_documents(count):
                lines.write(json.dumps({"text": text}) + "\n")
    return source, origin


def _run(source: Path, target: Path, environment: dict[str, str], every: bool) -> Any:
    more = ["--measure", "containment", "--threshold", str(THRESHOLD)]
    done = subprocess.run(
        command(source, target, *more, *(["--exact"] if every else [])),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        check=True,
    )
    return json.loads(done.stdout)


def _judge(source: Path, true: NDArray[np.int64], every: bool, summary: Any) -> dict[str, float]:
    result = la.dedup(source, measure="containment", threshold=THRESHOLD, exact=every, threads=2)
    found = result.pairs.left * len(result.keep) + result.pairs.right
    right = int(np.isin(found, true).sum())
    return {
        "pairs": len(found),
        "precision": right / max(1, len(found)),
        "recall": right / max(1, len(true)),
        "kept": summary["counts"]["kept"],
    }


def _verdicts(result: QualityResult, count: int) -> list[Verdict]:
    quality, seconds = result.quality[OURS], result.times()[OURS].best
    return [
        at_most(f"38a. {NAME}: {count:,} documents", seconds, SECONDS, " s", 2),
        at_least(f"38b. {NAME}: precision", quality["precision"], 1.0, "", 4),
        at_least(f"38c. {NAME}: recall", quality["recall"], RECALL, "", 4),
    ]
