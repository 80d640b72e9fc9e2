"""What a batch does to the tables, the same on every database.

Everything of a batch happens in one transaction, under the lock of the collection's row: signatures
that are new get numbers and keys, documents point at them, signatures without documents go, and the
row gets the next version with the counts and the digest that belong to it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lookalike.checks import one_of
from lookalike.collection.documents import (
    Items,
    Row,
    Seen,
    checksum,
    intact,
    now,
    prepare_items,
)
from lookalike.collection.query import listed
from lookalike.collection.signing import Signed, Signing
from lookalike.collection.stores.base import Writer
from lookalike.collection.stores.schema import Numbered, State, blobs, digest, hashes
from lookalike.errors import ArgumentError, BatchError, ItemError, Said

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


_TO_REPLACE = Said("use upsert()", "add --replace to replace it")


def check_numbers(ids: int, **given: Sized | None) -> None:
    """Say so unless there is something for each id, and a text or a signature."""
    for name, values in given.items():
        if values is not None and len(values) != ids:
            raise ArgumentError(
                f"there are {ids} ids and {len(values)} {name}; expected one for each"
            )
    if given["texts"] is None and given["signatures"] is None:
        raise ArgumentError("there are neither texts nor signatures; give one of them")


@dataclass(frozen=True)
class Batch:
    """Documents to be written, all of which can be, and what is wrong with the others."""

    items: Items
    signed: Signed
    errors: list[ItemError]
    given: int
    """How many items there were, the wrong ones too."""
    skip: bool
    """Whether wrong items are left out; else nothing is written if there are any."""

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        texts: Sequence[str] | None,
        signatures: Any,
        metadata: Sequence[Mapping[str, Any] | None] | None,
        *,
        on_error: str,
        unique: bool,
        keep_text: bool,
        signing: Signing,
    ) -> Batch:
        """Check all items, and sign the texts unless there are signatures."""
        one_of("on_error", on_error, ("raise", "skip"))
        names = listed("ids", ids)
        rows = None if signatures is None else signing.given(signatures)
        contents = None if texts is None else listed("texts", texts)
        described = None if metadata is None else listed("metadata", metadata)
        check_numbers(len(names), texts=contents, signatures=rows, metadata=described)
        if rows is None:
            signing.check_signs()  # says so at once if texts cannot be signed
        items, errors = prepare_items(
            names, contents, described, need_text=rows is None, keep_text=keep_text, unique=unique
        )
        if errors and on_error == "raise":
            raise BatchError(errors, len(names))
        if rows is None:
            given = [contents[at] for at in items.positions] if contents else []
            rows, wrong = signing.sign_each(given)
            errors += [
                ItemError(
                    items.positions[place], items.ids[place], f"the {signing.medium} {reason}"
                )
                for place, reason in wrong.items()
            ]
            errors.sort(key=lambda error: error.position)
            if wrong and on_error == "raise":
                raise BatchError(errors, len(names))
            if wrong:
                items = items.only([at for at in range(len(items.ids)) if at not in wrong])
        else:
            rows = rows.only(items.positions)
        return cls(items, rows, errors, len(names), on_error == "skip")

    def without(self, known: Container[str]) -> Batch:
        """Return the batch without documents whose ids are there already, which is an error."""
        errors = [
            ItemError(position, id, "there is a document of this id", _TO_REPLACE)
            for position, id in zip(self.items.positions, self.items.ids, strict=True)
            if id in known
        ]
        errors = sorted(self.errors + errors, key=lambda error: error.position)
        if not self.skip:
            raise BatchError(errors, self.given)
        kept = [place for place, id in enumerate(self.items.ids) if id not in known]
        return replace(
            self, items=self.items.only(kept), signed=self.signed.only(kept), errors=errors
        )


def write_batch(writer: Writer, state: State, batch: Batch, *, fresh: bool) -> Written:
    """Write a batch; where ids have to be `fresh`, those that are there already are wrong."""
    known = writer.find_documents(state, batch.items.ids) if fresh and state.documents else {}
    if known:
        batch = batch.without(known)
    if not batch.items.ids:
        return Written(errors=batch.errors, version=state.version)
    after = write_documents(writer, state, batch.items, batch.signed, fresh=fresh)
    added = after.documents - state.documents
    updated = len(batch.items.ids) - added
    return Written(added, updated, errors=batch.errors, version=after.version)


def write_documents(
    writer: Writer, state: State, items: Items, signed: Signed, *, fresh: bool
) -> State:
    """Write documents in place of those with the same ids; return the row as it was saved.

    `fresh` says that there are none with the same ids, which is then not looked up.
    """
    known = state.documents > 0 and not fresh
    replaced = writer.documents(state, items.ids, text=False) if known else []
    found = {row.id: (row, intact(row, signature, text=False)) for row, signature in replaced}
    rows_of_bytes = blobs(signed.rows)
    numbers, new = _number_signatures(writer, state, rows_of_bytes)
    time = now()
    rows = []
    for id, blob, text, metadata in zip(
        items.ids, rows_of_bytes, items.texts, items.metadata, strict=True
    ):
        old, trusted = found.get(id, (None, False))
        added = old.added if old and trusted else time  # what changed by itself is not passed on
        updated = max(time, added)  # clocks are set back now and then
        value = checksum(id, blob, text, metadata, added, updated)
        rows.append(Row(id, numbers[blob], text, metadata, added, updated, value))

    if len(new):
        writer.insert_signatures(state, new)
        writer.insert_keys(state, *state.slicing.key_rows(new.numbers, new.signatures))
        if state.parts:
            packed = dict(zip(rows_of_bytes, signed.parts, strict=True))
            parts = [packed[blob] for blob in blobs(new.signatures)]
            writer.insert_parts(state, list(zip(new.numbers.tolist(), parts, strict=True)))
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
    left = {row.signature for row, _ in found.values()}.difference(numbers.values())
    state = _remove_unused(writer, state, left)
    writer.save(state)
    return state


def delete_documents(writer: Writer, state: State, ids: Sequence[str]) -> State:
    """Remove the documents that are there; return the row as it was saved."""
    return _delete_found(writer, state, writer.find_documents(state, ids))


def delete_duplicates(
    writer: Writer, state: State, duplicates: Sequence[tuple[Seen, Seen]]
) -> State:
    """Remove duplicates, each given with the document that is kept for it.

    Only those are removed of which both are there in the version that was compared. Return the row
    as it was saved.
    """
    kept = {other.id for _, other in duplicates}
    there = writer.seen(state, [*kept, *(one.id for one, _ in duplicates)])
    found = {
        one.id: one.signature
        for one, other in duplicates
        if there.get(one.id) == one and there.get(other.id) == other and one.id not in kept
    }
    return _delete_found(writer, state, found)


def _delete_found(writer: Writer, state: State, found: dict[str, int]) -> State:
    """Remove documents that are there, given with the numbers of their signatures."""
    if not found:
        return state
    writer.delete_documents(state, list(found))
    state = replace(state, version=state.version + 1, documents=state.documents - len(found))
    state = _remove_unused(writer, state, set(found.values()))
    writer.save(state)
    return state


def _number_signatures(
    writer: Writer, state: State, signatures: Sequence[bytes]
) -> tuple[dict[bytes, int], Numbered]:
    """Return the number of each signature, and those that are new."""
    distinct = sorted(set(signatures))  # in the order of the index, which is quicker to look up
    numbers = writer.find_signatures(state, distinct) if state.signatures else {}
    new = [blob for blob in distinct if blob not in numbers]
    first = state.next_signature
    numbers.update(zip(new, range(first, first + len(new)), strict=True))
    rows = np.frombuffer(b"".join(new), np.uint8).reshape(len(new), state.row_bytes)
    return numbers, Numbered(np.arange(first, first + len(new), dtype=np.int64), rows)


def _remove_unused(writer: Writer, state: State, numbers: set[int]) -> State:
    """Remove those of the signatures that no document has any more."""
    if not numbers:
        return state
    old = writer.unused(state, np.array(sorted(numbers), np.int64))
    if not len(old):
        return state
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
