"""Reading the documents of a collection by their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import starmap

import numpy as np

from lookalike.collection.documents import Document, as_document, damaged
from lookalike.collection.search.filters import Predicate
from lookalike.collection.stores.base import State, View
from lookalike.collection.stores.rows import Numbered, Stored
from lookalike.collection.versions import Versions
from lookalike.parts.signer import SignedParts

_FILTERED_PAGE = 1000


def next_documents(
    view: View, state: State, after: str, wanted: int, predicate: Predicate | None = None
) -> list[Document]:
    """Return so many documents behind an id, or as many as there are."""
    result: list[Document] = []
    size = wanted if predicate is None else max(wanted, _FILTERED_PAGE)
    for page in view.pages(state, size, after):
        documents = starmap(as_document, page)
        result += [one for one in documents if predicate is None or predicate(one.metadata)]
        if len(result) >= wanted:
            break
    return result[:wanted]


def _next_rows(view: View, state: State, after: str, wanted: int) -> list[Stored]:
    return next(view.pages(state, wanted, after), [])


def documents_with_parts(
    view: View, state: State, ids: Sequence[str]
) -> list[tuple[Document, SignedParts]]:
    """Return those of the documents of these ids that are there, with their parts."""
    rows = view.documents(state, ids)
    found = {row.id: (row.signature, as_document(row, digest)) for row, digest in rows}
    numbers = {number: one.signature for number, one in found.values()}
    digests = np.concatenate([np.empty(0, np.uint8), *numbers.values()])
    wanted = Numbered(np.array([*numbers], np.int64), digests.reshape(-1, state.row_bytes))
    parts = dict(view.parts(state, wanted))
    there = [found[id] for id in ids if id in found]
    return [(one, parts[number]) for number, one in there]


def document_pages(
    versions: Versions, size: int, predicate: Predicate | None
) -> Iterator[list[Document]]:
    """Yield all documents, each page at a version of its own; see `Collection.pages`."""
    for rows in row_pages(versions, size):
        page = list(starmap(as_document, rows))
        yield page if predicate is None else [one for one in page if predicate(one.metadata)]


def row_pages(versions: Versions, size: int) -> Iterator[list[Stored]]:
    """Yield the rows of all documents by id, not checked yet, each page at its own version.

    Raises at the end if nothing was written meanwhile, but rows are missing.
    """
    before = versions.read(lambda view, state: state)
    after, seen = "", 0
    while page := versions.read(partial(_next_rows, after=after, wanted=size)):
        after, seen = page[-1][0].id, seen + len(page)
        yield page
    now = versions.read(lambda view, state: state)
    if now == before and seen != now.documents:
        raise damaged(f"{seen} documents are there to be read, not {now.documents}")
