"""Sketches: vectors as bytes, in groups around centers, that propose candidates.

A sketch has one byte per dimension, so that products of sketches tell the cosine to about two
digits. Groups are those of k-means by cosine, on sketches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import CorruptIndexError
from lookalike.indexes.clusters.groups import group_count
from lookalike.signatures.random import random_words
from lookalike.storage.container import Container

MOST_DIMENSIONS = 1 << 17  # sums of products are 32 bits wide
_ROWS, _STEP = 16, 4  # sketches of a block, and values of each that lie together
_PER_CENTER, _ROUNDS = 40, 6
_LEAST_ADDED, _ADDED_SHARE = 2048, 64  # rows without sketch that are compared one by one


def planned_groups(count: int, groups: int | None) -> int:
    """Return the number of groups of `count` vectors, if `groups` were requested."""
    return max(1, min(count, group_count(count) if groups is None else groups))


@dataclass(frozen=True, eq=False)
class Codes:
    """Sketches one after the other: `codes * scales` is a vector of about length 1."""

    codes: NDArray[np.uint8]  # 128 more than the value
    scales: NDArray[np.float32]
    error: float  # largest distance from the vector of length 1

    @classmethod
    def of(
        cls, vectors: _native.Vectors, shape: tuple[int, int], first: int, threads: int
    ) -> Codes:
        """Return the sketches of vectors of this shape, from a position on."""
        count, dimensions = shape[0] - first, shape[1]
        codes = np.empty((count, -(-dimensions // _STEP) * _STEP), np.uint8)
        scales = np.empty(count, np.float32)
        return cls(codes, scales, vectors.sketch(first, threads, codes, scales))

    def take(self, places: NDArray[np.int64]) -> Codes:
        """Return some of them."""
        return Codes(self.codes[places], self.scales[places], self.error)

    def blocks(self) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return blocks of 16 sketches, four values of each at a time, and their scales."""
        count, width = self.codes.shape
        missing = -count % _ROWS
        codes = np.concatenate([self.codes, np.full((missing, width), 128, np.uint8)])
        blocks = codes.reshape(-1, _ROWS, width // _STEP, _STEP).transpose(0, 2, 1, 3)
        scales = np.concatenate([self.scales, np.zeros(missing, np.float32)])
        return np.ascontiguousarray(blocks), scales


@dataclass(frozen=True, eq=False)
class Sketches:
    """Sketches of the first vectors of a store, in the order of their groups; immutable."""

    blocks: NDArray[np.uint8]
    scales: NDArray[np.float32]
    places: NDArray[np.uint32]  # position of the vector of each sketch
    offsets: NDArray[np.int64]  # start of each group, and the end of the last
    centers: NDArray[np.uint8]
    center_scales: NDArray[np.float32]
    error: float

    @classmethod
    def build(
        cls,
        vectors: _native.Vectors,
        shape: tuple[int, int],
        groups: int | None,
        seed: int,
        threads: int,
    ) -> Sketches:
        """Return the sketches of vectors of this shape, in groups."""
        codes = Codes.of(vectors, shape, 0, threads)
        number = planned_groups(shape[0], groups)
        centers = _trained(codes, shape[1], number, seed, threads)
        return cls._arranged(codes, centers, _nearest(codes.codes, centers, threads)[0])

    @classmethod
    def _arranged(cls, codes: Codes, centers: Codes, labels: NDArray[np.int64]) -> Sketches:
        order = np.argsort(labels, kind="stable")
        offsets = np.zeros(len(centers.codes) + 1, np.int64)
        np.cumsum(np.bincount(labels, minlength=len(centers.codes)), out=offsets[1:])
        parts = codes.take(order).blocks()
        return cls(*parts, order.astype(np.uint32), offsets, *centers.blocks(), codes.error)

    def extended(
        self, vectors: _native.Vectors, shape: tuple[int, int], threads: int
    ) -> Sketches | None:
        """Return sketches of the vectors that were added, too, if these are many.

        None: there are so many that new groups are needed.
        """
        added = shape[0] - len(self)
        if added <= max(_LEAST_ADDED, len(self) // _ADDED_SHARE):
            return self
        if 2 * self.groups < group_count(shape[0]):
            return None
        new = Codes.of(vectors, shape, len(self), threads)
        centers = Codes(*_rows(self.centers, self.center_scales, self.groups), 0.0)
        mine, scales = _rows(self.blocks, self.scales, len(self))
        order = np.argsort(self.places)
        known = np.repeat(np.arange(self.groups), np.diff(self.offsets))[order]
        both = Codes(
            np.concatenate([mine[order], new.codes]),
            np.concatenate([scales[order], new.scales]),
            max(self.error, new.error),
        )
        labels = _nearest(new.codes, centers, threads)[0]
        return self._arranged(both, centers, np.concatenate([known, labels]))

    def __len__(self) -> int:
        return len(self.places)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return sum(array.nbytes for array in self._fields().values())

    @cached_property
    def native(self) -> _native.Sketches:
        """The sketches for the core."""
        return _native.Sketches(**self._fields(), error=self.error)

    def __deepcopy__(self, memo: dict[int, Any]) -> Sketches:
        """Return the sketches with their own arrays in memory."""
        own: dict[str, Any] = {name: np.array(value) for name, value in self._fields().items()}
        return replace(self, **own)

    def _fields(self) -> dict[str, NDArray[Any]]:
        names = ("blocks", "scales", "places", "offsets", "centers", "center_scales")
        return {name: getattr(self, name) for name in names}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to save, by name."""
        return {
            "sketches": self.blocks.reshape(len(self.blocks), -1),
            "sketch_scales": self.scales,
            "sketch_places": self.places,
            "sketch_offsets": self.offsets,
            "centers": self.centers.reshape(len(self.centers), -1),
            "center_scales": self.center_scales,
        }

    @classmethod
    def restored(cls, container: Container, error: float, shape: tuple[int, int]) -> Sketches:
        """Return what `arrays` saved for vectors of this shape, memory-mapped."""
        blocks, centers = (container.array(name, np.uint8, 2) for name in ("sketches", "centers"))
        scales, others = (
            container.array(name, np.float32, 1) for name in ("sketch_scales", "center_scales")
        )
        places = container.array("sketch_places", np.uint32, 1)
        offsets = container.array("sketch_offsets", np.int64, 1)
        steps = -(-shape[1] // _STEP)
        fits = (
            len(offsets) > 0
            and 0 < len(places) <= shape[0]
            and 0 <= error < 1
            and blocks.shape == (-(-len(places) // _ROWS), steps * _STEP * _ROWS)
            and centers.shape == (-(-(len(offsets) - 1) // _ROWS), steps * _STEP * _ROWS)
            and len(scales) == len(blocks) * _ROWS
            and len(others) == len(centers) * _ROWS
            and int(offsets[0]) == 0
            and int(offsets[-1]) == len(places)
            and bool((offsets[1:] >= offsets[:-1]).all())
            and int(places.max()) < len(places)
        )
        if not fits:
            raise CorruptIndexError(
                f"{container.path} holds {shape[0]} vectors, and sketches that do not fit them; "
                "it is damaged"
            )
        deep = (-1, steps, _ROWS, _STEP)
        return cls(
            blocks.reshape(deep), scales, places, offsets, centers.reshape(deep), others, error
        )


def _rows(
    blocks: NDArray[np.uint8], scales: NDArray[np.float32], count: int
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return sketches one after the other, and their scales."""
    rows = blocks.transpose(0, 2, 1, 3).reshape(len(scales), -1)
    return rows[:count], scales[:count]


def _nearest(
    codes: NDArray[np.uint8], centers: Codes, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the center with the largest cosine for each sketch, and their product."""
    labels, products = np.empty(len(codes), np.int64), np.empty(len(codes), np.float32)
    blocks, scales = centers.blocks()
    _native.nearest_sketches(blocks, scales, codes, len(centers.codes), threads, labels, products)
    return labels, products


def _trained(codes: Codes, dimensions: int, count: int, seed: int, threads: int) -> Codes:
    """Return centers: k-means by cosine on a sample; the first ones are rows of it."""
    keys = np.argsort(random_words(seed, len(codes.codes)), kind="stable")
    sample = codes.take(np.sort(keys[: _PER_CENTER * count]))
    centers = codes.take(keys[:count])
    for _ in range(_ROUNDS):
        labels, products = _nearest(sample.codes, centers, threads)
        order = np.argsort(labels, kind="stable")
        used, starts = np.unique(labels[order], return_index=True)
        values = (sample.codes[order].astype(np.float32) - 128) * sample.scales[order, None]
        sums = np.add.reduceat(values.astype(np.float64), starts, axis=0)
        means = np.zeros((count, dimensions), np.float32)
        means[used] = sums[:, :dimensions]
        native = _native.Vectors(means, means[:0], None)
        moved = Codes.of(native, means.shape, 0, threads)
        # A center without rows moves to one of those that are farthest from their centers.
        empty = np.setdiff1d(np.arange(count), used)
        far = np.argsort(products * sample.scales, kind="stable")[: len(empty)]
        moved.codes[empty[: len(far)]] = sample.codes[far]
        moved.scales[empty[: len(far)]] = sample.scales[far]
        centers = moved
    return centers
