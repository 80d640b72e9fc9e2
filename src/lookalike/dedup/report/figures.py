"""Figures of a report: sizes, similarities, the chance of a pair to be proposed, bands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lookalike.dedup.pairs import Flags, Floats, Ints
from lookalike.dedup.propose import least_containment, least_found, sample_size
from lookalike.dedup.settings import DedupSettings
from lookalike.indexes.bands import choose_bands
from lookalike.report.drawing import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Heights,
    across_name,
    bar,
    counted_axis,
    element,
    grid,
    label,
    svg,
)
from lookalike.report.markup import compact, pieces
from lookalike.shown import counted
from lookalike.signatures.signer import Signer

if TYPE_CHECKING:
    from lookalike.dedup.result import TextResult

Chance = Callable[[Floats], Floats]
"""The chance that pairs of these similarities are proposed."""

_MOST_BINS = 50
_BIN_WIDTHS = (0.002, 0.005, 0.01, 0.02, 0.05)
_TICK_STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_ROUNDING = 1e-9
_WIDTHS, _MOST = (0.02, 0.05, 0.1, 0.2), 7
"""Widths of bands of dropped documents, and their maximum number."""


def proposal_chance(settings: DedupSettings, documents: int) -> tuple[Chance, str]:
    """Return the chance by similarity for a number of documents, and the reason in words."""
    if not settings.by_signatures:
        size = sample_size(documents)
        least = least_found(size, least_containment(settings, settings.threshold))

        def chance(similarity: Floats) -> Floats:
            contained = least_containment(settings, similarity)
            return _at_most(1 - contained, size, size - least)

        return chance, (
            f"{size:,} features of each document are looked up in larger ones; one that has "
            f"{least:,} of them is proposed (shorter documents: all features, none is missed)"
        )
    if settings.by_bands:
        layout = choose_bands(settings.permutations, settings.threshold)
        bands, values = counted(layout.bands, "band"), counted(layout.rows, "MinHash value")
        told = f"{bands} of {values}; a pair that agrees in a whole band is proposed"
        return layout.chance, told
    signer, radius = settings.signer(), settings.radius or 0
    return partial(chance_of_bits, signer, radius), (
        f"signatures of {signer.bits:,} bits; a pair that differs in at most {radius:,} of them is "
        f"proposed (each bit taken to differ on its own, as often as {settings.method} expects at "
        f"that {settings.measure})"
    )


def similarity_of_chance(chance: Chance, wanted: float) -> float:
    """Return the least similarity with this chance; chances must not fall."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(np.array([middle]))[0] < wanted else (low, middle)
    return high


def chance_of_bits(signer: Signer, radius: int, similarity: Floats) -> Floats:
    """Return the chance that signatures of documents at a similarity are within the radius.

    Each bit is taken to differ independently, at the rate of the signer's expected distance.
    """
    bits = signer.bits
    expected = [signer._expected_distance(one, bits)[0] for one in similarity.tolist()]
    return _at_most(np.array(expected) / bits, bits, radius)


def _at_most(differ: Floats, bits: int, radius: int) -> Floats:
    """Return the chance that at most `radius` of `bits` differ, each with this chance."""
    if radius >= bits:
        return np.ones_like(differ)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, bits + 1)))])
    some = np.arange(radius + 1)
    ways = logs[bits] - logs[some] - logs[bits - some]
    found = np.ones_like(differ)
    for place, chance in enumerate(differ.tolist()):
        if 0 < chance < 1:
            terms = ways + some * np.log(chance) + (bits - some) * np.log1p(-chance)
            found[place] = min(1.0, float(np.exp(terms).sum()))
        elif chance == 1:
            found[place] = 0.0
    return found


def group_chart(sizes: Ints) -> str:
    """Return the number of groups by size; `sizes` are at least 2."""
    largest = int(sizes.max(initial=2))
    edges = [2, 3, 5, 10]
    while edges[-1] < largest:
        edges += [3 * edges[-1], 10 * edges[-1]]
    edges = edges[: int(np.searchsorted(edges, largest)) + 1]
    counts = np.bincount(np.searchsorted(edges, sizes), minlength=len(edges)).tolist()
    heights = Heights(max(1, *counts))
    lines = counted_axis(heights, "groups")
    room = (RIGHT - LEFT) / len(edges)
    width = min(64.0, room * 0.78)
    least = 2
    for number, (most, count) in enumerate(zip(edges, counts, strict=True)):
        middle, top = LEFT + room * (number + 0.5), heights.of(count)
        name = compact(most) if least == most else f"{compact(least)}–{compact(most)}"
        if count:
            hint = f"{counted(count, 'group')} of {name} documents"
            lines.append(bar("accepted", middle - width / 2, top, width, hint))
            lines.append(label(middle, top - 5, compact(count), "value"))
        lines.append(label(middle, BOTTOM + 17, name))
        least = most + 1
    lines.append(across_name("documents in a group"))
    return svg("Groups by their number of documents", lines)


