"""ShardedIndex searches several indexes as one; `merge_neighbors` merges their results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate
from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import flag, instances, neighbor_count, thread_count, whole_number
from lookalike.errors import ArgumentError, CorruptIndexError, Said, UnavailableError
from lookalike.indexes.base import DEFAULT_LIMIT, Index
from lookalike.indexes.filters import (
    Among,
    Chosen,
    as_masks,
    merged_masked_matches,
    nearest_masked,
    no_masks,
    without_settings,
)
from lookalike.indexes.results import (
    Explanation,
    Matches,
    Neighbors,
    best_of,
    merged_matches,
    nearest_of,
    too_many_matches,
)
from lookalike.indexes.rows import Signatures
from lookalike.indexes.segments import only_among
from lookalike.indexes.slices.index import SliceIndex
from lookalike.indexes.slices.lists import Cut
from lookalike.indexes.slices.search import (
    CoreAnswer,
    Settings,
    nearest_in,
    rerank_count,
    search_settings,
)
from lookalike.shown import brief
from lookalike.signatures import as_queries
from lookalike.storage.container import Container


def told_together(results: list[Neighbors]) -> Explanation | None:
    """Return the explanation of all shards; None if a shard has none."""
    parts = [result.explanation for result in results if result.explanation]
    if len(parts) < len(results):
        return None
    return Explanation(
        np.logical_and.reduce([part.exact for part in parts]),
        *(
            np.sum([getattr(part, name) for part in parts], axis=0)
            for name in ("lists", "postings", "candidates", "reranked")
        ),
    )


_MOST_AT_ONCE = 256  # shards that are searched in parallel
_MOST_SAVED = 1000  # shards in one file, of whose 1,024 sections names and the signer need some


class ShardedIndex(Index):
    """Search several indexes as one; the result is that of one index over all signatures.

    Ids that are positions are renumbered: those of a shard follow the ids of the shard before. Ids
    given by the caller must be distinct over all shards. Slice indexes need equal slices. `save`
    writes all shards to one file and holds them in memory meanwhile.

    Shards may be indexes of services (`la.connect`), which are asked in parallel. A shard that does
    not answer raises `UnavailableError`, unless `allow_missing` is True.

    Args:
        shards: Indexes with the same number of bits.
        allow_missing: Return what the other shards found if one does not answer. The result is not
            `exact` then, and its `missing` says which shards are missing and why.

    Examples:
        >>> zeros, ones = np.zeros((2, 8), np.uint8), np.ones((3, 8), np.uint8)
        >>> index = la.ShardedIndex([la.ScanIndex(zeros), la.ScanIndex(ones)])
        >>> index.search(ones[:1], k=2).ids.tolist()
        [[2, 3]]
    """

    kind: ClassVar[str] = "sharded"

    allow_missing: bool = False
    """Whether a search returns a result although a shard does not answer."""

    def __init__(self, shards: Iterable[Index], *, allow_missing: bool = False) -> None:
        self.allow_missing = flag("allow_missing", allow_missing)
        self._take(shards)
        own = {shard.own_ids for shard in self.shards}
        if len(own) > 1:
            raise ArgumentError("some shards were built with ids and some without")
        self._own_ids = True in own  # for ever: numbers of shards must not meet later on
        if self._own_ids:
            # Ids of services are compared when they are found.
            here = [shard._living()[1] for shard in self.shards if not shard.is_remote]
            ids = np.sort(np.concatenate([np.empty(0, np.int64), *here]))
            repeated = ids[1:][ids[1:] == ids[:-1]]
            if len(repeated):
                raise ArgumentError(
                    f"the id {repeated[0]} is in more than one shard, or twice in one"
                )

    def _take(self, shards: Iterable[Index]) -> None:
        """Set the shards, or raise if they cannot be searched together."""
        self.shards = tuple(
            instances("shards", shards, Index, "an index")  # type: ignore[type-abstract]
        )
        if not self.shards:
            raise ArgumentError("there are no shards; expected at least one index")
        widths = sorted({shard.bits for shard in self.shards})
        if len(widths) > 1:
            raise ArgumentError(f"shards have {widths} bits; expected the same for all")
        cuts = self._slice_widths()
        if len(cuts) > 1:
            raise ArgumentError(
                f"shards have slices of {sorted(cuts, key=str)} bits; expected one width"
            )

    def _slice_widths(self) -> set[Cut]:
        """Return the widths of slices in all shards that have slices."""
        widths = {getattr(shard, "slice_bits", None) for shard in self.shards}
        return {width for width in widths if width is not None}

    @property
    def slice_bits(self) -> Cut | None:
        """Width of the slices of slice indexes, also of nested ones; None if there are none."""
        return next(iter(self._slice_widths()), None)

    def settings(self, method: str) -> frozenset[str]:
        """Return the names of the parameters of `search` or `within`."""
        taken = super().settings(method)
        return taken if self.slice_bits else taken - {"expand", "admit", "rerank"}

    @property
    def is_scored(self) -> bool:
        """Whether all shards are slice indexes, also nested ones."""
        return all(
            getattr(shard, "is_scored", isinstance(shard, SliceIndex)) for shard in self.shards
        )

    @property
    def is_remote(self) -> bool:
        """Whether a shard is an index of a service."""
        return any(shard.is_remote for shard in self.shards)

    @property
    def takes_masks(self) -> bool:
        """Whether all shards accept masks."""
        return all(shard.takes_masks for shard in self.shards)

    def __copy__(self) -> Self:
        twin = super().__copy__()
        twin.shards = tuple(map(copy, self.shards))
        return twin

    @property
    def _shifts(self) -> list[int]:
        """Number to add to the ids of each shard; shards may grow."""
        if self.own_ids:
            return [0] * len(self.shards)
        starts = list(accumulate((shard.next_id for shard in self.shards), initial=0))
        if starts[-1] > 2**63:
            raise ArgumentError(
                f"the ids of all shards end at {starts[-1] - 1}, and must be less than 2**63. If "
                "one shard is built with ids, build all shards with ids"
            )
        return starts[:-1]

    @property
    def bits(self) -> int:
        """Number of bits of a signature."""
        return self.shards[0].bits

    @property
    def own_ids(self) -> bool:
        """Whether the caller gave ids; otherwise ids are positions."""
        return self._own_ids

    @property
    def next_id(self) -> int:
        """One more than the largest id."""
        return max(
            shard.next_id + shift for shard, shift in zip(self.shards, self._shifts, strict=True)
        )

    def __len__(self) -> int:
        return sum(len(shard) for shard in self.shards)

    def _living(self) -> tuple[Signatures, NDArray[np.int64]]:
        parts = [shard.living() for shard in self.shards]
        ids = [own + shift for (_, own), shift in zip(parts, self._shifts, strict=True)]
        return np.concatenate([signatures for signatures, _ in parts]), np.concatenate(ids)

    def search(
        self,
        queries: ArrayLike,
        k: SupportsIndex,
        *,
        expand: SupportsIndex | None = None,
        admit: SupportsIndex | None = None,
        rerank: SupportsIndex | None = None,
        exact: bool = False,
        explain: bool = False,
        among: Among = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return the k nearest signatures over all shards.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or a single signature.
            k: Number of neighbors.
            expand: Option of slice indexes, as in `SliceIndex.search`. With it, the best candidates
                of all shards are reranked together.
            admit: Option of slice indexes, as in `SliceIndex.search`.
            rerank: Option of slice indexes, as in `SliceIndex.search`. With 0, all shards must be
                slice indexes.
            exact: Make slice, prefix and cluster indexes exact; other indexes always are.
            explain: Return what was read as `explanation`.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: One mask per query: only bits that are 1 in it are compared. Excludes `expand`,
                `admit`, `rerank`.
            threads: Number of threads (default: all cores).
        """
        rows = as_queries(queries, self.bits, signer=self.signer)
        wanted = neighbor_count(k, len(rows), len(self))
        prove, tell = flag("exact", exact), flag("explain", explain)
        options: dict[str, Any] = {"explain": tell}
        settings, alone = None, rerank is not None and rerank_count(rerank, wanted) == 0
        if masks is not None:
            without_settings(expand=expand, admit=admit, rerank=rerank)
            self._refuse_masks()
            options["masks"] = as_masks(masks, self.bits, len(rows))
        else:
            options |= {"expand": expand, "admit": admit, "rerank": rerank, "exact": prove}
            cut = self.bits, self.slice_bits or 0
            if cut[1]:
                settings = search_settings(*cut, wanted, expand, admit, rerank, prove, tell)
        if alone and not self.is_scored:
            raise ArgumentError(
                Said("rerank"), " is 0, and some shards have no scores; expected slice indexes only"
            )
        together = not prove and (alone or expand is not None)
        if settings and together and all(isinstance(shard, SliceIndex) for shard in self.shards):
            return self._by_score(rows, wanted, cut[1], settings, among, thread_count(threads))
        # The best by score of all shards are reranked together, by distances that services return.
        best = None
        if settings and settings.rerank and together and self.is_scored and self.is_remote:
            best = settings.rerank
            options["rerank"] = best

        def ask(shard: Index, share: int, only: Chosen | None) -> Neighbors:
            most, own = min(best or wanted, max(1, len(shard))), _taken(shard, "search", options)
            return shard.search(rows, most, among=only, threads=share, **own)

        found, shifts, missing = self._answered(ask, threads, among)
        told = told_together(found) if tell else None
        numbered = _numbered([result.ids for result in found], shifts)
        if self.own_ids and self.is_remote:
            _refuse_repeated(np.concatenate(numbered, axis=1))
        if best is None:
            merged = _merged(found, numbered, wanted, by_score=alone)
        else:
            top = _merged(found, numbered, best, by_score=True)
            merged = _merged([top], [top.ids], wanted)
        return replace(
            merged, exact=merged.exact and not missing, explanation=told, missing=missing
        )

    def _answered(
        self, ask: Any, threads: SupportsIndex | None, among: Among
    ) -> tuple[list[Any], list[int], dict[int, str]]:
        """Return the results of shards, what to add to their ids, and which shards are missing."""

        def tolerant(*call: Any) -> Any:
            try:
                return ask(*call)
            except UnavailableError as error:
                if not self.allow_missing:
                    raise
                return error

        results = self._each(tolerant, threads, self._chosen(among))
        found, shifts, missing = [], [], {}
        for position, (result, shift) in enumerate(zip(results, self._shifts, strict=True)):
            if isinstance(result, UnavailableError):
                missing[position] = str(result)
                continue
            if result.missing:
                missing[position] = f"shards of this shard: {'; '.join(result.missing.values())}"
            found.append(result)
            shifts.append(shift)
        if not found:
            raise UnavailableError(f"no shard answered: {'; '.join(missing.values())}")
        return found, shifts, missing

    def _refuse_masks(self) -> None:
        """Raise if a shard does not accept masks, also a nested one."""
        for shard in self.shards:
            if isinstance(shard, ShardedIndex):
                shard._refuse_masks()
            elif not shard.takes_masks:
                no_masks(shard, self)

    def _by_score(
        self,
        rows: Signatures,
        k: int,
        slice_bits: Cut,
        settings: Settings,
        among: Among,
        threads: int,
    ) -> Neighbors:
        """Gather the best candidates of each shard, keep the best of all, and take the nearest."""
        best = settings.rerank or k

        def ask(shard: SliceIndex, share: int, only: Chosen | None) -> CoreAnswer:
            parts = only_among(shard._segments, only, shard)
            try:
                return nearest_in(parts, rows, best, settings, share)
            except _native.CorruptLists:
                raise shard._damaged() from None

        tops: list[CoreAnswer] = self._each(ask, threads, self._chosen(among))
        ids = np.concatenate(_numbered([top.ids for top in tops], self._shifts), axis=1)
        distances = np.concatenate([top.distances for top in tops], axis=1)
        scores = np.concatenate([top.scores for top in tops], axis=1)
        rest = np.max([top.rest for top in tops], axis=0)
        if ids.shape[1] > best:
            rest = np.maximum(rest, np.sort(scores, axis=1)[:, -best - 1])  # the best left out
        kept = min(best, ids.shape[1]) if settings.rerank else k
        ids, scores, distances = best_of(ids, scores, kept, distances)
        merged = CoreAnswer(len(ids), k, sum(top.alive for top in tops))
        merged.work[:] = np.sum([top.work for top in tops], axis=0)
        merged.work[4] = settings.expand
        if settings.rerank:
            merged.ids, merged.distances, merged.scores = nearest_of(ids, distances, k, scores)
            kth = np.ascontiguousarray(merged.distances[:, -1])
            limits = settings.expand, settings.admit
            _native.slice_proofs(self.bits, slice_bits, *limits, rest, kth, merged.proven)
            found = (ids >= 0).sum(axis=1)
            merged.proven |= found == merged.alive  # nothing is left to be found
            merged.work[3] = found
        else:
            merged.ids, merged.distances, merged.scores = ids, distances, scores
            merged.proven[:] = 0
        explanation = merged.explanation(self.bits, slice_bits, k) if settings.explain else None
        exact = bool(merged.proven.all())
        return Neighbors(merged.ids, merged.distances, exact, explanation, merged.scores)

    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        exact: bool = False,
        among: Among = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature within Hamming distance `radius` over all shards.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or a single signature.
            radius: Largest Hamming distance.
            limit: Maximum number of matches of all queries together.
            exact: Make prefix indexes exact.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: One mask per query: only bits that are 1 in it are compared.
            threads: Number of threads (default: all cores).

        Returns:
            The matches. `exact` is True if the results of all shards are.
        """
        rows = as_queries(queries, self.bits, signer=self.signer)
        most = whole_number("limit", limit, at_least=0)
        prove = flag("exact", exact)
        options: dict[str, Any] = {"limit": most}
        if masks is not None:
            self._refuse_masks()
            options["masks"] = as_masks(masks, self.bits, len(rows))

        def ask(shard: Index, share: int, only: Chosen | None) -> Matches:
            own = _taken(shard, "within", {"exact": prove})
            return shard.within(rows, radius, among=only, threads=share, **options, **own)

        found, shifts, missing = self._answered(ask, threads, among)
        if sum(len(result.ids) for result in found) > most:
            raise too_many_matches(most, radius, len(rows))
        ids = [result.ids + by for result, by in zip(found, shifts, strict=True)]
        exact = all(result.exact for result in found) and not missing
        if masks is not None:
            merged = merged_masked_matches(ids, found, len(rows), exact=exact)
        else:
            parts = (
                (result.query, own, result.distances)
                for result, own in zip(found, ids, strict=True)
            )
            merged = merged_matches(len(rows), parts, exact=exact)
        if self.own_ids and self.is_remote:
            _refuse_repeated_matches(merged)
        return replace(merged, missing=missing)

    def verify(self) -> None:
        """Check the files of all shards against their checksums."""
        super().verify()
        for shard in self.shards:
            shard.verify()

    def stats(self) -> dict[str, Any]:
        """Return facts about the index and its shards, fit for JSON."""
        return {**super().stats(), "shards": [shard.stats() for shard in self.shards]}

    @property
    def memory_bytes(self) -> int:
        """Size of the arrays of all shards in bytes."""
        return sum(shard.memory_bytes for shard in self.shards)

    def _each(self, action: Any, threads: SupportsIndex | None, *own: Sequence[Any]) -> list[Any]:
        """Return `action(shard, threads, *own)` for all shards, which run in parallel."""
        count, away = thread_count(threads), sum(shard.is_remote for shard in self.shards)
        here = min(count, len(self.shards) - away)
        # Services are asked in parallel, whatever the number of threads: these only wait.
        workers, share = min(here + away, _MOST_AT_ONCE), max(1, count // max(1, here))
        calls = [(shard, share, *more) for shard, *more in zip(self.shards, *own, strict=True)]
        if workers == 1:
            return [action(*call) for call in calls]
        from concurrent.futures import ThreadPoolExecutor  # slow to import, and needed only here

        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(lambda call: action(*call), calls))

    def _chosen(self, among: Among) -> Sequence[Chosen | None]:
        """Return the ids that each shard may find."""
        whole = Chosen.of(among, self)
        if whole is None:
            return [None] * len(self.shards)
        shifts = zip(self.shards, self._shifts, strict=True)
        return [whole.shifted(shift, shard.next_id) for shard, shift in shifts]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        if len(self.shards) > _MOST_SAVED:
            raise ArgumentError(
                f"there are {len(self.shards)} shards; a file has at most {_MOST_SAVED} of them: "
                "save each by itself"
            )
        return {
            f"shard.{number}": np.frombuffer(shard.to_bytes(), np.uint8)
            for number, shard in enumerate(self.shards)
        }

    def _meta(self) -> dict[str, Any]:
        return {**super()._meta(), "shards": len(self.shards), "own_ids": self.own_ids}

    def _restore(self, container: Container) -> None:
        from lookalike.indexes.kinds import signature_index_in  # which knows all kinds

        count, own = container.meta.get("shards"), container.meta.get("own_ids")
        try:
            if not isinstance(count, int) or count > _MOST_SAVED or not isinstance(own, bool):
                raise ArgumentError(f"{count!r} shards, whose ids are the caller's: {own!r}")
            self._take(signature_index_in(container.inner(f"shard.{at}")) for at in range(count))
        except (ArgumentError, RecursionError) as error:
            raise CorruptIndexError(
                f"{container.path}: the shards cannot be used: {error}; it is damaged"
            ) from error
        self._own_ids = own


def _taken(shard: Index, method: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the options that this shard accepts."""
    taken = shard.settings(method)
    return {name: value for name, value in settings.items() if name in taken}


