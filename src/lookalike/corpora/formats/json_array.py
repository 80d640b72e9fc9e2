"""JSON: one array of objects per file, read one object at a time."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import nested_deeper
from lookalike.corpora.base import (
    BATCH_BYTES,
    BATCH_ROWS,
    KeptRows,
    Problems,
    Rows,
    chosen_rows,
    pa,
)
from lookalike.corpora.encodings import NAME_ENCODING, Encodings
from lookalike.corpora.formats import FileCorpus, Format, Target, duck, open_text
from lookalike.errors import FileError, FormatError, LookalikeError, Said
from lookalike.processes import in_groups

_MOST_LEVELS = 300  # deeper nesting may fail in `json` and Arrow
Objects = list[dict[str, Any]]

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_EXTRA = "Extra data"
_HALF_A_CHARACTER = re.compile(r"\\u[dD]")


class JsonArrayCorpus(FileCorpus):
    """Files with one array of objects each; an object longer than `max_document` is an error."""

    def __init__(self, paths: Sequence[Path], encodings: Encodings | None = None) -> None:
        super().__init__(paths, "json", encodings)
        self._columns: list[str] | None = None

    def columns(self) -> list[str]:
        """Return all keys, in order of appearance."""
        if self._columns is None:
            batches = self.objects(Problems(skip_bad=True))
            keys = dict.fromkeys(key for rows in batches for row in rows for key in row)
            self._columns = list(keys)
        return list(self._columns)

    def objects(self, problems: Problems) -> Iterator[Objects]:
        """Yield all objects of all files, some at a time."""
        found = self._objects(problems)
        for some in in_groups(found, lambda one: one[1], BATCH_BYTES, BATCH_ROWS):
            self.done = some[-1][2]
            yield [value for value, _, _ in some]
        self.done = 1.0

    def _objects(self, problems: Problems) -> Iterator[tuple[dict[str, Any], int, float]]:
        """Yield objects, their length, and the share of the corpus that has been seen."""
        read = 0
        for path, size in zip(self.paths, self.sizes, strict=True):
            array = _Array(path, self.max_document, self.encodings.given)
            for index, (value, text) in enumerate(array):
                where = f"{path}, element {index}"
                if not isinstance(value, dict):
                    kind = type(value).__name__
                    problems.report(where, f"is of type {kind}; expected an object")
                elif nested_deeper(value, _MOST_LEVELS):
                    problems.report(where, f"is nested more than {_MOST_LEVELS} levels deep")
                elif _HALF_A_CHARACTER.search(text) and not _is_unicode(value):
                    problems.report(where, "has a lone surrogate, which is not valid Unicode")
                else:
                    yield value, len(text), min(1.0, (read + array.done) / self.total_bytes)
            read += size
            array.stream.note(path, self.encodings, problems)

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        """Yield batches of strings; numbers, lists and objects are written as JSON."""
        for rows in self.objects(problems):
            values = [[_as_text(row.get(column)) for row in rows] for column in columns]
            arrays = [pa.array(column, pa.large_string()) for column in values]
            yield pa.record_batch(arrays, names=list(columns))

    def rows(self, problems: Problems) -> Iterator[Rows]:
        """Yield batches of all columns, with the types that another reading finds."""
        names = self.columns()
        try:
            found = [
                pa.Table.from_pylist(_with_all(rows, names)).schema
                for rows in self.objects(Problems(skip_bad=True))
            ]
            if not found:
                return
            schema = pa.unify_schemas(found, promote_options="permissive")
            for rows in self.objects(problems):
                yield pa.RecordBatch.from_pylist(_with_all(rows, names), schema)
        except LookalikeError:
            raise
        except (pa.ArrowException, OverflowError, ValueError, RecursionError) as error:
            raise FormatError(
                f"{self.name}: the values of a key have different types, are too large or too "
                f"deeply nested for a table ({error}); write .json instead"
            ) from error

    def rows_at(self, positions: NDArray[np.int64], skip_bad: bool) -> list[dict[str, Any]]:
        batches = self.objects(Problems(skip_bad))
        return chosen_rows(batches, positions, lambda rows, at: [rows[one] for one in at.tolist()])

    def copy_rows(self, rows: KeptRows, target: Target) -> int:
        written = 0
        with self.open_output(target, is_json=True) as file:
            for objects in self.objects(rows.problems):
                chosen, added = rows.next(len(objects))
                for at, text in rows.new_texts(len(objects)).items():
                    objects[at][rows.replaced[0] if rows.replaced else ""] = text
                for at in chosen.tolist():
                    keys = {name: added[name][at].as_py() for name in added}
                    text = json.dumps({**objects[at], **keys}, ensure_ascii=False)
                    file.write((",\n" if written else "[\n").encode() + text.encode())
                    written += 1
            file.write(b"\n]\n" if written else b"[]\n")
            rows.finish()
        return written


class _Array:
    """The values of one file, read one at a time, each with its text."""

    def __init__(self, path: Path, most: int, encoding: str | None) -> None:
        self._path = path
        self._most = most
        self.stream, self._file = open_text(path, encoding)
        self._text = ""
        self._at = 0
        self._passed = 0  # characters that are no longer held
        self._at_end = False
        self.done = 0

    def __iter__(self) -> Iterator[tuple[Any, str]]:
        with self._file:
            try:
                self._chunks = self._decoded()
                self._more()
                yield from self._values()
            except (ValueError, RecursionError, OSError, EOFError) as error:
                reason, hint = str(error), ""
                if isinstance(error, UnicodeDecodeError):
                    hint = f"; if the encoding is wrong, {NAME_ENCODING}"
                if isinstance(error, json.JSONDecodeError):
                    reason = f"{error.msg} at character {self._passed + error.pos:,}"
                    if error.msg == _EXTRA:
                        hint = "; name it .jsonl if there is one object per line"
                raise FileError(f"{self._path}: is not JSON ({reason}){hint}") from error

    def _values(self) -> Iterator[tuple[Any, str]]:
        if self._next() != "[":
            self._refuse()
        self._at += 1
        while self._next() != "]":
            value, end = self._value()
            yield value, self._text[self._at : end]
            self._at = end
            if self._next() == ",":
                self._at += 1
                if self._next() == "]":
                    raise json.JSONDecodeError("Expecting value", self._text, self._at)
            elif self._next() != "]":
                raise json.JSONDecodeError("Expecting ',' delimiter", self._text, self._at)
        self._at += 1
        if self._next():
            raise json.JSONDecodeError(_EXTRA, self._text, self._at)

    def _value(self) -> tuple[Any, int]:
        """Return the value that begins here, and where it ends."""
        while True:
            failed = None
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                failed, end = error, len(self._text)
            if end - self._at > self._most:
                raise FileError(
                    f"{self._path} has an object (or invalid JSON) of more than {self._most:,} "
                    "characters, the limit of ",
                    Said("max_document"),
                    "; raise the limit, or write JSON Lines",
                )
            # A number may go on, and what looks wrong may only be cut.
            if (failed is None and end < len(self._text)) or self._at_end:
                if failed is not None:
                    raise failed
                return value, end
            self._more(len(self._text) - self._at)

    def _next(self) -> str:
        """Return the next character that is not a space; "" at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = self._at if match is None else match.end()
            if self._at < len(self._text) or self._at_end:
                return self._text[self._at : self._at + 1]
            self._more()

    def _more(self, least: int = 1) -> None:
        """Read at least `least` characters, so that no value is parsed too often."""
        parts = [self._text[self._at :]]
        while least > 0 and not self._at_end:
            part = next(self._chunks, None)
            self._at_end = part is None
            parts.append(part or "")
            least -= len(parts[-1])
        self._passed += self._at
        self._text, self._at = "".join(parts), 0

    def _decoded(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogatepass")
        while data := self.stream.read(BATCH_BYTES):
            self.done = self._file.tell()
            yield decoder.decode(data)
        yield decoder.decode(b"", final=True)

    def _refuse(self) -> None:
        kinds = {"{": "object", '"': "string", "t": "truth value", "f": "truth value", "n": "null"}
        first = self._text[self._at : self._at + 1]
        if not first:
            raise json.JSONDecodeError("Expecting value", self._text, self._at)
        raise FormatError(
            f"{self._path} begins with a JSON {kinds.get(first, 'number')}; expected an array of "
            "objects. Name the file .jsonl if there is one object per line"
        )


def _with_all(rows: Objects, names: Sequence[str]) -> Objects:
    return [{name: row.get(name) for name in names} for row in rows]


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


FORMAT = Format(
    name="json",
    suffixes=(".json",),
    open=JsonArrayCorpus,
    write=partial(duck.write, options=("FORMAT json", "ARRAY true")),
    begins=lambda text, whole: text.lstrip().startswith("["),
    streams=True,
)
