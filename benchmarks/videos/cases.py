"""Films after what happens to them: are they found among all, and where?

`videos-changes` has made-up films, and those of the folder that `LOOKALIKE_FILMS` names. Each is
changed in fifteen ways; the changed film is a query against all originals. vPDQ's rule is applied
with its own settings: a hash each second, frames of quality 50 on, distances below 31, and a match
at 80% of the frames of the query. Its hashes are those of the package vpdq, if it is installed, or
else of pdqhash on the same frames. Settings of lookalike were chosen with every third film of the
folder and with other made-up ones; these are left out here.

Where that is said, frames are asked for in all eight orientations.

`videos-sound` gives each film a sound of its own, changes the pictures, and encodes the sound
again; `dedup` has to find the copy. And it gives each film the sound of the next one: that does not
make them duplicates.

`videos-long` searches for clips of 20 s in a film of two hours, with their place.

`videos-speed` decodes a film of 720 lines: alone, and with hashes.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from benchmarks.recordings.sounds import music
from benchmarks.report import table
from benchmarks.videos.films import (
    CHANGES,
    RATE,
    SOUND_RATE,
    WITH_SOUND,
    Film,
    found,
    made_up,
    write_long,
)
from lookalike.parts.index import PartIndex
from lookalike.videos.decode import STEP, Reading, read_frames
from lookalike.videos.frames import VideoFrames
from lookalike.videos.medium import similar_pairs

CASES = ("videos-changes", "videos-sound", "videos-long", "videos-speed")
MADE_UP, REAL, FIRST = 6, 12, 500
_FOUND_BY_GATE = ("re-encoded, low quality", "half the size, WebM", "a third of it")
_NEAR = STEP / 1000 + 0.1  # seconds that a place may be off
_TURNED = ("mirrored",)  # changes for which all orientations are asked for
_LEAST = 0.8  # share of the longer film that is the same
LONG, CLIP, CLIPS = 7200, 20, 10
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
        yield _RUNS[name](name, part)


def videos_table(result: VideosResult) -> str:
    """Return what was measured as a table."""
    return "\n".join([result.title, "", table(result.heading, result.rows), "", *result.notes])


def _changes(name: str, part: int) -> VideosResult:
    films = _films(part)
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
                query = read_frames(
                    path, Reading(orientations=8 if change in _TURNED else 1, query=True)
                )
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
    title = f"{total} films ({len(films) - _made_up(part)} found), each changed in many ways"
    notes = [
        "found: the share that is found (lookalike: at its place); false: queries that match "
        "another film",
        f"vPDQ's hashes are those of {'vpdq' if _module() else 'pdqhash, a frame per second'}",
    ]
    heading = ["change", "lookalike: found", "false", "vPDQ: found", "false"]
    return VideosResult(name, title, [], verdicts, heading, rows, notes)


def _made_up(part: int) -> int:
    return max(1, MADE_UP // part)


def _films(part: int) -> list[tuple[str, Film]]:
    """Return made-up films, and found ones, that no setting was chosen with."""
    count = _made_up(part)
    films = [(f"made up {number}", made_up(FIRST + number)) for number in range(count)]
    real = [one for number, one in enumerate(found()) if number % 3]
    return films + real[:: max(part, -(-len(real) // REAL))]


def _sound(name: str, part: int) -> VideosResult:
    films = _films(part)
    labels = [label for label, _ in films]
    songs = [
        music(FIRST + number, film.seconds, SOUND_RATE) for number, (_, film) in enumerate(films)
    ]
    heard = Reading(sound=True)
    copies: dict[str, list[VideoFrames]] = {change: [] for change in WITH_SOUND}
    originals, others = [], []
    with TemporaryDirectory() as folder:
        path = Path(folder, "film.mp4")
        for place, (_, film) in enumerate(films):
            own = replace(film, sound=songs[place])
            own.write(path)
            originals.append(read_frames(path, heard))
            for change, made in WITH_SOUND.items():
                replace(made(own), sound_rate=32_000).write(path)
                copies[change].append(read_frames(path, heard))
            borrowed = songs[(place + 1) % len(films)]
            replace(film, sound=borrowed[: round(film.seconds * SOUND_RATE)]).write(path)
            others.append(read_frames(path, heard))
    twins = _twins(dict(zip(labels, originals, strict=True)))
    count, rows, wrong = len(films), [], 0
    silent = [replace(one, sound=None) for one in originals]
    for change, changed in copies.items():
        by_sound = _pairs([*originals, *changed])
        by_pictures = _pairs([*silent, *(replace(one, sound=None) for one in changed)])
        wrong += _strangers(by_sound, labels, twins)
        pairs_of_copies = {(place, place + count) for place in range(count)}
        rows.append(
            [
                change,
                *(
                    f"{len(pairs_of_copies & pairs) / count:.3f}"
                    for pairs in (by_pictures, by_sound)
                ),
            ]
        )
    joined = similar_pairs([*originals, *others], _LEAST, "shorter")
    wrong_music = _strangers(
        set(zip(joined.left.tolist(), joined.right.tolist(), strict=True)), labels, twins
    )
    same = len({pair for pair in joined.related if pair[0] % count != pair[1] % count})
    verdicts = [
        at_least("videos with sound, mirrored: found", float(rows[2][2]), 0.9, "", 3),
        at_most("videos with the same music: false pairs", wrong_music, 0, "", 0),
    ]
    notes = [
        f"{wrong} pairs of different films were found",
        f"{count} films with the sound of another one: {wrong_music} pairs of different films were "
        f"found, and {same} pairs reported as same sound",
    ]
    title = f"{count} films with sound, whose pictures were changed: found by dedup"
    heading = ["change", "by pictures", "with sound"]
    return VideosResult(name, title, [], verdicts, heading, rows, notes)


def _pairs(videos: Sequence[VideoFrames]) -> set[tuple[int, int]]:
    found = similar_pairs(videos, _LEAST)
    return set(zip(found.left.tolist(), found.right.tolist(), strict=True))


def _strangers(
    pairs: set[tuple[int, int]], labels: Sequence[str], twins: set[tuple[str, str]]
) -> int:
    """Return how many pairs are of different films."""
    count = len(labels)
    named = [(labels[one % count], labels[other % count]) for one, other in pairs]
    return sum(one != other and (one, other) not in twins for one, other in named)


def _long(name: str, part: int) -> VideosResult:
    """Make a film of two hours of scenes at 160 × 120, and find clips of 20 s in it."""
    seconds = LONG // part
    random = np.random.default_rng(77)
    begins = random.uniform(0, seconds - CLIP - 1, CLIPS)
    rows = []
    with TemporaryDirectory() as folder:
        film, clip = Path(folder, "film.mp4"), Path(folder, "clip.mp4")
        write_long(film, 0, seconds)
        begin, peak = process_time(), _peak_memory()
        frames = read_frames(film)
        taken, held = process_time() - begin, _peak_memory() - peak
        hash = la.VideoHash()
        index = PartIndex(hash.bits)
        index.add("film", *hash.sign_query(frames))
        right, times = 0, []
        for start in begins:
            write_long(clip, float(start), CLIP, quality=34)
            query = read_frames(clip, Reading(query=True))
            begin = process_time()
            ours, _ = _ours(index, hash, query, "film", float(start), set())
            times.append(process_time() - begin)
            right += ours
        rows = [
            ["clips of 20 s found at their place", f"{right} of {CLIPS}"],
            ["reading the film, processor s", f"{taken:.1f}"],
            ["times real time", f"{seconds / taken:.0f}"],
            ["frames that vote", f"{int(frames.voting.sum()):,}"],
            ["memory for reading it, MB", f"{held / 1e6:.0f}"],
            ["memory of its index, MB", f"{index.memory_bytes / 1e6:.1f}"],
            ["a search, ms", f"{1000 * float(np.median(times)):.1f}"],
        ]
    verdicts = [at_least("clips of a film of two hours: found", right / CLIPS, 1.0, "", 2)]
    title = f"a film of {seconds / 3600:.1f} hours, 160 × 120 pixels, H.264"
    return VideosResult(name, title, [], verdicts, ["", ""], rows, [])


def _peak_memory() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


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
    votes, chosen = hash.votes, query.voting
    if not chosen.any():
        return False, False
    good = []
    for number in range(1 + len(query.turned)):
        answer = index.search(
            query.oriented(number)[chosen],
            query.offsets[chosen],
            radius=votes.radius,
            tolerance=votes.tolerance,
            min_votes=votes.min_votes(int(chosen.sum())),
            nearness=votes.nearness,
        )
        good += [one for one in answer if one.score >= votes.least_score]
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


_RUNS = {
    "videos-changes": _changes,
    "videos-sound": _sound,
    "videos-long": _long,
    "videos-speed": _speed,
}
