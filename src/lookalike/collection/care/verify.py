"""Check everything in a collection, and rebuild what can be derived."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from lookalike.collection.documents import as_document
from lookalike.collection.search.native import CachedIndex
from lookalike.collection.stores.base import StaleView, Store, View
from lookalike.collection.stores.schema import Numbered, Numbers, signer_hash
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


def verify(store: Store, name: str, native: CachedIndex) -> Report:
    """Read and check everything at one version.

    Memory stays constant: sets of keys are compared by the exclusive or of the hashes of their
    members. A table that cannot be read to its end is a problem like others; the remaining steps
    then check the newest version.
    """
    found = Report()
    steps = iter((_check_tables, _check_documents, _check_signatures, _check_parts))
    done = False
    while not done:
        state = None
        try:
            with store.reading() as view:
                state = store.known(view.find(name), name)
                for step in steps:
                    step(view.at(state), found)
                done = True
                found.cache = native.check_file(state)
        except CollectionError as error:
            if done or state is None or isinstance(error, CollectionBusyError | StaleView):
                raise
            found.problems.append(str(error))
    return found


def repair(store: Store, name: str, native: CachedIndex) -> Report:
    """Rebuild keys, counts, digest and the saved index from the documents and signatures.

    Documents that do not match their checksums are not changed: their content cannot be recovered.
    """
    native.forget()
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
        writer.save()
    with in_part(_REBUILT, 1):
        return verify(store, name, native)


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


def _key_digest(keys: Numbers, numbers: Numbers) -> int:
    return Numbered(numbers, keys.astype("<i8")[:, None].view(np.uint8)).digest()
