"""A collection: documents that come and go while they are searched."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import file_path, flag, one_of, thread_count, whole_number
from lookalike.collection.answers import Answer, Pair, differing_bits
from lookalike.collection.care.abandoned import remove_abandoned
from lookalike.collection.documents import (
    Document,
    Row,
    as_document,
    as_id,
    damaged,
    is_id,
    prepare_items,
)
from lookalike.collection.search.fetch import DocumentFetcher
from lookalike.collection.search.filters import Where, compile_where
from lookalike.collection.search.level import Level
from lookalike.collection.search.native import (
    NativeSearch,
    native_levels,
    native_within,
)
from lookalike.collection.search.pairs import document_pairs
from lookalike.collection.search.sql import SqlSearch
from lookalike.collection.stores.base import StaleView, State, Store, View
from lookalike.collection.writing import Written, delete_documents, write_documents
from lookalike.errors import ArgumentError, BatchError, CollectionError, ItemError, NotFoundError
from lookalike.signatures import Signer, as_queries, signer_from_dict
from lookalike.signatures.signer import DocumentSigner

if TYPE_CHECKING:
    from lookalike.collection.care.verify import Report

__all__ = ["Collection", "Way"]

Way: TypeAlias = Literal["native", "sql"]
Query: TypeAlias = str | ArrayLike
T = TypeVar("T")

_MOST_MATCHES = 10_000
_WAYS = ("native", "sql")
_MORE_THAN_ALL = 1 << 40
"""Whoever asks for more gets this many: more than there can be, few enough for every database."""
_TRIES = 20


class Collection:
    """Documents with ids, signatures, metadata and maybe text, in a database.

    Open one with `la.open_collection`. What a method has returned from is committed: written
    durably, and seen by the next search of every process. A search sees one version of the
    collection, the last that was committed when it began. Safe to use from many threads; after a
    fork, open it again.
    """

    def __init__(self, store: Store, state: State, *, way: Way, cache: Path | None) -> None:
        self._store = store
        self._name = state.name
        self._opened = state
        self._way: Way = way
        self._native = NativeSearch(cache)
        self._sql = SqlSearch()
        self._signer: Signer | None = None

    # What it is

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self._name

    @property
    def bits(self) -> int:
        """How many bits each signature has."""
        return self._opened.bits

    @property
    def signer(self) -> Signer | None:
        """How documents are signed; None if signatures are given by the caller."""
        if self._signer is None and self._opened.signer:
            description = self._at_one_version(lambda view, state: view.checked_signer(state))
            self._signer = signer_from_dict(json.loads(description))
        return self._signer

    @property
    def version(self) -> int:
        """How many times the collection has been written to."""
        return self._at_one_version(lambda view, state: state.version)

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.get(id) is not None

    def __iter__(self) -> Iterator[Document]:
        """Yield all documents by id; what is written meanwhile may or may not be among them."""
        for page in self.pages():
            yield from page

    def __repr__(self) -> str:
        return f"Collection({self._name!r}, {self.bits} bits, at {self._store.shown})"

    def stats(self) -> dict[str, Any]:
        """Return what there is to know, in plain values."""
        state = self._at_one_version(lambda view, state: state)
        cache = self._native.file(state)
        return {
            "name": state.name,
            "database": self._store.shown,
            "documents": state.documents,
            "signatures": state.signatures,
            "bits": state.bits,
            "slice_bits": state.slice_bits,
            "slices": state.slicing.count,
            "signer": None if self.signer is None else type(self.signer).__name__,
            "keeps_text": state.keep_text,
            "version": state.version,
            "durability": self._store.durability(),
            "cache": None if cache is None else str(cache),
            "native_bytes": self._native.memory_bytes,
        }

    # Writing

    def add(
        self,
        ids: Sequence[str],
        texts: Sequence[str] | None = None,
        *,
        signatures: ArrayLike | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> Written:
        """Add documents, all of them or none; an id that is there already is an error.

        Give texts to be signed, or signatures, or both. `BatchError` names every item that
        cannot be written, and then none is; with `on_error="skip"` the others are written, and
        `errors` of the result has those that were not.
        """
        return self._write(ids, texts, signatures, metadata, on_error, replace=False)

    def upsert(
        self,
        ids: Sequence[str],
        texts: Sequence[str] | None = None,
        *,
        signatures: ArrayLike | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> Written:
        """Add documents or replace those with the same ids, all of them or none.

        Where an id comes twice in a batch, the later one counts. Otherwise as `add`.
        """
        return self._write(ids, texts, signatures, metadata, on_error, replace=True)

    def delete(self, ids: Sequence[str] | str) -> Written:
        """Remove documents, all in one step; ids that are not there are passed over."""
        wanted = [as_id(id) for id in ([ids] if isinstance(ids, str) else _listed("ids", ids))]
        with self._store.writing() as writer:
            state = self._known(writer.lock(self._name))
            after = delete_documents(writer, state, wanted)
        return Written(deleted=state.documents - after.documents, version=after.version)

    def _write(
        self,
        ids: Sequence[str],
        texts: Sequence[str] | None,
        signatures: ArrayLike | None,
        metadata: Sequence[Mapping[str, Any] | None] | None,
        on_error: str,
        replace: bool,
    ) -> Written:
        one_of("on_error", on_error, ("raise", "skip"))
        names = _listed("ids", ids)
        given = None if signatures is None else as_queries(signatures, self.bits, "signatures")
        contents = None if texts is None else _listed("texts", texts)
        described = None if metadata is None else _listed("metadata", metadata)
        for name, values in (("texts", contents), ("signatures", given), ("metadata", described)):
            if values is not None and len(values) != len(names):
                raise ArgumentError(
                    f"there are {len(names)} ids and {len(values)} {name}; expected one for each"
                )
        if contents is None and given is None:
            raise ArgumentError("there are neither texts nor signatures; give one of them")
        if given is None:
            self._document_signer()  # says so at once if texts cannot be signed
        items, errors = prepare_items(
            names,
            contents,
            described,
            need_text=given is None,
            keep_text=self._opened.keep_text,
            unique=not replace,
        )
        if errors and on_error == "raise":
            raise BatchError(errors, len(names))
        if given is None:
            texts_to_sign = [contents[position] for position in items.positions] if contents else []
            rows = self._sign(texts_to_sign)
        else:
            rows = given[items.positions]
        with self._store.writing() as writer:
            state = self._known(writer.lock(self._name))
            if not replace:
                known = writer.find_documents(state, items.ids) if state.documents else {}
                if known:
                    errors += [
                        ItemError(position, id, "there is a document of this id; use upsert()")
                        for position, id in zip(items.positions, items.ids, strict=True)
                        if id in known
                    ]
                    errors.sort(key=lambda error: error.position)
                    if on_error == "raise":
                        raise BatchError(errors, len(names))
                    kept = [i for i, id in enumerate(items.ids) if id not in known]
                    items, rows = items.only(kept), rows[kept]
            if not items.ids:
                return Written(errors=errors, version=state.version)
            after = write_documents(writer, state, items, rows, fresh=not replace)
        added = after.documents - state.documents
        return Written(added, len(items.ids) - added, errors=errors, version=after.version)

    # Reading

    def get(self, id: str) -> Document | None:
        """Return a document, or None if there is none of that id."""
        return self.get_many([id])[0]

    def get_many(self, ids: Sequence[str]) -> list[Document | None]:
        """Return the documents of these ids, None for each that is not there; at one moment."""
        wanted = [id if is_id(id) else "" for id in _listed("ids", ids)]

        asked = [id for id in wanted if id]
        rows = self._at_one_version(lambda view, state: view.documents(state, asked))
        found = {row.id: as_document(row, signature) for row, signature in rows}
        return [found.get(id) for id in wanted]

    def count(self, where: Where | None = None) -> int:
        """Return how many documents there are, or how many meet a condition (reads all)."""
        predicate = compile_where(where)
        if predicate is None:
            return self._at_one_version(lambda view, state: state.documents)
        return sum(map(len, self.pages(where=where)))

    def scroll(
        self, after: str = "", limit: SupportsIndex = 100, *, where: Where | None = None
    ) -> list[Document]:
        """Return the next documents by id, those behind `after`; an empty list at the end."""
        wanted = _count("limit", limit)
        after = "" if isinstance(after, str) and not after else as_id(after)
        predicate = compile_where(where)

        def read(view: View, state: State) -> list[Document]:
            result: list[Document] = []
            size = wanted if predicate is None else max(wanted, 1000)
            for page in view.pages(state, size, after):
                result += [
                    document
                    for document in starmap(as_document, page)
                    if predicate is None or predicate(document.metadata)
                ]
                if len(result) >= wanted:
                    break
            return result[:wanted]

        return self._at_one_version(read)

    def pages(
        self, size: SupportsIndex = 1000, *, where: Where | None = None
    ) -> Iterator[list[Document]]:
        """Yield all documents by id, `size` at a time, or those of them that meet a condition.

        What is written meanwhile may or may not be among them. If nothing is, and there are not as
        many as there should be, raises at the end.
        """
        predicate = compile_where(where)
        before = self._at_one_version(lambda view, state: state)
        after, seen = "", 0
        while page := self.scroll(after, size):
            after, seen = page[-1].id, seen + len(page)
            yield page if predicate is None else [one for one in page if predicate(one.metadata)]
        now = self._at_one_version(lambda view, state: state)
        if now == before and seen != now.documents:
            raise damaged(f"{seen} documents are there to be read, not {now.documents}")

    # Searching

    def search(
        self,
        query: Query,
        k: SupportsIndex = 10,
        *,
        radius: SupportsIndex | None = None,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        way: Way | None = None,
        threads: int | None = None,
    ) -> Answer:
        """Return the k nearest documents to a text or signature, by (distance, id); exact.

        Only those within `radius`, if given, which makes the search in the database cheap; only
        those that meet `where` and are not in `exclude`. `text=True` brings their texts,
        `explain=True` the bits and slices in which they differ and what the search did. `way` is
        `"native"` (an index in memory) or `"sql"` (in the database); the answers are the same.
        """
        return self.search_many(
            [query] if isinstance(query, str) else self._one(query), k, radius=radius, where=where,
            exclude=exclude, explain=explain, text=text, way=way, threads=threads,
        )[0]  # fmt: skip

    def search_many(
        self,
        queries: Sequence[str] | ArrayLike,
        k: SupportsIndex = 10,
        *,
        radius: SupportsIndex | None = None,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        way: Way | None = None,
        threads: int | None = None,
    ) -> list[Answer]:
        """Return what `search` returns for each of many queries, at one version."""
        wanted = _count("k", k)
        near = None if radius is None else whole_number("radius", radius, at_least=0)
        return self._search(
            queries, wanted, None, near, where, exclude, explain, text, way, threads
        )

    def within(
        self,
        query: Query,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = _MOST_MATCHES,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        way: Way | None = None,
        threads: int | None = None,
    ) -> Answer:
        """Return every document at distance `radius` or less, by (distance, id).

        If there are more than `limit`, the nearest, and `complete` is False. For the rest see
        `search`.
        """
        return self.within_many(
            [query] if isinstance(query, str) else self._one(query), radius, limit=limit,
            where=where, exclude=exclude, explain=explain, text=text, way=way, threads=threads,
        )[0]  # fmt: skip

    def within_many(
        self,
        queries: Sequence[str] | ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = _MOST_MATCHES,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        way: Way | None = None,
        threads: int | None = None,
    ) -> list[Answer]:
        """Return what `within` returns for each of many queries, at one version."""
        most = _count("limit", limit)
        near = whole_number("radius", radius, at_least=0)
        return self._search(
            queries, most + 1, most, near, where, exclude, explain, text, way, threads
        )

    def duplicates_of(
        self, id: str, radius: SupportsIndex, *, where: Where | None = None,
        limit: SupportsIndex = _MOST_MATCHES, explain: bool = False, text: bool = False,
        way: Way | None = None, threads: int | None = None,
    ) -> Answer:  # fmt: skip
        """Return every other document within the radius of this one; see `within`."""
        document = self.get(as_id(id))
        if document is None:
            raise NotFoundError(f"there is no document {id[:80]!r} in {self._name!r}")
        return self.within(
            document.signature, radius, limit=limit, where=where, exclude=[id], explain=explain,
            text=text, way=way, threads=threads,
        )  # fmt: skip

    def pairs(
        self, radius: SupportsIndex, *, limit: SupportsIndex = 1_000_000, threads: int | None = None
    ) -> list[Pair]:
        """Return every pair of documents within the radius, each once, by (left, right).

        Reads all signatures, which are compared in memory. More than `limit` raise
        `ResultTooLargeError`.
        """
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        most = _count("limit", limit, at_least=0)
        return self._at_one_version(
            lambda view, state: document_pairs(view, state, near, most, threads)
        )

    def _search(
        self,
        queries: Sequence[str] | ArrayLike,
        k: int,
        limit: int | None,
        radius: int | None,
        where: Where | None,
        exclude: Iterable[str],
        explain: bool,
        text: bool,
        way: Way | None,
        threads: int | None,
    ) -> list[Answer]:
        predicate = compile_where(where)
        excluded = frozenset(as_id(id) for id in _listed("exclude", exclude))
        explain, text = flag("explain", explain), flag("text", text)
        chosen = self._way if way is None else one_of("way", way, _WAYS)
        threads = thread_count(threads)
        rows = self._signatures(queries)
        near = None if radius is None else min(radius, self.bits)

        def answers(view: View, state: State) -> list[Answer]:
            fetcher = DocumentFetcher(view, state, k, predicate, excluded, text)
            index = self._native.at(view, state) if chosen == "native" else None
            levels: Iterable[Iterable[Level]]
            if near is None:
                levels = (
                    self._sql.levels(view, state, row, k)
                    if index is None
                    else native_levels(index, row, k, threads)
                    for row in rows
                )
            else:
                found = (
                    self._sql.within(view, state, rows, near)
                    if index is None
                    else native_within(index, rows, near, threads, explain)
                )
                if len(found) > 1:
                    fetcher.prefetch(found)
                levels = zip(found)
            return [
                _answer(fetcher, row, *fetcher.nearest(level), limit, explain)
                for row, level in zip(rows, levels, strict=True)
            ]

        return self._at_one_version(answers)

    def _at_one_version(self, work: Callable[[View, State], T]) -> T:
        """Read at one version; again, if what is read has moved on meanwhile."""
        for _ in range(_TRIES):
            taken_in = self._native.version  # committed, so a view from now on has it
            try:
                with self._store.reading() as view:
                    state = self._state(view)
                    if state.version < taken_in:
                        self._native.went_back(state)
                    return work(view, state)
            except StaleView:
                continue
        raise CollectionError(
            "the collection is written to faster than a search can begin; try again"
        )

    def _signatures(self, queries: Sequence[str] | ArrayLike) -> NDArray[np.uint8]:
        if isinstance(queries, str):
            raise ArgumentError("queries are one str; expected a list of them, or use search()")
        if isinstance(queries, Sequence) and all(isinstance(query, str) for query in queries):
            return self._sign([str(query) for query in queries])
        return as_queries(queries, self.bits)

    def _sign(self, texts: list[str]) -> NDArray[np.uint8]:
        if not texts:
            return np.empty((0, self.bits // 8), np.uint8)
        rows: NDArray[np.uint8] = self._document_signer().sign(texts)
        return rows

    def _one(self, query: ArrayLike) -> NDArray[np.uint8]:
        rows = as_queries(query, self.bits)
        if len(rows) != 1:
            raise ArgumentError(
                f"the query is {len(rows)} signatures; expected one: use search_many or within_many"
            )
        return rows

    def _document_signer(self) -> DocumentSigner:
        signer = self.signer
        if not isinstance(signer, DocumentSigner):
            raise ArgumentError(
                f"the collection {self._name!r} has no signer of texts"
                f"{f', but {type(signer).__name__}' if signer else ''}: give signatures, not texts"
            )
        return signer

    # Keeping it well

    def refresh(self) -> int:
        """Bring the native index to the last committed version now, and return that.

        Every search does so by itself; this only moves the time it takes.
        """

        def caught_up(view: View, state: State) -> int:
            self._native.at(view, state)
            return state.version

        version = self._at_one_version(caught_up)
        self._native.save()
        return version

    def verify(self) -> Report:
        """Recompute every slice, count and checksum, and return what is wrong; reads all."""
        from lookalike.collection.care.verify import verify

        return verify(self._store, self._name, self._native)

    def repair(self) -> Report:
        """Rebuild what is derived from documents and signatures, and return what is still wrong.

        What restores that died have left in the database is removed, whichever collection it was.
        """
        from lookalike.collection.care.verify import repair

        remove_abandoned(self._store)
        return repair(self._store, self._name, self._native)

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Write the collection, as it is at one moment, to a new SQLite file, whole or not at all.

        It can be opened as it is, or put back with `la.restore_collection`.
        """
        from lookalike.collection.care.snapshots import snapshot

        snapshot(self._store, self._name, file_path("path", path))

    def close(self) -> None:
        """Save the native index, if that saves time, and close the connections."""
        self._native.save()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Within

    def _state(self, view: View) -> State:
        return self._known(view.state(self._name))

    def _known(self, state: State | None) -> State:
        """Return the row of the collection if it is still the sort that was opened."""
        if state is None:
            raise NotFoundError(f"the collection {self._name!r} at {self._store.shown} is gone")
        if (state.bits, state.signer) != (self._opened.bits, self._opened.signer):
            raise CollectionError(
                f"the collection {self._name!r} was replaced by one with another signer; "
                "open it again"
            )
        return state


