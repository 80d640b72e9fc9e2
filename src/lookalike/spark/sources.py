"""What a job reads: a corpus, and perhaps an old one that it is compared with, as one frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lookalike.corpora.columns import Columns
from lookalike.spark.columns import find_columns
from lookalike.spark.numbering import ORDER_COLUMNS, numbered_columns

__all__ = ["Sources"]

_TEXT, _NAME = "lookalike_text", "lookalike_name"


@dataclass(frozen=True, eq=False)
class Sources:
    """A corpus that is to be de-duplicated, and all documents that have a part in it."""

    frame: Any
    """The corpus, with all its columns."""
    columns: Columns
    """Of the corpus."""
    documents: Any
    """The corpus, or an old one and the corpus: a frame that tells where its rows come from."""
    compared: Columns
    """Of the documents."""
    has_old: bool = False

    @classmethod
    def of(cls, frame: Any, columns: Columns, old: Any | None) -> Sources:
        """Return a corpus, and an old one if there is one.

        Its columns are called as those of the corpus, or are the obvious ones, as in the local job.
        """
        if old is None:
            return cls(frame, columns, frame, columns)
        from pyspark.sql import functions as sql

        text, id = (name if name in old.columns else None for name in (columns.text, columns.id))
        of_old = find_columns(old, text, id, None)

        def strings(named: Columns) -> list[Any]:
            name = sql.lit(None) if named.id is None else sql.col(f"`{named.id}`")
            text = sql.col(f"`{named.text}`")
            return [text.cast("string").alias(_TEXT), name.cast("string").alias(_NAME)]

        kinds = {part.name: part.dataType for part in frame.schema.fields}
        of_frame = [name for name in frame.columns if name not in ORDER_COLUMNS]
        absent = [sql.lit(None).cast(kinds[name]).alias(name) for name in of_frame]
        present = [sql.col(f"`{name}`") for name in of_frame]
        both = numbered_columns(old, [*absent, *strings(of_old)], old=True).union(
            numbered_columns(frame, [*present, *strings(columns)])
        )
        return cls(frame, columns, both, Columns(_TEXT, _NAME, columns.order), has_old=True)

    @property
    def plain_names(self) -> bool:
        """Whether documents are called by a column of the corpus, and by nothing else."""
        return self.columns.id is not None and not self.has_old

    @property
    def names(self) -> list[str]:
        """The columns of the corpus that are the user's."""
        return [name for name in self.frame.columns if name not in ORDER_COLUMNS]
