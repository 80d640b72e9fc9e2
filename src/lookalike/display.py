"""How results are shown, and how they become tables: declared once, the same for all of them.

A result declares its columns. One short line, the table in notebooks, and the tables of Arrow,
pandas and polars follow from these. Values may come from untrusted documents: what is shown is
shortened and escaped, so that it is small and safe however large or odd a result is.
"""

from __future__ import annotations

import html
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import datetime
from functools import lru_cache
from itertools import islice
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from lookalike.shown import brief, escape_terminal, visible, without_surrogates

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

T = TypeVar("T")

_MOST_ROWS = 25
_MOST_ELEMENTS = 10
_MOST_OF_A_TEXT = 100
_MOST_OF_A_CELL = 200
_LONGEST_LINE = 1000
_NUMBERS: dict[Any, Any] = {int: np.int64, float: np.float64, bool: np.bool_}
_IDS = (str | int, object, Any)
"""Types of which a column is numbers if all values are; otherwise it is text."""


class Column(NamedTuple):
    """The values of a column, and their type as annotations write it, such as `int | None`.

    The type may also be the name of an Arrow type, such as "int64". Values for which Arrow has no
    plain type become text, dictionaries as JSON.
    """

    values: Sequence[Any] | NDArray[Any]
    kind: Any
    missing: NDArray[np.bool_] | None = None
    """Which values are not there; by default those that are None."""

    def all_there(self) -> Column:
        """Return the same values, none of which is missing."""
        return Column(self.values, _without_none(self.kind))


TableColumns = Mapping[str, NDArray[Any] | Column]
"""Columns of equal length by name; an array of numbers says its type itself."""


class Displayed:
    """A result: a short `repr`, a table in notebooks, and tables of Arrow, pandas and polars.

    A dataclass is a table of one row, with a column for each field. `Tabular` has many rows.
    """

    __slots__ = ()

    def to_numpy(self) -> dict[str, NDArray[Any]]:
        """Return the table as arrays of equal length, by the names of its columns.

        Missing numbers are masked, other missing values are None.
        """
        return {name: _numpy(column) for name, column in self._all_columns().items()}

    def to_arrow(self) -> pyarrow.Table:
        """Return the table as a PyArrow table.

        Ids are strings, or int64 if all of them are numbers. Similarities are float64. A missing
        value is null. Dictionaries, such as metadata, are JSON.
        """
        pa = _package("pyarrow", "to_arrow()", extra="")
        return pa.table({name: _arrow(pa, each) for name, each in self._all_columns().items()})

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table of `to_arrow` as a pandas DataFrame. Needs the extra `pandas`.

        Whole numbers and booleans that may be missing have the nullable types of pandas.
        """
        frames = _package("pandas", "to_pandas()")
        pa = _package("pyarrow", "to_pandas()", extra="")
        series = {}
        for name, column in self._all_columns().items():
            types = _pandas_types(frames, pa, nullable=_may_be_missing(column))
            series[name] = _arrow(pa, column).to_pandas(types_mapper=types.get)
        frame: pandas.DataFrame = frames.DataFrame(series)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return the table of `to_arrow` as a polars DataFrame. Needs the extra `polars`."""
        frame: polars.DataFrame = _package("polars", "to_polars()").from_arrow(self.to_arrow())
        return frame

    def __repr__(self) -> str:
        return one_line(type(self).__name__, self._values())

    def _repr_html_(self) -> str:
        values = self._values()
        rows = [{"field": name, "value": value} for name, value in values.items()]
        return html_table(repr(self), rows, len(rows))

    def _values(self) -> dict[str, object]:
        """Return what the line shows, by name: by default, fields that do not have defaults."""
        return record(self)

    def _all_columns(self) -> TableColumns:
        return record_columns(type(self), [self])


class Tabular(Displayed, ABC):
    """A result of many rows."""

    __slots__ = ()

    @abstractmethod
    def _columns(self, begin: int, end: int) -> TableColumns:
        """Return the columns of a range of rows."""

    @abstractmethod
    def _row_count(self) -> int:
        """Return the number of rows."""

    def _all_columns(self) -> TableColumns:
        return self._columns(0, self._row_count())

    def _repr_html_(self) -> str:
        count = self._row_count()
        rows = column_rows(self._columns(0, min(count, _MOST_ROWS)))
        return html_table(repr(self), rows, count)


class Records(Tabular, list[T]):
    """A list of records of one type that is also a table with a row for each."""

    def __init__(self, kind: type[T], records: Iterable[T] = ()) -> None:
        super().__init__(records)
        self._kind = kind

    def _columns(self, begin: int, end: int) -> TableColumns:
        return record_columns(self._kind, self[begin:end])

    def _row_count(self) -> int:
        return len(self)

    def __repr__(self) -> str:
        more = f", ... and {len(self) - _MOST_ELEMENTS:,} more" * (len(self) > _MOST_ELEMENTS)
        shown = ", ".join(map(repr, self[:_MOST_ELEMENTS]))
        return f"[{escape_terminal(shown, _LONGEST_LINE - 2 - len(more))}{more}]"


# Columns of records


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


def record_columns(kind: type, records: Sequence[Any]) -> dict[str, Column]:
    """Return a column for each field of records of one class, also if there are none.

    A class that has `_SHOWN` lists the fields and properties that are columns. A pair of numbers
    is a stretch, which makes two columns: its begin, and its end.
    """
    columns: dict[str, Column] = {}
    for name, declared in _declared(kind).items():
        values = [getattr(each, name) for each in records]
        if declared == tuple[int, int]:
            columns[f"{name}_begin"] = Column([begin for begin, _ in values], int)
            columns[f"{name}_end"] = Column([end for _, end in values], int)
        else:
            columns[name] = Column(values, declared)
    return columns


