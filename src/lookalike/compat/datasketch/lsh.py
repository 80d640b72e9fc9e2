"""`datasketch.lsh` and `storage`: which keys share a band with this MinHash?"""

from __future__ import annotations

import pickle
import secrets
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.compat.datasketch.minhash import check_same_scheme
from lookalike.errors import ArgumentError

_MOST_NODES = 128


def check_parameters(
    threshold: float,
    num_perm: int,
    weights: tuple[float, float],
    storage_config: dict[str, Any] | None,
) -> None:
    """Raise unless an index can be made of these: in memory, by weights of both kinds of errors."""
    kind = (storage_config or {}).get("type", "dict")
    if kind in ("redis", "cassandra", "aioredis", "aiomongo"):
        raise ArgumentError(
            f"storage_config has the type {kind!r}, but the index is in memory; leave it out, and "
            "save it with pickle or la.BandIndex(...).save(path). To share documents between "
            "processes, use a collection: la.open_collection"
        )
    if kind != "dict":
        raise ArgumentError(f"storage_config has the type {kind!r}; expected 'dict'")
    if not 0 <= threshold <= 1:
        raise ArgumentError(f"threshold is {threshold}; expected a number from 0 to 1")
    if num_perm < 2:
        raise ArgumentError(f"num_perm is {num_perm}; expected 2 or more")
    if any(not 0 <= weight <= 1 for weight in weights) or sum(weights) != 1:
        raise ArgumentError(f"weights are {weights}; expected two from 0 to 1 that sum to 1")


