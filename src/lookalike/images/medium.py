"""The medium "images": those with near perceptual hashes are similar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import flag, whole_number
from lookalike.errors import DocumentError
from lookalike.images.decode import SUFFIXES, is_image, is_one_image
from lookalike.images.image_hash import LEAST_QUALITY, ImageHash
from lookalike.images.thumbnails import image_tag
from lookalike.images.workers import LEAST_MEMORY
from lookalike.indexes import SliceIndex
from lookalike.media import (
    Medium,
    Read,
    SignedFiles,
    SimilarPairs,
    Tell,
    memory_for_decoders,
    split_problems,
)
from lookalike.signatures import estimated_similarity

_THUMBNAIL = 240
_ORIENTATIONS = 8


@dataclass(frozen=True, eq=False)
class HashedImages:
    """The hashes of images."""

    signatures: NDArray[np.uint8]  # `[images, orientations, bytes]`, upright first
    clear: NDArray[np.bool_]  # whether each hash has enough clear bits


class ImageMedium(Medium[HashedImages]):
    """Images whose hashes differ in at most `radius` bits; the one with the most pixels is kept.

    With `rotated`, copies that were rotated by quarter turns or mirrored are found, too. An image
    of (nearly) one color is similar only to equal files.
    """

    name: ClassVar[str] = "images"
    noun: ClassVar[str] = "image"
    no_features: ClassVar[str] = "of (nearly) one color: only equal files are similar"
    sign_defaults: ClassVar[dict[str, Any]] = {"bits": 64}
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
    ) -> None:
        self.signer = ImageHash(256 if bits is None else bits, hash)
        radius = self.signer.radius if radius is None else radius
        self.radius = whole_number("radius", radius, at_least=0, at_most=self.signer.bits)
        self.rotated = flag("rotated", rotated)

    @classmethod
    def recognizes(cls, head: bytes) -> bool:
        return is_image(head)

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
    def sign_files(
        cls, signer: ImageHash, files: Sequence[Path], *, threads: int, tell: Tell
    ) -> SignedFiles:
        read = cls(signer.bits, hash=signer.kind).read(files, threads=threads, tell=tell)
        upright = np.ascontiguousarray(read.content.signatures[:, 0])
        return SignedFiles(read.files, upright, read.content.clear, read.problems)

    def settings(self) -> dict[str, Any]:
        return {
            "bits": self.signer.bits,
            "hash": self.signer.kind,
            "radius": self.radius,
            "rotated": self.rotated,
        }

    def criterion(self) -> str:
        turned = " in any orientation" if self.rotated else ""
        return f"at most {self.radius} of {self.signer.bits} bits of a hash differ{turned}"

    def read(
        self, files: Sequence[Path], *, threads: int, tell: Tell, memory: int | None = None
    ) -> Read[HashedImages]:
        orientations = _ORIENTATIONS if self.rotated else 1
        room = memory_for_decoders(memory, len(files), LEAST_MEMORY)
        each = self.signer.each(files, orientations=orientations, threads=threads, memory=room)
        good, hashed, problems = split_problems(files, each, tell)
        rows = np.array([one.signatures for one in hashed], np.uint8)
        clear = np.array([one.quality >= LEAST_QUALITY for one in hashed], bool)
        return Read(
            files=good,
            merit=np.array([one.width * one.height for one in hashed], np.int64),
            facts={name: [getattr(one, name) for one in hashed] for name in self.facts},
            described=[f"{one.width} × {one.height}, {one.format}" for one in hashed],
            content=HashedImages(
                rows.reshape(len(hashed), orientations, self.signer.bits // 8), clear
            ),
            problems=problems,
            without_features=int((~clear).sum()),
        )

    def pairs(self, read: Read[HashedImages], *, threads: int, tell: Tell) -> SimilarPairs:
        rows = np.flatnonzero(read.content.clear)
        signatures = read.content.signatures[rows]
        index = SliceIndex(np.ascontiguousarray(signatures[:, 0]), ids=rows, threads=threads)
        upright = index.pairs(self.radius, threads=threads)
        left, right, distance = [upright.left], [upright.right], [upright.distances]
        for turn in range(1, signatures.shape[1]):
            matches = index.within(
                np.ascontiguousarray(signatures[:, turn]), self.radius, threads=threads
            )
            turned = np.repeat(rows, np.diff(matches.offsets))
            others = matches.ids != turned
            left.append(np.minimum(turned, matches.ids)[others])
            right.append(np.maximum(turned, matches.ids)[others])
            distance.append(matches.distances[others])
            tell(turn / (signatures.shape[1] - 1))
        return self._nearest(np.concatenate(left), np.concatenate(right), np.concatenate(distance))

    def _nearest(
        self, left: NDArray[np.int64], right: NDArray[np.int64], distance: NDArray[np.int32]
    ) -> SimilarPairs:
        """Return each pair once, at its least distance."""
        order = np.lexsort((distance, right, left))
        left, right, distance = left[order], right[order], distance[order]
        first = np.ones(len(left), bool)
        first[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
        similarity = estimated_similarity(self.signer, distance[first], self.signer.bits)
        return SimilarPairs(left[first], right[first], similarity, distance[first])

    def describe_pair(self, similarity: float, distance: int) -> str:
        return f"{distance} of {self.signer.bits} bits {'differs' if distance == 1 else 'differ'}"

    def preview(self, file: Path, most: int, *, memory: int | None = None) -> str | None:
        return image_tag(file, _THUMBNAIL, most, memory=memory_for_decoders(memory, 0, 0))
