"""Write the rows of a corpus again."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from lookalike.checks import flag
from lookalike.corpora import Corpus
from lookalike.corpora.base import limited
from lookalike.corpora.writing import local_file, write_corpus
from lookalike.errors import ArgumentError


class _Read(Protocol):
    """A result that knows the corpus that was read."""

    @property
    def source(self) -> Corpus: ...
    @property
    def source_identity(self) -> list[Any] | None: ...
    @property
    def skip_bad(self) -> bool: ...
    @property
    def limits(self) -> tuple[int | None, int | None]: ...


def write_rows(result: _Read, path: Any, in_place: bool, **rows: Any) -> int:
    """Write rows of the source, which must be unchanged; `rows` are those of `write_corpus`."""
    if isinstance(path, io.TextIOBase):
        raise ArgumentError("path is a stream of text; expected one of bytes, such as its buffer")
    opened: AbstractContextManager[Any] = (
        nullcontext(path) if hasattr(path, "write") else local_file(path, result.source)
    )
    with opened as target, limited(*result.limits):
        result.source.check_identity(result.source_identity)
        return write_corpus(
            result.source,
            target,
            skip_bad=result.skip_bad,
            identity=result.source_identity,
            in_place=flag("in_place", in_place),
            **rows,
        )
