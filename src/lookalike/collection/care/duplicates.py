"""Finding near-duplicates of a collection, and deleting them later.

Comparing takes long, and documents are written meanwhile. So whatever is read comes with its
version, and a document is deleted only if it and the document that is kept for it still have the
versions that were compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lookalike.collection.answers import Pair
from lookalike.collection.documents import Document, Seen, as_document, seen
from lookalike.collection.reading import row_pages
from lookalike.collection.search.pairs import document_pairs
from lookalike.collection.stores.base import State, View
from lookalike.collection.writing import delete_duplicates

if TYPE_CHECKING:
    from lookalike.collection.collection import Collection

__all__ = ["delete_unchanged", "pages_with_versions", "pairs_with_versions"]

_PAGE = 1000


def pairs_with_versions(
    docs: Collection, radius: int, limit: int
) -> tuple[list[Pair], dict[str, Seen]]:
    """Return what `Collection.pairs` does, and the versions of the documents, at one moment."""

    def found(view: View, state: State) -> tuple[list[Pair], dict[str, Seen]]:
        versions: dict[str, Seen] = {}
        near = min(radius, state.bits)
        return document_pairs(view, state, near, limit, None, versions=versions), versions

    docs._refuse_parts()
    return docs._versions.read(found)


def pages_with_versions(docs: Collection) -> Iterator[list[tuple[Document, Seen]]]:
    """Yield all documents by id, with their versions; each page is of one moment."""
    for page in row_pages(docs._versions, _PAGE):
        yield [(as_document(row, signature), seen(row)) for row, signature in page]


def delete_unchanged(docs: Collection, duplicates: Sequence[tuple[Seen, Seen]]) -> int:
    """Delete duplicates, each given with the document that is kept for it, in one transaction.

    Those stay that have changed since, or whose kept document has changed or is gone. Return how
    many were deleted.
    """
    with docs._versions.writing() as (writer, state):
        after = delete_duplicates(writer, state, duplicates)
    return state.documents - after.documents
