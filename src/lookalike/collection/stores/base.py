"""What a database must be able to do to hold collections; SQLite and PostgreSQL each do it once.

Tables, the same in both, `N` being the number of a collection:

    collections     one row each: name, widths, and the state below
    signers         how each collection's documents are signed
    signatures_N    number, signature: each signature once, numbers never used again
    keys_N          key, signature: primary key on both; the slices of every signature
    documents_N     id, number of the signature, text, metadata, times, checksum
    removals_N      version, number, hash: signatures that are gone, for indexes that catch up

Whoever writes holds the row of the collection until the commit, so versions follow each other in
the order of commits, and a number is visible only after all smaller ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Row, damaged
from lookalike.collection.slicing import digest, hashes
from lookalike.collection.stores.state import State, as_state, signer_hash
from lookalike.errors import CollectionError

__all__ = [
    "HIDDEN",
    "SCAN_BATCH",
    "Numbered",
    "StaleView",
    "State",
    "Store",
    "Stored",
    "View",
    "Writer",
    "as_state",
    "integers",
    "maybe_written",
    "numbered",
    "signer_hash",
    "stored",
]

SCAN_BATCH = 20_000
HIDDEN = "\1"
"""What names begin with while a collection is being restored: nobody can open or list those."""


@dataclass(frozen=True)
class Numbered:
    """Signatures with their numbers."""

    numbers: NDArray[np.int64]
    signatures: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.numbers)


def numbered(rows: Sequence[tuple[int, bytes]], width: int) -> Numbered:
    """Return rows of a table of signatures as arrays."""
    numbers, blobs = [row[0] for row in rows], [row[1] for row in rows]
    # A damaged schema may make text and bytes of what were numbers.
    if not (set(map(type, numbers)) <= {int} and set(map(type, blobs)) <= {bytes}):
        raise damaged("the table of signatures holds something else than numbers and bytes")
    if not set(map(len, blobs)) <= {width}:
        raise damaged(f"the table of signatures holds something else than {width} bytes each")
    rows_of_bytes = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(rows), width)
    return Numbered(np.array(numbers, np.int64), rows_of_bytes)


def integers(rows: Sequence[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows of two integers as arrays."""
    if not all(isinstance(one, int) and isinstance(two, int) for one, two in rows):
        raise damaged("a table of numbers holds something else")
    array = np.array(rows, np.int64).reshape(-1, 2)
    return array[:, 0].copy(), array[:, 1].copy()


Stored: TypeAlias = tuple[Row, bytes | None]
"""A document with its signature, None if that is missing; nothing of it is checked yet. Where no
text is asked for, it comes nevertheless with documents whose checksum cannot do without."""


def stored(row: Sequence[Any]) -> Stored:
    """Return what the columns of a document and its signature hold."""
    return Row._make(row[:-1]), row[-1]


