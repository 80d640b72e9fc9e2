"""Pictures of the page, in SVG. Their colours are the page's, so that they turn dark with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.report.markup import compact, shown
from lookalike.shown import counted

__all__ = ["SimilarityBins", "chance_chart", "cluster_chart", "similarity_bins", "similarity_chart"]

_WIDTH, _HEIGHT = 560, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 548, 44, 236
_LOGARITHMIC_FROM = 60
_MOST_BINS = 50
_BIN_WIDTHS = (0.002, 0.005, 0.01, 0.02, 0.05)
_TICK_STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Heights:
    """How high a count stands: in proportion, or by its logarithm where counts are far apart."""

    top: int

    @property
    def logarithmic(self) -> bool:
        return self.top > _LOGARITHMIC_FROM

    def of(self, count: float) -> float:
        share = math.log1p(count) / math.log1p(self.top) if self.logarithmic else count / self.top
        return _BOTTOM - share * (_BOTTOM - _TOP)

    def ticks(self) -> list[int]:
        if self.logarithmic:
            return [10**power for power in range(len(str(self.top)))]
        step = next(step for step in (1, 2, 5, 10, 20) if self.top <= 5 * step)
        return list(range(0, self.top + 1, step))


def cluster_chart(sizes: NDArray[np.int64]) -> str:
    """Return how many clusters there are of how many documents; `sizes` are from 2 on."""
    largest = int(sizes.max(initial=2))
    edges = [2, 3, 5, 10]
    while edges[-1] < largest:
        edges += [3 * edges[-1], 10 * edges[-1]]
    edges = edges[: int(np.searchsorted(edges, largest)) + 1]
    counts = np.bincount(np.searchsorted(edges, sizes), minlength=len(edges)).tolist()
    heights = _Heights(max(1, *counts))
    lines = _counted(heights, "clusters")
    room = (_RIGHT - _LEFT) / len(edges)
    width = min(64.0, room * 0.78)
    least = 2
    for number, (most, count) in enumerate(zip(edges, counts, strict=True)):
        middle, top = _LEFT + room * (number + 0.5), heights.of(count)
        name = compact(most) if least == most else f"{compact(least)}–{compact(most)}"
        if count:
            hint = f"{counted(count, 'cluster')} of {name} documents"
            lines.append(_bar("accepted", middle - width / 2, top, width, hint))
            lines.append(_label(middle, top - 5, compact(count), "value"))
        lines.append(_label(middle, _BOTTOM + 17, name))
        least = most + 1
    lines.append(_across_name("documents in a cluster"))
    return _svg("Clusters by their number of documents", lines)


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
    heights = _Heights(max(1, int(bins.accepted.max(initial=0)), int(bins.rejected.max(initial=0))))
    lines = _counted(heights, "pairs")
    scale = (_RIGHT - _LEFT) / (high - low)
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
            x, width = _LEFT + (begin - low) * scale + 0.5, max(1.0, scale * bins.width - 1)
            lines.append(_bar(kind, x, heights.of(count), width, hint))
    step = next((step for step in _TICK_STEPS if high - low <= 8 * step), _TICK_STEPS[-1])
    for tick in range(
        math.ceil(low / step - _ROUNDING), math.floor(min(1.0, high) / step + _ROUNDING) + 1
    ):
        lines.append(
            _label(_LEFT + (tick * step - low) * scale, _BOTTOM + 17, f"{tick * step:.6g}")
        )
    lines += _threshold(_LEFT + (bins.threshold - low) * scale, bins.threshold)
    lines.append(_across_name(measure))
    return _svg("Pairs by similarity", lines)


def chance_chart(
    chance: Callable[[NDArray[np.float64]], NDArray[np.float64]], threshold: float, measure: str
) -> str:
    """Return the S-curve: the chance to be proposed, by similarity."""
    lines = []
    lines.append(_label(4, 13, "proposed", "begin"))
    for share in (0, 25, 50, 75, 100):
        lines += _grid(_BOTTOM - share / 100 * (_BOTTOM - _TOP), f"{share}%")
    lines += [
        _label(_LEFT + tick / 5 * (_RIGHT - _LEFT), _BOTTOM + 17, f"{tick / 5:g}")
        for tick in range(6)
    ]
    across = np.linspace(0, 1, 161)
    points = " ".join(
        f"{_LEFT + x * (_RIGHT - _LEFT):.1f},{_BOTTOM - y * (_BOTTOM - _TOP):.1f}"
        for x, y in zip(across.tolist(), chance(across).tolist(), strict=True)
    )
    lines.append(f'<polygon class="area" points="{_LEFT},{_BOTTOM} {points} {_RIGHT},{_BOTTOM}"/>')
    lines.append(f'<polyline class="curve" points="{points}"/>')
    x, at_threshold = _LEFT + threshold * (_RIGHT - _LEFT), float(chance(np.array([threshold]))[0])
    lines += _threshold(x, threshold)
    y = _BOTTOM - at_threshold * (_BOTTOM - _TOP)
    lines.append(
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4.5">'
        f"<title>{at_threshold:.2%} at {threshold:g}</title></circle>"
    )
    lines.append(_across_name(measure))
    return _svg("The chance that signatures propose a pair, by its similarity", lines)


def _counted(heights: _Heights, what: str) -> list[str]:
    """Return the lines and numbers of an axis of counts."""
    lines = []
    for tick in heights.ticks():
        lines += _grid(heights.of(tick), compact(tick))
    scale = ", logarithmic" if heights.logarithmic else ""
    lines.append(_label(4, 13, f"{what}{scale}", "begin"))
    lines.append(f'<line class="base" x1="{_LEFT}" x2="{_RIGHT}" y1="{_BOTTOM}" y2="{_BOTTOM}"/>')
    return lines


def _grid(y: float, name: str) -> list[str]:
    return [
        f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
        _label(_LEFT - 7, y + 4, name, "end"),
    ]


def _threshold(x: float, threshold: float) -> list[str]:
    side = "end" if x > (_LEFT + _RIGHT) / 2 else "begin"
    return [
        f'<line class="threshold" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 12}" y2="{_BOTTOM}"/>',
        _label(
            x + (-6 if side == "end" else 6), _TOP - 6, f"threshold {threshold:g}", f"{side} at"
        ),
    ]


def _bar(kind: str, x: float, top: float, width: float, hint: str) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{_BOTTOM - top:.1f}"><title>{hint}</title></rect>'
    )


def _label(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{shown(text)}</text>'


def _across_name(text: str) -> str:
    return _label((_LEFT + _RIGHT) / 2, _HEIGHT - 6, text, "axis")


def _svg(name: str, lines: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{shown(name)}">\n'
        + "\n".join(lines)
        + "\n</svg>"
    )
