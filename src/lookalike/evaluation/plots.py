"""Measurements as pictures (PNG). Need the extra `plot`; matplotlib is imported when one is drawn.

Nothing here opens a window or touches what other code has set up in matplotlib.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.checks import file_path, instance, instances, thread_count
from lookalike.errors import ArgumentError
from lookalike.evaluation.drawing import (
    GREY,
    label_point,
    line_style,
    log_axis,
    new_figure,
    save_figure,
    short_count,
)
from lookalike.evaluation.grid import Evaluation
from lookalike.evaluation.measurement import Measurement
from lookalike.shown import brief

__all__ = ["plot_growth", "plot_touched", "plot_trade_off"]


_SCAN = {"label": "exhaustive scan", "color": GREY, "linestyle": "--", "linewidth": 1.5}


def plot_trade_off(evaluation: Evaluation, path: str | os.PathLike[str]) -> None:
    """Draw time for one query against CDR, a line for each slice width, the scan dashed.

    Settings whose `admit` is smaller than `expand` are small and hollow beside the lines.
    """
    _check(evaluation, path)
    partial = any(row.admit != row.expand for row in evaluation.rows)
    hollow = "; hollow: admit smaller than expand" if partial else ""
    figure, axes = new_figure(
        "Time against quality", f"{_about(evaluation)}; labels: expand{hollow}"
    )
    for number, (width, rows) in enumerate(_by_width(evaluation.rows).items()):
        style = line_style(number)
        full = [row for row in rows if row.admit == row.expand]
        rest = [row for row in rows if row.admit != row.expand]
        _draw_times(axes, full, "cdr", label=f"{width}-bit slices", **style)
        style_of_rest = {"linestyle": "none", "markerfacecolor": "white", "markersize": 4.5}
        _draw_times(axes, rest, "cdr", **{**style, **style_of_rest})
        for row in full:
            label_point(axes, str(row.expand), row.cdr, row.milliseconds, style["color"])
    axes.axhline(evaluation.scan.milliseconds, **_SCAN)
    _log_times(axes, evaluation.threads)
    axes.margins(x=0.08, y=0.12)
    axes.set_xlabel(f"cumulative distance ratio of the {evaluation.k} nearest (1 is exact)")
    save_figure(figure, axes, path)


def plot_touched(evaluation: Evaluation, path: str | os.PathLike[str]) -> None:
    """Draw which share of the collection becomes candidates with each `expand`."""
    _check(evaluation, path)
    figure, axes = new_figure("How much of the collection is touched", _about(evaluation))
    widths = _by_width(evaluation.rows)
    ticks: set[int] = set()
    for number, (width, rows) in enumerate(widths.items()):
        # Where several values of admit were tried, the last and largest of each expand.
        shares = {row.expand or 0: 100 * row.touched for row in rows}
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
    """Draw the time for one query against the size of the collection, a line for each series.

    Each series is what `growth` returned. The exhaustive scan, and the slice widths written under
    the sizes, are those of the first.
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
        found = [row for row in rows if row.slice_bits is not None]
        _draw_times(axes, found, "count", label=name, **line_style(number))
    first = next(iter(series.values()))
    scans = [row for row in first if row.slice_bits is None]
    widths = {row.count: row.slice_bits for row in first if row.slice_bits is not None}
    _draw_times(axes, scans, "count", **_SCAN)
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(widths), [f"{short_count(n)}\n{bits}-bit" for n, bits in widths.items()])
    axes.minorticks_off()
    _log_times(axes, workers)
    axes.margins(x=0.06, y=0.12)
    axes.set_xlabel("signatures in the collection")
    save_figure(figure, axes, path)


def _check(evaluation: Evaluation, path: str | os.PathLike[str]) -> None:
    """Raise before anything is drawn."""
    instance("evaluation", evaluation, Evaluation, "what evaluate() returned")
    file_path("path", path)


def _draw_times(axes: Any, rows: Sequence[Measurement], across: str, **style: Any) -> None:
    axes.plot([getattr(row, across) for row in rows], [row.milliseconds for row in rows], **style)


def _by_width(rows: Sequence[Measurement]) -> dict[int, list[Measurement]]:
    widths: dict[int, list[Measurement]] = {}
    for row in rows:
        if row.slice_bits is not None:
            widths.setdefault(row.slice_bits, []).append(row)
    return widths


def _about(evaluation: Evaluation) -> str:
    return (
        f"{evaluation.count:,} signatures of {evaluation.bits} bits, {evaluation.queries} queries"
    )


def _log_times(axes: Any, threads: int) -> None:
    """Make the vertical axis one of milliseconds."""
    log_axis(axes)
    workers = "1 thread" if threads == 1 else f"{threads} threads"
    axes.set_ylabel(f"milliseconds a query ({workers})")