@lru_cache(maxsize=256)
def best_params(
    threshold: float, num_perm: int, false_positive: float, false_negative: float
) -> tuple[int, int]:
    """Return the bands, and the values of each, with the least weighted sum of both areas."""
    shapes = [(b, r) for b in range(1, num_perm + 1) for r in range(1, num_perm // b + 1)]
    nodes = min(_MOST_NODES, num_perm // 2 + 2)  # enough to integrate the polynomial exactly
    below, above = _interval(0, threshold, nodes), _interval(threshold, 1, nodes)
    return _least(shapes, below, above, false_positive, false_negative)


@lru_cache(maxsize=4096)
def best_params_for_containment(
    threshold: float,
    num_perm: int,
    most_r: int,
    ratio: float,
    false_positive: float,
    false_negative: float,
) -> tuple[int, int]:
    """Return the same by containment, where a set is `ratio` times as large as the query."""
    shapes = [
        (b, r) for b in range(1, num_perm + 1) for r in range(1, min(most_r, num_perm // b) + 1)
    ]
    ends = (0, min(threshold, ratio)), (threshold, max(threshold, min(1.0, ratio)))
    below, above = (
        (nodes / (1 + ratio - nodes), weights)  # as Jaccard similarities
        for nodes, weights in (_interval(begin, end, _MOST_NODES) for begin, end in ends)
    )
    return _least(shapes, below, above, false_positive, false_negative)


_Nodes = tuple[NDArray[np.float64], NDArray[np.float64]]


@lru_cache(maxsize=64)
def _legendre(count: int) -> _Nodes:
    return np.polynomial.legendre.leggauss(count)


def _interval(begin: float, end: float, count: int) -> _Nodes:
    """Return nodes and weights to integrate over an interval (Gauss and Legendre)."""
    places, weights = _legendre(count)
    half = (end - begin) / 2
    return begin + half * (places + 1), half * weights


def _least(
    shapes: list[tuple[int, int]],
    below: _Nodes,
    above: _Nodes,
    false_positive: float,
    false_negative: float,
) -> tuple[int, int]:
    """Return the first shape with the least error."""

    def error(shape: tuple[int, int]) -> float:
        b, r = shape
        found, missed = 1 - (1 - below[0] ** r) ** b, (1 - above[0] ** r) ** b
        return float(found @ below[1]) * false_positive + float(missed @ above[1]) * false_negative

    return min(shapes, key=error)


class TableView:
    """A table of datasketch, computed when it is read."""

    def __init__(
        self, contents: Callable[[], dict[Any, Any]], get: Callable[[Any], list[bytes] | set[Any]]
    ) -> None:
        self._contents = contents
        self.get = get

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._contents())

    def __len__(self) -> int:
        return len(self._contents())

    def __contains__(self, key: Any) -> bool:
        return key in self._contents()

    has_key = __contains__
    size = __len__

    def getmany(self, *keys: Any) -> list[Any]:
        """Return what is under each key."""
        return [self.get(key) for key in keys]

    def keys(self) -> list[Any]:
        """Return all keys."""
        return list(self)

    def itemcounts(self) -> dict[Any, int]:
        """Return the number of values under each key."""
        return {key: len(values) for key, values in self._contents().items()}


class DictListStorage:
    """Lists under keys, as they were pickled."""

    _dict: dict[Any, Any]


class DictSetStorage(DictListStorage):
    """Sets under keys, as they were pickled."""


_NO_LIMIT = 2**63 - 1
_FEW = 1024


class MinHashLSH:
    """Keys under MinHashes, in memory; those that share a band with a query are its answer.

    `la.BandIndex` is the same with a promise of recall, exact similarities, batches and files.
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: tuple[int, int] | None = None,
        storage_config: dict[str, Any] | None = None,
        prepickle: bool | None = None,
        hashfunc: Callable[[bytes], bytes] | None = None,
    ) -> None:
        check_parameters(threshold, num_perm, weights, storage_config)
        self.h = num_perm
        self.b, self.r = best_params(threshold, num_perm, *weights) if params is None else params
        if self.b * self.r > num_perm:
            raise ArgumentError(
                f"params are {self.b} bands of {self.r} values, {self.b * self.r} in all; expected "
                f"no more than num_perm={num_perm}"
            )
        if self.b < 2:
            raise ArgumentError(f"b is {self.b}; expected 2 bands or more")
        self.prepickle = bool(prepickle)
        self.hashfunc = hashfunc
        self.buffer_size = 50000
        self._clear()

    def _clear(self) -> None:
        self._minhash_scheme: str | None = None
        self._table: _native.BandTable | None = None
        self._words = 0  # of a row
        self._row_keys: list[Any] = []
        self._rows: dict[Any, list[int]] = {}  # more than one under a key that came twice
        self._made: list[dict[bytes, set[Any]]] | None = None
        self._numbered: list[dict[bytes, int]] = [{} for _ in range(self.b)]  # with a hashfunc
        self._buffered: list[set[Any]] = []

    @property
    def hashranges(self) -> list[tuple[int, int]]:
        """Where the values of each band begin and end."""
        return [(band * self.r, (band + 1) * self.r) for band in range(self.b)]

    @property
    def keys(self) -> TableView:
        """What is stored under each key: the values of its bands as bytes."""
        return TableView(lambda: self._rows, self._bands_of)

    def _bands_of(self, key: Any) -> list[bytes]:
        return list(chain.from_iterable(self._bands(self._rows.get(key, []))))

    @property
    def hashtables(self) -> list[TableView]:
        """For each band, the keys of each value."""

        def view(band: int) -> TableView:
            return TableView(
                lambda: self._tables()[band], lambda value: set(self._tables()[band].get(value, ()))
            )

        return [view(band) for band in range(self.b)]

    def insert(self, key: Hashable, minhash: Any, check_duplication: bool = True) -> None:
        """Insert a MinHash under a key that is not there yet, unless that is not to be checked."""
        row, stored = self._row(minhash), self._stored(key)
        scheme = check_same_scheme(self._minhash_scheme, minhash)
        if check_duplication and stored in self._rows:
            raise ArgumentError("The given key already exists")
        self._append([stored], row)
        self._minhash_scheme = scheme

    def insertion_session(self, buffer_size: int = 50000) -> MinHashLSHInsertionSession:
        """Return a context in which to insert; what is inserted is there at once."""
        return MinHashLSHInsertionSession(self, buffer_size)

    def deletion_session(self, buffer_size: int = 50000) -> MinHashLSHDeletionSession:
        """Return a context in which to remove; what is removed is gone at once."""
        return MinHashLSHDeletionSession(self, buffer_size)

    def remove(self, key: Hashable) -> None:
        """Remove what is under a key."""
        stored = self._stored(key)
        if self._table is None or stored not in self._rows:
            raise ArgumentError("The given key does not exist")
        self._table.remove(np.array(self._rows.pop(stored), np.int64))
        self._made = None
        if self._table.removed > max(_FEW, len(self._rows)):
            buffered = self._buffered
            self.__setstate__(self.__getstate__())  # begin anew, without removed rows
            self._buffered = buffered

    def query(self, minhash: Any) -> list[Any]:
        """Return the keys that share a band with this MinHash."""
        return self._loaded(self._found(minhash, self.b))

    def _query_b(self, minhash: Any, b: int) -> set[Any]:
        if b > self.b:
            raise ArgumentError(f"b is {b}; there are {self.b} bands")
        return set(self._loaded(self._found(minhash, b)))

    def add_to_query_buffer(self, minhash: Any) -> None:
        """Ask now; `collect_query_buffer` returns what was found."""
        self._buffered.append(set(self._found(minhash, self.b)))

    def collect_query_buffer(self) -> list[Any]:
        """Return the keys that all queries since the last time have found."""
        found, self._buffered = self._buffered, []
        return self._loaded(set.intersection(*found)) if found else []

    def merge(self, other: MinHashLSH, check_overlap: bool = False) -> None:
        """Insert everything that another index of the same shape has."""
        if type(self) is not type(other):
            raise ArgumentError(f"Cannot merge a {type(other).__name__} into a MinHashLSH")
        if (self.h, self.b, self.r) != (other.h, other.b, other.r):
            raise ArgumentError(
                f"{self.b} bands of {self.r} of {self.h} values cannot be merged with "
                f"{other.b} of {other.r} of {other.h}"
            )
        if check_overlap and not self._rows.keys().isdisjoint(other._rows):
            raise ArgumentError("The keys are overlapping, duplicate key exists.")
        schemes = {self._minhash_scheme, other._minhash_scheme} - {None}
        if len(schemes) > 1:
            raise ArgumentError(f"MinHashes of the schemes {schemes} cannot be in one index")
        self._minhash_scheme = self._minhash_scheme or other._minhash_scheme
        for key in list(other._rows):
            self._append_bands(key, other._bands_of(key))

    def __contains__(self, key: Hashable) -> bool:
        return self._stored(key) in self._rows

    def is_empty(self) -> bool:
        """Return whether there is no key."""
        return not self._rows

    def get_counts(self) -> list[dict[bytes, int]]:
        """Return, for each band, how many keys have which values."""
        return self._counts(list(self._rows))

    def get_subset_counts(self, *keys: Hashable) -> list[dict[bytes, int]]:
        """Return the same of these keys alone."""
        stored = [self._stored(key) for key in set(keys)]
        return self._counts([key for key in stored if key in self._rows])

    def __getstate__(self) -> dict[str, Any]:
        keys = [key for key, rows in self._rows.items() for _ in rows]
        rows = [row for several in self._rows.values() for row in several]
        state = {
            name: getattr(self, name)
            for name in ("h", "b", "r", "prepickle", "hashfunc", "buffer_size", "_minhash_scheme")
        }
        return {**state, "keys": keys, "rows": self._values(rows), "numbered": self._numbered}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.h, self.b, self.r = state["h"], state["b"], state["r"]
        self.prepickle, self.hashfunc = state["prepickle"], state.get("hashfunc")
        self.buffer_size = state.get("buffer_size", 50000)
        self._clear()
        self._minhash_scheme = state.get("_minhash_scheme")
        keys = state["keys"]
        if "rows" in state:
            self._numbered = state["numbered"]
            if keys:
                self._append(keys, state["rows"])
            return
        for key, bands in keys._dict.items():  # of datasketch itself
            self._append_bands(key, bands)

    def _append_bands(self, key: Any, bands: list[bytes]) -> None:
        for begin in range(0, len(bands), self.b):
            self._append([key], self._row_of_bands(bands[begin : begin + self.b]))

    def _stored(self, key: Hashable) -> Any:
        return pickle.dumps(key) if self.prepickle else key

    def _loaded(self, keys: Iterable[Any]) -> list[Any]:
        return [pickle.loads(key) for key in keys] if self.prepickle else list(keys)

    def _row(self, minhash: Any) -> NDArray[np.uint32]:
        """Return what is stored of a MinHash: the values of its bands, their bytes reversed."""
        if len(minhash) != self.h:
            raise ArgumentError(f"the minhash has {len(minhash)} values; expected {self.h}")
        if self.hashfunc is None:
            values = np.ascontiguousarray(minhash.hashvalues[: self.b * self.r]).byteswap()
            return values.view(np.uint32).reshape(1, -1)
        parts = [minhash.hashvalues[begin:end] for begin, end in self.hashranges]
        return self._row_of_bands([self._H(part) for part in parts])

    def _H(self, hs: NDArray[Any]) -> bytes:  # noqa: N802  # pickled indexes name these three
        swapped = self._byteswap(hs)
        return swapped if self.hashfunc is None else self.hashfunc(swapped)

    def _byteswap(self, hs: NDArray[Any]) -> bytes:
        return bytes(hs.byteswap().data)

    _hashed_byteswap = _H

    def _row_of_bands(self, bands: list[bytes]) -> NDArray[np.uint32]:
        """Return the row whose bands these are; hashes of bands are numbered as they come."""
        if self.hashfunc is None:
            return np.frombuffer(b"".join(bands), np.uint32).reshape(1, -1)
        numbers = [
            numbered.setdefault(band, len(numbered))
            for numbered, band in zip(self._numbered, bands, strict=True)
        ]
        return np.array([numbers], np.uint32)

    def _append(self, keys: list[Any], rows: NDArray[np.uint32]) -> None:
        if self._table is None:
            self._words = rows.shape[1]
            self._table = _native.BandTable(
                self._words, self.b, self._words // self.b, True, secrets.randbits(64)
            )
        if rows.shape[1] != self._words:
            raise ArgumentError(
                "MinHashes and weighted MinHashes cannot be in one index; make one for each"
            )
        first = self._table.insert(np.ascontiguousarray(rows))
        for row, key in enumerate(keys, first):
            self._rows.setdefault(key, []).append(row)
        self._row_keys.extend(keys)
        self._made = None

    def _found(self, minhash: Any, bands: int) -> list[Any]:
        row = self._row(minhash)
        check_same_scheme(self._minhash_scheme, minhash)
        if self._table is None or row.shape[1] != self._words:
            return []
        _, rows, _ = self._table.query(np.ascontiguousarray(row), bands, 0, _NO_LIMIT, 1)
        return list(dict.fromkeys(map(self._row_keys.__getitem__, rows.tolist())))

    def _values(self, rows: list[int]) -> NDArray[np.uint32]:
        values = np.empty((len(rows), self._words), np.uint32)
        if self._table is not None:
            self._table.copy(np.array(rows, np.int64), values)
        return values

    def _bands(self, rows: list[int]) -> Iterator[list[bytes]]:
        """Yield the bands of each row, as bytes."""
        names = [list(numbered) for numbered in self._numbered if self.hashfunc]
        width = 4 * self._words // self.b
        for row in self._values(rows):
            if self.hashfunc is None:
                whole = row.tobytes()
                yield [whole[at : at + width] for at in range(0, len(whole), width)]
            else:
                yield [names[band][number] for band, number in enumerate(row.tolist())]

    def _tables(self) -> list[dict[bytes, set[Any]]]:
        """Return the keys of each band's values; they are made once until something changes."""
        if self._made is None:
            self._made = [{} for _ in range(self.b)]
            for key, rows in self._rows.items():
                for bands in self._bands(rows):
                    for table, band in zip(self._made, bands, strict=True):
                        table.setdefault(band, set()).add(key)
        return self._made

    def _counts(self, keys: list[Any]) -> list[dict[bytes, int]]:
        counts: list[Counter[bytes]] = [Counter() for _ in range(self.b)]
        for key in keys:
            distinct = [set(bands) for bands in zip(*self._bands(self._rows[key]), strict=True)]
            for count, bands in zip(counts, distinct, strict=True):
                count.update(bands)
        return [dict(count) for count in counts]


class _Session:
    """A context in which an index is changed, at once."""

    def __init__(self, lsh: MinHashLSH, buffer_size: int) -> None:
        self.lsh = lsh
        self.lsh.buffer_size = buffer_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: all is done."""


class MinHashLSHInsertionSession(_Session):
    """A context in which to insert."""

    def insert(self, key: Hashable, minhash: Any, check_duplication: bool = True) -> None:
        """Insert a MinHash under a key."""
        self.lsh.insert(key, minhash, check_duplication=check_duplication)


class MinHashLSHDeletionSession(_Session):
    """A context in which to remove."""

    def remove(self, key: Hashable) -> None:
        """Remove what is under a key."""
        self.lsh.remove(key)
