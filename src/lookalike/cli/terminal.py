"""What a command prints, and standard input and output as files.

Everything that is printed goes through here, where control characters are escaped.
"""

from __future__ import annotations

import io
import os
import select
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from typing import IO, Any, BinaryIO, cast

from lookalike.checks import optional_module
from lookalike.errors import ArgumentError, FileError, MissingDependencyError
from lookalike.shown import escape_json, escape_lines, escape_terminal


def say(text: object = "", *, end: str = "\n", file: IO[str] | None = None) -> None:
    """Print lines, without control characters; an id or a name went through `escape_terminal`."""
    _write(escape_lines(text) + end, file)


def say_json(value: Any, *, file: IO[str] | None = None) -> None:
    """Print a value as JSON on one line: for machines as it is, and harmless to a terminal."""
    _write(escape_json(value) + "\n", file)


def say_rows(
    columns: Mapping[str, Sequence[object]],
    *,
    as_json: bool = False,
    first: bool = True,
    empty: str = "-",
) -> None:
    """Print rows with tabs, after the names of their columns if they are the first, or as JSON."""
    if first and not as_json:
        say("\t".join(columns))
    for row in zip(*columns.values(), strict=True):
        if as_json:
            say_json(dict(zip(columns, row, strict=True)))
        else:
            say("\t".join(empty if value is None else escape_terminal(value) for value in row))


def tell(as_json: bool, value: Any, text: object) -> None:
    """Print what was done: a value as JSON, or a text."""
    if as_json:
        say_json(value)
    else:
        say(text)


def warn(text: object, kind: str = "warning: ") -> None:
    """Print a message to standard error."""
    say(f"lookalike: {kind}{escape_terminal(text)}", file=sys.stderr)


def warn_left_out(count: int, examples: Sequence[str]) -> None:
    """Print how many rows or files were left out, and some of them with the reason."""
    if count:
        what = "row or file was" if count == 1 else "rows or files were"
        warn(f"{count:,} {what} left out")
    for example in examples:
        warn(example, kind="left out: ")
    if count > len(examples):
        warn(f"{count - len(examples):,} more", kind="left out: ")


def _write(text: str, file: IO[str] | None) -> None:
    """Write to a stream, by default standard output; nothing is written if that is closed."""
    stream = sys.stdout if file is None else file
    if stream is not None:
        with told_as_file_error():
            stream.write(text)


@contextmanager
def told_as_file_error() -> Iterator[None]:
    """Turn an error of standard output into ours, except that its reader is gone."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FileError(f"standard output cannot be written: {error.strerror or error}") from error


def flush_output() -> None:
    """Write what standard output still holds, so that an error is reported and not lost."""
    if sys.stdout is not None:
        with told_as_file_error():
            sys.stdout.flush()


def take_every_character() -> None:
    """Let output take characters that its encoding does not have, as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def output_is_gone() -> bool:
    """Return whether the reader of standard output has closed it."""
    try:
        waiting = select.poll()
        waiting.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in waiting.poll(0))
    except (OSError, ValueError, AttributeError):
        return False


def forget(stream: IO[str]) -> None:
    """Let what a stream still holds go nowhere, because it cannot be written any more."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def forget_if_broken(stream: IO[str] | None) -> None:
    """Flush a stream or forget what it holds: Python ends with status 120 if it cannot flush."""
    if stream is not None:
        try:
            stream.flush()
        except OSError:
            forget(stream)
        except ValueError:  # it is closed
            pass


@contextmanager
def forgiving_errors() -> Iterator[None]:
    """Let no write to standard error fail: a message that is not read must not end the work.

    Its reader may be dead, its terminal closed, its disk full, or it was closed from the start.
    """
    given = sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        try:
            with redirect_stderr(cast(IO[str], _Forgiving(given or nowhere))):
                yield
        finally:
            forget_if_broken(given)


class _Forgiving:
    """A stream of which no write fails."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, if that is possible."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, if that is possible."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Return whether this is a terminal."""
        try:
            return self._stream.isatty()
        except ValueError:  # it is closed
            return False


STANDARD = "-"


def is_standard(name: object) -> bool:
    """Return whether a name is that of standard input or output; `./-` is a file."""
    return name is not None and str(name) == STANDARD


def check_read_once(names: Sequence[str | None]) -> None:
    """Refuse to read standard input twice: the second time nothing is left."""
    if sum(map(is_standard, names)) > 1:
        raise ArgumentError(
            "standard input (-) is given twice, but can be read only once; use a file"
        )


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Yield standard output for rows; on a terminal, their control characters are escaped."""
    if sys.stdout is None:
        raise FileError("standard output is closed; write to a file")
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
        self._terminal.write(escape_lines(self._decoder.decode(bytes(data))).encode())
        return len(data)


_SIGNS = {"delete": ("[-", "-]"), "insert": ("{+", "+}"), "begin": (">>", ""), "end": ("", "<<")}
_STYLES = {"delete": "red strike", "insert": "bold green", "found": "bold"}


def say_marked(parts: Sequence[tuple[str, str]], color: str) -> None:
    """Print parts of a text, each of a kind, one after the other, and end the line.

    Kinds are "equal", "delete", "insert" and "found", which is equal and stands out; "begin" and
    "end" are signs for where there are no colors, and have no text.
    """
    if not _wants_color(color) or not _say_colored(parts):
        for kind, text in parts:
            before, after = _SIGNS.get(kind, ("", ""))
            space = text[len(text.rstrip()) :] if before or after else ""
            say(f"{before}{text[: len(text) - len(space)]}{after}{space}", end="")
    say()


def _wants_color(color: str) -> bool:
    if color == "auto":
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return color == "always"


def _say_colored(parts: Sequence[tuple[str, str]]) -> bool:
    """Print with colors; return False where rich is not installed."""
    try:
        rich: Any = optional_module("rich.text", "a colored text", extra="")
        console: Any = optional_module("rich.console", "a colored text", extra="")
    except MissingDependencyError:
        return False
    styled = [rich.Text(escape_lines(text), _STYLES.get(kind, "")) for kind, text in parts]
    console.Console(force_terminal=True, soft_wrap=True).print(rich.Text().join(styled), end="")
    return True
