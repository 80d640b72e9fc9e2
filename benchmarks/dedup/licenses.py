"""Texts like licenses: hundreds of templates of common clauses, thousands of variants of them.

A few templates are what nearly everybody takes, most are rare. Variants have another holder and
year, are wrapped otherwise, lack a clause or have one more, are edited by some words, or are copies
byte for byte: so thousands of documents share bands of their signatures, and their similarities
are anything from 0 to 1.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

__all__ = ["licenses", "write_licenses"]

SEED = 14
TEMPLATES = 300
CLAUSES = 400
VOCABULARY = 4_000
CLAUSE_WORDS = (15, 120)
TEMPLATE_CLAUSES = (2, 25)


def licenses(count: int, seed: int = SEED) -> list[str]:
    """Return so many texts; the same for the same seed."""
    rng = random.Random(seed)
    words = [_word(rng) for _ in range(VOCABULARY)]
    shares = [1 / (rank + 2.7) for rank in range(VOCABULARY)]
    clauses = [rng.choices(words, shares, k=rng.randint(*CLAUSE_WORDS)) for _ in range(CLAUSES)]
    popular = [1 / (rank + 1) for rank in range(CLAUSES)]
    templates = [
        [clauses[each] for each in rng.choices(range(CLAUSES), popular, k=length)]
        + [rng.choices(words, shares, k=rng.randint(*CLAUSE_WORDS)) for _ in range(length // 2 + 1)]
        for length in (rng.randint(*TEMPLATE_CLAUSES) for _ in range(TEMPLATES))
    ]
    taken = rng.choices(templates, [1 / (rank + 1) for rank in range(TEMPLATES)], k=count)
    texts: list[str] = []
    for template in taken:
        if texts and rng.random() < 0.05:
            texts.append(rng.choice(texts))
        else:
            texts.append(_variant(rng, template, clauses, words))
    return texts


def write_licenses(path: Path, count: int) -> Path:
    """Write such texts as JSON Lines, if they are not there yet."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"id": row, "text": text}) for row, text in enumerate(licenses(count))]
        path.write_text("".join(f"{line}\n" for line in lines))
    return path


def _word(rng: random.Random) -> str:
    return "".join(
        rng.choice("bcdfghklmnprstvw") + rng.choice("aeiou")
        for _ in range(rng.choice([1, 2, 3, 4]))
    )


def _variant(
    rng: random.Random, template: list[list[str]], clauses: list[list[str]], words: list[str]
) -> str:
    """Return a template as somebody has used it."""
    parts = [list(clause) for clause in template]
    if rng.random() < 0.2:
        parts.pop(rng.randrange(len(parts)))
    if rng.random() < 0.2:
        parts.insert(rng.randrange(len(parts) + 1), list(rng.choice(clauses)))
    if rng.random() < 0.3:
        for _ in range(rng.choice([1, 2, 5, 20, 60])):
            part = rng.choice(parts)
            part[rng.randrange(len(part))] = rng.choice(words)
    holder = " ".join(rng.choices(words, k=rng.choice([1, 2, 3])))
    heading = f"Copyright (c) {rng.randint(1985, 2025)} {holder.title()}"
    width = rng.choice([8, 10, 12, 10_000])
    lines = [heading] if rng.random() < 0.8 else []
    for part in parts:
        lines += [" ".join(part[at : at + width]) for at in range(0, len(part), width)] + [""]
    return "\n".join(lines)
