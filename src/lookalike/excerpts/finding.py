"""One text in the documents of a corpus: which of them have it, nearly or exactly, and where."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from lookalike import _native
from lookalike.checks import callback, instance, share, thread_count, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.excerpts.overlapping import COMMON, GAP
from lookalike.excerpts.results import Passage, Passages
from lookalike.excerpts.texts import CorpusTexts
from lookalike.excerpts.words import WordPlaces, word_places
from lookalike.features.documents import text_batches
from lookalike.shown import brief

__all__ = ["CONTEXT", "LEAST", "PIECE", "passages"]

LEAST = 0.6
PIECE = 4
CONTEXT = 60

_MOST = 2**31


def passages(
    source: Any,
    query: str,
    *,
    least: SupportsFloat = LEAST,
    gap: SupportsIndex = GAP,
    context: SupportsIndex = CONTEXT,
    text: str | None = None,
    id: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    skip_bad: bool = False,
    max_document: SupportsIndex | None = None,
    threads: SupportsIndex | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Passages:
    """Find the documents of a corpus that have a text in them, and where.

    `source`, `text`, `id`, `format`, `skip_bad` and `max_document` are those of `la.dedup`; `query`
    is the text that is looked for.

    Words are those of `la.Words()`. A run is a row of equal words that cannot be made longer. A
    passage is one run, or several of four words or more that follow each other in both texts with
    at most `gap` other words between them in either. All passages are found whose equal words are
    `least` of the query's words or more, and nothing else; a document may have several. Only, where
    the same four words are in more than 100 places of a document, or of the query, the first 100
    are tried (`Passages.repeated`). The corpus is read once, and a batch of it is held at a time.
    `context` is how many characters before and behind a passage come along.
    """
    wanted = share("least", least)
    between = whole_number("gap", gap, at_least=0, at_most=_MOST)
    around = whole_number("context", context, at_least=0)
    workers = thread_count(threads)
    own = word_places(instance("query", query, str, "a text"))
    count = len(own.begins)
    if count == 0:
        raise ArgumentError(Said("query"), f" is {brief(query)}, which has no words to look for")
    min_words = max(1, math.ceil(wanted * count - 1e-9))
    (documents,) = text_batches([query], None)
    finder = _native.PassageQuery(documents, min(PIECE, min_words), between, min_words, COMMON)
    corpus = CorpusTexts(
        source,
        text=text,
        id=id,
        format=format,
        encoding=encoding,
        skip_bad=skip_bad,
        max_document=max_document,
        progress=callback("progress", progress),
    )
    found: list[Passage] = []
    repeated = 0
    for first, texts, ids in corpus.batches():
        (batch,) = text_batches(texts, None)
        columns, cut, _ = finder.find(batch, workers)
        repeated += cut
        of, begins = columns[1], columns[3]
        runs = np.stack(columns[4:], axis=1)
        for row in np.unique(of).tolist():
            document = str(texts[row].as_py())
            places = word_places(document)
            name = str(ids[row].as_py())
            for at in np.flatnonzero(of == row).tolist():
                steps = runs[begins[at] : begins[at + 1]].tolist()
                found.append(_told(document, name, first + row, own, places, steps, around))
    found.sort(key=lambda one: (-one.words, one.row, one.document_words))
    return Passages(tuple(found), corpus.documents, count, repeated, **corpus.left_out())


def _told(
    document: str,
    name: str,
    row: int,
    own: WordPlaces,
    places: WordPlaces,
    runs: list[list[int]],
    context: int,
) -> Passage:
    (left, right, _), (last_left, last_right, length) = runs[0], runs[-1]
    query_words = left, last_left + length
    document_words = right, last_right + length
    words = sum(run[2] for run in runs)
    begin, end = places.characters(*document_words)
    first_line = document.count("\n", 0, begin) + 1
    return Passage(
        id=name,
        row=row,
        words=words,
        share=words / len(own.begins),
        query_words=query_words,
        document_words=document_words,
        query_characters=own.characters(*query_words),
        document_characters=(begin, end),
        lines=(first_line, first_line + document.count("\n", begin, end)),
        runs=[(run[0], run[1], run[2]) for run in runs],
        text=document[begin:end],
        before=document[max(0, begin - context) : begin],
        after=document[end : end + context],
        document_length=len(document),
    )
