"""Kinds of files, such as "images" and "recordings": files of a folder are compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path, flag, thread_count
from lookalike.corpora.opening import expand_paths
from lookalike.dedup.decide import GroupChoices, decide, rank_by, split_old
from lookalike.dedup.old import is_signed, signed_items
from lookalike.dedup.pairs import Ints, VerifiedPairs, count_with_copies, in_order
from lookalike.dedup.result import DedupCounts, MediaResult
from lookalike.dedup.settings import FILE_RULES, DedupSettings
from lookalike.errors import ArgumentError, Said
from lookalike.jobs.context import JobProgress, memory_bytes
from lookalike.jobs.work_folder import WorkFolder
from lookalike.media import (
    Medium,
    Problem,
    Read,
    SignedItems,
    SimilarPairs,
    Tell,
    find_files,
    first_equal,
)
from lookalike.progress import Progress, listener
from lookalike.shown import brief
from lookalike.storage.file_cache import (
    NAME,
    FileCache,
    Kept,
    packed,
    unpacked,
    user_file_cache,
)
from lookalike.storage.files import FileState

_NO_STATE = FileState(0, 0, 0, 0)


def run_media_job(
    source: Any,
    medium: Medium[Any],
    *,
    against: Any = None,
    keep: Any = None,
    work: str | os.PathLike[str] | None = None,
    cache: bool = True,
    memory_limit: SupportsIndex | None = None,
    threads: SupportsIndex | None = None,
    progress: Progress | bool | None = None,
) -> MediaResult:
    """Find the files of one medium that are similar, and choose which of them are kept.

    Files that are equal byte for byte are read once. Every dropped file is equal to a kept one, or
    a pair with it; no two kept files are a pair. Files that cannot be read are left out, counted
    and named. The same files give the same result, for any number of threads.

    Files of `against` are old: a file that is similar to one of them is dropped. They are never
    dropped themselves, even if the source has them, too. `against` may also be a file of
    signatures, an index or a collection; see `Medium.signed_pairs`.

    What was read of unchanged files in an earlier run is taken from the user's cache folder, or
    from `work`.
    """
    with file_cache(cache, work) as known:
        return _run(source, medium, against, keep, memory_limit, threads, progress, known)


def _run(
    source: Any,
    medium: Medium[Any],
    against: Any,
    keep: Any,
    memory_limit: SupportsIndex | None,
    threads: SupportsIndex | None,
    progress: Progress | bool | None,
    cache: FileCache | None,
) -> MediaResult:
    rule = _checked_rule(keep, medium)
    paths, memory = _paths("source", source), memory_bytes(memory_limit)
    old_paths, signed = _old(against, medium)
    count, steps = thread_count(threads), JobProgress(listener(progress))
    with steps.timed("read"):
        seen = set[str]()
        before = find_files(old_paths, type(medium), seen)
        found = find_files(paths, type(medium), seen)
        every = [*before.files, *found.files]
        states = [*before.states, *found.states]
        sizes = np.array([state.size for state in states], np.int64)
    with steps.timed("collapse"):
        tell = partial(steps.step, "collapse")
        first = first_equal(every, sizes, threads=count, tell=tell, cache=cache)
        distinct = np.flatnonzero(first == np.arange(len(first)))
    with steps.timed("sign"):
        files = [every[position] for position in distinct.tolist()]
        tell = partial(steps.step, "sign")
        before_reading = 0 if cache is None else cache.hits
        made_by = None if cache is None else medium.made_by()
        keys: dict[Path, bytes | None] = {}
        if cache is not None and made_by is not None:
            keys = dict(zip(files, cache.keys(files, made_by), strict=True))
        more = {"cache": cache} if takes_cache(medium.read) else {}
        read = medium.read(files, threads=count, tell=tell, memory=memory, **more)
        known = 0 if cache is None else cache.hits - before_reading
    with steps.timed("propose"):
        tell = partial(steps.step, "propose")
        similar, reused = _pairs(medium, read, cache, keys, threads=count, tell=tell)
        by_signatures = [
            medium.signed_pairs(read, one, threads=count, memory=memory, cache=cache)
            for one in signed
        ]
    with steps.timed("group"):
        rows = {file: row for row, file in enumerate(read.files)}
        places = np.array([rows.get(every[equal], -1) for equal in first.tolist()], np.int64)
        good = np.flatnonzero(places >= 0)
        row_of = places[good]
        number = np.full(len(first), -1, np.int64)
        number[good] = np.arange(len(good))
        first_good, sizes = number[first[good]], sizes[good]
        compared, chosen = good.tolist(), row_of.tolist()
        files = [every[position] for position in compared]
        states = [states[position] for position in compared]
        facts = {name: [values[row] for row in chosen] for name, values in read.facts.items()}
        merits = medium.merits(read, similar)[row_of]
        # Items that are known by their signatures come first, then old files.
        signed_ids = [id for one in signed for id in one.names]
        begin = len(signed_ids)
        old_files = int(np.count_nonzero(good < len(before.files)))
        old = begin + old_files
        pairs = _with_signed(
            _of_files(similar, first_good, row_of), by_signatures, signed, first_good, row_of
        )
        pairs = pairs[pairs.right >= old]
        first_good = np.concatenate([np.arange(begin), begin + first_good])
        looked_at = _Files(
            [*map(Path, signed_ids), *files],
            [*[_NO_STATE] * begin, *states],
            {name: [*[None] * begin, *values] for name, values in facts.items()},
            np.concatenate([np.zeros(begin, np.int64), merits]),
        )
        settings = DedupSettings(keep=rule if rule == "none" or callable(rule) else "first")
        choices = None
        if callable(rule):
            choices = GroupChoices(rule, settings, first_good, old, looked_at.rows)
        rank = looked_at.ranks("best" if callable(rule) else rule, paths, old)
        decision = decide(pairs, rank, settings, first=first_good, old=old, choices=choices)
        distance = _distances(first_good, decision.duplicate_of, pairs)[old:]
        own, matched_old, group_of = split_old(decision, old)
    dropped = decision.duplicate_of[old:] >= 0
    without_features = np.zeros(len(read.files), bool)
    if read.without_features is not None:
        without_features = read.without_features
    problems = [*before.problems, *found.problems, *_broken(read.problems, every, first)]
    sizes = sizes[old_files:]
    estimated = np.zeros(len(dropped), bool)
    if medium.signed_criterion():
        estimated = (matched_old >= 0) & (matched_old < begin)
    return MediaResult(
        kind=medium.name,
        medium=medium,
        memory_limit=memory,
        root=paths[0] if len(paths) == 1 and paths[0].is_dir() else None,
        several=len(paths) > 1,
        name=f"{paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}",
        files=files[old_files:],
        old_signed=signed_ids,
        old_files=files[:old_files],
        states=states[old_files:],
        old_states=states[:old_files],
        sizes=sizes,
        facts={name: values[old_files:] for name, values in facts.items()},
        descriptions=[read.described[row] for row in chosen[old_files:]],
        keep_rule=rule,
        keep=~dropped,
        group_of=group_of,
        duplicate_of=own,
        matched_old=matched_old,
        similarity=decision.similarity[old:],
        distance=distance,
        first_equal=first_good,
        different_pairs=pairs,
        related=[(read.files[left], read.files[right]) for left, right in similar.related],
        counts=DedupCounts.of(
            decision,
            first_good,
            old=old,
            keep=settings.keep,
            estimated=estimated,
            in_old=int((matched_old >= 0).sum()),
            without_features=int(np.count_nonzero(without_features[row_of[old_files:]])),
            verified_pairs=count_with_copies(pairs, first_good, old),
            estimated_pairs=int((pairs.left < begin).sum()) if medium.signed_criterion() else 0,
            bytes=int(sizes.sum()),
            bytes_saved=int(sizes[dropped].sum()),
            left_out=len(problems),
            other_files=len(found.others),
        ),
        problems=sorted(problems, key=lambda problem: problem.path),
        seconds=steps.seconds,
        reused=(*(["sign"] if known else []), *(["propose"] if reused else [])),
        known=known,
        warnings=[],
    )


def _pairs(
    medium: Medium[Any],
    read: Read[Any],
    cache: FileCache | None,
    keys: Mapping[Path, bytes | None],
    *,
    threads: int,
    tell: Tell,
) -> tuple[SimilarPairs, bool]:
    """Return the similar pairs, and whether they were known: all files are as in an earlier job."""
    made = False

    def make() -> SimilarPairs:
        nonlocal made
        made = True
        return medium.pairs(read, threads=threads, tell=tell)

    if cache is None:
        return make(), False

    def pack(pairs: SimilarPairs) -> bytes:
        related = [[int(one), int(other)] for one, other in pairs.related]
        return packed(related, pairs.left, pairs.right, pairs.similarity, pairs.distance)

    def unpack(data: bytes) -> SimilarPairs:
        related, (left, right, similarity, distance) = unpacked(data)
        known = [(one, other) for one, other in related]
        return SimilarPairs(left, right, similarity, distance, known)

    kept = Kept(["pairs", medium.name, medium.settings()], pack, unpack)
    pairs = cache.together([keys.get(file) for file in read.files], kept, make)
    return pairs, not made


def takes_cache(method: Any) -> bool:
    """Return whether a method of a medium takes a cache; one of another package may not."""
    return "cache" in signature(method).parameters


@contextmanager
def file_cache(
    cache: bool, work: str | os.PathLike[str] | None = None
) -> Iterator[FileCache | None]:
    """Yield the cache in a work folder, or in the user's cache folder; None without one."""
    if work is None:
        found = user_file_cache() if flag("cache", cache) else None
        with nullcontext() if found is None else found:
            yield found
        return
    if not flag("cache", cache):
        raise ArgumentError(
            Said("cache=False", "--no-cache"),
            " reads all files again, and ",
            Said("work"),
            " keeps what was read of them; leave one of them out",
        )
    folder = WorkFolder(file_path("work", work))
    try:
        with FileCache(folder.path(NAME), most=None) as found:
            yield found
    finally:
        folder.close()


