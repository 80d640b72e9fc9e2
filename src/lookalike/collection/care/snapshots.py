"""Snapshots of a collection: written while it is in use, and restored."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from lookalike.checks import flag
from lookalike.collection.documents import damaged, packed
from lookalike.collection.search.native import forget_cache, remove_if_old
from lookalike.collection.stores.address import open_store, parse_address
from lookalike.collection.stores.base import (
    HIDDEN,
    StaleView,
    Store,
    View,
    Writer,
    checked_name,
)
from lookalike.collection.stores.schema import Numbered, State, entry_kinds
from lookalike.errors import ArgumentError, CollectionError, FileError, NotFoundError, Said
from lookalike.operation import report
from lookalike.storage.files import SQLITE, is_there, whole_file

_BATCH = 50_000
_PARTS_BYTES = 64 << 20
_TRIES = 20
_GONE = "the copy was removed from the database while it was being written; try again"


def snapshot(store: Store, name: str, path: Path) -> None:
    """Write one collection, as it is at one moment, to a new SQLite file."""
    if is_there(path):
        raise FileError(f"{path} already exists; choose another name, or remove it")
    _remove_old_snapshots(path.absolute().parent)
    with whole_file(path) as temporary:
        pages = temporary.with_name(f"{temporary.name}-pages")
        try:
            if not store.copy_file(temporary):
                _copy_to_file(store, name, temporary)
            elif not _keep_only(temporary, name):
                temporary.rename(pages)
                with closing(open_store(parse_address(pages), create=False)) as copy:
                    _copy_to_file(copy, name, temporary)
        finally:
            for left in (pages.name, f"{pages.name}-journal", f"{temporary.name}-journal"):
                with suppress(OSError):
                    temporary.with_name(left).unlink()


def restore_collection(
    path: str | os.PathLike[str],
    url: str | os.PathLike[str],
    name: str | None = None,
    *,
    source: str | None = None,
    replace: bool = False,
) -> str:
    """Restore the collection of a snapshot into a database, and return its name there.

    Args:
        path: Snapshot, an SQLite file.
        url: Database.
        name: Name of the restored collection (default: as in the snapshot).
        source: Collection to restore, if the file has several.
        replace: Whether to replace a collection with that name, in one transaction at the end.

    >>> with la.open_collection("before.db", bits=64) as docs:
    ...     docs.snapshot("snapshot.db")
    >>> la.restore_collection("snapshot.db", "after.db", "restored")
    'restored'
    """
    replace = flag("replace", replace)
    source = None if source is None else checked_name(source)
    source_address, address = parse_address(path), parse_address(url)
    if source_address == address:
        raise ArgumentError(
            f"{address.shown} is both the snapshot and the database; choose another database"
        )
    with closing(open_store(source_address, create=False)) as origin, origin.reading() as view:
        state = _choose(view, source, origin.shown)
        with closing(open_store(address)) as target:
            new_name = checked_name(state.name if name is None else name)
            old = _restore(view.at(state), target, new_name, replace)
    if old is not None:
        forget_cache(address, old)
    return new_name


def _restore(view: View, target: Store, name: str, replace_old: bool) -> State | None:
    """Copy a collection under a hidden name, then rename it; return the one that it replaced."""
    with target.reading() as there:
        old = there.find(name)
        if old is not None and not replace_old:
            raise ArgumentError(
                f"there is a collection {name!r} at {target.shown}; ",
                Said("pass replace=True", "add --replace"),
                " to replace it, or give another ",
                Said("name"),
            )
    target.remove_abandoned()
    replaced, hidden = None if old is None else old.uid, HIDDEN + os.urandom(16).hex()
    with target.restoring():
        try:
            _copy(view, target, hidden)
            for _ in range(_TRIES):
                # Readers of the old tables may keep them from being removed.
                with suppress(StaleView):
                    return _put_in_place(target, hidden, name, replaced)
            return _put_in_place(target, hidden, name, replaced)
        except BaseException:
            with suppress(CollectionError), target.writing() as writer:
                left = writer.lock(hidden)
                if left is not None:
                    writer.drop(left)
            raise


def _put_in_place(target: Store, hidden: str, name: str, replaced: str | None) -> State | None:
    """Rename the copy and remove the collection with the uid `replaced`, in one step."""
    with target.writing() as writer:
        old, new = writer.lock(name), writer.lock(hidden)
        if old is not None and old.uid != replaced:
            raise ArgumentError(
                f"a collection {name!r} was created at {target.shown} meanwhile; none was replaced"
            )
        if new is None:
            raise CollectionError(_GONE)
        if old is not None:
            writer.drop(old)
        writer.rename(new, name)
    return old


def _copy_to_file(store: Store, name: str, path: Path) -> None:
    with closing(open_store(parse_address(path))) as target, store.reading() as view:
        _copy(view.at(store.known(view.find(name), name)), target, name)


def _copy(view: View, target: Store, name: str) -> None:
    """Copy a collection row by row, in batches, and check what has been copied."""
    state = view.state
    with target.writing() as writer:
        kind = (state.bits, state.slice_bits, state.keep_text, state.signer)
        uid = os.urandom(16).hex()
        fresh = State(
            0, name, uid, *kind, parts=state.parts, words=state.words, dimensions=state.dimensions
        )
        fresh = writer.create(fresh, view.checked_signer())
    signatures, total = 0, max(1, state.signatures + state.documents)
    for batch in view.all_signatures():
        with _writing_to(target, fresh) as writer:
            writer.insert_signatures(batch)
            writer.insert_keys(*fresh.slicing.key_rows(batch))
        signatures += len(batch)
        report(signatures, total)
        if state.parts:
            _copy_parts(view, batch, target, fresh)
    count = 0
    for page in view.pages(_BATCH):
        count += len(page)
        with _writing_to(target, fresh) as writer:
            writer.insert_documents([row for row, _ in page])
        report(signatures + count, total)
    if count != state.documents:
        raise damaged(f"{count} documents are there to be copied, not {state.documents}")
    for kind_of_entry in entry_kinds(state):
        for entries in view.all_entries(kind_of_entry):
            with _writing_to(target, fresh) as writer:
                writer.insert_entries(kind_of_entry, entries)
    with _writing_to(target, fresh) as writer:
        writer.state = replace(state, number=fresh.number, removals_from=state.version)
        writer.save()


def _copy_parts(view: View, batch: Numbered, target: Store, fresh: State) -> None:
    """Copy the parts behind the digests, some megabytes with each transaction."""
    waiting: list[tuple[int, bytes]] = []
    size = 0
    for number, parts in view.parts(batch):
        waiting.append((number, packed(*parts)))
        size += len(waiting[-1][1])
        if size > _PARTS_BYTES or number == batch.numbers[-1]:
            with _writing_to(target, fresh) as writer:
                writer.insert_parts(waiting)
            waiting, size = [], 0


@contextmanager
def _writing_to(target: Store, fresh: State) -> Iterator[Writer]:
    """Write to the copy; raise if it is gone, since another collection may have its number."""
    with target.writing() as writer:
        there = writer.lock(fresh.name)
        if there is None or there.uid != fresh.uid:
            raise CollectionError(_GONE)
        yield writer.at(fresh)


def _choose(view: View, source: str | None, shown: str) -> State:
    states = [state for state in view.states() if source in (None, state.name)]
    if len(states) != 1:
        names = [state.name for state in view.states()]
        raise NotFoundError(
            f"{shown} has the collections {names}; a snapshot has one: "
            if states
            else f"{shown} has no collection {source or ''!r}; there are {names}: ",
            Said(
                "choose the one to restore with source=",
                "create a snapshot of one with `lookalike collection snapshot`, and restore that",
            ),
        )
    return states[0]


def _keep_only(path: Path, name: str) -> bool:
    """Remove other collections from a copy of a file; False if it has other content as well."""
    with closing(open_store(parse_address(path), create=False)) as copy:
        with copy.reading() as view:
            if view.other_content():
                return False
            others = [state for state in view.states() if state.name != name]
            others += view.states(hidden=True)
        if others:
            with copy.writing() as writer:
                for state in others:
                    writer.drop(state)
            copy.compact()
    return True


def _remove_old_snapshots(folder: Path) -> None:
    try:
        paths = list(folder.iterdir())
    except OSError:
        return  # it does not exist, or may not be read
    for path in paths:
        if not re.fullmatch(r"\..+\.[0-9a-f]{12}\.tmp", path.name, re.DOTALL) or path.is_symlink():
            continue
        with suppress(OSError), open(path, "rb") as file:
            head = file.read(len(SQLITE))
            if head in (b"", SQLITE) and remove_if_old(path):
                path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
