"""The medium "images": those with near perceptual hashes are similar."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import flag, one_of, whole_number
from lookalike.errors import DocumentError
from lookalike.images.decode import SUFFIXES, TURNS, is_image, is_one_image
from lookalike.images.details import MOST_POINTS, THUMBNAIL, Points, turned_thumbnails
from lookalike.images.image_hash import HashedImage, ImageHash
from lookalike.images.kept import kept_of_images
from lookalike.images.same import RULES, PointIndex, same_in_place, shapes_of
from lookalike.images.signed import most_differing, pairs_by_hashes, signer_of
from lookalike.images.thumbnails import image_tag, small_jpeg_of
from lookalike.images.workers import LEAST_MEMORY
from lookalike.indexes import SliceIndex
from lookalike.media import (
    PREVIEW_BYTES,
    PREVIEW_SIDE,
    Medium,
    Problem,
    Read,
    SignedFile,
    SignedFiles,
    SignedItems,
    SimilarPairs,
    Tell,
    memory_for_decoders,
    picture_address,
    read_each,
    readable,
    split_problems,
)
from lookalike.signatures import estimated_similarity
from lookalike.storage.file_cache import FileCache, Kept

_THUMBNAIL = 240
_ORIENTATIONS = 8
_BYTES_A_FILE = 16 << 10  # of its hash, gray copy and points, also in an index


@dataclass(frozen=True, eq=False)
class HashedImages:
    """The hashes of images."""

    signatures: NDArray[np.uint8]  # `[images, orientations, bytes]`, upright first
    clear: NDArray[np.bool_]  # whether each hash has enough clear bits
    thumbnails: NDArray[np.uint8]  # `[images, 64, 64]`, gray and upright
    points: Sequence[Sequence[Points]]  # of each image, in each orientation

    def turned(self, number: int) -> NDArray[np.uint8]:
        """Return the thumbnails in an orientation by its number."""
        return turned_thumbnails(self.thumbnails, list(TURNS)[number])


class ImageMedium(Medium[HashedImages]):
    """Images that show the same; the one with the most pixels is kept.

    Hashes that differ in at most `radius` bits propose pairs of whole images, and votes of points
    pairs of which one is a part of the other; gray values decide. `threshold` is "strict", "normal"
    or "loose". With `rotated`, copies that were rotated by quarter turns or mirrored are found,
    too. An image of (nearly) one color is similar only to equal files.
    """

    name: ClassVar[str] = "images"
    noun: ClassVar[str] = "image"
    no_features: ClassVar[str] = "of (nearly) one color: only equal files are similar"
    signer: ImageHash
    suffixes: ClassVar[frozenset[str]] = SUFFIXES
    facts: ClassVar[dict[str, str]] = {
        "width": "int64",
        "height": "int64",
        "format": "string",
        "quality": "int64",
    }

    def __init__(
        self,
        bits: SupportsIndex | None = None,
        radius: SupportsIndex | None = None,
        hash: str = "dct",
        rotated: bool = False,
        threshold: str | None = None,
    ) -> None:
        self.signer = ImageHash(256 if bits is None else bits, hash)
        self.threshold = one_of("threshold", "normal" if threshold is None else threshold, RULES)
        self.rule = RULES[self.threshold]
        radius = round(self.rule.radius * self.signer.radius) if radius is None else radius
        self.radius = whole_number("radius", radius, at_least=0, at_most=self.signer.bits)
        self.rotated = flag("rotated", rotated)

    @classmethod
    def recognizes(cls, head: bytes) -> bool:
        return is_image(head)

    @classmethod
    def sign_options(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        signer = ImageHash(given.get("bits"), given.get("hash", "dct"))
        return {**given, "bits": signer.bits}

    @classmethod
    def is_one(cls, value: object) -> bool:
        return is_one_image(value)

    @classmethod
    def sign_each(
        cls, signer: ImageHash, files: Sequence[str], *, threads: int
    ) -> Iterator[NDArray[np.uint8] | DocumentError]:
        for found in signer.each(files, threads=threads):
            yield found if isinstance(found, DocumentError) else found.signatures[0]

    @classmethod
    def sign_file(
        cls, signer: ImageHash, file: Path | bytes, *, preview: bool, query: bool = False
    ) -> SignedFile:
        (found,) = signer.each([file])
        hashed = readable(found)
        shown: dict[str, Any] = {}
        if preview:
            shown = {"format": hashed.format, "width": hashed.width, "height": hashed.height}
            if jpeg := small_jpeg_of(file, PREVIEW_SIDE, PREVIEW_BYTES):
                shown["picture"] = picture_address(jpeg)
        return SignedFile(hashed.signatures[0], shown)

    @classmethod
    def sign_files(
        cls,
        signer: ImageHash,
        files: Sequence[Path],
        *,
        threads: int,
        tell: Tell,
        cache: FileCache | None = None,
    ) -> SignedFiles:
        read = partial(signer.each, threads=threads)
        each = read_each(files, read, cache, partial(kept_of_images, signer, 1, None))
        good, hashed, problems = split_problems(files, each, tell)
        rows = np.array([one.signatures[0] for one in hashed], np.uint8)
        quality = [one.quality for one in hashed]
        clear = np.array(quality, np.int64) >= signer.least_quality
        rows = rows.reshape(len(good), signer.bits // 8)
        return SignedFiles(good, rows, clear, problems, quality)

    def settings(self) -> dict[str, Any]:
        return {
            "bits": self.signer.bits,
            "hash": self.signer.kind,
            "radius": self.radius,
            "rotated": self.rotated,
            "threshold": self.threshold,
        }

    def criterion(self) -> str:
        turned = " in any orientation" if self.rotated else ""
        part = ", or one a part of the other" if self.rule.part else ""
        return f"the same picture{turned}{part} (threshold {self.threshold})"

    def read(
        self,
        files: Sequence[Path],
        *,
        threads: int,
        tell: Tell,
        memory: int | None = None,
        cache: FileCache | None = None,
    ) -> Read[HashedImages]:
        orientations, points = self._wanted
        room = memory_for_decoders(memory, len(files), LEAST_MEMORY, orientations * _BYTES_A_FILE)
        read = partial(
            self.signer.each,
            orientations=orientations,
            points=points,
            threads=threads,
            memory=room,
        )
        each = read_each(files, read, cache, self._kept)
        return self.collected(*split_problems(files, each, tell))

    @property
    def _wanted(self) -> tuple[int, int]:
        """How many orientations and points of an image are compared."""
        return _ORIENTATIONS if self.rotated else 1, MOST_POINTS if self.rule.part else 0

    def _kept(self) -> Kept[HashedImage]:
        return kept_of_images(self.signer, *self._wanted)

    def made_by(self) -> Sequence[Any]:
        return self._kept().made_by

    def collected(
        self, files: Sequence[Path], hashed: Sequence[HashedImage], problems: list[Problem]
    ) -> Read[HashedImages]:
        """Return what was read of files that could be read, each with its details."""
        rows = np.array([one.signatures for one in hashed], np.uint8)
        details = [one.details for one in hashed if one.details is not None]
        clear = np.array([one.quality >= self.signer.least_quality for one in hashed], bool)
        return Read(
            files=files,
            merit=np.array([one.width * one.height for one in hashed], np.int64),
            facts={name: [getattr(one, name) for one in hashed] for name in self.facts},
            described=[f"{one.width} × {one.height}, {one.format}" for one in hashed],
            content=HashedImages(
                rows.reshape(len(hashed), -1, self.signer.bits // 8)
                if hashed
                else np.empty((0, 1, self.signer.bits // 8), np.uint8),
                clear,
                np.array([one.thumbnail for one in details], np.uint8).reshape(
                    len(details), THUMBNAIL, THUMBNAIL
                ),
                [one.points for one in details],
            ),
            problems=problems,
            without_features=~clear,
        )

    def pairs(self, read: Read[HashedImages], *, threads: int, tell: Tell) -> SimilarPairs:
        whole = self._whole(read, threads)
        if not self.rule.part:
            return whole
        parts = self._parts(read, threads, tell)
        left = np.concatenate([whole.left, parts.left])
        right = np.concatenate([whole.right, parts.right])
        similarity = np.concatenate([whole.similarity, parts.similarity])
        distance = np.concatenate([whole.distance, parts.distance])
        # Of a pair that both have found, the distance is kept.
        order = _first_of_each(left, right, distance < 0, -similarity)
        return SimilarPairs(left[order], right[order], similarity[order], distance[order])

    def _whole(self, read: Read[HashedImages], threads: int) -> SimilarPairs:
        """Return pairs of whole images that are the same: hashes propose, gray values decide."""
        content, shapes = read.content, shapes_of(_sizes(read))
        rows = np.flatnonzero(content.clear)
        signatures = content.signatures[rows]
        index = SliceIndex(np.ascontiguousarray(signatures[:, 0]), ids=rows, threads=threads)
        found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]] = []
        for number in range(signatures.shape[1]):
            if number == 0:
                upright = index.pairs(self.radius, threads=threads)
                left, right, distance = upright.left, upright.right, upright.distances
            else:
                matches = index.within(
                    np.ascontiguousarray(signatures[:, number]), self.radius, threads=threads
                )
                left, right = np.repeat(rows, np.diff(matches.offsets)), matches.ids
                others = left != right
                left, right, distance = left[others], right[others], matches.distances[others]
            swapped = TURNS[list(TURNS)[number]][0]
            wider = shapes[right] / (1 / shapes if swapped else shapes)[left]
            same = same_in_place(
                content.turned(number),
                content.thumbnails,
                left,
                right,
                wider,
                self.rule,
                threads=threads,
            )
            one, two = left[same], right[same]
            found.append((np.minimum(one, two), np.maximum(one, two), distance[same]))
        left, right, distance = (np.concatenate(each) for each in zip(*found, strict=True))
        order = _first_of_each(left, right, distance)
        left, right, distance = left[order], right[order], distance[order]
        similarity = estimated_similarity(self.signer, distance, self.signer.bits)
        return SimilarPairs(left, right, similarity, distance)

    def _parts(self, read: Read[HashedImages], threads: int, tell: Tell) -> SimilarPairs:
        """Return pairs of which one shows a part of the other: points vote, gray values decide."""
        content = read.content
        sizes = _sizes(read)
        upright = [points[0] for points in content.points]
        index = PointIndex(upright, sizes)
        found: list[tuple[NDArray[Any], ...]] = []
        turns = list(TURNS)[: content.signatures.shape[1]]
        for number, turn in enumerate(turns):
            swapped = TURNS[turn][0]
            proposed = index.propose(
                [points[number] for points in content.points] if number else upright,
                [size[::-1] for size in sizes] if swapped else sizes,
                threads=threads,
                tell=partial(_tell_part, tell, number, len(turns)),
            )
            shared = proposed.shared(
                content.turned(number), content.thumbnails, self.rule, threads=threads
            )
            same = shared > 0
            left, right, shared = proposed.left[same], proposed.right[same], shared[same]
            found.append((np.minimum(left, right), np.maximum(left, right), shared))
        left, right, shared = (np.concatenate(each) for each in zip(*found, strict=True))
        order = _first_of_each(left, right, -shared)
        distance = np.full(len(order), -1, np.int32)
        return SimilarPairs(left[order], right[order], shared[order], distance)

    def signed_pairs(
        self,
        read: Read[HashedImages],
        signed: SignedItems,
        *,
        threads: int,
        memory: int | None = None,
        cache: FileCache | None = None,
    ) -> SimilarPairs:
        signer, content = signer_of(signed, self.signer), read.content
        hashes = content.signatures
        quality = np.array(read.facts["quality"], np.int64)
        if signer != self.signer:
            turns = hashes.shape[1]
            room = memory_for_decoders(memory, len(read.files), LEAST_MEMORY)
            each = read_each(
                read.files,
                partial(signer.each, orientations=turns, threads=threads, memory=room),
                cache,
                partial(kept_of_images, signer, turns, None),
            )
            hashes = np.zeros((len(read.files), turns, signer.bits // 8), np.uint8)
            quality = np.full(len(read.files), -1, np.int64)
            for row, one in enumerate(each):
                if not isinstance(one, DocumentError):  # a file may be gone since
                    hashes[row], quality[row] = one.signatures, one.quality
        most = most_differing(signer, quality)
        left, right, distance = pairs_by_hashes(signed.signatures, hashes, most, threads=threads)
        order = _first_of_each(left, right, distance)
        left, right, distance = left[order], right[order], distance[order]
        return SimilarPairs(
            left, right, estimated_similarity(signer, distance, signer.bits), distance
        )

    def signed_criterion(self) -> str:
        return "hashes that differ in few bits, for as many as are clear"

    def describe_pair(self, similarity: float, distance: int) -> str:
        if distance < 0:
            return f"{similarity:.0%} of the larger one is the same"
        return f"{distance} of {self.signer.bits} bits {'differs' if distance == 1 else 'differ'}"

    def preview(self, file: Path, most: int, *, memory: int | None = None) -> str | None:
        return image_tag(file, _THUMBNAIL, most, memory=memory_for_decoders(memory, 0, 0))


def _sizes(read: Read[HashedImages]) -> list[tuple[int, int]]:
    return list(zip(read.facts["width"], read.facts["height"], strict=True))


def _tell_part(tell: Tell, number: int, count: int, share: float) -> None:
    tell((number + share) / count)


def _first_of_each(
    left: NDArray[np.int64], right: NDArray[np.int64], *keys: NDArray[Any]
) -> NDArray[np.int64]:
    """Return the positions of each pair once, sorted by pair: the one with the least keys."""
    order = np.lexsort((*keys[::-1], right, left))
    left, right = left[order], right[order]
    first = np.ones(len(left), bool)
    first[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    return order[first]
