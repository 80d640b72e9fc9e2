"""Find passages in a corpus: those of one text, and those that documents have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import flag, instance, share, thread_count, whole_number
from lookalike.common_passages.results import (
    HeldTexts,
    Overlap,
    Overlaps,
    Passage,
    Passages,
    WordPlaces,
    word_places,
)
from lookalike.corpora import Problems, open_corpus
from lookalike.corpora.columns import find_columns, text_strings
from lookalike.errors import ArgumentError, Said
from lookalike.features.base import text_batches
from lookalike.progress import Progress, listener, shows_progress
from lookalike.shown import brief

LEAST = 0.6
"""Share of the query's words that a passage has."""
PIECE = 4
"""Words of a run."""
CONTEXT = 60
"""Characters before and after a passage."""
MIN_WORDS, GAP, COMMON = 50, 4, 100
_PIECES = 5
_MOST = 2**31


class CorpusTexts:
    """The texts of a corpus, read once; `given` are the arguments of `passages` or `overlaps`."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.tell = listener(given["progress"])
        self.problems = Problems(flag("skip_bad", given["skip_bad"]))
        self._corpus = open_corpus(
            given["source"], given["format"], encoding=given["encoding"], whole_files=True
        )
        longest = given["max_document"]
        if longest is not None:
            self._corpus.max_document = whole_number("max_document", longest, at_least=1)
        self._columns = find_columns(self._corpus, given["text"], given["id"])
        self.documents = 0

    def batches(self) -> Iterator[tuple[int, Any, Any]]:
        """Yield the row of the first document, texts and ids, some at a time."""
        identity = self._corpus.identity()
        for batch in self._corpus.read(self._columns.names, self.problems):
            texts = text_strings(batch.column(0), self._columns.text, self._corpus).fill_null("")
            ids = self._columns.ids(batch, self.documents)
            first, self.documents = self.documents, self.documents + len(texts)
            if len(texts):
                yield first, texts, ids
            self.tell("read", self._corpus.done)
        self._corpus.check_identity(identity)
        self.tell("read", 1.0)

    def left_out(self) -> dict[str, Any]:
        """Return what could not be read, for a result."""
        problems = self.problems
        return {
            "bad_rows": problems.bad,
            "binary_files": problems.binary,
            "examples": tuple(problems.examples),
            "left_out": dict(problems.left_out),
            "files_left_out": tuple(problems.files),
            "notices": tuple(problems.notices()),
        }


@shows_progress
def passages(
    source: Any,
    query: str,
    *,
    min_share: SupportsFloat = LEAST,
    gap: SupportsIndex = GAP,
    context: SupportsIndex = CONTEXT,
    text: str | None = None,
    id: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    skip_bad: bool = False,
    max_document: SupportsIndex | None = None,
    threads: SupportsIndex | None = None,
    progress: Progress | bool | None = None,
) -> Passages:
    """Find the documents of a corpus that contain a text, and where.

    Words are those of `la.Words()`. A run is a maximal sequence of equal words. A passage is one
    run, or several runs of four words or more. These follow each other in both texts, with at most
    `gap` other words between them in either. The corpus is read once, in batches.

    Every passage is found whose equal words are at least `min_share` of the query's words; a
    document may have several. If the same four words are in more than 100 places of a document, or
    of the query, only the first 100 are tried (`Passages.repeated`).

    Args:
        source: The corpus; `text`, `id`, `format`, `encoding`, `skip_bad` and `max_document` say
            how it is read, as in `la.dedup`.
        query: The text to look for.
        min_share: The least share of the query's words that a passage has.
        gap: The largest number of other words between two runs of a passage.
        context: The number of characters before and after a passage in the result.

    Examples:
        >>> import lookalike as la
        >>> found = la.passages(["he said the early bird gets the worm"], "the early bird gets")
        >>> found[0].text, found[0].share
        ('the early bird gets', 1.0)
    """
    given = dict(locals())
    wanted = share("min_share", min_share)
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
    corpus = CorpusTexts(given)
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
                found.append(_passage(document, name, first + row, own, places, steps, around))
    found.sort(key=lambda one: (-one.words, one.row, one.document_words))
    return Passages(tuple(found), corpus.documents, count, repeated, **corpus.left_out())


def _passage(
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


def piece_words(min_words: int, gap: int) -> int:
    """Return how many words a run must have: a fifth, if passages may have gaps."""
    return min_words if gap == 0 else max(1, min_words // _PIECES)


@shows_progress
def overlaps(
    source: Any,
    *,
    min_words: SupportsIndex = MIN_WORDS,
    gap: SupportsIndex = GAP,
    common: SupportsIndex = COMMON,
    within: bool = False,
    text: str | None = None,
    id: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    skip_bad: bool = False,
    max_document: SupportsIndex | None = None,
    threads: SupportsIndex | None = None,
    progress: Progress | bool | None = None,
) -> Overlaps:
    """Find passages of `min_words` words or more that two documents of a corpus have in common.

    Words are those of `la.Words()`: letters and digits, in upper or lower case. A run is a maximal
    sequence of equal words. A passage is one run, or several runs of a fifth of `min_words` words
    or more. These follow each other in both documents, with at most `gap` other words between them
    in either. Only equal words count. With `within`, passages that one document has twice are
    found, too: left and right are then the same document.

    All such passages are found, with one exception. Windows of some words that are in more than
    `common` places of the corpus propose nothing, so passages of those alone (licenses, headers)
    are left out; `Overlaps.common_windows` counts them. Memory holds the texts, and about 15 bytes
    per word.

    Args:
        source: The corpus; `text`, `id`, `format`, `encoding`, `skip_bad` and `max_document` say
            how it is read, as in `la.dedup`.
        min_words: The least number of equal words of a passage.
        gap: The largest number of other words between two runs; 0 for passages of one run.
        common: The largest number of places of words that propose passages.
        within: Also find passages that a document has twice, at places that do not overlap.

    Examples:
        >>> import lookalike as la
        >>> documents = ["so the early bird gets the worm", "the early bird gets it"]
        >>> found = la.overlaps(documents, min_words=4)
        >>> found[0].text
        'the early bird gets'
        >>> [pair.right_share for pair in found.by_pair()]
        [0.8]
    """
    given = dict(locals())
    least = whole_number("min_words", min_words, at_least=1, at_most=_MOST)
    between = whole_number("gap", gap, at_least=0, at_most=_MOST)
    most = whole_number("common", common, at_least=2)
    workers = thread_count(threads)
    corpus = CorpusTexts(given)
    held, numbered = HeldTexts(), _native.NumberedTexts()
    for first, texts, ids in corpus.batches():
        held.add(first, texts, ids)
        for documents in text_batches(texts, None):
            numbered.add(documents)
    piece = piece_words(least, between)
    corpus.tell("compare", 0.0)
    columns, windows, places = numbered.overlaps(
        piece, between, least, most, flag("within", within), workers
    )
    corpus.tell("compare", 1.0)
    found = _overlaps(held, *columns)
    return Overlaps(
        found,
        corpus.documents,
        numbered.words,
        windows,
        places,
        numbered.word_counts(),
        **corpus.left_out(),
    )


def _overlaps(
    held: HeldTexts,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    words: NDArray[np.int64],
    begins: NDArray[np.int64],
    run_left: NDArray[np.int64],
    run_right: NDArray[np.int64],
    run_length: NDArray[np.int64],
) -> tuple[Overlap, ...]:
    """Return overlaps with the characters of their words."""
    if not len(left):
        return ()
    firsts, lasts, count = begins[:-1], begins[1:] - 1, len(left)
    # Of both sides, left ones first: the first word, and the one behind the last.
    first_words = np.concatenate([run_left[firsts], run_right[firsts]])
    last_words = np.concatenate([run_left[lasts], run_right[lasts]]) + np.tile(run_length[lasts], 2)
    characters = np.empty((2 * count, 2), np.int64)
    ids: dict[int, str] = {}
    sides = np.concatenate([left, right])
    order = np.argsort(sides, kind="stable")
    rows, cuts = np.unique(sides[order], return_index=True)
    for row, own in zip(rows.tolist(), np.split(order, cuts[1:]), strict=True):
        ids[row], places = held.id(row), word_places(held.text(row))
        characters[own, 0] = places.begins[first_words[own]]
        characters[own, 1] = places.ends[last_words[own] - 1]
    words_of = list(zip(first_words.tolist(), last_words.tolist(), strict=True))
    characters_of = list(zip(*characters.T.tolist(), strict=True))
    runs = list(zip(run_left.tolist(), run_right.tolist(), run_length.tolist(), strict=True))
    each = zip(
        left.tolist(), right.tolist(), words.tolist(), pairwise(begins.tolist()), strict=True
    )
    return tuple(
        Overlap(
            left=ids[one],
            right=ids[other],
            words=equal,
            left_words=words_of[at],
            right_words=words_of[count + at],
            left_characters=characters_of[at],
            right_characters=characters_of[count + at],
            runs=runs[first:last],
            left_row=one,
            right_row=other,
            texts=held,
        )
        for at, (one, other, equal, (first, last)) in enumerate(each)
    )
