"""What `lookalike search` prints: a table for people, an object a line for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lookalike.cli.terminal import say, say_json
from lookalike.shown import escape_terminal

LONGEST_ID = 200
"""Characters that are shown of an id; JSON has them all."""

_NUMBERS = {
    "distance": ("", 8),
    "score": ("", 8),
    "estimate": (".2f", 8),
    "similarity": (".4f", 10),
}
"""How numbers are shown in a table, and how wide."""
_LONGEST_QUERY = 40
_LONGEST_VALUE = 60


@dataclass(frozen=True)
class Found:
    """A document that was found."""

    id: str | int
    distance: int | None
    """None: not computed, because the search ranks by score."""
    estimate: float | None
    """The similarity derived from the distance; None: the signer is not known."""
    similarity: float | None = None
    """The exact similarity; None: the texts are not available."""
    columns: dict[str, Any] | None = None
    """Other columns of the corpus; None: the corpus was not read."""
    score: int | None = None
    """Of a search by score alone."""


class Lines:
    """A JSON object for each query."""

    def begin(self, labels: Sequence[str | int]) -> None:
        """Nothing comes before the lines."""

    def query(self, label: str | int, found: Sequence[Found], exact: bool, *, masked: bool) -> None:
        """Print one."""
        results = []
        for one in found:
            numbers = {name: getattr(one, name) for name in _NUMBERS}
            result: dict[str, Any] = {"id": one.id}
            result |= {name: round(n, 4) for name, n in numbers.items() if n is not None}
            results.append({**result, "columns": one.columns} if one.columns else result)
        told = {"masked": True} if masked else {}
        say_json({"query": label, "exact": exact, **told, "results": results})


class Table:
    """A row for each result; columns are as wide as the first queries and results need."""

    def __init__(
        self,
        columns: Sequence[str],
        *,
        compared: bool,
        scored: bool = False,
        vectors: bool = False,
    ) -> None:
        """Scores take the place of distances and estimates; of vectors there are neither."""
        self._columns = columns
        self._numbers = [] if vectors else ["score"] if scored else ["distance", "estimate"]
        self._numbers += ["similarity"] if compared else []
        self._query_width = self._id_width = 0
        self._widths: list[int] = []

    def begin(self, labels: Sequence[str | int]) -> None:
        """Look at the queries that come next."""
        self._query_width = self._query_width or max(len(_shortened(one)) for one in labels)

    def query(self, label: str | int, found: Sequence[Found], exact: bool, *, masked: bool) -> None:
        """Print the results of one."""
        query, proven = _shortened(label), "yes" if exact else "no"
        names = [escape_terminal(one.id, LONGEST_ID) for one in found]
        values = [[_value(one.columns, name) for name in self._columns] for one in found]
        if not self._id_width:
            self._query_width = max(5, self._query_width)
            self._id_width = max(8, *map(len, names), 8)
            heads = [escape_terminal(name, _LONGEST_VALUE) for name in self._columns]
            self._widths = [max(map(len, column)) for column in zip(heads, *values, strict=True)]
            self._row("query", "id", self._numbers, "exact", heads)
        if not found:
            nothing = ["-"] * len(self._columns)
            self._row(query, "-", ["-"] * len(self._numbers), proven, nothing)
        for name, one, cells in zip(names, found, values, strict=True):
            numbers = [_number(getattr(one, number), number) for number in self._numbers]
            self._row(query, name, numbers, proven, cells)

    def _row(
        self, query: str, name: str, numbers: Sequence[str], exact: str, values: Sequence[str]
    ) -> None:
        cells = [f"{query:<{self._query_width}}", f"{name:<{self._id_width}}"]
        both = zip(numbers, self._numbers, strict=True)
        cells += [f"{shown:>{_NUMBERS[number][1]}}" for shown, number in both]
        cells.append(f"{exact:<5}" if values else exact)
        cells += [f"{one:<{width}}" for one, width in zip(values, self._widths, strict=True)]
        say("  ".join(cells).rstrip())


def _number(value: float | None, name: str) -> str:
    return "-" if value is None else format(value, _NUMBERS[name][0])


def _value(columns: dict[str, Any] | None, name: str) -> str:
    value = None if columns is None else columns.get(name)
    return "-" if value is None else escape_terminal(" ".join(str(value).split()), _LONGEST_VALUE)


def _shortened(label: str | int) -> str:
    query = escape_terminal(" ".join(str(label)[:LONGEST_ID].split()))
    return query if len(query) <= _LONGEST_QUERY else query[: _LONGEST_QUERY - 3] + "..."
