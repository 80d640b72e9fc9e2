"""The collections that are served: those of a database, or one for each file of a folder.

Names in addresses are strict, so that nothing of them can lead to another file. In a folder, the
collection `pages` is the file `pages.db`, which holds this one collection.
"""

from __future__ import annotations

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lookalike.collection import (
    Collection,
    drop_collection,
    list_collections,
    open_collection,
)
from lookalike.collection.opening import collections_by_parts
from lookalike.collection.stores.address import Address, parse_address
from lookalike.errors import (
    BatchError,
    CollectionBusyError,
    CollectionError,
    FileError,
    NotFoundError,
)
from lookalike.parts.signer import PartSigner
from lookalike.service.problems import Problem
from lookalike.shown import brief, shown
from lookalike.signatures import Signer

__all__ = ["NAME", "DatabaseLibrary", "FolderLibrary", "Library", "open_library"]

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""What names of collections look like."""

_PARTS = (
    "has documents of many parts (recordings, passages), which are not served: use it with "
    "la.open_collection, or `lookalike collection`, where its database is"
)
_REPLACED = 10
"""Times that a collection may be replaced while somebody asks it something."""

_NAME = re.compile(NAME.strip("^$"))
T = TypeVar("T")


def open_for_strangers(url: str, name: str) -> Collection:
    """Open a collection that is there; paths in it, or in queries, are texts and nothing else.

    Or whoever may write to a collection of images could have any file of this machine read.
    """
    docs = open_collection(url, name, create=False)
    if docs.parts:
        docs.close()
        raise Problem(422, "parts", f"the collection {brief(name)} {_PARTS}")
    docs.reads_files = False
    return docs


class Library(ABC):
    """Collections by name, each opened once; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._open: dict[str, Collection] = {}

    @property
    @abstractmethod
    def shown(self) -> str:
        """Where the collections are, for people."""

    @property
    @abstractmethod
    def source(self) -> str:
        """What `open_library` opens it by, in another process too."""

    @property
    @abstractmethod
    def snapshots(self) -> Path | None:
        """The folder for snapshots, unless another one is set."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the collections there are, sorted."""

    def taken(self) -> list[str]:
        """Return the names that a new collection cannot have."""
        return self.names()

    @abstractmethod
    def place(self, name: str) -> tuple[str, str]:
        """Return the address of a collection's database, and its name there."""

    def left_out(self) -> list[str]:
        """Return what is not served, and why."""
        return []

    def opened(self) -> dict[str, Collection]:
        """Return those collections that are open."""
        with self._lock:
            return dict(self._open)

    def opened_now(self, name: str) -> Collection | None:
        """Return a collection if it is open; this waits for nothing."""
        return self._open.get(name)

    def collection(self, name: str) -> Collection:
        """Return a collection, opened if it is not yet."""
        found = self._open.get(name)
        if found is not None:
            return found
        check_name(name)
        opened = self._opened(name)
        with self._lock:
            found = self._open.setdefault(name, opened)
        if found is not opened:
            opened.close()
        return found

    def create(
        self, name: str, signer: Signer | None, bits: int | None, keep_text: bool
    ) -> Collection:
        """Make a collection; one that is there already is a conflict."""
        check_name(name)
        if isinstance(signer, PartSigner):
            raise Problem(422, "parts", f"the collection {brief(name)} {_PARTS}")
        with self._making:
            if name in self.taken():
                raise Problem(
                    409, "exists", f"there is a collection {name!r}; delete it, or take another "
                    "name",
                )  # fmt: skip
            url, inner = self.place(name)
            made = open_collection(url, inner, signer=signer, bits=bits, keep_text=keep_text)
            made.reads_files = False
        with self._lock:
            self._open[name] = made
        return made

    def drop(self, name: str) -> None:
        """Remove a collection with all it holds."""
        check_name(name)
        with self._making:
            if name not in self.names():
                raise missing(name)
            self._remove(name)
        with self._lock:
            self._open.pop(name, None)

    def use(self, name: str, work: Callable[[Collection], T]) -> T:
        """Do something with a collection.

        If it was dropped and made anew elsewhere, with another signer, what is there now is used:
        nothing has been written by then.
        """
        for _ in range(_REPLACED):
            docs = self.collection(name)
            try:
                return work(docs)
            except (BatchError, CollectionBusyError):
                raise
            except CollectionError as error:
                if self._replaced(name, docs):
                    continue
                if self._gone(name, error):
                    raise missing(name) from None
                raise
        raise CollectionBusyError(
            f"the collection {name!r} is replaced by others again and again; try later"
        )

    def close(self) -> None:
        """Close all collections; their indexes are saved."""
        with self._lock:
            opened, self._open = list(self._open.values()), {}
        for docs in opened:
            docs.close()

    def _replaced(self, name: str, docs: Collection) -> bool:
        """Return whether another collection has this name now, and open that."""
        try:
            now = self._opened(name)
        except (CollectionError, FileError):
            with self._lock:
                self._open.pop(name, None)
            return False
        if now._opened.uid == docs._opened.uid:
            now.close()
            return False
        with self._lock:
            self._open[name] = now  # the other is closed when its last user lets it go
        return True

    def _gone(self, name: str, error: CollectionError) -> bool:
        return isinstance(error, NotFoundError) and name not in self._open

    @abstractmethod
    def _opened(self, name: str) -> Collection: ...

    @abstractmethod
    def _remove(self, name: str) -> None: ...


