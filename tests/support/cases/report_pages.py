"""Corpora with duplicates of all degrees, and the pages that are made of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from support.running.page_reader import Element, read_page

VOCABULARY = [f"word{number}" for number in range(2000)]


def text_of(rng: random.Random, words: int = 60) -> str:
    return " ".join(rng.choices(VOCABULARY, k=words))


def edited(rng: random.Random, text: str, words: int) -> str:
    """Return the text with so many of its words replaced by ones that are nowhere else."""
    found = text.split()
    for place in rng.sample(range(len(found)), words):
        found[place] = f"new{rng.randrange(10**9)}"
    return " ".join(found)


def corpus(seed: int = 0, originals: int = 60) -> list[dict[str, str]]:
    """Return originals, exact copies, near-duplicates of all degrees, and pairs that just miss."""
    rng = random.Random(seed)
    found = []
    for number in range(originals):
        text = text_of(rng)
        found.append(text)
        found += [text] * (number % 3)
        found += [edited(rng, text, words) for words in range(number % 5)]
    rng.shuffle(found)
    return [{"id": f"doc-{row}", "text": text} for row, text in enumerate(found)]


def page_of(result: Any, folder: Path, name: str = "report.html") -> Element:
    result.report(folder / name)
    return read_page((folder / name).read_text(encoding="utf-8"))
