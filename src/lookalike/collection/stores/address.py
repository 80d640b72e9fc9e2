"""Addresses of databases, and the registry of kinds of databases.

An address is the name of a file, which is an SQLite database, or `scheme://...`. The scheme names
the store in `STORES`. An installed package adds a store through an entry point:

    [project.entry-points."lookalike.stores"]
    my-database = "my_package.store:MyStore"
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lookalike.checks import flag
from lookalike.errors import ArgumentError
from lookalike.registry import Registry
from lookalike.storage.files import user_cache_folder

if TYPE_CHECKING:
    from lookalike.collection.stores.base import Store

STORES: Registry[type[Store]] = Registry(
    "kind of database",
    "lookalike.stores",
    {
        "sqlite": "lookalike.collection.stores.sqlite:SqliteStore",
        "postgresql": "lookalike.collection.stores.postgresql:PostgresStore",
        "postgres": "lookalike.collection.stores.postgresql:PostgresStore",
    },
)
"""The stores, each by the scheme of its addresses."""
EXPECTED = "expected a file name such as docs.db, sqlite:///docs.db, or postgresql://host/database"


@dataclass(frozen=True)
class Address:
    """A database: a file, or the address of a server. Only `url` has the password."""

    store: str  # the name of the store in `STORES`
    path: Path | None
    url: str = field(repr=False)
    shown: str  # the address without its password, for messages

    def cache_folder(self) -> Path | None:
        """Return the folder of saved indexes: beside the file, or in the user's cache folder."""
        if self.path is not None:
            return self.path.with_name(self.path.name + ".cache")
        import hashlib  # takes milliseconds to import, which most callers do not need

        folder = user_cache_folder()
        return folder and folder / hashlib.sha256(self.shown.encode()).hexdigest()[:16]


def parse_address(url: str | os.PathLike[str]) -> Address:
    """Return an address; raise without repeating what may be a password."""
    text = os.fspath(url) if isinstance(url, str | os.PathLike) else None
    if not isinstance(text, str):
        raise ArgumentError(
            f"the address of a collection is of type {type(url).__name__}; {EXPECTED}"
        )
    wrong = "" if text else "is empty"
    if "\0" in text:
        wrong = "contains the character NUL"
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        wrong = "contains half of a surrogate pair, which is not a character"
    if wrong:
        raise ArgumentError(f"the address of a collection {wrong}; {EXPECTED}")
    scheme, separator, rest = text.partition("://")
    if not separator:
        return STORES["sqlite"].parse("", text)
    named = re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme)
    if not named or scheme not in STORES:
        raise ArgumentError(
            "the address of a collection is of "
            f"{f'the kind {scheme}://' if named else 'no known kind'}; {EXPECTED}"
        )
    return STORES[scheme].parse(scheme, rest)


def open_store(
    address: Address, *, timeout: float = 30.0, durable: bool = True, create: bool = True
) -> Store:
    """Return the database behind an address."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout <= 1e6:
        raise ArgumentError(f"timeout is {timeout!r}; expected seconds, from 0 to a million")
    durable = flag("durable", durable)
    return STORES[address.store](address, timeout=timeout, durable=durable, create=create)


def hide_passwords(text: str) -> str:
    """Return text with stars for passwords."""
    text = re.sub(r"(\w://[^\s:@/]*:)\S*@", r"\1***@", text)
    return re.sub(r"(?i)((?:password|secret)\w*=)[^\s&'\"]+", r"\1***", text)
