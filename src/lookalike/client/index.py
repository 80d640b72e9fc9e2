"""An index behind one or several services, with the methods of a local index."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Never, Self, SupportsFloat, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import flag, neighbor_count, share, thread_count, whole_number
from lookalike.client.channel import Channel
from lookalike.client.packing import PACKED_BYTES, matches_of, neighbors_of, packed
from lookalike.errors import (
    ArgumentError,
    LookalikeError,
    ResultTooLargeError,
    Said,
    UnavailableError,
)
from lookalike.indexes import Explanation, Index, Matches, Neighbors
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.indexes.filters import Among, Chosen, as_masks, no_masks
from lookalike.indexes.results import NO_LIMIT, padded, too_many_matches
from lookalike.indexes.rows import Signatures
from lookalike.shown import brief, escape_terminal
from lookalike.signatures import Signer, as_queries, signer_from_dict
from lookalike.signatures.arrays import listed_texts
from lookalike.storage.container import Container

_TOGETHER = 1_024
"""Queries of a request: enough for full speed, and few enough for the time limit of a service."""
_PER_REPLICA = 2
"""Requests of one search to a replica at once: one is answered while another is transmitted."""
_HALVINGS = 4
"""How often a request that takes too long is divided."""
_REST = 5.0
"""Seconds during which a replica that failed is asked after the others."""
_PAUSE = 0.1
_AGAIN = (408, 429, 500, 502, 503, 504)
"""Status of answers that another replica, or the same one later, may not give."""
_TIME_LIMIT = 408
_HEAD = 64 << 10
"""Bytes of an answer beside its arrays."""
_MOST_BYTES = 1 << 30
_ALWAYS = {
    "search": frozenset(("queries", "k", "among", "masks", "threads")),
    "within": frozenset(("queries", "radius", "limit", "among", "masks", "threads")),
}

Result = TypeVar("Result", Neighbors, Matches)


class TooSlowError(UnavailableError):
    """A request takes longer than the time limit of the services; fewer queries may not."""


@dataclass(eq=False)
class Replica:
    """One service of an index, and how it has answered lately."""

    channel: Channel
    busy: int = 0
    rests_until: float = 0.0


@dataclass(eq=False)
class Replicas:
    """The services of one index; each can answer every request."""

    all: list[Replica]
    timeout: float
    retries: int
    digest: str = ""
    """Of the index; a service that serves another one is not used."""
    most_bytes: int = _HEAD
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Return the answer of a service; if one fails, ask the others, then again.

        Raises:
            UnavailableError: If none has answered. The message has the reason of each.
        """
        reasons: dict[str, str] = {}
        tried: list[Replica] = []
        slow = False
        for attempt in range(max(self.retries + 1, len(self.all))):
            if attempt >= len(self.all):
                time.sleep(min(2.0, _PAUSE * 2 ** (attempt - len(self.all))))
            with self._lent(tried) as replica:
                tried.append(replica)
                channel = replica.channel
                try:
                    status, raw = channel.once(method, path, body, self.timeout, self.most_bytes)
                    if status not in _AGAIN:
                        value = channel.value(status, raw)
                        if not self.digest or value.get("digest") == self.digest:
                            replica.rests_until = 0.0
                            return dict(value)
                        reasons[channel.shown] = "it serves another index now; connect again"
                    else:
                        slow |= status == _TIME_LIMIT
                        reasons[channel.shown] = _reason(channel, status, raw)
                except TimeoutError:
                    reasons[channel.shown] = f"it did not answer within {self.timeout:g} s"
                except OSError as error:
                    reasons[channel.shown] = escape_terminal(str(error), 200)
                replica.rests_until = time.monotonic() + _REST
        told = "; ".join(f"{url}: {why}" for url, why in reasons.items())
        kind = TooSlowError if slow else UnavailableError
        raise kind(f"no service of the index has answered ({told})")

    @contextmanager
    def _lent(self, tried: Sequence[Replica]) -> Any:
        """Lend the replica that was tried least, does not rest and has the least to do."""
        with self._lock:
            now = time.monotonic()
            found = min(
                self.all, key=lambda one: (tried.count(one), one.rests_until > now, one.busy)
            )
            found.busy += 1
        try:
            yield found
        finally:
            with self._lock:
                found.busy -= 1


def _reason(channel: Channel, status: int, raw: bytes) -> str:
    try:
        channel.value(status, raw)
    except LookalikeError as error:
        return str(error)
    return f"status {status}"


