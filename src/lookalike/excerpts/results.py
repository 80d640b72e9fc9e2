"""What is found: passages of one text in documents, and of documents in each other."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import flag
from lookalike.features.base import text_batches
from lookalike.indexes.results import Result, as_int64

__all__ = ["HeldTexts", "Overlap", "Overlaps", "Passage", "Passages", "WordPlaces", "word_places"]

Run = tuple[int, int, int]
"""Words that are equal: where on the left, where on the right, how many."""

Stretch = tuple[int, int]
"""From where, and up to before where."""

_STRETCHES = (
    "query_words", "document_words", "query_characters", "document_characters", "lines",
    "left_words", "right_words", "left_characters", "right_characters",
)  # fmt: skip
_KINDS: dict[str, Any] = {
    "id": object, "left": object, "right": object, "text": object, "row": np.int64,
    "words": np.int64, "share": np.float64, "exact": np.bool_,
}  # fmt: skip


class WordPlaces(NamedTuple):
    """Begin and end of each word of a text."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    def characters(self, begin: int, end: int) -> tuple[int, int]:
        """Return the characters from one word to before another one; there is a word between."""
        return int(self.begins[begin]), int(self.ends[end - 1])


def word_places(text: str) -> WordPlaces:
    """Return where the words of a text are: those of `Words()`."""
    (documents,) = text_batches([text], None)
    begins, ends = _native.word_places(documents, 0)
    return WordPlaces(as_int64(begins), as_int64(ends))


class HeldTexts:
    """Texts and ids that are held in memory, as Arrow has them."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: list[tuple[Any, Any]] = []

    def add(self, first: int, texts: Any, ids: Any) -> None:
        """Hold some more, which come behind those before."""
        self._firsts.append(first)
        self._batches.append((texts, ids))

    def text(self, row: int) -> str:
        """Return the text of a document."""
        return str(self._at(row, 0))

    def id(self, row: int) -> str:
        """Return the id of a document, or its row where it has none."""
        return str(self._at(row, 1))

    def _at(self, row: int, which: int) -> Any:
        place = bisect.bisect_right(self._firsts, row) - 1
        return self._batches[place][which][row - self._firsts[place]].as_py()


T = TypeVar("T")


class _Listed(Result, Generic[T]):
    """What was found, one after the other."""

    found: tuple[T, ...]

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

    def _columns(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return these attributes of all; of a stretch, where it begins and ends."""
        columns: dict[str, NDArray[Any]] = {}
        for name in names:
            values = [getattr(one, name) for one in self.found]
            if name in _STRETCHES:
                ends = np.array(values, np.int64).reshape(-1, 2)
                columns |= {f"{name}_begin": ends[:, 0], f"{name}_end": ends[:, 1]}
            else:
                columns[name] = np.array(values, _KINDS[name])
        return columns


