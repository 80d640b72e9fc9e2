"""JSON: one array of objects in a file. Read whole, because there are no lines to stop at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike.corpora.base import BATCH_ROWS, Problems, arrow
from lookalike.corpora.files import FileCorpus
from lookalike.corpora.lines import open_input
from lookalike.errors import FileError, FormatError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["JsonArrayCorpus"]

_MOST_LEVELS = 300
"""More than that, and Python's own reading and writing of JSON and Arrow may give up."""


class JsonArrayCorpus(FileCorpus):
    """Files with one JSON array of objects each. They must fit in memory; JSON Lines need not."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(paths, "json")
        self._columns: list[str] | None = None

    def columns(self) -> list[str]:
        """Return all keys, in order of appearance."""
        if self._columns is None:
            rows = self.objects(Problems(skip_bad=True))
            self._columns = list(dict.fromkeys(key for row in rows for key in row))
        return list(self._columns)

    def objects(self, problems: Problems) -> list[dict[str, Any]]:
        """Return all objects of all files."""
        found = []
        for path in self.paths:
            values, has_surrogates = _array_of(path)
            for index, value in enumerate(values):
                if not isinstance(value, dict):
                    problems.report(
                        f"{path}, element {index}",
                        f"is of type {type(value).__name__}; expected an object",
                    )
                elif _is_too_deep(value):
                    problems.report(
                        f"{path}, element {index}",
                        f"is nested more than {_MOST_LEVELS} levels deep",
                    )
                elif has_surrogates and not _is_unicode(value):
                    problems.report(
                        f"{path}, element {index}", "has half of a character (a lone surrogate)"
                    )
                else:
                    found.append(value)
        self.done = 1.0
        return found

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[pyarrow.RecordBatch]:
        """Yield batches of strings; numbers, lists and objects come as JSON writes them."""
        pa = arrow()
        rows = self.objects(problems)
        for begin in range(0, len(rows), BATCH_ROWS):
            part = rows[begin : begin + BATCH_ROWS]
            yield pa.record_batch(
                [
                    pa.array([_as_text(row.get(column)) for row in part], pa.large_string())
                    for column in columns
                ],
                names=list(columns),
            )

    def rows(self, problems: Problems) -> Iterator[pyarrow.RecordBatch]:
        """Yield batches of all columns, with types."""
        pa = arrow()
        names = self.columns()
        rows = [{name: row.get(name) for name in names} for row in self.objects(problems)]
        try:
            table = pa.Table.from_pylist(rows)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise FormatError(
                f"{self.name}: a key has values of different types, or too large ones, which a "
                f"table cannot hold ({error}); write .json instead"
            ) from error
        yield from table.to_batches(max_chunksize=BATCH_ROWS)


def _array_of(path: Path) -> tuple[list[Any], bool]:
    """Return the values, and whether there may be halves of characters in them."""
    stream, file = open_input(path)
    with file:
        try:
            data = stream.read()
            value = json.loads(data)
        except (ValueError, RecursionError, OSError) as error:
            hint = "; name it .jsonl if there is an object a line" if "Extra" in str(error) else ""
            raise FileError(f"{path}: is not JSON ({error}){hint}") from error
    if not isinstance(value, list):
        raise FormatError(
            f"{path}: is a JSON {type(value).__name__}; expected an array of objects, or name the "
            "file .jsonl if there is an object a line"
        )
    return value, b"\\ud" in data or b"\\uD" in data


def _is_too_deep(value: dict[str, Any]) -> bool:
    level: list[Any] = [value]
    for _ in range(_MOST_LEVELS):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
