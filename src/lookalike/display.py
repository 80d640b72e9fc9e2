"""How results are shown: one short line, and a table in notebooks.

Values may come from untrusted documents. They are shortened and escaped, so that what is shown is
small and safe however large or odd a result is.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from itertools import islice
from typing import Any

from lookalike.shown import brief, escape_terminal, visible

Table = tuple[Sequence[Mapping[str, object]], int]
"""Rows as cells by the name of their column, and the number of all rows; more may follow."""

_MOST_ROWS = 25  # no record has more fields
_MOST_ELEMENTS = 10
_MOST_OF_A_TEXT = 100
_MOST_OF_A_CELL = 200
_LONGEST_LINE = 1000


class Displayed:
    """A result with a short `repr`, and a table in notebooks.

    By default, both show the fields of a dataclass that do not have their defaults.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return one_line(type(self).__name__, self._values())

    def _repr_html_(self) -> str:
        return html_table(repr(self), *self._table(_MOST_ROWS))

    def _values(self) -> dict[str, object]:
        """Return what the line shows, by name."""
        return record(self)

    def _table(self, most: int) -> Table:
        """Return at least the first `most` rows of the table, and the number of all its rows."""
        return field_rows(self._values())


def record(result: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that are not hidden and do not have their defaults."""
    values = {}
    for each in fields(result):
        value = getattr(result, each.name)
        default = each.default
        if default is MISSING and each.default_factory is not MISSING:
            default = each.default_factory()
        if each.repr and (type(value) is not type(default) or value != default):
            values[each.name] = value
    return values


def field_rows(values: Mapping[str, object]) -> Table:
    """Return a table with a row for each field."""
    return [{"field": name, "value": value} for name, value in values.items()], len(values)


def column_rows(columns: Mapping[str, Iterable[object]]) -> list[Mapping[str, object]]:
    """Return the rows of columns of equal length."""
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def one_line(name: str, values: Mapping[str, object]) -> str:
    """Return how an object of the class `name` with these values is shown."""
    inside = ", ".join(f"{field}={short(value)}" for field, value in values.items())
    return escape_terminal(f"{name}({inside})", _LONGEST_LINE)


def short(value: Any, depth: int = 3) -> str:
    """Return a value as Python writes it, but not all of it; of arrays, type and shape."""
    if isinstance(value, str | bytes):
        return repr(value[:_MOST_OF_A_TEXT]) + ("..." if len(value) > _MOST_OF_A_TEXT else "")
    if isinstance(value, float):
        text = f"{value:.6g}"
        return f"{text}.0" if text.lstrip("-").isdigit() else text
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        if not value.shape:
            return short(value.item(), 0)
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    if not isinstance(value, dict | list | tuple | set | frozenset):
        return brief(value)
    if not depth:
        return "..."
    parts = [
        f"{short(each, 0)}: {short(value[each], depth - 1)}"
        if isinstance(value, dict)
        else short(each, depth - 1)
        for each in islice(value, _MOST_ELEMENTS)
    ]
    if len(value) > _MOST_ELEMENTS:
        parts.append("...")
    if isinstance(value, list):
        return f"[{', '.join(parts)}]"
    if isinstance(value, tuple):
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return f"{{{', '.join(parts)}}}"


def html_table(caption: str, rows: Sequence[Mapping[str, object]], count: int) -> str:
    """Return a caption and a table of the first rows; `count` is the number of all rows."""
    shown = rows[:_MOST_ROWS]
    names = list(dict.fromkeys(name for row in shown for name in row))
    lines = [f"<div><p><code>{_escaped(caption[:_LONGEST_LINE])}</code></p>"]
    if shown:
        heads = "".join(f"<th>{_escaped(name)}</th>" for name in names)
        lines += [f'<table class="dataframe"><thead><tr>{heads}</tr></thead><tbody>']
        for row in shown:
            cells = "".join(f"<td>{_cell(row.get(name))}</td>" for name in names)
            lines.append(f"<tr>{cells}</tr>")
        lines.append("</tbody></table>")
    if count > len(shown):
        lines.append(f"<p>… and {count - len(shown):,} more</p>")
    return "\n".join([*lines, "</div>"])


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else short(value)
    return _escaped(text[:_MOST_OF_A_CELL] + ("…" if len(text) > _MOST_OF_A_CELL else ""))


def _escaped(text: str) -> str:
    return html.escape(visible(text))
