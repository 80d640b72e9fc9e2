"""Charts of clusters: the map, and the similarities of documents and their centers."""

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

if TYPE_CHECKING:
    from lookalike.topics.result import DocumentClusters

MOST_ON_MAP = 150
_MAP_HEIGHT, _MARGIN = 420, 14
_FILLED = 0.3
"""How much of the map circles cover."""
_LEAST_RADIUS = 3.0
NAMED_RADIUS = 12.0
"""Larger circles always have a name; smaller ones if there is room."""
_EVENLY = 0.7
"""How much of a place is its rank, which spreads circles over the map."""
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
    taken: list[_Box] = []
    circles, names = [], []
    for one, (x, y), radius in zip(some, places.tolist(), radii.tolist(), strict=True):
        told = ", ".join(word for word, _ in one.words[:5])
        hint = escape_html(f"{one.number}: {counted(one.size, 'document')}; {told}")
        circle = element(
            '<circle class="accepted topic" cx="{:.1f}" cy="{:.1f}" r="{:.1f}">'
            "<title>{}</title></circle>",
            *(x, y, radius, hint),
        )
        if one.number < linked:
            link = '<a href="#c{}" aria-label="{}">{}</a>'
            circle = element(link, one.number, hint, circle)
        circles.append(circle)
        words = [word for word, _ in one.words[:_WORDS]] or [f"{one.number}"]
        names += _name(x, y, radius, words, taken)
    return svg("Map of the clusters", [*circles, *names], _MAP_HEIGHT, "group")


def _fitted(places: Floats, radii: Floats) -> Floats:
    """Return places within the chart, circles side by side."""
    size = np.array([WIDTH, _MAP_HEIGHT], np.float64)
    spread = np.abs(places).max(axis=0, initial=0.0)
    # Both directions fill the chart, and crowds get room: how wide the map is has no meaning.
    straight = places / np.where(spread > 0, spread, 1.0)
    ranks = places.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    evenly = 2 * ranks / max(1, len(places) - 1) - 1
    share = _EVENLY if len(places) > 2 else 0.0
    scaled = (1 - share) * straight + share * evenly
    moved = apart(scaled * (size / 2 - _MARGIN - radii.max()) * 0.9, radii)
    low, high = (moved - radii[:, None]).min(axis=0), (moved + radii[:, None]).max(axis=0)
    inner = size - 2 * _MARGIN
    shrunk = np.minimum(1.0, inner / np.maximum(high - low, 1e-9))
    fitted: Floats = (moved - (low + high) / 2) * shrunk + size / 2
    return fitted


_Box = tuple[float, float, float, float]
"""Left, top, right and bottom of a name."""


def _name(x: float, y: float, radius: float, words: list[str], taken: list[_Box]) -> list[str]:
    """Return the words of a cluster, a line each, where the fewest other names are.

    All words are tried before one alone, at several heights within the circle. A small circle has
    no name where others are.
    """
    fitting = max(3, int(2 * radius / _LETTER))
    tried = [[clipped(word, _WORD) for word in words], *([clipped(word, _WORD)] for word in words)]
    tried.append([clipped(words[0], fitting)])
    heights = (0.0, -0.45, 0.45, -0.8, 0.8)
    boxes = [
        (lines, _box(x, y + share * radius, lines))
        for lines in tried
        for share in (heights if len(lines) == 1 else heights[:1])
    ]
    lines, box = min(boxes, key=lambda one: _overlap(one[1], taken))
    if radius < NAMED_RADIUS and _overlap(box, taken) > 0:
        return []
    taken.append(box)
    middle = (box[0] + box[2]) / 2
    return [
        label(middle, box[1] + _LINE * (at + 0.8), line, "on-map") for at, line in enumerate(lines)
    ]


def _box(x: float, y: float, lines: list[str]) -> _Box:
    half, high = max(map(len, lines)) * _LETTER / 2, _LINE * len(lines)
    x = min(max(x, half + 2), WIDTH - half - 2)
    top = min(max(y - high / 2, 2), _MAP_HEIGHT - high - 2)
    return x - half, top, x + half, top + high


def _overlap(box: _Box, taken: list[_Box]) -> float:
    """Return the area of a name that other names cover."""
    return sum(
        max(0.0, min(box[2], other[2]) - max(box[0], other[0]))
        * max(0.0, min(box[3], other[3]) - max(box[1], other[1]))
        for other in taken
    )


def spread_chart(similarities: NDArray[np.float32], span: tuple[float, float]) -> str:
    """Return the number of documents by similarity to the center, within `span`."""
    low, high = span[0], max(span[1], span[0] + 0.01)
    width = (high - low) / _BINS
    places = np.minimum(((similarities - low) / width).astype(np.int64), _BINS - 1)
    counts = np.bincount(places, minlength=_BINS)
    heights = Heights(max(1, int(counts.max())))
    lines = counted_axis(heights, "documents")
    scale = (RIGHT - LEFT) / _BINS
    for place, count in enumerate(counts.tolist()):
        if count:
            begin = low + place * width
            hint = f"{counted(count, 'document')}, {begin:.3f} to {begin + width:.3f}"
            x = LEFT + place * scale + 0.5
            lines.append(bar("accepted", x, heights.of(count), max(1.0, scale - 1), hint))
    for share in range(5):
        value, x = low + share * (high - low) / 4, LEFT + share * (RIGHT - LEFT) / 4
        side = "begin" if not share else "end" if share == 4 else ""
        lines.append(label(x, BOTTOM + 17, f"{value:.2f}", side))
    lines.append(across_name("similarity to the center"))
    return svg("Documents by their similarity to the center", lines)


def plane(centers: NDArray[np.float32]) -> Floats:
    """Return a place for each center, float64[k, 2]: the two directions of most spread.

    The larger half of each points to the right, and down.
    """
    count = len(centers)
    if count < 2:
        return np.zeros((count, 2))
    spread = centers.astype(np.float64) - centers.mean(axis=0, dtype=np.float64)
    values, vectors = np.linalg.eigh(spread @ spread.T)
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
