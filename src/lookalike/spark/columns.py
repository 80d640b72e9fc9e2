"""Which columns of a DataFrame are what, and in which order its rows are."""

from __future__ import annotations

from typing import Any

from lookalike.checks import instance, optional_module
from lookalike.corpora.columns import ID_GUESSES, TEXT_GUESSES, Columns
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError, Said
from lookalike.shown import shown
from lookalike.suggestions import did_you_mean

__all__ = ["deciding_column", "find_columns", "frame_of", "order_frame"]

_WHOLE = ("tinyint", "smallint", "int", "bigint", "boolean", "date", "timestamp", "timestamp_ntz")


def frame_of(name: str, frame: Any) -> Any:
    """Return a DataFrame of PySpark, or raise."""
    module = optional_module("pyspark.sql", "lookalike.spark", extra="spark")
    frame = instance(name, frame, module.DataFrame, "a DataFrame of PySpark")
    if not hasattr(frame, "_jdf"):
        raise ArgumentError(
            f"{name} is a DataFrame of Spark Connect, which sends nothing to workers but plans; "
            "expected one of a session on a master"
        )
    return frame


def find_columns(frame: Any, text: str | None, id: str | None, order: str | None) -> Columns:
    """Return the columns to read: those named, or the only obvious ones, as the local job does."""
    names = frame.columns
    for what, name in (("text", text), ("id", id), ("keep", order)):
        if name is not None and name not in names:
            raise ArgumentError(
                Said(what),
                f" names the column {shown(str(name))!r}; the DataFrame has "
                f"{', '.join(map(shown, names))}{did_you_mean(str(name), names)}",
            )
    chosen = text or _guess(names, TEXT_GUESSES) or (names[0] if len(names) == 1 else None)
    if chosen is None:
        raise ArgumentError(
            f"the DataFrame has the columns {', '.join(map(shown, names))}; say which one has the "
            "text",
            Said(" with text=", " with --text COLUMN"),
        )
    kind = dict(frame.dtypes)[chosen]
    if kind not in ("string", "void"):
        raise ArgumentError(
            Said("text"), f" is the column {shown(chosen)!r} of type {kind}; expected text"
        )
    return Columns(chosen, id or _guess(names, ID_GUESSES), order)


def _guess(names: list[str], guesses: tuple[str, ...]) -> str | None:
    lower = {name.lower(): name for name in reversed(names)}
    return next((lower[guess] for guess in guesses if guess in lower), None)


def deciding_column(frame: Any, settings: DedupSettings, columns: Columns) -> list[Any]:
    """Return the column that decides who survives, if one does, as numbers in its order.

    Text is one of numbers if every one is, as in the local job; other text has no numbers.
    """
    from pyspark.sql import functions as sql

    if columns.order is None:
        return []
    kind = dict(frame.dtypes)[columns.order]
    column = sql.col(f"`{columns.order}`")
    if kind in ("float", "double"):
        return [column.cast("double")]
    if kind in ("date",):
        return [sql.datediff(column, sql.lit("1970-01-01").cast("date")).cast("long")]
    if kind in ("timestamp", "timestamp_ntz"):
        return [sql.unix_micros(column.cast("timestamp"))]
    if kind in _WHOLE:
        return [column.cast("long")]
    if kind == "string":
        for number in ("bigint", "double"):
            made = column.try_cast(number)
            if frame.where(column.isNotNull() & made.isNull()).limit(1).count() == 0:
                return [made]
    raise ArgumentError(
        Said("keep"),
        f" is {settings.keep!r}, a column of {'text' if kind == 'string' else kind}; on Spark "
        "expected one of numbers, dates or times: add one that has the order you want",
    )


def order_frame(frame: Any, order: str | None) -> Any:
    """Return the frame in the order of a column, or as it is."""
    if order is None:
        return frame
    if order not in frame.columns:
        raise ArgumentError(
            Said("order"),
            f" names the column {shown(str(order))!r}; the DataFrame has "
            f"{', '.join(map(shown, frame.columns))}{did_you_mean(str(order), frame.columns)}",
        )
    repeated = frame.groupBy(f"`{order}`").count().where("count > 1").limit(1).collect()
    if repeated:
        raise ArgumentError(
            Said("order"),
            f" is {shown(order)!r}, which has {shown(str(repeated[0][0]))} more than once; "
            "expected a column that tells rows apart: add one",
        )
    return frame.orderBy(f"`{order}`")
