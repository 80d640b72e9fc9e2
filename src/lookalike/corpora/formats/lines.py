"""Files read line by line, in batches of lines; plain text with one document per line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import (
    BATCH_BYTES,
    KeptRows,
    Problems,
    Rows,
    arrow_flags,
    arrow_positions,
    arrow_texts,
    chosen_columns,
    compute,
    pa,
)
from lookalike.corpora.encodings import ASCII, NAME_ENCODING, UTF8, Encodings
from lookalike.corpora.formats import FileCorpus, Format, Target, open_text
from lookalike.errors import FileError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NEWLINE = ord("\n")
_PIECE = 1 << 20  # bytes in which line ends are counted, to limit the lines of a batch
_FEW = 16  # one of so many lines: others are written as slices
_MOST_ENDS = 1 << 17  # line ends after which a batch ends: short lines take more memory


@dataclass(frozen=True)
class LineBatch:
    """Consecutive lines of a file, with their line ends; the last of a file may have none."""

    path: Path
    first: int  # the number of the first line, counted from 1
    data: NDArray[np.uint8]  # in UTF-8, at least up to the end of the last line
    ends: NDArray[np.int64]
    done: float  # bytes of the file read so far, as they are on disk
    encoding: str = UTF8  # of the file

    def __len__(self) -> int:
        return len(self.ends)

    def line(self, index: int) -> int:
        """Return the number in the file of line `index` of this batch."""
        return self.first + index

    def where(self, index: int) -> str:
        """Return the place of line `index` of this batch for messages."""
        return f"{self.path}, line {self.line(index)}"

    def decoded(self, problems: Problems) -> Iterator[tuple[int, str]]:
        """Yield the lines that could be decoded, with their indexes; report the others."""
        for index, raw in enumerate(self.lines.to_pylist()):
            try:
                yield index, raw.decode()
            except UnicodeDecodeError:
                problems.report(self.where(index), self.undecodable())

    def undecodable(self) -> str:
        """Return what is wrong with a line that could not be decoded."""
        name = "UTF-8" if self.encoding in (UTF8, ASCII) else self.encoding
        return f"is not valid {name}; if the file has another encoding, {NAME_ENCODING}"

    @cached_property
    def lines(self) -> Any:
        """The lines as Arrow, over the same memory."""
        offsets = np.concatenate([[0], self.ends])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)


class Lines:
    """Finds where the lines of a file end; subclasses find records instead."""

    begin: Any = None  # the state at the beginning of a file
    batch: type[LineBatch] = LineBatch
    marks: bytes = b"\n"  # the bytes at which lines may end or quotes begin

    def ends(
        self, data: NDArray[np.uint8], state: Any, at_end: bool
    ) -> tuple[NDArray[np.int64], Any]:
        """Return where lines end in the data, and the state after it."""
        ends = _native.line_ends(data)
        return ends[: len(ends) - int(len(ends) > 0 and data[-1] != _NEWLINE)], state

    def newlines(self, data: NDArray[np.uint8], ends: NDArray[np.int64]) -> int:
        """Return how many newlines are in the data up to the last end; not of a file's end."""
        return len(ends)


def line_batches(
    path: Path,
    most: int,
    problems: Problems,
    lines: Lines | None = None,
    encodings: Encodings | None = None,
) -> Iterator[LineBatch]:
    """Yield all lines of a file in UTF-8; report lines of more than `most` bytes."""
    lines, encodings = lines or Lines(), encodings or Encodings()
    stream, file = open_text(path, encodings.given)
    first = 1
    rest = np.empty(0, np.uint8)  # of a line whose end has not been seen
    too_long = False  # the beginning of that line was dropped
    with file:
        begun = at_end = False
        position = 0
        state = lines.begin
        while not at_end:
            # A line longer than a batch is read in ever larger steps: each byte is copied twice.
            room = min(max(BATCH_BYTES, len(rest)), most - len(rest) + BATCH_BYTES)
            data = np.empty(len(rest) + room, np.uint8)
            data[: len(rest)] = rest
            try:
                read = stream.fill(data[len(rest) :])
                before, position = position, file.tell()
            except (OSError, EOFError) as error:
                reason = f"cannot be read after line {first - 1}: {error}"
                raise FileError(f"{path}: {reason}") from error
            at_end = read == 0
            if stream.decided or at_end:
                stream.note(path, encodings, problems)
            data = data[: len(rest) + read]
            if not begun and data[:3].tobytes() == _BYTE_ORDER_MARK:
                data = data[3:]
            begun = True
            done = 0  # bytes of the data
            longer = 0  # where to look next for the end of a line that no part had
            for cut in _cuts(data, lines.marks):
                last = cut == len(data)
                if cut < longer and not last:
                    continue
                part = data[done:cut]
                ends, state = lines.ends(part, state if too_long else lines.begin, at_end and last)
                if at_end and last and len(part) and (not len(ends) or ends[-1] < len(part)):
                    ends = np.append(ends, len(part))
                if too_long:  # up to the end of that line, if it is there
                    too_long = not len(ends)
                    gone = len(part) if too_long else int(ends[0])
                    first += count_newlines(part[:gone])
                    part, ends, done = part[gone:], ends[1:] - gone, done + gone
                read_by_then = before + (position - before) * cut / max(1, len(data))
                batch = lines.batch(path, first, part, ends, read_by_then, stream.encoding)
                yield from _of_good_length(batch, most, problems)
                used = int(ends[-1]) if len(ends) else 0
                first += lines.newlines(part[:used], ends)
                done += used
                # Twice as far, so that no byte is searched more than twice on average.
                longer = 0 if used else done + 2 * len(part)
            rest = data[done:]
            if len(rest) > most:
                problems.report_size(f"{path}, line {first}", most)
                first += count_newlines(rest)
                rest, too_long = rest[:0], True


