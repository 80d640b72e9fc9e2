"""A corpus without repeated runs of words, by a suffix array of pydivsufsort, as a program.

    python -m benchmarks.cleaning.suffix_array CORPUS.jsonl CLEAN.jsonl LEAST ARRAYS.npz

Words are numbered, and a number that is no word ends each document. The numbers, and whether each
word is removed, are written, too. The seconds and the peak of memory are printed as JSON.
"""

from __future__ import annotations

import json
import resource
import sys
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from benchmarks.cleaning.texts import COLUMN, WORD, words_of

__all__ = ["kept_words", "numbered", "removed_words"]

Words = NDArray[np.uint32]


def removed_words(words: Words, ends: NDArray[np.int64], least: int) -> NDArray[np.bool_]:
    """Return which words are in a run of `least` that occurs earlier, not overlapping it.

    `ends` are the places of the numbers that end documents.
    """
    from pydivsufsort import divsufsort, kasai

    array = divsufsort(words)
    common = kasai(words, array)[:-1] >= least  # with the suffix behind
    inside = np.zeros(len(words), bool)
    inside[:-1] |= common
    inside[1:] |= common
    places = array[inside].astype(np.int64)
    group = np.cumsum(np.concatenate([[True], ~common]))[inside]
    if not len(places):
        return np.zeros(len(words), bool)
    begins = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    sizes = np.diff(np.concatenate([begins, [len(places)]]))
    first = np.repeat(np.minimum.reduceat(places, begins), sizes)
    own = np.searchsorted(ends, places)
    fits = ends[own] - places >= least  # within one document
    apart = (np.searchsorted(ends, first) < own) | (places - first >= least)
    repeated = places[fits & apart & (first < places)]
    steps = np.zeros(len(words) + 1, np.int64)
    np.add.at(steps, repeated, 1)
    np.add.at(steps, repeated + least, -1)
    return np.cumsum(steps[:-1]) > 0


def kept_words(
    words: Words, ends: NDArray[np.int64], least: int, removed: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the places of the words that are left once no run is repeated."""
    places = np.flatnonzero(~removed)
    while removed.any():
        left = words[places]
        own_ends = np.flatnonzero(np.isin(places, ends, assume_unique=True))
        removed = removed_words(left, own_ends, least)
        places = places[~removed]
    return places


def numbered(texts: list[str]) -> tuple[Words, NDArray[np.int64]]:
    """Return the words of ASCII texts as numbers, and where 0 ends each text."""
    numbers: dict[str, int] = {}
    parts = [
        [*(numbers.setdefault(word, len(numbers) + 1) for word in words_of(text)), 0]
        for text in texts
    ]
    ends = np.cumsum([len(part) for part in parts]) - 1
    words = np.fromiter((word for part in parts for word in part), np.uint32, int(ends[-1]) + 1)
    return words, ends


def cleaned(text: str, removed: NDArray[np.bool_]) -> str:
    """Return a text without some of its words, and what is between them and the next one."""
    begins = [found.start() for found in WORD.finditer(text)]
    parts = zip(pairwise([*begins, len(text)]), removed.tolist(), strict=True)
    return text[: begins[0]] + "".join(text[begin:end] for (begin, end), gone in parts if not gone)


def main(arguments: list[str]) -> None:
    """Run the program."""
    start = perf_counter()
    with Path(arguments[0]).open(encoding="ascii") as lines:
        rows = [json.loads(line) for line in lines]
    words, ends = numbered([row[COLUMN] for row in rows])
    before = perf_counter()
    removed = removed_words(words, ends, int(arguments[2]))
    found = perf_counter() - before
    begin = 0
    with Path(arguments[1]).open("w", encoding="ascii") as file:
        for row, end in zip(rows, ends.tolist(), strict=True):
            own = removed[begin:end]
            if own.any():
                row[COLUMN] = cleaned(row[COLUMN], own)
            file.write(json.dumps(row) + "\n")
            begin = end + 1
    seconds = perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    np.savez(arguments[3], words=words, ends=ends, removed=removed)
    print(json.dumps({"seconds": seconds, "array": found, "peak": peak}))


if __name__ == "__main__":
    main(sys.argv[1:])
