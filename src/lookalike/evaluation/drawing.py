"""How our pictures look: figures, lines and labels. Needs the extra `plot` when something is drawn.

Nothing here opens a window or touches what other code has set up in matplotlib.
"""

from __future__ import annotations

import os
from typing import Any

from lookalike.checks import file_path, optional_module
from lookalike.errors import FileError

__all__ = [
    "GREY",
    "label_point",
    "line_style",
    "log_axis",
    "new_figure",
    "save_figure",
    "short_count",
]

# Okabe and Ito's colours, which people with any sort of colour vision can tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "osD^vPX"
GREY = "#555555"


def new_figure(title: str, subtitle: str) -> tuple[Any, Any]:
    """Return an empty figure and its axes."""
    figure = optional_module("matplotlib.figure", "Drawing plots", extra="plot").Figure(
        figsize=(7.5, 5.0), dpi=150, layout="constrained"
    )
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", pad=22)
    axes.annotate(
        subtitle,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 7),
        textcoords="offset points",
        fontsize=9,
        color=GREY,
    )
    axes.grid(True, which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def label_point(axes: Any, text: str, x: float, y: float, colour: str) -> None:
    """Write beside a point, on white so that lines do not cross it."""
    axes.annotate(
        text,
        (x, y),
        xytext=(7, -10),
        textcoords="offset points",
        fontsize=9,
        color=colour,
        bbox={
            "boxstyle": "square,pad=0.1",
            "facecolor": "white",
            "edgecolor": "none",
            "alpha": 0.8,
        },
        zorder=2.5,
    )


def line_style(number: int) -> dict[str, Any]:
    """Return colour and marker of the so-manieth line."""
    return {
        "color": _COLOURS[number % len(_COLOURS)],
        "marker": _MARKERS[number % len(_MARKERS)],
        "markersize": 6,
        "linewidth": 1.6,
        "zorder": 3,
    }


def log_axis(axes: Any) -> None:
    """Make the vertical axis logarithmic, with plain numbers at 1, 2 and 5."""
    ticker = optional_module("matplotlib.ticker", "Drawing plots", extra="plot")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_locator(ticker.NullLocator())


def save_figure(figure: Any, axes: Any, path: str | os.PathLike[str]) -> None:
    """Add the legend, if there is anything to explain, and write a PNG."""
    labels = axes.get_legend_handles_labels()[1]
    if labels:
        columns = 1 if len(labels) <= 4 else 2
        axes.legend(framealpha=0.9, edgecolor="none", fontsize=9, ncols=columns)
    target = file_path("path", path)
    try:
        figure.savefig(target, format="png")
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error}") from error


def short_count(count: float) -> str:
    """Return a count to three digits, with K, M or B: 2,500,000 as 2.5M."""
    for unit, size in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if count >= 0.9995 * size:
            return f"{count / size:.3g}{unit}"
    return f"{count:.3g}"
