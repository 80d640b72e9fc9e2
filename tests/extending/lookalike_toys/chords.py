"""A medium of another package: files of chords, whose notes are 16 bits.

A file begins with "CHORD ", four hexadecimal digits follow. Two chords are similar if at most
`radius` notes differ; the one with most notes is kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import DocumentError
from lookalike.media import Medium, Problem, Read, SimilarPairs, Tell
from lookalike.signatures import Signer
from lookalike.storage.file_cache import FileCache

BEGIN = b"CHORD "


class ChordHash(Signer):
    """Signs chords by their notes."""

    bits = 16
    medium: ClassVar[str] = "chords"
    _seeded: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__(0)

    def sign(
        self, chords: Iterable[Any], *, threads: SupportsIndex | None = None
    ) -> NDArray[np.uint8]:
        """Return the notes of files, by their paths or bytes."""
        rows = [self._notes(chord) for chord in chords]
        return np.array(rows, np.uint8).reshape(len(rows), 2)

    def _notes(self, chord: str | os.PathLike[str] | bytes) -> list[int]:
        data = chord if isinstance(chord, bytes) else Path(chord).read_bytes()
        try:
            (value,) = [bytes.fromhex(data.removeprefix(BEGIN).decode())]
        except ValueError:
            raise DocumentError("has notes that are not hexadecimal") from None
        if len(value) != 2:
            raise DocumentError(f"has {len(value)} bytes of notes; expected 2")
        return list(value)


class ChordMedium(Medium[NDArray[np.uint8]]):
    """Files of chords."""

    name: ClassVar[str] = "chords"
    noun: ClassVar[str] = "chord"
    suffixes: ClassVar[frozenset[str]] = frozenset({".chord"})
    facts: ClassVar[dict[str, str]] = {"notes": "int64"}

    def __init__(self, radius: int = 2) -> None:
        self.signer = ChordHash()
        self.radius = radius

    @classmethod
    def recognizes(cls, head: bytes) -> bool:
        """Return whether a file begins like a chord."""
        return head.startswith(BEGIN)

    def settings(self) -> dict[str, Any]:
        """Return the radius."""
        return {"radius": self.radius}

    def criterion(self) -> str:
        """Return when two chords are similar."""
        return f"at most {self.radius} of 16 notes differ"

    def read(
        self,
        files: Sequence[Path],
        *,
        threads: int,
        tell: Tell,
        memory: int | None = None,
        cache: FileCache | None = None,
    ) -> Read[NDArray[np.uint8]]:
        """Read and sign files."""
        names = [str(file) for file in files]
        found = list(self.sign_each(self.signer, names, threads=threads))
        pairs = list(zip(files, found, strict=True))
        good = [(file, row) for file, row in pairs if not isinstance(row, DocumentError)]
        rows = np.array([row for _, row in good], np.uint8).reshape(len(good), 2)
        notes = np.bitwise_count(rows).sum(axis=1).astype(np.int64)
        return Read(
            files=[file for file, _ in good],
            merit=notes,
            facts={"notes": notes.tolist()},
            described=[f"{count} notes" for count in notes.tolist()],
            content=rows,
            problems=[
                Problem(file, str(row)) for file, row in pairs if isinstance(row, DocumentError)
            ],
        )

    def pairs(self, read: Read[NDArray[np.uint8]], *, threads: int, tell: Tell) -> SimilarPairs:
        """Return which chords are similar."""
        left, right = np.triu_indices(len(read.content), 1)
        differ = np.bitwise_count(read.content[left] ^ read.content[right]).sum(axis=1)
        near = differ <= self.radius
        return SimilarPairs(
            left[near], right[near], 1 - differ[near] / 16, differ[near].astype(np.int32)
        )

    def describe_pair(self, similarity: float, distance: int) -> str:
        """Return how many notes differ."""
        return f"{distance} of 16 notes differ"

    def preview(self, file: Path, most: int, *, memory: int | None = None) -> str | None:
        """Return the digits, which are harmless."""
        return f"<b>{file.read_bytes()[len(BEGIN) :].hex()}</b>"
