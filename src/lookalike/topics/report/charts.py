"""Charts of clusters: the map, and the distances of documents from their centers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.dedup.pairs import Floats
from lookalike.report.drawing import (
    BOTTOM,
    LEFT,
    RIGHT,
    WIDTH,
    Heights,
    across_name,
    bar,
    counted_axis,
    element,
    label,
    svg,
)
from lookalike.report.markup import clipped, escape_html
from lookalike.shown import counted
from lookalike.signatures import hamming

if TYPE_CHECKING:
    from lookalike.topics.result import DocumentClusters

MOST_ON_MAP = 150
_MAP_HEIGHT, _MARGIN = 420, 14
_FILLED = 0.22
"""How much of the map circles cover."""
_LEAST_RADIUS, _LABELED = 3.0, 24
_LETTER, _LINE = 7.2, 13.0
"""About how wide and high letters are where they are largest, on phones."""
_WORDS, _WORD = 2, 14
_BINS = 24
_STEPS = 300
_GAP = 2.0


def map_chart(result: DocumentClusters, linked: int) -> str:
    """Return the clusters as circles, areas by size; the first `linked` link to their cards."""
    some = result.clusters[:MOST_ON_MAP]
    sizes = np.array([one.size for one in some], np.float64)
    room = _FILLED * (WIDTH - 2 * _MARGIN) * (_MAP_HEIGHT - 2 * _MARGIN)
    radii = np.maximum(np.sqrt(sizes / sizes.sum() * room / math.pi), _LEAST_RADIUS)
    places = _fitted(plane(result.centers[: len(some)]), radii)
    taken: list[tuple[float, float, float, float]] = []
    circles, names = [], []
    for one, (x, y), radius in zip(some, places.tolist(), radii.tolist(), strict=True):
        words = ", ".join(word for word, _ in one.words[:5])
        hint = escape_html(f"{one.number}: {counted(one.size, 'document')}; {words}")
        circle = element(
            '<circle class="accepted topic" cx="{:.1f}" cy="{:.1f}" r="{:.1f}">'
            "<title>{}</title></circle>",
            *(x, y, radius, hint),
        )
        if one.number < linked:
            link = '<a href="#c{}" aria-label="{}">{}</a>'
            circle = element(link, one.number, hint, circle)
        circles.append(circle)
        if one.number < _LABELED:
            names += _name(x, y, radius, [word for word, _ in one.words[:_WORDS]], taken)
    return svg("Map of the clusters", [*circles, *names], _MAP_HEIGHT, "group")


def _fitted(places: Floats, radii: Floats) -> Floats:
    """Return places within the chart, circles side by side."""
    size = np.array([WIDTH, _MAP_HEIGHT], np.float64)
    spread = np.abs(places).max(axis=0, initial=0.0)
    # Both directions fill the chart: how wide the map is has no meaning.
    scaled = places / np.where(spread > 0, spread, 1.0) * (size / 2 - _MARGIN - radii.max()) * 0.9
    moved = apart(scaled, radii)
    low, high = (moved - radii[:, None]).min(axis=0), (moved + radii[:, None]).max(axis=0)
    inner = size - 2 * _MARGIN
    shrunk = np.minimum(1.0, inner / np.maximum(high - low, 1e-9))
    fitted: Floats = (moved - (low + high) / 2) * shrunk + size / 2
    return fitted


def _name(
    x: float,
    y: float,
    radius: float,
    words: list[str],
    taken: list[tuple[float, float, float, float]],
) -> list[str]:
    """Return the words of a cluster, a line each, unless other words are there."""
    lines = [clipped(word, _WORD) for word in words]
    if not lines:
        return []
    half = max(map(len, lines)) * _LETTER / 2
    x = min(max(x, half + 2), WIDTH - half - 2)
    top = y - _LINE * len(lines) / 2
    box = (x - half, top, x + half, top + _LINE * len(lines))
    if any(
        box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
        for other in taken
    ):
        return []
    taken.append(box)
    return [label(x, top + _LINE * (at + 0.8), line, "on-map") for at, line in enumerate(lines)]


def spread_chart(distances: NDArray[np.int32], bits: int, span: tuple[int, int]) -> str:
    """Return the number of documents by distance from the center, within `span`."""
    low, high = span[0], max(span[1], span[0] + 1)
    width = max(1, math.ceil((high - low + 1) / _BINS))
    counts = np.bincount((distances - low) // width, minlength=1)
    heights = Heights(max(1, int(counts.max())))
    lines = counted_axis(heights, "documents")
    scale = (RIGHT - LEFT) / (math.ceil((high - low + 1) / width) * width)
    for place, count in enumerate(counts.tolist()):
        if count:
            begin = low + place * width
            end = begin + width - 1
            which = f"{begin:,}" if width == 1 else f"{begin:,} to {end:,}"
            hint = f"{counted(count, 'document')}, {which} bits"
            x = LEFT + (begin - low) * scale + 0.5
            lines.append(bar("accepted", x, heights.of(count), max(1.0, width * scale - 1), hint))
    for share in range(5):
        value = low + share * (high - low) / 4
        x = LEFT + (value - low) * scale
        side = "begin" if not share else "end" if share == 4 else ""
        lines.append(label(x, BOTTOM + 17, f"{100 * value / bits:.1f}%", side))
    lines.append(across_name("bits that differ from the center"))
    return svg("Documents by their distance from the center", lines)


def plane(centers: NDArray[np.uint8]) -> Floats:
    """Return a place for each center, float64[k, 2]: classical scaling of their distances.

    The number of bits that differ is the squared distance of corners of a cube, so these are the
    two directions of most spread. The larger half of each points to the right, and down.
    """
    count = len(centers)
    if count < 2:
        return np.zeros((count, 2))
    square = np.array([hamming(np.broadcast_to(one, centers.shape), centers) for one in centers])
    middle = np.eye(count) - 1.0 / count
    values, vectors = np.linalg.eigh(-0.5 * middle @ square.astype(np.float64) @ middle)
    places: Floats = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, :-3:-1]
    largest = np.take_along_axis(places, np.abs(places).argmax(axis=0)[None], axis=0)
    return np.where(largest < 0, -places, places)


def apart(places: Floats, radii: ArrayLike) -> Floats:
    """Return places where circles of these radii overlap less."""
    radius, moved = np.asarray(radii, np.float64), places.astype(np.float64).copy()
    least = radius[:, None] + radius[None, :] + _GAP
    # Equal places have no direction: each gets one of its own.
    angles = np.arange(len(moved)) * 2.399963
    moved += 0.01 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    across, down = moved.T
    for _ in range(_STEPS):
        x, y = across[:, None] - across[None, :], down[:, None] - down[None, :]
        far = np.sqrt(x * x + y * y)
        np.fill_diagonal(far, np.inf)
        push = np.maximum(least - far, 0.0) / far
        if not push.any():
            break
        across, down = across + 0.25 * (x * push).sum(axis=1), down + 0.25 * (y * push).sum(axis=1)
    return np.stack([across, down], axis=1)
