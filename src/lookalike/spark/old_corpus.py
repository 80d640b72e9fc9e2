"""An old corpus, which a new one is compared with: a frame, or files that Spark reads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from lookalike.corpora.columns import Columns
from lookalike.corpora.formats import format_of
from lookalike.errors import ArgumentError, Said
from lookalike.shown import shown
from lookalike.spark.columns import frame_of
from lookalike.spark.files import SparkCorpus

__all__ = ["OldFiles", "check_old", "old_frame"]

_SIGNATURES = ".lookalike"


@dataclass
class OldFiles:
    """Files of an old corpus. `format` is that of the new one, and theirs if their names tell none;
    `bad` are the lines that were left out.
    """

    path: str
    format: str | None = None
    skip_bad: bool = False
    bad: int = 0

    def frame(self, spark: Any, new: Columns, html: str | None) -> Any:
        """Return what is needed of them: columns that are called as those of the new corpus, or
        are the obvious ones, or all if one has pages.
        """
        check_old(self.path)
        corpus = SparkCorpus.read(
            spark,
            self.path,
            format=format_of(PurePosixPath(self.path)) or self.format,  # type: ignore[arg-type]
            text=new.text,
            id=new.id,
            order=None,
            whole=False,
            skip_bad=self.skip_bad,
            html=html,
            old=True,
        )
        self.bad = corpus.bad
        return corpus.frame


def old_frame(spark: Any, against: Any, new: Columns, html: str | None = None) -> Any | None:
    """Return what `against` names as a frame; None if it names nothing. `html` is a column that may
    have pages.
    """
    if against is None:
        return None
    if isinstance(against, str | os.PathLike):
        against = OldFiles(os.fspath(against))
    if isinstance(against, OldFiles):
        return against.frame(spark, new, html)
    return frame_of("against", against)


def check_old(path: str) -> None:
    """Refuse signatures without documents."""
    if PurePosixPath(path).suffix == _SIGNATURES:
        raise ArgumentError(
            Said("against"),
            f" is {shown(path)}, which has signatures alone, and Spark compares documents; give "
            "the old corpus itself",
        )
