"""Snippets of ten seconds: are they found after what happens to sound, and in a hundred hours?

`recordings-changes` has 60 made-up pieces of two minutes and 12 of speech (where espeak-ng is), of
each of which a snippet that begins anywhere is changed and looked for; beside our two kinds of
words stands the comparison that comes with Chromaprint's Python package, snippet by recording.
`recordings-covers` looks for other performances of pieces (`covers.py`).
`recordings-hours` has a hundred hours of made-up pieces, in an index and in a collection; times are
those of a processor, one thread, and of the clock, the best of three of each snippet. Settings were
chosen with other pieces, but for the least score of bands, which was raised after these had been
measured once (docs/recordings.md).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.harness import Measurement, Result, Verdict
from benchmarks.quality import at_least, at_most
from benchmarks.recordings.covers import HEADING, covers_measured
from benchmarks.recordings.hours import MINUTES, RATE, piece, words_of_hours
from benchmarks.recordings.sounds import (
    Samples,
    encoded,
    music,
    resampled,
    speech,
    with_noise,
)
from benchmarks.report import table
from lookalike.collection import open_collection
from lookalike.recordings.audio_hash import KINDS, AudioHash, Fingerprint
from lookalike.recordings.chromaprint import find_program
from lookalike.recordings.index import RecordingIndex

__all__ = ["CASES", "RecordingsResult", "recordings_table", "run_recordings"]

CASES = ("recordings-changes", "recordings-hours", "recordings-covers")

PIECES, SPOKEN, SECONDS, SNIPPET, STRANGERS, HOURS, ASKED = 60, 12, 120, 10, 100, 100, 100
_FIRST, _STRANGE = 2_000_000, 3_000_000
"""Seeds: what settings were chosen with has others."""
_CHANGED_RATE = 16_000
_NEAR = 0.2
"""Seconds that a place may be off."""
_ACOUSTID_LEAST = 0.25
"""Chosen like ours: above what pieces that differ reach."""
_ACOUSTID_PART, _ACOUSTID_OTHERS = 6, 1
"""Every so many snippets are compared by it, and each with so many recordings that it is not from,
since it takes some 0.1 s for each.
"""

_SYLLABLES = "ba der fo gul hin jes ka lom mi nar pos ru san ten vul wor zi tra ple ost".split()
"""Of made-up words: sentences that share a phrase would share its sound, as one voice speaks it."""


def _faster(sound: Samples, rate: int, share: float) -> Samples:
    return resampled(sound, rate, round(rate / (1 + share)))


Change = Callable[[Samples, int, int], Samples]
CHANGES: dict[str, Change] = {
    "none": lambda sound, rate, seed: sound,
    "MP3, the smallest": lambda sound, rate, seed: encoded(sound, rate, "MP3", 0.99),
    "Ogg, the smallest": lambda sound, rate, seed: encoded(sound, rate, "OGG", 0.99),
    "noise 20 dB below": lambda sound, rate, seed: with_noise(sound, 20, seed),
    "noise 10 dB below": lambda sound, rate, seed: with_noise(sound, 10, seed),
    "softer by 26 dB": lambda sound, rate, seed: sound * np.float32(0.05),
    "through 8 kHz": lambda sound, rate, seed: resampled(resampled(sound, rate, 8000), 8000, rate),
    "5 s of it": lambda sound, rate, seed: sound[: 5 * rate],
    "1% faster": lambda sound, rate, seed: _faster(sound, rate, 0.01),
    "3% faster": lambda sound, rate, seed: _faster(sound, rate, 0.03),
}


@dataclass(frozen=True)
class RecordingsResult(Result):
    """What was found, in a table."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]


def run_recordings(names: Sequence[str], cache: Path, *, part: int) -> Iterator[RecordingsResult]:
    """Run cases one after the other, of which only a `part`-th is used."""
    for name in names:
        yield _RUNS[name](name, cache, part)


def recordings_table(result: RecordingsResult) -> str:
    """Return what was measured as a table."""
    return "\n".join([result.title, "", table(result.heading, result.rows), "", *result.notes])


