"""Recall and false positives per change of a picture, and images hashed in a second."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import imagehash
import numpy as np
import pdqhash
from numpy.typing import NDArray
from PIL import Image

import lookalike as la
from benchmarks.harness import Contender, Effort, measure, processor_time
from benchmarks.images.found import FOUND, opened
from benchmarks.images.same import run_same
from benchmarks.images.scenes import CHANGES, ROTATIONS, scene
from benchmarks.quality import (
    Quality,
    QualityResult,
    at_least,
    at_most,
    ratio_informs,
    ratio_verdict,
)
from benchmarks.report import table
from lookalike.images.details import MOST_POINTS

__all__ = ["CASES", "recall_table", "run_images"]

RECALL = ("images-recall", "images-photographs", "images-stamps")
SAME = ("images-parts", "images-plain", "images-many")
CASES = (*RECALL, *SAME, "images-decoded", "images-files", "images-small")

FIRST = 200_000
"""The number of the first scene; radii were chosen on others, below."""
SCENES = 300
LONGEST = 480
SPEED_SCENES = 48
SPEED_LONGEST = {"images-decoded": 1600, "images-files": 1600, "images-small": 240}
THREADS = 2
EFFORT = Effort(rounds=30, seconds=6.0)

_AS_CALLED = "imagehash.phash, without draft mode"
_DECODING = "decoding alone"
_READING = "what dedup reads"
"""The hash, a gray copy, and points."""

_EASY = ("size", "wider", "JPEG", "brightness")
"""In the names of changes that must not matter."""


@dataclass(frozen=True)
class _Hash:
    """A hash, and in how many bits copies differ at most, as its makers advise."""

    radius: int
    bits: Callable[[Any], NDArray[np.bool_]]
    turned: Callable[[Any], NDArray[np.bool_]] | None = None
    """All eight orientations at once, where that is offered."""


def _ours(bits: int, kind: str) -> _Hash:
    signer = la.ImageHash(bits, kind)

    def unpacked(picture: Any, orientations: int) -> NDArray[np.bool_]:
        rows = signer.sign(picture, orientations=orientations, threads=1)
        bits = np.unpackbits(rows, axis=-1, bitorder="little")[0]
        return np.asarray(bits, bool)

    return _Hash(
        signer.radius, partial(unpacked, orientations=1), partial(unpacked, orientations=8)
    )


def _of_imagehash(function: Callable[..., Any], side: int, radius: int) -> _Hash:
    return _Hash(radius, lambda picture: np.asarray(function(picture, side).hash).ravel())


def _of_pdq(picture: Any) -> NDArray[np.bool_]:
    return np.asarray(pdqhash.compute(np.asarray(picture))[0], bool)


HASHES: Mapping[str, _Hash] = {
    "ImageHash(256)": _ours(256, "dct"),
    "ImageHash(64)": _ours(64, "dct"),
    'ImageHash(256, "gradient")': _ours(256, "gradient"),
    'ImageHash(64, "gradient")': _ours(64, "gradient"),
    "imagehash.phash": _of_imagehash(imagehash.phash, 8, 10),
    "imagehash.dhash": _of_imagehash(imagehash.dhash, 8, 10),
    "imagehash.phash, 256 bits": _of_imagehash(imagehash.phash, 16, 56),
    "PDQ": _Hash(31, _of_pdq),
}
"""Radii: what PDQ's makers say, and for imagehash what is commonly taken, or ours."""