def _checked_rule(keep: Any, medium: Medium[Any]) -> Any:
    """Return the rule that chooses which file of a group is kept, or the function."""
    rule = "best" if keep is None else keep
    if callable(rule):
        return rule
    name, _, value = rule.partition(":") if isinstance(rule, str) else ("", "", "")
    columns = ("bytes", *medium.facts)
    if rule in FILE_RULES or (name == "path" and value):
        return rule
    if name in ("max", "min") and value in columns:
        return rule
    raise ArgumentError(
        Said("keep"),
        f" is {brief(keep)}; expected {', '.join(FILE_RULES)}, path:PATTERN, or max:COLUMN or "
        f"min:COLUMN with a column of {medium.name}: {', '.join(columns)}",
        Said("; or a function", ""),
    )


@dataclass(frozen=True, eq=False)
class _Files:
    """What decides which files are kept."""

    files: Sequence[Path]
    states: Sequence[FileState]
    facts: Mapping[str, Sequence[Any]]
    merits: Ints

    def ranks(self, rule: str, paths: Sequence[Path], old: int) -> Ints:
        """Return the order in which files are kept: old ones, by the rule, the best, by path."""
        states = self.states
        sizes, times = (
            np.array(values, np.int64)
            for values in ([one.size for one in states], [one.modified for one in states])
        )
        places, name = np.arange(len(states)), rule.partition(":")[0]
        keys: dict[str, Callable[[], Ints]] = {
            "first": lambda: places,
            "last": lambda: -places,
            "largest": lambda: -sizes,
            "smallest": lambda: sizes,
            "oldest": lambda: times,
            "newest": lambda: -times,
            "path": lambda: self._unmatched(rule.partition(":")[2], paths),
            "max": lambda: self._column(rule.partition(":")[2], -1),
            "min": lambda: self._column(rule.partition(":")[2], 1),
        }
        own = [keys[name]()] if name in keys else []
        return rank_by(*own, -self.merits, -sizes, old=old)

    def rows(self, positions: Ints) -> list[dict[str, Any]]:
        """Return what a function that chooses a file is given."""
        return [
            {
                "path": self.files[row],
                "bytes": self.states[row].size,
                "modified": self.states[row].modified / 1e9,
                **{name: values[row] for name, values in self.facts.items()},
            }
            for row in positions.tolist()
        ]

    def _unmatched(self, pattern: str, paths: Sequence[Path]) -> Ints:
        """Return 0 for files that match a pattern by their path, also within a given folder."""

        def matches(file: Path) -> bool:
            inside = (file.relative_to(path) for path in paths if file.is_relative_to(path))
            return any(fnmatchcase(str(one), pattern) for one in (file, *inside))

        return np.array([not matches(file) for file in self.files], np.int64)

    def _column(self, name: str, sign: int) -> Ints:
        """Return numbers that order files by a fact; files without one come last."""
        values = [one.size for one in self.states] if name == "bytes" else self.facts[name]
        known = {value for value in values if value is not None}
        order = {value: sign * place for place, value in enumerate(sorted(known))}
        return np.array([order.get(value, len(values)) for value in values], np.int64)


