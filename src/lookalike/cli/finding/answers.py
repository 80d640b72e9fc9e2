"""What `lookalike search` prints: a table for people, an object a line for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lookalike.cli.terminal import say, say_json
from lookalike.shown import escape_terminal

LONGEST_ID = 200
"""Characters that are shown of an id; JSON has them all."""

_LONGEST_QUERY = 40
_LONGEST_VALUE = 60


@dataclass(frozen=True)
class Found:
    """A document that was found."""

    id: str | int
    distance: int | None
    """None: nobody computed it, and the score is all that is known."""
    estimate: float | None
    """The similarity that the distance suggests; None: nobody knows the signer."""
    similarity: float | None = None
    """The exact one; None: the texts are not at hand."""
    columns: dict[str, Any] | None = None
    """What else the corpus has of it; None: it was not looked at."""
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
            result: dict[str, Any] = {"id": one.id}
            if one.distance is not None:
                result["distance"] = one.distance
            if one.score is not None:
                result["score"] = one.score
            if one.estimate is not None:
                result["estimate"] = round(one.estimate, 4)
            if one.similarity is not None:
                result["similarity"] = round(one.similarity, 4)
            if one.columns:
                result["columns"] = one.columns
            results.append(result)
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
        self._columns = columns
        self._compared = compared
        self._vectors = vectors
        """Whether there are similarities alone."""
        self._scored = scored
        """Whether scores take the place of distances and estimates."""
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
            measure = "score" if self._scored else "distance"
            self._row("query", "id", measure, "estimate", "similarity", "exact", heads)
        if not found:
            self._row(query, "-", "-", "-", "-", proven, ["-"] * len(self._columns))
        for name, one, cells in zip(names, found, values, strict=True):
            estimate = "-" if one.estimate is None else f"{one.estimate:.2f}"
            similarity = "-" if one.similarity is None else f"{one.similarity:.4f}"
            measure = str(one.score if self._scored else one.distance)
            self._row(query, name, measure, estimate, similarity, proven, cells)

    def _row(
        self,
        query: str,
        name: str,
        distance: str,
        estimate: str,
        similarity: str,
        exact: str,
        values: Sequence[str],
    ) -> None:
        cells = [f"{query:<{self._query_width}}", f"{name:<{self._id_width}}"]
        if not self._vectors:
            cells.append(f"{distance:>8}")
        if not self._scored and not self._vectors:
            cells.append(f"{estimate:>8}")
        if self._compared:
            cells.append(f"{similarity:>10}")
        cells.append(f"{exact:<5}" if values else exact)
        cells += [f"{one:<{width}}" for one, width in zip(values, self._widths, strict=True)]
        say("  ".join(cells).rstrip())


def _value(columns: dict[str, Any] | None, name: str) -> str:
    value = None if columns is None else columns.get(name)
    return "-" if value is None else escape_terminal(" ".join(str(value).split()), _LONGEST_VALUE)


def _shortened(label: str | int) -> str:
    query = escape_terminal(" ".join(str(label)[:LONGEST_ID].split()))
    return query if len(query) <= _LONGEST_QUERY else query[: _LONGEST_QUERY - 3] + "..."
