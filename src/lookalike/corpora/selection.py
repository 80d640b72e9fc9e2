"""Some rows of a corpus, with all their columns, as Python has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import Corpus, Problems, arrow_positions
from lookalike.corpora.filters import FilteredCorpus
from lookalike.corpora.formats.json_array import JsonArrayCorpus
from lookalike.corpora.formats.json_lines import JsonLinesCorpus
from lookalike.errors import DocumentError


def rows_at(corpus: Corpus, positions: NDArray[np.int64], skip_bad: bool) -> list[dict[str, Any]]:
    """Return the rows at ascending positions; the corpus is read once, and these are held."""
    if isinstance(corpus, FilteredCorpus):
        positions = corpus.inner_rows(Problems(skip_bad))[positions]
        corpus = corpus.inner
    found: list[dict[str, Any]] = []
    begin = 0
    for batch in _batches(corpus, Problems(skip_bad)):
        end = begin + len(batch)
        chosen = positions[slice(*np.searchsorted(positions, [begin, end]))] - begin
        if isinstance(batch, list):
            found += [batch[at] for at in chosen.tolist()]
        else:
            some = batch.take(arrow_positions(chosen)).to_pylist()
            found += [_parsed(row, corpus) if isinstance(row, str) else row for row in some]
        begin = end
    return found


def _parsed(line: str, corpus: Corpus) -> dict[str, Any]:
    try:
        row: dict[str, Any] = json.loads(line)
    except (ValueError, RecursionError) as error:  # DuckDB takes more than Python does
        raise DocumentError(f"{corpus.name}: a row cannot be handed to Python: {error}") from error
    return row


def _batches(corpus: Corpus, problems: Problems) -> Iterator[Any]:
    """Yield rows as they are nearest to what was written: lines, objects or a table."""
    if isinstance(corpus, JsonLinesCorpus):
        return corpus.lines(problems)
    if isinstance(corpus, JsonArrayCorpus):
        return corpus.objects(problems)
    return corpus.rows(problems)
