"""An old corpus, which a new one is compared with: a frame, or files that Spark reads."""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from typing import Any

from lookalike.corpora.columns import Columns
from lookalike.corpora.formats.names import format_of
from lookalike.errors import ArgumentError, Said
from lookalike.shown import shown
from lookalike.spark.columns import frame_of
from lookalike.spark.files import SparkCorpus

__all__ = ["check_old", "old_frame", "read_old"]

_SIGNATURES = ".lookalike"


def old_frame(spark: Any, against: Any, new: Columns) -> Any | None:
    """Return what `against` names as a frame; None if it names nothing."""
    if against is None:
        return None
    if isinstance(against, str | os.PathLike):
        return read_old(spark, os.fspath(against), new, format=None, skip_bad=False).frame
    return frame_of("against", against)


def read_old(
    spark: Any, path: str, new: Columns, *, format: str | None, skip_bad: bool
) -> SparkCorpus:
    """Open the files of an old corpus, of which the columns are called as those of the new one, or
    are the obvious ones. `format` is that of the new one, and theirs if their names tell none.
    """
    check_old(path)
    return SparkCorpus.read(
        spark,
        path,
        format=format_of(PurePosixPath(path)) or format,  # type: ignore[arg-type]
        text=new.text,
        id=new.id,
        order=None,
        whole=False,
        skip_bad=skip_bad,
        old=True,
    )


def check_old(path: str) -> None:
    """Refuse signatures without documents."""
    if PurePosixPath(path).suffix == _SIGNATURES:
        raise ArgumentError(
            Said("against"),
            f" is {shown(path)}, which has signatures alone, and Spark compares documents; give "
            "the old corpus itself",
        )
