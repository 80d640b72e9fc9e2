"""Open, list and drop collections."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Literal, SupportsIndex, TypeAlias, get_args

from lookalike.checks import file_path, flag, one_of, whole_number
from lookalike.collection.collection import Collection
from lookalike.collection.query import PLANS, Plan
from lookalike.collection.search.native import forget_cache, remove_old_caches
from lookalike.collection.signing import WordKind, check_signer, check_words
from lookalike.collection.stores.address import open_store, parse_address
from lookalike.collection.stores.base import (
    TO_MAKE_ONE,
    NoCollectionsError,
    Store,
    View,
    checked_name,
)
from lookalike.collection.stores.schema import (
    MOST_BITS,
    MOST_SLICE_BITS,
    Slicing,
    State,
    default_slice_bits,
    signer_hash,
)
from lookalike.errors import ArgumentError, NotFoundError, Said
from lookalike.parts.signer import PartSigner
from lookalike.shown import brief
from lookalike.signatures import Signer, SimHash
from lookalike.signatures.minhash import ValueSigner
from lookalike.signatures.signer import DocumentSigner

Purpose: TypeAlias = Literal["search", "duplicates"]
PURPOSES = get_args(Purpose)
_USUAL_BITS = 128


def open_collection(
    url: str | os.PathLike[str],
    name: str = "documents",
    *,
    signer: Signer | None = None,
    bits: SupportsIndex | None = None,
    slice_bits: SupportsIndex | None = None,
    keep_text: bool = True,
    create: bool = True,
    plan: Plan = "native",
    cache: str | os.PathLike[str] | Literal[False] | None = None,
    timeout: float = 30.0,
    durable: bool = True,
    parts: bool = False,
    words: WordKind | None = None,
    purpose: Purpose | None = None,
) -> Collection:
    """Open a collection, or create it if it does not exist.

    An existing collection keeps its settings; another signer or width is an error.

    Args:
        url: An SQLite file (`docs.db`, `sqlite:///docs.db`) or the address of a PostgreSQL database
            (`postgresql://user@host/database`, extra `postgresql`). A database can have many
            collections.
        name: Name of the collection.
        signer: Signer of a new collection, stored with it. Documents of a signer of parts
            (`la.AudioHash`, `la.PassageHash`) have many signatures, which vote in searches.
        bits: Width of the signatures of a new collection without a signer.
        slice_bits: Width of the slices in the table of keys (default: derived from the width).
        keep_text: Whether to store texts.
        create: Whether to create a collection that does not exist.
        plan: Where searches run: "native", in an index in memory, or "sql", in the database.
        cache: Folder of saved indexes (default: beside the file, or in the user's cache folder);
            False saves none.
        timeout: Seconds to wait for locks.
        durable: Whether a write survives a power failure; False makes writes faster.
        parts: With `bits`: whether documents have many signatures.
        words: Keyword index of a new collection: "porter" compares English words by their stems,
            "plain" compares words as they are written, in lower case, and "trigram" compares runs
            of three characters of words (default: none). `search` then finds documents by a few
            words; `repair` adds such an index to a collection.
        purpose: Defaults of a new collection of texts: "search" for `signer=la.SimHash(bits=128)`
            and `words="porter"`, "duplicates" for the same signer without a keyword index.

    Examples:
        >>> with la.open_collection("notes.db", purpose="search") as notes:
        ...     _ = notes.add(["a", "b"], ["foxes jump over dogs", "owls sleep by day"])
        ...     [(match.id, match.words) for match in notes.search("jumping fox")]
        [('a', ('jumping', 'fox'))]
        >>> with la.open_collection("signed.db", "pages", bits=64) as pages:
        ...     pages
        Collection('pages', 64 bits, at ...signed.db)
        >>> la.list_collections("signed.db")
        ['pages']
        >>> la.drop_collection("signed.db", "pages")
    """
    address = parse_address(url)
    one_of("plan", plan, PLANS)
    create = flag("create", create)
    fresh, kind = signer, words
    if purpose is not None:
        fresh, kind = for_purpose(purpose, signer, bits, words)
    of_parts = flag("parts", parts) or isinstance(signer, PartSigner)
    wanted = _wanted(name, fresh, bits, slice_bits, keep_text, of_parts, kind)
    folder = address.cache_folder() if cache is None else None
    if cache is not None and cache is not False:
        folder = file_path("cache", cache)
    try:
        store = open_store(
            address, timeout=timeout, durable=durable, create=create and wanted is not None
        )
    except NoCollectionsError:
        raise _no_collection(name, address.shown, [], wanted is not None) from None
    try:
        state = _find_or_create(store, name, wanted, fresh, create)
        _refuse_other(state, signer, bits, slice_bits, parts, plan, words)
        store.remove_abandoned()
        if folder is not None:
            remove_old_caches(store, folder, of_this_database=cache is None)
    except BaseException:
        store.close()
        raise
    return Collection(store, state, plan=plan, cache=folder)


def list_collections(url: str | os.PathLike[str]) -> list[str]:
    """Return the names of the collections in a database."""
    return names_within(url, 30.0)


def names_within(url: str | os.PathLike[str], timeout: float) -> list[str]:
    """Return the names of the collections; wait `timeout` seconds for a locked database."""
    try:
        with _reading(url, timeout) as view:
            return [state.name for state in view.states()]
    except NoCollectionsError:
        return []


@contextmanager
def _reading(url: str | os.PathLike[str], timeout: float = 30.0) -> Iterator[View]:
    store = open_store(parse_address(url), timeout=timeout, create=False)
    with closing(store), store.reading() as view:
        yield view


def drop_collection(url: str | os.PathLike[str], name: str) -> None:
    """Remove a collection with all its documents; this cannot be undone.

    Only the tables of the collection are dropped. An SQLite file is kept, even if it is then empty.
    Tables, views and schemas that lookalike did not create are not changed.
    """
    address = parse_address(url)
    with closing(open_store(address, create=False)) as store, store.writing() as writer:
        state = store.known(writer.lock(checked_name(name)), name)
        writer.drop(state)
    forget_cache(address, state)


def remove_unused_file(path: str | os.PathLike[str]) -> bool:
    """Remove an SQLite file that lookalike created if nothing is left in it; return whether."""
    try:
        store = open_store(parse_address(path), create=False)
    except NotFoundError:
        return False
    with closing(store):
        return store.remove_file()


def holds_other_content(path: str | os.PathLike[str]) -> bool:
    """Return whether an SQLite file has other content than collections, or no collections."""
    try:
        with _reading(path) as view:
            return view.other_content()
    except NoCollectionsError:
        return True


def unused_file(path: str | os.PathLike[str]) -> bool:
    """Return whether an SQLite file has our tables, but no collection and no other content."""
    try:
        with _reading(path) as view:
            used = view.states() or view.states(hidden=True)
            return not used and not view.other_content()
    except NoCollectionsError:
        return False


def describe_signer(signer: Signer | None) -> str:
    """Return the description of a signer as it is stored."""
    if signer is None:
        return ""
    signer.check_persistent()
    return json.dumps(signer.to_dict(), sort_keys=True)


def check_purpose(purpose: object, signer: Signer | None) -> None:
    """Raise unless a collection with this signer, or with none yet, can have this purpose."""
    one_of("purpose", purpose, PURPOSES)
    if not isinstance(signer, DocumentSigner | None):
        raise ArgumentError(
            Said("purpose"),
            f" is {brief(purpose)}, which is for texts of one signature, and the signer is "
            f"{brief(signer)}; leave it out",
        )


def for_purpose(
    purpose: Purpose, signer: Signer | None, bits: SupportsIndex | None, words: WordKind | None
) -> tuple[Signer | None, WordKind | None]:
    """Return signer and keyword index of a new collection for this purpose."""
    check_purpose(purpose, signer)
    if signer is None and bits is None:
        signer = SimHash(bits=_USUAL_BITS)
    return signer, words or ("porter" if purpose == "search" else None)


def _wanted(
    name: str, signer: Signer | None, bits: SupportsIndex | None,
    slice_bits: SupportsIndex | None, keep_text: bool, parts: bool, words: WordKind | None,
) -> State | None:  # fmt: skip
    """Return the row of a new collection; None if the arguments do not describe one."""
    checked_name(name)
    check_signer(signer)
    if isinstance(signer, ValueSigner):
        raise ArgumentError(
            f"{signer.name} returns numbers, not bits, and their Hamming distance has no meaning; "
            "use ",
            Said("la.BBitMinHash", "--method bbitminhash"),
        )
    keep_text = flag("keep_text", keep_text)
    slices = None
    if slice_bits is not None:
        slices = whole_number("slice_bits", slice_bits, at_least=1, at_most=MOST_SLICE_BITS)
    width = None if bits is None else whole_number("bits", bits, at_least=8, at_most=MOST_BITS)
    if width is not None and width % 8:
        raise ArgumentError(Said("bits"), f" is {width}; expected a multiple of 8")
    if signer is not None:
        own = signer.bits
        if width not in (None, own):
            raise ArgumentError(
                Said("bits"), f" is {width}, but the signer gives {own}; leave it out"
            )
        width = whole_number("the signer's bits", own, at_least=8, at_most=MOST_BITS)
    if parts and signer is not None and not isinstance(signer, PartSigner):
        raise ArgumentError(
            "parts=True needs a signer of parts, such as la.PassageHash(la.SimHash()), or bits "
            f"without a signer; the signer is {brief(signer)}"
        )
    if isinstance(signer, PartSigner) and not signer.votes_decide:
        raise ArgumentError(
            f"a collection cannot have the signer {signer!r}: votes alone do not answer its "
            "searches; use la.CoverIndex, or la.AudioHash() for copies and snippets"
        )
    if parts and slices is not None:
        raise ArgumentError(Said("slice_bits"), " is for documents of one signature; leave it out")
    if words is not None:
        check_words(words, parts, signer)
    if width is None:
        return None
    slices = 0 if parts else slices or default_slice_bits(width)
    Slicing(width, slices)
    digest = signer_hash(describe_signer(signer))
    uid = os.urandom(16).hex()
    return State(0, name, uid, width, slices, keep_text, digest, parts=parts, words=words or "")


def _find_or_create(
    store: Store, name: str, wanted: State | None, signer: Signer | None, create: bool
) -> State:
    with store.reading() as view:
        state = view.find(name)
        if state is not None:
            return state
        others = [other.name for other in view.states()]
    if wanted is None or not create:
        raise _no_collection(name, store.shown, others, wanted is not None)
    with store.writing() as writer:
        return writer.lock(name) or writer.create(wanted, describe_signer(signer))


def _no_collection(name: str, shown: str, others: list[str], described: bool) -> NotFoundError:
    """Return the error for a collection that does not exist; `described` if it could be created."""
    known = f"; there are {others}" if others else ""
    hint = Said("; create=True creates it", TO_MAKE_ONE.typed) if described else TO_MAKE_ONE
    return NotFoundError(f"there is no collection {name!r} at {shown}{known}", hint)


def _refuse_other(
    state: State, signer: Signer | None, bits: SupportsIndex | None,
    slice_bits: SupportsIndex | None, parts: bool, plan: str, words: WordKind | None,
) -> None:  # fmt: skip
    """Refuse arguments that do not fit an existing collection."""
    if signer is not None and signer_hash(describe_signer(signer)) != state.signer:
        raise ArgumentError(
            f"the collection {state.name!r} has another signer than {signer!r}, so signatures "
            "cannot be compared; open it without a signer, or create another collection"
        )
    if bits is not None and int(bits) != state.bits:
        raise ArgumentError(f"the collection {state.name!r} has {state.bits} bits, not {bits}")
    if slice_bits is not None and int(slice_bits) != state.slice_bits:
        raise ArgumentError(
            f"the collection {state.name!r} has slices of {state.slice_bits} bits, "
            f"not {slice_bits}; leave slice_bits out"
        )
    if parts and not state.parts:
        raise ArgumentError(
            f"documents of the collection {state.name!r} have one signature each; leave parts "
            "out, or create another collection"
        )
    if words is not None and words != state.words:
        other = f"the keyword index {state.words!r}" if state.words else "no keyword index"
        raise ArgumentError(
            f"the collection {state.name!r} has {other}, not {words!r}; leave words out, or build "
            "one with repair(words=...)"
        )
    if state.parts and plan != "native":
        raise ArgumentError(
            f"plan is {plan!r}, but documents of the collection {state.name!r} have many parts, "
            "whose votes are counted only in memory; leave it out"
        )
