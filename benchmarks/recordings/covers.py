"""Other performances of a piece: what `CoverIndex` finds of variants that fluidsynth plays.

Pieces are the MIDI files in the folder `midi` of the cache, or made-up ones where there are none.
The index has each piece as it is, with one sound font. Queries are the same piece in another key,
at another tempo, with other instruments (another sound font, no drums), or all of these with a
voice left out. Limits were chosen with every second piece; the others are reported. Where
fluidsynth is not installed, nothing is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.recordings.midi import (
    RATE,
    Score,
    Variant,
    composed,
    played,
    read,
    sound_fonts,
    varied,
)
from benchmarks.recordings.sounds import Samples
from lookalike.recordings.cover_index import CoverIndex, CoverMatch

__all__ = ["HEADING", "covers_measured"]

HEADING = ("queries", "found first", "found", "key right", "others named", "ms a query")
PIECES, SECONDS = 40, 120
_KEYS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6)


def covers_measured(cache: Path, part: int) -> tuple[str, list[list[str]], float, float]:
    """Return a title, rows, the recall of full covers, and the share of queries with others."""
    fonts = sound_fonts()
    if not fonts:
        return (
            "fluidsynth and its sound fonts are not installed: nothing was measured",
            [],
            1.0,
            0.0,
        )
    scores = _scores(cache)[:: max(1, part)]
    index = CoverIndex()
    for number, score in enumerate(scores):
        plain = varied(score, Variant(), number, SECONDS)
        index.add(number, (played(plain, fonts[0], SECONDS), RATE))
    held_out = range(1, len(scores), 2)
    rows, recall, wrong, asked = [], 0.0, 0, 0
    sounds: dict[tuple[int, Variant], Samples] = {}
    for name, seconds in (
        ("another key", SECONDS),
        ("another tempo", SECONDS),
        ("other instruments", SECONDS),
        ("all three, a voice less", SECONDS),
        ("all three, a voice less, 30 s", 30),
    ):
        found = []
        for number in held_out:
            variant = _variant(name, number)
            font = fonts[variant.other_instruments]
            if (number, variant) not in sounds:
                score = varied(scores[number], variant, number, SECONDS)
                sounds[number, variant] = played(score, font, SECONDS)
            sound = sounds[number, variant]
            begin = 0 if seconds == SECONDS else min(20 * RATE, len(sound) // 3)
            start = perf_counter()
            matches = index.search((sound[begin : begin + seconds * RATE], RATE))
            found.append((number, variant, matches, perf_counter() - start))
        row, first, others = _row(name, found)
        rows.append(row)
        recall = first if name == "all three, a voice less" else recall
        wrong, asked = wrong + others, asked + len(found)
    return f"{len(scores)} pieces, {len(held_out)} of them asked", rows, recall, wrong / asked


def _scores(cache: Path) -> list[Score]:
    files = sorted((cache / "midi").glob("*.mid*")) if (cache / "midi").is_dir() else []
    return [read(file) for file in files] or [composed(seed) for seed in range(PIECES)]


def _variant(name: str, number: int) -> Variant:
    random = np.random.default_rng([number, 13])
    key, tempo = int(random.choice(_KEYS)), float(random.uniform(0.8, 1.25))
    if name == "another key":
        return Variant(semitones=key)
    if name == "another tempo":
        return Variant(tempo=tempo)
    if name == "other instruments":
        return Variant(other_instruments=True, drums=False)
    drums = bool(random.random() < 0.5)
    return Variant(key, tempo, other_instruments=True, drums=drums, fewer_voices=True)


def _row(
    name: str, found: Sequence[tuple[int, Variant, Sequence[CoverMatch], float]]
) -> tuple[list[str], float, int]:
    first = named = key = others = 0
    for number, variant, matches, _ in found:
        own = [one for one in matches if one.recording == number]
        named += bool(own)
        first += bool(own) and matches[0].recording == number
        key += bool(own) and (own[0].semitones - variant.semitones) % 12 == 0
        others += any(one.recording != number for one in matches)
    count = len(found)
    shares = [f"{value / count:.2f}" for value in (first, named, key, others)]
    took = float(np.median([seconds for *_, seconds in found]))
    return [name, *shares, f"{1e3 * took:.0f}"], first / count, others