@dataclass(frozen=True)
class SimilarityBins:
    """Counts of pairs by similarity, in bins of one width that begin at the threshold."""

    threshold: float
    width: float
    accepted: Ints
    """From the threshold upwards."""
    rejected: Ints
    """From the threshold downwards."""


def similarity_bins(accepted: Floats, rejected: Floats, threshold: float) -> SimilarityBins:
    """Count pairs; the lowest similarity decides how wide the bins are."""
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
    above = bins.threshold + bins.width * np.arange(len(bins.accepted))
    below = bins.threshold - bins.width * np.arange(1, len(bins.rejected) + 1)
    bars = [("accepted", *one) for one in zip(above.tolist(), bins.accepted.tolist(), strict=True)]
    bars += [("rejected", *one) for one in zip(below.tolist(), bins.rejected.tolist(), strict=True)]
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


def chance_chart(chance: Chance, threshold: float, measure: str) -> str:
    """Return the S-curve: the chance to be proposed, by similarity."""
    lines = [label(4, 13, "proposed", "begin")]
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
    below = f"{LEFT},{BOTTOM} {points} {RIGHT},{BOTTOM}"
    lines.append(element('<polygon class="area" points="{}"/>', below))
    lines.append(element('<polyline class="curve" points="{}"/>', points))
    x, at_threshold = LEFT + threshold * (RIGHT - LEFT), float(chance(np.array([threshold]))[0])
    lines += _threshold(x, threshold)
    y = BOTTOM - at_threshold * (BOTTOM - TOP)
    dot = '<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="4.5"><title>{}</title></circle>'
    lines.append(element(dot, x, y, f"{at_threshold:.2%} at {threshold:g}"))
    lines.append(across_name(measure))
    return svg("The chance that signatures propose a pair, by its similarity", lines)


def _threshold(x: float, threshold: float) -> list[str]:
    side = "end" if x > (LEFT + RIGHT) / 2 else "begin"
    line = '<line class="threshold" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>'
    return [
        element(line, x, x, TOP - 12, BOTTOM),
        label(x + (-6 if side == "end" else 6), TOP - 6, f"threshold {threshold:g}", f"{side} at"),
    ]


@dataclass(frozen=True)
class Band:
    """Dropped documents with a similarity in [low, high), or of 1."""

    name: str
    low: float
    high: float
    count: int


def dropped_bands(result: TextResult) -> list[Band]:
    """Return the bands from 1 down to the threshold, below it, and of unknown similarity."""
    values = result.similarity[~result.keep]
    same = (values == 1) & _same_text(result)[~result.keep]
    threshold = float(result.settings.threshold)
    width = next((one for one in _WIDTHS if (1 - threshold) / one <= _MOST), _WIDTHS[-1])
    first = math.floor(threshold / width + 1e-9) + 1
    inner = [round(step * width, 9) for step in range(first, round(1 / width))]
    edges = [threshold, *inner, 1.0] if threshold < 1 else []
    found = [Band("1, the same text", 1.0, 1.0, int(same.sum()))]
    if others := int(((values == 1) & ~same).sum()):
        found.append(Band("1, another text, same features", 1.0, 1.0, others))
    for low, high in zip(reversed(edges[:-1]), reversed(edges[1:]), strict=True):
        count = int(((values >= low) & (values < high)).sum())
        found.append(Band(f"{low:.4g} to {high:.4g}", low, high, count))
    if below := int((values < threshold).sum()):
        found.append(Band(f"below {threshold:g}", 0.0, threshold, below))
    if unknown := int(np.isnan(values).sum()):
        found.append(Band("not known", math.nan, math.nan, unknown))
    return found


def _same_text(result: TextResult) -> Flags:
    """Return which rows are dropped because of a document with the same text."""
    first, old = result.first_equal, result.documents.old
    named = np.where(result.duplicate_of >= 0, result.duplicate_of + old, result.matched_old)
    same: Flags = ~result.keep & (first[old:] == first[np.maximum(named, 0)])
    return same


def bands_card(result: TextResult) -> str:
    """Return the number of dropped documents by band; nothing if there are none."""
    bands = dropped_bands(result)
    dropped = sum(band.count for band in bands)
    if not dropped:
        return ""
    most = max(band.count for band in bands)
    whose = "the kept document"
    if result.settings.keep == "none":
        whose = "a document that it resembles"
    elif result.documents.old:
        whose = "the kept or old document"
    note = f"Similarity of each dropped document to {whose}."
    same = _same_text(result) & ~result.estimated
    elsewhere = result.counts.exact_duplicates - int(same.sum())
    if elsewhere > 0 and result.settings.keep != "none":
        which = counted(elsewhere, "exact duplicate")
        are = "is" if elsewhere == 1 else "are"
        note += f" {which} {are} equal to a dropped document, not to the kept one."
    rows = [(band.name, band.count, 100 * band.count / most) for band in bands]
    return pieces("dedup/report/dedup.html").bands(dropped, note, rows)
