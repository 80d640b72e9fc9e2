"""A small corpus whose documents, ids and neighbors are known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

TEXTS = [
    "The quick brown fox jumps over the lazy dog and runs into the dark forest.",
    "The quick brown fox jumps over the lazy cat and runs into the dark forest.",
    "Minimum wage legislation was debated in parliament on Tuesday afternoon.",
    "",
    "Die Würde des Menschen ist unantastbar. 日本語のテキスト",
    "The quick brown fox jumps over the lazy dog and runs into the dark forest.",
    "?!",
]
IDS = [f"doc-{number}" for number in range(len(TEXTS))]
WITH_WORDS = [0, 1, 2, 4, 5]


def many(count: int, seed: int = 0) -> list[str]:
    """Return texts of which each third one is an edited copy of the one before."""
    rng = np.random.default_rng(seed)
    texts: list[str] = []
    for number in range(count):
        words = rng.integers(0, 500, 40)
        if number % 3 == 2:
            words = np.array(texts[-1].split(), int)
            words[int(rng.integers(40))] = 1000
        texts.append(" ".join(map(str, words.tolist())))
    return texts


def write(path: Path, texts: list[str] = TEXTS, ids: list[str] | None = IDS) -> str:
    """Write JSON Lines and return their path."""
    rows = [
        {"text": text, **({"id": ids[number]} if ids else {})} for number, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)
