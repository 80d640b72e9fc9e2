"""Check everything in a collection, and rebuild what can be derived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lookalike.collection.documents import Row, as_document, decoded_text
from lookalike.collection.search.native import CachedIndex
from lookalike.collection.stores.base import StaleView, Store, View, Writer
from lookalike.collection.stores.entries import Entries
from lookalike.collection.stores.schema import (
    VECTORS,
    WORDS,
    Numbered,
    Numbers,
    digest,
    signer_hash,
)
from lookalike.collection.stores.words import bags_of
from lookalike.collection.vectors import unpacked_vectors
from lookalike.display import Displayed
from lookalike.errors import CollectionBusyError, CollectionError
from lookalike.operation import in_part, report
from lookalike.shown import counted

_PAGE = 2_000
_MOST_NAMED = 20
_REBUILT = 0.5  # share of a repair that is done before it verifies


@dataclass(repr=False)
class Report(Displayed):
    """The result of `verify` and `repair`."""

    documents: int = 0
    signatures: int = 0
    keys: int = 0
    """Like `documents` and `signatures`, the number that was checked."""
    problems: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    """Ids of documents that do not match their checksums, at most twenty."""
    cache: str | None = None
    """What is wrong with the saved index, if anything; it is rebuilt automatically."""

    @property
    def ok(self) -> bool:
        """Whether the database has no problems."""
        return not self.problems


def verify(store: Store, name: str, caches: Sequence[CachedIndex]) -> Report:
    """Read and check everything at one version.

    Memory stays constant: sets of keys are compared by the exclusive or of the hashes of their
    members. A table that cannot be read to its end is a problem like others; the remaining steps
    then check the newest version.
    """
    found = Report()
    steps = iter(
        (
            _check_tables, _check_documents, _check_signatures, _check_parts, _check_words,
            _check_vectors,
        )
    )  # fmt: skip
    done = False
    while not done:
        state = None
        try:
            with store.reading() as view:
                state = store.known(view.find(name), name)
                for step in steps:
                    step(view.at(state), found)
                done = True
                wrong = [cached.check_file(state) for cached in caches]
                found.cache = next(filter(None, wrong), None)
        except CollectionError as error:
            if done or state is None or isinstance(error, CollectionBusyError | StaleView):
                raise
            found.problems.append(str(error))
    return found


def repair(store: Store, name: str, caches: Sequence[CachedIndex], words: str) -> Report:
    """Rebuild keys, counts, digests and saved indexes from the documents and signatures.

    Documents that do not match their checksums are not changed: their content cannot be recovered.
    Afterwards there is a keyword index of the kind `words`, if that is not empty.
    """
    for cached in caches:
        cached.forget()
    with store.writing() as database:
        state = store.known(database.lock(name), name)
        writer = database.at(state)
        writer.rebuild_indexes()
        value, count, last = 0, 0, 0
        lost: list[int] = []
        for batch in list(writer.signatures_after(-1)):
            unused = writer.unused(batch.numbers).numbers
            lost += unused.tolist()
            used = ~np.isin(batch.numbers, unused)
            kept = Numbered(batch.numbers[used], batch.signatures[used])
            writer.insert_keys(*state.slicing.key_rows(kept))
            value ^= kept.digest()
            count += len(kept)
            last = int(batch.numbers[-1])
            report(_REBUILT * count, max(1, state.signatures))
        writer.delete_signatures(np.array(lost, np.int64))
        documents = sum(len(page) for page in writer.pages(_PAGE, text=False))
        writer.state = replace(
            state,
            version=state.version + 1,
            documents=documents,
            signatures=count,
            next_signature=max(state.next_signature, last + 1),
            digest=value,
            removals_from=state.version + 1,  # indexes of earlier versions are built again
        )
        if words:
            _rebuild_words(writer, words)
        if state.dimensions:
            _recount_vectors(writer)
        writer.save()
    with in_part(_REBUILT, 1):
        return verify(store, name, caches)


def _recount_vectors(writer: Writer) -> None:
    """Count vectors and their hashes, without those of no document; damaged ones stay damaged."""
    state = writer.state
    numbers, hashed = writer.remove_lone_entries(VECTORS)
    writer.forget_entries(VECTORS, before=0)
    writer.state = replace(
        state,
        vectors=len(numbers),
        next_vectors=max(state.next_vectors, int(numbers.max(initial=0)) + 1),
        vectors_digest=digest(hashed),
    )


def _rebuild_words(writer: Writer, kind: str) -> None:
    """Make the keyword index again: from the texts, or where there are none, from what it has."""
    state = writer.state
    if not state.words:
        writer.create_entries(WORDS)
    following, value = state.next_words, 0
    for page in writer.pages(_PAGE):
        ids, texts = [row.id for row, _ in page], [_text(row) for row, _ in page]
        known = writer.words_of([id for id, text in zip(ids, texts, strict=True) if text is None])
        bags = bags_of([text or "" for text in texts], kind)
        kept = [known.get(id, bag) for id, bag in zip(ids, bags, strict=True)]
        new = Entries.of(following, ids, kept)
        writer.delete_entries(WORDS, ids)
        writer.insert_entries(WORDS, new)
        following, value = following + len(new), value ^ new.digest()
    writer.forget_entries(WORDS, before=state.next_words)
    writer.state = replace(state, words=kind, next_words=following, words_digest=value)


def _text(row: Row) -> str | None:
    """Return the text of a row; None if there is none, or it is damaged."""
    try:
        return decoded_text(row)
    except CollectionError:
        return None


def _check_tables(view: View, found: Report) -> None:
    """Ask the database itself, and count."""
    found.problems += view.problems()
    if signer_hash(view.signer()) != view.state.signer:
        found.problems.append("the description of the signer has changed")


def _check_documents(view: View, found: Report) -> None:
    try:
        for page in view.pages(_PAGE):
            found.documents += len(page)
            _report(view, found)
            for row, signature in page:
                try:
                    as_document(row, signature)
                except CollectionError:
                    found.damaged.append(row.id)
    finally:
        if found.damaged:
            found.problems.append(
                f"{counted(len(found.damaged), 'document')} with a wrong checksum, such as "
                f"{found.damaged[0]!r}"
            )
            del found.damaged[_MOST_NAMED:]


def _check_signatures(view: View, found: Report) -> None:
    """Compare the keys in the table with those of the signatures, position by position."""
    state, slicing, problems = view.state, view.state.slicing, found.problems
    expected = [0] * slicing.count
    whole = 0
    for batch in view.signatures_after(-1):
        found.signatures += len(batch)
        _report(view, found)
        whole ^= batch.digest()
        for position, keys in enumerate(slicing.keys(batch.signatures)):
            expected[position] ^= _key_digest(keys, batch.numbers)
        if int(batch.numbers[-1]) >= state.next_signature:
            problems.append(f"the signature {batch.numbers[-1]} has a number not given out yet")
    if whole != state.digest:
        problems.append("the signatures do not match the digest in the row of the collection")
    for position in range(slicing.count):
        stored, rows = 0, 0
        for keys, numbers in view.key_rows(position):
            stored ^= _key_digest(keys, numbers)
            rows += len(keys)
        found.keys += rows
        _report(view, found)
        if rows != found.signatures or stored != expected[position]:
            problems.append(
                f"slice {position} has {rows} keys for {found.signatures} signatures, or keys of "
                "others"
            )


def _report(view: View, found: Report) -> None:
    state = view.state
    expected = state.documents + state.signatures * (1 + state.slicing.count)
    report(found.documents + found.signatures + found.keys, max(1, expected))


def _check_parts(view: View, found: Report) -> None:
    if view.state.parts:
        for batch in view.signatures_after(-1):
            for _ in view.parts(batch):
                pass  # whatever is wrong raises


def _check_words(view: View, found: Report) -> None:
    """Compare the keyword index with its digest, and with the stored texts."""
    if not view.state.words:
        return
    for batch in view.all_entries(WORDS):
        for begin in range(0, len(batch), _PAGE):
            _compare_words(view, batch.ids[begin : begin + _PAGE], found)


def _check_vectors(view: View, found: Report) -> None:
    dimensions = view.state.dimensions
    if dimensions:
        for batch in view.all_entries(VECTORS):
            unpacked_vectors(batch.values(), dimensions)  # raises if one is not valid


def _compare_words(view: View, ids: list[str], found: Report) -> None:
    rows, bags = view.documents(ids), view.words_of(ids)
    texts = {row.id: text for row, _ in rows if (text := _text(row)) is not None}
    expected = zip(texts, bags_of([*texts.values()], view.state.words), strict=True)
    wrong = [id for id, bag in expected if bags.get(id) != bag]
    if wrong:
        found.problems.append(
            f"the keyword index has other words than the document {wrong[0][:80]!r}"
        )


def _key_digest(keys: Numbers, numbers: Numbers) -> int:
    return Numbered(numbers, keys.astype("<i8")[:, None].view(np.uint8)).digest()
