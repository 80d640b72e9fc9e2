"""Old items that `against` names by their signatures: in a file, an index or a collection."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike.checks import is_address
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.base import Index, StoredIndex
from lookalike.indexes.kinds import load_index, open_index
from lookalike.media import SignedItems
from lookalike.signatures.files import HEX_SUFFIXES, load_signatures
from lookalike.storage.container import is_container, open_container
from lookalike.storage.files import is_database, is_file

if TYPE_CHECKING:
    from lookalike.collection.collection import Collection

SUFFIX = ".lookalike"
_LISTS = (*HEX_SUFFIXES, ".npy", ".npz")
_DATABASES = ("sqlite", "postgresql", "postgres")
_TOGETHER = 1000  # documents that are read at a time


def is_collection(given: Any) -> bool:
    """Return whether this is a collection: the object, its file, or the address of a database."""
    if isinstance(given, str) and is_address(given):
        return given.partition("://")[0] in _DATABASES
    if isinstance(given, str | os.PathLike):
        return is_file(os.fspath(given)) and is_database(Path(given))
    if given is None or isinstance(given, list | tuple | dict | np.ndarray):
        return False
    from lookalike.collection.collection import Collection  # most jobs need none of it

    return isinstance(given, Collection)


def _is_path(given: Any) -> bool:
    return isinstance(given, str | os.PathLike) and not (
        isinstance(given, str) and is_address(given)
    )


def is_saved(given: Any) -> bool:
    """Return whether this is a file of signatures or of an index, whatever its name."""
    if not _is_path(given):
        return False
    known = Path(given).suffix.lower() == SUFFIX
    return known or (is_file(os.fspath(given)) and is_container(given))


def is_signed(given: Any, *, lists: bool = True) -> bool:
    """Return whether this has signatures of old items; `lists`: so have lists of hashes."""
    if is_saved(given):
        return True
    if lists and _is_path(given) and Path(given).suffix.lower() in _LISTS:
        return True
    return isinstance(given, StoredIndex) or is_collection(given)


def signed_items(given: Any, medium: str) -> SignedItems:
    """Return the old items in a file of signatures, an index or a collection of a medium."""
    if is_collection(given):
        with opened_collection(given, medium) as collection:
            return _of_collection(collection)
    if isinstance(given, str | os.PathLike):
        return _of_file(Path(given))
    return _of_index(given, f"the {type(given).__name__}")


def _of_file(path: Path) -> SignedItems:
    if path.suffix.lower() in _LISTS:
        return _of_index(open_index(path), str(path))
    if open_container(path, verify=False).meta.get("kind") == "signatures":
        saved = load_signatures(path)
        return SignedItems(str(path), saved.signer, saved.ids, saved.signatures)
    return _of_index(load_index(path), str(path))


def _of_index(index: Any, name: str) -> SignedItems:
    signer, whole = getattr(index, "signer", None), getattr(index, "parts", index)
    if hasattr(whole, "part_count"):
        items = list(whole.living())
        none = np.empty((0, whole.bits // 8), np.uint8)
        return SignedItems(
            name, signer, [str(item) for item, _ in items], none, [parts for _, parts in items]
        )
    if not isinstance(index, Index):
        raise ArgumentError(
            Said("against"), f" is {name}, a {type(index).__name__}; expected signatures"
        )
    signatures, numbers = index.living()
    names = index.names
    ids = [str(one) if names is None else str(names[one]) for one in numbers.tolist()]
    return SignedItems(name, signer, ids, np.ascontiguousarray(signatures))


@contextmanager
def opened_collection(given: Any, medium: str) -> Iterator[Collection]:
    """Yield a collection, or the only one of a medium in a database; "text" means documents."""
    from lookalike.collection.opening import list_collections, open_collection
    from lookalike.collection.stores.address import parse_address

    if not isinstance(given, str | os.PathLike):
        _check_medium(given, medium)
        yield given
        return
    shown = parse_address(given).shown
    found, others = list[str](), list[str]()
    for name in list_collections(given):
        with open_collection(given, name, create=False, cache=False) as collection:
            fits = _medium(collection) == medium
        (found if fits else others).append(name)
    if len(found) != 1:
        there = f"{len(found)} collections of {medium}" if found else f"no collection of {medium}"
        names = ", ".join(map(repr, (found or others)[:10])) or "none"
        raise ArgumentError(
            Said("against"),
            f" is {shown}, which has {there} (it has {names}); expected one",
            Said(", such as la.open_collection(URL, NAME)", ""),
        )
    with open_collection(given, found[0], create=False, cache=False) as collection:
        yield collection


def _medium(collection: Collection) -> str | None:
    signer = collection.signer
    return None if signer is None else signer.medium


def _check_medium(collection: Collection, medium: str) -> None:
    if _medium(collection) != medium:
        of = _medium(collection) or "signatures"
        raise ArgumentError(
            Said("against"),
            f" is the collection {collection.name!r} of {of}; expected one of {medium}",
        )


def write_texts(collection: Collection, path: Path) -> bool:
    """Write ids and texts of documents as JSON Lines; return whether all of them have texts."""
    with open(path, "w", encoding="utf-8") as file:
        for page in collection.pages(_TOGETHER):
            if any(one.text is None for one in page):
                return False
            for one in page:
                file.write(json.dumps({"id": one.id, "text": one.text}) + "\n")
    return True


def _of_collection(collection: Collection) -> SignedItems:
    from lookalike.collection.reading import pages_with_parts

    name, signer, width = f"the collection {collection.name!r}", collection.signer, collection.bits
    if collection.parts:
        found = [one for page in pages_with_parts(collection, _TOGETHER) for one in page]
        none = np.empty((0, width // 8), np.uint8)
        ids = [document.id for document, _ in found]
        return SignedItems(name, signer, ids, none, [parts for _, parts in found])
    documents = [one for page in collection.pages(_TOGETHER) for one in page]
    rows = np.array([one.signature for one in documents], np.uint8)
    signatures = rows.reshape(len(documents), width // 8)
    return SignedItems(name, signer, [one.id for one in documents], signatures)
