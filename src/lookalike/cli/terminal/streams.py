"""Standard input and output as files: `-`."""

from __future__ import annotations

import io
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from lookalike.cli.terminal.output import told_as_file_error, warn
from lookalike.corpora import Corpus
from lookalike.errors import ArgumentError, FileError
from lookalike.shown import shown_lines

STANDARD = "-"


def is_standard(name: object) -> bool:
    """Return whether a name stands for standard input or output; `./-` is a file."""
    return name is not None and str(name) == STANDARD


def check_read_once(names: Sequence[str | None]) -> None:
    """Refuse to read standard input twice: the second time nothing is left."""
    if sum(map(is_standard, names)) > 1:
        raise ArgumentError("standard input (-) is given twice, and can be read once; name a file")


def corpus_of_input(
    names: Sequence[str], format: str | None, within: Path | None, encoding: str | None = None
) -> Corpus:
    """Return the corpus of standard input and files beside it, in the order of their names."""
    from lookalike.corpora.standard_input import open_standard_input  # it takes some time to import

    check_read_once(names)
    if sys.stdin is None:
        raise FileError("standard input is closed; expected documents there, or a file")
    if sys.stdin.isatty():
        warn("reads standard input; Ctrl-D ends it", kind="")
    place = list(names).index(STANDARD)
    before, after = (list(map(Path, part)) for part in (names[:place], names[place + 1 :]))
    return open_standard_input(sys.stdin.buffer, before, after, format, within, encoding)


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Yield standard output for rows, which are written as they are, but not to a terminal: there
    they cannot do any harm.
    """
    if sys.stdout is None:
        raise FileError("standard output is closed; name a file")
    sys.stdout.flush()
    raw = sys.stdout.buffer
    with told_as_file_error():
        yield cast(BinaryIO, _Harmless(raw)) if sys.stdout.isatty() else raw
        raw.flush()


class _Harmless(io.RawIOBase):
    """Shows text on a terminal, with escapes for what would move its cursor."""

    def __init__(self, terminal: BinaryIO) -> None:
        self._terminal = terminal
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Write some of the text."""
        self._terminal.write(shown_lines(self._decoder.decode(bytes(data))).encode())
        return len(data)
