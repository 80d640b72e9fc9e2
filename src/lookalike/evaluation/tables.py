"""Measurements as text in aligned columns."""

from __future__ import annotations

from collections.abc import Sequence

from lookalike.evaluation.measurement import Measurement

__all__ = ["measurement_table"]


def measurement_table(
    rows: Sequence[Measurement], k: int, *, marked: Measurement | None = None, sizes: bool = False
) -> str:
    """Return a line per measurement under a line of headings; `marked` begins with an asterisk.

    `sizes` adds the number of signatures as the first column.
    """
    headings = ["slices", "expand", "admit", "ms", "ms in batch", f"CDR@{k}", f"recall@{k}"]
    headings += ["nearest", "near-dup.", "touched", "build s", "bytes"]
    lines = [headings, *(_cells(row) for row in rows)]
    if any(row.rerank is not None for row in rows):
        numbers = ("" if row.rerank is None else str(row.rerank) for row in rows)
        column = ["rerank", *numbers]
        lines = [[*line[:3], own, *line[3:]] for own, line in zip(column, lines, strict=True)]
    if sizes:
        column = ["signatures", *(f"{row.count:,}" for row in rows)]
        lines = [[size, *line] for size, line in zip(column, lines, strict=True)]
    if marked is not None:
        marks = [" ", *("*" if row is marked else " " for row in rows)]
        lines = [[mark, *line] for mark, line in zip(marks, lines, strict=True)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _index(row: Measurement) -> str:
    if row.orders is not None:
        return f"{row.orders} order{'' if row.orders == 1 else 's'}"
    if row.clusters is not None:
        return f"{row.probe} of {row.clusters} groups"
    return "scan" if row.slice_bits is None else f"{row.slice_bits}-bit"


def _cells(row: Measurement) -> list[str]:
    return [
        _index(row),
        "" if row.expand is None else str(row.expand),
        "" if row.admit is None else str(row.admit),
        f"{row.milliseconds:.3f}",
        f"{row.batch_milliseconds:.3f}",
        f"{row.cdr:.3f}",
        f"{row.recall:.3f}",
        f"{row.nearest_hit_rate:.1%}",
        "-" if row.near_duplicate_recall is None else f"{row.near_duplicate_recall:.1%}",
        f"{row.touched:.2%}",
        f"{row.build_seconds:.2f}",
        f"{row.bytes_per_signature:.0f}",
    ]
