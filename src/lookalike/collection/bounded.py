"""Read documents for clients of a service, a bounded number of bytes at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike.cancellation import stop_if_cancelled
from lookalike.collection.answers import Answer
from lookalike.collection.collection import Collection
from lookalike.collection.documents import (
    Document,
    Row,
    as_document,
    as_id,
    check_row,
    decoded_metadata,
    is_id,
)
from lookalike.collection.query import Query, Way
from lookalike.collection.search.bounds import spend
from lookalike.collection.search.filters import Predicate, Where, compile_where
from lookalike.collection.search.texts import rows_with_texts
from lookalike.collection.stores.base import State, View
from lookalike.collection.writing import Written, delete_documents
from lookalike.signatures.bit_weights import Mask

__all__ = [
    "answers_each",
    "count_meeting",
    "delete_meeting",
    "documents_with",
    "has_index",
    "page_of",
    "signatures_with",
]

_AT_ONCE = 64
"""Documents that are in memory together beside the page: each may have a text of a megabyte."""
_FILTERED = 256
"""Documents of which the metadata are looked at together, where few may meet a condition."""
_COUNTED = 1_000
_DELETED = 5_000
"""Documents that are deleted together."""

T = TypeVar("T")


def has_index(docs: Collection) -> bool:
    """Return whether a search need not wait for the index to be made first."""
    return docs._native.version > 0


def answers_each(
    docs: Collection,
    queries: Sequence[str] | NDArray[np.uint8],
    take: Callable[[int, Answer], T],
    *,
    k: int | None,
    radius: int | None,
    limit: int | None,
    mask: Mask,
    way: Way | None,
    **options: Any,
) -> list[T]:
    """Return what `take` makes of each answer of `search_many`, or of `within_many` without a k.

    It gets the position of the query and its answer, in order, as soon as that is there: so no more
    than a few are in memory. Where the collection changes meanwhile, it begins again.
    """
    ways = docs._way if way is None else way
    masks = None
    if k is None:
        signatures = docs._signing.queries(queries)
    else:
        signatures, masks = docs._signing.asked(queries, mask, whole=radius is not None)
    query = Query.of(
        signatures, radius, k=k, limit=limit if k is None else None, way=ways, masks=masks,
        **options,
    )  # fmt: skip
    return docs._answers(query, take)


def documents_with(
    docs: Collection, ids: Sequence[str], text: bool = True
) -> list[Document | None]:
    """Return the documents of these ids, None for each that is not there, at one moment.

    What they hold is counted while they are read, as often as it is asked for: see `answer_limit`.
    """
    times = Counter(ids)

    def found(view: View, state: State) -> dict[str, Document]:
        result = {}
        for row, signature in rows_with_texts(view, state, _different(ids)):
            result[row.id], size = _document(row, signature, text)
            spend(size * times[row.id])
        return result

    known = docs._versions.read(found)
    return [known.get(id) for id in ids]


def signatures_with(docs: Collection, ids: Sequence[str]) -> list[bytes | None]:
    """Return the signatures of the documents of these ids, None for each that is not there."""

    def found(view: View, state: State) -> dict[str, bytes]:
        rows = view.documents(state, _different(ids), text=False)
        return {row.id: check_row(row, signature, text=False) for row, signature in rows}

    known = docs._versions.read(found)
    return [known.get(id) for id in ids]


def page_of(
    docs: Collection,
    after: str,
    limit: int,
    most_bytes: int,
    *,
    where: Where | None = None,
    text: bool = True,
    count: Callable[[int], object] = lambda size: None,
) -> tuple[list[Document], str | None]:
    """Return the next documents by id behind `after`, and the id to go on with; None at the end.

    The page ends with the document with which it has `most_bytes`, so there is always one; texts
    count if they are wanted. `count` is called with the bytes of each document.
    """
    begin: str | None = as_id(after) if after else ""
    predicate = compile_where(where)
    found: list[Document] = []
    held = 0
    while begin is not None and len(found) < limit and held < most_bytes:
        stop_if_cancelled()
        most = min(_AT_ONCE, limit - len(found))
        some, begin = docs._versions.read(
            partial(_documents, begin=begin, predicate=predicate, most=most, text=text)
        )
        for place, (document, size) in enumerate(some):
            found.append(document)
            held += size
            count(size)
            if held >= most_bytes and place < len(some) - 1:
                return found, document.id
    return found, begin


def count_meeting(docs: Collection, where: Where | None) -> int:
    """Count the documents that meet a condition; their texts are not read."""
    predicate = compile_where(where)
    if predicate is None:
        return docs.count()
    count = 0
    begin: str | None = ""
    while begin is not None:
        stop_if_cancelled()
        some, begin = docs._versions.read(
            partial(_ids, begin=begin, predicate=predicate, size=_COUNTED)
        )
        count += len(some)
    return count


def delete_meeting(docs: Collection, where: Where | None) -> Written:
    """Delete the documents that meet a condition, `_DELETED` at a time, each time in one step.

    Whether a document meets it is decided in the transaction that deletes it.
    """
    predicate = compile_where(where)
    deleted, version = 0, docs.version
    begin: str | None = ""
    while begin is not None:
        ids: list[str] = []
        while begin is not None and len(ids) + _COUNTED <= _DELETED:
            some, begin = docs._versions.read(
                partial(_ids, begin=begin, predicate=predicate, size=_COUNTED)
            )
            ids += some
        if not ids:
            break
        with docs._versions.writing() as (writer, state):
            meeting = list(_still_meeting(writer, state, ids, predicate))
            after = delete_documents(writer, state, meeting)
        deleted, version = deleted + state.documents - after.documents, after.version
    return Written(deleted=deleted, version=version)


def _still_meeting(
    view: View, state: State, ids: Sequence[str], predicate: Predicate | None
) -> Iterator[str]:
    """Yield those of the ids whose documents are there and meet a condition."""
    for first in range(0, len(ids), _FILTERED):
        for row, signature in view.documents(state, ids[first : first + _FILTERED], text=False):
            check_row(row, signature, text=False)
            if predicate is None or predicate(decoded_metadata(row)):
                yield row.id


def _different(ids: Sequence[str]) -> list[str]:
    """Return each id once that can be one of a document."""
    return [id for id in dict.fromkeys(ids) if is_id(id)]


def _documents(
    view: View, state: State, begin: str, predicate: Predicate | None, most: int, text: bool
) -> tuple[list[tuple[Document, int]], str | None]:
    """Return some documents behind an id, with their sizes, and the id to go on with."""
    ids, following = _ids(view, state, begin, predicate, most if predicate is None else _FILTERED)
    if len(ids) > most:
        ids, following = ids[:most], ids[most - 1]
    found = [
        _document(row, signature, text) for row, signature in rows_with_texts(view, state, ids)
    ]
    found.sort(key=lambda one: one[0].id)
    return found, following


def _document(row: Row, signature: bytes, text: bool) -> tuple[Document, int]:
    """Return a document and its size; a text that came for its checksum alone is not held."""
    document = as_document(row, signature)
    if text:
        return document, len(row.metadata) + len(row.text or b"")
    return replace(document, text=None), len(row.metadata)


def _ids(
    view: View, state: State, begin: str, predicate: Predicate | None, size: int
) -> tuple[list[str], str | None]:
    """Return the ids behind one that meet a condition, of so many, and the id to go on with."""
    page = next(view.pages(state, size, begin, text=False), [])
    ids = []
    for row, signature in page:
        check_row(row, signature, text=False)
        if predicate is None or predicate(decoded_metadata(row)):
            ids.append(row.id)
    return ids, page[-1][0].id if len(page) == size else None
