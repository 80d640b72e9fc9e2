"""Write batches of documents, in the same way on every database.

A batch is one transaction, under the lock of the collection's row: new
signatures get numbers and keys, documents point at them, signatures without documents are removed,
words and vectors go to their tables, and the row gets the next version with its counts and digests.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import one_of
from lookalike.collection.documents import (
    Row,
    Seen,
    as_id,
    checksum,
    encode_metadata,
    encode_text,
    intact,
    now,
)
from lookalike.collection.query import listed
from lookalike.collection.signing import Signed, Signing
from lookalike.collection.stores.base import Writer
from lookalike.collection.stores.entries import Entries
from lookalike.collection.stores.schema import (
    VECTORS,
    WORDS,
    EntryKind,
    Numbered,
    Numbers,
    blobs,
    digest,
    entry_kinds,
)
from lookalike.collection.stores.words import bags_of
from lookalike.collection.vectors import VectorsInput, other_dimensions, packed_vectors
from lookalike.display import Displayed
from lookalike.errors import ArgumentError, BatchError, ItemError, Said

_KEPT_REMOVALS = 100_000
_TO_REPLACE = Said("use upsert()", "add --replace to replace it")


@dataclass(frozen=True, repr=False)
class Written(Displayed):
    """The result of writing or deleting a batch."""

    added: int = 0
    updated: int = 0
    deleted: int = 0
    errors: list[ItemError] = field(default_factory=list)
    """Invalid items that were not written, with `on_error="skip"`."""
    version: int = 0
    """The version of the collection after the batch."""


@dataclass(frozen=True)
class Items:
    """The valid items of a batch, ready to be written."""

    positions: list[int]  # positions in the batch
    ids: list[str]
    texts: list[bytes | None]
    metadata: list[str]
    vectors: list[bytes | None]  # packed; None for a document without one

    def only(self, kept: Sequence[int]) -> Items:
        """Return some of the items."""
        columns = (self.positions, self.ids, self.texts, self.metadata, self.vectors)
        return Items(*([column[place] for place in kept] for column in columns))  # type: ignore[arg-type]


@dataclass(frozen=True)
class BatchInput:
    """A batch as the caller gives it, in lists."""

    ids: list[Any]
    texts: list[Any] | None
    signatures: Any
    metadata: list[Any] | None
    vectors: VectorsInput | None
    skip: bool  # whether invalid items are left out; otherwise nothing is written if there are any
    replace: bool  # whether documents with the same ids are replaced; otherwise they are errors

    @classmethod
    def of(
        cls, ids: Any, texts: Any, signatures: Any, metadata: Any, vectors: Any, on_error: str,
        replace: bool,
    ) -> BatchInput:  # fmt: skip
        """Return the batch of `Collection.add` or `upsert`."""
        one_of("on_error", on_error, ("raise", "skip"))
        return cls(
            listed("ids", ids),
            None if texts is None else listed("texts", texts),
            signatures,
            None if metadata is None else listed("metadata", metadata),
            vectors,
            on_error == "skip",
            replace,
        )

    def checked(
        self,
        read: Callable[[Any], Signed],
        check_signs: Callable[[], None],
        keep_text: bool,
        dimensions: int,
    ) -> tuple[Items, Signed | None, list[ItemError]]:
        """Return the valid items, the given signatures of all, and what is wrong with others.

        `read` returns signatures; `check_signs` raises unless texts can be signed. `dimensions` are
        those of vectors, 0 if they are not known yet.
        """
        rows = None if self.signatures is None else read(self.signatures)
        vectors = None if self.vectors is None else packed_vectors(self.vectors, dimensions)
        counted: dict[str, Sized | None] = {
            "texts": self.texts, "signatures": rows, "vectors": vectors,
        }  # fmt: skip
        for name, values in {**counted, "metadata": self.metadata}.items():
            if values is not None and len(values) != len(self.ids):
                raise ArgumentError(
                    f"there are {len(self.ids)} ids and {len(values)} {name}; expected one for each"
                )
        if self.texts is None and rows is None:
            raise ArgumentError("neither texts nor signatures were given; pass one of them")
        if rows is None:
            check_signs()
        valid: dict[str, tuple[int, str, bytes | None, str, bytes | None]] = {}
        errors = []
        for position, given in enumerate(self.ids):
            try:
                id = as_id(given)
                if id in valid and not self.replace:
                    raise ArgumentError("the id is given more than once in this batch")
                text = None
                if self.texts is not None and (rows is None or self.texts[position] is not None):
                    text = encode_text(self.texts[position])
                described = (
                    "{}" if self.metadata is None else encode_metadata(self.metadata[position])
                )
                vector = None if vectors is None else vectors[position]
                if isinstance(vector, str):
                    raise ArgumentError(vector)
            except ArgumentError as error:
                errors.append(ItemError(position, given, str(error)))
                continue
            valid.pop(id, None)  # of several, the last one is written, at its place
            valid[id] = position, id, text if keep_text else None, described, vector
        if errors and not self.skip:
            raise BatchError(errors, len(self.ids))
        columns = map(list, zip(*valid.values(), strict=True)) if valid else ([] for _ in range(5))
        return Items(*columns), rows, errors


@dataclass(frozen=True)
class Batch:
    """Valid documents to be written, and what is wrong with others."""

    given: BatchInput
    items: Items
    signed: Signed
    errors: list[ItemError]

    @classmethod
    def of(cls, given: BatchInput, signing: Signing, keep_text: bool, dimensions: int) -> Batch:
        """Check all items, and sign the texts unless there are signatures."""
        items, rows, errors = given.checked(
            signing.given, signing.check_signs, keep_text, dimensions
        )
        if rows is not None:
            return cls(given, items, rows.only(items.positions), errors)
        texts = [given.texts[at] for at in items.positions] if given.texts else []
        rows, wrong = signing.sign_each(texts)
        if wrong:
            errors += [
                ItemError(items.positions[at], items.ids[at], f"the {signing.noun} {reason}")
                for at, reason in wrong.items()
            ]
            errors.sort(key=lambda error: error.position)
            if not given.skip:
                raise BatchError(errors, len(given.ids))
            items = items.only([at for at in range(len(items.ids)) if at not in wrong])
        return cls(given, items, rows, errors)

    def words(self, kind: str) -> list[bytes]:
        """Return the words of each document; none of a document without a text."""
        texts = self.given.texts or [None] * len(self.given.ids)
        return bags_of([texts[at] or "" for at in self.items.positions], kind)

    def without(self, known: Container[str]) -> Batch:
        """Return the batch without documents whose ids exist already, which are errors."""
        errors = [
            ItemError(position, id, "a document with this id exists", _TO_REPLACE, exists=True)
            for position, id in zip(self.items.positions, self.items.ids, strict=True)
            if id in known
        ]
        errors = sorted(self.errors + errors, key=lambda error: error.position)
        if not self.given.skip:
            raise BatchError(errors, len(self.given.ids))
        kept = [place for place, id in enumerate(self.items.ids) if id not in known]
        return replace(
            self, items=self.items.only(kept), signed=self.signed.only(kept), errors=errors
        )


def write_batch(writer: Writer, batch: Batch) -> Written:
    """Write a batch."""
    before, fresh = writer.state, not batch.given.replace
    known = writer.find_documents(batch.items.ids) if fresh and before.documents else {}
    if known:
        batch = batch.without(known)
    if not batch.items.ids:
        return Written(errors=batch.errors, version=before.version)
    _write_documents(writer, batch, fresh)
    added = writer.state.documents - before.documents
    updated = len(batch.items.ids) - added
    return Written(added, updated, errors=batch.errors, version=writer.state.version)


def _write_documents(writer: Writer, batch: Batch, fresh: bool) -> None:
    """Write documents in place of those with the same ids; if `fresh`, there are none."""
    state, items, signed = writer.state, batch.items, batch.signed
    known = state.documents > 0 and not fresh
    replaced = writer.documents(items.ids, text=False) if known else []
    found = {row.id: (row, intact(row, signature, text=False)) for row, signature in replaced}
    rows_of_bytes = blobs(signed.rows)
    numbers, new = _number_signatures(writer, rows_of_bytes)
    time = now()
    rows = []
    for id, blob, text, metadata in zip(
        items.ids, rows_of_bytes, items.texts, items.metadata, strict=True
    ):
        old, trusted = found.get(id, (None, False))
        added = old.added if old and trusted else time  # a damaged time is not passed on
        updated = max(time, added)  # clocks may be set back
        value = checksum(id, blob, text, metadata, added, updated)
        rows.append(Row(id, numbers[blob], text, metadata, added, updated, value))

    if len(new):
        writer.insert_signatures(new)
        writer.insert_keys(*state.slicing.key_rows(new))
        if state.parts:
            packed = dict(zip(rows_of_bytes, signed.parts, strict=True))
            parts = [packed[blob] for blob in blobs(new.signatures)]
            writer.insert_parts(list(zip(new.numbers.tolist(), parts, strict=True)))
    if found:
        writer.delete_documents(list(found))
    writer.insert_documents(rows)
    writer.state = replace(
        state,
        version=state.version + 1,
        documents=state.documents + len(rows) - len(found),
        signatures=state.signatures + len(new),
        next_signature=state.next_signature + len(new),
        digest=state.digest ^ new.digest(),
    )
    _remove_unused(writer, {row.signature for row, _ in found.values()} - {*numbers.values()})
    if state.words:
        _replace_entries(writer, WORDS, list(found), items.ids, batch.words(state.words))
    _replace_vectors(writer, list(found), items)
    writer.save()


def delete_documents(writer: Writer, ids: Sequence[str]) -> Written:
    """Remove the documents that are there."""
    return _delete_found(writer, writer.find_documents(ids))


def delete_duplicates(writer: Writer, duplicates: Sequence[tuple[Seen, Seen]]) -> Written:
    """Remove duplicates, given with their kept documents, if both are as they were compared."""
    kept = {other.id for _, other in duplicates}
    there = writer.seen([*kept, *(one.id for one, _ in duplicates)])
    found = {
        one.id: one.signature
        for one, other in duplicates
        if there.get(one.id) == one and there.get(other.id) == other and one.id not in kept
    }
    return _delete_found(writer, found)


def _delete_found(writer: Writer, found: Mapping[str, int]) -> Written:
    """Remove documents, given with the numbers of their signatures."""
    state = writer.state
    if not found:
        return Written(version=state.version)
    writer.delete_documents(list(found))
    documents = state.documents - len(found)
    writer.state = replace(state, version=state.version + 1, documents=documents)
    _remove_unused(writer, set(found.values()))
    for kind in entry_kinds(state):
        _replace_entries(writer, kind, list(found), [], [])
    writer.save()
    return Written(deleted=len(found), version=writer.state.version)


def _number_signatures(
    writer: Writer, signatures: Sequence[bytes]
) -> tuple[dict[bytes, int], Numbered]:
    """Return the number of each signature, and those that are new."""
    state = writer.state
    distinct = sorted(set(signatures))  # in the order of the index, for faster lookups
    numbers = writer.find_signatures(distinct) if state.signatures else {}
    new = [blob for blob in distinct if blob not in numbers]
    first = state.next_signature
    numbers.update(zip(new, range(first, first + len(new)), strict=True))
    rows = np.frombuffer(b"".join(new), np.uint8).reshape(len(new), state.row_bytes)
    return numbers, Numbered(np.arange(first, first + len(new), dtype=np.int64), rows)


def _remove_unused(writer: Writer, numbers: set[int]) -> None:
    """Remove those of the signatures that no document has any more."""
    if not numbers:
        return
    old = writer.unused(np.array(sorted(numbers), np.int64))
    if not len(old):
        return
    state, hashed = writer.state, old.hashes()
    writer.delete_keys(*state.slicing.key_rows(old))
    writer.delete_signatures(old.numbers)
    _log_removals(writer, "removals", old.numbers, hashed)
    writer.state = replace(
        writer.state,
        signatures=state.signatures - len(old),
        digest=state.digest ^ digest(hashed),
    )


def _replace_vectors(writer: Writer, removed: Sequence[str], items: Items) -> None:
    """Replace the vectors of documents; the first vectors of a collection fix the dimensions."""
    new = {id: one for id, one in zip(items.ids, items.vectors, strict=True) if one is not None}
    state = writer.state
    if new:
        dimensions = len(next(iter(new.values()))) // 4
        if not state.dimensions:
            writer.create_entries(VECTORS)
            writer.state = replace(state, dimensions=dimensions)
        elif state.dimensions != dimensions:  # another process has written the first ones
            raise ArgumentError(f"the vectors {other_dimensions(dimensions, state.dimensions)}")
    if writer.state.dimensions:
        _replace_entries(writer, VECTORS, removed, [*new], [*new.values()])


def _replace_entries(
    writer: Writer,
    kind: EntryKind,
    removed: Sequence[str],
    ids: Sequence[str],
    values: Sequence[bytes],
) -> None:
    """Remove the entries of documents, then add those of documents."""
    digest_of, count = getattr(writer.state, kind.digest), 0
    if removed:
        numbers, hashed = writer.delete_entries(kind, removed)
        _log_removals(writer, kind.removals, numbers, hashed)
        digest_of, count = digest_of ^ digest(hashed), count - len(numbers)
    first = getattr(writer.state, kind.next)
    if ids:
        new = Entries.of(first, ids, values)
        writer.insert_entries(kind, new)
        digest_of, count = digest_of ^ new.digest(), count + len(new)
    changed = {kind.digest: digest_of, kind.next: first + len(ids)}
    if kind is VECTORS:  # the words of each document are there, so their number is known
        changed[kind.count] = writer.state.vectors + count
    writer.state = replace(writer.state, **changed)


def _log_removals(writer: Writer, kind: str, numbers: Numbers, hashed: NDArray[np.uint64]) -> None:
    """Note what was removed, and forget the oldest removals from time to time."""
    writer.log_removals(kind, numbers, hashed)
    if writer.state.version % 64 == 0 or len(numbers) > _KEPT_REMOVALS:
        known_from = writer.trim_removals(kind, _KEPT_REMOVALS)
        writer.state = replace(writer.state, removals_from=known_from)
