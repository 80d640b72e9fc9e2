"""Indexed signature slice lists, the earlier draft: Table 1, Figures 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lookalike import _native
from lookalike.advice.evaluation import Measurement, evaluate
from lookalike.advice.plots import label_point, line_style, new_figure, save_figure
from papers.page import Section, Verdict
from papers.shared import World

__all__ = ["run"]

WIDTH = 16
QUERIES = 10

# Per cent of the signatures that lists with so many errors lead to, Wall Street Journal.
TABLE_1 = (0.62, 7.13, 34.76, 79.62, 98.93, 100.0, 100.0, 100.0, 100.0)
"""100% from there on, up to 16."""
LISTS = (1, 17, 137, 697, 2517, 6885, 14893, 26333, 39203)
LAST_LISTS = (50643, 58651, 63019, 64839, 65399, 65519, 65535, 65536)
"""As the draft prints them, for 9 to 16 errors."""


def run(world: World) -> Iterator[Section]:
    """Run the experiments: one grid has all."""
    rows, queries, origin = world.wide
    few = queries[: max(QUERIES, len(queries) // 10)]
    grid = evaluate(rows, few, k=10, slice_bits=[WIDTH], expand=range(len(TABLE_1)), threads=1)
    measured = grid.options[1:]
    about = f"{grid.count:,} signatures of {grid.bits} bits ({origin}), {len(few)} queries."
    yield Section(
        "Table 1: lists checked, and how much of the collection they lead to",
        f"{about} Slices of 16 bits. The number of lists for each slice is a sum of binomials, so "
        "it is the same here. The share of the collection in these lists depends on the "
        "collection; the paper's has newspaper articles. From 9 errors on, lists are counted and "
        "not read: those of 8 already have all signatures.",
        ("most errors", "lists, paper", "lists, ours", "signatures, paper", "signatures, ours"),
        [
            (
                str(row.get("expand")),
                f"{LISTS[row.get('expand') or 0]:,}",
                f"{row.lists / (grid.bits // WIDTH):,.0f}",
                f"{TABLE_1[row.get('expand') or 0]:.2f}%",
                f"{100 * row.touched:.2f}%",
            )
            for row in measured
        ]
        + [
            (
                str(errors),
                f"{printed:,}",
                f"{_native.lists_near(WIDTH, errors):,.0f}",
                "100.00%",
                "100.00%" if measured[-1].touched > 0.99995 else "",
            )
            for errors, printed in enumerate(LAST_LISTS, len(LISTS))
        ],
        verdict=Verdict.of(
            [
                all(
                    round(row.lists / (grid.bits // WIDTH)) == LISTS[row.get("expand") or 0]
                    for row in measured
                )
                and all(
                    round(_native.lists_near(WIDTH, errors)) == printed
                    for errors, printed in enumerate(LAST_LISTS, len(LISTS))
                ),
                abs(100 * measured[2].touched - TABLE_1[2]) < TABLE_1[2] / 10,
            ],
            "The number of lists is exactly the same. The share of the collection that they "
            f"contain is not ({100 * measured[2].touched:.0f}% with 2 errors, {TABLE_1[2]:.0f}% "
            "in the draft). It depends on the collection: newspaper articles there, abstracts "
            "here.",
        ),
    )
    for number, among, field in ((1, 10, "top_10_in_10"), (2, 100, "top_10_in_100")):
        found = [getattr(row, field) for row in measured]
        name = f"draft_figure_{number}.png"
        _draw(world, name, measured, found, among)
        yield Section(
            f"Figure {number}: of the ten found, how many are among the true {among}",
            f"{about} The draft shows a curve without figures. Ours, with the 1000 best by score "
            "re-ranked:",
            ("most errors", f"of ten among the true {among}"),
            [
                (str(row.get("expand")), f"{10 * one:.2f}")
                for row, one in zip(measured, found, strict=True)
            ],
            [name],
        )


def _draw(
    world: World, name: str, rows: Sequence[Measurement], found: Sequence[float], among: int
) -> None:
    figure, axes = new_figure(
        f"Of the ten found, how many are among the true {among}",
        f"{rows[0].count:,} signatures, slices of {WIDTH} bits; labels: milliseconds",
    )
    errors = [row.get("expand") or 0 for row in rows]
    axes.plot(errors, [10 * one for one in found], label="ours", **line_style(0))
    for row, one in zip(rows, found, strict=True):
        label_point(axes, f"{row.milliseconds:.2g}", row.get("expand") or 0, 10 * one, "#0072B2")
    axes.set_xlabel("most errors in a slice")
    axes.set_ylabel(f"results among the true {among}, of 10")
    axes.margins(x=0.06, y=0.12)
    save_figure(figure, axes, world.pictures / name)
