"""Reading the documents of a collection: by id, page by page, or by a condition.

A text may have megabytes, so few texts are read at a time, and none if only metadata are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from lookalike.collection.documents import (
    Document,
    Row,
    as_document,
    as_id,
    check_row,
    damaged,
    decoded_metadata,
    is_id,
)
from lookalike.collection.query import Predicate, Where, compile_where
from lookalike.collection.search.answer import Budget, rows_with_texts
from lookalike.collection.stores.base import View
from lookalike.collection.stores.schema import VECTORS, Numbered, Stored
from lookalike.collection.vectors import unpacked_vectors
from lookalike.collection.writing import Written, delete_documents
from lookalike.operation import stop_if_canceled
from lookalike.parts.signer import SignedParts

if TYPE_CHECKING:
    from lookalike.collection.collection import Collection

T = TypeVar("T")

FILTERED_PAGE = 1_000  # documents that are read together, if few may meet a condition
_AT_ONCE = 64  # documents of a page that are read together: each may have a text of a megabyte
_FILTERED = 256  # documents whose metadata is read together, if few may meet a condition
_DELETED = 5_000  # documents that are deleted together


def documents_with_parts(view: View, ids: Sequence[str]) -> list[tuple[Document, SignedParts]]:
    """Return those of the documents of these ids that are there, with their parts."""
    rows = view.documents(ids)
    found = {row.id: (row.signature, as_document(row, digest)) for row, digest in rows}
    numbers = {number: one.signature for number, one in found.values()}
    digests = np.concatenate([np.empty(0, np.uint8), *numbers.values()])
    wanted = Numbered(np.array([*numbers], np.int64), digests.reshape(-1, view.state.row_bytes))
    parts = dict(view.parts(wanted))
    there = [found[id] for id in ids if id in found]
    return [(one, parts[number]) for number, one in there]


def whole_documents(view: View, rows: Sequence[Stored]) -> list[Document]:
    """Return documents of rows that were read, checked, each with its vector if it has one."""
    return with_vectors(view, [as_document(row, signature) for row, signature in rows])


def with_vectors(view: View, documents: Sequence[Document]) -> list[Document]:
    """Return documents with their vectors."""
    dimensions = view.state.dimensions
    if not dimensions or not documents:
        return list(documents)
    found = view.entries_of(VECTORS, [document.id for document in documents])
    rows = dict(zip(found, unpacked_vectors([*found.values()], dimensions), strict=True))
    return [replace(document, vector=rows.get(document.id)) for document in documents]


def row_pages(docs: Collection, size: int, text: bool = True) -> Iterator[list[Stored]]:
    """Yield the unchecked rows of all documents by id; raise at the end if some are missing."""
    return _pages(docs, size, text, lambda view, rows: rows)


def document_pages(docs: Collection, size: int) -> Iterator[list[Document]]:
    """Yield all documents by id, with their vectors; raise at the end if some are missing."""
    return _pages(docs, size, True, whole_documents)


def _pages(
    docs: Collection, size: int, text: bool, make: Callable[[View, list[Stored]], list[T]]
) -> Iterator[list[T]]:
    """Yield what `make` makes of each page, in the view that it was read in."""

    def page(view: View) -> tuple[str, list[T]]:
        rows = next(view.pages(size, after, text), [])
        return (rows[-1][0].id, make(view, rows)) if rows else ("", [])

    before = docs._state()
    after, seen = "", 0
    while True:
        after, made = docs._read(page)
        if not after:
            break
        stop_if_canceled()
        seen += len(made)
        yield made
    now = docs._state()
    if now == before and seen != now.documents:
        raise damaged(f"{seen} documents can be read, not {now.documents}")


def pages_with_parts(docs: Collection, size: int) -> Iterator[list[tuple[Document, SignedParts]]]:
    """Yield all documents with their parts, by id, at most `size` at a time."""
    for rows in row_pages(docs, size, text=False):
        yield docs._read(partial(documents_with_parts, ids=[row.id for row, _ in rows]))


def documents_with(
    docs: Collection, ids: Sequence[str], text: bool, budget: Budget, vectors: bool = False
) -> list[Document | None]:
    """Return the documents of these ids, None for each that does not exist, at one moment."""
    times = Counter(ids)  # each time counts in the budget

    def found(view: View) -> dict[str, Document]:
        result = {}
        beside = _vector_bytes(view, vectors)
        for row, signature in rows_with_texts(view, _different(ids)):
            result[row.id], size = _document(row, signature, text)
            budget.spend((size + beside) * times[row.id])
        documents = [*result.values()]
        whole = with_vectors(view, documents) if vectors else documents
        return {document.id: document for document in whole}

    known = docs._read(found)
    return [known.get(id) for id in ids]


def signatures_with(docs: Collection, ids: Sequence[str]) -> list[bytes | None]:
    """Return the signatures of the documents of these ids, None for each that is not there."""

    def found(view: View) -> dict[str, bytes]:
        rows = view.documents(_different(ids), text=False)
        return {row.id: check_row(row, signature, text=False) for row, signature in rows}

    known = docs._read(found)
    return [known.get(id) for id in ids]


def page_of(
    docs: Collection,
    after: str,
    limit: int,
    most_bytes: int,
    *,
    where: Where | None = None,
    text: bool = True,
    vectors: bool = False,
    count: Callable[[int], object] = lambda size: None,
) -> tuple[list[Document], str | None]:
    """Return the next documents by id after `after`, and the id to go on with; None at the end.

    The page ends with the document that reaches `most_bytes`; texts and vectors count if they are
    wanted.
    `count` is called with the bytes of each document.
    """
    begin: str | None = as_id(after) if after else ""
    predicate = compile_where(where)
    found: list[Document] = []
    held = 0
    while begin is not None and len(found) < limit and held < most_bytes:
        stop_if_canceled()
        most = min(_AT_ONCE, limit - len(found))
        some, begin = docs._read(
            partial(
                _documents, begin=begin, predicate=predicate, most=most, text=text, vectors=vectors
            )
        )
        for place, (document, size) in enumerate(some):
            found.append(document)
            held += size
            count(size)
            if held >= most_bytes and place < len(some) - 1:
                return found, document.id
    return found, begin


def delete_meeting(docs: Collection, where: Where | None) -> Written:
    """Delete the documents that still meet a condition then, several in one transaction."""
    predicate = compile_where(where)
    deleted, version = 0, docs.version
    waiting: list[str] = []

    def delete() -> None:
        nonlocal deleted, version
        with docs._writing() as writer:
            found: list[str] = []
            for first in range(0, len(waiting), _FILTERED):
                some = waiting[first : first + _FILTERED]
                found += meeting(writer.documents(some, text=False), predicate)
            done = delete_documents(writer, found)
        deleted, version = deleted + done.deleted, done.version
        waiting.clear()

    for page in row_pages(docs, FILTERED_PAGE, text=False):
        waiting += meeting(page, predicate)
        if len(waiting) + FILTERED_PAGE > _DELETED:
            delete()
    if waiting:
        delete()
    return Written(deleted=deleted, version=version)


def meeting(rows: Sequence[Stored], predicate: Predicate | None) -> list[str]:
    """Return the ids of the documents that meet a condition; their texts are not needed."""
    ids = []
    for row, signature in rows:
        check_row(row, signature, text=False)
        if predicate is None or predicate(decoded_metadata(row)):
            ids.append(row.id)
    return ids


def _documents(
    view: View, begin: str, predicate: Predicate | None, most: int, text: bool, vectors: bool
) -> tuple[list[tuple[Document, int]], str | None]:
    """Return some documents after an id, with their sizes, and the id to go on with."""
    size = most if predicate is None else _FILTERED
    page = next(view.pages(size, begin, text=False), [])
    ids, following = meeting(page, predicate), page[-1][0].id if len(page) == size else None
    if len(ids) > most:
        ids, following = ids[:most], ids[most - 1]
    found = [_document(row, signature, text) for row, signature in rows_with_texts(view, ids)]
    found.sort(key=lambda one: one[0].id)
    if vectors:
        whole = with_vectors(view, [document for document, _ in found])
        beside = _vector_bytes(view, vectors)
        sizes = [size + beside for _, size in found]
        found = list(zip(whole, sizes, strict=True))
    return found, following


def _vector_bytes(view: View, vectors: bool) -> int:
    """Return the most bytes of the vector of a document in base64; 0 if it is not wanted."""
    return 16 * (view.state.dimensions + 2) // 3 if vectors else 0


def _document(row: Row, signature: bytes, text: bool) -> tuple[Document, int]:
    """Return a document and its size; without `text`, the text is dropped."""
    document = as_document(row, signature)
    if text:
        return document, len(row.metadata) + len(row.text or b"")
    return replace(document, text=None), len(row.metadata)


def _different(ids: Sequence[str]) -> list[str]:
    return [id for id in dict.fromkeys(ids) if is_id(id)]
