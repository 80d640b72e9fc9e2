"""RecordingIndex: recordings that are found by a snippet, with its offset in the recording."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, SupportsFloat, SupportsIndex, TypeVar, cast

from numpy.typing import NDArray

from lookalike.checks import file_path, instance, share, thread_count, whole_number
from lookalike.display import Displayed, Records
from lookalike.errors import ArgumentError, DocumentError, FormatError
from lookalike.indexes.base import StoredIndex
from lookalike.parts.index import PartIndex
from lookalike.progress import Progress, listener, shows_progress
from lookalike.recordings.audio_hash import AudioHash, Fingerprint
from lookalike.recordings.signer import HeardRecording, Recording, RecordingSigner
from lookalike.recordings.workers import read_recordings
from lookalike.shown import brief, counted
from lookalike.storage.container import Container

Signed = TypeVar("Signed", bound=RecordingSigner[Any])


@dataclass(frozen=True, repr=False)
class RecordingMatch(Displayed):
    """A recording that contains the snippet, and its offset."""

    recording: str | int
    """Name under which it was added."""
    offset: float
    """Second of the recording at which the snippet begins; negative if it begins earlier."""
    score: float
    """Share of the words of the snippet that the recording has there, from 0 to 1."""
    votes: int
    """Number of these words."""


@dataclass(frozen=True, repr=False)
class Added(Displayed):
    """The outcome of adding a file."""

    file: Path
    words: int
    """Number of words; 0 if it is silent, too short, or could not be read."""
    reason: str | None = None
    """Why the file is not in the index, if so."""


class RecordingParts(StoredIndex, Generic[Signed]):
    """Base class of indexes of recordings: a `PartIndex` of the words of a signer, by name."""

    kind = "parts"  # of its files
    signer: Signed
    _signed_by: ClassVar[type[Any]]
    _created_by: ClassVar[str]

    def __init__(self, signer: Signed) -> None:
        self.signer = signer
        self.parts = PartIndex(signer.bits)
        self.parts.signer = signer

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        recordings, words = counted(len(self), "recording"), counted(self.parts.part_count, "word")
        return f"{type(self).__name__}({recordings}, {words})"

    def add(self, name: str | int, recording: Recording | HeardRecording) -> None:
        """Add a recording, decoded in this process, or what its signer has taken from one."""
        self.parts.add(name, *self.signer.sign_query(cast(Any, recording)))

    def remove(self, name: str | int) -> None:
        """Remove a recording."""
        self.parts.remove(name)

    @shows_progress
    def add_files(
        self,
        files: Iterable[str | os.PathLike[str]],
        *,
        folder: str | os.PathLike[str] | None = None,
        threads: SupportsIndex | None = None,
        progress: Progress | bool | None = None,
    ) -> Records[Added]:
        """Add files under their paths, and return the outcome for each.

        Files are decoded in isolated processes, and added once all are read. A file that cannot be
        read, or whose name is already used, is skipped and has a `reason`.

        Args:
            folder: folder that the names of recordings are relative to.
            threads: number of processes (default: one for each processor core).
            progress: called with "read" and the completed share; True shows a progress bar.
        """
        paths = [file_path("files", file) for file in _several(files)]
        root = None if folder is None else file_path("folder", folder)
        tell = listener(progress)
        added, words, offsets = Records(Added), [], []
        names: dict[str, None] = {}
        found = read_recordings(paths, self.signer, threads=thread_count(threads))
        for done, (path, one) in enumerate(zip(paths, found, strict=True), 1):
            name = _name(path, root)
            if isinstance(one, DocumentError):
                added.append(Added(path, 0, str(one)))
            elif name in names:  # malicious, or given twice
                added.append(
                    Added(path, 0, f"has the name {brief(name)}, which an earlier file has")
                )
            else:
                signed = self.signer.sign_query(one)
                added.append(Added(path, len(signed.offsets)))
                names[name] = None
                words.append(signed.signatures)
                offsets.append(signed.offsets)
            tell("read", done / len(paths))
        self.parts.add_many(names, words, offsets)
        return added

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
        if not isinstance(self.parts.signer, self._signed_by):
            raise FormatError(f"{container.path} is not {self._created_by}")
        self.signer = self.parts.signer


class RecordingIndex(RecordingParts[AudioHash]):
    """Recordings, each with a name, that are found by a snippet of a few seconds.

    It is a `PartIndex` of the words of an `AudioHash`. A word takes about 31 bytes: with bands, an
    hour of sound takes 2 MB.

    Args:
        hash: the signer of the words (default: `AudioHash()`).

    Examples:
        >>> import lookalike as la
        >>> import numpy as np
        >>> noise = np.random.default_rng(0).normal(size=88200) / 8
        >>> index = la.RecordingIndex()
        >>> index.add("noise", (noise, 44100))
        >>> index.search((noise[22050:66150], 44100))[0].offset
        0.5
    """

    _signed_by = AudioHash
    _created_by = "an index of recordings for snippets; create one with `lookalike audio index`"

    def __init__(self, hash: AudioHash | None = None) -> None:
        given = AudioHash() if hash is None else hash
        super().__init__(instance("hash", given, AudioHash, "la.AudioHash()"))

    @property
    def hash(self) -> AudioHash:
        """The signer of the words; the same as `signer`."""
        return self.signer

    def search(
        self,
        recording: Recording | Fingerprint,
        *,
        k: SupportsIndex = 5,
        radius: SupportsIndex | None = None,
        min_score: SupportsFloat | None = None,
        threads: SupportsIndex | None = None,
    ) -> Records[RecordingMatch]:
        """Return the recordings that contain most words of a snippet at one offset, best first.

        A snippet without words (silence, or less than 0.8 s) finds nothing.

        Args:
            k: maximum number of recordings (default: 5).
            radius: number of bits in which equal words may differ (default: 2).
            min_score: minimum share of the words of the snippet (default: by the kind of hash).
        """
        words, offsets = self.hash.sign_query(recording)
        votes = self.hash.votes
        least = share("min_score", votes.least_score if min_score is None else min_score)
        bits = whole_number("radius", votes.radius if radius is None else radius, at_least=0)
        most = whole_number("k", k, at_least=1)
        if len(words) == 0:
            return Records(RecordingMatch)
        answer = self.parts.search(
            words,
            offsets,
            radius=min(bits, AudioHash.bits),
            tolerance=votes.tolerance,
            k=most,
            min_votes=votes.min_votes(len(words)),
            threads=threads,
        )
        return Records(
            RecordingMatch,
            (
                RecordingMatch(one.item, one.offset / 1000, one.score, one.votes)
                for one in answer
                if one.score >= least
            ),
        )


def _several(files: Any) -> Iterator[Any]:
    if isinstance(files, str | bytes | os.PathLike):
        raise ArgumentError("files is a single path; expected a list of paths")
    try:
        return iter(files)
    except TypeError:
        raise ArgumentError("files is not a list; expected a list of paths") from None


def _name(path: Path, root: Path | None) -> str:
    """Return the name of a file in the index: text, whatever bytes its path has."""
    inside = path.relative_to(root) if root is not None and path.is_relative_to(root) else path
    return os.fsencode(inside).decode("utf-8", "backslashreplace")
