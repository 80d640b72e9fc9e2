"""Passages of one text in documents, and passages that documents have in common."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import flag
from lookalike.display import Displayed, Records, TableColumns, Tabular, record_columns
from lookalike.features.base import text_batches
from lookalike.indexes.results import as_int64

Run = tuple[int, int, int]
"""Equal words: the first one on the left, the first one on the right, their number."""
Stretch = tuple[int, int]
"""The begin, and the end, which is not included."""


class WordPlaces(NamedTuple):
    """Begin and end of each word of a text."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    def characters(self, begin: int, end: int) -> tuple[int, int]:
        """Return the characters from one word up to another one."""
        return int(self.begins[begin]), int(self.ends[end - 1])


def word_places(text: str) -> WordPlaces:
    """Return where the words of a text are: those of `Words()`."""
    (documents,) = text_batches([text], None)
    begins, ends = _native.word_places(documents, 0)
    return WordPlaces(as_int64(begins), as_int64(ends))


def character_range(text: str, first: int, count: int) -> tuple[int, int]:
    """Return where `count` words of a text begin and end, from the word `first` on."""
    places = word_places(text)
    known = len(places.begins)
    begin, end = min(first, known), min(first + count, known)
    return places.characters(begin, end) if begin < end else (0, 0)


class HeldTexts:
    """Texts and ids that are held in memory, as Arrow has them."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: list[tuple[Any, Any]] = []

    def add(self, first: int, texts: Any, ids: Any) -> None:
        """Add texts that follow those before."""
        self._firsts.append(first)
        self._batches.append((texts, ids))

    def text(self, row: int) -> str:
        """Return the text of a document."""
        return str(self._at(row, 0))

    def id(self, row: int) -> str:
        """Return the id of a document, or its row if it has none."""
        return str(self._at(row, 1))

    def _at(self, row: int, which: int) -> Any:
        place = bisect.bisect_right(self._firsts, row) - 1
        return self._batches[place][which][row - self._firsts[place]].as_py()


T = TypeVar("T", bound="Passage | Overlap")


@dataclass(frozen=True, repr=False)
class _Listed(Tabular, Generic[T]):
    """What was found, and what could not be read."""

    _KIND: ClassVar[type[Displayed]]

    found: tuple[T, ...]
    documents: int
    """The number of documents that were read."""
    _: KW_ONLY
    bad_rows: int = 0
    binary_files: int = 0
    examples: tuple[str, ...] = ()
    """What is wrong with some of the bad rows."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Files and pages that cannot be read, by kind."""
    files_left_out: tuple[str, ...] = ()
    """Every file of a folder that was left out, with the reason."""
    notices: tuple[str, ...] = ()
    """Warnings about how files were read."""

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.found[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self.found)

    def _columns(self, begin: int, end: int) -> TableColumns:
        return record_columns(self._KIND, self.found[begin:end])

    def _row_count(self) -> int:
        return len(self)


