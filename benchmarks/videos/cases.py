"""Films after what happens to them: are they found among all, and where?

`videos-changes` has made-up films, and those of the folder that `LOOKALIKE_FILMS` names. Each is
changed in fifteen ways; the changed film is a query against all originals. vPDQ's rule is applied
with its own settings: a hash each second, frames of quality 50 on, distances below 31, and a match
at 80% of the frames of the query. Its hashes are those of the package vpdq, if it is installed, or
else of pdqhash on the same frames. Settings of lookalike were chosen with every third film of the
folder and with other made-up ones; these are left out here.

`videos-speed` decodes a film of 720 lines: alone, and with hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import av
import numpy as np
import pdqhash
from numpy.typing import NDArray

import lookalike as la
from benchmarks.harness import Result
from benchmarks.quality import at_least, at_most
from benchmarks.report import table
from benchmarks.videos.films import CHANGES, RATE, Film, found, made_up
from lookalike.parts.index import PartIndex
from lookalike.videos.decode import STEP, read_frames
from lookalike.videos.frames import VideoFrames

CASES = ("videos-changes", "videos-speed")
MADE_UP, REAL, FIRST = 6, 12, 500
_FOUND_BY_GATE = ("re-encoded, low quality", "half the size, WebM", "a third of it")
_NEAR = STEP / 1000 + 0.1  # seconds that a place may be off
_VPDQ_DISTANCE, _VPDQ_QUALITY, _VPDQ_SHARE = 31, 50, 0.8


@dataclass(frozen=True)
class VideosResult(Result):
    """What was found, in a table."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]


def run_videos(names: Sequence[str], *, part: int) -> Iterator[VideosResult]:
    """Run cases one after the other, of which only a `part`-th is used."""
    for name in names:
        yield (_changes if name == CASES[0] else _speed)(name, part)


def videos_table(result: VideosResult) -> str:
    """Return what was measured as a table."""
    return "\n".join([result.title, "", table(result.heading, result.rows), "", *result.notes])


