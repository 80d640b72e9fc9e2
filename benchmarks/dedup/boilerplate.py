"""Which documents revise which: relations that are known, among documents with much boilerplate.

With rfcs/*.txt and rfc-index.txt in the folder of --data, the documents are those standards, and
the relations are those that the index calls "Obsoletes". Otherwise both are made up: documents of
sections of their own, some of which revise one earlier document, and front matter from a pool.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import lookalike as la
from benchmarks.harness import Effort, Verdict
from benchmarks.quality import Entry, QualityResult, at_least, at_most, run_entries

__all__ = ["NAME", "boilerplate", "related_documents"]

NAME = "dedup-boilerplate"
COUNT = 1_500
RECALL, EXTRA, SECONDS = 0.9, 300, 20.0
SEED = 39
VOCABULARY = 20_000
SECTION_WORDS = (60, 400)
SECTIONS = (4, 60)
NOTICES, NOTICES_EACH = 40, (6, 14)
REVISIONS = 0.08
KEPT_SHARES = (0.15, 0.9)

VERSIONS: Mapping[str, Any] = {"purpose": "versions"}
OTHERS: tuple[Mapping[str, Any], ...] = (
    {"purpose": "versions", "exact": True},
    {"measure": "weighted-jaccard", "threshold": 0.05, "common": 10},
    {"measure": "weighted-jaccard", "threshold": 0.05},
    {"measure": "weighted-jaccard", "threshold": 0.025, "common": 10},
    {"measure": "weighted-containment", "threshold": 0.1},
    {"measure": "weighted-containment", "threshold": 0.1, "common": 10},
    {"measure": "jaccard", "threshold": 0.2},
    {"measure": "containment", "threshold": 0.5},
    {"measure": "containment", "threshold": 0.3},
)

Relations = set[tuple[int, int]]


@dataclass(frozen=True)
class Related:
    """Documents, and the positions of those that are known to be related, ascending."""

    origin: str
    texts: list[str]
    relations: Relations


def related_documents(count: int) -> Related:
    """Return `count` made-up documents; the same every time."""
    rng = random.Random(SEED)
    words = [f"{rng.randrange(16**5):05x}"[: rng.randint(2, 5)] for _ in range(VOCABULARY)]
    shares = [1 / (rank + 2.7) for rank in range(VOCABULARY)]

    def section() -> list[str]:
        return rng.choices(words, shares, k=rng.randint(*SECTION_WORDS))

    notices = [section() for _ in range(NOTICES)]
    documents: list[list[list[str]]] = []
    relations: Relations = set()
    free: list[int] = []
    for number in range(count):
        sections = [section() for _ in range(rng.randint(*SECTIONS))]
        if free and rng.random() < REVISIONS:
            earlier = free.pop(rng.randrange(len(free)))
            relations.add((earlier, number))
            kept = max(1, round(rng.uniform(*KEPT_SHARES) * len(documents[earlier])))
            begin = rng.randint(0, len(documents[earlier]) - kept)
            copied = documents[earlier][begin : begin + kept]
            sections[: kept // 2] = [_edited(rng, each, words) for each in copied]
        else:
            free.append(number)
        documents.append(sections)
    texts = []
    for sections in documents:
        front = rng.sample(notices, rng.randint(*NOTICES_EACH))
        texts.append("\n\n".join(" ".join(each) for each in [*front, *sections]))
    return Related("made-up", texts, relations)


def _edited(rng: random.Random, section: list[str], words: list[str]) -> list[str]:
    edited = list(section)
    for _ in range(rng.choice([0, 1, 5, 20])):
        edited[rng.randrange(len(edited))] = rng.choice(words)
    return edited


def standards(folder: Path, count: int) -> Related | None:
    """Return the standards of a folder, and which replace which; None if they are not there."""
    files = sorted((folder / "rfcs").glob("rfc*.txt"))[:count]
    index = folder / "rfc-index.txt"
    if not files or not index.exists():
        return None
    places = {int(file.stem.removeprefix("rfc")): place for place, file in enumerate(files)}
    relations: Relations = set()
    for entry in re.split(r"\n\n(?=\d{4} )", index.read_text(encoding="utf-8", errors="replace")):
        number = re.match(r"(\d{4}) ", entry)
        if number is None:
            continue
        replaced = re.findall(r"\(Obsoletes ([^)]*)\)", " ".join(entry.split()))
        for other in re.findall(r"RFC ?(\d+)", " ".join(replaced)):
            if {int(number[1]), int(other)} <= set(places):
                one, two = sorted((places[int(number[1])], places[int(other)]))
                relations.add((one, two))
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    return Related("rfc", texts, relations)


def boilerplate(name: str, *, folder: Path | None, part: int) -> QualityResult:
    """Time `la.dedup` by several measures; count the known relations among its pairs."""
    count = COUNT // part
    found = None if folder is None else standards(folder, count)
    related = related_documents(count) if found is None else found
    texts = related.texts
    entries = [
        Entry(
            _named(how),
            partial(la.dedup, texts, threads=2, **how),
            len(texts),
            partial(_judge, related.relations),
        )
        for how in (VERSIONS, *OTHERS)
    ]
    title = (
        f"{len(texts):,} {related.origin} documents, {sum(map(len, texts)) / 1e6:.0f} MB; "
        f"{len(related.relations):,} known relations"
    )
    effort = Effort(rounds=1, seconds=60.0)
    result = run_entries(name, title, entries, len(texts), effort, unit="document")
    return replace(result, verdicts=_verdicts(result))


def _named(how: Mapping[str, Any]) -> str:
    more = " --exact" if how.get("exact") else ""
    if "purpose" in how:
        return f"--for {how['purpose']}{more}"
    common = f" --common {how['common']}" if "common" in how else ""
    return f"{how['measure']} {how['threshold']}{common}{more}"


def _judge(relations: Relations, result: Any) -> dict[str, float]:
    pairs = set(zip(result.pairs.left.tolist(), result.pairs.right.tolist(), strict=True))
    return {
        "pairs": len(pairs),
        "extra": len(pairs - relations),
        "recall": len(pairs & relations) / max(1, len(relations)),
    }


def _verdicts(result: QualityResult) -> list[Verdict]:
    name = _named(VERSIONS)
    quality, seconds = result.quality[name], result.times()[name].best
    return [
        at_least(f"42a. {NAME}: recall of {name}", quality["recall"], RECALL, "", 3),
        at_most(f"42b. {NAME}: other pairs", quality["extra"], EXTRA, "", 0),
        at_most(f"42c. {NAME}: time", seconds, SECONDS, " s", 2),
    ]