def _changes(name: str, cache: Path, part: int) -> RecordingsResult:
    sounds = _sounds(max(4, PIECES // part))
    strangers = [
        music(_STRANGE + number, SNIPPET, _CHANGED_RATE) for number in range(STRANGERS // part)
    ]
    random = np.random.default_rng(3)
    begins = [int(random.integers(len(sound) - SNIPPET * _CHANGED_RATE)) for sound in sounds]
    rows = {change: [change] for change in [*CHANGES, "other recordings"]}
    verdicts: list[Verdict] = []
    heading = ["snippets of 10 s"]
    for kind in _kinds():
        recalls, wrong = _found(AudioHash(kind), sounds, begins, strangers, rows)
        heading += [f"{kind}: found", "wrong"]
        if kind == KINDS[0]:
            kept = min(recalls[change] for change in list(CHANGES)[:4])
            verdicts = [
                at_least("snippets re-encoded or with noise 20 dB below: found", kept, 0.98, "", 3),
                at_most("snippets that name a wrong recording", wrong, 0.001, "", 4),
            ]
    if _kinds() == KINDS and _acoustid() is not None:
        _compared(_acoustid(), sounds, begins, rows)
        heading += ["pyacoustid: found", "wrong"]
    title = f"{len(sounds)} recordings of {SECONDS} s, {len(strangers)} snippets of others"
    notes = ["found: the share at their place; wrong: snippets that name another recording"]
    return RecordingsResult(name, title, [], verdicts, heading, list(rows.values()), notes)


def _covers(name: str, cache: Path, part: int) -> RecordingsResult:
    title, rows, recall, wrong = covers_measured(cache, part)
    verdicts = [
        at_least("other performances found first", recall, 0.6, "", 3),
        at_most("queries that name another piece", wrong, 0.1, "", 3),
    ]
    notes = ["others named: the share of queries that name another piece, too"]
    return RecordingsResult(name, title, [], verdicts, HEADING, rows, notes)


def _kinds() -> tuple[str, ...]:
    with contextlib.suppress(ImportError):
        find_program()
        return KINDS
    return KINDS[:1]


def _acoustid() -> Any:
    with contextlib.suppress(ImportError):
        return import_module("acoustid")
    return None


def _sounds(count: int) -> list[Samples]:
    made = [music(_FIRST + number, SECONDS, _CHANGED_RATE) for number in range(count)]
    for number in range(max(1, SPOKEN * count // PIECES)):
        random = np.random.default_rng([number, 9])
        syllables = random.choice(_SYLLABLES, (240, 3))
        words = " ".join("".join(three) for three in syllables.tolist())
        spoken = speech(words, _CHANGED_RATE)
        if spoken is not None:
            made.append(spoken[: SECONDS * _CHANGED_RATE])
    return made


def _found(
    hash: AudioHash,
    sounds: Sequence[Samples],
    begins: Sequence[int],
    strangers: Sequence[Samples],
    rows: dict[str, list[str]],
) -> tuple[dict[str, float], float]:
    index = RecordingIndex(hash)
    for number, sound in enumerate(sounds):
        index.add(number, (sound, _CHANGED_RATE))
    recalls, mistaken, asked = {}, 0, 0
    for change, changed in CHANGES.items():
        right = wrong = 0
        for number, (sound, begin) in enumerate(zip(sounds, begins, strict=True)):
            snippet = sound[begin : begin + SNIPPET * _CHANGED_RATE]
            snippet = changed(snippet, _CHANGED_RATE, number)
            found = index.search((snippet, _CHANGED_RATE))
            right += any(
                one.recording == number and abs(one.offset - begin / _CHANGED_RATE) <= _NEAR
                for one in found
            )
            wrong += any(one.recording != number for one in found)
        recalls[change] = right / len(sounds)
        rows[change] += [f"{right / len(sounds):.3f}", f"{wrong / len(sounds):.3f}"]
        mistaken, asked = mistaken + wrong, asked + len(sounds)
    wrong = sum(bool(index.search((sound, _CHANGED_RATE))) for sound in strangers)
    rows["other recordings"] += ["", f"{wrong / max(1, len(strangers)):.3f}"]
    return recalls, (mistaken + wrong) / (asked + len(strangers))


def _compared(
    acoustid: Any, sounds: Sequence[Samples], begins: Sequence[int], rows: dict[str, list[str]]
) -> None:
    """Compare snippets with their recordings and a few others, as pyacoustid does; it looks at all
    distances here, not at 15 s alone.
    """
    hash = AudioHash("chromaprint")
    words = [hash.fingerprint((sound, _CHANGED_RATE)).words.tolist() for sound in sounds]
    acoustid.MAX_ALIGN_OFFSET = max(map(len, words))
    for change, changed in CHANGES.items():
        right = wrong = 0
        chosen = range(0, len(sounds), _ACOUSTID_PART)
        for number in chosen:
            sound, begin = sounds[number], begins[number]
            snippet = sound[begin : begin + SNIPPET * _CHANGED_RATE]
            snippet = changed(snippet, _CHANGED_RATE, number)
            own = hash.fingerprint((snippet, _CHANGED_RATE)).words.tolist()
            scores = [
                acoustid._match_fingerprints(own, words[(number + step) % len(words)])
                for step in range(_ACOUSTID_OTHERS + 1)
            ]
            right += scores[0] >= _ACOUSTID_LEAST
            wrong += max(scores[1:]) >= _ACOUSTID_LEAST
        rows[change] += [f"{right / len(chosen):.3f}", f"{wrong / len(chosen):.3f}"]
    rows["other recordings"] += ["", ""]


def _hours(name: str, cache: Path, part: int) -> RecordingsResult:
    hours = HOURS // part
    index, hash = RecordingIndex(), AudioHash()
    numbers, words, offsets = [], [], []
    for number, (own, at) in words_of_hours(hours, cache):
        numbers.append(number)
        words.append(own)
        offsets.append(at)
    start = process_time()
    index.parts.add_many(numbers, words, offsets)
    index.parts.compact()
    built = process_time() - start
    random = np.random.default_rng(4)
    chosen = random.choice(len(numbers), min(ASKED, len(numbers)), replace=False).tolist()
    snippets: dict[str, list[tuple[int, float, Fingerprint]]] = {}
    signing = []
    for number in chosen:
        sound = piece(number)
        begin = int(random.integers(len(sound) - SNIPPET * RATE))
        for change in list(CHANGES)[:5]:
            snippet = CHANGES[change](sound[begin : begin + SNIPPET * RATE], RATE, number)
            start = process_time()
            own_words = hash.fingerprint((snippet, RATE))
            signing.append(process_time() - start)
            snippets.setdefault(change, []).append((number, begin / RATE, own_words))
    for number in range(len(chosen)):
        sound = music(_STRANGE + 1000 + number, SNIPPET, RATE)
        others = snippets.setdefault("other recordings", [])
        others.append((-1, 0.0, hash.fingerprint((sound, RATE))))
    index.search(snippets["none"][0][2])  # what the first search makes once
    rows, verdicts, times = [], [], []
    for change, asked in snippets.items():
        right = wrong = 0
        took, clock = [], []
        for number, place, own_words in asked:
            start = process_time()
            found = index.search(own_words, threads=1)
            took.append(process_time() - start)
            clock.append(_best_clock(partial(index.search, own_words, threads=1)))
            right += any(
                one.recording == number and abs(one.offset - place) <= _NEAR for one in found
            )
            wrong += any(one.recording != number for one in found)
        times += took
        median = 1e3 * float(np.median(took))
        share = "" if change == "other recordings" else f"{right / len(asked):.3f}"
        on_clock = 1e3 * float(np.median(clock))
        rows.append(
            [change, share, f"{wrong / len(asked):.3f}", f"{median:.1f}", f"{on_clock:.1f}"]
        )
        if change == "none":
            verdicts = [
                at_least(f"10 s in {hours} hours: found", right / len(asked), 0.98, "", 3),
                at_most(f"10 s in {hours} hours: ms a snippet, 1 thread", median, 50, "", 1),
            ]
    stats = index.parts.stats()
    notes = [
        f"{stats['parts']:,} words of {len(numbers):,} pieces of {MINUTES} minutes, "
        f"{stats['signatures']:,} different; {stats['memory_bytes'] / 1e6:,.0f} MB, made in "
        f"{built:.1f} s",
        f"fingerprint of a snippet: {1e3 * float(np.median(signing)):.1f} ms",
        _in_collection(words, offsets, snippets["none"]),
    ]
    median_time = float(np.median(times))
    measured = Measurement("search", min(times), median_time, len(times), times, 1.0, True)
    heading = ["snippets of 10 s", "found", "wrong", "ms", "ms by the clock"]
    return RecordingsResult(
        name, f"{hours} hours at {RATE} Hz", [measured], verdicts, heading, rows, notes
    )


def _best_clock(search: Callable[[], Any]) -> float:
    """Return what a search takes by the clock, the best of three: others use the machine, too."""
    took = []
    for _ in range(3):
        start = perf_counter()
        search()
        took.append(perf_counter() - start)
    return min(took)


def _in_collection(
    words: Sequence[Any], offsets: Sequence[Any], asked: Sequence[tuple[int, float, Fingerprint]]
) -> str:
    """Say how the same recordings are found in a collection, on SQLite."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "music.db"
        with open_collection(path, signer=AudioHash()) as docs:
            start = process_time()
            for begin in range(0, len(words), 100):
                some = range(begin, min(begin + 100, len(words)))
                parts = [(words[number], offsets[number]) for number in some]
                docs.add([str(number) for number in some], signatures=parts)
            added = process_time() - start
            docs.refresh()
        start = process_time()
        with open_collection(path) as docs:
            docs.refresh()
            opened = process_time() - start
            took, clock, right = [], [], 0
            for number, place, own in asked:
                start = process_time()
                found = docs.search(own, 5, threads=1)
                took.append(process_time() - start)
                clock.append(_best_clock(partial(docs.search, own, 5, threads=1)))
                right += any(
                    one.id == str(number) and abs((one.offset or 0) / 1000 - place) <= _NEAR
                    for one in found
                )
            in_memory = docs.stats()["native_bytes"]
        return (
            f"in a collection: added in {added:.1f} s, {path.stat().st_size / 1e6:,.0f} MB, "
            f"{in_memory / 1e6:,.0f} MB in memory, opened in {opened:.2f} s; "
            f"{right / len(asked):.3f} found, {1e3 * float(np.median(took)):.1f} ms a snippet, "
            f"{1e3 * float(np.median(clock)):.1f} ms by the clock"
        )


_RUNS = dict(zip(CASES, (_changes, _hours, _covers), strict=True))
