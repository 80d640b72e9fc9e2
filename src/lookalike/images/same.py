"""Which pairs of images show the same: hashes and points propose, gray values decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.images.details import DOUBLING, UNIT, WORD_BITS, Points, parts_of
from lookalike.media import Tell
from lookalike.parts.index import PartIndex

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """When two images are the same."""

    windows: float  # share of windows with detail that must agree
    covered: float  # the same with much evidence: words may cover the others
    part: bool  # whether a part of an image may be the same as the other one
    larger: float = 1.0  # least share of the larger image that the other one shows, by area
    smaller: float = 1.0  # least share of the smaller image that the other one shows
    radius: float = 1.0  # factor of the usual radius of hashes

    def accepts(self, found: Floats, placements: Floats, wider: Floats) -> NDArray[np.bool_]:
        """Return which pairs are the same, by what `agreements` found at these placements.

        `wider` has how many times as wide the right image is as the left one, for its height.
        """
        correlation, windows, agreeing, inside, evidence, slow, details, difference = found.T[:-2]
        moved = np.abs(placements - _WHOLE).max(axis=1)
        # Different images in the same frame agree in place, but hardly ever elsewhere.
        least = np.where(moved > _FAR, _FAR_EVIDENCE, _EVIDENCE)
        least = np.where(moved > _FARTHER, _FARTHER_EVIDENCE, least)
        # If nothing covers a part of a copy, all of its detail agrees. In a frame, a line of words
        # does not, which is little beside the frame; so there is more evidence than that.
        whole = agreeing >= _NEARLY_ALL * windows
        stretched = np.abs(np.log(wider * placements[:, 0] / placements[:, 2])) > _STRETCHED
        least = np.where(
            whole & (moved <= _FAR) & (details < _MANY_DETAILS), _WHOLE_EVIDENCE, least
        )
        least = np.where(stretched, _MUCH_EVIDENCE, least)
        same = (inside >= _CORRELATION) & (evidence >= least)
        # A caption changes many gray values, but not the details of the rest.
        same |= (inside >= _LEAST_CORRELATION) & (evidence >= _MUCH_EVIDENCE)
        # Edges, symbols and words agree with those of other images, if these are moved until they
        # do. Fine detail in many places does not; nor does what is below it, if words cover it all.
        same &= (details >= _LEAST_DETAILS) & (slow >= _SLOW_EVIDENCE)
        # Plain and smooth images have little to compare: all of it has to be the same.
        little = (correlation >= _PLAIN_CORRELATION) & (evidence >= _PLAIN_EVIDENCE)
        little &= whole & (difference <= _NOISE) & (moved == 0) & ~stretched
        first, second = found.T[-2:]
        shown = (np.minimum(first, second) >= self.larger - _ROUNDING) & (
            np.maximum(first, second) >= self.smaller - _ROUNDING
        )
        share = np.where(evidence >= _MUCH_EVIDENCE, self.covered, self.windows)
        accepted: NDArray[np.bool_] = (same | little) & (agreeing >= share * windows) & shown
        return accepted


RULES: Mapping[str, Rule] = {
    "strict": Rule(windows=0.9, covered=0.9, part=False, larger=0.9, smaller=0.9, radius=0.75),
    "normal": Rule(windows=0.75, covered=0.6, part=True, larger=0.3, smaller=0.75),
    "loose": Rule(windows=0.6, covered=0.5, part=True, larger=0.12, smaller=0.6),
}
"""By threshold. docs/images.md has what each finds."""

# Chosen on other photographs than those of docs/images.md, and on other plain pictures than those
# of its benchmark. Evidence is in bits.
_EVIDENCE, _WHOLE_EVIDENCE, _MUCH_EVIDENCE = 550, 800, 900
_FAR_EVIDENCE, _FARTHER_EVIDENCE = 500, 450
_FAR, _FARTHER = 0.012, 0.06  # shares of the width or height
_STRETCHED = float(np.log(1.15))  # in one direction, more than in the other
_SLOW_EVIDENCE = 46
_LEAST_DETAILS, _MANY_DETAILS = 60, 170  # of 225 windows
_CORRELATION, _LEAST_CORRELATION = 0.8, 0.5  # in windows that agree
_PLAIN_CORRELATION, _PLAIN_EVIDENCE = 0.9965, 56
_NOISE = 14.0  # mean square of differences of slow changes: an eighth of a gray level
_NEARLY_ALL = 0.97  # share of windows that agree
_ROUNDING = 1e-9
_WHOLE = np.array([1.0, 0.0, 1.0, 0.0])  # the placement of an image in place
_SAME_PLACE = 0.06  # how far from that points may have it
_WORTH_REFINING = 0.5  # correlation of images in place, and share of windows that agree
_AGREEMENT = 10  # values of an agreement
_RADIUS = 2  # bits in which words of the same point may differ
_TOLERANCE = DOUBLING // 3  # of how much larger one image is, by its points
_LEAST_VOTES = 2
_MOST_SIMILAR = 100  # images that the points of one propose, those with rare words first
_MOST_NEAR = 1 << 14
"""Points of all images that those of one may be near, together. Common points come last: frames of
the same kind have the same corners, and tell nothing about what is in them. So the time grows with
the number of images."""
_NEAR = 8 * UNIT  # how far from its place a point may be
_SPREAD = 20 * UNIT  # distance of points that tell how much larger one image is
_TOGETHER = 64  # images that are searched at a time
_COMPARED = 1 << 16  # pairs that are compared at a time


def agreements(
    first: NDArray[np.uint8],
    second: NDArray[np.uint8],
    left: Ints,
    right: Ints,
    placements: Floats,
    *,
    refine: bool,
    threads: int,
) -> Floats:
    """Return how well pairs of thumbnails agree; with `refine`, change placements to the best."""
    found = np.zeros((len(left), _AGREEMENT))
    arrays = np.ascontiguousarray(left, np.int64), np.ascontiguousarray(right, np.int64)
    _native.compare_images(first, second, *arrays, refine, threads, placements, found)
    return found


def same_in_place(
    first: NDArray[np.uint8],
    second: NDArray[np.uint8],
    left: Ints,
    right: Ints,
    wider: Floats,
    rule: Rule,
    *,
    threads: int,
) -> NDArray[np.bool_]:
    """Return whether whole images are the same, for pairs that hashes have proposed.

    `wider` is that of `Rule.accepts`.
    """
    same = np.zeros(len(left), bool)
    for begin in range(0, len(left), _COMPARED):
        own = slice(begin, begin + _COMPARED)
        one, two = left[own], right[own]
        placements = np.tile(_WHOLE, (len(one), 1))
        found = agreements(first, second, one, two, placements, refine=False, threads=threads)
        same[own] = rule.accepts(found, placements, wider[own])
        # Crops of a few percent are moved a little.
        nearly = found[:, 2] >= _WORTH_REFINING * found[:, 1]
        again = np.flatnonzero(~same[own] & nearly & (found[:, 0] >= _WORTH_REFINING))
        placements = placements[again]
        moved = agreements(
            first, second, one[again], two[again], placements, refine=True, threads=threads
        )
        same[begin + again] = rule.accepts(moved, placements, wider[own][again])
    return same


@dataclass(frozen=True, eq=False)
class Proposed:
    """Pairs that points have proposed, with the place of the left image in the right one."""

    left: Ints
    right: Ints
    placements: Floats
    wider: Floats  # how many times as wide the right image is, for its height

    def shared(
        self,
        first: NDArray[np.uint8],
        second: NDArray[np.uint8],
        rule: Rule,
        *,
        threads: int,
    ) -> Floats:
        """Return the share of the larger image that both show; 0 where they are not the same."""
        in_place = np.flatnonzero((np.abs(self.placements - _WHOLE) <= _SAME_PLACE).all(axis=1))
        whole = same_in_place(
            first,
            second,
            self.left[in_place],
            self.right[in_place],
            self.wider[in_place],
            rule,
            threads=threads,
        )
        found = agreements(
            first, second, self.left, self.right, self.placements, refine=True, threads=threads
        )
        shares: Floats = np.minimum(1.0, found[:, -2:].min(axis=1)) * rule.accepts(
            found, self.placements, self.wider
        )
        shares[in_place[whole]] = 1.0
        return shares


class PointIndex:
    """Images by the words of their points.

    Ties, and which image of a pair is placed in the other, follow from what is in them, not from
    the order in which they are given.
    """

    def __init__(self, points: Sequence[Points], sizes: Sequence[tuple[int, int]]) -> None:
        self.points, self.sizes = points, sizes
        self.index = PartIndex(WORD_BITS)
        some = self._in_order(points)
        self.index.add_many(
            some,
            [points[row].signatures for row in some],
            [points[row].places[:, 2] for row in some],
        )

    def propose(
        self,
        queries: Sequence[Points],
        sizes: Sequence[tuple[int, int]],
        *,
        threads: int,
        tell: Tell,
    ) -> Proposed:
        """Return pairs of a query and another image whose points agree on a place.

        If the queries are the indexed images, a pair is placed by the one that finds it first.
        """
        left: list[int] = []
        right: list[int] = []
        placements: list[tuple[float, float, float, float]] = []
        placed: set[tuple[int, int]] | None = set() if queries is self.points else None
        asked = self._in_order(queries)
        for begin in range(0, len(asked), _TOGETHER):
            some = asked[begin : begin + _TOGETHER]
            for row, other, placement in self._placed(queries, sizes, some, placed, threads):
                left.append(row)
                right.append(other)
                placements.append(placement)
            tell(min(1.0, (begin + _TOGETHER) / len(asked)))
        found = np.array(placements, np.float64).reshape(-1, 4)
        rows, others = np.array(left, np.int64), np.array(right, np.int64)
        wider = shapes_of(self.sizes)[others] / shapes_of(sizes)[rows]
        return Proposed(rows, others, found, wider)

    @staticmethod
    def _in_order(points: Sequence[Points]) -> list[int]:
        """Return the images with enough points, ordered by these."""
        some = (row for row, one in enumerate(points) if len(one.words) >= _LEAST_VOTES)
        return sorted(
            some, key=lambda row: (points[row].words.tobytes(), points[row].places.tobytes())
        )

    def _placed(
        self,
        queries: Sequence[Points],
        sizes: Sequence[tuple[int, int]],
        some: Sequence[int],
        placed: set[tuple[int, int]] | None,
        threads: int,
    ) -> Iterator[tuple[int, int, tuple[float, float, float, float]]]:
        answers = self.index.search_many(
            [queries[row].signatures for row in some],
            [queries[row].places[:, 2] for row in some],
            radius=_RADIUS,
            tolerance=_TOLERANCE,
            k=_MOST_SIMILAR + 1,  # the image itself
            min_votes=_LEAST_VOTES,
            most_near=_MOST_NEAR,
            rarity=True,
            threads=threads,
        )
        for row, answer in zip(some, answers, strict=True):
            for match in answer:
                other = int(match.item)
                if other == row or (placed is not None and (other, row) in placed):
                    continue
                placement = placement_of(
                    queries[row].places[match.query_parts],
                    self.points[other].places[match.item_parts],
                    sizes[row],
                    self.sizes[other],
                )
                if placement is not None:
                    if placed is not None:
                        placed.add((row, other))
                    yield row, other, placement


def shapes_of(sizes: Sequence[tuple[int, int]]) -> Floats:
    """Return the width of each image as a multiple of its height."""
    return np.array([width / height for width, height in sizes], np.float64)


def placement_of(
    one: NDArray[np.int32], two: NDArray[np.int32], size: tuple[int, int], other: tuple[int, int]
) -> tuple[float, float, float, float] | None:
    """Return the place of an image in another one, as most of their matched points have it.

    `one` and `two` are the places of these points, `size` and `other` the widths and heights of the
    images. None, if no two points agree.
    """
    from_places, to_places = one[:, :2].astype(np.float64), two[:, :2].astype(np.float64)
    scales = 2.0 ** ((two[:, 2] - one[:, 2]) / DOUBLING)
    # Where each match, taken as true, has all other points.
    apart = from_places[None] - from_places[:, None]
    expected = to_places[:, None] + scales[:, None, None] * apart
    agree: NDArray[np.bool_] = np.all(np.abs(expected - to_places[None]) <= _NEAR, axis=2)
    voters = agree[agree.sum(axis=1).argmax()]
    from_places, to_places, scales = from_places[voters], to_places[voters], scales[voters]
    if (from_places == from_places[0]).all():  # no two points
        return None
    count = len(scales)
    center, other_center = from_places.sum(axis=0) / count, to_places.sum(axis=0) / count
    apart, other_apart = from_places - center, to_places - other_center
    squares = float((apart * apart).sum())
    ordered = np.sort(scales)
    scale = float(ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    if squares >= count * _SPREAD**2:
        fitted = float((apart * other_apart).sum()) / squares
        scale = fitted if 0.5 <= fitted / scale <= 2 else scale
    shift = other_center - scale * center
    (down, across), (other_down, other_across) = parts_of(*size), parts_of(*other)
    return (
        scale * across / other_across,
        float(shift[0]) / (UNIT * other_across),
        scale * down / other_down,
        float(shift[1]) / (UNIT * other_down),
    )