class RemoteIndex(Index):
    """An index that a service serves (`lookalike serve INDEX`), with the methods of an `Index`.

    Connect with `la.connect`. Large batches are sent as several requests, some in parallel. A
    request that fails is repeated, at another service of the same index if there is one. Only an
    answer of the index that was connected to is used: after a service was restarted with another
    file, connect again. Thread-safe. Services choose their own number of threads.
    """

    kind: ClassVar[str] = "remote"

    def __init__(self, channels: Sequence[Channel], timeout: float, retries: int) -> None:
        self._replicas = Replicas([Replica(one) for one in channels], timeout, retries)
        described = self._replicas.ask("GET", "/v1/index")
        try:
            self._describe(described)
        except (KeyError, TypeError, ValueError) as error:
            raise UnavailableError(
                f"{channels[0].shown} describes its index in a way that cannot be used ({error!r})"
            ) from None
        self._check_all()

    def _describe(self, told: Mapping[str, Any]) -> None:
        self.label = str(told["name"])
        """Name of the index at its service."""
        self.served = str(told["kind"])
        """Kind of the index at its service, such as "slices"."""
        self._bits, self._count = int(told["bits"]), int(told["signatures"])
        self._next_id, self._own_ids = int(told["next_id"]), bool(told["own_ids"])
        self._takes_masks, self._bytes = bool(told["takes_masks"]), int(told["memory_bytes"])
        self.is_scored = bool(told["is_scored"])
        """Whether results have scores, as those of slice indexes do."""
        cut = told["slice_bits"]
        self.slice_bits = tuple(map(int, cut)) if isinstance(cut, list) else cut and int(cut)
        """Width of the slices, or the width of each, or None."""
        self._limits = {name: int(value) for name, value in told["limits"].items()}
        self._settings = {name: frozenset(told["options"][name]) for name in _ALWAYS}
        self._described = told["signer"]
        self._replicas.digest = str(told["digest"])
        self._replicas.most_bytes = _HEAD + min(_MOST_BYTES, self._limits["max_answer"])

    def _check_all(self) -> None:
        """Raise if a service that can be reached serves another index."""
        for one in self._replicas.all[1:]:
            alone = replace(self._replicas, all=[one], digest="", retries=0)
            try:
                digest = alone.ask("GET", "/v1/index").get("digest")
            except UnavailableError:
                one.rests_until = time.monotonic() + _REST
                continue
            if digest != self._replicas.digest:
                raise ArgumentError(
                    f"{self._replicas.all[0].channel.shown} and {one.channel.shown} serve "
                    "different indexes; expected copies of one file. For different parts of a "
                    "collection: la.ShardedIndex([la.connect(url), ...])"
                )

    @cached_property
    def signer(self) -> Signer | None:  # type: ignore[override]
        """The signer without its learned weights, or None; services sign texts themselves."""
        return None if self._described is None else signer_from_dict(self._described)

    @property
    def services(self) -> list[str]:
        """Addresses of the services."""
        return [one.channel.shown for one in self._replicas.all]

    @property
    def bits(self) -> int:
        """Number of bits of a signature."""
        return self._bits

    @property
    def own_ids(self) -> bool:
        """Whether the caller gave ids; otherwise ids are positions."""
        return self._own_ids

    @property
    def next_id(self) -> int:
        """One more than the largest id."""
        return self._next_id

    @property
    def takes_masks(self) -> bool:
        """Whether `search` and `within` accept masks, which select the bits to compare."""
        return self._takes_masks

    @property
    def is_remote(self) -> bool:
        """Whether a search waits for another machine: True."""
        return True

    @property
    def memory_bytes(self) -> int:
        """Size of the arrays in bytes, at the service."""
        return self._bytes

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"RemoteIndex({self.summary()} at {', '.join(self.services)})"

    def stats(self) -> dict[str, Any]:
        """Return facts about the index, fit for JSON; those of its service are in `served`."""
        served = self._replicas.ask("GET", "/v1/index")["stats"]
        return {**super().stats(), "services": self.services, "served": served}

    def settings(self, method: str) -> frozenset[str]:
        """Return the names of the parameters of `search` or `within` that the index takes."""
        super().settings(method)
        return self._settings[method] | _ALWAYS[method]

    def name(self, id: int) -> str | int:
        """Return the name of a document, or its id if it has no name."""
        if not isinstance(id, int | np.integer):
            raise ArgumentError(f"id is {brief(id)}; expected a whole number")
        if not 0 <= id < 2**63:
            return id
        found = self._replicas.ask("POST", "/v1/index/names", {"ids": [int(id)]})["names"][0]
        return id if found is None else str(found)

    def close(self) -> None:
        """Close the connections."""
        for one in self._replicas.all:
            one.channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Searching

    def search(
        self,
        queries: ArrayLike,
        k: SupportsIndex,
        *,
        expand: SupportsIndex | None = None,
        admit: SupportsIndex | None = None,
        rerank: SupportsIndex | None = None,
        cull: str | None = None,
        examine: SupportsIndex | None = None,
        probe: SupportsIndex | None = None,
        recall: SupportsFloat | None = None,
        exact: bool = False,
        explain: bool = False,
        among: Among = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return the k nearest signatures of each query, nearest first, ties by id.

        Options are those of the kind of index that is served; others raise `ArgumentError`.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or texts if the index has a `signer`.
            k: Number of neighbors.
            expand: As in `SliceIndex.search`.
            admit: As in `SliceIndex.search`.
            rerank: As in `SliceIndex.search`.
            cull: As in `SliceIndex.search`.
            examine: As in `PrefixIndex.search`.
            probe: As in `ClusterIndex.search`.
            recall: As in `ClusterIndex.search`.
            exact: Make slice, prefix and cluster indexes exact; other indexes always are.
            explain: Return what was read as `explanation`.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: One mask per query: only bits that are 1 in it are compared.
            threads: Not used: the service chooses its number of threads.

        Raises:
            UnavailableError: If no service answers.
        """
        rows = self._rows(queries)
        wanted = neighbor_count(k, len(rows), self._count)
        most = wanted if wanted <= self._limits["max_k"] else min(wanted, max(1, self._count))
        thread_count(threads)
        body = {
            "k": most,
            **self._given(
                "search", exact=exact, explain=explain, recall=recall, expand=expand, admit=admit,
                rerank=rerank, cull=cull, examine=examine, probe=probe,
            ),
            **self._chosen(among),
        }  # fmt: skip
        room = min(self._limits["max_results"], self._limits["max_answer"] // PACKED_BYTES)

        def answer(value: Mapping[str, Any], count: int) -> Neighbors:
            return neighbors_of(value, count, most)

        parts = self._asked("search", rows, masks, body, answer, max(1, room // most))
        return Neighbors(
            padded(_rows_of(parts, "ids"), wanted), padded(_rows_of(parts, "distances"), wanted),
            all(part.exact for part in parts), _explained(parts), _wide(parts, "scores", wanted),
            _wide(parts, "unmasked", wanted),
        )  # fmt: skip

    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        examine: SupportsIndex | None = None,
        flips: SupportsIndex | None = None,
        recall: SupportsFloat | None = None,
        first: bool = False,
        exact: bool = False,
        explain: bool = False,
        among: Among = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature within Hamming distance `radius` of each query.

        Options are those of the kind of index that is served; others raise `ArgumentError`.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or texts if the index has a `signer`.
            radius: Largest Hamming distance.
            limit: Maximum number of matches of all queries together. A service has a limit for
                each query, too (`--max-results`).
            examine: As in `PrefixIndex.within`.
            flips: As in `FlipIndex.within`.
            recall: As in `FlipIndex.within`.
            first: As in `BlockIndex.within`.
            exact: Make prefix indexes exact.
            explain: Return what was read as `explanation`.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: One mask per query: only bits that are 1 in it are compared.
            threads: Not used: the service chooses its number of threads.

        Raises:
            UnavailableError: If no service answers.
            ResultTooLargeError: If there are more matches than `limit`.
        """
        rows = self._rows(queries)
        near = min(whole_number("radius", radius, at_least=0), self._bits)
        most = whole_number("limit", limit, at_least=0)
        thread_count(threads)
        body = {
            "radius": near,
            "limit": min(most, NO_LIMIT),
            **self._given(
                "within", exact=exact, explain=explain, first=first, recall=recall,
                examine=examine, flips=flips,
            ),
            **self._chosen(among),
        }  # fmt: skip
        try:
            parts = self._asked("within", rows, masks, body, matches_of, _TOGETHER)
        except ResultTooLargeError:
            if most <= self._limits["max_results"]:
                raise too_many_matches(most, radius, len(rows)) from None
            raise
        if sum(len(part.ids) for part in parts) > most:
            raise too_many_matches(most, radius, len(rows))
        starts = np.cumsum([0, *(len(part.ids) for part in parts[:-1])])
        offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts, strict=True)]
        last = np.array([sum(len(part.ids) for part in parts)])
        return Matches(
            np.concatenate([*offsets, last]), _rows_of(parts, "ids"), _rows_of(parts, "distances"),
            all(part.exact for part in parts), _explained(parts), _wide(parts, "unmasked"),
        )  # fmt: skip

    def _rows(self, queries: ArrayLike) -> list[str] | Signatures:
        """Return queries as texts, which the service signs, or as signatures."""
        texts = listed_texts(queries)
        if texts and self._described is not None:
            return texts
        return as_queries(queries, self._bits)

    def _given(self, method: str, **options: Any) -> dict[str, Any]:
        """Return the options that are given, checked; raise if the index does not take one."""
        given: dict[str, Any] = {}
        for name, value in options.items():
            if isinstance(value, bool | np.bool_):
                if not flag(name, value):
                    continue
                given[name] = True
            elif name in ("exact", "explain", "first"):
                flag(name, value)
            elif value is not None:
                given[name] = (
                    share(name, value)
                    if name == "recall"
                    else whole_number(name, value, at_least=0)
                )
        for name in given:
            if name not in self._settings[method]:
                raise ArgumentError(
                    Said(name), f" is not an option of this index, which is of kind {self.served}"
                )
        return given

    def _chosen(self, among: Among) -> dict[str, str]:
        """Return the ids to search as part of a request."""
        chosen = Chosen.of(among, self)
        if chosen is None:
            return {}
        if chosen.mask is not None:
            return {"packed_among_mask": packed(np.packbits(chosen.mask), np.uint8)}
        return {"packed_among": packed(chosen.listed(), "<i8")}

    def _asked(
        self,
        method: str,
        rows: list[str] | Signatures,
        masks: ArrayLike | None,
        body: Mapping[str, Any],
        answer: Callable[[Mapping[str, Any], int], Result],
        room: int,
    ) -> list[Result]:
        """Return the results of parts of the queries, in their order; `room` queries fit in one."""
        own = None
        if masks is not None:
            if not self._takes_masks:
                no_masks(self, masks)
            own = as_masks(masks, self._bits, len(rows))

        def ask(begin: int, end: int, halvings: int) -> list[Any]:
            part = rows[begin:end]
            sent = {**body, "pack": True}
            sent |= {"texts": part} if isinstance(part, list) else {"packed": packed(part, "u1")}
            if own is not None:
                sent["packed_masks"] = packed(own[begin:end], np.uint8)
            try:
                value = self._replicas.ask("POST", f"/v1/index/{method}", sent)
            except (ResultTooLargeError, TooSlowError) as error:
                slow = isinstance(error, TooSlowError)
                if end - begin < 2 or (slow and not halvings):
                    raise
                middle, left = (begin + end) // 2, halvings - int(slow)
                first = ask(begin, middle, left)
                return first + ask(middle, end, left)
            return [answer(value, end - begin)]

        spans = self._spans(rows, min(room, _TOGETHER, self._limits["max_batch"]))
        workers = min(len(spans), _PER_REPLICA * len(self._replicas.all))
        if workers == 1:
            return [part for span in spans for part in ask(*span, _HALVINGS)]
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(ask, *span, _HALVINGS) for span in spans]
            try:
                return [part for future in futures for part in future.result()]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _spans(self, rows: list[str] | Signatures, most: int) -> list[tuple[int, int]]:
        """Return the first query of each request, and the one after its last: at most `most`."""
        # Signatures and masks are sent as base64; a character of a text may take 12 bytes.
        sizes = [12 * len(text) for text in rows] if isinstance(rows, list) else []
        spans, begin, size, room = [], 0, 0, self._limits["max_body"] // 2
        for at in range(len(rows)):
            each = sizes[at] if sizes else self._bits // 2
            if at > begin and (at - begin >= most or size + each > room):
                spans.append((begin, at))
                begin, size = at, 0
            size += each
        return [*spans, (begin, len(rows))]

    # What an index in a file has, and this one has not

    def _living(self) -> Never:
        raise ArgumentError(
            f"the signatures of {self!r} are at its service; open its file there with la.load_index"
        )

    def _arrays(self) -> Never:
        self._living()

    def _restore(self, container: Container) -> Never:
        self._living()

    def __copy__(self) -> Self:
        return self  # it never changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy(self)


def _rows_of(parts: Sequence[Neighbors | Matches], name: str) -> NDArray[Any]:
    return np.concatenate([getattr(part, name) for part in parts])


def _wide(
    parts: Sequence[Neighbors | Matches], name: str, k: int | None = None
) -> NDArray[Any] | None:
    """Return an array that results may not have."""
    if any(getattr(part, name) is None for part in parts):
        return None
    rows = _rows_of(parts, name)
    return rows if k is None else padded(rows, k)


def _explained(parts: Sequence[Neighbors | Matches]) -> Explanation | None:
    told = [part.explanation for part in parts]
    if any(one is None for one in told):
        return None
    names = [one.name for one in fields(Explanation)]
    columns = {name: [getattr(one, name) for one in told] for name in names}
    arrays: dict[str, Any] = {
        name: None if any(one is None for one in column) else np.concatenate(column)
        for name, column in columns.items()
    }
    return Explanation(**arrays)
