"""BandIndex: live MinHash LSH under keys."""

from __future__ import annotations

import copyreg
import json
import secrets
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import as_array, flag, instance, share, thread_count, whole_number
from lookalike.display import Column, Displayed, TableColumns
from lookalike.errors import ArgumentError, CorruptIndexError, ResultTooLargeError, SignatureError
from lookalike.features import jaccard, weighted_jaccard
from lookalike.indexes.bands import BandLayout, bands_for, least_equal
from lookalike.indexes.base import DEFAULT_LIMIT, StoredIndex
from lookalike.indexes.keys import key_arrays, restored_keys
from lookalike.indexes.results import MatchesByQuery
from lookalike.shown import brief, counted
from lookalike.signatures.minhash import ValueSigner, mark_of, marked, same_mark
from lookalike.signatures.signer import WeightedSigner, signer_from_dict, signer_in
from lookalike.storage.container import Container


class _KeyMatch(NamedTuple):
    key: Any
    similarity: float


class KeyMatch(Displayed, _KeyMatch):
    """A key that was found, and its similarity to the query."""

    __slots__ = ()

    def _values(self) -> dict[str, object]:
        return self._asdict()


@dataclass(frozen=True, eq=False, repr=False)
class KeyMatches(MatchesByQuery):
    """Matches of each query, most similar first, then in the order of insertion.

    `matches[i]` returns the matches of query i.
    """

    offsets: NDArray[np.int64]
    """int64[queries + 1]"""
    similarities: NDArray[np.float64]
    """Estimated similarities, or exact ones if `verified`."""
    verified: bool
    """Whether similarities are exact."""
    rows: NDArray[np.int64]
    """Rows of the index; smaller numbers were inserted earlier."""
    all_keys: Sequence[Hashable]
    exact: bool = False
    """Whether no match above the threshold is missing; bands promise only a recall."""

    @cached_property
    def keys(self) -> list[Any]:
        """Keys of all matches."""
        return list(map(self.all_keys.__getitem__, self.rows.tolist()))

    def __getitem__(self, query: int) -> list[KeyMatch]:
        query = range(len(self))[query]
        part = slice(int(self.offsets[query]), int(self.offsets[query + 1]))
        return list(map(KeyMatch, self.keys[part], self.similarities[part].tolist()))

    def __iter__(self) -> Iterator[list[KeyMatch]]:
        return (self[query] for query in range(len(self)))

    def _columns(self, begin: int, end: int) -> TableColumns:
        rows = self.rows[begin:end].tolist()
        return {
            "query": self.query[begin:end],
            "key": Column([self.all_keys[row] for row in rows], object),
            "similarity": self.similarities[begin:end],
        }

    def kept(self, which: NDArray[np.bool_]) -> KeyMatches:
        """Return only these matches."""
        before = np.concatenate([[0], np.cumsum(which)])
        offsets, rows = before[self.offsets], self.rows[which]
        return replace(self, offsets=offsets, similarities=self.similarities[which], rows=rows)


_FEW = 1024
_COPIED_AT_A_TIME = 1 << 14


class _Table:
    """The core's table and the key of each row; both only grow, also during a search."""

    def __init__(self, permutations: int, layout: BandLayout) -> None:
        seed = secrets.randbits(64)  # prevents rows that are made to collide
        self.rows = _native.BandTable(permutations, layout.bands, layout.rows, False, seed)
        self.keys: list[Any] = []

    def append(self, keys: list[Any], rows: NDArray[np.uint32]) -> None:
        first = len(self.keys)
        self.keys.extend(keys)  # before the rows, which a search may find at once
        try:
            self.rows.insert(rows)
        except BaseException:
            del self.keys[first:]
            raise


def as_keys(keys: Iterable[Hashable]) -> list[Any]:
    """Return keys as a list; NumPy values become Python values."""
    if isinstance(keys, np.ndarray) and keys.ndim == 1:
        return list(keys.tolist())
    try:
        return list(keys)
    except TypeError:
        raise ArgumentError(
            f"keys are {brief(keys)} of type {type(keys).__name__}; expected a list of keys"
        ) from None


def _is_hashable(key: object) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _unhashable(key: object) -> ArgumentError:
    return ArgumentError(
        f"the key {brief(key)} of type {type(key).__name__} is not hashable; expected a string, a "
        "number, bytes, a tuple of these or another hashable value"
    )