class DatabaseLibrary(Library):
    """The collections of one database."""

    def __init__(self, address: Address) -> None:
        super().__init__()
        self._address = address
        self._url = str(address.path) if address.path is not None else address.url

    @property
    def shown(self) -> str:
        """Where the collections are, for people."""
        return self._address.shown

    @property
    def source(self) -> str:
        """The address of the database."""
        return self._url

    @property
    def snapshots(self) -> Path | None:
        """The folder beside the file."""
        path = self._address.path
        return None if path is None else path.with_name(path.name + ".snapshots")

    def names(self) -> list[str]:
        """Return the names of the collections there are, sorted."""
        return [name for name, parts in self._all().items() if _NAME.fullmatch(name) and not parts]

    def taken(self) -> list[str]:
        """Return the names that a new collection cannot have."""
        return list(self._all())

    def left_out(self) -> list[str]:
        """Return the collections of parts, and those whose names cannot be part of an address."""
        reasons = []
        for name, parts in self._all().items():
            if not _NAME.fullmatch(name):
                wrong = ": its name is not of letters, digits, '.', '_' and '-'"
                reasons.append(f"the collection {brief(name)}{wrong}")
            elif parts:
                reasons.append(f"the collection {brief(name)} {_PARTS}")
        return reasons

    def place(self, name: str) -> tuple[str, str]:
        """Return the address of a collection's database, and its name there."""
        return self._url, name

    def _all(self) -> dict[str, bool]:
        try:
            return collections_by_parts(self._url)
        except NotFoundError:
            return {}

    def _opened(self, name: str) -> Collection:
        try:
            return open_for_strangers(self._url, name)
        except NotFoundError:
            raise missing(name) from None

    def _remove(self, name: str) -> None:
        drop_collection(self._url, name)


class FolderLibrary(Library):
    """A collection for each file of a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder.absolute()

    @property
    def shown(self) -> str:
        """Where the collections are, for people."""
        return str(self._folder)

    @property
    def source(self) -> str:
        """The folder."""
        return str(self._folder)

    @property
    def snapshots(self) -> Path | None:
        """A folder in the folder."""
        return self._folder / ".snapshots"

    def names(self) -> list[str]:
        """Return the names of the files that hold one collection each, sorted."""
        files = self._files()
        return sorted(name for name, inner in files.items() if list(inner.values()) == [False])

    def taken(self) -> list[str]:
        """Return the names that a new collection cannot have."""
        return [name for name, inner in self._files().items() if len(inner) == 1]

    def left_out(self) -> list[str]:
        """Return the files that hold none or several collections, or one of parts."""
        reasons = []
        for name, inner in self._files().items():
            file = brief(name + ".db")
            if len(inner) != 1:
                reasons.append(
                    f"{file} holds {len(inner)} collections, not one: serve it by itself"
                )
            elif any(inner.values()):
                reasons.append(f"the collection of {file} {_PARTS}")
        return reasons

    def place(self, name: str) -> tuple[str, str]:
        """Return the address of a collection's database, and its name there."""
        check_name(name)
        path = self._folder / f"{name}.db"
        if path.is_symlink():
            raise missing(name)
        inner = list_collections(path) if path.exists() else []
        return str(path), inner[0] if len(inner) == 1 else name

    def _files(self) -> dict[str, dict[str, bool]]:
        found: dict[str, dict[str, bool]] = {}
        for entry in os.scandir(self._folder):
            name = entry.name.removesuffix(".db")
            if entry.name == name or not _NAME.fullmatch(name):
                continue
            if not entry.is_file(follow_symlinks=False):
                continue
            try:
                found[name] = collections_by_parts(entry.path)
            except (CollectionError, FileError):
                found[name] = {}
        return found

    def _opened(self, name: str) -> Collection:
        url, inner = self.place(name)
        try:
            return open_for_strangers(url, inner)
        except NotFoundError:
            raise missing(name) from None

    def _remove(self, name: str) -> None:
        url, inner = self.place(name)
        drop_collection(url, inner)
        for path in (Path(url), Path(f"{url}-journal")):
            path.unlink(missing_ok=True)


def open_library(place: str | os.PathLike[str]) -> Library:
    """Return the library of a folder, a file or a database."""
    text = os.fspath(place)
    if "://" not in text and os.path.isdir(text):  # noqa: PTH112  # takes every name
        return FolderLibrary(Path(text))
    address = parse_address(text)
    if address.path is not None:
        folder = Path(text) if text.endswith(os.sep) else address.path.absolute().parent
        if not folder.is_dir():
            raise FileError(f"there is no folder {shown(str(folder))}; make it, or name another")
    return DatabaseLibrary(address)


def check_name(name: str) -> str:
    """Return a name that can be one of a collection here, else raise."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Problem(
            422, "name", f"the name is {brief(name)}; expected 1 to 64 letters, digits, '.', '_' "
            "and '-', beginning with a letter or digit",
        )  # fmt: skip
    return name


def missing(name: str) -> Problem:
    """Return the answer for a collection that is not there."""
    return Problem(
        404, "not_found", f"there is no collection {brief(name)}; GET /v1/collections lists those "
        "there are", kind="NotFoundError",
    )  # fmt: skip
