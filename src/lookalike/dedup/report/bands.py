"""How similar dropped documents are to the documents that stand for them, in bands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lookalike.shown import counted

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult

__all__ = ["Band", "bands_card", "dropped_bands"]

_WIDTHS = (0.02, 0.05, 0.1, 0.2)
_MOST = 7


@dataclass(frozen=True)
class Band:
    """Dropped documents whose similarity is in [low, high); in the bands of 1, it is 1."""

    name: str
    low: float
    high: float
    count: int


def dropped_bands(result: DedupResult) -> list[Band]:
    """Return the bands from 1 down to the threshold; each dropped document is in one.

    Those below the threshold, and those of unknown similarity, come last, if any.
    """
    values = result.similarity[~result.keep]
    same = (values == 1) & _same_text(result)[~result.keep]
    threshold = float(result.settings.threshold)
    width = next((one for one in _WIDTHS if (1 - threshold) / one <= _MOST), _WIDTHS[-1])
    first = math.floor(threshold / width + 1e-9) + 1
    inner = [round(step * width, 9) for step in range(first, round(1 / width))]
    edges = [threshold, *inner, 1.0] if threshold < 1 else []
    found = [Band("1, the same text", 1.0, 1.0, int(same.sum()))]
    others = int(((values == 1) & ~same).sum())
    if others:
        found.append(Band("1, another text", 1.0, 1.0, others))
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


def _same_text(result: DedupResult) -> NDArray[np.bool_]:
    """Return which rows are dropped because of a document with the same text."""
    first, old = result.first_equal, result.documents.old
    named = np.where(result.duplicate_of >= 0, result.duplicate_of + old, result.matched_old)
    same: NDArray[np.bool_] = ~result.keep & (first[old:] == first[np.maximum(named, 0)])
    return same


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
    whose = "the kept document that stands for it"
    if result.settings.keep == "none":
        whose = "a document that it resembles"
    elif result.documents.old:
        whose = "the kept or old document that stands for it"
    note = f"Similarity of each dropped document to {whose}."
    same = _same_text(result) & ~result.estimated
    elsewhere = result.counts.exact_duplicates - int(same.sum())
    if elsewhere > 0 and result.settings.keep != "none":
        which = counted(elsewhere, "exact duplicate")
        are = "is a copy" if elsewhere == 1 else "are copies"
        note += f" {which} {are} of a dropped text: a kept document with another text stands for "
        note += "it." if elsewhere == 1 else "them."
    return (
        f'<div class="card"><h3>{counted(dropped, "document")} dropped, by similarity</h3>\n'
        f'<p class="soft">{note}</p>\n'
        f'<dl class="bands">\n{rows}\n</dl></div>'
    )
