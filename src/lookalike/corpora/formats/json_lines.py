"""JSON Lines: one JSON object per line, which is written unchanged.

The core extracts values if all lines of a batch are plain, which is nearly always so. Otherwise
DuckDB does: it supports all of JSON, but takes five times as long, and 0.1 s to import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import (
    BATCH_ROWS,
    KeptRows,
    Problems,
    Rows,
    arrow_positions,
    chosen_rows,
    compute,
    pa,
    reading_threads,
)
from lookalike.corpora.encodings import Encodings
from lookalike.corpora.formats import Format, Target, duck
from lookalike.corpora.formats.lines import LineBatch, LineCorpus, copy_lines
from lookalike.errors import DocumentError, FormatError

_LINES_FOR_COLUMNS = 100
_MOST_LEVELS = 50
_SPACE = re.compile(r"[ \t\r\n]*")
_ANY_JSON = json.JSONDecoder(strict=False)
_TO_JSON = json.JSONEncoder(ensure_ascii=False).encode
# a string, which may contain brackets, or a bracket
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[][{}]', re.DOTALL)


class JsonLinesCorpus(LineCorpus):
    """Files of JSON Lines, compressed or not."""

    def __init__(self, paths: Sequence[Path], encodings: Encodings | None = None) -> None:
        super().__init__(paths, "jsonl", encodings)
        self._columns: list[str] | None = None
        self._clean: set[tuple[Path, int]] = set()  # batches known to have objects only

    def columns(self) -> list[str]:
        """Return the keys of the first 100 objects of the first file that has any, in order."""
        if self._columns is None:
            keys: dict[str, None] = {}
            silent = Problems(skip_bad=True)
            beginnings = (islice(self.lines_of(path, silent), 1) for path in self.paths)
            for batch in chain.from_iterable(beginnings):
                for line in batch.lines.slice(0, _LINES_FOR_COLUMNS):
                    with suppress(ValueError, RecursionError):
                        value = json.loads(line.as_py())
                        keys.update(dict.fromkeys(value if isinstance(value, dict) else ()))
                if keys:
                    break
            self._columns = list(keys)
        return list(self._columns)

    def lines(self, problems: Problems) -> Iterator[Any]:
        """Yield the lines that are objects, unchanged, with their line ends."""
        for batch in self.batches(problems):
            if (batch.path, batch.first) in self._clean:
                yield batch.lines.view(pa.large_string())
            else:
                with duck.connection(self.name) as database:
                    yield self._objects(batch, problems, database)
            self.done = batch.done

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        """Yield batches of strings; numbers, lists and objects are written as JSON."""
        for batch in self.batches(problems):
            values = _plain_values(batch, columns, reading_threads())
            if values is None:
                values = _values_of_objects(batch, columns)
            if values is not None:
                self._clean.add((batch.path, batch.first))
            else:
                with duck.connection(self.name) as database:
                    values = _values(self._objects(batch, problems, database), columns, database)
            yield values
            self.done = batch.done

    def rows(self, problems: Problems) -> Iterator[Rows]:
        """Yield batches of all columns, with types; values nested beyond 50 levels are JSON."""
        # The second reading counts nothing again.
        silent = Problems(problems.skip_bad, sizes_left_out=problems.sizes_left_out)
        with duck.connection(self.name) as database:
            try:
                structure = self._structure(database, problems)
                if structure is None:
                    return
                for lines in self.lines(silent):
                    database.register("batch", pa.table({"line": lines}))
                    rows = database.sql(
                        f"SELECT unnest(from_json(line, {duck.quoted(structure)})) FROM batch"
                    )
                    yield from rows.to_arrow_table().to_batches(max_chunksize=BATCH_ROWS)
            except (duck.duckdb.Error, pa.ArrowException, RecursionError) as error:
                if isinstance(error, duck.duckdb.OutOfMemoryException):
                    raise
                raise FormatError(
                    f"{self.name} cannot be written as a table ({duck.first_line(error)}). Its "
                    "keys may be missing, empty or equal but for case, or it may be nested too "
                    "deeply; write .jsonl instead"
                ) from error

    def rows_at(self, positions: NDArray[np.int64], skip_bad: bool) -> list[dict[str, Any]]:
        return chosen_rows(self.lines(Problems(skip_bad)), positions, self._parsed)

    def _parsed(self, lines: Any, chosen: NDArray[np.int64]) -> list[dict[str, Any]]:
        try:
            return [json.loads(line) for line in lines.take(arrow_positions(chosen)).to_pylist()]
        except (ValueError, RecursionError) as error:  # DuckDB takes more than Python does
            raise DocumentError(
                f"{self.name}: a row cannot be parsed by Python: {error}"
            ) from error

    def copy_rows(self, rows: KeptRows, target: Target) -> int:
        """Write lines as they are, with the added keys."""
        with self.open_output(target, is_json=True) as file:
            replaced = partial(line_with_value, rows.replaced[0]) if rows.replaced else None
            return copy_lines(file, self.lines(rows.problems), rows, extended_line, replaced)

    def place_of(self, row: int) -> str:
        """Return the file and the line of a row; blank lines are not rows."""
        places = (
            batch.where(index)
            for batch in self.batches(Problems(skip_bad=True))
            for index, line in enumerate(batch.lines)
            if not line.as_py().isspace()
        )
        return next(islice(places, row, None), None) or super().place_of(row)

    def _structure(self, database: duck.Database, problems: Problems) -> str | None:
        """Return the structure of all lines, as DuckDB describes it; None if there are no lines."""
        schema = pa.schema([("line", pa.large_string())])
        tables = (pa.record_batch({"line": _shallow(part)}) for part in self.lines(problems))
        with duck.streamed(database, "every_line", schema, tables):
            query = "SELECT json_group_structure(line::JSON) FROM every_line"
            ((found,),) = database.sql(query).fetchall()
        return None if found is None else json.dumps(_with_types(json.loads(found)))

    def _objects(self, batch: LineBatch, problems: Problems, database: duck.Database) -> Any:
        """Return the lines of a batch that are objects; report the others, skip blank ones."""
        texts = [(at, text) for at, text in batch.decoded(problems) if not text.isspace()]
        lines = pa.array([text for _, text in texts], pa.large_string())
        database.register("batch", pa.table({"line": lines}))
        query = "SELECT CASE WHEN json_valid(line) THEN json_type(line) END AS kind FROM batch"
        kinds = database.sql(query).to_arrow_table()["kind"].combine_chunks()
        for (index, text), kind in zip(texts, kinds.to_pylist(), strict=True):
            if kind is None:
                problems.report(batch.where(index), f"is not JSON ({_reason(text)})")
            elif kind != "OBJECT":
                reason = f"is JSON of type {kind.lower()}; expected an object"
                problems.report(batch.where(index), reason)
        return lines.filter(compute.fill_null(compute.equal(kinds, "OBJECT"), False))


def _plain_values(batch: LineBatch, columns: Sequence[str], threads: int) -> Any:
    """Return the values that the core finds; None if a line is not plain JSON."""
    keys = list(dict.fromkeys(columns))
    if any(map(_has_surrogates, keys)):
        return None
    found = _native.json_columns(batch.data, batch.ends, keys, threads)
    if found is None:
        return None
    made = {}
    for key, (data, offsets, present) in zip(keys, found, strict=True):
        valid = present
        if present is not None:
            valid = pa.py_buffer(np.packbits(present, bitorder="little"))
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
        made[key] = pa.Array.from_buffers(pa.large_string(), len(batch), buffers)
    return pa.record_batch([made[column] for column in columns], names=list(columns))


def _values_of_objects(batch: LineBatch, columns: Sequence[str]) -> Any:
    """Return the values that DuckDB finds; None if a line may not be an object."""
    if any(map(_has_surrogates, columns)):
        return None
    try:
        with duck.connection() as database:
            values = _values(batch.lines.cast(pa.large_string()), columns, database)
    except (pa.ArrowInvalid, duck.duckdb.Error):
        return None
    # A line that has none of the values may not be an object.
    return None if all(column.null_count for column in values.columns) else values


def _values(lines: Any, columns: Sequence[str], database: duck.Database) -> Any:
    """Return these keys of objects as strings, parsing each line once."""
    database.register("batch", pa.table({"line": lines}))
    names = ", ".join(f"v[{at + 1}] AS c{at}" for at in range(len(columns)))
    keys = [column.replace("~", "~0").replace("/", "~1") for column in columns]
    pointers = duck.quoted_strings(f"/{key}" for key in keys)  # JSON pointers (RFC 6901)
    found = f"SELECT json_extract_string(line, {pointers}) AS v FROM batch"
    table = database.sql(f"SELECT {names} FROM ({found})").to_arrow_table()
    values = [column.cast(pa.large_string()).combine_chunks() for column in table.columns]
    return pa.record_batch(values, names=list(columns))


def _shallow(lines: Any) -> Any:
    """Return objects, with text for values nested deeper than DuckDB (126) or Arrow (64) allow."""
    opened = [compute.count_substring(lines, bracket) for bracket in "[{"]
    deep = compute.greater(compute.add(*opened), _MOST_LEVELS)
    if not compute.any(deep).as_py():
        return lines
    texts = lines.to_pylist()
    for place in np.flatnonzero(deep.to_numpy(zero_copy_only=False)).tolist():
        texts[place] = cut_nesting(texts[place])
    return pa.array(texts, pa.large_string())


def cut_nesting(text: str) -> str:
    """Return JSON with an empty string for each list and object beyond a depth."""
    kept, begin, depth = [], 0, 0
    for token in _TOKEN.finditer(text):
        bracket = token[0]
        if bracket in "[{":
            depth += 1
            if depth == _MOST_LEVELS + 1:
                kept += [text[begin : token.start()], '""']
        elif bracket in "]}":
            depth -= 1
            if depth == _MOST_LEVELS:
                begin = token.end()
    return "".join([*kept, text[begin:]])


def _with_types(structure: Any) -> Any:
    """Return a structure of DuckDB in which values without a type, or with several, are text."""
    if isinstance(structure, dict):
        return {key: _with_types(inner) for key, inner in structure.items()}
    if isinstance(structure, list):
        return [_with_types(inner) for inner in structure]
    return "VARCHAR" if structure in ("NULL", "JSON") else structure


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _reason(text: str) -> str:
    try:
        with suppress(RecursionError):
            json.loads(text)
    except ValueError as error:
        return str(error)
    return "it has invalid values, or is nested too deeply"


def extended_line(line: str, added: dict[str, Any]) -> str:
    """Return the text of a JSON object with keys added at its end; the rest is unchanged."""
    inside = line.rstrip().removesuffix("}").rstrip()
    inside = inside.removesuffix(",").rstrip()  # DuckDB takes objects that end so
    more = _TO_JSON(added)[1:]
    return f"{inside}{'' if inside.endswith('{') else ', '}{more}\n"


def line_with_value(key: str, line: str, text: str) -> str:
    """Return the text of a JSON object with another value of a key; the rest is unchanged."""
    scan = _ANY_JSON.raw_decode
    parts, copied, at = [], 0, _SPACE.match(line, line.index("{") + 1).end()  # type: ignore[union-attr]
    while line[at] == '"':
        name, at = scan(line, at)
        at = _SPACE.match(line, at).end() + 1  # type: ignore[union-attr]  # behind the colon
        at = _SPACE.match(line, at).end()  # type: ignore[union-attr]
        _, end = scan(line, at)
        if name == key:
            parts += [line[copied:at], _TO_JSON(text)]
            copied = end
        at = _SPACE.match(line, end).end()  # type: ignore[union-attr]
        if line[at] != ",":
            break
        at = _SPACE.match(line, at + 1).end()  # type: ignore[union-attr]
    return "".join([*parts, line[copied:]])


def _begins(text: str, whole: bool) -> bool:
    """Return whether a line is an object, and the first is not the beginning of an array."""
    lines = [line for line in text.split("\n") if line and not line.isspace()]
    if lines and not any(line.lstrip().startswith("{") for line in lines):
        return False
    if not lines or not lines[0].lstrip().startswith("["):
        return True
    with suppress(ValueError, RecursionError):
        json.loads(lines[0])
        return True
    return False


FORMAT = Format(
    name="jsonl",
    suffixes=(".jsonl", ".ndjson"),
    open=JsonLinesCorpus,
    write=partial(duck.write, options=("FORMAT json",)),
    begins=_begins,
    shards=True,
    streams=True,
)