@dataclass(frozen=True)
class Passage:
    """A stretch of a document that has words of the text that was looked for."""

    id: str
    """Of the document; its row where it has none."""
    row: int
    """Of the document, from 0 on."""
    words: int
    """How many words of the text are there, in runs."""
    share: float
    """The same as a share of the text's words."""
    query_words: Stretch
    """Which words of the text it is, from the first that is there to the last."""
    document_words: Stretch
    """Which words of the document."""
    query_characters: Stretch
    document_characters: Stretch
    lines: Stretch
    """The first and the last line of it in the document, counted from 1."""
    runs: list[Run]
    """Words that are equal: where in the text, where in the document, how many."""
    text: str = field(repr=False)
    """The stretch, as it stands in the document."""
    before: str = field(default="", repr=False)
    """Some characters before it."""
    after: str = field(default="", repr=False)
    """Some characters behind it."""
    document_length: int = 0
    """Characters of the whole document."""

    @property
    def exact(self) -> bool:
        """Whether it is one run, without any change."""
        return len(self.runs) == 1

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain values."""
        names = ("id", "row", "words", "share", "query_words", "document_words")
        more = ("query_characters", "document_characters", "lines", "exact", "text")
        return {name: getattr(self, name) for name in (*names, *more)}


@dataclass(frozen=True)
class Passages(_Listed[Passage]):
    """What was found, most words first; then as the documents come."""

    found: tuple[Passage, ...]
    documents: int
    """That were read."""
    query_words: int
    """Of the text that was looked for."""
    repeated: int
    """Times that a few words were in so many places of a document that not all were tried."""
    bad_rows: int = 0
    binary_files: int = 0
    examples: tuple[str, ...] = ()
    """What is wrong with some of the bad rows."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Files and pages that cannot be read, by kind."""
    files_left_out: tuple[str, ...] = ()
    """Every file of a folder that was left out, with the reason."""
    notices: tuple[str, ...] = ()
    """What people should know of how files were read."""

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return what `Passage.to_dict` has of every passage, with `..._begin` and `..._end` of
        stretches.
        """
        names = ("id", "row", "words", "share", "query_words", "document_words")
        more = ("query_characters", "document_characters", "lines", "exact", "text")
        return self._columns((*names, *more))

    def __repr__(self) -> str:
        return f"Passages({len(self)} in {self.documents} documents)"


@dataclass(frozen=True)
class Overlap:
    """A passage that two documents have in common; left comes before right in the corpus."""

    left: str
    """Its id, or its row where it has none."""
    right: str
    words: int
    """How many words are equal, in runs."""
    left_words: Stretch
    right_words: Stretch
    left_characters: Stretch
    right_characters: Stretch
    runs: list[Run]
    """Words that are equal: where on the left, where on the right, how many."""
    left_row: int
    right_row: int
    texts: HeldTexts = field(repr=False, compare=False)

    @property
    def exact(self) -> bool:
        """Whether it is one run, without any change."""
        return len(self.runs) == 1

    @property
    def text(self) -> str:
        """The passage as it stands on the left."""
        return self.texts.text(self.left_row)[slice(*self.left_characters)]

    @property
    def right_text(self) -> str:
        """The passage as it stands on the right."""
        return self.texts.text(self.right_row)[slice(*self.right_characters)]

    def to_dict(self, *, text: bool = False) -> dict[str, Any]:
        """Return it in plain values; with `text`, what it says on the left, too."""
        names = ("left", "right", "words", "left_words", "right_words", "left_characters")
        more = ("right_characters", "exact", *(["text"] if flag("text", text) else []))
        return {name: getattr(self, name) for name in (*names, *more)}


@dataclass(frozen=True)
class Overlaps(_Listed[Overlap]):
    """Passages that documents of a corpus have in common, in the order of the documents on the
    left, then of those on the right, then of their places.
    """

    found: tuple[Overlap, ...]
    documents: int
    words: int
    """Of all documents."""
    common_windows: int
    """Windows of a few words that are in so many places that they proposed nothing."""
    common_places: int
    """How many places these are in."""
    bad_rows: int = 0
    binary_files: int = 0
    examples: tuple[str, ...] = ()
    """What is wrong with some of the bad rows."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Files and pages that cannot be read, by kind."""
    files_left_out: tuple[str, ...] = ()
    """Every file of a folder that was left out, with the reason."""
    notices: tuple[str, ...] = ()
    """What people should know of how files were read."""

    @property
    def pairs(self) -> int:
        """How many pairs of documents have a passage in common."""
        return len({(one.left_row, one.right_row) for one in self.found})

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return what `Overlap.to_dict` has of every passage, with `..._begin` and `..._end` of
        stretches.
        """
        names = ("left", "right", "words", "left_words", "right_words", "left_characters")
        return self._columns((*names, "right_characters", "exact"))

    def __repr__(self) -> str:
        return f"Overlaps({len(self)} among {self.documents} documents)"
