"""The medium "videos": those that show the same over most of their length are similar."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import one_of, share
from lookalike.errors import ArgumentError, Said
from lookalike.media import (
    PREVIEW_BYTES,
    PREVIEW_SIDE,
    Medium,
    Read,
    SignedFile,
    SignedItems,
    SimilarPairs,
    Tell,
    memory_for_decoders,
    picture_address,
    read_each,
    readable,
    split_problems,
)
from lookalike.parts.index import PartIndex
from lookalike.storage.file_cache import FileCache
from lookalike.videos.decode import STEP, SUFFIXES, container_of
from lookalike.videos.frames import LEAST_QUALITY, REPEATED, VideoFrames, VideoInfo
from lookalike.videos.video_hash import RADIUS, VideoHash
from lookalike.videos.workers import LEAST_MEMORY, kept_of_videos, picture_of, read_videos

_THRESHOLD = 0.8
_ASKED = 512  # frames of a video, from all over it, that propose others
_TOGETHER = 64  # videos that are searched at a time
_LEAST_VOTES = 3
_SAME_BITS = 72  # in which frames that show the same at the same time may differ
_SAME_SECONDS, _SAME_SHARE = 1.0, 0.02  # lengths that differ by less are equal
_THUMBNAIL = 240


class VideoMedium(Medium[list[VideoFrames]]):
    """Videos, of which the longest, then the one with the most pixels is kept.

    The similarity is the share of the frames of the longer video that the other has, too, at the
    same time. With `measure="containment"` it is the share of the shorter one, so that clips of
    longer videos are found.
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

    def __init__(self, threshold: SupportsFloat | None = None, measure: str | None = None) -> None:
        self.signer = VideoHash()
        self.threshold = share("threshold", _THRESHOLD if threshold is None else threshold)
        self.measure = None if measure is None else one_of("measure", measure, ("containment",))

    @classmethod
    def recognizes(cls, head: bytes) -> bool:
        return container_of(head) is not None

    @classmethod
    def sign_file(cls, signer: VideoHash, file: Path | bytes, *, preview: bool) -> SignedFile:
        (found,) = read_videos([file])
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
        signer = self.signer.to_dict()
        return {"signer": signer, "threshold": self.threshold, "measure": self.measure}

    @property
    def _of(self) -> str:
        """Which of two videos the similarity is a share of."""
        return "longer" if self.measure is None else "shorter"

    def criterion(self) -> str:
        return f"the same over {self.threshold:.0%} of the {self._of} one"

    def read(
        self,
        files: Sequence[Path],
        *,
        threads: int,
        tell: Tell,
        memory: int | None = None,
        cache: FileCache | None = None,
    ) -> Read[list[VideoFrames]]:
        room = memory_for_decoders(memory, len(files), LEAST_MEMORY)
        if room is not None:
            threads = min(threads, room // LEAST_MEMORY)
        found = read_each(files, partial(read_videos, threads=threads), cache, kept_of_videos)
        good, videos, problems = split_problems(files, found, tell)
        infos = [one.info for one in videos]
        return Read(
            files=good,
            merit=np.array([info.width * info.height for info in infos], np.int64),
            facts={name: [getattr(info, name) for info in infos] for name in self.facts},
            described=[_described(info) for info in infos],
            content=videos,
            problems=problems,
            without_features=np.array([not one.voting.any() for one in videos], bool),
        )

    def made_by(self) -> Sequence[Any]:
        return kept_of_videos().made_by

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
        return replace(pairs, right=pairs.right - len(signed.parts))

    def signed_criterion(self) -> str:
        return f"{self.criterion()}, by the frames that a collection has"

    def merits(self, read: Read[list[VideoFrames]], pairs: SimilarPairs) -> NDArray[np.int64]:
        merits = np.zeros(len(read.files), np.int64)
        labels = np.empty(len(read.files), np.int64)
        _native.components(pairs.left, pairs.right, labels)
        order = np.argsort(labels, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
            infos = [read.content[row].info for row in group.tolist()]
            merits[group[_best_first(infos)]] = -np.arange(len(group))
        return merits

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

    Frames that two videos share at one offset propose a pair; all frames at that offset decide. The
    distance is how much later the shared part begins in one of the two, in milliseconds. With
    `old`, each pair has one of the first `old` videos and one of the others.
    """
    proposed = _proposed(videos, threads, tell, old)
    pairs = np.array(sorted(proposed), np.int64).reshape(-1, 2)
    found = [
        same_share(videos[left], videos[right], proposed[left, right], of)
        for left, right in pairs.tolist()
    ]
    shares = np.array([one for one, _ in found], np.float64)
    later = np.array([offset for _, offset in found], np.int64)
    similar = shares >= least
    left, right = pairs[similar].T.copy()
    distance = np.minimum(np.abs(later[similar]), np.iinfo(np.int32).max).astype(np.int32)
    return SimilarPairs(left, right, shares[similar], distance)


def _proposed(
    videos: Sequence[VideoFrames], threads: int, tell: Tell | None, old: int
) -> dict[tuple[int, int], int]:
    """Return proposed pairs, and how much later the frames of the left one are in the right one."""
    voting = [one.voting for one in videos]
    asking = [place for place, chosen in enumerate(voting) if chosen.any()]
    rows = {place: videos[place].signatures[voting[place]] for place in asking}
    offsets = {place: videos[place].offsets[voting[place]] for place in asking}
    told = [place for place in asking if place < old] if old else asking
    asking = [place for place in asking if place >= old]
    index = PartIndex(VideoHash.bits)
    index.add_many(told, [rows[one] for one in told], [offsets[one] for one in told])
    proposed: dict[tuple[int, int], int] = {}
    for start in range(0, len(asking) if told else 0, _TOGETHER):
        some = asking[start : start + _TOGETHER]
        asked = [slice(None, None, -(-len(rows[one]) // _ASKED)) for one in some]
        answers = index.search_many(
            [rows[one][own] for one, own in zip(some, asked, strict=True)],
            [offsets[one][own] for one, own in zip(some, asked, strict=True)],
            radius=RADIUS,
            tolerance=STEP,
            k=len(told),
            threads=threads,
        )
        for one, answer in zip(some, answers, strict=True):
            for match in answer:
                other = int(match.item)
                if other != one and match.votes >= min(_LEAST_VOTES, len(rows[one])):
                    later = match.offset if one < other else -match.offset
                    proposed.setdefault((min(one, other), max(one, other)), later)
        if tell is not None:
            tell(min(1.0, (start + _TOGETHER) / len(asking)))
    return proposed


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
