"""A collection: documents that can be written while they are searched."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, SupportsFloat, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import file_path, flag
from lookalike.collection.answers import Answer, Answers, Pair, estimates_of
from lookalike.collection.care.duplicates import find_pairs
from lookalike.collection.care.snapshots import snapshot
from lookalike.collection.care.transfer import (
    Imported,
    TransferSizes,
    export_documents,
    import_documents,
)
from lookalike.collection.care.verify import Report, repair, verify
from lookalike.collection.documents import Document, as_id, is_id
from lookalike.collection.query import (
    MOST_MATCHES,
    By,
    Plan,
    Question,
    Where,
    compile_where,
    how_many,
    listed,
    no_query,
    no_single_signatures,
)
from lookalike.collection.reading import (
    FILTERED_PAGE,
    document_pages,
    documents_with_parts,
    meeting,
    row_pages,
    whole_documents,
)
from lookalike.collection.search.answer import Budget, answers, whole
from lookalike.collection.search.native import CachedIndex, NativeLevels, NativeSearch
from lookalike.collection.search.sql import FrequentValues, SqlLevels
from lookalike.collection.search.vectors import (
    VectorSearch,
    answers_by_vectors,
    fused,
    fusion_depth,
)
from lookalike.collection.search.votes import PartSearch, answers_by_votes
from lookalike.collection.search.words import WordSearch, answers_by_words, is_short
from lookalike.collection.signing import (
    PartSigning,
    PartsInput,
    QueryInput,
    QueryInputs,
    Signing,
    WordKind,
    check_words,
)
from lookalike.collection.stores.base import StaleView, Store, View, Writer
from lookalike.collection.stores.schema import State
from lookalike.collection.vectors import VectorsInput, checked_queries
from lookalike.collection.writing import Batch, BatchInput, Written, delete_documents, write_batch
from lookalike.corpora.columns import Filters
from lookalike.display import Records
from lookalike.errors import (
    ArgumentError,
    CollectionError,
    LookalikeError,
    NotFoundError,
    Said,
)
from lookalike.media import SignedFile
from lookalike.pages import PageLimits
from lookalike.parts.signer import SignedParts
from lookalike.progress import Progress, shows_progress
from lookalike.signatures import Signer
from lookalike.signatures.arrays import listed_texts
from lookalike.signatures.bit_weights import Mask
from lookalike.signatures.signer import DocumentSigner

T = TypeVar("T")

_TRIES = 20
_FUSED = 64  # queries whose rankings are in memory together


class BaseCollection(ABC):
    """The methods that local and remote collections share."""

    name: str
    """The name of the collection."""
    bits: int
    """The number of bits of a signature."""
    parts: bool = False
    """Whether documents have many signatures."""
    transfer: ClassVar[TransferSizes] = TransferSizes()
    """How many documents are imported and exported at a time."""

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.get(id) is not None

    def __iter__(self) -> Iterator[Document]:
        """Yield all documents by id; those written meanwhile may or may not be included."""
        for page in self.pages():
            yield from page

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Writing

    def add(
        self,
        ids: Sequence[str],
        texts: Sequence[str] | None = None,
        *,
        signatures: ArrayLike | Sequence[PartsInput] | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        vectors: VectorsInput | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> Written:
        """Add documents in one transaction; an id that already exists is an error.

        Args:
            ids: Id of each document.
            texts: Texts to sign; file paths if the signer is `la.ImageHash` or `la.AudioHash`.
            signatures: Signatures, instead of texts or with them. For documents of many parts,
                (signatures, offsets) of each document.
            metadata: A dictionary or None for each document.
            vectors: A vector or None for each document, such as an embedding of its text, stored as
                float32. The first vectors of a collection fix the number of dimensions.
            on_error: "raise" writes nothing if an item is invalid; "skip" writes the valid items
                and returns the errors.

        Returns:
            The number of documents written, the errors and the new version.

        Raises:
            BatchError: Some items are invalid, and `on_error` is "raise".
        """
        return self._write(
            BatchInput.of(ids, texts, signatures, metadata, vectors, on_error, replace=False)
        )

    def add_file(
        self,
        id: str,
        file: str | os.PathLike[str] | bytes,
        *,
        metadata: Mapping[str, Any] | None = None,
        replace: bool = False,
    ) -> Written:
        """Add an image, a recording or a video with a preview, in one transaction.

        The preview is in the metadata, as `preview`: facts about the file, and a small picture or
        waveform, at most 13,000 bytes. The page of `lookalike serve` shows it. The file is decoded
        in an isolated process. A remote collection sends it to the service.

        Args:
            id: Id of the document.
            file: Path of the file, or its bytes.
            metadata: Metadata of the document.
            replace: Whether to replace a document with this id. Otherwise it is an error.

        Raises:
            DocumentError: The file cannot be decoded within the limits.
        """
        source = file if isinstance(file, bytes) else file_path("file", file)
        return self._write_file(as_id(id), source, metadata, flag("replace", replace))

    def upsert(
        self,
        ids: Sequence[str],
        texts: Sequence[str] | None = None,
        *,
        signatures: ArrayLike | Sequence[PartsInput] | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        vectors: VectorsInput | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> Written:
        """Add documents, or replace those with the same ids, in one transaction.

        If an id occurs twice in a batch, the last item is written. A document that is written
        without a vector has none afterwards. The arguments are as in `add`.
        """
        return self._write(
            BatchInput.of(ids, texts, signatures, metadata, vectors, on_error, replace=True)
        )

    def delete(self, ids: Sequence[str] | str) -> Written:
        """Remove documents in one transaction; ids that do not exist are ignored."""
        several = [ids] if isinstance(ids, str) else listed("ids", ids)
        return self._delete([as_id(id) for id in several])

    # Reading

    @abstractmethod
    def count(self, where: Where | None = None) -> int:
        """Return the number of documents, or of those that meet a condition (reads all)."""

    def get(self, id: str) -> Document | None:
        """Return the document with this id, or None."""
        return self.get_many([id])[0]

    def get_many(self, ids: Sequence[str]) -> list[Document | None]:
        """Return the documents with these ids, of one version; None for each missing one."""
        wanted = [id if is_id(id) else "" for id in listed("ids", ids)]
        found = self._documents(list(dict.fromkeys(id for id in wanted if id)))
        return [found.get(id) for id in wanted]

    def scroll(
        self, after: str = "", limit: SupportsIndex = 100, *, where: Where | None = None
    ) -> list[Document]:
        """Return up to `limit` documents after the id `after`, by id; an empty list at the end."""
        wanted = how_many("limit", limit)
        begin = "" if isinstance(after, str) and not after else as_id(after)
        return self._next(begin, wanted, where)

    def pages(
        self, size: SupportsIndex = 1000, *, where: Where | None = None
    ) -> Iterator[list[Document]]:
        """Yield all documents by id, `size` at a time, or those that meet a condition.

        Documents that are written meanwhile may or may not be included. If nothing is written, a
        local collection raises an error at the end if documents are missing.
        """
        return self._pages(how_many("size", size), where)

    # Searching

    def search(
        self,
        query: QueryInput | None = None,
        k: SupportsIndex = 10,
        *,
        vector: ArrayLike | None = None,
        radius: SupportsIndex | None = None,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        mask: Mask = "auto",
        plan: Plan | None = None,
        threads: int | None = None,
        tolerance: SupportsIndex | None = None,
        min_votes: SupportsIndex | None = None,
        min_score: SupportsFloat | None = None,
        by: By = "auto",
        exact: bool = True,
    ) -> Answer:
        """Return the k nearest documents, by (distance, id); exact.

        In a collection with a keyword index, a short text finds the documents that have its words,
        the best first (BM25), those of equal scores in the order in which they were written. A
        document that has none of them is not found.

        If documents have many parts, return the k documents with the most votes from parts of the
        query, and the offset of each match. Votes at offsets within `tolerance` count together.

        A `vector` finds the documents whose vectors have the largest cosine with it. With a query
        as well, both rankings are fused: a document at rank r of one of them gets 1 / (60 + r).
        From each ranking, the first 100 documents count, or 2 k if that is more.

        Args:
            query: A text or a signature; an image for `la.ImageHash`, a recording for
                `la.AudioHash`, a vector for `la.Projection`.
            k: Number of documents.
            vector: Vector to compare with those of documents, as many dimensions as these have.
            radius: Largest distance; makes searches in the database fast. For parts: largest
                distance of a part that votes.
            where: Condition on metadata, such as `{"year": {">=": 2020}}`.
            exclude: Ids of documents to leave out.
            explain: Whether to return the differing bits and slices, and what the search did.
            text: Whether to return texts.
            mask: True compares only the bits that the words of the text determine, and sorts by
                (distance, distance over all bits, id). "auto" does so for short texts if the signer
                is TopSig and there is no radius. `masked` of the answer says whether it was done.
            plan: "native" (an index in memory) or "sql" (in the database); answers are the same
                (default: as opened).
            threads: Number of threads of a native search (default: one per processor).
            tolerance: For parts: see above (default: from the signer).
            min_votes: For parts: least number of votes of a document (default: from the signer).
            min_score: For parts: least share of the query's parts that vote for a document
                (default: from the signer).
            by: "words" searches by the words of a text, "similar" by its signature. "auto" searches
                by words if there is a keyword index, the text has at most 32 different words, and
                neither radius nor mask is given. `by` of the answer says what was done.
            exact: For vectors: False reads only a part of them, unless there is a condition. That
                is faster, but may miss neighbors. `exact` of the answer says what was done.

        Returns:
            The matches, nearest first, with ids, distances and metadata.
        """
        question = Question(
            k=how_many("k", k), radius=radius, where=where, exclude=exclude, explain=explain,
            text=text, mask=mask, plan=plan, threads=threads, tolerance=tolerance,
            min_votes=min_votes, min_score=min_score, by=by, exact=exact,
        )  # fmt: skip
        vectors = None if vector is None else self.query_vectors([vector], "vector")
        return self._ask(None if query is None else self._one(query), question, vectors)[0]

    def search_many(
        self, queries: QueryInputs | None = None, k: SupportsIndex = 10, *,
        vectors: ArrayLike | None = None, radius: SupportsIndex | None = None,
        where: Where | None = None, exclude: Iterable[str] = (), explain: bool = False,
        text: bool = False, mask: Mask = "auto", plan: Plan | None = None,
        threads: int | None = None, tolerance: SupportsIndex | None = None,
        min_votes: SupportsIndex | None = None, min_score: SupportsFloat | None = None,
        by: By = "auto", exact: bool = True,
    ) -> Answers:  # fmt: skip
        """Return the answer of `search` for each of many queries, at one version.

        One text or one signature is a batch of one. With queries and vectors, there is a vector for
        each query.
        """
        question = Question(
            k=how_many("k", k), radius=radius, where=where, exclude=exclude, explain=explain,
            text=text, mask=mask, plan=plan, threads=threads, tolerance=tolerance,
            min_votes=min_votes, min_score=min_score, by=by, exact=exact,
        )  # fmt: skip
        asked = None if vectors is None else self.query_vectors(vectors, "vectors")
        return Answers(self._ask(queries, question, asked))

    def within(
        self,
        query: QueryInput,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = MOST_MATCHES,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        plan: Plan | None = None,
        threads: int | None = None,
    ) -> Answer:
        """Return every document at distance `radius` or less, by (distance, id).

        If there are more than `limit`, return the nearest ones, and `exact` of the answer is False.
        Indexes raise an error instead. The other arguments are those of `search`.
        """
        question = Question(
            radius=radius, limit=limit, where=where, exclude=exclude, explain=explain, text=text,
            plan=plan, threads=threads,
        )  # fmt: skip
        return self._ask(self._one(query), question)[0]

    def within_many(
        self, queries: QueryInputs, radius: SupportsIndex, *, limit: SupportsIndex = MOST_MATCHES,
        where: Where | None = None, exclude: Iterable[str] = (), explain: bool = False,
        text: bool = False, plan: Plan | None = None, threads: int | None = None,
    ) -> Answers:  # fmt: skip
        """Return the answer of `within` for each of many queries, at one version.

        One text or one signature is a batch of one.
        """
        question = Question(
            radius=radius, limit=limit, where=where, exclude=exclude, explain=explain, text=text,
            plan=plan, threads=threads,
        )  # fmt: skip
        return Answers(self._ask(queries, question))

    def duplicates_of(
        self, id: str, radius: SupportsIndex, *, where: Where | None = None,
        limit: SupportsIndex = MOST_MATCHES, explain: bool = False, text: bool = False,
        plan: Plan | None = None, threads: int | None = None,
    ) -> Answer:  # fmt: skip
        """Return every other document within the radius of this one; see `within`."""
        question = Question(
            radius=radius, limit=limit, where=where, exclude=[id], explain=explain, text=text,
            plan=plan, threads=threads,
        )  # fmt: skip
        return self._ask_like(id, question)

    # Files

    @shows_progress
    def import_file(
        self,
        source: Any,
        *,
        text: str | None = None,
        id: str | None = None,
        signature: str | None = None,
        vectors: str | None = None,
        format: str | None = None,
        replace: bool = False,
        skip_bad: bool = False,
        max_document: SupportsIndex | None = None,
        batch: SupportsIndex | None = None,
        progress: Progress | bool | None = None,
        html: str | None = None,
        page_limits: PageLimits | None = None,
        encoding: str | None = None,
        min_words: int = 0,
        max_repetition: float = 1.0,
        language: str | None = None,
        min_links: int = 0,
        min_bytes: int = 0,
        strip_urls: bool = False,
        previews: bool = False,
    ) -> Imported:
        """Add the rows of files or tables, each batch in one transaction, in constant memory.

        Other columns become metadata, or a column `metadata` with a JSON object, as `export`
        writes it. Title, language and links of web pages become metadata. An error ends the import;
        what was committed before stays. A remote collection reads the files on this machine and
        sends the rows to the service.

        Args:
            source: Files, folders, patterns or tables, as `la.dedup` takes them. For a collection
                of images or recordings, folders or files of these, which get their paths as ids.
            text: Column of the texts (default: detected).
            id: Column of the ids (default: detected; without one, rows are numbered).
            signature: Column of the signatures, in hexadecimal or bytes (default: detected;
                without one, texts are signed).
            vectors: Column of vectors, as lists of numbers or as base64 of float32, or null
                (default: `vector` of an exported file, or none).
            format: Input format (default: from the file extension).
            replace: Whether to replace documents with the same ids. Otherwise these are errors.
            skip_bad: Whether to leave out bad rows. Otherwise the first one is an error.
            max_document: Maximum bytes of a row (default: 256 MiB).
            batch: Number of rows per transaction, of at most 32 MiB together (default: 50,000, or
                200 if documents have many parts). Remote: 2 MiB (default: 1,000).
            progress: Called with the name of the step and the completed share; True shows a
                progress bar.
            html: Column of web pages; see `la.dedup`.
            page_limits: Limits for web pages (default: `la.pages.PageLimits()`).
            encoding: Encoding of text files (default: detected).
            min_words: Leave out shorter documents (default: 0).
            max_repetition: Leave out documents that repeat a larger share of their runs of five
                words (default: 1).
            language: Leave out documents in other languages (default: none).
            min_links: Leave out documents with fewer links (default: 0).
            min_bytes: Leave out smaller texts (in UTF-8), and pages with less HTML (default: 0).
            strip_urls: Whether to remove URLs from texts.
            previews: Whether to store a preview of each image, recording or video, as `add_file`
                does; then each file is written in a transaction of its own.

        Returns:
            The numbers of documents added, replaced and left out, with examples of bad rows.

        Raises:
            BatchError: A row is bad, and `skip_bad` is False.

        Examples:
            >>> docs = la.open_collection("poems.db", signer=la.SimHash(bits=64))
            >>> docs.import_file([{"id": "a", "text": "the tyger", "year": 1794}])
            Imported(added=1)
            >>> docs.export("poems.jsonl")
            1
        """
        filters = Filters(
            min_words=min_words,
            max_repetition=max_repetition,
            language=language,
            min_links=min_links,
            min_bytes=min_bytes,
            strip_urls=strip_urls,
        )
        return import_documents(
            self, source, text=text, id=id, signature=signature, vectors=vectors, format=format,
            replace=replace, skip_bad=skip_bad, max_document=max_document, batch=batch,
            progress=progress, html=html, page_limits=page_limits, encoding=encoding,
            previews=flag("previews", previews),
            filters=filters,
        )  # fmt: skip

    @shows_progress
    def export(
        self,
        path: str | os.PathLike[str],
        *,
        where: Where | None = None,
        progress: Progress | bool | None = None,
    ) -> int:
        """Write documents by id to a file, completely or not at all, in constant memory.

        The columns are `id`, `text`, `metadata` as JSON, `signature` in hexadecimal, `added` and
        `updated`, and `vector` if there are any, as base64 of float32. The signature of a document
        of many parts is all of them, with their positions.
        `import_file` reads all of it again.

        Args:
            path: File to write; the extension says the format, such as .jsonl or .parquet.
            where: Condition on metadata (default: all documents).
            progress: Called with the name of the step and the completed share; True shows a
                progress bar.

        Returns:
            The number of documents.
        """
        return export_documents(self, path, where=where, progress=progress)

    # What local and remote collections implement

    @property
    @abstractmethod
    def signer(self) -> Signer | None:
        """The signer of documents; None if the caller passes signatures."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    @abstractmethod
    def _pages(self, size: int, where: Where | None) -> Iterator[list[Document]]: ...

    @abstractmethod
    def _write(self, given: BatchInput) -> Written: ...

    @abstractmethod
    def _write_file(
        self, id: str, file: Path | bytes, metadata: Mapping[str, Any] | None, replace: bool
    ) -> Written: ...

    @abstractmethod
    def _delete(self, ids: list[str]) -> Written: ...

    @abstractmethod
    def _documents(self, ids: list[str]) -> Mapping[str, Document | None]: ...

    @abstractmethod
    def _next(self, after: str, limit: int, where: Where | None) -> list[Document]: ...

    @abstractmethod
    def _one(self, query: QueryInput) -> Any: ...

    @abstractmethod
    def _ask(
        self, queries: Any, question: Question, vectors: NDArray[np.float32] | None = None
    ) -> list[Answer]: ...

    @property
    @abstractmethod
    def dimensions(self) -> int:
        """The number of dimensions of the vectors; 0 if no vector was ever written."""

    def query_vectors(self, vectors: Any, name: str) -> NDArray[np.float32]:
        """Return vectors to search for; raise if there are none to compare them with."""
        dimensions = self.dimensions
        if not dimensions:
            raise ArgumentError(
                Said(name), f" finds nothing: the collection {self.name!r} has no vectors; add "
                "documents with ",
                Said("vectors=", "`lookalike collection import --vectors COLUMN`"),
            )  # fmt: skip
        return checked_queries(vectors, dimensions, name)

    @abstractmethod
    def _ask_like(self, id: str, question: Question) -> Answer:
        """Ask about the signature of a document, which the question leaves out."""


