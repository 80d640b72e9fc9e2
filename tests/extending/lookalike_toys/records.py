"""A format of another package: records of `column: JSON` lines, with a form feed after each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lookalike.corpora.base import Problems, Rows, pa
from lookalike.corpora.encodings import Encodings
from lookalike.corpora.formats import FileCorpus, Format, Output, open_text

_BEGINNING = "%records\n"
_AT_A_TIME = 1 << 16


class RecordCorpus(FileCorpus):
    """Files of records; values come as strings."""

    def __init__(self, paths: Sequence[Path], encodings: Encodings) -> None:
        super().__init__(paths, "records", encodings)

    def columns(self) -> list[str]:
        """Return the columns of the first record."""
        return list(next(self._records(Problems(skip_bad=True)), {}))

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        """Yield batches of these columns."""
        rows = list(self._records(problems))
        values = [[row.get(column) for row in rows] for column in columns]
        yield pa.record_batch(
            [pa.array(column, pa.large_string()) for column in values], names=list(columns)
        )
        self.done = 1.0

    def _records(self, problems: Problems) -> Iterator[dict[str, str]]:
        for path in self.paths:
            stream, file = open_text(path, self.encodings.given)
            data = b""
            with file:
                while part := stream.read(_AT_A_TIME):
                    data += part
            text = data.decode().removeprefix(_BEGINNING)
            for number, record in enumerate(text.split("\f")[:-1]):
                try:
                    pairs = (line.split(": ", 1) for line in record.splitlines())
                    yield {name: _text(json.loads(value)) for name, value in pairs}
                except ValueError as error:
                    problems.report(f"{path}, record {number}", f"is not valid ({error})")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _write(batches: Iterator[Rows], schema: Any, output: Output) -> None:
    with output.open() as file:
        file.write(_BEGINNING.encode())
        for batch in batches:
            for row in batch.to_pylist():
                lines = (f"{name}: {json.dumps(value)}\n" for name, value in row.items())
                file.write("".join(lines).encode() + b"\f")


RECORDS = Format(
    name="records",
    suffixes=(".records", ".rec"),
    open=RecordCorpus,
    write=_write,
    magic=_BEGINNING.encode(),
    shards=True,
    streams=True,
)
