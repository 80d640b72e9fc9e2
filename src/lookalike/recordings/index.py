"""RecordingIndex: recordings that are found by a snippet, with its place in the recording."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, SupportsFloat, SupportsIndex

from numpy.typing import NDArray

from lookalike.checks import callback, file_path, instance, share, thread_count, whole_number
from lookalike.errors import ArgumentError, DocumentError, FormatError
from lookalike.indexes.base import StoredIndex
from lookalike.parts.index import PartIndex
from lookalike.recordings.audio_hash import AudioHash, Fingerprint, Recording
from lookalike.recordings.workers import read_recordings
from lookalike.shown import brief
from lookalike.storage.container import Container


@dataclass(frozen=True)
class RecordingMatch:
    """A recording that has the snippet, and where."""

    recording: str | int
    """Name under which it was added."""
    offset: float
    """Second of the recording at which the snippet begins; negative if it begins earlier."""
    score: float
    """Share of the words of the snippet that the recording has there, from 0 to 1."""
    votes: int
    """Number of these words."""


@dataclass(frozen=True)
class Added:
    """The outcome of adding a file."""

    file: Path
    words: int
    """Number of words; 0 if it is silent, too short, or could not be read."""
    reason: str | None = None
    """Why the file is not in the index, if so."""


class RecordingIndex(StoredIndex):
    """Recordings, each with a name, that are found by a snippet of a few seconds.

    It is a `PartIndex` of the words of an `AudioHash`, of about 31 bytes for each word: with bands,
    2 MB for an hour of sound.
    """

    kind = "parts"  # of its files
    signer: AudioHash

    def __init__(self, hash: AudioHash | None = None) -> None:
        given = AudioHash() if hash is None else hash
        self.signer = instance("hash", given, AudioHash, "la.AudioHash()")
        self.parts = PartIndex(AudioHash.bits)
        self.parts.signer = self.signer

    @property
    def hash(self) -> AudioHash:
        """The signer of the words; the same as `signer`."""
        return self.signer

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        return f"RecordingIndex({len(self)} recordings, {self.parts.part_count} words)"

    def add(self, name: str | int, recording: Recording | Fingerprint) -> None:
        """Add a recording, decoded in this process, or its words."""
        self.parts.add(name, *self.hash.sign_query(recording))

    def remove(self, name: str | int) -> None:
        """Remove a recording."""
        self.parts.remove(name)

    def add_files(
        self,
        files: Iterable[str | os.PathLike[str]],
        *,
        folder: str | os.PathLike[str] | None = None,
        threads: SupportsIndex | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> list[Added]:
        """Add files under their paths, and return what became of each.

        Files are decoded in `threads` isolated processes, and added once all are read. A file that
        cannot be read, or whose name is taken, is left out and has a `reason`.

        Args:
            folder: Folder to which paths are relative in the names of recordings.
        """
        paths = [file_path("files", file) for file in _several(files)]
        root = None if folder is None else file_path("folder", folder)
        tell = callback("progress", progress)
        added, words, offsets = [], [], []
        names: dict[str, None] = {}
        found = read_recordings(paths, self.hash, threads=thread_count(threads))
        for done, (path, one) in enumerate(zip(paths, found, strict=True), 1):
            name = _name(path, root)
            if isinstance(one, DocumentError):
                added.append(Added(path, 0, str(one)))
            elif name in names:  # hostile, or given twice
                added.append(Added(path, 0, f"is called {brief(name)}, as one before it is"))
            else:
                added.append(Added(path, len(one.words)))
                names[name] = None
                words.append(one.signatures)
                offsets.append(one.offsets)
            if tell is not None:
                tell("read", done / len(paths))
        self.parts.add_many(names, words, offsets)
        return added

    def search(
        self,
        recording: Recording | Fingerprint,
        *,
        k: SupportsIndex = 5,
        radius: SupportsIndex | None = None,
        min_score: SupportsFloat | None = None,
        threads: SupportsIndex | None = None,
    ) -> list[RecordingMatch]:
        """Return the k recordings that have most words of a snippet at one place, best first.

        Words may differ in `radius` bits. Recordings with less than `min_score` of the words are
        left out. A snippet without words (silence, or less than 0.8 s) finds nothing.
        """
        words, offsets = self.hash.sign_query(recording)
        votes = self.hash.votes
        least = share("min_score", votes.least_score if min_score is None else min_score)
        bits = whole_number("radius", votes.radius if radius is None else radius, at_least=0)
        most = whole_number("k", k, at_least=1)
        if len(words) == 0:
            return []
        answer = self.parts.search(
            words,
            offsets,
            radius=min(bits, AudioHash.bits),
            tolerance=votes.tolerance,
            k=most,
            min_votes=votes.min_votes(len(words)),
            threads=threads,
        )
        return [
            RecordingMatch(one.item, one.offset / 1000, one.score, one.votes)
            for one in answer
            if one.score >= least
        ]

    def __copy__(self) -> Self:
        twin = super().__copy__()
        twin.parts = copy(self.parts)
        return twin

    def _saved(
        self, notes: dict[str, Any] | None
    ) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return self.parts._saved(notes)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self.parts._arrays()

    def _restore(self, container: Container) -> None:
        self.parts = PartIndex.from_container(container)
        if not isinstance(self.parts.signer, AudioHash):
            raise FormatError(
                f"{container.path} holds parts that are not words of recordings; `lookalike audio "
                "index` makes such a file"
            )
        self.signer = self.parts.signer


def _several(files: Any) -> Iterator[Any]:
    if isinstance(files, str | bytes | os.PathLike):
        raise ArgumentError("files are a single path; expected a list of them")
    try:
        return iter(files)
    except TypeError:
        raise ArgumentError("files are no list; expected paths") from None


def _name(path: Path, root: Path | None) -> str:
    """Return the name of a file in the index: text, whatever bytes its path has."""
    inside = path.relative_to(root) if root is not None and path.is_relative_to(root) else path
    return os.fsencode(inside).decode("utf-8", "backslashreplace")
