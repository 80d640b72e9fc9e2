"""What a job reads: a corpus, and perhaps an old one that it is compared with, as one frame."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from lookalike.corpora.columns import Columns
from lookalike.spark.numbering import ROW, numbered_columns
from lookalike.spark.preparing import Prepared

__all__ = ["Sources"]

_TEXT, _NAME = "lookalike_text", "lookalike_name"


@dataclass(frozen=True, eq=False)
class Sources:
    """A corpus that is to be de-duplicated, and all documents that have a part in it."""

    corpus: Prepared
    documents: Any
    """The corpus, or an old one and the corpus: a frame that tells where its rows come from."""
    compared: Columns
    """Of the documents."""
    left_out: dict[str, int]
    """Rows that are no documents, by kind."""
    has_old: bool = False

    @classmethod
    def of(cls, corpus: Prepared, old: Prepared | None) -> Sources:
        """Return a corpus, and an old one if there is one."""
        if old is None:
            return cls(corpus, corpus.frame, corpus.compared, corpus.left_out)
        from pyspark.sql import functions as sql

        def strings(named: Columns) -> list[Any]:
            name = sql.lit(None) if named.id is None else sql.col(f"`{named.id}`")
            text = sql.col(f"`{named.text}`")
            return [text.cast("string").alias(_TEXT), name.cast("string").alias(_NAME)]

        kinds = {part.name: part.dataType for part in corpus.frame.schema.fields}
        absent = [sql.lit(None).cast(kinds[name]).alias(name) for name in corpus.names]
        present = [sql.col(f"`{name}`") for name in corpus.names]
        sides = [
            numbered_columns(old.frame, [*absent, *strings(old.compared)], old=True),
            numbered_columns(corpus.frame, [*present, *strings(corpus.compared)]),
        ]
        if any(ROW in side.columns for side in sides):
            sides = [
                side if ROW in side.columns else side.withColumn(ROW, sql.lit(None).cast("long"))
                for side in sides
            ]
        compared = Columns(_TEXT, _NAME, corpus.columns.order)
        left_out = dict(Counter(corpus.left_out) + Counter(old.left_out))
        return cls(corpus, sides[0].union(sides[1]), compared, left_out, has_old=True)

    @property
    def plain_names(self) -> bool:
        """Whether documents are called by a column of the corpus, and by nothing else."""
        return self.corpus.columns.id is not None and not self.has_old