class View(ABC):
    """Reads at one moment: everything through one view belongs to the same version."""

    @abstractmethod
    def state(self, name: str) -> State | None:
        """Return the row of a collection, or None if there is none of that name."""

    @abstractmethod
    def states(self, hidden: bool = False) -> list[State]:
        """Return the rows of all collections that can be opened, or of all others, by name."""

    @abstractmethod
    def signer(self, state: State) -> str:
        """Return the description of the signer as JSON, whatever there is."""

    def checked_signer(self, state: State) -> str:
        """Return the description of the signer as JSON, or raise if it is not as written."""
        description = self.signer(state)
        if signer_hash(description) != state.signer:
            raise damaged(f"the signer of {state.name[:80]!r} is not described as it was")
        return description

    @abstractmethod
    def candidates(self, state: State, keys: NDArray[np.int64], most: int) -> Numbered:
        """Return signatures once for each of the keys that they have; `most` rows at most."""

    @abstractmethod
    def count_keys(self, state: State, keys: NDArray[np.int64], most: int) -> dict[int, int]:
        """Return how many signatures have each key, looking at `most` rows at most in all."""

    @abstractmethod
    def signatures_after(self, state: State, number: int) -> Iterator[Numbered]:
        """Yield all signatures with larger numbers, in order, in batches."""

    def all_signatures(self, state: State) -> Iterator[Numbered]:
        """Yield all signatures, in order, in batches; raise at the end if one is not as written."""
        count, value, last = 0, 0, -1
        for batch in self.signatures_after(state, -1):
            count += len(batch)
            value ^= digest(hashes(batch.numbers, batch.signatures))
            last = int(batch.numbers[-1])
            yield batch
        if last >= state.next_signature:
            raise damaged(f"the signature {last} has a number not given out yet")
        if (count, value) != (state.signatures, state.digest):
            raise damaged(
                f"there are {count} signatures in the table, which are not the {state.signatures} "
                f"that the collection {state.name[:80]!r} should have"
            )

    @abstractmethod
    def signatures_at(self, state: State, numbers: NDArray[np.int64]) -> Numbered:
        """Return the signatures that have these numbers, in no particular order."""

    @abstractmethod
    def removals_after(
        self, state: State, version: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Return number and hash of signatures that were removed in later versions."""

    @abstractmethod
    def documents(self, state: State, ids: Sequence[str], text: bool = True) -> list[Stored]:
        """Return the documents with these ids, in no particular order."""

    @abstractmethod
    def documents_of(
        self, state: State, numbers: NDArray[np.int64], each: int | None, text: bool
    ) -> Iterator[Stored]:
        """Yield the documents that have these signatures.

        Of each signature not more than `each`, and then those that come first by id.
        """

    @abstractmethod
    def documents_after(self, state: State, id: str, limit: int, text: bool = True) -> list[Stored]:
        """Return the next documents by id."""

    def pages(
        self, state: State, size: int, after: str = "", text: bool = True
    ) -> Iterator[list[Stored]]:
        """Yield all documents behind `after` by id, `size` at a time.

        Comes to an end whatever the tables hold: ids that do not grow, which a damaged index may
        bring again and again, raise.
        """
        while page := self.documents_after(state, after, size, text):
            for row, _ in page:
                if not isinstance(row.id, str) or row.id <= after:
                    raise damaged(f"after the id {after[:80]!r} comes {str(row.id)[:80]!r}")
                after = row.id
            yield page
            if len(page) < size:
                return

    @abstractmethod
    def key_rows(
        self, state: State, position: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the rows (key, number) at one position, in batches."""

    @abstractmethod
    def problems(self, state: State) -> list[str]:
        """Return what the database itself and counting find wrong with the tables."""

    @abstractmethod
    def plans(self, state: State) -> dict[str, str]:
        """Return how the database would run each kind of search, in its own words."""


class Writer(View):
    """Reads and writes that become visible together, when the transaction is committed."""

    @abstractmethod
    def lock(self, name: str) -> State | None:
        """Return the row of a collection and hold it until the end."""

    @abstractmethod
    def create(self, state: State, signer: str) -> State:
        """Make the tables of a new collection and return its row, with its number.

        Where another process was first, returns the row of what that one made.
        """

    @abstractmethod
    def drop(self, state: State) -> None:
        """Remove a collection with all it holds."""

    @abstractmethod
    def rename(self, state: State, name: str) -> None:
        """Give a collection another name."""

    @abstractmethod
    def save(self, state: State) -> None:
        """Replace the row of a collection."""

    @abstractmethod
    def find_signatures(self, state: State, signatures: Sequence[bytes]) -> dict[bytes, int]:
        """Return the numbers of those that are there."""

    @abstractmethod
    def find_documents(self, state: State, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Return number of the signature and time of adding for those that are there."""

    @abstractmethod
    def insert_signatures(self, state: State, new: Numbered) -> None:
        """Add signatures."""

    @abstractmethod
    def insert_keys(
        self, state: State, keys: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        """Add rows to the table of keys."""

    @abstractmethod
    def insert_documents(self, state: State, rows: Sequence[Row]) -> None:
        """Add documents."""

    @abstractmethod
    def delete_documents(self, state: State, ids: Sequence[str]) -> None:
        """Remove documents."""

    @abstractmethod
    def unused(self, state: State, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of the numbers that no document has."""

    @abstractmethod
    def delete_signatures(self, state: State, numbers: NDArray[np.int64]) -> None:
        """Remove signatures."""

    @abstractmethod
    def delete_keys(
        self, state: State, keys: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        """Remove rows from the table of keys."""

    @abstractmethod
    def log_removals(
        self,
        state: State,
        version: int,
        numbers: NDArray[np.int64],
        hashes: NDArray[np.uint64],
    ) -> None:
        """Note which signatures a version has removed."""

    @abstractmethod
    def trim_removals(self, state: State, keep: int) -> int:
        """Forget the oldest removals beyond `keep`; return the version they are known from."""

    @abstractmethod
    def rebuild_indexes(self, state: State) -> None:
        """Make the database rebuild its own indexes over the tables, and empty that of keys."""


class StaleView(CollectionError):
    """A view that cannot be used any more, because something has moved on: take a new one."""

    def __init__(self) -> None:
        super().__init__("the collection was replaced or dropped meanwhile; try again")


def maybe_written(shown: str, error: Exception) -> CollectionError:
    """Return the error for a commit of which nobody can say whether it has happened."""
    return CollectionError(
        f"{shown}: this batch could not be committed ({error}): it may have been written, all of "
        "it or nothing: look with get(), or write it again with upsert()"
    )


class Store(ABC):
    """A database that holds collections. Safe to use from many threads, not across a fork."""

    shown: str
    """Where it is, for messages; no password in it."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[View]:
        """Return a view of one moment."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Writer]:
        """Return a transaction, committed at the end unless something is raised."""

    @abstractmethod
    def restoring(self) -> AbstractContextManager[None]:
        """Hold what tells others that something is being restored, and not abandoned."""

    @abstractmethod
    def remove_abandoned(self) -> int:
        """Remove what restores that died have left, and return how many.

        None if there is a restore under way in any process, or if somebody else does it now.
        """

    @abstractmethod
    def copy_file(self, path: Path) -> bool:
        """Copy the whole database at one moment, if it is a file; return whether it is one."""

    @abstractmethod
    def compact(self) -> None:
        """Give free places back to the file system, where that is not done by itself."""

    @abstractmethod
    def durability(self) -> str:
        """Say in a sentence what an acknowledged write survives here."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""