def _listed(name: str, values: Iterable[T]) -> list[T]:
    if isinstance(values, str | bytes):
        raise ArgumentError(f"{name} are one {type(values).__name__}; expected a list")
    try:
        return list(values)
    except TypeError:
        raise ArgumentError(
            f"{name} are of type {type(values).__name__}; expected a list"
        ) from None


def _count(name: str, value: SupportsIndex, at_least: int = 1) -> int:
    """Return how many are wanted."""
    return min(whole_number(name, value, at_least=at_least), _MORE_THAN_ALL)


def _answer(
    fetcher: DocumentFetcher,
    query: NDArray[np.uint8],
    pairs: list[tuple[int, Row]],
    found: Level,
    limit: int | None,
    explain: bool,
) -> Answer:
    """Return the answer to one query; one more than the limit tells that there are more."""
    version = fetcher.state.version
    if not pairs and not explain:
        return Answer([], [], version=version)
    cut = limit is not None and len(pairs) > limit
    pairs = pairs[:limit] if cut else pairs
    return Answer(
        [document for _, document in pairs],
        [distance for distance, _ in pairs],
        version=version,
        complete=not cut,
        work=found.work if explain else None,
        bits=_explained(fetcher, query, pairs, found) if explain else None,
    )


def _explained(
    fetcher: DocumentFetcher, query: NDArray[np.uint8], pairs: list[tuple[int, Row]], found: Level
) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Return, for each match, the differing bits, those of each slice, and the slices that hit."""
    slicing = fetcher.state.slicing
    data = b"".join([fetcher.signatures[row.signature] for _, row in pairs])
    signatures = np.frombuffer(data, np.uint8).reshape(len(pairs), len(query))
    thresholds = (found.work and found.work.thresholds) or (0,) * slicing.count
    details = []
    apart = slicing.differing(query, signatures).tolist()
    for signature, slices in zip(signatures, apart, strict=True):
        hits = tuple(p for p, most in enumerate(thresholds) if slices[p] <= most)
        details.append((differing_bits(query, signature), tuple(slices), hits))
    return details
