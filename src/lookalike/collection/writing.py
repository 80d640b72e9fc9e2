"""What a batch does to the tables, the same on every database.

Everything of a batch happens in one transaction, under the lock of the collection's row: signatures
that are new get numbers and keys, documents point at them, signatures without documents go, and the
row gets the next version with the counts and the digest that belong to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Items, Row, checksum, now
from lookalike.collection.slicing import digest, hashes
from lookalike.collection.stores.base import Numbered, State, Writer
from lookalike.errors import ItemError

__all__ = ["Written", "delete_documents", "write_documents"]

_KEPT_REMOVALS = 100_000


@dataclass(frozen=True)
class Written:
    """What a batch has done."""

    added: int = 0
    updated: int = 0
    deleted: int = 0
    errors: list[ItemError] = field(default_factory=list)
    """Items that were left out, if that was asked for."""
    version: int = 0
    """The version of the collection that has it."""


def write_documents(
    writer: Writer, state: State, items: Items, signatures: NDArray[np.uint8], *, fresh: bool
) -> State:
    """Write documents in place of those with the same ids; return the row as it was saved.

    `fresh` says that there are none with the same ids, which is then not looked up.
    """
    known = state.documents > 0 and not fresh
    found = writer.find_documents(state, items.ids) if known else {}
    blobs = _blobs(signatures)
    numbers, new = _number_signatures(writer, state, blobs)
    time = now()
    rows = []
    for id, blob, text, metadata in zip(items.ids, blobs, items.texts, items.metadata, strict=True):
        added = found[id][1] if id in found else time
        updated = max(time, added)  # clocks are set back now and then
        value = checksum(id, blob, text, metadata, added, updated)
        rows.append(Row(id, numbers[blob], text, metadata, added, updated, value))

    if len(new):
        writer.insert_signatures(state, new)
        writer.insert_keys(state, *state.slicing.key_rows(new.numbers, new.signatures))
    if found:
        writer.delete_documents(state, list(found))
    writer.insert_documents(state, rows)
    state = replace(
        state,
        version=state.version + 1,
        documents=state.documents + len(rows) - len(found),
        signatures=state.signatures + len(new),
        next_signature=state.next_signature + len(new),
        digest=state.digest ^ digest(hashes(new.numbers, new.signatures)),
    )
    left = {number for number, _ in found.values()}.difference(numbers.values())
    state = _remove_unused(writer, state, left)
    writer.save(state)
    return state


def delete_documents(writer: Writer, state: State, ids: Sequence[str]) -> State:
    """Remove the documents that are there; return the row as it was saved."""
    found = writer.find_documents(state, ids)
    if not found:
        return state
    writer.delete_documents(state, list(found))
    state = replace(state, version=state.version + 1, documents=state.documents - len(found))
    state = _remove_unused(writer, state, {number for number, _ in found.values()})
    writer.save(state)
    return state


def _number_signatures(
    writer: Writer, state: State, blobs: Sequence[bytes]
) -> tuple[dict[bytes, int], Numbered]:
    """Return the number of each signature, and those that are new."""
    distinct = sorted(set(blobs))  # in the order of the index, which is quicker to look up
    numbers = writer.find_signatures(state, distinct) if state.signatures else {}
    new = [blob for blob in distinct if blob not in numbers]
    first = state.next_signature
    numbers.update(zip(new, range(first, first + len(new)), strict=True))
    rows = np.frombuffer(b"".join(new), np.uint8).reshape(len(new), state.bits // 8)
    return numbers, Numbered(np.arange(first, first + len(new), dtype=np.int64), rows)


def _remove_unused(writer: Writer, state: State, numbers: set[int]) -> State:
    """Remove those of the signatures that no document has any more."""
    if not numbers:
        return state
    gone = writer.unused(state, np.array(sorted(numbers), np.int64))
    if not len(gone):
        return state
    old = writer.signatures_at(state, gone)
    hashed = hashes(old.numbers, old.signatures)
    writer.delete_keys(state, *state.slicing.key_rows(old.numbers, old.signatures))
    writer.delete_signatures(state, old.numbers)
    writer.log_removals(state, state.version, old.numbers, hashed)
    known_from = state.removals_from
    if state.version % 64 == 0 or len(old) > _KEPT_REMOVALS:
        known_from = writer.trim_removals(state, _KEPT_REMOVALS)
    return replace(
        state,
        signatures=state.signatures - len(old),
        digest=state.digest ^ digest(hashed),
        removals_from=known_from,
    )


def _blobs(signatures: NDArray[np.uint8]) -> list[bytes]:
    data, width = signatures.tobytes(), signatures.shape[1]
    return [data[begin : begin + width] for begin in range(0, len(data), width)]
