"""What `dedup` finds: pictures changed as people change them, and pictures with little in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import lookalike as la
from benchmarks.images.found import FOUND, opened
from benchmarks.images.plain import plain_picture
from benchmarks.images.scenes import CHANGES, EDITS
from benchmarks.quality import Quality, QualityResult, at_least, at_most
from lookalike.images.details import MOST_POINTS
from lookalike.images.image_hash import HashedImage
from lookalike.images.medium import ImageMedium
from lookalike.images.signed import most_differing, pairs_by_hashes
from lookalike.media import Read

__all__ = ["run_same"]

PLAIN = 10_000
LONGEST = 480
THREADS = 2
THRESHOLDS = ("strict", "normal", "loose")
HASHES = {
    "hash alone, 256 bits": la.ImageHash(256),
    "64 bits": la.ImageHash(64),
    "pdq": la.ImageHash(kind="pdq"),
}
"""Of old images that are known only by their hashes."""
_NOT_HELD = ("rotated by 2°", "watermark")
"""Edits that are only reported."""

Picture = Image.Image


def run_same(name: str, *, part: int) -> Iterator[QualityResult]:
    """Run a case: changed pictures, or pictures of which none is a copy of another."""
    if name == "images-plain":
        yield _plain(name, PLAIN // part)
        return
    paths = FOUND["parts"]()[::part]
    if len(paths) < 2:
        print(f"\n{name}: no photographs here; benchmarks/images/found.py says which packages")
        return
    yield _parts(name, [partial(opened, path, LONGEST) for path in paths])


def _hashed(names: Sequence[str], make: Callable[[], Picture]) -> list[HashedImage]:
    """Return what `dedup` reads of a picture, and of the changes of it with these names."""
    picture, changes = make(), {**CHANGES, **EDITS}
    pictures = [picture, *(changes[name](picture) for name in names)]
    medium = ImageMedium()
    return cast("list[HashedImage]", list(medium.signer.each(pictures, points=MOST_POINTS)))


def _only_hashed(names: Sequence[str], make: Callable[[], Picture]) -> list[list[HashedImage]]:
    """Return each of `HASHES` of a picture, and of the changes of it with these names."""
    picture, changes = make(), {**CHANGES, **EDITS}
    pictures = [picture, *(changes[name](picture) for name in names)]
    return [cast("list[HashedImage]", list(signer.each(pictures))) for signer in HASHES.values()]


def _pairs_by_hashes(
    signer: la.ImageHash, old: Sequence[HashedImage], new: Sequence[HashedImage]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of old and new pictures that hashes alone decide."""
    clear = [place for place, one in enumerate(old) if one.quality >= signer.least_quality]
    rows = np.array([old[place].signatures[0] for place in clear], np.uint8)
    most = most_differing(signer, np.array([one.quality for one in new]))
    hashes = np.array([one.signatures for one in new])
    left, right, _ = pairs_by_hashes(
        rows.reshape(-1, signer.bits // 8), hashes, most, threads=THREADS
    )
    return np.array(clear, np.int64)[left], right


def _read(medium: ImageMedium, hashed: Sequence[HashedImage]) -> Read[Any]:
    places = [Path(str(place)) for place in range(len(hashed))]
    return medium.collected(places, hashed, [])


def _parts(name: str, pictures: Sequence[Callable[[], Picture]]) -> QualityResult:
    changes = [*CHANGES, *EDITS]
    with ProcessPoolExecutor(THREADS) as pool:
        rows = list(pool.map(partial(_hashed, changes), pictures, chunksize=4))
    count = len(rows)
    quality: dict[str, Quality] = {}
    for threshold in THRESHOLDS:
        medium = ImageMedium(threshold=threshold)
        figures: dict[str, float] = {}
        wrong = compared = 0
        for column, change in enumerate(changes, 1):
            both = [row[0] for row in rows] + [row[column] for row in rows]
            found = medium.pairs(_read(medium, both), threads=THREADS, tell=lambda share: None)
            own = found.right - found.left == count
            figures[change] = int(own.sum()) / count
            wrong += int((found.left % count != found.right % count).sum())
            compared += count * (2 * count - 2)
        quality[threshold] = {"false pairs in 100,000": 1e5 * wrong / compared, **figures}
    with ProcessPoolExecutor(THREADS) as pool:
        hashed = list(pool.map(partial(_only_hashed, changes), pictures, chunksize=4))
    for number, (label, signer) in enumerate(HASHES.items()):
        figures, wrong = {}, 0
        for column, change in enumerate(changes, 1):
            columns = ([row[number][place] for row in hashed] for place in (0, column))
            left, right = _pairs_by_hashes(signer, *columns)
            figures[change] = int((left == right).sum()) / count
            wrong += int((left != right).sum())
        pairs = len(changes) * count * (count - 1)
        quality[label] = {"false pairs in 100,000": 1e5 * wrong / pairs, **figures}
    title = f"{count} photographs and what was made of each: recall of `dedup` by threshold"
    nothing: dict[str, Any] = dict.fromkeys(quality)
    result = QualityResult(name, title, [], [], count, nothing, nothing, quality)
    normal = quality["normal"]
    held = [normal[edit] for edit in EDITS if edit not in _NOT_HELD]
    gate = "I4. dedup: recall of crops, frames, captions and logos, the least"
    verdicts = [
        at_least(gate, 100 * min(held), 90, "%"),
        at_most("I5. dedup: false pairs in 100,000", normal["false pairs in 100,000"], 1, "", 3),
    ]
    return replace(result, verdicts=verdicts)


def _plain(name: str, count: int) -> QualityResult:
    with ProcessPoolExecutor(THREADS) as pool:
        makers = [partial(plain_picture, number) for number in range(count)]
        rows = [row[0] for row in pool.map(partial(_hashed, []), makers, chunksize=64)]
    quality: dict[str, Quality] = {}
    for threshold in THRESHOLDS[:2]:
        medium = ImageMedium(threshold=threshold)
        found = medium.pairs(_read(medium, rows), threads=THREADS, tell=lambda share: None)
        quality[threshold] = {"wrong pairs": float(len(found.left))}
    with ProcessPoolExecutor(THREADS) as pool:
        hashed = list(pool.map(partial(_only_hashed, []), makers, chunksize=64))
    for number, (label, signer) in enumerate(HASHES.items()):
        own = [row[number][0] for row in hashed]
        left, right = _pairs_by_hashes(signer, own, own)
        quality[label] = {"wrong pairs": float((left < right).sum())}
    title = f"{count:,} smooth, framed and logo-on-plain pictures: wrong pairs"
    nothing: dict[str, Any] = dict.fromkeys(quality)
    result = QualityResult(name, title, [], [], count, nothing, nothing, quality)
    wrong = quality["normal"]["wrong pairs"]
    return replace(result, verdicts=[at_most("I6. dedup: wrong pairs", wrong, 0, "", 0)])