class Collection(BaseCollection):
    """Documents with ids, signatures, metadata and optional text, in a database.

    Open one with `la.open_collection`. When a writing method returns, its changes are committed:
    durable, and visible to the next search of every process. A search sees one version of the
    collection, the last one committed when it began. Thread-safe; after a fork, open it again.

    >>> docs = la.open_collection("docs.db", signer=la.SimHash(bits=128))
    >>> texts = ["the quick brown fox jumps", "the quick brown fox jumped", "something else"]
    >>> docs.add(["a", "b", "c"], texts, metadata=[{"year": 2020}, {"year": 2024}, None]).added
    3
    >>> docs.search("the quick brown fox jumps", k=2)
    Answer({'a': 100%, 'b': 77%}, exact=True)
    >>> docs.search("the quick brown fox jumps", k=2, where={"year": {">=": 2021}}).ids
    ['b']
    >>> docs.pairs(radius=32)
    [Pair(left='a', right='b', distance=28)]
    >>> docs.delete("b").deleted, len(docs), docs.get("c").text
    (1, 2, 'something else')
    """

    def __init__(self, store: Store, state: State, *, plan: Plan, cache: Path | None) -> None:
        self.name, self.bits = state.name, state.bits
        self.parts = state.parts
        """Whether documents have many signatures, and are found by the votes of these."""
        self._store = store
        self._opened = state  # the row of the collection when it was opened
        self._plan: Plan = plan
        self._hot = FrequentValues()
        self._native: CachedIndex = (PartSearch if state.parts else NativeSearch)(cache)
        self._words = WordSearch(cache)
        self._vectors = VectorSearch(cache)
        self._caches: tuple[CachedIndex, ...] = (self._native, self._words, self._vectors)
        self._signing = (PartSigning if state.parts else Signing)(
            state, lambda: self._read(lambda view: view.checked_signer())
        )

    @property
    def signer(self) -> Signer | None:
        """The signer of documents; None if the caller passes signatures."""
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
        """Whether the indexes of texts are in memory; the first search loads or builds others."""
        needed = (self._native, self._words) if self._opened.words else (self._native,)
        return all(cached.version > 0 for cached in needed)

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the vectors; 0 if no vector was ever written."""
        return self._opened.dimensions or self._state().dimensions

    @property
    def version(self) -> int:
        """The number of writes to the collection."""
        return self._state().version

    def __repr__(self) -> str:
        what = f"{'parts of ' if self.parts else ''}{self.bits} bits"
        return f"Collection({self.name!r}, {what}, at {self._store.shown})"

    def stats(self) -> dict[str, Any]:
        """Return facts about the collection, in plain values."""
        state = self._state()
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
            "words": state.words or None,
            "vectors": state.vectors,
            "dimensions": state.dimensions or None,
            "version": state.version,
            "durability": self._store.durability(),
            "cache": None if cache is None else str(cache),
            "native_bytes": sum(cached.memory_bytes for cached in self._caches),
            "native_version": self._native.version,
        }

    # Writing

    def _write(self, given: BatchInput) -> Written:
        dimensions = 0
        if given.vectors is not None:
            self._refuse_parts("vectors")
            dimensions = self._state().dimensions
        batch = Batch.of(given, self._signing, self._opened.keep_text, dimensions)
        with self._writing() as writer:
            return write_batch(writer, batch)

    def _sign_file(self, file: Path | bytes, *, preview: bool, query: bool = False) -> SignedFile:
        """Return the signature of a file, for `add` and `search`, and its preview.

        The file is decoded in an isolated process, even if paths of clients are not opened.

        Raises:
            DocumentError: It is not of the medium of the collection, or cannot be decoded.
        """
        return self._signing.sign_file(file, preview=preview, query=query)

    def _write_file(
        self, id: str, file: Path | bytes, metadata: Mapping[str, Any] | None, replace: bool
    ) -> Written:
        signed = self._sign_file(file, preview=True)
        return (self.upsert if replace else self.add)(
            [id],
            None if isinstance(file, bytes) else [str(file)],
            signatures=[signed.signature],
            metadata=[{"preview": signed.preview, **(metadata or {})}],
        )

    def _delete(self, ids: list[str]) -> Written:
        with self._writing() as writer:
            return delete_documents(writer, ids)

    # Reading

    def _documents(self, ids: list[str]) -> dict[str, Document]:
        found = self._read(lambda view: whole_documents(view, view.documents(ids)))
        return {document.id: document for document in found}

    def parts_of(self, id: str) -> SignedParts:
        """Return signatures and offsets of the parts of a document."""
        if not self.parts:
            raise ArgumentError(
                f"documents of the collection {self.name!r} have one signature each; use get"
            )
        found = self._read(partial(documents_with_parts, ids=[as_id(id)]))
        if not found:
            raise self._no_document(id)
        return found[0][1]

    def count(self, where: Where | None = None) -> int:
        """Return the number of documents, or of those that meet a condition (reads all)."""
        predicate = compile_where(where)
        if predicate is None:
            return self._state().documents
        return sum(
            len(meeting(rows, predicate)) for rows in row_pages(self, FILTERED_PAGE, text=False)
        )

    def _next(self, after: str, limit: int, where: Where | None) -> list[Document]:
        predicate = compile_where(where)

        def found(view: View) -> list[Document]:
            pages = view.pages(limit if predicate is None else max(limit, FILTERED_PAGE), after)
            documents = chain.from_iterable(whole_documents(view, page) for page in pages)
            meeting = (one for one in documents if predicate is None or predicate(one.metadata))
            return list(islice(meeting, limit))

        return self._read(found)

    def _pages(self, size: int, where: Where | None) -> Iterator[list[Document]]:
        predicate = compile_where(where)
        for page in document_pages(self, size):
            yield page if predicate is None else [one for one in page if predicate(one.metadata)]

    # Searching

    def _one(self, query: QueryInput) -> Any:
        return self._signing.one(query)

    def _ask(
        self, queries: Any, question: Question, vectors: NDArray[np.float32] | None = None
    ) -> list[Answer]:
        answers = self.answers_each(queries, question, whole, vectors=vectors)
        if any(answer.by == "similar" for answer in answers):
            with suppress(LookalikeError):  # searching needs no signer, which may be damaged
                estimate = partial(estimates_of, self.signer, self.bits)
                for answer in answers:
                    answer.estimate = estimate if answer.by == "similar" else None
        return answers

    def answers_each(
        self,
        queries: QueryInputs | None,
        question: Question,
        take: Callable[[int, Answer], T],
        budget: Budget | None = None,
        vectors: NDArray[np.float32] | None = None,
    ) -> list[T]:
        """Return what `take` makes of each answer to a question about many queries.

        It gets the position of the query and its answer, in order, as soon as that is known. So few
        answers are in memory at once. If the collection changes meanwhile, it begins again.
        """
        limits = budget or Budget()
        if isinstance(self._signing, PartSigning) and queries is not None:
            if vectors is not None:
                raise ArgumentError(
                    Said("vector"),
                    " cannot be combined with votes of parts; search for one of them",
                )
            return self._by_votes(self._signing, queries, question, take, limits)
        question.refuse_votes(self.name)
        if vectors is None:
            if queries is None:
                raise no_query()
            return self._read(self._by_queries(queries, question, take, limits))
        question.check_vectors(alone=queries is None)
        if queries is None:
            return self._read(
                lambda view: answers_by_vectors(
                    question, vectors, self._vectors, view, take, limits
                )
            )
        return self._read(self._by_both(queries, vectors, question, take, limits))

    def _by_both(
        self, queries: QueryInputs, vectors: NDArray[np.float32], question: Question,
        take: Callable[[int, Answer], T], limits: Budget,
    ) -> Callable[[View], list[T]]:  # fmt: skip
        """Return the function that fuses both rankings, some queries at a time."""
        texts = listed_texts(queries)
        several: Any = (
            self._signing.masked_queries(queries, question)[0] if texts is None else texts
        )
        if len(several) != len(vectors):
            raise ArgumentError(
                f"there are {len(several)} queries and {len(vectors)} vectors; expected one for "
                "each"
            )
        deeper, within = question.deeper(fusion_depth(question.k)), Budget(change=limits.change)
        parts = [slice(begin, begin + _FUSED) for begin in range(0, len(several), _FUSED)]
        searches = [self._by_queries(several[some], deeper, whole, within) for some in parts]

        def found(view: View) -> list[T]:
            results: list[T] = []
            count = 0
            for some, search in zip(parts, searches, strict=True):
                with within:
                    by_text = search(view)
                    by_vector = answers_by_vectors(
                        deeper, vectors[some], self._vectors, view, whole, within
                    )
                    for one, other in zip(by_text, by_vector, strict=True):
                        answer = fused(question, one, other, view, limits)
                        count += len(answer)
                        limits.check_matches(count)
                        results.append(take(len(results), answer))
            return results

        return found

    def _by_queries(
        self, queries: QueryInputs, question: Question, take: Callable[[int, Answer], T],
        limits: Budget,
    ) -> Callable[[View], list[T]]:  # fmt: skip
        """Return the function that searches for texts and signatures in a view."""
        texts = self._by_words(queries, question)
        others: Any = queries
        if texts:
            others = [one for at, one in enumerate(listed_texts(queries) or ()) if at not in texts]
        signatures, masks = self._signing.masked_queries(others, question)
        explain = question.explain or limits.work is not None

        def by_signatures(view: View, positions: Sequence[int], begin: int) -> list[T]:
            search: NativeLevels | SqlLevels
            if (question.plan or self._plan) == "sql":
                search = SqlLevels(view, self._hot)
            else:
                search = NativeLevels(self._native.at(view), question.threads, explain)
            some = slice(begin, begin + len(positions))
            return answers(
                question, signatures[some], masks[some], search, view,
                lambda place, answer: take(positions[place], answer), limits,
                sparse=self.signer is not None and self.signer.sparse,
            )  # fmt: skip

        def found(view: View) -> list[T]:
            if not texts:
                return by_signatures(view, range(len(signatures)), 0)
            result: list[T] = []
            begin = 0  # signatures that are answered
            every = range(len(signatures) + len(texts))
            for has_words, run in groupby(every, texts.__contains__):
                positions = list(run)
                if has_words:
                    asked = [(at, texts[at]) for at in positions]
                    index = self._words.at(view)
                    result += answers_by_words(question, asked, index, view, take, limits)
                else:
                    result += by_signatures(view, positions, begin)
                    begin += len(positions)
            return result

        return found

    def _by_votes(
        self,
        signing: PartSigning,
        queries: Any,
        question: Question,
        take: Callable[[int, Answer], T],
        limits: Budget,
    ) -> list[T]:
        question.refuse_single(self.name, question.plan or self._plan)
        if question.by == "words":
            raise self._no_words()
        several = [queries] if isinstance(queries, str) else listed("queries", queries)
        asked = [signing.query_parts(query) for query in several]

        def found(view: View) -> list[T]:
            settings, index = signing.votes, self._native
            return answers_by_votes(question, asked, settings, view, index, take, limits)

        return self._read(found)

    def _by_words(self, queries: QueryInputs, question: Question) -> dict[int, str]:
        """Return the texts that are searched for by their words, by their positions."""
        if question.by == "similar" or question.limit is not None:
            return {}
        texts = listed_texts(queries)
        if question.by == "words":
            if not (self._opened.words or self._state().words):
                raise self._no_words()
            if texts is None:
                raise ArgumentError("by='words' needs texts; search for signatures by='similar'")
            return dict(enumerate(texts))
        kind = self._opened.words
        if not kind or question.radius is not None or question.mask != "auto":
            return {}
        return {at: text for at, text in enumerate(texts or ()) if is_short(text, kind)}

    def _ask_like(self, id: str, question: Question) -> Answer:
        self._refuse_parts()
        document = self.get(id)
        if document is None:
            raise self._no_document(id)
        return self._ask(document.signature[None], question)[0]

    def pairs(
        self,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = 1_000_000,
        threads: int | None = None,
        recall: SupportsFloat | None = None,
    ) -> Records[Pair]:
        """Return every pair of documents within the radius, each once, by (left, right).

        Reads all signatures and compares them in memory.

        Args:
            radius: Largest distance of a pair.
            limit: Largest number of pairs.
            threads: Number of threads (default: one per processor).
            recall: Find each pair with at least this probability, which is many times faster for a
                large radius (default: find all pairs).

        Raises:
            ResultTooLargeError: There are more than `limit` pairs.
        """
        return Records(Pair, find_pairs(self, radius, limit, threads, recall))

    # Care

    def refresh(self) -> int:
        """Update the native index to the last committed version now, and return that version.

        Every search does this; calling it makes the next search faster.
        """

        def caught_up(view: View) -> int:
            self._native.at(view)
            if view.state.words:
                self._words.at(view)
            if view.state.dimensions:
                self._vectors.at(view)
            return view.state.version

        version = self._read(caught_up)
        self._save()
        return version

    def verify(self) -> Report:
        """Recompute every slice, count and checksum, and report what is wrong; reads all."""
        return verify(self._store, self.name, self._caches)

    def repair(self, *, words: WordKind | None = None) -> Report:
        """Rebuild slices, counts and indexes from the documents, and report what is still wrong.

        Also removes the remains of interrupted restores from the database.

        Args:
            words: Build a keyword index of this kind from the stored texts, see
                `la.open_collection` (default: rebuild the one that exists).
        """
        kind = self._keyword_kind(words)
        self._store.remove_abandoned()
        report = repair(self._store, self.name, self._caches, kind)
        self._state()  # takes in the kind of the keyword index
        return report

    def _keyword_kind(self, words: WordKind | None) -> str:
        """Return the kind of keyword index that a repaired collection has; "" for none."""
        state = self._state()
        if words is None:
            return state.words
        check_words(words, state.parts, self.signer)
        if state.words and not state.keep_text and words != state.words:
            raise ArgumentError(
                f"the collection {self.name!r} does not store texts, so its keyword index remains "
                f"{state.words!r}; leave ",
                Said("words"),
                " out",
            )
        if not state.words and not state.keep_text:
            raise ArgumentError(
                f"the collection {self.name!r} does not store texts, so no keyword index can be "
                "built; create another collection"
            )
        return words

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Write one version of the collection to a new SQLite file, completely or not at all.

        The file can be opened, or restored with `la.restore_collection`.
        """
        snapshot(self._store, self.name, file_path("path", path))

    def close(self) -> None:
        """Save the indexes in memory, if that saves time, and close the connections."""
        self._save()
        self._store.close()

    def _save(self) -> None:
        for cached in self._caches:
            cached.save()

    def _refuse_parts(self, what: str = "") -> None:
        if self.parts and what:
            raise ArgumentError(
                Said(what),
                f" are for documents of one signature, and those of the collection {self.name!r} "
                "have many parts; leave them out",
            )
        if self.parts:
            raise no_single_signatures(self.name)

    def _no_words(self) -> ArgumentError:
        if self.parts or not isinstance(self.signer, DocumentSigner | None):
            return ArgumentError(
                f"the collection {self.name!r} has no keyword index, which is for texts of one "
                "signature; search by='similar'"
            )
        return ArgumentError(
            f"the collection {self.name!r} has no keyword index; build it with ",
            Said(
                "repair(words='porter')",
                "`lookalike collection repair DATABASE --words porter`",
            ),
        )

    def _no_document(self, id: str) -> NotFoundError:
        return NotFoundError(f"there is no document {id[:80]!r} in {self.name!r}")

    # Versions

    def _read(self, work: Callable[[View], T]) -> T:
        """Do the work at one version; again, if that version is gone meanwhile."""
        for _ in range(_TRIES):
            # Committed, so a view from now on has it.
            taken_in = max(cached.version for cached in self._caches)
            try:
                with self._store.reading() as view:
                    state = self._known(view.find(self.name))
                    if state.version < taken_in:
                        for cached in self._caches:
                            cached.went_back(state)
                    return work(view.at(state))
            except StaleView:
                continue
        raise CollectionError("the collection changes faster than a search can start; try again")

    def _state(self) -> State:
        return self._read(lambda view: view.state)

    @contextmanager
    def _writing(self) -> Iterator[Writer]:
        """Hold the row of the collection; what is written becomes visible at the end."""
        with self._store.writing() as writer:
            yield writer.at(self._known(writer.lock(self.name)))

    def _known(self, state: State | None) -> State:
        """Return the row of the collection; raise if it is not the one that was opened."""
        opened = self._opened
        if state is None:
            raise NotFoundError(f"the collection {opened.name!r} at {self._store.shown} is gone")
        kind = (state.bits, state.signer, state.parts)
        if kind != (opened.bits, opened.signer, opened.parts):
            raise CollectionError(
                f"the collection {opened.name!r} was replaced by one with another signer; "
                "open it again"
            )
        if (state.words, state.dimensions) != (opened.words, opened.dimensions):
            # A process has built a keyword index, or has written the first vectors.
            self._opened = replace(opened, words=state.words, dimensions=state.dimensions)
        return state
