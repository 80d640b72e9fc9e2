"""Passages that documents of a corpus have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import callback, thread_count, whole_number
from lookalike.excerpts.results import Overlap, Overlaps
from lookalike.excerpts.texts import CorpusTexts, HeldTexts
from lookalike.excerpts.words import WordPlaces, word_places
from lookalike.features.documents import text_batches

__all__ = ["COMMON", "GAP", "MIN_WORDS", "overlaps", "piece_words"]

MIN_WORDS = 50
GAP = 4
COMMON = 100

_PIECES = 5
_MOST = 2**31


def piece_words(min_words: int, gap: int) -> int:
    """Return how many words a run must have to count: a fifth, where passages may have gaps."""
    return min_words if gap == 0 else max(1, min_words // _PIECES)


def overlaps(
    source: Any,
    *,
    min_words: SupportsIndex = MIN_WORDS,
    gap: SupportsIndex = GAP,
    common: SupportsIndex = COMMON,
    text: str | None = None,
    id: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    skip_bad: bool = False,
    max_document: SupportsIndex | None = None,
    threads: SupportsIndex | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Overlaps:
    """Find passages of `min_words` words or more that two documents of a corpus have in common.

    `source`, `text`, `id`, `format`, `skip_bad` and `max_document` are those of `la.dedup`.

    Words are those of `la.Words()`: letters and digits, capital or not, whatever stands between
    them. A run is a row of equal words that cannot be made longer; a passage is one run, or several
    of a fifth of `min_words` words or more that follow each other in both documents with at most
    `gap` other words between them in either. With `gap=0` passages are single runs. Only equal
    words count. Copies within one document are not looked for.

    All such passages are found, and nothing else, with one exception: windows of some words that
    are in more than `common` places of the corpus propose nothing, so that what consists of those
    alone (licences, headers) is left out. `Overlaps.common_windows` counts them. Memory holds the
    texts, and some 15 bytes a word.
    """
    least = whole_number("min_words", min_words, at_least=1, at_most=_MOST)
    between = whole_number("gap", gap, at_least=0, at_most=_MOST)
    most = whole_number("common", common, at_least=2)
    workers = thread_count(threads)
    tell = callback("progress", progress) or (lambda step, share: None)
    corpus = CorpusTexts(
        source,
        text=text,
        id=id,
        format=format,
        encoding=encoding,
        skip_bad=skip_bad,
        max_document=max_document,
        progress=tell,
    )
    held, numbered = HeldTexts(), _native.NumberedTexts()
    for first, texts, ids in corpus.batches():
        held.add(first, texts, ids)
        for documents in text_batches(texts, None):
            numbered.add(documents)
    piece = piece_words(least, between)
    tell("compare", 0.0)
    columns, windows, places = numbered.overlaps(piece, between, least, most, workers)
    tell("compare", 1.0)
    return Overlaps(
        _told(held, *columns),
        corpus.documents,
        numbered.words,
        windows,
        places,
        **corpus.left_out(),
    )


def _told(
    held: HeldTexts,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    words: NDArray[np.int64],
    begins: NDArray[np.int64],
    run_left: NDArray[np.int64],
    run_right: NDArray[np.int64],
    run_length: NDArray[np.int64],
) -> tuple[Overlap, ...]:
    """Return what was found, with the characters that the words are."""
    firsts, lasts = begins[:-1], begins[1:] - 1
    stretches = {
        "left": (left, run_left[firsts], run_left[lasts] + run_length[lasts]),
        "right": (right, run_right[firsts], run_right[lasts] + run_length[lasts]),
    }
    characters = {side: np.empty((len(left), 2), np.int64) for side in stretches}
    ids: dict[int, str] = {}
    rows = np.unique(np.concatenate([left, right]))
    orders = {side: np.argsort(of[0], kind="stable") for side, of in stretches.items()}
    for row in rows.tolist():
        ids[row] = held.id(row)
        places: WordPlaces | None = None
        for side, (of, begin, end) in stretches.items():
            order = orders[side]
            part = slice(*np.searchsorted(of[order], [row, row + 1]).tolist())
            own = order[part]
            if len(own):
                places = word_places(held.text(row)) if places is None else places
                characters[side][own, 0] = places.begins[begin[own]]
                characters[side][own, 1] = places.ends[end[own] - 1]
    runs = list(zip(run_left.tolist(), run_right.tolist(), run_length.tolist(), strict=True))
    each = zip(
        left.tolist(),
        right.tolist(),
        words.tolist(),
        *(zip(*(column.tolist() for column in of[1:]), strict=True) for of in stretches.values()),
        *(map(tuple, characters[side].tolist()) for side in stretches),
        begins[:-1].tolist(),
        begins[1:].tolist(),
        strict=True,
    )
    return tuple(
        Overlap(
            left=ids[one],
            right=ids[other],
            words=equal,
            left_words=left_words,
            right_words=right_words,
            left_characters=left_characters,
            right_characters=right_characters,
            runs=runs[first:last],
            left_row=one,
            right_row=other,
            texts=held,
        )
        for (
            one,
            other,
            equal,
            left_words,
            right_words,
            left_characters,
            right_characters,
            first,
            last,
        ) in each
    )