def _changes(name: str, part: int) -> VideosResult:
    films = [(f"made up {number}", made_up(FIRST + number)) for number in range(MADE_UP // part)]
    real = [one for number, one in enumerate(found()) if number % 3]
    films += real[:: max(part, -(-len(real) // REAL))]
    hash = la.VideoHash()
    index = PartIndex(hash.bits)
    frames: dict[str, VideoFrames] = {}
    rivals: dict[str, NDArray[np.uint8]] = {}
    counts = {change: [0, 0, 0, 0] for change in CHANGES}
    with TemporaryDirectory() as folder:
        for label, film in films:
            path = Path(folder, "original.mp4")
            film.write(path)
            frames[label] = read_frames(path)
            rivals[label] = _vpdq(path)
            index.add(label, *hash.sign_query(frames[label]))
        twins = _twins(frames)
        for label, film in films:
            for change, made in CHANGES.items():
                copy = made(film)
                path = Path(folder, f"copy{copy.suffix}")
                copy.write(path)
                query = read_frames(path)
                right, wrong = _ours(index, hash, query, label, copy.start, twins)
                theirs, others = _theirs(_vpdq(path), rivals, label, twins)
                for place, one in enumerate((right, wrong, theirs, others)):
                    counts[change][place] += one
    total = len(films)
    rows = [
        [change, f"{a / total:.3f}", str(b), f"{c / total:.3f}", str(d)]
        for change, (a, b, c, d) in counts.items()
    ]
    least = min(counts[change][0] / total for change in _FOUND_BY_GATE)
    false = sum(one[1] for one in counts.values())
    verdicts = [
        at_least("videos re-encoded, resized or cut: found at their place", least, 0.9, "", 3),
        at_most(
            "videos: share of queries with a false match",
            false / (total * len(CHANGES)), 0.01, "", 4,
        ),
    ]  # fmt: skip
    title = f"{total} films ({len(films) - MADE_UP // part} found), each changed in many ways"
    notes = [
        "found: the share that is found (lookalike: at its place); false: queries that match "
        "another film",
        f"vPDQ's hashes are those of {'vpdq' if _module() else 'pdqhash, a frame per second'}",
    ]
    heading = ["change", "lookalike: found", "false", "vPDQ: found", "false"]
    return VideosResult(name, title, [], verdicts, heading, rows, notes)


def _twins(frames: dict[str, VideoFrames]) -> set[tuple[str, str]]:
    """Return pairs of films that have a part in common: these are not false matches.

    Frame by frame, not by votes: most of the frames of a third of one are in the other, in any
    order.
    """
    twins = set()
    for one, first in frames.items():
        for other, second in frames.items():
            if one != other and len(first.offsets) and len(second.offsets):
                near = _distances(first.signatures, second.signatures).min(axis=1)
                if np.mean(near[first.quality >= 30] <= 20) > 0.2:
                    twins |= {(one, other), (other, one)}
    return twins


def _distances(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.int64]:
    differ = np.bitwise_count(one[:, None] ^ other[None])
    counted: NDArray[np.int64] = differ.sum(axis=2, dtype=np.int64)
    return counted


def _ours(
    index: PartIndex,
    hash: la.VideoHash,
    query: VideoFrames,
    label: str,
    start: float,
    twins: set[tuple[str, str]],
) -> tuple[bool, bool]:
    """Return whether the original is found at its place, and whether another film is."""
    parts, votes = hash.sign_query(query), hash.votes
    if not len(parts.signatures):
        return False, False
    answer = index.search(
        *parts,
        radius=votes.radius,
        tolerance=votes.tolerance,
        min_votes=votes.min_votes(len(parts.signatures)),
    )
    good = [one for one in answer if one.score >= votes.least_score]
    right = any(one.item == label and abs(one.offset / 1000 - start) <= _NEAR for one in good)
    wrong = any(one.item != label and (label, str(one.item)) not in twins for one in good)
    return right, wrong


def _theirs(
    query: NDArray[np.uint8],
    originals: dict[str, NDArray[np.uint8]],
    label: str,
    twins: set[tuple[str, str]],
) -> tuple[bool, bool]:
    """Return whether vPDQ's rule finds the original, and whether it finds another film."""
    matches = set()
    for name, rows in originals.items():
        if len(query) and len(rows):
            near = _distances(query, rows).min(axis=1) < _VPDQ_DISTANCE
            if near.mean() >= _VPDQ_SHARE:
                matches.add(name)
    return label in matches, any(name != label and (label, name) not in twins for name in matches)


def _module() -> Any:
    try:
        return import_module("vpdq")
    except ImportError:
        return None


def _vpdq(path: Path) -> NDArray[np.uint8]:
    """Return the hashes of vPDQ with enough quality, one per second."""
    if (module := _module()) is not None:
        rows = [
            bytes.fromhex(one.hex)
            for one in module.computeHash(str(path))
            if one.quality >= _VPDQ_QUALITY
        ]
        return np.frombuffer(b"".join(rows), np.uint8).reshape(-1, 32)
    bits = []
    with av.open(str(path)) as container:
        due = 0.0
        for frame in container.decode(video=0):
            if frame.time is not None and frame.time >= due:
                due += 1.0
                vector, quality = pdqhash.compute(frame.to_ndarray(format="rgb24"))
                if quality >= _VPDQ_QUALITY:
                    bits.append(vector)
    return np.packbits(np.array(bits, np.uint8).reshape(-1, 256), axis=1)


def _speed(name: str, part: int) -> VideosResult:
    """Time a film of 720 lines in processor time: decoding alone, and hashing it."""
    film = made_up(FIRST)
    pixels = film.pixels.repeat(4, axis=1).repeat(5, axis=2)[: 240 // part]
    with TemporaryDirectory() as folder:
        path = Path(folder, "film.mp4")
        Film(pixels[:, :720, :1280]).write(path)
        seconds = len(pixels) / RATE
        runs: dict[str, Callable[[], object]] = {
            "decoding alone": lambda: _decode(path, None),
            "decoding what is needed": lambda: _decode(path, "NONREF"),
            "la.VideoHash": lambda: read_frames(path),
        }
        if (module := _module()) is not None:
            runs["vpdq"] = lambda: module.computeHash(str(path), thread_count=1)
        rows = []
        for label, run in runs.items():
            times = []
            for _ in range(3):
                begin = process_time()
                run()
                times.append(process_time() - begin)
            rows.append([label, f"{min(times):.2f}", f"{seconds / min(times):.0f}"])
    title = f"{seconds:.0f} s of 1280 × 720 pixels, {RATE} frames per second, H.264, one thread"
    heading = ["", "processor s", "times real time"]
    return VideosResult(name, title, [], [], heading, rows, [])


def _decode(path: Path, skip: str | None) -> None:
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        context: Any = stream.codec_context
        context.thread_count = 1
        if skip is not None:
            context.skip_frame = skip
        for _ in container.decode(stream):
            pass
