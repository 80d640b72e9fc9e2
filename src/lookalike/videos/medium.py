"""The medium "videos": those that show the same over most of their length are similar."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import flag, one_of, share
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.media import (
    PREVIEW_BYTES,
    PREVIEW_SIDE,
    Read,
    SignedFile,
    SignedItems,
    SimilarPairs,
    Tell,
    picture_address,
    readable,
)
from lookalike.parts.medium import PartMedium, either_way, thinned, votes_of_pairs
from lookalike.parts.signer import SignedParts
from lookalike.recordings.audio_hash import AudioHash, Fingerprint
from lookalike.recordings.decode import AudioInfo
from lookalike.recordings.medium import proposed_by_sound
from lookalike.recordings.medium import same_share as same_share_of_sound
from lookalike.storage.file_cache import FileCache, Kept
from lookalike.videos.decode import STEP, SUFFIXES, Reading, container_of
from lookalike.videos.frames import LEAST_QUALITY, REPEATED, VideoFrames, VideoInfo
from lookalike.videos.video_hash import RADIUS, VideoHash
from lookalike.videos.workers import LEAST_MEMORY, kept_of_videos, picture_of, read_videos

_THRESHOLD = 0.8
_ASKED = 512  # frames of a video, from all over it, that propose others
_LEAST_VOTES = 3
_SAME_BITS = 72  # in which frames that show the same at the same time may differ
_SAME_SECONDS, _SAME_SHARE = 1.0, 0.02  # lengths that differ by less are equal
_THUMBNAIL = 240
_ORIENTATIONS = 8
# For pairs with the same sound. Different films had 120 bits and 4.9 standard errors at most, among
# 2,601 comparisons of films that are not those of docs/videos.md.
_WEAKLY_SAME_BITS = 100  # median over frames at the same time
_TOGETHER = 5.0  # standard errors by which changes from frame to frame correlate
_LEAST_CHANGES = 8
_BLUR, _AROUND = np.array([0.25, 0.5, 0.25]), np.full(9, 1 / 9)
_HIGHEST = 0.999


class VideoMedium(PartMedium[VideoFrames]):
    """Videos, of which the longest, then the one with the most pixels is kept.

    The similarity is the share of the frames of the longer video that the other has, too, at the
    same time. With `measure="containment"` it is the share of the shorter one, so that clips of
    longer videos are found. Videos with the same sound are similar if their pictures change at the
    same times. With `rotated`, copies that were mirrored or turned by quarters are found, too.
    """

    name: ClassVar[str] = "videos"
    noun: ClassVar[str] = "video"
    no_features: ClassVar[str] = "black or plain: only equal files are similar"
    signer: VideoHash
    suffixes: ClassVar[frozenset[str]] = SUFFIXES
    facts: ClassVar[dict[str, str]] = {
        "seconds": "float64",
        "width": "int64",
        "height": "int64",
        "rate": "float64",
        "format": "string",
        "codec": "string",
    }
    least_memory: ClassVar[int] = LEAST_MEMORY
    relation: ClassVar[tuple[str, str]] = "same sound", "pairs with other pictures: not duplicates"

    def __init__(
        self,
        threshold: SupportsFloat | None = None,
        measure: str | None = None,
        rotated: bool = False,
    ) -> None:
        self.signer = VideoHash()
        self.threshold = share("threshold", _THRESHOLD if threshold is None else threshold)
        self.measure = None if measure is None else one_of("measure", measure, ("containment",))
        self.rotated = flag("rotated", rotated)

    @classmethod
    def recognizes(cls, head: bytes) -> bool:
        return container_of(head) is not None

    @classmethod
    def sign_file(
        cls, signer: VideoHash, file: Path | bytes, *, preview: bool, query: bool = False
    ) -> SignedFile:
        (found,) = read_videos([file], Reading(signer.crop_bars, query=query))
        frames = readable(found)
        shown: dict[str, Any] = {}
        if preview:
            info = frames.info
            shown = {"format": info.format, "seconds": round(info.seconds, 3)}
            shown |= {"width": info.width, "height": info.height}
            picture = picture_of(file, PREVIEW_SIDE, PREVIEW_BYTES)
            if picture is not None:
                shown["picture"] = picture_address(picture[0])
        return SignedFile(signer.sign_query(frames), shown)

    def settings(self) -> dict[str, Any]:
        return {
            "signer": self.signer.to_dict(),
            "threshold": self.threshold,
            "measure": self.measure,
            "rotated": self.rotated,
        }

    @property
    def _of(self) -> str:
        """Which of two videos the similarity is a share of."""
        return "longer" if self.measure is None else "shorter"

    def criterion(self) -> str:
        turned = " in any orientation" if self.rotated else ""
        return f"the same{turned} over {self.threshold:.0%} of the {self._of} one"

    def read_each(
        self, files: Sequence[Path], *, threads: int
    ) -> Iterator[VideoFrames | DocumentError]:
        return read_videos(files, self._reading, threads=threads)

    @property
    def _reading(self) -> Reading:
        return Reading(orientations=_ORIENTATIONS if self.rotated else 1, sound=True)

    def kept(self) -> Kept[VideoFrames]:
        return kept_of_videos(self._reading)

    def describe(self, one: VideoFrames) -> str:
        return _described(one.info)

    def can_be_compared(self, one: VideoFrames) -> bool:
        return bool(one.voting.any())

    def best_first(self, files: Sequence[Path], copies: Sequence[VideoFrames]) -> list[int]:
        return _best_first([one.info for one in copies])

    def pairs(self, read: Read[list[VideoFrames]], *, threads: int, tell: Tell) -> SimilarPairs:
        return similar_pairs(read.content, self.threshold, self._of, threads=threads, tell=tell)

    def signed_pairs(
        self,
        read: Read[list[VideoFrames]],
        signed: SignedItems,
        *,
        threads: int,
        memory: int | None = None,
        cache: FileCache | None = None,
    ) -> SimilarPairs:
        if signed.signer != self.signer:
            raise ArgumentError(
                Said("against"),
                f" is {signed.name}, which was not signed by ",
                self.signer.said(),
                "; expected a collection of videos",
            )
        every = [*(frames_of(*parts) for parts in signed.parts), *read.content]
        pairs = similar_pairs(
            every, self.threshold, self._of, threads=threads, old=len(signed.parts)
        )
        return replace(pairs, right=pairs.right - len(signed.parts), related=())

    def signed_criterion(self) -> str:
        return f"{self.criterion()}, by the frames that a collection has"

    def describe_pair(self, similarity: float, distance: int) -> str:
        same = f"the same over {int(100 * similarity)}% of the {self._of} one"
        return f"{same}, from {distance / 1000:.1f} s on" if distance > STEP else same

    def preview(self, file: Path, most: int, *, memory: int | None = None) -> str | None:
        markup = '<img alt="" width="{}" height="{}" src="data:image/jpeg;base64,{}">'
        room = (most - len(markup) - 16) * 3 // 4 - 3
        found = picture_of(file, _THUMBNAIL, room) if room > 0 else None
        if found is None:
            return None
        data, width, height = found
        return markup.format(width, height, base64.b64encode(data).decode("ascii"))


def _best_first(infos: Sequence[VideoInfo]) -> list[int]:
    """Return the positions of copies of one video, the best first: the longest, then by pixels."""
    order = sorted(range(len(infos)), key=lambda place: -infos[place].seconds)
    level, levels = 0, [0] * len(infos)
    for larger, place in pairwise(order):
        missing = infos[larger].seconds - infos[place].seconds
        level += missing > max(_SAME_SECONDS, _SAME_SHARE * infos[larger].seconds)
        levels[place] = level
    return sorted(
        range(len(infos)),
        key=lambda place: (levels[place], -infos[place].width * infos[place].height, place),
    )


def _described(info: VideoInfo) -> str:
    minutes, seconds = divmod(round(info.seconds), 60)
    return (
        f"{minutes}:{seconds:02}, {info.width} × {info.height}, {info.rate:.3g} frames/s, "
        f"{info.format}, {info.codec}"
    )


def frames_of(signatures: NDArray[np.uint8], offsets: NDArray[np.int64]) -> VideoFrames:
    """Return the frames of a video of which only those that vote are known.

    A frame that repeats the one before it does not vote, so each is repeated until the next one, or
    for as long as repeated frames can be left out.
    """
    times = np.append(offsets[1:], offsets[-1:] + STEP) - offsets
    counts = np.clip(times // STEP, 1, REPEATED // STEP)
    begins = np.repeat(np.cumsum(counts) - counts, counts)
    more = (np.arange(int(counts.sum())) - begins) * STEP
    seconds = float(offsets[-1] + STEP) / 1000 if len(offsets) else 0.0
    return VideoFrames(
        np.repeat(signatures, counts, axis=0),
        np.repeat(offsets, counts) + more,
        np.full(len(more), LEAST_QUALITY, np.uint8),
        VideoInfo(seconds, 0, 0, 0.0, "", ""),
    )


def similar_pairs(
    videos: Sequence[VideoFrames],
    least: float,
    of: str = "longer",
    *,
    threads: int = 1,
    tell: Tell | None = None,
    old: int = 0,
) -> SimilarPairs:
    """Return the pairs that show the same over at least this share of the longer or shorter one.

    Frames that two videos share at one offset propose a pair; all frames at that offset decide. So
    does the sound, if the pictures change together. The distance is how much later the shared part
    begins in one of the two, in milliseconds. Pairs that have only their sound in common are
    related. With `old`, each pair has one of the first `old` videos and one of the others.
    """
    found = _by_pictures(videos, least, of, threads, tell, old)
    same_sound = []
    for pair, later in _by_sound(videos, threads, old).items():
        if pair in found:
            continue
        one, other = (videos[place] for place in pair)
        heard = _share_of_sound(one, other, later, of)
        if heard < least:
            continue
        if pictures_agree(one, other, later):
            found[pair] = heard, later
        else:
            same_sound.append(pair)
    pairs = sorted(found)
    left, right = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    shares = np.array([found[pair][0] for pair in pairs], np.float64)
    later_ones = np.abs(np.array([found[pair][1] for pair in pairs], np.int64))
    distance = np.minimum(later_ones, np.iinfo(np.int32).max).astype(np.int32)
    return SimilarPairs(left, right, shares, distance, same_sound)


Found = dict[tuple[int, int], tuple[float, int]]
"""Pairs, the share that is the same, and how much later the left one is in the right one."""


def _by_pictures(
    videos: Sequence[VideoFrames],
    least: float,
    of: str,
    threads: int,
    tell: Tell | None,
    old: int,
) -> Found:
    """Return the pairs of which enough frames are the same, in any orientation that was read."""
    votes = [one.voting for one in videos]
    times = [one.offsets[own] for one, own in zip(videos, votes, strict=True)]
    upright = [
        SignedParts(one.signatures[own], at)
        for one, own, at in zip(videos, votes, times, strict=True)
    ]
    orientations = 1 + max((len(one.turned) for one in videos), default=0)
    found: Found = {}
    for number in range(orientations):
        asked = [
            thinned(SignedParts(one.oriented(number)[own], at), _ASKED)
            for one, own, at in zip(videos, votes, times, strict=True)
        ]
        proposed = votes_of_pairs(
            upright,
            asked,
            VideoHash.bits,
            radius=RADIUS,
            tolerance=STEP,
            is_enough=lambda one, match: match.votes >= min(_LEAST_VOTES, len(times[one])),
            threads=threads,
            old=old,
            tell=None if tell is None else partial(_tell_part, tell, number, orientations),
        )
        # In another orientation, what the left one has found is not what the right one has.
        for (one, other), later in (proposed if number else either_way(proposed)).items():
            pair, seen = (min(one, other), max(one, other)), videos[one].oriented(number)
            same, moved = same_share(
                replace(videos[one], signatures=seen), videos[other], later, of
            )
            if same >= least and same > found.get(pair, (0.0, 0))[0]:
                found[pair] = same, moved if one < other else -moved
    return found


def _tell_part(tell: Tell, number: int, count: int, share: float) -> None:
    tell((number + share) / count)


def _by_sound(videos: Sequence[VideoFrames], threads: int, old: int) -> dict[tuple[int, int], int]:
    """Return pairs whose sound has words in common at one offset."""
    silence = Fingerprint(
        np.empty(0, np.uint32), np.empty(0, np.int64), AudioInfo(0.0, 0, 0, "", lossless=False)
    )
    heard = [one.sound or silence for one in videos]
    return proposed_by_sound(heard, AudioHash(), threads=threads, old=old)


def _share_of_sound(one: VideoFrames, other: VideoFrames, later: int, of: str) -> float:
    """Return the share of the sound of the longer or shorter video that the other has, too.

    A video may have sound for a part of its time; the share is also that of its length at most.
    """
    if one.sound is None or other.sound is None:
        return 0.0
    same = same_share_of_sound(one.sound, other.sound, later, AudioHash().hop, of)
    by_length = sorted((one, other), key=lambda video: video.info.seconds)
    whole = by_length[-1 if of == "longer" else 0]
    heard = AudioHash().hop * len(whole.sound.words) / 1000 if whole.sound else 0.0
    return same * min(1.0, (heard + _SAME_SECONDS) / max(whole.info.seconds, _SAME_SECONDS))


def pictures_agree(one: VideoFrames, other: VideoFrames, later: int) -> bool:
    """Return whether the pictures of two videos may be the same, for a pair with the same sound.

    Either frames at the same time are nearer than those of different films ever are, or pictures
    change at the same times, more than by chance. They do so in a mirrored or cropped copy; two
    films with the same music have their cuts elsewhere.
    """
    near, inside = _nearest(other, one.offsets + later)
    told = inside & (one.quality >= LEAST_QUALITY)
    if not told.any():
        return False
    differ = np.bitwise_count(one.signatures ^ other.signatures[near]).sum(axis=1)
    if np.median(differ[told]) <= _WEAKLY_SAME_BITS:
        return True
    return errors_of_changes(one.signatures, other.signatures[near], inside) >= _TOGETHER


def errors_of_changes(
    first: NDArray[np.uint8], second: NDArray[np.uint8], inside: NDArray[np.bool_]
) -> float:
    """Return how the changes from frame to frame correlate, in standard errors of chance.

    Frames of both videos are at the same times; `inside` says which are there. 0, if they are few.
    """
    both = inside[1:] & inside[:-1]
    changes = []
    for rows in (first, second):
        bits = np.bitwise_count(rows[1:] ^ rows[:-1]).sum(axis=1, dtype=np.float64)
        # A cut may fall between other frames of the copy.
        blurred = np.convolve(np.sqrt(bits), _BLUR, "same")[both]
        if len(blurred) < _LEAST_CHANGES:
            return 0.0
        # Lively and calm scenes follow each other in all films.
        wide = np.pad(blurred, len(_AROUND) // 2, mode="edge")
        changes.append(blurred - np.convolve(wide, _AROUND, "valid"))
    if min(each.std() for each in changes) == 0:
        return 0.0
    correlation = float(np.corrcoef(changes[0], changes[1])[0, 1])
    independent = len(changes[0]) / 2  # the others are blurred into these
    return float(np.arctanh(min(correlation, _HIGHEST)) * np.sqrt(independent - 3))


def same_share(
    one: VideoFrames, other: VideoFrames, offset: int, of: str = "longer"
) -> tuple[float, int]:
    """Return the share of frames of the longer or shorter video that the other has, too.

    The frames of the first are compared `offset` milliseconds later, plus or minus a step; the best
    of these offsets is returned, too. Frames that are plain in both do not count.
    """
    first, second = (video.info.seconds for video in (one, other))
    asks_first = (first >= second) == (of == "longer")
    if not asks_first:
        found, later = _same_frames(other, one, -offset)
        return found, -later
    return _same_frames(one, other, offset)


def _same_frames(one: VideoFrames, other: VideoFrames, offset: int) -> tuple[float, int]:
    """Return the share of the frames of the first video that the other has, and the offset."""
    best = 0.0, offset
    counted = one.quality >= LEAST_QUALITY
    if not counted.any():
        return best
    for moved in range(offset - STEP, offset + STEP + 1, STEP // 2):
        at = one.offsets + moved
        nearest = np.full(len(at), VideoHash.bits)
        place = np.searchsorted(other.offsets, at)
        for neighbor in (place - 1, place):
            inside = (neighbor >= 0) & (neighbor < len(other.offsets))
            chosen = np.where(inside, neighbor, 0)
            inside &= np.abs(other.offsets[chosen] - at) <= STEP
            differ = np.bitwise_count(one.signatures ^ other.signatures[chosen]).sum(axis=1)
            nearest = np.where(inside, np.minimum(nearest, differ), nearest)
        same = float(np.mean(nearest[counted] <= _SAME_BITS))
        if same > best[0]:
            best = same, moved
    return best


def _nearest(
    video: VideoFrames, times: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the frame nearest to each time, and whether it is within a step."""
    place = np.clip(np.searchsorted(video.offsets, times), 1, max(1, len(video.offsets) - 1))
    after = np.minimum(place, len(video.offsets) - 1)
    before_is_nearer = times - video.offsets[place - 1] <= video.offsets[after] - times
    chosen = np.where(before_is_nearer, place - 1, after)
    return chosen, np.abs(video.offsets[chosen] - times) <= STEP
