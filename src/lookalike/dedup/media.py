"""Kinds of files, such as "images" and "recordings": files of a folder are compared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path, thread_count
from lookalike.corpora.opening import expand_paths
from lookalike.dedup.decide import decide, rank_by
from lookalike.dedup.pairs import Ints, VerifiedPairs
from lookalike.dedup.result import DedupCounts, MediaResult
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError
from lookalike.jobs.context import JobProgress, memory_bytes
from lookalike.media import Medium, Problem, SimilarPairs, find_files, first_equal
from lookalike.progress import Progress, listener
from lookalike.shown import brief


def run_media_job(
    source: Any,
    medium: Medium[Any],
    *,
    memory_limit: SupportsIndex | None = None,
    threads: SupportsIndex | None = None,
    progress: Progress | bool | None = None,
) -> MediaResult:
    """Find the files of one medium that are similar, and choose which of them are kept.

    Files that are equal byte for byte are read once. Every dropped file is equal to a kept one, or
    a pair with it; no two kept files are a pair. Files that cannot be read are left out, counted
    and named. The same files give the same result, for any number of threads.
    """
    paths, memory = _paths(source), memory_bytes(memory_limit)
    count, steps = thread_count(threads), JobProgress(listener(progress))
    with steps.timed("read"):
        found = find_files(paths, type(medium))
        sizes = np.array(found.sizes, np.int64)
    with steps.timed("collapse"):
        tell = partial(steps.step, "collapse")
        first = first_equal(found.files, sizes, threads=count, tell=tell)
        distinct = np.flatnonzero(first == np.arange(len(first)))
    with steps.timed("sign"):
        files = [found.files[position] for position in distinct.tolist()]
        tell = partial(steps.step, "sign")
        read = medium.read(files, threads=count, tell=tell, memory=memory)
    with steps.timed("propose"):
        similar = medium.pairs(read, threads=count, tell=partial(steps.step, "propose"))
    with steps.timed("group"):
        rows = {file: row for row, file in enumerate(read.files)}
        places = np.array([rows.get(found.files[equal], -1) for equal in first.tolist()], np.int64)
        good = np.flatnonzero(places >= 0)
        row_of = places[good]
        number = np.full(len(first), -1, np.int64)
        number[good] = np.arange(len(good))
        first_good, sizes = number[first[good]], sizes[good]
        pairs = _of_files(similar, first_good, row_of)
        rank = rank_by(-medium.merits(read, similar)[row_of], -sizes)  # then by path
        decision = decide(pairs, rank, DedupSettings(), first=first_good)
        duplicate_of = decision.duplicate_of
        distance = _distances(first_good, duplicate_of, pairs)
    problems = [*found.problems, *_broken(read.problems, found.files, first)]
    chosen = row_of.tolist()
    return MediaResult(
        kind=medium.name,
        medium=medium,
        memory_limit=memory,
        root=paths[0] if len(paths) == 1 and paths[0].is_dir() else None,
        several=len(paths) > 1,
        name=f"{paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}",
        files=[found.files[position] for position in good.tolist()],
        sizes=sizes,
        facts={name: [values[row] for row in chosen] for name, values in read.facts.items()},
        descriptions=[read.described[row] for row in chosen],
        keep=duplicate_of < 0,
        group_of=decision.group_of,
        duplicate_of=duplicate_of,
        similarity=decision.similarity,
        distance=distance,
        first_equal=first_good,
        different_pairs=pairs,
        counts=DedupCounts.of(
            decision,
            first_good,
            without_features=read.without_features,
            verified_pairs=len(pairs),
            bytes=int(sizes.sum()),
            bytes_saved=int(sizes[duplicate_of >= 0].sum()),
            left_out=len(problems),
            other_files=len(found.others),
        ),
        problems=sorted(problems, key=lambda problem: problem.path),
        seconds=steps.seconds,
        warnings=[],
    )


def _paths(source: Any) -> list[Path]:
    """Return the files and folders that a path, a pattern or a list of these stands for."""
    given = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(given, bytes | bytearray) or not isinstance(given, Sequence):
        raise ArgumentError(
            f"source is {brief(source)} of type {type(source).__name__}; expected a folder, or a "
            "list of files"
        )
    return expand_paths([file_path("source", one) for one in given])


def _of_files(pairs: SimilarPairs, first: Ints, row_of: Ints) -> VerifiedPairs:
    """Return pairs of what was read as pairs of the first of equal files, in the same order."""
    own = np.flatnonzero(first == np.arange(len(first)))
    number = np.empty(len(own), np.int64)
    number[row_of[own]] = own
    return VerifiedPairs(number[pairs.left], number[pairs.right], pairs.similarity, pairs.distance)


def _distances(first: Ints, duplicate_of: Ints, pairs: VerifiedPairs) -> NDArray[np.int32]:
    """Return the distance of each dropped file to the kept one; -1 for kept files."""
    distance = np.full(len(first), -1, np.int32)
    dropped = np.flatnonzero(duplicate_of >= 0)
    distance[dropped] = 0
    one, two = first[duplicate_of[dropped]], first[dropped]
    differ = np.flatnonzero(one != two)
    # Every file is a pair with the center of its group, so each of these is there.
    keys = np.minimum(one, two)[differ] * len(first) + np.maximum(one, two)[differ]
    places = np.searchsorted(pairs.left * len(first) + pairs.right, keys)
    distance[dropped[differ]] = pairs.distance[places]
    return distance


def _broken(problems: Sequence[Problem], files: Sequence[Path], first: Ints) -> list[Problem]:
    """Return what is wrong with files, copies of broken ones among them."""
    reasons = {problem.path: problem.reason for problem in problems}
    firsts = [files[position] for position in first.tolist()]
    return [
        Problem(file, reasons[equal])
        for file, equal in zip(files, firsts, strict=True)
        if equal in reasons
    ]
