"""Rows that are not compared as they are: pages, and corpora of which not all is wanted.

Pages are read once, and what is in them lies in `work` with the other columns, in which the rows
are as they were; whatever comes after reads that.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from lookalike.corpora.columns import Columns, columns_for
from lookalike.corpora.filters import Filters
from lookalike.errors import ArgumentError
from lookalike.features import FeatureKind
from lookalike.pages import PageLimits
from lookalike.pages.extract import check_installed
from lookalike.spark.columns import find_columns
from lookalike.spark.numbering import FILE, ORDER_COLUMNS, ROW, numbered_columns
from lookalike.spark.packed import map_arrow
from lookalike.spark.steps.prepare import COMPARED, LEFT_OUT, Preparation, prepare_rows
from lookalike.spark.work import SparkWork

__all__ = ["Prepared", "Wishes"]


@dataclass(frozen=True)
class Prepared:
    """Rows that are ready to be compared."""

    frame: Any
    columns: Columns
    compared: Columns
    """The same, but for the text, if it is another one that is compared."""
    left_out: dict[str, int] = field(default_factory=dict)
    """How many are not wanted, or cannot be read, by kind."""

    @property
    def names(self) -> list[str]:
        """The columns that are the user's."""
        own = (*ORDER_COLUMNS, COMPARED, LEFT_OUT)
        return [name for name in self.frame.columns if name not in own]


@dataclass(frozen=True)
class Wishes:
    """Which column has pages, what these may cost, and which documents are wanted."""

    html: str | None
    limits: PageLimits | None
    filters: Filters

    def __post_init__(self) -> None:
        if self.limits is not None and not isinstance(self.limits, PageLimits):
            raise ArgumentError(f"page_limits are {self.limits!r}; expected la.PageLimits(...)")
        if self.limits is not None and self.html is None:
            raise ArgumentError("the DataFrame has no web pages; leave page_limits out")
        if self.html is not None or self.filters.language is not None:
            check_installed()

    def for_old(self, frame: Any) -> Wishes:
        """Return what concerns an old corpus, whose pages may be texts by now."""
        has_pages = self.html is not None and self.html in frame.columns
        html, limits = (self.html, self.limits) if has_pages else (None, None)
        return Wishes(html, limits, self.filters.for_old())

    def prepared(
        self,
        work: SparkWork,
        frame: Any,
        named: tuple[str | None, str | None, str | None],
        features: FeatureKind,
        *,
        optional: bool = False,
    ) -> Prepared:
        """Return the rows of a frame as they are compared. The columns `named` are those for text,
        id, and what decides who stays; `optional`: they are taken if they are there.
        """
        if self.html is None and not self.filters.any:
            columns = _find(frame, named, None, optional)
            return Prepared(frame, columns, columns)
        how = Preparation(frame.columns, self.html, self.limits, self.filters, Columns("", None))
        corpus = how.corpus(iter(()))
        schema = self._schema(frame, how)
        empty = frame.sparkSession.createDataFrame([], schema)
        columns = _find(empty, named, corpus.page_text, optional)
        how = replace(how, columns=columns_for(corpus, columns, features))
        if how.own_text:
            schema = schema.add(COMPARED, "string")
        schema = schema.add(LEFT_OUT, "string")
        for name in ORDER_COLUMNS:
            schema = schema.add(name, "string" if name == FILE else "long")
        rows = numbered_columns(frame, [f"`{name}`" for name in frame.columns])
        made = work.keep(map_arrow(rows, prepare_rows(how), schema))
        with work.timed("read"):
            told = made.where(f"{LEFT_OUT} is not null").select(LEFT_OUT, ROW).collect()
        left_out: Counter[str] = Counter()
        for reason, count in told:
            left_out[reason] += count
        compared = replace(columns, text=COMPARED) if how.own_text else columns
        return Prepared(made.where(f"{LEFT_OUT} is null"), columns, compared, dict(left_out))

    @staticmethod
    def _schema(frame: Any, how: Preparation) -> Any:
        """Return the columns of rows that are ready, with their types."""
        from pyspark.sql.types import ArrayType, StringType, StructField, StructType

        # What tells of rows that are not wanted has nulls, whatever the frame has.
        known = {
            part.name: StructField(part.name, part.dataType)
            for part in frame.schema.fields
            if part.name != how.html
        }
        link = StructType([StructField(name, StringType()) for name in ("url", "text")])
        links = getattr(how.corpus(iter(())), "reading", None)
        links_name = None if links is None else links.names["links"]
        return StructType(
            [
                known.get(name)
                or StructField(name, ArrayType(link) if name == links_name else StringType())
                for name in how.kept
            ]
        )


def _find(
    frame: Any,
    named: tuple[str | None, str | None, str | None],
    page_text: str | None,
    optional: bool,
) -> Columns:
    if optional:
        text, id, order = (name if name in frame.columns else None for name in named)
    else:
        text, id, order = named
    return find_columns(frame, text or page_text, id, order)
