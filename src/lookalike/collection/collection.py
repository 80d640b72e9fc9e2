"""A collection: documents that come and go while they are searched."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsFloat, SupportsIndex

from numpy.typing import ArrayLike

from lookalike.checks import file_path, flag, share, whole_number
from lookalike.collection.answers import Answer, Pair
from lookalike.collection.care.abandoned import remove_abandoned
from lookalike.collection.documents import Document, as_document, as_id, is_id
from lookalike.collection.part_signing import PartsGiven
from lookalike.collection.query import Way, how_many, listed
from lookalike.collection.reading import document_pages, documents_with_parts, next_documents
from lookalike.collection.search.filters import Where, compile_where
from lookalike.collection.search.pairs import document_pairs
from lookalike.collection.searching import MOST_MATCHES, SearchedDocuments
from lookalike.collection.stores.base import State, View
from lookalike.collection.writing import Batch, Written, delete_documents, write_batch
from lookalike.errors import ArgumentError, NotFoundError
from lookalike.parts.signer import SignedParts
from lookalike.signatures import Signer

if TYPE_CHECKING:
    from lookalike.collection.care.verify import Report


class Collection(SearchedDocuments):
    """Documents with ids, signatures, metadata and maybe text, in a database.

    Open one with `la.open_collection`. What a method has returned from is committed: written
    durably, and seen by the next search of every process. A search sees one version of the
    collection, the last that was committed when it began. Safe to use from many threads; after a
    fork, open it again.
    """

    # What it is

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self._name

    @property
    def signer(self) -> Signer | None:
        """How documents are signed; None if signatures are given by the caller."""
        return self._signing.signer

    @property
    def reads_files(self) -> bool:
        """Whether a collection of images, or of recordings, opens their paths; a service sets it to
        False.
        """
        return self._signing.reads_files

    @reads_files.setter
    def reads_files(self, allowed: bool) -> None:
        self._signing.reads_files = flag("reads_files", allowed)

    @property
    def version(self) -> int:
        """How many times the collection has been written to."""
        return self._versions.read(lambda view, state: state.version)

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
        return f"Collection({self._name!r}, {what}, at {self._store.shown})"

    def stats(self) -> dict[str, Any]:
        """Return what there is to know, in plain values."""
        state = self._versions.read(lambda view, state: state)
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
        with self._versions.writing() as (writer, state):
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
        with self._versions.writing() as (writer, state):
            return write_batch(writer, state, batch, fresh=not replace)

    # Reading

    def get(self, id: str) -> Document | None:
        """Return a document, or None if there is none of that id."""
        return self.get_many([id])[0]

    def get_many(self, ids: Sequence[str]) -> list[Document | None]:
        """Return the documents of these ids, None for each that is not there; at one moment."""
        wanted = [id if is_id(id) else "" for id in listed("ids", ids)]

        asked = [id for id in wanted if id]
        rows = self._versions.read(lambda view, state: view.documents(state, asked))
        found = {row.id: as_document(row, signature) for row, signature in rows}
        return [found.get(id) for id in wanted]

    def parts_of(self, id: str) -> SignedParts:
        """Return signatures and offsets of a document that has many."""
        if not self.parts:
            raise ArgumentError(
                f"the documents of the collection {self._name!r} have one signature each: get has "
                "it"
            )
        found = self._versions.read(partial(documents_with_parts, ids=[as_id(id)]))
        if not found:
            raise NotFoundError(f"there is no document {id[:80]!r} in {self._name!r}")
        return found[0][1]

    def count(self, where: Where | None = None) -> int:
        """Return how many documents there are, or how many meet a condition (reads all)."""
        predicate = compile_where(where)
        if predicate is None:
            return self._versions.read(lambda view, state: state.documents)
        return sum(map(len, self.pages(where=where)))

    def scroll(
        self, after: str = "", limit: SupportsIndex = 100, *, where: Where | None = None
    ) -> list[Document]:
        """Return the next documents by id, those behind `after`; an empty list at the end."""
        wanted = how_many("limit", limit)
        after = "" if isinstance(after, str) and not after else as_id(after)
        predicate = compile_where(where)
        return self._versions.read(
            lambda view, state: next_documents(view, state, after, wanted, predicate)
        )

    def pages(
        self, size: SupportsIndex = 1000, *, where: Where | None = None
    ) -> Iterator[list[Document]]:
        """Yield all documents by id, `size` at a time, or those of them that meet a condition.

        What is written meanwhile may or may not be among them. If nothing is, and there are not as
        many as there should be, raises at the end.
        """
        yield from document_pages(self._versions, how_many("size", size), compile_where(where))

    # Searching

    def duplicates_of(
        self, id: str, radius: SupportsIndex, *, where: Where | None = None,
        limit: SupportsIndex = MOST_MATCHES, explain: bool = False, text: bool = False,
        way: Way | None = None, threads: int | None = None,
    ) -> Answer:  # fmt: skip
        """Return every other document within the radius of this one; see `within`."""
        self._refuse_parts()
        document = self.get(as_id(id))
        if document is None:
            raise NotFoundError(f"there is no document {id[:80]!r} in {self._name!r}")
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
        self._refuse_parts()
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        most = how_many("limit", limit, at_least=0)
        part = None if recall is None else share("recall", recall)
        return self._versions.read(
            lambda view, state: document_pairs(view, state, near, most, threads, part)
        )

    # Keeping it well

    def refresh(self) -> int:
        """Bring the native index to the last committed version now, and return that.

        Every search does so by itself; this only moves the time it takes.
        """

        def caught_up(view: View, state: State) -> int:
            self._native.at(view, state)
            return state.version

        version = self._versions.read(caught_up)
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

    def __exit__(self, *error: object) -> None:
        self.close()
