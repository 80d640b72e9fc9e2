"""Is everything as it should be, and what to do if not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Row, checksum
from lookalike.collection.search.native import NativeSearch
from lookalike.collection.slicing import digest, hashes
from lookalike.collection.stores.base import State, Store, View
from lookalike.errors import NotFoundError

__all__ = ["Report", "repair", "verify"]

_PAGE = 2_000
_MOST_NAMED = 20


@dataclass(frozen=True)
class Report:
    """What `verify` and `repair` have found."""

    documents: int
    signatures: int
    keys: int
    """How many of each were read and compared with what they should be."""
    problems: tuple[str, ...]
    damaged: tuple[str, ...] = ()
    """Ids of documents that do not match their checksums, at most twenty."""
    cache: str | None = None
    """What is wrong with the saved index, if anything; it is rebuilt by itself."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong with the database."""
        return not self.problems


def verify(store: Store, name: str, native: NativeSearch) -> Report:
    """Read everything at one version and compare it with what it should be.

    Memory stays constant: sets of keys are compared by the exclusive or of the hashes of their
    members, which also tells how many there are.
    """
    with store.reading() as view:
        state = _known(view.state(name), name, store)
        problems = view.problems(state)
        documents, damaged = _check_documents(view, state)
        if damaged:
            problems.append(
                f"{len(damaged)} documents do not match their checksums, such as {damaged[0]!r}"
            )
        signatures, keys, found = _check_signatures(view, state)
        cache = native.check_file(state)
    return Report(
        documents, signatures, keys, tuple(problems + found), tuple(damaged[:_MOST_NAMED]), cache
    )


def repair(store: Store, name: str, native: NativeSearch) -> Report:
    """Rebuild keys, counts, digest and the saved index from the documents and signatures.

    Documents that do not match their checksums stay as they are: what they were is not known here.
    """
    native.forget()
    with store.writing() as writer:
        state = _known(writer.lock(name), name, store)
        writer.rebuild_indexes(state)
        value, count, last = 0, 0, 0
        lost: list[int] = []
        for batch in list(writer.signatures_after(state, -1)):
            unused = writer.unused(state, batch.numbers)
            lost += unused.tolist()
            kept = ~np.isin(batch.numbers, unused)
            numbers, rows = batch.numbers[kept], batch.signatures[kept]
            writer.insert_keys(state, *state.slicing.key_rows(numbers, rows))
            value ^= digest(hashes(numbers, rows))
            count += len(numbers)
            last = int(batch.numbers[-1])
        writer.delete_signatures(state, np.array(lost, np.int64))
        documents = sum(len(page) for page in _pages(writer, state))
        writer.save(
            replace(
                state,
                version=state.version + 1,
                documents=documents,
                signatures=count,
                next_signature=max(state.next_signature, last + 1),
                digest=value,
                removals_from=state.version + 1,  # indexes of earlier versions are built again
            )
        )
    return verify(store, name, native)


def _known(state: State | None, name: str, store: Store) -> State:
    if state is None:
        raise NotFoundError(f"there is no collection {name!r} at {store.shown}")
    return state


def _pages(view: View, state: State) -> Iterator[list[tuple[Row, bytes]]]:
    after = ""
    while page := view.documents_after(state, after, _PAGE):
        yield page
        after = page[-1][0].id


def _check_documents(view: View, state: State) -> tuple[int, list[str]]:
    count, damaged = 0, []
    for page in _pages(view, state):
        count += len(page)
        for row, signature in page:
            expected = checksum(
                row.id, signature or b"", row.text, row.metadata, row.added, row.updated
            )
            if expected != row.checksum:
                damaged.append(row.id)
    return count, damaged


def _check_signatures(view: View, state: State) -> tuple[int, int, list[str]]:
    """Compare the keys in the table with those of the signatures, position by position."""
    slicing, problems = state.slicing, []
    expected = [0] * slicing.count
    whole, count = 0, 0
    for batch in view.signatures_after(state, -1):
        count += len(batch)
        whole ^= digest(hashes(batch.numbers, batch.signatures))
        for position, keys in enumerate(slicing.keys(batch.signatures)):
            expected[position] ^= _key_digest(keys, batch.numbers)
        if int(batch.numbers[-1]) >= state.next_signature:
            problems.append(f"the signature {batch.numbers[-1]} has a number not given out yet")
    if whole != state.digest:
        problems.append("the signatures do not match the digest in the row of the collection")
    total = 0
    for position in range(slicing.count):
        stored, rows = 0, 0
        for keys, numbers in view.key_rows(state, position):
            stored ^= _key_digest(keys, numbers)
            rows += len(keys)
        total += rows
        if rows != count or stored != expected[position]:
            problems.append(
                f"the keys of slice {position} are {rows} for {count} signatures, or not theirs"
            )
    return count, total, problems


def _key_digest(keys: NDArray[np.int64], numbers: NDArray[np.int64]) -> int:
    return digest(hashes(numbers, keys.astype("<i8")[:, None].view(np.uint8)))