@lru_cache
def _declared(kind: type) -> dict[str, Any]:
    """Return the types of the columns of a record, by name."""
    types = get_type_hints(kind)
    shown = getattr(kind, "_SHOWN", None) or getattr(kind, "_fields", None)
    names = shown or [each.name for each in fields(kind) if each.repr]
    return {
        name: types[name] if name in types else get_type_hints(vars(kind)[name].fget)["return"]
        for name in names
    }


def id_kind(ids: Iterable[Any]) -> type:
    """Return the type of a column of ids: whole numbers if all of them are, otherwise text."""
    kinds = {_is_whole(one) for one in ids}
    return int if kinds == {True} else str


def _is_whole(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return -(2**63) <= int(value) < 2**63


def _is_too_large(value: object) -> bool:
    return value is not None and not _is_whole(value)


# Arrays and Arrow


def _package(name: str, purpose: str, extra: str | None = None) -> Any:
    from lookalike.checks import optional_module  # which imports errors, and these this module

    return optional_module(name, purpose, extra=extra)


def _numpy(column: NDArray[Any] | Column) -> NDArray[Any]:
    if isinstance(column, np.ndarray):
        return column
    values, kind, missing = column
    if isinstance(values, np.ndarray):
        return values if missing is None else np.ma.array(values, mask=missing)
    if kind in _NUMBERS and not (kind is int and any(map(_is_too_large, values))):
        return np.array(values, _NUMBERS[kind])
    array = np.empty(len(values), object)
    array[:] = values
    return array


def arrow_batch(columns: TableColumns) -> Any:
    """Return columns as a record batch of PyArrow."""
    pa = _package("pyarrow", "to_arrow()", extra="")
    return pa.record_batch({name: _arrow(pa, column) for name, column in columns.items()})


def _pandas_types(frames: Any, pa: Any, *, nullable: bool) -> dict[Any, Any]:
    """Return the types of pandas for those of Arrow, where they are not its defaults."""
    types = {}
    if nullable:
        types[pa.int64()], types[pa.int32()] = frames.Int64Dtype(), frames.Int32Dtype()
        types[pa.bool_()] = frames.BooleanDtype()
    text = frames.Series([""]).dtype
    if isinstance(text, frames.StringDtype):  # from pandas 3 on, but not if all values are missing
        types[pa.string()] = text
    return types


def _may_be_missing(column: NDArray[Any] | Column) -> bool:
    if not isinstance(column, Column):
        return False
    declared = _without_none(column.kind) != column.kind
    return declared or any(value is None for value in column.values)


def _arrow(pa: Any, column: NDArray[Any] | Column) -> Any:
    if isinstance(column, np.ndarray):
        return pa.array(column)
    values, kind = column.values, _without_none(column.kind)
    if isinstance(values, np.ndarray):
        return pa.array(values, _arrow_type(pa, kind), mask=column.missing)
    if kind in _IDS or (kind is int and any(map(_is_too_large, values))):
        kind = id_kind(value for value in values if value is not None)
    type = _arrow_type(pa, kind)
    if type is None:
        type, kind = pa.string(), str
    return pa.array([None if one is None else _plain(one, kind) for one in values], type)


def _without_none(kind: Any) -> Any:
    """Return a type without None."""
    if get_origin(kind) not in (Union, UnionType) or NoneType not in get_args(kind):
        return kind
    others = tuple(one for one in get_args(kind) if one is not NoneType)
    return Union[others]  # noqa: UP007  # of a tuple of types


def _arrow_type(pa: Any, kind: Any) -> Any:
    """Return the Arrow type of a Python type; None if it has no plain one."""
    plain = {
        str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(),
        np.int32: pa.int32(), datetime: pa.timestamp("us", "UTC"),
    }  # fmt: skip
    if isinstance(kind, str):
        return pa.type_for_alias(kind)
    if kind in plain:
        return plain[kind]
    inside = {one for one in get_args(kind) if one is not Ellipsis}
    if get_origin(kind) in (list, tuple) and len(inside) == 1:
        element = _arrow_type(pa, *inside)
        return None if element is None else pa.list_(element)
    return None


def _plain(value: Any, kind: Any) -> Any:
    """Return a value as Arrow takes it."""
    if kind is str:
        return without_surrogates(_text(value))
    if get_origin(kind) in (list, tuple):
        return [_plain(one, get_args(kind)[0]) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _text(value: Any) -> str:
    """Return a value as text: containers as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping | list | tuple | set | frozenset | np.ndarray):
        return json.dumps(_for_json(value), ensure_ascii=False)
    return str(value)


def _for_json(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, Mapping):
        return {_text(name): _for_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_for_json(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value if value is None or isinstance(value, str | int | float) else str(value)


# One line, and HTML


def column_rows(columns: TableColumns) -> list[dict[str, object]]:
    """Return rows as cells by column; columns without any value are left out."""
    cells = {name: _cells(column) for name, column in columns.items()}
    names = [name for name, values in cells.items() if any(_is_there(one) for one in values)]
    count = max((len(values) for values in cells.values()), default=0)
    return [{name: cells[name][row] for name in names} for row in range(count)]


def _cells(column: NDArray[Any] | Column) -> list[Any]:
    values = column.values if isinstance(column, Column) else column
    missing = column.missing if isinstance(column, Column) else None
    if missing is None:
        return list(values)
    return [None if gone else one for one, gone in zip(values, missing, strict=True)]


def _is_there(value: object) -> bool:
    return value is not None and not (isinstance(value, str | dict | tuple | list) and not value)


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
