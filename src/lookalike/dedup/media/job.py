"""The whole job for a folder of images or recordings, step by step."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import callback, file_path, thread_count
from lookalike.corpora.opening import expand_paths
from lookalike.dedup.decide import decide, rank_by
from lookalike.dedup.media.find import find_files, first_equal
from lookalike.dedup.media.medium import Medium, Problem
from lookalike.dedup.media.result import MediaCounts, MediaResult
from lookalike.dedup.pairs import VerifiedPairs
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError
from lookalike.jobs.context import JobProgress
from lookalike.shown import brief

__all__ = ["paths_of", "run_media_job"]


def run_media_job(
    paths: Sequence[Path],
    medium: Medium[Any],
    *,
    threads: SupportsIndex | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> MediaResult:
    """Find the files of one kind that are alike, and choose who of them stays.

    `paths` are folders and files. Files that are equal byte for byte are read once. Every file that
    is dropped is equal to one that stays, or a pair with it; of those that stay no two are a pair.
    What cannot be read is left out, counted and named. The same files give the same result, for any
    number of threads.
    """
    count, steps = thread_count(threads), JobProgress(callback("progress", progress))
    with steps.timed("read"):
        found = find_files(paths, type(medium))
        sizes = np.array(found.sizes, np.int64)
    with steps.timed("collapse"):
        tell = partial(steps.step, "collapse")
        first = first_equal(found.files, sizes, threads=count, tell=tell)
        distinct = np.flatnonzero(first == np.arange(len(first)))
    with steps.timed("sign"):
        files = [found.files[position] for position in distinct.tolist()]
        read = medium.read(files, threads=count, tell=partial(steps.step, "sign"))
    with steps.timed("propose"):
        alike = medium.pairs(read, threads=count, tell=partial(steps.step, "propose"))
    with steps.timed("cluster"):
        rows = {file: row for row, file in enumerate(read.files)}
        places = [rows.get(found.files[equal], -1) for equal in first.tolist()]
        good = np.flatnonzero(np.array(places, np.int64) >= 0)
        row_of = np.array(places, np.int64)[good]
        number = np.full(len(first), -1, np.int64)
        number[good] = np.arange(len(good))
        first_good, sizes = number[first[good]], sizes[good]
        pairs = _of_files(alike, first_good, row_of)
        rank = rank_by(-medium.merits(read, alike)[row_of], -sizes)  # then by path
        decision = decide(pairs, rank, DedupSettings(), first=first_good)
        clusters, duplicate_of = decision.clusters, decision.duplicate_of
        similarity, distance = _likeness(first_good, duplicate_of, pairs)
    problems = [*found.problems, *_broken(read.problems, found.files, first)]
    return MediaResult(
        medium=medium,
        root=paths[0] if len(paths) == 1 and paths[0].is_dir() else None,
        several=len(paths) > 1,
        name=f"{paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}",
        files=[found.files[position] for position in good.tolist()],
        sizes=sizes,
        facts={
            name: [values[row] for row in row_of.tolist()] for name, values in read.facts.items()
        },
        described=[read.described[row] for row in row_of.tolist()],
        keep=duplicate_of < 0,
        clusters=clusters,
        duplicate_of=duplicate_of,
        similarity=similarity,
        distance=distance,
        first_equal=first_good,
        different_pairs=pairs,
        counts=MediaCounts.of(
            clusters=clusters,
            duplicate_of=duplicate_of,
            first=first_good,
            sizes=sizes,
            pairs=len(pairs),
            left_out=len(problems),
            other_files=len(found.others),
        ),
        problems=sorted(problems, key=lambda problem: problem.path),
        notices=list(read.notices),
        seconds=steps.seconds,
    )


def paths_of(source: Any) -> list[Path]:
    """Return the files and folders that a path, a pattern or a list of these stands for."""
    if isinstance(source, str | os.PathLike):
        return expand_paths([file_path("source", source)])
    if isinstance(source, Sequence) and not isinstance(source, bytes | bytearray):
        return expand_paths([file_path("source", one) for one in source])
    raise ArgumentError(
        f"source is {brief(source)} of type {type(source).__name__}; expected a folder, or a list "
        "of files"
    )


def _of_files(
    pairs: VerifiedPairs, first: NDArray[np.int64], row_of: NDArray[np.int64]
) -> VerifiedPairs:
    """Return pairs of what was read as pairs of files, the first ones of those that are equal.

    What was read is in the order of files, so pairs stay in theirs.
    """
    own = np.flatnonzero(first == np.arange(len(first)))
    number = np.empty(len(own), np.int64)
    number[row_of[own]] = own
    return VerifiedPairs(number[pairs.left], number[pairs.right], pairs.similarity, pairs.distance)


def _likeness(
    first: NDArray[np.int64], duplicate_of: NDArray[np.int64], pairs: VerifiedPairs
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return how alike each dropped file is to the one that stands for it: NaN and -1 for those
    that stay.
    """
    similarity = np.full(len(first), np.nan)
    distance = np.full(len(first), -1, np.int32)
    dropped = np.flatnonzero(duplicate_of >= 0)
    similarity[dropped], distance[dropped] = 1.0, 0
    one, two = first[duplicate_of[dropped]], first[dropped]
    differ = np.flatnonzero(one != two)
    # Everyone is a pair with its centre, so each of these is there.
    keys = np.minimum(one, two)[differ] * len(first) + np.maximum(one, two)[differ]
    places = np.searchsorted(pairs.left * len(first) + pairs.right, keys)
    similarity[dropped[differ]] = pairs.similarity[places]
    distance[dropped[differ]] = pairs.distance[places]
    return similarity, distance


def _broken(
    problems: Sequence[Problem], files: Sequence[Path], first: NDArray[np.int64]
) -> list[Problem]:
    """Return what is wrong with files, copies of broken ones among them."""
    reasons = {problem.path: problem.reason for problem in problems}
    firsts = [files[position] for position in first.tolist()]
    return [
        Problem(file, reasons[equal])
        for file, equal in zip(files, firsts, strict=True)
        if equal in reasons
    ]