class LineCorpus(FileCorpus):
    """Files that are read line by line."""

    def batches(self, problems: Problems, lines: Lines | None = None) -> Iterator[LineBatch]:
        """Yield the lines of all files; `done` of each batch is the share of all that was read."""
        read = 0
        for path, size in zip(self.paths, self.sizes, strict=True):
            for batch in self.lines_of(path, problems, lines):
                yield replace(batch, done=min(1.0, (read + batch.done) / self.total_bytes))
            read += size

    def lines_of(
        self, path: Path, problems: Problems, lines: Lines | None = None
    ) -> Iterator[LineBatch]:
        return line_batches(path, self.max_document, problems, lines, self.encodings)


def _cuts(data: NDArray[np.uint8], marks: bytes) -> Iterator[int]:
    """Yield where to split data so that no part has many more than `_MOST_ENDS` marks."""
    found = 0
    for begin in range(0, len(data), _PIECE):
        piece = data[begin : begin + _PIECE]
        found += sum(int(np.count_nonzero(piece == mark)) for mark in marks)
        if found > _MOST_ENDS and begin + len(piece) < len(data):
            yield begin + len(piece)
            found = 0
    yield len(data)


def count_newlines(data: NDArray[np.uint8]) -> int:
    """Return how many lines end in some data."""
    return int(np.count_nonzero(data == _NEWLINE))


def _of_good_length(batch: LineBatch, most: int, problems: Problems) -> Iterator[LineBatch]:
    """Yield a batch without the lines that are too long, in as many parts as that takes."""
    begins = np.concatenate([[0], batch.ends[:-1]])
    begun = 0
    for place in [*np.flatnonzero(batch.ends - begins > most).tolist(), len(batch)]:
        if place > begun:
            data, ends = batch.data[begins[begun] :], batch.ends[begun:place] - begins[begun]
            yield replace(batch, first=batch.line(begun), data=data, ends=ends)
        if place < len(batch):
            problems.report_size(batch.where(place), most)
        begun = place + 1


class TextLinesCorpus(LineCorpus):
    """Files with one document per line, in the column `text`. An empty line is a document."""

    fixed_columns = True

    def __init__(self, paths: Sequence[Path], encodings: Encodings | None = None) -> None:
        super().__init__(paths, "text", encodings)

    def columns(self) -> list[str]:
        return ["text"]

    def lines(self, problems: Problems) -> Iterator[Any]:
        """Yield the lines, unchanged, with their line ends."""
        for batch in self.batches(problems):
            try:
                yield batch.lines.cast(pa.large_string())
            except pa.ArrowInvalid:
                yield pa.array([text for _, text in batch.decoded(problems)], pa.large_string())
            self.done = batch.done

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        for lines in self.lines(problems):
            texts = compute.utf8_rtrim(lines, characters="\r\n")
            yield chosen_columns(pa.record_batch({"text": texts}), columns, pa.large_string())

    def copy_rows(self, rows: KeptRows, target: Target) -> int:
        with self.open_output(target) as file:
            return copy_lines(file, self.lines(rows.problems), rows, None, _with_text)


def _with_text(line: str, text: str) -> str:
    """Return a line with another text and the same end."""
    return text + line[len(line.rstrip("\r\n")) :]


def copy_lines(
    file: Any,
    batches: Iterator[Any],
    rows: KeptRows,
    extended: Callable[[str, dict[str, Any]], str] | None = None,
    replaced: Callable[[str, str], str] | None = None,
) -> int:
    """Write lines unchanged, or extended by the added columns; return their number.

    `replaced` returns a line with another text.
    """
    written = 0
    for lines in batches:
        chosen, added = rows.next(len(lines))
        written += len(chosen)
        if replaced is not None and (texts := rows.new_texts(len(lines))):
            new = [replaced(lines[at].as_py(), text) for at, text in texts.items()]
            changed = np.zeros(len(lines), np.bool_)
            changed[list(texts)] = True
            lines = compute.replace_with_mask(lines, arrow_flags(changed), arrow_texts(new))
        if added and extended is not None:
            keys = [{name: added[name][at].as_py() for name in added} for at in chosen.tolist()]
            kept = lines.take(arrow_positions(chosen)).to_pylist()
            file.write("".join(map(extended, kept, keys)).encode())
            continue
        for run in _runs(lines, chosen):
            file.write(run)
        if len(chosen) and not lines[int(chosen[-1])].as_py().endswith("\n"):
            file.write(b"\n")
    rows.finish()
    return written


def _runs(lines: Any, chosen: NDArray[np.int64]) -> Iterator[memoryview]:
    """Yield the bytes of chosen lines: as slices, or as a copy if there would be many slices."""
    if not len(chosen):
        return
    breaks = np.flatnonzero(np.diff(chosen) != 1) + 1
    if len(breaks) > len(chosen) // _FEW:
        lines = lines.take(arrow_positions(chosen))
        chosen, breaks = np.arange(len(lines)), breaks[:0]
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    firsts, lasts = chosen[np.append(0, breaks)], chosen[np.append(breaks - 1, len(chosen) - 1)]
    for begin, end in zip(ends[firsts].tolist(), ends[lasts + 1].tolist(), strict=True):
        yield memoryview(data)[begin:end]


FORMAT = Format(
    name="text", suffixes=(".txt", ".text"), open=TextLinesCorpus, copies=True, streams=True
)