def merge_neighbors(
    results: Iterable[Neighbors],
    k: SupportsIndex | None = None,
    *,
    rerank: SupportsIndex | None = None,
    starts: Iterable[SupportsIndex] | None = None,
) -> Neighbors:
    """Merge the results of several shards for the same queries.

    With `rerank`, the result is that of one slice index over all shards. Search each shard with
    `search(queries, rerank, expand=3, rerank=rerank)` for `search(queries, k, expand=3,
    rerank=rerank)`.

    Args:
        results: Result of each shard.
        k: Number of neighbors (default: the smallest k of the results).
        rerank: Number of results, best score first, of which the k nearest are returned (default:
            all).
        starts: First id of each shard, for shards whose ids are positions (default: ids are
            distinct).

    Returns:
        The neighbors. `exact` is True if all results were and there is no `rerank`.

    Examples:
        >>> query, rows = np.zeros((1, 8), np.uint8), np.eye(2, 8, dtype=np.uint8)
        >>> parts = [la.ScanIndex(part).search(query, 1) for part in (rows[:1], rows[1:])]
        >>> la.indexes.merge_neighbors(parts, starts=[0, 1]).ids.tolist()
        [[0]]
    """
    parts = instances("results", results, Neighbors, "what the search of an index returned")
    if not parts:
        raise ArgumentError("there are no results to merge; expected at least one")
    asked = sorted({len(part) for part in parts})
    if len(asked) > 1:
        raise ArgumentError(f"results are of {asked} queries; expected the same queries for all")
    least = min(part.ids.shape[1] for part in parts)
    wanted = least if k is None else whole_number("k", k, at_least=1)
    best = None if rerank is None else rerank_count(rerank, wanted)
    _expect_enough(wanted, best, least)
    numbered = _numbered([part.ids for part in parts], _starts(parts, starts))
    _refuse_repeated(np.concatenate(numbered, axis=1))
    if any(part.unmasked is not None for part in parts):
        _check_masked(parts, best)
        return _merged(parts, numbered, wanted)
    unknown = any(((part.ids >= 0) & (part.distances < 0)).any() for part in parts)
    if best is None and not unknown:
        return _merged(parts, numbered, wanted)
    if any(part.scores is None for part in parts):
        raise ArgumentError(
            "some results have no scores; expected results of slice indexes, or of shards of these"
        )
    if not best:
        return _merged(parts, numbered, wanted, by_score=True)
    if unknown:
        raise ArgumentError(
            f"rerank is {best}, and distances were not computed. Search the shards with k={best} "
            f"and rerank={best}, not with rerank=0"
        )
    top = _merged(parts, numbered, best, by_score=True)
    return replace(_merged([top], [top.ids], wanted), exact=False)


