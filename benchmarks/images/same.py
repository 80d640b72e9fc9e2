"""What `dedup` finds: pictures changed as people change them, and pictures with little in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from PIL import Image

from benchmarks.images.found import FOUND, opened
from benchmarks.images.plain import plain_picture
from benchmarks.images.scenes import CHANGES, EDITS
from benchmarks.quality import Quality, QualityResult, at_least, at_most
from lookalike.images.details import MOST_POINTS
from lookalike.images.image_hash import HashedImage
from lookalike.images.medium import ImageMedium
from lookalike.media import Read

__all__ = ["run_same"]

PLAIN = 10_000
LONGEST = 480
THREADS = 2
THRESHOLDS = ("strict", "normal", "loose")
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
    title = f"{count} photographs and what was made of each: recall of `dedup` by threshold"
    nothing: dict[str, Any] = dict.fromkeys(THRESHOLDS)
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
    title = f"{count:,} smooth, framed and logo-on-plain pictures: wrong pairs"
    nothing: dict[str, Any] = dict.fromkeys(quality)
    result = QualityResult(name, title, [], [], count, nothing, nothing, quality)
    wrong = quality["normal"]["wrong pairs"]
    return replace(result, verdicts=[at_most("I6. dedup: wrong pairs", wrong, 0, "", 0)])
