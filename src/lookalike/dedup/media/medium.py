"""What a kind of file has to bring, so that a folder of it can be de-duplicated.

The job finds the files, puts equal ones together, asks the medium to read what is left and which
pairs of it are alike, makes clusters, chooses who stays, and writes lists and a page. All that it
does not know is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.pairs import VerifiedPairs
from lookalike.errors import ArgumentError, Said

__all__ = ["HEAD", "Medium", "Problem", "Read", "Tell", "memory_for_decoders"]

HEAD = 64
"""Bytes of a file's beginning by which it is recognised."""

_PROCESS = 128 << 20
_BYTES_A_FILE = 4 << 10
"""Of memory in this process: for the job itself, and for what is known of each file."""

Content = TypeVar("Content")
Tell = Callable[[float], None]
"""Hears the share of a step that is done."""


@dataclass(frozen=True)
class Problem:
    """A file that was left out."""

    path: Path
    reason: str
    """Such as "cannot be read (Permission denied)"; shown after the path and a colon."""


@dataclass(frozen=True, eq=False)
class Read(Generic[Content]):
    """What a medium has read. Arrays and lists have an element for each of `files`."""

    files: Sequence[Path]
    """Those that could be read, in the order in which they were given."""
    merit: NDArray[np.int64]
    """Which of several alike files is kept: the one of most merit, unless `Medium.merits` says
    otherwise; then the one of most bytes, then the first by path.
    """
    facts: Mapping[str, Sequence[Any]]
    """Columns of what is written of each file, such as width and height; names are those of
    `Medium.facts`. None where a file has no such fact.
    """
    described: Sequence[str]
    """What people read below a file on the page, such as "4000 × 3000, JPEG"."""
    content: Content
    """Signatures and whatever else `Medium.pairs` wants of its own."""
    problems: list[Problem] = field(default_factory=list)
    """One for each file that could not be read: each is either here or in `files`."""
    notices: list[tuple[str, int, str]] = field(default_factory=list)
    """More lines of the summary: name, count, note."""


class Medium(ABC, Generic[Content]):
    """A kind of file, with the settings by which two of it are alike."""

    name: ClassVar[str]
    """Such as "images": what `kind` calls it."""
    noun: ClassVar[str]
    """One of them, such as "image"."""
    suffixes: ClassVar[frozenset[str]]
    """Of names, in lower case with their dot. A file that is called so and not recognised is
    broken; others that are not recognised are simply something else.
    """
    facts: ClassVar[Mapping[str, str]]
    """The columns of `Read.facts`, and the name of their Arrow type, such as {"width": "int64"}."""
    policy: ClassVar[str] = "img-src data:"
    """What the page's Content-Security-Policy has to allow for `shown`, beside styles."""

    @classmethod
    @abstractmethod
    def recognises(cls, head: bytes) -> bool:
        """Return whether a file that begins with these bytes, up to `HEAD`, is one of this kind.

        Asked of every file of a folder, so it is quick, needs no extra, and never raises.
        """

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return what two files have to share, in plain values: for the page and `to_dict`."""

    @abstractmethod
    def criterion(self) -> str:
        """Return in words when two are alike, such as "at most 56 of 256 bits differ"."""

    @abstractmethod
    def read(self, files: Sequence[Path], *, threads: int, tell: Tell) -> Read[Content]:
        """Read files, by so many threads.

        Whatever is in a file, it becomes a `Problem` and never an error; the answer does not depend
        on the number of threads. Time and memory for one file are bounded.
        """

    @abstractmethod
    def pairs(self, read: Read[Content], *, threads: int, tell: Tell) -> VerifiedPairs:
        """Return which of the files are alike: positions in `read`, left before right, each pair
        once, by (left, right).

        `similarity` is from 0 to 1; `distance` a whole number that people know it by, or -1.
        """

    def merits(self, read: Read[Content], alike: VerifiedPairs) -> NDArray[np.int64]:
        """Return how good each file is among those it is alike with: the best one is kept."""
        return read.merit

    @abstractmethod
    def likeness(self, similarity: float, distance: int) -> str:
        """Return how alike a pair is, in few words: "12 of 256 bits differ"."""

    @abstractmethod
    def shown(self, file: Path, most: int) -> str | None:
        """Return HTML of at most `most` characters that shows a file, such as a thumbnail as a data
        URI; None if that cannot be done. Nothing in it may come from the file unescaped.
        """


def memory_for_decoders(limit: int | None, files: int, least: int) -> int | None:
    """Return the bytes of a memory limit that are left to decode files; None without a limit.

    `least` is what one decoder takes.
    """
    if limit is None:
        return None
    needed = _PROCESS + files * _BYTES_A_FILE
    if limit - needed < least:
        raise ArgumentError(
            Said("memory_limit"),
            f" is {limit:,} bytes; a job of {files:,} files takes about {needed + least:,}: raise "
            "it, or de-duplicate parts of the folder",
        )
    return limit - needed