@dataclass(frozen=True, repr=False)
class Passage(Displayed):
    """A stretch of a document that has words of the query."""

    _SHOWN: ClassVar[tuple[str, ...]] = (
        *("id", "row", "words", "share", "query_words", "document_words", "query_characters"),
        *("document_characters", "lines", "exact", "text"),
    )

    id: str
    """The id of the document, or its row if it has none."""
    row: int
    """The row of the document, from 0."""
    words: int
    """The number of words of the query that are there, in runs."""
    share: float
    """The same as a share of the query's words."""
    query_words: Stretch
    """The words of the query, from the first that is there to the last."""
    document_words: Stretch
    query_characters: Stretch
    document_characters: Stretch
    lines: Stretch
    """Its first and last line in the document, from 1."""
    runs: list[Run]
    """Equal words: the first one in the query, the first one in the document, their number."""
    text: str = field(repr=False)
    """The passage as it is in the document."""
    before: str = field(default="", repr=False)
    after: str = field(default="", repr=False)
    """Some characters before and after it."""
    document_length: int = 0
    """Characters of the document."""

    @property
    def exact(self) -> bool:
        """Whether it is one run, without changes."""
        return len(self.runs) == 1

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain values."""
        return {name: getattr(self, name) for name in self._SHOWN}


@dataclass(frozen=True, repr=False)
class Passages(_Listed[Passage]):
    """Passages, those with most words first, then in the order of the documents.

    The table has what `Passage.to_dict` returns; a stretch has `..._begin` and `..._end`.
    """

    _KIND = Passage

    query_words: int
    """The number of words of the query."""
    repeated: int
    """How often the same words were in too many places of a document to try all of them."""

    def _values(self) -> dict[str, object]:
        return {"passages": len(self), "documents": self.documents}


@dataclass(frozen=True, repr=False)
class Overlap(Displayed):
    """A passage that two documents have in common; left comes before right in the corpus."""

    _SHOWN: ClassVar[tuple[str, ...]] = (
        *("left", "right", "words", "left_words", "right_words", "left_characters"),
        *("right_characters", "exact"),
    )

    left: str
    """The id of the document, or its row if it has none."""
    right: str
    words: int
    """The number of equal words, in runs."""
    left_words: Stretch
    right_words: Stretch
    left_characters: Stretch
    right_characters: Stretch
    runs: list[Run]
    left_row: int
    right_row: int
    texts: HeldTexts = field(repr=False, compare=False)

    @property
    def exact(self) -> bool:
        """Whether it is one run, without changes."""
        return len(self.runs) == 1

    @property
    def text(self) -> str:
        """The passage as it is in the left document."""
        return self.texts.text(self.left_row)[slice(*self.left_characters)]

    @property
    def right_text(self) -> str:
        """The passage as it is in the right document."""
        return self.texts.text(self.right_row)[slice(*self.right_characters)]

    def to_dict(self, *, text: bool = False) -> dict[str, Any]:
        """Return it in plain values; with `text`, also the text on the left."""
        more = ["text"] if flag("text", text) else []
        return {name: getattr(self, name) for name in (*self._SHOWN, *more)}


@dataclass(frozen=True, repr=False)
class OverlapPair(Displayed):
    """Two documents with passages in common; left comes before right in the corpus."""

    _SHOWN: ClassVar[tuple[str, ...]] = (
        *("left", "right", "words", "left_share", "right_share", "passages"),
    )

    left: str
    """The id of the document, or its row if it has none."""
    right: str
    words: int
    """The number of words in common passages: that of the document where it is smaller."""
    left_share: float
    """The share of the words of the left document that are in common passages."""
    right_share: float
    passages: int
    """The number of common passages."""
    left_row: int
    right_row: int

    @classmethod
    def of(cls, passages: Sequence[Overlap], word_counts: NDArray[np.int64]) -> OverlapPair:
        """Return the pair of documents that have these passages in common."""
        first, runs = passages[0], [run for one in passages for run in one.runs]
        left, right = (_covered([(run[at], run[at] + run[2]) for run in runs]) for at in (0, 1))
        return cls(
            left=first.left,
            right=first.right,
            words=min(left, right),
            left_share=left / int(word_counts[first.left_row]),
            right_share=right / int(word_counts[first.right_row]),
            passages=len(passages),
            left_row=first.left_row,
            right_row=first.right_row,
        )


def _covered(stretches: list[Stretch]) -> int:
    """Return how many words are in any of these stretches."""
    count = last = 0
    for begin, end in sorted(stretches):
        count += max(0, end - max(begin, last))
        last = max(last, end)
    return count


@dataclass(frozen=True, repr=False)
class Overlaps(_Listed[Overlap]):
    """Passages that documents have in common, by left document, right document and place.

    The table has what `Overlap.to_dict` returns; a stretch has `..._begin` and `..._end`.
    """

    _KIND = Overlap

    words: int
    """The number of words of all documents."""
    common_windows: int
    """Windows of a few words that are in too many places to propose passages."""
    common_places: int
    """The number of these places."""
    word_counts: NDArray[np.int64] = field(repr=False, compare=False)
    """The number of words of each document."""

    def by_pair(self) -> Records[OverlapPair]:
        """Return pairs of documents: their words in common, and the share of each that they are.

        A word that is in several passages of a pair counts once. Pairs that share most come first:
        by the larger one of their shares, then by words, then in the order of the documents.

        Examples:
            >>> documents = ["so the early bird gets the worm", "the early bird gets it"]
            >>> (pair,) = la.overlaps(documents, min_words=4).by_pair()
            >>> pair.words, pair.right_share
            (4, 0.8)
        """
        pairs: dict[tuple[int, int], list[Overlap]] = {}
        for one in self.found:
            pairs.setdefault((one.left_row, one.right_row), []).append(one)
        found = [OverlapPair.of(passages, self.word_counts) for passages in pairs.values()]
        found.sort(
            key=lambda one: (
                -max(one.left_share, one.right_share),
                -one.words,
                one.left_row,
                one.right_row,
            )
        )
        return Records(OverlapPair, found)

    @property
    def pairs(self) -> int:
        """The number of pairs of documents with a passage in common."""
        return len({(one.left_row, one.right_row) for one in self.found})

    def _values(self) -> dict[str, object]:
        return {"overlaps": len(self), "documents": self.documents}
