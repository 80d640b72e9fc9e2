"""How similar the dropped documents are to those that stand for them, in bands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lookalike.shown import counted

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult

__all__ = ["Band", "bands_card", "dropped_bands"]

_WIDTHS = (0.02, 0.05, 0.1, 0.2)
_MOST = 7


@dataclass(frozen=True)
class Band:
    """Dropped documents whose similarity is in [low, high); in the band of 1, it is 1."""

    name: str
    low: float
    high: float
    count: int


def dropped_bands(result: DedupResult) -> list[Band]:
    """Return the bands from 1 down to the threshold; each dropped document is in one.

    Those below the threshold, and those of which no similarity is known, come last, if any.
    """
    values = result.similarity[~result.keep]
    threshold = float(result.settings.threshold)
    width = next((one for one in _WIDTHS if (1 - threshold) / one <= _MOST), _WIDTHS[-1])
    first = math.floor(threshold / width + 1e-9) + 1
    inner = [step * width for step in range(first, round(1 / width))]
    edges = [threshold, *inner, 1.0] if threshold < 1 else []
    found = [Band("1", 1.0, 1.0, int((values == 1).sum()))]
    for low, high in zip(reversed(edges[:-1]), reversed(edges[1:]), strict=True):
        count = int(((values >= low) & (values < high)).sum())
        found.append(Band(f"{low:.4g} to {high:.4g}", low, high, count))
    below = int((values < threshold).sum())
    if below:
        found.append(Band(f"below {threshold:g}", 0.0, threshold, below))
    unknown = int(np.isnan(values).sum())
    if unknown:
        found.append(Band("not known", math.nan, math.nan, unknown))
    return found


def bands_card(result: DedupResult) -> str:
    """Return how many documents are dropped for each band; nothing if none is."""
    bands = dropped_bands(result)
    dropped = sum(band.count for band in bands)
    if not dropped:
        return ""
    most = max(band.count for band in bands)
    rows = "\n".join(
        f"<div><dt>{band.name}</dt><dd>{band.count:,}</dd>"
        f'<span class="share" style="width:{100 * band.count / most:.1f}%"></span></div>'
        for band in bands
    )
    return (
        f'<div class="card"><h3>{counted(dropped, "document")} dropped, by similarity</h3>\n'
        '<p class="soft">Of each to the one that stands for it.</p>\n'
        f'<dl class="bands">\n{rows}\n</dl></div>'
    )