def _paths(name: str, source: Any) -> list[Path]:
    """Return the files and folders that a path, a pattern or a list of these stands for."""
    given = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(given, bytes | bytearray) or not isinstance(given, Sequence):
        raise ArgumentError(
            f"{name} is {brief(source)} of type {type(source).__name__}; expected a folder, or a "
            "list of files"
        )
    return expand_paths([file_path(name, one) for one in given])


def _old(against: Any, medium: Medium[Any]) -> tuple[list[Path], list[SignedItems]]:
    """Return the old files and folders, and the old items that are known by their signatures."""
    if against is None:
        return [], []
    given = against if isinstance(against, list | tuple) else [against]
    signed = [one for one in given if is_signed(one)]
    others = [one for one in given if not is_signed(one)]
    if others and isinstance(against, list | tuple):
        against = others
    paths = _paths("against", against) if others else []
    return paths, [signed_items(one, medium.name) for one in signed]


def _with_signed(
    pairs: VerifiedPairs,
    by_signatures: Sequence[SimilarPairs],
    signed: Sequence[SignedItems],
    first: Ints,
    row_of: Ints,
) -> VerifiedPairs:
    """Return pairs of files and pairs of signed items, which are counted before all files."""
    begin = sum(map(len, signed))
    every, place, number = [pairs.moved(-begin, -begin)], 0, _firsts(first, row_of)
    for one, found in zip(signed, by_signatures, strict=True):
        right = begin + number[found.right]
        every.append(VerifiedPairs(place + found.left, right, found.similarity, found.distance))
        place += len(one)
    return in_order(every)


def _firsts(first: Ints, row_of: Ints) -> Ints:
    """Return the position of the first of equal files for each that was read."""
    own = np.flatnonzero(first == np.arange(len(first)))
    number = np.empty(len(own), np.int64)
    number[row_of[own]] = own
    return number


def _of_files(pairs: SimilarPairs, first: Ints, row_of: Ints) -> VerifiedPairs:
    """Return pairs of what was read as pairs of the first of equal files, in the same order."""
    number = _firsts(first, row_of)
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
