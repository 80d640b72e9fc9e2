"""A collection: documents that come and go while they are searched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any, Literal, Self, SupportsFloat, SupportsIndex, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import file_path, flag
from lookalike.collection.answers import Answer, Pair
from lookalike.collection.care.duplicates import find_pairs
from lookalike.collection.care.snapshots import snapshot
from lookalike.collection.care.verify import Report, repair, verify
from lookalike.collection.documents import Document, as_document, as_id, is_id
from lookalike.collection.query import (
    Query,
    Way,
    Where,
    compile_where,
    how_many,
    listed,
    no_single_signatures,
    refuse_votes,
    refuse_ways,
)
from lookalike.collection.reading import (
    count_meeting,
    documents_with_parts,
    next_documents,
    row_pages,
)
from lookalike.collection.search.answer import Budget, answers, whole
from lookalike.collection.search.native import KeptIndex, NativeSearch
from lookalike.collection.search.sql import SqlSearch
from lookalike.collection.search.votes import PartSearch, Votes, answers_by_votes
from lookalike.collection.signing import PartsAsked, PartsGiven, PartSigning, Signing
from lookalike.collection.stores.base import StaleView, Store, View, Writer
from lookalike.collection.stores.schema import State
from lookalike.collection.writing import Batch, Written, delete_documents, write_batch
from lookalike.errors import ArgumentError, CollectionError, NotFoundError
from lookalike.images.decode import ImageSource
from lookalike.parts.signer import SignedParts
from lookalike.signatures import Signer
from lookalike.signatures.bit_weights import Mask

__all__ = ["MOST_MATCHES", "Collection"]

T = TypeVar("T")

MOST_MATCHES = 10_000
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
        self._opened = state
        """The row of the collection as it was opened."""
        self._way: Way = way
        self._sql = SqlSearch()
        self._native: KeptIndex[Any, Any]
        self._native = PartSearch(cache) if state.parts else NativeSearch(cache)
        self._signing = (PartSigning if state.parts else Signing)(
            state, lambda: self._read(lambda view, state: view.checked_signer(state))
        )

    # What it is

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self._opened.name

    @property
    def bits(self) -> int:
        """How many bits each signature has."""
        return self._opened.bits

    @property
    def parts(self) -> bool:
        """Whether documents have many signatures, and are found by the votes of these."""
        return self._opened.parts

    @property
    def signer(self) -> Signer | None:
        """How documents are signed; None if signatures are given by the caller."""
        return self._signing.signer

    @property
    def reads_files(self) -> bool:
        """Whether a collection of images or recordings opens their paths (default: True)."""
        return self._signing.reads_files

    @reads_files.setter
    def reads_files(self, allowed: bool) -> None:
        self._signing.reads_files = flag("reads_files", allowed)

    @property
    def has_index(self) -> bool:
        """Whether the native index is there; if not, the first search builds or loads it."""
        return self._native.version > 0

    @property
    def version(self) -> int:
        """How many times the collection has been written to."""
        return self._read(lambda view, state: state.version)

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.get(id) is not None

    def __iter__(self) -> Iterator[Document]:
        """Yield all documents by id; what is written meanwhile may or may not be among them."""
        for page in self.pages():
            yield from page

    def __repr__(self) -> str:
        what = f"{'parts of ' if self.parts else ''}{self.bits} bits"
        return f"Collection({self.name!r}, {what}, at {self._store.shown})"

    def stats(self) -> dict[str, Any]:
        """Return what there is to know, in plain values."""
        state = self._read(lambda view, state: state)
        cache = self._native.file(state)
        return {
            "name": state.name,
            "database": self._store.shown,
            "documents": state.documents,
            "signatures": state.signatures,
            "bits": state.bits,
            "parts": state.parts,
            "slice_bits": state.slice_bits,
            "slices": state.slicing.count,
            "signer": None if self.signer is None else type(self.signer).__name__,
            "keeps_text": state.keep_text,
            "version": state.version,
            "durability": self._store.durability(),
            "cache": None if cache is None else str(cache),
            "native_bytes": self._native.memory_bytes,
            "native_version": self._native.version,
        }

    # Writing

    def add(
        self,
        ids: Sequence[str],
        texts: Sequence[str] | None = None,
        *,
        signatures: ArrayLike | Sequence[PartsGiven] | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> Written:
        """Add documents, all of them or none; an id that is there already is an error.

        Give texts to be signed, or signatures, or both. Where the signer is `la.ImageHash` or
        `la.AudioHash`, texts are the paths of files, and so are queries, or bytes, or images of
        Pillow, or samples and their rate. Where documents have many parts, signatures are
        (signatures, offsets) of each. `BatchError` names every item that cannot be written, and
        then none is; with `on_error="skip"` the others are written, and `errors` of the result has
        those that were not.
        """
        return self._write(ids, texts, signatures, metadata, on_error, replace=False)

    def upsert(
        self,
        ids: Sequence[str],
        texts: Sequence[str] | None = None,
        *,
        signatures: ArrayLike | Sequence[PartsGiven] | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> Written:
        """Add documents or replace those with the same ids, all of them or none.

        Where an id comes twice in a batch, the later one counts. Otherwise as `add`.
        """
        return self._write(ids, texts, signatures, metadata, on_error, replace=True)

    def delete(self, ids: Sequence[str] | str) -> Written:
        """Remove documents, all in one step; ids that are not there are passed over."""
        wanted = [as_id(id) for id in ([ids] if isinstance(ids, str) else listed("ids", ids))]
        with self._writing() as (writer, state):
            after = delete_documents(writer, state, wanted)
        return Written(deleted=state.documents - after.documents, version=after.version)

    def _write(
        self,
        ids: Sequence[str],
        texts: Sequence[str] | None,
        signatures: ArrayLike | Sequence[PartsGiven] | None,
        metadata: Sequence[Mapping[str, Any] | None] | None,
        on_error: str,
        replace: bool,
    ) -> Written:
        batch = Batch.of(
            ids, texts, signatures, metadata, on_error=on_error, unique=not replace,
            keep_text=self._opened.keep_text, signing=self._signing,
        )  # fmt: skip
        with self._writing() as (writer, state):
            return write_batch(writer, state, batch, fresh=not replace)

    # Reading

    def get(self, id: str) -> Document | None:
        """Return a document, or None if there is none of that id."""
        return self.get_many([id])[0]

    def get_many(self, ids: Sequence[str]) -> list[Document | None]:
        """Return the documents of these ids, None for each that is not there; at one moment."""
        wanted = [id if is_id(id) else "" for id in listed("ids", ids)]

        asked = [id for id in wanted if id]
        rows = self._read(lambda view, state: view.documents(state, asked))
        found = {row.id: as_document(row, signature) for row, signature in rows}
        return [found.get(id) for id in wanted]

    def parts_of(self, id: str) -> SignedParts:
        """Return signatures and offsets of a document that has many."""
        if not self.parts:
            raise ArgumentError(
                f"the documents of the collection {self.name!r} have one signature each: get has it"
            )
        found = self._read(partial(documents_with_parts, ids=[as_id(id)]))
        if not found:
            raise NotFoundError(f"there is no document {id[:80]!r} in {self.name!r}")
        return found[0][1]

    def count(self, where: Where | None = None) -> int:
        """Return how many documents there are, or how many meet a condition (reads all)."""
        predicate = compile_where(where)
        if predicate is None:
            return self._read(lambda view, state: state.documents)
        return count_meeting(self, predicate)

    def scroll(
        self, after: str = "", limit: SupportsIndex = 100, *, where: Where | None = None
    ) -> list[Document]:
        """Return the next documents by id, those behind `after`; an empty list at the end."""
        wanted = how_many("limit", limit)
        after = "" if isinstance(after, str) and not after else as_id(after)
        predicate = compile_where(where)
        return self._read(lambda view, state: next_documents(view, state, after, wanted, predicate))

    def pages(
        self, size: SupportsIndex = 1000, *, where: Where | None = None
    ) -> Iterator[list[Document]]:
        """Yield all documents by id, `size` at a time, or those of them that meet a condition.

        What is written meanwhile may or may not be among them. If nothing is, and there are not as
        many as there should be, raises at the end.
        """
        size, predicate = how_many("size", size), compile_where(where)
        for rows in row_pages(self, size):
            page = list(starmap(as_document, rows))
            yield page if predicate is None else [one for one in page if predicate(one.metadata)]

    # Searching

    def search(
        self,
        query: str | ArrayLike | ImageSource | PartsAsked,
        k: SupportsIndex = 10,
        *,
        radius: SupportsIndex | None = None,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        mask: Mask = "auto",
        way: Way | None = None,
        threads: int | None = None,
        tolerance: SupportsIndex | None = None,
        min_votes: SupportsIndex | None = None,
        min_score: SupportsFloat | None = None,
    ) -> Answer:
        """Return the k nearest documents to a text or signature, by (distance, id); exact. Where
        the signer is `la.ImageHash`, to an image; where it is `la.Projection`, to a vector.

        Only those within `radius`, if given, which makes the search in the database cheap; only
        those that meet `where` and are not in `exclude`. `text=True` brings their texts,
        `explain=True` the bits and slices in which they differ and what the search did. `way` is
        `"native"` (an index in memory) or `"sql"` (in the database); the answers are the same.

        `mask=True` compares only the bits that the text's words decide, by (distance, distance over
        all bits, id); `"auto"` does so for short texts if the signer is TopSig and there is no
        radius. `masked` of the answer says so.

        Where documents have many parts, the k that most parts of the query vote for, with the place
        in them: parts within `radius` bits vote, differences of positions within `tolerance` of
        each other count together, and documents with fewer than `min_votes`, or less than
        `min_score` of the parts asked, are left out. By default, the signer sets these.
        """
        return self.search_many(
            self._signing.one(query), k, radius=radius, where=where, exclude=exclude,
            explain=explain, text=text, mask=mask, way=way, threads=threads,
            tolerance=tolerance, min_votes=min_votes, min_score=min_score,
        )[0]  # fmt: skip

    def search_many(
        self,
        queries: Sequence[str] | Sequence[ImageSource] | Sequence[PartsAsked] | ArrayLike,
        k: SupportsIndex = 10,
        *,
        radius: SupportsIndex | None = None,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        mask: Mask = "auto",
        way: Way | None = None,
        threads: int | None = None,
        tolerance: SupportsIndex | None = None,
        min_votes: SupportsIndex | None = None,
        min_score: SupportsFloat | None = None,
    ) -> list[Answer]:
        """Return what `search` returns for each of many queries, at one version."""
        if isinstance(self._signing, PartSigning):
            ways = self._way if way is None else way
            refuse_ways(ways, mask)
            votes = Votes.of(
                self._signing.asked_parts(queries), self.bits, self._signing.votes, radius=radius,
                tolerance=tolerance, min_votes=min_votes, min_score=min_score,
            )  # fmt: skip
            query = Query.of(
                np.empty((0, self.bits // 8), np.uint8), None, k=k, where=where, exclude=exclude,
                explain=explain, text=text, way=ways, threads=threads,
            )  # fmt: skip
            return self._read(
                lambda view, state: answers_by_votes(query, votes, view, state, self._native)
            )
        refuse_votes(self.name, tolerance=tolerance, min_votes=min_votes, min_score=min_score)
        return self.answers_each(
            cast("ArrayLike", queries), whole, k=how_many("k", k), radius=radius, where=where,
            exclude=exclude, explain=explain, text=text, mask=mask, way=way, threads=threads,
        )  # fmt: skip

    def within(
        self,
        query: str | ArrayLike | ImageSource,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = MOST_MATCHES,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        way: Way | None = None,
        threads: int | None = None,
    ) -> Answer:
        """Return every document at distance `radius` or less, by (distance, id).

        At most `limit` of them, the nearest; where there are more, nothing is raised, as indexes
        do, but `exact` of the answer is False. For the rest see `search`.
        """
        self._refuse_parts()
        return self.within_many(
            self._signing.one(query), radius, limit=limit, where=where, exclude=exclude,
            explain=explain, text=text, way=way, threads=threads,
        )[0]  # fmt: skip

    def within_many(
        self,
        queries: Sequence[str] | Sequence[ImageSource] | ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = MOST_MATCHES,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        way: Way | None = None,
        threads: int | None = None,
    ) -> list[Answer]:
        """Return what `within` returns for each of many queries, at one version.

        `limit` is for each of them.
        """
        self._refuse_parts()
        return self.answers_each(
            queries, whole, radius=radius, limit=limit, where=where, exclude=exclude,
            explain=explain, text=text, way=way, threads=threads,
        )  # fmt: skip

    def answers_each(
        self,
        queries: Sequence[str] | Sequence[ImageSource] | ArrayLike,
        take: Callable[[int, Answer], T],
        *,
        k: SupportsIndex | None = None,
        radius: SupportsIndex | None = None,
        limit: SupportsIndex | None = MOST_MATCHES,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        mask: Mask = "auto",
        way: Way | None = None,
        threads: int | None = None,
        budget: Budget | None = None,
    ) -> list[T]:
        """Return what `take` makes of each answer of `search_many`, or of `within_many` without k.

        It gets the position of the query and its answer, in order, as soon as that is there. So few
        answers are in memory at once. If the collection changes meanwhile, it begins again.
        """
        masks: tuple[NDArray[np.uint8] | None, ...] | None = None
        if k is None:
            signatures = self._signing.queries(queries)
        else:
            signatures, masks = self._signing.asked(queries, mask, whole=radius is not None)
        query = Query.of(
            signatures, radius, k=k, limit=limit, where=where, exclude=exclude, explain=explain,
            text=text, way=self._way if way is None else way, threads=threads, masks=masks,
        )  # fmt: skip
        return self._read(
            lambda view, state: answers(
                query, view, state, self._native, self._sql, take, budget or Budget()
            )
        )

    def duplicates_of(
        self, id: str, radius: SupportsIndex, *, where: Where | None = None,
        limit: SupportsIndex = MOST_MATCHES, explain: bool = False, text: bool = False,
        way: Way | None = None, threads: int | None = None,
    ) -> Answer:  # fmt: skip
        """Return every other document within the radius of this one; see `within`."""
        self._refuse_parts()
        document = self.get(as_id(id))
        if document is None:
            raise NotFoundError(f"there is no document {id[:80]!r} in {self.name!r}")
        return self.within(
            document.signature, radius, limit=limit, where=where, exclude=[id], explain=explain,
            text=text, way=way, threads=threads,
        )  # fmt: skip

    def pairs(
        self,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = 1_000_000,
        threads: int | None = None,
        recall: SupportsFloat | None = None,
    ) -> list[Pair]:
        """Return every pair of documents within the radius, each once, by (left, right).

        Reads all signatures, which are compared in memory. More than `limit` raise
        `ResultTooLargeError`. With a `recall`, each pair is found with a chance of at least that,
        as by `Index.pairs`: within a wide radius many times quicker.
        """
        return list(find_pairs(self, radius, limit, threads, recall))

    # Keeping it well

    def refresh(self) -> int:
        """Bring the native index to the last committed version now, and return that.

        Every search does so by itself; this only moves the time it takes.
        """

        def caught_up(view: View, state: State) -> int:
            self._native.at(view, state)
            return state.version

        version = self._read(caught_up)
        self._native.save()
        return version

    def verify(self) -> Report:
        """Recompute every slice, count and checksum, and return what is wrong; reads all."""
        return verify(self._store, self.name, self._native)

    def repair(self) -> Report:
        """Rebuild what is derived from documents and signatures, and return what is still wrong.

        What restores that died have left in the database is removed, whichever collection it was.
        """
        self._store.remove_abandoned()
        return repair(self._store, self.name, self._native)

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Write the collection, as it is at one moment, to a new SQLite file, whole or not at all.

        It can be opened as it is, or put back with `la.restore_collection`.
        """
        snapshot(self._store, self.name, file_path("path", path))

    def _refuse_parts(self) -> None:
        if self.parts:
            raise no_single_signatures(self.name)

    # Versions, each seen whole

    def _read(self, work: Callable[[View, State], T]) -> T:
        """Do the work at one version; again, if what is read has moved on meanwhile."""
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

    @contextmanager
    def _writing(self) -> Iterator[tuple[Writer, State]]:
        """Hold the row of the collection; what is written becomes visible at the end."""
        with self._store.writing() as writer:
            yield writer, self._known(writer.lock(self.name))

    def _state(self, view: View) -> State:
        """Return the row of the collection, as it is in the view."""
        return self._known(view.state(self.name))

    def _known(self, state: State | None) -> State:
        """Return the row of the collection if it is still the kind that was opened."""
        opened = self._opened
        if state is None:
            raise NotFoundError(f"the collection {opened.name!r} at {self._store.shown} is gone")
        kind = (state.bits, state.signer, state.parts)
        if kind != (opened.bits, opened.signer, opened.parts):
            raise CollectionError(
                f"the collection {opened.name!r} was replaced by one with another signer; "
                "open it again"
            )
        return state

    def close(self) -> None:
        """Save the native index, if that saves time, and close the connections."""
        self._native.save()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
