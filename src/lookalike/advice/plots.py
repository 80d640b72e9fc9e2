"""Plots of measurements (PNG). Need the extra `plot`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.advice.evaluation import Measurement
from lookalike.advice.signers import SignerMeasurement
from lookalike.checks import file_path, instance, instances, optional_module, thread_count
from lookalike.errors import ArgumentError, FileError
from lookalike.indexes.tuning import Tuning
from lookalike.shown import brief

# Colors of Okabe and Ito, which people with any kind of color vision can tell apart.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "osD^vPX"
GRAY = "#555555"
_NOTE = {"textcoords": "offset points", "fontsize": 9}
_SCAN = {"label": "exhaustive scan", "color": GRAY, "linestyle": "--", "linewidth": 1.5}


def plot_trade_off(evaluation: Tuning[Measurement], path: str | os.PathLike[str]) -> None:
    """Plot time per query against CDR, a line per slice width, the scan dashed."""
    _check(evaluation, path)
    partial = any(row.get("admit") != row.get("expand") for row in evaluation.options)
    hollow = "; hollow: admit smaller than expand" if partial else ""
    figure, axes = new_figure(
        "Time against quality", f"{_about(evaluation)}; labels: expand{hollow}"
    )
    for number, (width, rows) in enumerate(_by_width(evaluation.options).items()):
        style = line_style(number)
        full = [row for row in rows if row.get("admit") == row.get("expand")]
        rest = [row for row in rows if row.get("admit") != row.get("expand")]
        _draw_times(axes, full, "cdr", label=f"{width}-bit slices", **style)
        style_of_rest = {"linestyle": "none", "markerfacecolor": "white", "markersize": 4.5}
        _draw_times(axes, rest, "cdr", **{**style, **style_of_rest})
        for row in full:
            label_point(axes, str(row.get("expand")), row.cdr, row.milliseconds, style["color"])
    axes.axhline(evaluation.options[0].milliseconds, **_SCAN)
    _log_times(axes, evaluation.threads)
    axes.margins(x=0.08, y=0.12)
    axes.set_xlabel(f"cumulative distance ratio of the {evaluation.k} nearest (1 is exact)")
    save_figure(figure, axes, path)


def plot_touched(evaluation: Tuning[Measurement], path: str | os.PathLike[str]) -> None:
    """Plot the share of the collection that becomes candidates for each `expand`."""
    _check(evaluation, path)
    figure, axes = new_figure("How much of the collection is touched", _about(evaluation))
    widths = _by_width(evaluation.options)
    ticks: set[int] = set()
    for number, (width, rows) in enumerate(widths.items()):
        # Where several values of admit were tried, the last and largest of each expand.
        shares = {row.get("expand") or 0: 100 * row.touched for row in rows}
        ticks |= shares.keys()
        style = line_style(number)
        axes.plot(list(shares), list(shares.values()), label=f"{width}-bit slices", **style)
        if len(widths) == 1:  # the numbers of several lines would cover each other
            for expand, share in shares.items():
                label_point(axes, f"{share:.3g}%", expand, share, style["color"])
    axes.set_xticks(sorted(ticks))
    axes.set_ylim(-4, 104)
    axes.margins(x=0.1)
    axes.set_xlabel("expand: bits of a slice that may differ and its list still be read")
    axes.set_ylabel("signatures that become candidates, %")
    save_figure(figure, axes, path)


def plot_growth(
    series: Mapping[str, Sequence[Measurement]], path: str | os.PathLike[str], *, threads: int = 1
) -> None:
    """Plot time per query against the size of the collection, a line per series of `growth`.

    The scan and the slice widths under the sizes are those of the first series.
    """
    file_path("path", path)
    workers = thread_count(threads)
    for name, rows in instance("series", series, Mapping, "results of growth() by name").items():
        instance("a name in series", name, str, "a str")
        instances(f"series[{brief(name)}]", rows, Measurement, "a Measurement")
    if not any(series.values()):
        raise ArgumentError("series is empty; expected at least one result of growth()")
    figure, axes = new_figure(
        "Time as the collection grows", f"under the sizes: {next(iter(series))}"
    )
    for number, (name, rows) in enumerate(series.items()):
        found = [row for row in rows if row.index == "slices"]
        _draw_times(axes, found, "count", label=name, **line_style(number))
    first = next(iter(series.values()))
    scans = [row for row in first if row.index == "scan"]
    widths = {row.count: row.get("slice_bits") for row in first if row.index == "slices"}
    _draw_times(axes, scans, "count", **_SCAN)
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(widths), [f"{short_count(n)}\n{bits}-bit" for n, bits in widths.items()])
    axes.minorticks_off()
    _log_times(axes, workers)
    axes.margins(x=0.06, y=0.12)
    axes.set_xlabel("signatures in the collection")
    save_figure(figure, axes, path)


def plot_signers(evaluation: Tuning[SignerMeasurement], path: str | os.PathLike[str]) -> None:
    """Plot precision (dashed) and recall over the radius, a color per signer, as `path` says.

    Signers of different numbers of bits share the axis: it is a share of the bits.
    """
    instance("evaluation", evaluation, Tuning, "what evaluate_signers() returned")
    file_path("path", path)
    figure, axes = new_figure(
        "Precision and recall over the radius",
        f"{evaluation.count:,} texts, {evaluation.matches:,} pairs with a similarity of at least "
        f"{evaluation.target:g}; dashed: precision",
    )
    farthest = 0.0
    for number, one in enumerate(evaluation.options):
        style = {**line_style(number % len(_COLORS)), "marker": ""}
        shares = [100 * radius / one.bits for radius in range(len(one.recalls))]
        axes.plot(shares, one.recalls, label=one.label, **style)
        known = [
            (share, value)
            for share, value in zip(shares, one.precisions, strict=True)
            if value is not None
        ]
        axes.plot(*zip(*known, strict=True), **{**style, "linestyle": "--", "linewidth": 1.2})
        if one.crossing is not None:
            at = 100 * one.crossing / one.bits
            label_point(axes, str(one.crossing), at, one.recalls[one.crossing], style["color"])
            farthest = max(farthest, at)
    axes.set_xlim(0, 2 * farthest or None)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("radius, % of the bits; labels: bits where the lines cross")
    axes.set_ylabel("precision and recall")
    save_figure(figure, axes, path)


def _check(evaluation: Tuning[Measurement], path: str | os.PathLike[str]) -> None:
    """Raise before anything is drawn."""
    instance("evaluation", evaluation, Tuning, "what evaluate() returned")
    file_path("path", path)


def _draw_times(axes: Any, rows: Sequence[Measurement], across: str, **style: Any) -> None:
    axes.plot([getattr(row, across) for row in rows], [row.milliseconds for row in rows], **style)


def _by_width(rows: Sequence[Measurement]) -> dict[int, list[Measurement]]:
    widths: dict[int, list[Measurement]] = {}
    for row in rows:
        if row.get("slice_bits") is not None:
            widths.setdefault(row.get("slice_bits"), []).append(row)
    return widths


def _about(evaluation: Tuning[Measurement]) -> str:
    return (
        f"{evaluation.count:,} signatures of {evaluation.bits} bits, {evaluation.queries} queries"
    )


def _log_times(axes: Any, threads: int) -> None:
    """Label the vertical axis in milliseconds."""
    log_axis(axes)
    workers = "1 thread" if threads == 1 else f"{threads} threads"
    axes.set_ylabel(f"milliseconds a query ({workers})")


# How plots look


def new_figure(title: str, subtitle: str) -> tuple[Any, Any]:
    """Return an empty figure and its axes."""
    figure = optional_module("matplotlib.figure", "Drawing plots", extra="plot").Figure(
        figsize=(7.5, 5.0), dpi=150, layout="constrained"
    )
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", pad=22)
    place = {"xycoords": "axes fraction", "xytext": (0, 7), **_NOTE}
    axes.annotate(subtitle, (0, 1), color=GRAY, **place)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def label_point(axes: Any, text: str, x: float, y: float, color: str) -> None:
    """Write a label beside a point, on white."""
    box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    axes.annotate(text, (x, y), xytext=(7, -10), color=color, bbox=box, zorder=2.5, **_NOTE)


def line_style(number: int) -> dict[str, Any]:
    """Return color and marker of the line with this number."""
    return {
        "color": _COLORS[number % len(_COLORS)],
        "marker": _MARKERS[number % len(_MARKERS)],
        "markersize": 6,
        "linewidth": 1.6,
        "zorder": 3,
    }


def log_axis(axes: Any) -> None:
    """Make the vertical axis logarithmic, with labels at 1, 2 and 5."""
    ticker = optional_module("matplotlib.ticker", "Drawing plots", extra="plot")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_locator(ticker.NullLocator())


def save_figure(figure: Any, axes: Any, path: str | os.PathLike[str]) -> None:
    """Add a legend if there are labels, and write a PNG."""
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