def _merged(
    parts: Sequence[Neighbors], ids: Sequence[NDArray[np.int64]], k: int, *, by_score: bool = False
) -> Neighbors:
    """Return the k nearest of all parts, or the k best by score; these are their ids."""
    exact = all(part.exact for part in parts) and not by_score
    if parts[0].unmasked is not None:
        return nearest_masked(ids, parts, k, exact=exact)
    every = np.concatenate(ids, axis=1)
    distances = np.concatenate([part.distances for part in parts], axis=1)
    scored = [part.scores for part in parts if part.scores is not None]
    if len(scored) < len(parts):
        every, distances = nearest_of(every, distances, k)
        return Neighbors(every, distances, exact)
    scores = np.concatenate(scored, axis=1)
    if by_score:
        every, scores, distances = best_of(every, scores, k, distances)
    else:
        every, distances, scores = nearest_of(every, distances, k, scores)
    return Neighbors(every, distances, exact, None, scores)


def _check_masked(parts: Sequence[Neighbors], rerank: int | None) -> None:
    """Raise if results of searches with masks cannot be merged."""
    if rerank is not None:
        raise ArgumentError(
            f"rerank is {rerank}, and the shards were searched with masks. Leave rerank out"
        )
    if any(part.unmasked is None for part in parts):
        raise ArgumentError(
            "some results are of a search with masks and some are not; expected the same of all"
        )


