"""A plan in words: the table of what was weighed, in the words of Python or of a command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lookalike.planning.question import Option

__all__ = ["PYTHON", "Words", "bytes_in_words", "number_in_words", "table", "times_in_words"]


@dataclass(frozen=True)
class Words:
    """What a plan tells people to do, where they are."""

    built: Callable[[Option], str]
    """What to build an index with."""
    searched: Callable[[Option], str]
    """What to search it with."""
    sample: str
    """How signatures to measure on are given."""


def _keywords(settings: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in settings.items())


PYTHON = Words(
    built=lambda option: _keywords(option.parameters),
    searched=lambda option: _keywords(option.settings),
    sample="Give some to measure: signatures=...",
)
"""Arguments by their names."""


def number_in_words(value: float) -> str:
    """Return a number with the places that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def times_in_words(ratio: float) -> str:
    """Return how many times as long something takes."""
    return f"{number_in_words(ratio)} times" if ratio >= 1.05 else "about"


def bytes_in_words(size: int) -> str:
    """Return a size with its unit."""
    value, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"


def table(lines: list[list[str]]) -> str:
    """Return aligned columns: words to the left, numbers to the right; empty ones left out."""
    columns = [column for column in zip(*lines, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    right = {"µs a query", "build s", "memory", "finds"}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column[0] in right else cell.ljust(width)
            for cell, column, width in zip(line, columns, widths, strict=True)
        ).rstrip()
        for line in zip(*columns, strict=True)
    )
