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


class JsonArrayCorpus(FileCorpus):
    """Files with one JSON array of objects each. They must fit in memory; JSON Lines need not."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(paths, "json")
        self._objects: list[dict[str, Any]] | None = None

    def columns(self) -> list[str]:
        """Return all keys, in order of appearance."""
        return list(dict.fromkeys(key for row in self.objects(Problems(True)) for key in row))

    def objects(self, problems: Problems) -> list[dict[str, Any]]:
        """Return all objects of all files."""
        found = []
        for path in self.paths:
            for index, value in enumerate(_array_of(path)):
                if isinstance(value, dict):
                    found.append(value)
                else:
                    problems.report(
                        f"{path}, element {index}",
                        f"is of type {type(value).__name__}; expected an object",
                    )
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
        except pa.ArrowInvalid as error:
            raise FormatError(
                f"{self.name}: a key has values of different types, which a table cannot hold "
                f"({error}); write .json or .jsonl instead"
            ) from error
        yield from table.to_batches(max_chunksize=BATCH_ROWS)


def _array_of(path: Path) -> list[Any]:
    stream, file = open_input(path)
    with file:
        try:
            value = json.loads(stream.read())
        except (ValueError, RecursionError, OSError) as error:
            raise FileError(f"{path}: is not JSON ({error})") from error
    if not isinstance(value, list):
        raise FormatError(
            f"{path}: is a JSON {type(value).__name__}; expected an array of objects, or name the "
            "file .jsonl if there is an object a line"
        )
    return value


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
