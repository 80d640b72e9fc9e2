"""CoverIndex: recordings that are found by another performance of the same piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import share, thread_count, whole_number
from lookalike.display import Displayed, Records
from lookalike.parts.segment import Item
from lookalike.parts.signer import SignedParts
from lookalike.recordings.alignment import longest_paths, matching
from lookalike.recordings.chroma import NOTES
from lookalike.recordings.cover_hash import STEP, Chroma, CoverHash, note_bits, transposed
from lookalike.recordings.index import RecordingParts
from lookalike.recordings.signer import Recording

LEAST_SCORE = 0.5
"""Minimum score by default: a longer path than those of other pieces, but for a few."""
TEMPOS = (0.84, 1.0, 1.19)
"""How many times as fast as a recording a query may be played; alignment bends in between."""
_ASKED = 60  # words of a query that vote, in each key at each of these tempos
_NEIGHBORS, _OF_ALL = 100, 60  # nearest words that each votes for, at most one of 60 of all
_TOLERANCE = 1500  # milliseconds that votes for one place may be apart
_CANDIDATES = 30
_PLACES = 2  # of a candidate that are aligned
_LONGEST = 1200  # words of a query
_MARGIN = 60  # words of a recording that are aligned on each side of what votes say
_CHANCE, _GROWTH = 10.0, 0.35  # the path that other pieces reach, by the words of a query


@dataclass(frozen=True, repr=False)
class CoverMatch(Displayed):
    """A recording that plays what a query plays, perhaps in another key and at another tempo."""

    recording: str | int
    """Name under which it was added."""
    offset: float
    """Second of the recording at which the common stretch begins."""
    query_offset: float
    """Second of the query at which it begins."""
    seconds: float
    """How long it is in the recording."""
    semitones: int
    """How many semitones the query is higher, from -5 to 6, octaves not counted."""
    tempo: float
    """How many times as fast the query is."""
    score: float
    """From 0 to 1. At 0.5, the match is about as long as chance makes it for another piece."""


@dataclass(frozen=True, eq=False)
class _Version:
    """The words of a query as if it were played at another tempo."""

    tempo: float
    bits: NDArray[np.bool_]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, heard: Chroma, tempo: float) -> _Version:
        bits, offsets = note_bits(heard, tempo)
        return cls(tempo, bits[:_LONGEST], offsets[:_LONGEST])


@dataclass(frozen=True)
class _Place:
    """Where votes say that a query is in a recording."""

    votes: int
    version: _Version
    semitones: int
    offset: int


class CoverIndex(RecordingParts[CoverHash]):
    """Recordings, each with a name, that are found by another performance of the same piece.

    The query may have other instruments, another key, and a tempo from 0.8 to 1.25 times that of
    the recording. It is a `PartIndex` of the words of `CoverHash`. Words of the query vote in all
    twelve keys at three tempos. The best recordings are aligned with the query, word by word.
    An hour of sound takes about 1.2 MB.

    Examples:
        >>> import lookalike as la
        >>> import numpy as np
        >>> def play(notes, seconds):
        ...     time = np.arange(int(8000 * seconds)) / 8000
        ...     return np.concatenate([np.sin(2765 * 2 ** (note / 12) * time) for note in notes])
        >>> notes = np.random.default_rng(0).integers(0, 12, 120)
        >>> index = la.CoverIndex()
        >>> index.add("first", (play(notes, 0.5), 8000))
        >>> (found,) = index.search((play(notes + 3, 0.45), 8000))
        >>> found.recording, found.semitones
        ('first', 3)
    """

    _signed_by = CoverHash
    _created_by = "an index of covers; create one with `lookalike audio index FOLDER --cover`"

    def __init__(self) -> None:
        super().__init__(CoverHash())

    def search(
        self,
        recording: Recording | Chroma,
        *,
        k: SupportsIndex = 5,
        min_score: SupportsFloat | None = None,
        threads: SupportsIndex | None = None,
    ) -> Records[CoverMatch]:
        """Return the recordings of the piece that a query plays, best first.

        Half a minute or more is needed to be certain; of a longer query, the first ten minutes
        count. A query without words (silence, noise without tones, less than 4.4 s) finds nothing.

        Args:
            k: maximum number of recordings (default: 5).
            min_score: minimum score (default: 0.5). A lower one finds more, and more by chance.
        """
        least = share("min_score", LEAST_SCORE if min_score is None else min_score)
        most = whole_number("k", k, at_least=1)
        workers = thread_count(threads)
        heard = self.signer._heard(recording)
        versions = [_Version.of(heard, tempo) for tempo in TEMPOS]
        found = []
        for item, places in self._candidates(versions, workers):
            signed = self.parts.parts_of(item)
            matches = [_aligned(item, place, signed) for place in places]
            found.append(max(matches, key=lambda match: match.score))
        found.sort(key=lambda match: -match.score)
        return Records(CoverMatch, [match for match in found if match.score >= least][:most])

    def _candidates(
        self, versions: list[_Version], threads: int
    ) -> list[tuple[Item, list[_Place]]]:
        """Return recordings by how far their votes for a key and a tempo stand out, best first.

        A recording of common words has many votes in all keys, so the most votes alone say little.
        """
        places: dict[Item, list[_Place]] = {}
        neighbors = max(1, min(_NEIGHBORS, self.parts.part_count // _OF_ALL))
        for version in versions:
            step = max(1, -(-len(version.offsets) // _ASKED))
            offsets = version.offsets[::step]
            if len(offsets) == 0:
                continue
            answers = self.parts.search_many(
                [transposed(version.bits[::step], -semitones) for semitones in range(NOTES)],
                [offsets] * NOTES,
                neighbors=neighbors,
                tolerance=_TOLERANCE,
                k=max(1, len(self)),
                min_votes=1,
                threads=threads,
            )
            for semitones, answer in enumerate(answers):
                for match in answer:
                    place = _Place(match.votes, version, semitones, match.offset)
                    places.setdefault(match.item, []).append(place)
        found = []
        for item, own in places.items():
            votes = np.zeros(len(versions) * NOTES)
            votes[: len(own)] = [one.votes for one in own]
            clear = (float(votes.max()) - float(votes.mean())) / (float(votes.std()) + 1)
            found.append((clear, item, sorted(own, key=lambda one: -one.votes)[:_PLACES]))
        found.sort(key=lambda one: -one[0])
        return [(item, own) for _, item, own in found[:_CANDIDATES]]


def _aligned(item: Item, place: _Place, signed: SignedParts) -> CoverMatch:
    """Return the longest common stretch of a query and a recording, about where votes say."""
    version, offsets = place.version, signed.offsets
    count = len(version.offsets)
    margin = (_MARGIN + count // 8) * STEP
    ends = version.offsets[[0, -1]] + place.offset + (-margin, margin)
    first, end = np.searchsorted(offsets, ends).tolist()
    own = transposed(version.bits, -place.semitones)
    (path,) = longest_paths(matching(own, signed.signatures[first:end])[:, None])
    begin, last = offsets[[first + path.begin[1], first + path.end[1]]].tolist()
    asked, stop = version.offsets[[path.begin[0], path.end[0]]].tolist()
    tempo = version.tempo * (last - begin + STEP) / (stop - asked + STEP)
    return CoverMatch(
        item,
        begin / 1000,
        asked / version.tempo / 1000,
        (last - begin + STEP) / 1000,
        (place.semitones + 5) % NOTES - 5,
        tempo,
        path.length / (path.length + _CHANCE * count**_GROWTH),
    )