def _expect_enough(k: int, rerank: int | None, least: int) -> None:
    """Raise if a shard returned fewer neighbors than needed."""
    name, number = ("rerank", rerank) if rerank else ("k", k)
    if number is not None and number > least:
        raise ArgumentError(
            f"{name} is {number}, and a shard returned only {least} neighbors per query. Search "
            f"all shards for {number}"
        )


def _numbered(ids: Sequence[NDArray[np.int64]], starts: Sequence[int]) -> list[NDArray[np.int64]]:
    """Return the ids of each shard, renumbered."""
    return [np.where(own >= 0, own + by, -1) for own, by in zip(ids, starts, strict=True)]


def _starts(parts: list[Neighbors], starts: Iterable[SupportsIndex] | None) -> list[int]:
    """Return the number to add to the ids of each shard, or raise."""
    if starts is None:
        return [0] * len(parts)
    try:
        given = list(starts)
    except TypeError:
        raise ArgumentError(
            f"starts are {brief(starts)}; expected a number for each result"
        ) from None
    shifts = [whole_number("starts", start, at_least=0, at_most=2**62) for start in given]
    if len(shifts) != len(parts):
        raise ArgumentError(
            f"there are {len(parts)} results and {len(shifts)} starts; expected one for each"
        )
    for part, shift in zip(parts, shifts, strict=True):
        largest = int(part.ids.max(initial=-1))
        if largest + shift >= 2**63:
            raise ArgumentError(
                f"starts has {shift}, and a shard has the id {largest}: their sum must be less "
                "than 2**63. Shards that were built with ids need no starts"
            )
    return shifts


def _refuse_repeated(ids: NDArray[np.int64]) -> None:
    ordered = np.sort(ids, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        raise _repeated(ordered[:, 1:][twice][0])


def _refuse_repeated_matches(matches: Matches) -> None:
    query, ids = matches.query, matches.ids
    order = np.lexsort((ids, query))
    query, ids = query[order], ids[order]
    twice = (ids[1:] == ids[:-1]) & (query[1:] == query[:-1])
    if twice.any():
        raise _repeated(ids[1:][twice][0])


def _repeated(id: np.int64) -> ArgumentError:
    return ArgumentError(
        f"the id {id} is in more than one result. Build the shards with distinct ids, or pass the "
        "first id of each (starts=[0, 1000, ...])"
    )