def run_images(names: Sequence[str], *, part: int) -> Iterator[QualityResult]:
    """Run cases one after the other."""
    for name in names:
        if name == "images-recall":
            numbers = range(FIRST, FIRST + SCENES // part)
            yield _recall(name, "drawn scenes", [partial(scene, each, LONGEST) for each in numbers])
        elif name in RECALL:
            kind = name.removeprefix("images-")
            paths = FOUND[kind]()[::part]
            if len(paths) < 2:
                print(f"\n{name}: no {kind} here; benchmarks/images/found.py says which packages")
                continue
            yield _recall(name, kind, [partial(opened, path, LONGEST) for path in paths])
        elif name in SAME:
            yield from run_same(name, part=part)
        else:
            yield _speed(name, SPEED_SCENES // part, files=name != "images-decoded")


def _hashed(make: Callable[[], Any]) -> dict[str, dict[str, NDArray[np.bool_]]] | None:
    """Return the bits of a picture and of all that can be made of it, by hash and change; None of
    one whose hash says nothing, as `dedup` leaves it out, too.
    """
    picture = make()
    signers = [la.ImageHash(bits) for bits in (64, 256)]
    if any(one.sign_with_quality(picture)[1] < one.least_quality for one in signers):
        return None
    pictures = {"": picture, **{name: change(picture) for name, change in CHANGES.items()}}
    found = {
        name: {change: one.bits(made) for change, made in pictures.items()}
        for name, one in HASHES.items()
    }
    for change, turn in ROTATIONS.items():
        made = turn(picture)
        for name, one in HASHES.items():
            found[name][change] = (one.turned or one.bits)(made)
    return found


def _recall(name: str, kind: str, pictures: Sequence[Callable[[], Any]]) -> QualityResult:
    with ProcessPoolExecutor(THREADS) as pool:
        scenes = [found for found in pool.map(_hashed, pictures) if found is not None]
    count = len(scenes)
    quality: dict[str, Quality] = {}
    for hash, described in HASHES.items():
        rows = [each[hash] for each in scenes]
        own = np.array([row[""] for row in rows], np.float32)
        apart = own @ (1 - own).T + (1 - own) @ own.T
        others = apart[np.triu_indices(count, 1)]
        figures = {"radius": float(described.radius)}
        figures["false positives, %"] = 100 * float((others <= described.radius).mean())
        for change in (*CHANGES, *ROTATIONS):
            # Of eight orientations the nearest counts.
            far = [int((np.atleast_2d(row[change]) != row[""]).sum(axis=1).min()) for row in rows]
            figures[change] = float(np.mean(np.array(far) <= described.radius))
        quality[hash] = figures
    pairs = f"{count * (count - 1) // 2:,} pairs of different ones"
    title = f"{count} {kind}, {pairs}: recall; {len(pictures) - count} that say nothing left out"
    nothing: dict[str, Any] = dict.fromkeys(HASHES)
    result = QualityResult(name, title, [], [], count, nothing, nothing, quality)
    verdicts = []
    # What `dedup` takes is held to it on all pictures.
    for hash in ("ImageHash(256)", "ImageHash(64)")[: 2 if name == "images-recall" else 1]:
        easy = [
            value
            for change, value in quality[hash].items()
            if any(word in change for word in _EASY)
        ]
        gate = f"{hash}: recall of resized, recompressed and brighter {kind}, the least"
        verdicts.append(at_least(f"I1. {gate}", 100 * min(easy), 99, "%"))
        positives = quality[hash]["false positives, %"]
        gate = f"I2. {hash}: false positives of {kind}"
        verdicts.append(at_most(gate, positives, 0.1, "%", digits=3))
    return replace(result, verdicts=verdicts)


def recall_table(result: QualityResult) -> str:
    """Return recall by change, a column for each hash."""
    lines = dict.fromkeys(line for each in result.quality.values() for line in each)
    rows = [
        (f"  {line}", *(_figure(line, each.get(line)) for each in result.quality.values()))
        for line in lines
    ]
    heading = ("  change", *result.quality)
    return f"{result.name}: {result.title}\n{table(heading, rows)}"


def _figure(line: str, value: float | None) -> str:
    if value is None:  # a line of other columns
        return ""
    return f"{value:.0f}" if line == "radius" else f"{value:.4f}"


def _speed(name: str, count: int, *, files: bool) -> QualityResult:
    """Hash the same pictures with two threads, decoded already, or from the bytes of JPEG files."""
    longest = SPEED_LONGEST[name]
    pictures = [scene(number, longest) for number in range(FIRST, FIRST + count)]
    sources: list[Any] = [_jpeg(picture) for picture in pictures] if files else pictures
    signer = la.ImageHash(64)

    def rival(hashing: Callable[[Any], Any]) -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(hashing, sources))

    def image_of(source: Any, draft: bool) -> Any:
        if not files:
            return source
        image = Image.open(io.BytesIO(source))
        if draft:
            image.draft("L", (64, 64))
        return image

    ours = "ImageHash(64)"
    contenders: dict[str, Callable[[], object]] = {
        ours: lambda: signer.sign(sources, threads=THREADS),
        "ImageHash(256)": lambda: la.ImageHash(256).sign(sources, threads=THREADS),
        _READING: lambda: list(
            la.ImageHash(256).each(sources, points=MOST_POINTS, threads=THREADS)
        ),
        "ImageHash(pdq)": lambda: la.ImageHash(kind="pdq").sign(sources, threads=THREADS),
        "imagehash.phash": partial(rival, lambda one: imagehash.phash(image_of(one, True))),
        "imagehash.dhash": partial(rival, lambda one: imagehash.dhash(image_of(one, True))),
        "pdqhash": partial(
            rival, lambda one: pdqhash.compute(np.asarray(image_of(one, False).convert("RGB")))
        ),
    }
    if files:
        contenders[_AS_CALLED] = partial(rival, lambda one: imagehash.phash(image_of(one, False)))
        contenders[_DECODING] = partial(rival, lambda one: image_of(one, True).load())
    measured = measure(
        [Contender(label, run, is_rival=False) for label, run in contenders.items()], EFFORT
    )
    of = "JPEG files in memory" if files else "decoded images"
    title = f"{count} {of}, {longest} pixels the longer way, {THREADS} threads"
    nothing: dict[str, Any] = dict.fromkeys(contenders)
    quality: dict[str, Quality] = {
        each.name: {
            "images/s": count / each.best,
            "processor µs": 1e6 * processor_time(contenders[each.name]) / count,
        }
        for each in measured
    }
    result = QualityResult(
        name, title, measured, [], count, nothing, nothing, quality, unit="image"
    )
    times, gate = result.times(), partial("I3. {}: {} / {}".format, name)
    alike = gate("imagehash.phash", ours)
    # Of large files, decoding is nearly all of the work, and it is the same for both with draft
    # mode: what is demanded of us there is imagehash as people call it, and what is not decoding.
    if name != "images-files":
        verdicts = [ratio_verdict(alike, times, "imagehash.phash", ours, 1.5)]
    else:
        verdicts = [
            ratio_verdict(gate(_AS_CALLED, ours), times, _AS_CALLED, ours, 1.5),
            ratio_verdict(gate(_AS_CALLED, _READING), times, _AS_CALLED, _READING, 1.0),
            ratio_informs(alike, times, "imagehash.phash", ours),
            ratio_informs(gate("imagehash.phash", _READING), times, "imagehash.phash", _READING),
            ratio_informs(gate("imagehash.phash", _DECODING), times, "imagehash.phash", _DECODING),
        ]
    return replace(result, verdicts=verdicts)


def _jpeg(picture: Any) -> bytes:
    written = io.BytesIO()
    picture.save(written, "JPEG", quality=90)
    return written.getvalue()
