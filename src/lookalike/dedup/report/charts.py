"""Pictures of the page, in SVG. Their colours are the page's, so that they turn dark with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike.report.drawing import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Heights,
    across_name,
    bar,
    counted_axis,
    grid,
    label,
    svg,
)
from lookalike.report.markup import compact
from lookalike.shown import counted

__all__ = ["SimilarityBins", "chance_chart", "cluster_chart", "similarity_bins", "similarity_chart"]

_MOST_BINS = 50
_BIN_WIDTHS = (0.002, 0.005, 0.01, 0.02, 0.05)
_TICK_STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_ROUNDING = 1e-9


def cluster_chart(sizes: NDArray[np.int64]) -> str:
    """Return how many clusters there are of how many documents; `sizes` are from 2 on."""
    largest = int(sizes.max(initial=2))
    edges = [2, 3, 5, 10]
    while edges[-1] < largest:
        edges += [3 * edges[-1], 10 * edges[-1]]
    edges = edges[: int(np.searchsorted(edges, largest)) + 1]
    counts = np.bincount(np.searchsorted(edges, sizes), minlength=len(edges)).tolist()
    heights = Heights(max(1, *counts))
    lines = counted_axis(heights, "clusters")
    room = (RIGHT - LEFT) / len(edges)
    width = min(64.0, room * 0.78)
    least = 2
    for number, (most, count) in enumerate(zip(edges, counts, strict=True)):
        middle, top = LEFT + room * (number + 0.5), heights.of(count)
        name = compact(most) if least == most else f"{compact(least)}–{compact(most)}"
        if count:
            hint = f"{counted(count, 'cluster')} of {name} documents"
            lines.append(bar("accepted", middle - width / 2, top, width, hint))
            lines.append(label(middle, top - 5, compact(count), "value"))
        lines.append(label(middle, BOTTOM + 17, name))
        least = most + 1
    lines.append(across_name("documents in a cluster"))
    return svg("Clusters by their number of documents", lines)


@dataclass(frozen=True)
class SimilarityBins:
    """Counts of pairs by similarity, in bins of one width; one of them begins at the threshold."""

    threshold: float
    width: float
    accepted: NDArray[np.int64]
    """From the threshold upwards."""
    rejected: NDArray[np.int64]
    """From the threshold downwards."""


def similarity_bins(
    accepted: NDArray[np.float64], rejected: NDArray[np.float64], threshold: float
) -> SimilarityBins:
    """Count pairs; the least similar of the rejected ones decides how wide the bins are."""
    span = 1.0 - min(threshold, float(rejected.min(initial=threshold)))
    width = next((width for width in _BIN_WIDTHS if span / width <= _MOST_BINS), _BIN_WIDTHS[-1])
    above = max(1, math.ceil((1.0 - threshold) / width - _ROUNDING))
    places = np.floor((accepted - threshold) / width + _ROUNDING).astype(np.int64)
    below = np.floor((threshold - rejected) / width - _ROUNDING).astype(np.int64)
    return SimilarityBins(
        threshold,
        width,
        np.bincount(places.clip(0, above - 1), minlength=above),
        np.bincount(below.clip(min=0)) if len(below) else np.zeros(0, np.int64),
    )


def similarity_chart(bins: SimilarityBins, measure: str) -> str:
    """Return the histogram of similarities, with the threshold between accepted and rejected."""
    low = bins.threshold - bins.width * max(len(bins.rejected), 2)
    high = bins.threshold + bins.width * len(bins.accepted)
    heights = Heights(max(1, int(bins.accepted.max(initial=0)), int(bins.rejected.max(initial=0))))
    lines = counted_axis(heights, "pairs")
    scale = (RIGHT - LEFT) / (high - low)
    bars = [
        ("accepted", bins.threshold + bins.width * place, count)
        for place, count in enumerate(bins.accepted.tolist())
    ] + [
        ("rejected", bins.threshold - bins.width * (place + 1), count)
        for place, count in enumerate(bins.rejected.tolist())
    ]
    for kind, begin, count in bars:
        if count:
            span = f"{begin:.3f} to {begin + bins.width:.3f}"
            hint = f"{counted(count, f'{kind} pair')} of {span}"
            x, width = LEFT + (begin - low) * scale + 0.5, max(1.0, scale * bins.width - 1)
            lines.append(bar(kind, x, heights.of(count), width, hint))
    step = next((step for step in _TICK_STEPS if high - low <= 8 * step), _TICK_STEPS[-1])
    for tick in range(
        math.ceil(low / step - _ROUNDING), math.floor(min(1.0, high) / step + _ROUNDING) + 1
    ):
        lines.append(label(LEFT + (tick * step - low) * scale, BOTTOM + 17, f"{tick * step:.6g}"))
    lines += _threshold(LEFT + (bins.threshold - low) * scale, bins.threshold)
    lines.append(across_name(measure))
    return svg("Pairs by similarity", lines)


def chance_chart(
    chance: Callable[[NDArray[np.float64]], NDArray[np.float64]], threshold: float, measure: str
) -> str:
    """Return the S-curve: the chance to be proposed, by similarity."""
    lines = []
    lines.append(label(4, 13, "proposed", "begin"))
    for share in (0, 25, 50, 75, 100):
        lines += grid(BOTTOM - share / 100 * (BOTTOM - TOP), f"{share}%")
    lines += [
        label(LEFT + tick / 5 * (RIGHT - LEFT), BOTTOM + 17, f"{tick / 5:g}") for tick in range(6)
    ]
    across = np.linspace(0, 1, 161)
    points = " ".join(
        f"{LEFT + x * (RIGHT - LEFT):.1f},{BOTTOM - y * (BOTTOM - TOP):.1f}"
        for x, y in zip(across.tolist(), chance(across).tolist(), strict=True)
    )
    lines.append(f'<polygon class="area" points="{LEFT},{BOTTOM} {points} {RIGHT},{BOTTOM}"/>')
    lines.append(f'<polyline class="curve" points="{points}"/>')
    x, at_threshold = LEFT + threshold * (RIGHT - LEFT), float(chance(np.array([threshold]))[0])
    lines += _threshold(x, threshold)
    y = BOTTOM - at_threshold * (BOTTOM - TOP)
    lines.append(
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4.5">'
        f"<title>{at_threshold:.2%} at {threshold:g}</title></circle>"
    )
    lines.append(across_name(measure))
    return svg("The chance that signatures propose a pair, by its similarity", lines)


def _threshold(x: float, threshold: float) -> list[str]:
    side = "end" if x > (LEFT + RIGHT) / 2 else "begin"
    return [
        f'<line class="threshold" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 12}" y2="{BOTTOM}"/>',
        label(x + (-6 if side == "end" else 6), TOP - 6, f"threshold {threshold:g}", f"{side} at"),
    ]
