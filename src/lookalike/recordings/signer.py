"""What the signers of recordings have in common: files and samples are decoded for both."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, SupportsIndex, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import as_array, file_path, optional_module, thread_count, whole_number
from lookalike.errors import ArgumentError, DocumentError, FileError
from lookalike.parts.signer import PartSigner, SignedParts
from lookalike.recordings.bands import LEAST_RATE
from lookalike.recordings.decode import FASTEST, PIECE, AudioInfo, Words, decode, words_in
from lookalike.shown import brief
from lookalike.storage.files import file_errors

Recording = str | os.PathLike[str] | bytes | tuple[ArrayLike, SupportsIndex]


class HeardRecording(Protocol):
    """What a signer takes from a recording: words, or chroma."""

    @property
    def info(self) -> AudioInfo:
        """Facts about the recording."""


Heard = TypeVar("Heard", bound=HeardRecording)


class RecordingSigner(PartSigner, Generic[Heard]):
    """Base class of signers of recordings.

    A recording is a path or the bytes of a file, or samples and their rate.
    """

    medium = "recordings"
    unit = "milliseconds"
    reads_files = True
    _seeded = False
    _heard_type: ClassVar[type[Any]]
    """The class of what is taken from a recording."""
    _row_type: ClassVar[Any]
    """The type of a row of `Words.finish` of the objects that `_words_at` makes."""

    @abstractmethod
    def _words_at(self, rate: int) -> Words:
        """Return an object that takes samples of this rate and finishes with rows and offsets."""

    @abstractmethod
    def _parts_of(self, heard: Heard) -> SignedParts:
        """Return the parts of a recording from what was taken from it."""

    def check_installed(self) -> None:
        """Raise `MissingDependencyError` if files cannot be read."""
        optional_module("soundfile", "reading recordings", extra="audio")

    def sign(
        self, recording: Recording, *, threads: SupportsIndex | None = None
    ) -> NDArray[np.uint8]:
        """Return the words of one recording as signatures, a row each, with one thread."""
        return self.sign_query(recording, threads=threads).signatures

    def sign_parts(
        self, recording: Recording, *, threads: SupportsIndex | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the words of a recording as signatures, and the millisecond where each begins."""
        return self.sign_query(recording, threads=threads)

    def sign_each(
        self, things: Sequence[str], *, threads: SupportsIndex | None = None
    ) -> Iterator[SignedParts | DocumentError]:
        """Yield the words of each file, or an error, decoded by `threads` processes."""
        from lookalike.recordings.workers import read_recordings  # which imports this module

        for one in read_recordings(map(Path, things), self, threads=thread_count(threads)):
            yield one if isinstance(one, DocumentError) else self._parts_of(one)

    def sign_query(
        self, thing: Recording | Heard, *, threads: SupportsIndex | None = None
    ) -> SignedParts:
        """Return the words of a recording, decoded in this process if it is not yet."""
        thread_count(threads)
        return self._parts_of(self._heard(thing))

    def _heard(self, thing: Recording | Heard) -> Heard:
        """Return what is taken from a recording, decoded in this process if it is not that already.

        Raises:
            FileError: The file cannot be read.
            DocumentError: The samples are not valid.
        """
        if isinstance(thing, self._heard_type):
            return cast("Heard", thing)
        if isinstance(thing, tuple):
            return self._of_samples(thing)
        if isinstance(thing, bytes | bytearray | memoryview):
            source: Path | bytes = bytes(thing)
        else:
            source = file_path("recording", cast("str", thing))
        name = "the recording" if isinstance(source, bytes) else source
        self.check_installed()
        try:
            with file_errors(name):
                return self._read(source)
        except DocumentError as error:
            raise FileError(f"{name} {error}") from error

    def _read(self, recording: os.PathLike[str] | str | bytes) -> Heard:
        """Return what is taken from a file; a `DocumentError` does not name it."""
        return self._heard_type(*decode(recording, self._words_at))  # type: ignore[no-any-return]

    def _of_samples(self, recording: tuple[Any, ...]) -> Heard:
        if len(recording) != 2:
            raise ArgumentError(
                f"recording is {brief(recording)}; expected a path, bytes, or (samples, rate)"
            )
        samples = as_array("recording", recording[0])
        rate = whole_number("rate", recording[1], at_least=LEAST_RATE, at_most=FASTEST)
        if samples.ndim not in (1, 2) or samples.dtype.kind not in "fi" or 0 in samples.shape[1:]:
            raise DocumentError(
                f"samples are {samples.dtype} of shape {samples.shape}; expected float32 of shape "
                "(samples,) or (samples, channels)"
            )
        full = 1.0 if samples.dtype.kind == "f" else float(np.iinfo(samples.dtype).max) + 1
        columns = samples[:, None] if samples.ndim == 1 else samples
        channels = columns.shape[1]
        at_once = max(1, PIECE // channels)
        pieces = (
            (columns[start : start + at_once] / np.float32(full)).astype(np.float32)
            for start in range(0, len(columns), at_once)
        )
        try:
            rows, offsets, seconds, bandwidth, waveform = words_in(pieces, rate, self._words_at)
        except DocumentError as error:
            raise DocumentError(f"recording {error}") from error
        info = AudioInfo(
            seconds, rate, channels, "samples", True, bandwidth=bandwidth, waveform=waveform
        )
        return self._heard_type(rows, offsets, info)  # type: ignore[no-any-return]
