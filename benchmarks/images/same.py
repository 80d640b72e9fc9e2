"""What `dedup` finds: pictures changed as people change them, and pictures with little in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import lookalike as la
from benchmarks.images.found import FOUND, opened
from benchmarks.images.pages import PAGES, page
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
MANY = (1000, 3000, 10_000)
COPIES = 100  # of many pictures that have a copy
COPY = "crop to 70%, half the size, JPEG 75"
PIECE, GRID = 224, (8, 12)  # pixels of a piece of a photograph, and rows and columns of pieces
FIRST = 5_000_000
"""The number of the first plain picture; limits were chosen on others, below."""
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
    if name == "images-many":
        yield _many(name, [count // part for count in MANY])
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


def _kinds(count: int, make: Callable[[int], Picture]) -> list[Callable[[], Picture]]:
    return [partial(make, FIRST + number) for number in range(count)]


def _pieces(path: Path) -> list[list[HashedImage]]:
    """Return what `dedup` reads of pieces of a photograph that do not overlap, and of a copy."""
    rows, columns = GRID
    whole = opened(path, PIECE * max(GRID))
    found = []
    for row in range(min(rows, whole.height // PIECE)):
        for column in range(min(columns, whole.width // PIECE)):
            left, top = column * PIECE, row * PIECE
            piece = whole.crop((left, top, left + PIECE, top + PIECE))
            found.append(_hashed([COPY], lambda piece=piece: piece))  # type: ignore[misc]
    return found


def _many(name: str, counts: Sequence[int]) -> QualityResult:
    most = counts[-1]
    with ProcessPoolExecutor(THREADS) as pool:
        each = pool.map(_pieces, FOUND["photographs"](), chunksize=1)
        pieces = [row for rows in each for row in rows]
        makers = [*_kinds(most - most // 2, plain_picture), *_kinds(most // 2, page)]
        plain = list(pool.map(partial(_hashed, []), makers, chunksize=64))
    # In an order that mixes photographs, and does not depend on how many are taken.
    rng = np.random.default_rng(5)
    quality: dict[str, Quality] = {}
    medium = ImageMedium()
    for label, rows in (("pieces of photographs", pieces), ("plain pictures", plain)):
        mixed = [rows[place] for place in rng.permutation(len(rows))]
        for count in counts:
            some = mixed[:count]
            copies = [row[1] for row in some[:COPIES] if len(row) > 1]
            read = _read(medium, [*(row[0] for row in some), *copies])
            begin = process_time()
            found = medium.pairs(read, threads=1, tell=lambda share: None)
            seconds = process_time() - begin
            pairs = set(zip(found.left.tolist(), found.right.tolist(), strict=True))
            right = sum((place, len(some) + place) in pairs for place in range(len(copies)))
            quality[f"{len(some):,} {label}"] = {
                "processor s": seconds,
                "ms a picture": 1000 * seconds / max(1, len(some)),
                "other pairs": float(len(pairs) - right),
                **({"copies found": right / len(copies)} if copies else {}),
            }
    title = "Finding pairs among many pictures, with one thread; reading them is not counted"
    nothing: dict[str, Any] = dict.fromkeys(quality)
    result = QualityResult(name, title, [], [], most, nothing, nothing, quality)
    slowest = max(one["ms a picture"] for one in quality.values())
    gate = f"I7. dedup: ms a picture to find pairs among {most:,}, the most"
    return replace(result, verdicts=[at_most(gate, slowest, 20, "ms", 1)])


def _plain(name: str, count: int) -> QualityResult:
    with ProcessPoolExecutor(THREADS) as pool:
        makers = [*_kinds(count // 2, plain_picture), *_kinds(count - count // 2, page)]
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
    title = (
        f"{count:,} pictures with little in them: wrong pairs; half are smooth, framed or logos, "
        f"half {', '.join(PAGES)}"
    )
    nothing: dict[str, Any] = dict.fromkeys(quality)
    result = QualityResult(name, title, [], [], count, nothing, nothing, quality)
    wrong = quality["normal"]["wrong pairs"]
    return replace(result, verdicts=[at_most("I6. dedup: wrong pairs", wrong, 0, "", 0)])
