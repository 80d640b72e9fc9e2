"""Benchmarks: test questions and answers that must not be in training text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookalike.corpora import Corpus, Problems, open_corpus
from lookalike.corpora.base import compute, pa
from lookalike.corpora.columns import TEXT_GUESSES, id_column, id_strings, text_strings
from lookalike.corpora.formats import named_format
from lookalike.errors import ArgumentError, Said
from lookalike.shown import brief
from lookalike.storage.files import walk_folder

QUESTION_GUESSES = (
    "question", "prompt", "problem", "query", "instruction", "input", "premise", *TEXT_GUESSES,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Benchmark:
    """The items of one benchmark, held in memory."""

    name: str
    corpus: Corpus
    identity: list[Any] | None
    columns: list[str]
    """The columns whose texts are looked for, joined."""
    texts: Any
    """Arrow strings."""
    ids: Any
    first: int
    """The number of its first item among those of all benchmarks."""

    def __len__(self) -> int:
        return len(self.texts)


def open_benchmarks(given: Any, columns: Sequence[str] | None) -> list[Benchmark]:
    """Read benchmarks: each file of a folder is one, and so is each entry of a mapping."""
    made: list[Benchmark] = []
    first = 0
    for name, source in _sources(given):
        made.append(_benchmark(name, source, columns, first))
        first += len(made[-1])
    if columns is not None:
        known = {column for one in made for column in one.corpus.columns()}
        for column in columns:
            if made and column not in known:
                raise ArgumentError(
                    Said("columns"),
                    f": no benchmark has a column {column!r}; there are {', '.join(sorted(known))}",
                )
    if not first:
        raise ArgumentError(Said("benchmarks"), " have no items; expected texts to look for")
    return made


def _sources(given: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(given, Mapping):
        yield from ((str(name), source) for name, source in given.items())
    elif isinstance(given, str | os.PathLike) and Path(given).is_dir():
        root = Path(given)
        files = [
            Path(folder, name)
            for folder, _, names in walk_folder(root, [])
            for name in names
            if named_format(Path(name)) is not None
        ]
        if not files:
            raise ArgumentError(
                Said("benchmarks"),
                f": {given} has no files of a known format, such as .jsonl, .csv, .parquet or .txt",
            )
        for file in sorted(files):
            yield str(file.relative_to(root)), file
    elif isinstance(given, str | os.PathLike):
        yield Path(given).name, given
    elif isinstance(given, list) and any(map(_is_path, given)):
        for one in given:
            if not _is_path(one):
                raise ArgumentError(
                    Said("benchmarks"),
                    f": {brief(one)} is not a file, but others of the list are; give only files, "
                    "or only texts",
                )
        names = [Path(one).name for one in given]
        if len(set(names)) < len(names):
            names = list(map(str, given))
        yield from zip(names, given, strict=True)
    else:
        yield "benchmark", given


def _is_path(one: object) -> bool:
    """Return whether an entry of a list is a path, or a string that names a file."""
    try:
        return isinstance(one, os.PathLike) or (isinstance(one, str) and Path(one).is_file())
    except OSError:  # a text that is longer than a path can be
        return False


def _benchmark(name: str, source: Any, columns: Sequence[str] | None, first: int) -> Benchmark:
    corpus = open_corpus(source)
    known = corpus.columns()
    if columns is not None:
        wanted = [column for column in columns if column in known]
    else:
        guessed = corpus.column_for(None, QUESTION_GUESSES, "items")
        wanted = [guessed] if guessed else known if len(known) == 1 else []
        if known and not wanted:
            raise ArgumentError(
                f"{corpus.name} has the columns {', '.join(known)}; name those with the questions",
                Said(" with columns=[...]", " with --columns LIST"),
            )
    identity, key = corpus.identity(), id_column(corpus, None)
    texts: list[Any] = []
    ids: list[Any] = []
    row = 0
    for batch in corpus.read([*wanted, *([key] if key else [])], Problems()) if wanted else []:
        parts = [
            without_nulls(text_strings(batch.column(at), column, corpus))
            for at, column in enumerate(wanted)
        ]
        texts.append(parts[0] if len(parts) == 1 else _joined(parts))
        ids.append(id_strings(batch.column(len(wanted)) if key else pa.nulls(len(batch)), row))
        row += len(batch)
    kind = pa.large_string()
    return Benchmark(
        name,
        corpus,
        identity,
        wanted,
        pa.chunked_array(texts, kind).combine_chunks(),
        pa.chunked_array(ids, kind).combine_chunks(),
        first,
    )


def without_nulls(texts: Any) -> Any:
    """Return texts with empty ones for nulls."""
    return texts.fill_null("") if texts.null_count else texts  # the first imports pandas


def _joined(parts: Sequence[Any]) -> Any:
    return compute.binary_join_element_wise(*parts, pa.scalar("\n", pa.large_string()))