class BandIndex(StoredIndex):
    """Live MinHash LSH index: insert, remove and query by key in microseconds.

    A row is found if it shares a whole band of values with the query, and enough values in all.
    Each of these two steps may miss half of what the `recall` allows. Results may include keys
    slightly below the threshold: filter by `at_least`, or verify with `text_of`.

    Rows made by another signer, seed or settings are refused. Documents without features are kept,
    but never found. Searches are thread-safe, also while rows are inserted and removed. Files can
    store keys that are strings, numbers, bytes, None, or tuples of these.

    Args:
        threshold: Similarity from which rows are found with a probability of at least `recall`.
        permutations: Number of values of a row (default: that of the signer, or 128).
        signer: `la.MinHash` or `la.WeightedMinHash` that signs documents (default: pass rows, or
            the signer of the first rows is used).
        recall: Probability of finding a row at the threshold (default: 0.99).

    Examples:
        >>> index = la.BandIndex(0.5, signer=la.MinHash(features=la.Words(ngram=2)))
        >>> index.insert("a", "the quick brown fox jumps over the lazy dog")
        >>> [match.key for match in index.query("the quick brown fox jumps over the lazy cat")]
        ['a']
    """

    kind = "bands"
    signer: ValueSigner | None = None

    def __init__(
        self,
        threshold: SupportsFloat,
        permutations: SupportsIndex | None = None,
        *,
        signer: ValueSigner | None = None,
        recall: SupportsFloat = 0.99,
    ) -> None:
        self.threshold = share("threshold", threshold)
        self.recall = share("recall", recall)
        self._mark: str | None = None
        self._adopting = threading.Lock()
        if signer is not None:
            self.signer = _value_signer(signer)
            self._mark = self.signer.mark
        if permutations is None:
            permutations = 128 if self.signer is None else self.signer.permutations
        self.permutations = whole_number("permutations", permutations, at_least=1, at_most=2**20)
        if self.signer is not None and self.signer.permutations != self.permutations:
            raise ArgumentError(
                f"permutations={self.permutations}, but the signer has "
                f"{self.signer.permutations}; leave one of them out"
            )
        self.layout = bands_for(self.permutations, self.threshold, self.recall)
        self._least = least_equal(self.permutations, self.threshold, self.recall)
        self._writing = threading.Lock()
        self._table = _Table(self.permutations, self.layout)
        self._numbers: dict[Any, int] = {}  # of rows in the table; in order of insertion

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, key: object) -> bool:
        try:
            return key in self._numbers
        except TypeError:
            raise _unhashable(key) from None

    def keys(self) -> list[Any]:
        """Return all keys, in the order of insertion."""
        return list(self._numbers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    @property
    def memory_bytes(self) -> int:
        """Size of rows and bands in bytes, without keys."""
        return self._table.rows.memory_bytes

    def remove(self, key: Hashable) -> None:
        """Remove the row of a key. The key may be used again."""
        self.remove_many([key])

    def remove_many(self, keys: Iterable[Hashable]) -> None:
        """Remove the rows of many keys, all or none."""
        several = as_keys(keys)
        with self._writing:
            numbers = [self._number(key) for key in several]
            if len(set(numbers)) != len(numbers):
                raise ArgumentError("a key is given more than once; nothing was removed")
            self._table.rows.remove(np.array(numbers, np.int64))
            for key in several:
                del self._numbers[key]
            self._tidy()

    @property
    def least_similarity(self) -> float:
        """Smallest estimated similarity of a match without `at_least`."""
        return self._least / self.permutations

    def __getitem__(self, key: Hashable) -> NDArray[np.uint32]:
        """Return a copy of the row of a key."""
        with self._writing:
            row = self._copied(np.array([self._number(key)]))[0]
        return marked(row, self._mark)

    def __repr__(self) -> str:
        return (
            f"BandIndex({counted(len(self), 'row')} of {counted(self.permutations, 'value')}, "
            f"threshold={self.threshold}, {counted(self.layout.bands, 'band')} of "
            f"{self.layout.rows})"
        )

    def insert(self, key: Hashable, document: Any, *, replace: bool = False) -> None:
        """Insert a row or document under a key.

        Args:
            key: Any hashable value.
            document: Row `uint32[permutations]`, or a document if the index has a signer.
            replace: Replace an existing row; without it, an existing key raises.
        """
        self._insert([key], self._one(document), flag("replace", replace), 1)

    def insert_many(
        self,
        keys: Iterable[Hashable],
        documents: Any,
        *,
        replace: bool = False,
        threads: SupportsIndex | None = None,
    ) -> None:
        """Insert many rows `uint32[n, permutations]`, or documents, all or none."""
        self._insert(as_keys(keys), documents, flag("replace", replace), threads)

    def query(
        self,
        document: Any,
        *,
        at_least: SupportsFloat | None = None,
        text_of: Mapping[Any, Any] | Callable[[Any], Any] | None = None,
    ) -> list[KeyMatch]:
        """Return keys and similarities of rows similar to one row or document; see `query_many`."""
        if text_of is None:
            return self._found(self._as_rows(self._one(document), 1), at_least, DEFAULT_LIMIT, 1)[0]
        return self.query_many([document], at_least=at_least, text_of=text_of, threads=1)[0]

    def query_many(
        self,
        documents: Any,
        *,
        at_least: SupportsFloat | None = None,
        text_of: Mapping[Any, Any] | Callable[[Any], Any] | None = None,
        limit: SupportsIndex = DEFAULT_LIMIT,
        threads: SupportsIndex | None = None,
    ) -> KeyMatches:
        """Return the matches of each row or document, most similar first.

        Args:
            documents: Rows `uint32[n, permutations]`, or documents. One row or one text is a
                batch of one.
            at_least: Smallest similarity (default: `least_similarity`, or the threshold with
                `text_of`).
            text_of: Mapping or function from keys to documents. Similarities are then exact: the
                Jaccard similarity of features, weighted if the signer is. Queries must be
                documents.
            limit: Maximum number of matches of all queries together.
            threads: Number of threads (default: all cores).

        Raises:
            ResultTooLargeError: If there are more matches than `limit`.
        """
        most, workers = whole_number("limit", limit, at_least=0), thread_count(threads)
        if isinstance(documents, str) or (
            isinstance(documents, np.ndarray) and documents.ndim == 1
        ):
            documents = self._one(documents)
        if text_of is None:
            return self._found(self._as_rows(documents, workers), at_least, most, workers)
        if not callable(text_of):
            instance("text_of", text_of, Mapping, "a mapping or function from keys to documents")
        if self.signer is None or isinstance(documents, np.ndarray):
            raise ArgumentError(
                "text_of compares documents; give the queries as documents, to an index with a "
                "signer: la.BandIndex(..., signer=la.MinHash())"
            )
        texts = list(documents)
        found = self._found(self._as_rows(texts, workers), None, most, workers)
        return self._verified(self.signer, texts, found, at_least, text_of, workers)

    def merge(self, other: BandIndex) -> None:
        """Insert all rows of another index, all or none."""
        instance("other", other, BandIndex, "a BandIndex")
        keys, values = other._keys_and_rows()
        self._insert(keys, marked(values, other._mark), False, 1)

    def stats(self) -> dict[str, Any]:
        """Return facts about the index, fit for JSON."""
        return {
            "index": self.kind,
            "rows": len(self),
            "permutations": self.permutations,
            "threshold": self.threshold,
            "recall": self.recall,
            "bands": self.layout.bands,
            "band_rows": self.layout.rows,
            "least_similarity": self.least_similarity,
            "memory_bytes": self.memory_bytes,
        }

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__setstate__(self.__getstate__())
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = type(self).__new__(type(self))
        twin.__setstate__(deepcopy(self.__getstate__(), memo))
        return twin

    def __reduce__(self) -> tuple[Any, ...]:  # unlike a file, a pickle takes keys of any type
        return copyreg.__newobj__, (type(self),), self.__getstate__()  # type: ignore[attr-defined]

    def _meta(self) -> dict[str, Any]:
        return {**super()._meta(), **self._settings(), "mark": self._mark}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return rows and keys."""
        keys, values = self._keys_and_rows()
        return {"values": values, **key_arrays(keys)}

    @classmethod
    def from_container(cls, container: Container) -> Self:
        """Return the index in a container; its rows are inserted again."""
        container.verify_ahead()
        meta, mark = container.meta, container.meta.get("mark")
        try:
            index = cls(meta["threshold"], meta["permutations"], recall=meta["recall"])
            if mark is not None:
                index._adopt(mark, signer_in(container))
        except (ArgumentError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise CorruptIndexError(
                f"{container.path}: its description cannot be used ({error}); it is damaged"
            ) from error
        index._container = container
        index._restore(container)
        return index

    def _restore(self, container: Container) -> None:
        keys, values = restored_keys(container), container.array("values", np.uint32, 2)
        if values.shape != (len(keys), self.permutations) or len(set(keys)) != len(keys):
            raise CorruptIndexError(
                f"{container.path} holds {len(keys)} keys, {len(set(keys))} of them distinct, and "
                f"values of shape {values.shape}; it is damaged"
            )
        self._insert_rows(keys, values, False)

    def __getstate__(self) -> dict[str, Any]:
        keys, values = self._keys_and_rows()
        return {
            **self._settings(),
            "signer": None if self.signer is None else self.signer.to_dict(),
            "mark": self._mark,
            "keys": keys,
            "values": values,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        BandIndex.__init__(self, state["threshold"], state["permutations"], recall=state["recall"])
        if state["mark"] is not None:
            described = state["signer"]
            self._adopt(state["mark"], None if described is None else signer_from_dict(described))
        self._insert_rows(state["keys"], state["values"], False)

    def _keys_and_rows(self) -> tuple[list[Any], NDArray[np.uint32]]:
        """Return keys and rows, in the order of insertion."""
        with self._writing:
            return self.keys(), self._copied(self._all_numbers())

    def _insert_rows(self, keys: list[Any], rows: NDArray[np.uint32], replace: bool) -> None:
        """Insert rows under new keys, or keys to replace; all or none."""
        if len(keys) != len(rows):
            raise ArgumentError(f"there are {len(keys)} keys and {len(rows)} rows")
        with self._writing:
            first = len(self._table.keys)
            try:
                new = dict(zip(keys, range(first, first + len(keys)), strict=True))
            except TypeError:
                raise _unhashable(next(key for key in keys if not _is_hashable(key))) from None
            if len(new) != len(keys):
                raise ArgumentError("a key is given more than once; nothing was inserted")
            old: list[Any] = []
            if not self._numbers.keys().isdisjoint(new):
                old = [key for key in keys if key in self._numbers]
            if old and not replace:
                raise ArgumentError(
                    f"the key {brief(old[0])} is in the index already; nothing was inserted. "
                    "Remove it first, or pass replace=True"
                )
            self._table.append(keys, rows)
            if old:
                self._table.rows.remove(np.array([self._numbers.pop(key) for key in old]))
            self._numbers.update(new)
            self._tidy()

    def _number(self, key: Hashable) -> int:
        try:
            return self._numbers[key]
        except KeyError:
            raise ArgumentError(f"the key {brief(key)} is not in the index") from None
        except TypeError:
            raise _unhashable(key) from None

    def _all_numbers(self) -> NDArray[np.int64]:
        return np.fromiter(self._numbers.values(), np.int64, len(self._numbers))

    def _copied(self, numbers: NDArray[np.int64]) -> NDArray[np.uint32]:
        rows = np.empty((len(numbers), self.permutations), np.uint32)
        self._table.rows.copy(numbers, rows)
        return rows

    def _tidy(self) -> None:
        """Build a new table if more rows were removed than are left."""
        if self._table.rows.removed <= max(_FEW, len(self._numbers)):
            return
        table = _Table(self.permutations, self.layout)
        keys, numbers = self.keys(), self._all_numbers()
        for begin in range(0, len(keys), _COPIED_AT_A_TIME):
            part = slice(begin, begin + _COPIED_AT_A_TIME)
            table.append(keys[part], self._copied(numbers[part]))
        self._numbers = dict(zip(keys, range(len(keys)), strict=True))
        self._table = table

    def _settings(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "permutations": self.permutations,
            "recall": self.recall,
        }

    def _adopt(self, mark: str, signer: object = None) -> None:
        """Accept only rows with this mark from now on."""
        self.signer, self._mark = self._signer_of(mark, signer), mark

    def _signer_of(self, mark: str, signer: object = None) -> ValueSigner | None:
        """Return the signer of rows with this mark, if it is known."""
        description = json.loads(mark)
        vocabulary = (description.get("weights") or {}).get("vocabulary")
        if signer is None and vocabulary is None:
            signer = signer_from_dict(description)
        if signer is None:
            return None
        known = _value_signer(signer)
        if known.mark != mark or known.permutations != self.permutations:
            raise ArgumentError("the signer is not that of the rows")
        return known

    def _insert(self, keys: list[Any], documents: Any, replace: bool, threads: Any) -> None:
        """Insert rows; the mark of the first rows decides which rows are accepted later."""
        mark = mark_of(values := self._values(documents, threads))
        if mark is None or self._mark is not None:
            self._insert_rows(keys, self._comparable(values), replace)
            return
        with self._adopting:
            rows = self._comparable(values)  # another thread may have set the mark meanwhile
            signer = self._signer_of(mark) if self._mark is None else self.signer
            self._insert_rows(keys, rows, replace)
            self.signer, self._mark = signer, mark

    def _one(self, document: Any) -> Any:
        """Return one row or document as a batch."""
        if not isinstance(document, np.ndarray):
            return [document]
        if document.ndim != 1:
            raise SignatureError(
                f"one row has shape {document.shape}; expected ({self.permutations},); "
                "insert_many and query_many take several"
            )
        return document[None]

    def _as_rows(self, documents: Any, threads: SupportsIndex | None) -> NDArray[np.uint32]:
        return self._comparable(self._values(documents, threads))

    def _values(self, documents: Any, threads: SupportsIndex | None) -> NDArray[np.uint32]:
        """Return rows with the right number of values."""
        if not isinstance(documents, np.ndarray):
            if self.signer is None:
                raise SignatureError(
                    f"{brief(documents)} of type {type(documents).__name__} is not an array of "
                    "rows. Pass what la.MinHash().sign returns, or create the index with a "
                    "signer: la.BandIndex(..., signer=la.MinHash())"
                )
            documents = self.signer.sign(documents, threads=threads)
        if documents.dtype != np.uint32 or documents.shape[1:] != (self.permutations,):
            raise SignatureError(
                f"rows are {documents.dtype} of shape {documents.shape}; expected uint32 with "
                f"{self.permutations} columns"
            )
        return np.asanyarray(documents, np.uint32)

    def _comparable(self, values: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return rows for the core, after checking their mark."""
        same_mark(self._mark, mark_of(values))
        return np.ascontiguousarray(as_array("rows", values))

    def _found(
        self, queries: NDArray[np.uint32], at_least: SupportsFloat | None, limit: int, threads: int
    ) -> KeyMatches:
        least = self._least
        if at_least is not None:
            least = int(np.ceil(share("at_least", at_least) * self.permutations - 1e-9))
        table = self._table
        try:
            offsets, numbers, equal = table.rows.query(
                queries, self.layout.bands, least, limit, threads
            )
        except _native.TooManyResults:
            raise ResultTooLargeError(
                f"more than limit={limit} matches of {len(queries)} queries. Use at_least=, fewer "
                "queries at once, or a larger limit"
            ) from None
        similarities = equal / np.float64(self.permutations)
        return KeyMatches(
            offsets.view(np.int64), similarities, False, numbers.view(np.int64), table.keys
        )

    def _verified(
        self,
        signer: ValueSigner,
        texts: list[Any],
        found: KeyMatches,
        at_least: SupportsFloat | None,
        text_of: Mapping[Any, Any] | Callable[[Any], Any],
        threads: int,
    ) -> KeyMatches:
        """Return the matches with exact similarities."""
        look_up = text_of if callable(text_of) else text_of.__getitem__
        queries = np.repeat(np.arange(len(found)), np.diff(found.offsets))
        try:
            others = [look_up(key) for key in found.keys]
        except LookupError as error:
            raise ArgumentError(
                f"text_of has no document for a key that was found: {brief(error)}"
            ) from error
        left = [texts[query] for query in queries.tolist()]
        if isinstance(signer, WeightedSigner):
            exact = weighted_jaccard(left, others, signer.features, signer.weights, threads=threads)
        else:
            exact = jaccard(left, others, signer.features, threads=threads)
        order = np.lexsort((found.rows, -exact, queries))
        least = self.threshold if at_least is None else share("at_least", at_least)
        matches = KeyMatches(found.offsets, exact[order], True, found.rows[order], found.all_keys)
        return matches.kept(matches.similarities >= least)


def _value_signer(signer: object) -> ValueSigner:
    return instance("signer", signer, ValueSigner, "la.MinHash() or la.WeightedMinHash()")
