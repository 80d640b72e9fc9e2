"""The collections that are served: those of a database, or one for each file of a folder.

Names are strict, so that none can lead to another file. In a folder, the collection `pages` is the
file `pages.db`, which holds this one collection. Files of other programs in the folder are never
written to, and other tables in a file stay.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from lookalike.collection import Collection, drop_collection, open_collection
from lookalike.collection.opening import collections_by_parts, remove_unused_file, unused_file
from lookalike.collection.stores.address import Address, parse_address
from lookalike.collection.stores.sqlite import exclusive_file
from lookalike.errors import (
    BatchError,
    CollectionBusyError,
    CollectionError,
    FileError,
    FormatError,
    LookalikeError,
    NotFoundError,
)
from lookalike.parts.signer import PartSigner
from lookalike.service.problems import Problem
from lookalike.shown import brief, escape_terminal
from lookalike.signatures import Signer
from lookalike.storage.files import remove_if_same

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""The pattern of names of collections."""
_PARTS = (
    "has documents of many parts (recordings, passages), which are not served: use it with "
    "la.open_collection, or `lookalike collection`, where its database is"
)
_REPLACED = 10
"""Times that a collection may be replaced during a request."""
_BRIEFLY = 0.5
"""Seconds for which a survey waits for the locks of other processes."""
_NAME = re.compile(NAME.strip("^$"))
T = TypeVar("T")


def open_for_strangers(url: str, name: str) -> Collection:
    """Open an existing collection so that it opens no paths that clients send.

    Else a client that writes to a collection of images could have any file of this machine read.
    """
    docs = open_collection(url, name, create=False)
    if docs.parts:
        docs.close()
        raise Problem(422, "parts", f"the collection {brief(name)} {_PARTS}")
    docs.reads_files = False
    return docs


class Library(ABC):
    """Collections by name, each opened once; safe to use from many threads."""

    def __init__(self, shown: str, source: str, snapshots: Path | None) -> None:
        self.shown = shown
        """Where the collections are, for people."""
        self.source = source
        """What `open_library` takes, also in another process."""
        self.snapshots = snapshots
        """The default folder for snapshots."""
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._open: dict[str, Collection] = {}

    @abstractmethod
    def survey(self) -> dict[str, Exception | None]:
        """Return the names of the collections, sorted, with the errors of those that cannot be read
        or are locked by another process.
        """

    @abstractmethod
    def place(self, name: str) -> tuple[str, str]:
        """Return the address of a collection's database, and its name there."""

    @abstractmethod
    def left_out(self) -> list[str]:
        """Return what is not served, and why."""

    def opened(self) -> dict[str, Collection]:
        """Return the open collections."""
        with self._lock:
            return dict(self._open)

    def opened_now(self, name: str) -> Collection | None:
        """Return a collection if it is open, without waiting."""
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
        """Create a collection; one of the same name is a conflict."""
        check_name(name)
        if isinstance(signer, PartSigner):
            raise Problem(422, "parts", f"the collection {brief(name)} {_PARTS}")
        with self._making:
            with self._claimed(name) as url:
                made = open_collection(url, name, signer=signer, bits=bits, keep_text=keep_text)
            made.reads_files = False
        with self._lock:
            self._open[name] = made
        return made

    def drop(self, name: str) -> None:
        """Remove a collection with all it holds."""
        check_name(name)
        with self._making:
            if name not in self.survey():
                raise _missing(name)
            self._remove(name)
        with self._lock:
            self._open.pop(name, None)

    def use(self, name: str, work: Callable[[Collection], T]) -> T:
        """Do something with a collection.

        If it was dropped and created again elsewhere, with another signer, the new one is used:
        nothing has been written by then.
        """
        for _ in range(_REPLACED):
            docs = self.collection(name)
            try:
                return work(docs)
            except (BatchError, CollectionBusyError):
                raise
            except FormatError as error:  # the file was damaged while it was open
                raise _unreadable(name) from error
            except CollectionError as error:
                if self._replaced(name, docs):
                    continue
                if isinstance(error, NotFoundError) and name not in self._open:
                    raise _missing(name) from None
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
        """Return whether another collection has this name now; it is opened."""
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
            self._open[name] = now  # the old one is closed when its last user has ended
        return True

    def _opened(self, name: str) -> Collection:
        try:
            return open_for_strangers(*self.place(name))
        except NotFoundError:
            raise _missing(name) from None

    @abstractmethod
    def _claimed(self, name: str) -> AbstractContextManager[str]:
        """Return the database of a new collection, and remove it on an error; a name that is taken
        raises.
        """

    @abstractmethod
    def _remove(self, name: str) -> None: ...


class DatabaseLibrary(Library):
    """The collections of one database."""

    def __init__(self, address: Address) -> None:
        path = address.path
        beside = None if path is None else path.with_name(path.name + ".snapshots")
        super().__init__(address.shown, address.url if path is None else str(path), beside)

    def survey(self) -> dict[str, Exception | None]:
        """Return the names of the collections; a locked database raises an error."""
        found = self._all(_BRIEFLY)
        return {name: None for name, parts in found.items() if _NAME.fullmatch(name) and not parts}

    def left_out(self) -> list[str]:
        """Return the collections of parts, and those with other names."""
        wrong = ": its name is not of letters, digits, '.', '_' and '-'"
        return [
            f"the collection {brief(name)}{f' {_PARTS}' if _NAME.fullmatch(name) else wrong}"
            for name, parts in self._all().items()
            if parts or not _NAME.fullmatch(name)
        ]

    def place(self, name: str) -> tuple[str, str]:
        """Return the address of a collection's database, and its name there."""
        return self.source, name

    def _all(self, timeout: float = 30.0) -> dict[str, bool]:
        try:
            return collections_by_parts(self.source, timeout=timeout)
        except NotFoundError:
            return {}

    @contextmanager
    def _claimed(self, name: str) -> Iterator[str]:
        if name in self._all():
            raise _exists(name)
        yield self.source

    def _remove(self, name: str) -> None:
        drop_collection(self.source, name)


class FolderLibrary(Library):
    """A collection for each file of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        super().__init__(str(self._folder), str(self._folder), self._folder / ".snapshots")

    def survey(self) -> dict[str, Exception | None]:
        """Return the names of the files that hold one collection each, or cannot be read."""
        return {
            name: inner if isinstance(inner, Exception) else None
            for name, inner in sorted(self._files().items())
            if isinstance(inner, Exception) or list(inner.values()) == [False]
        }

    def left_out(self) -> list[str]:
        """Return the files that hold none or several collections, or one of parts."""
        reasons = []
        for name, inner in self._files().items():
            file = brief(name + ".db")
            if isinstance(inner, Exception):
                reasons.append(f"{file} cannot be read: {inner}")
            elif len(inner) != 1:
                why = f"holds {len(inner)} collections, not one: serve it by itself"
                reasons.append(f"{file} {why}")
            elif any(inner.values()):
                reasons.append(f"the collection of {file} {_PARTS}")
        return reasons

    def place(self, name: str) -> tuple[str, str]:
        """Return the address of a collection's database, and its name there."""
        path = self._path(name)
        inner = _collections_in(path) if _is_plain(path) else {}
        if isinstance(inner, FormatError):
            raise _unreadable(name) from inner
        if isinstance(inner, Exception) and not isinstance(inner, NotFoundError):
            raise inner
        if isinstance(inner, Exception) or len(inner) != 1:
            raise _missing(name)
        return str(path), next(iter(inner))

    def _path(self, name: str) -> Path:
        return self._folder / f"{check_name(name)}.db"

    def _files(self) -> dict[str, dict[str, bool] | Exception]:
        """Return what each file holds, or the error of reading it."""
        found: dict[str, dict[str, bool] | Exception] = {}
        patience = _BRIEFLY
        for entry in os.scandir(self._folder):
            name = entry.name.removesuffix(".db")
            if entry.name == name or not _NAME.fullmatch(name):
                continue
            if entry.is_file(follow_symlinks=False):
                found[name] = _collections_in(entry.path, patience)
                if isinstance(found[name], CollectionBusyError):
                    patience = 0.0  # so that many locked files take no longer than one
        return found

    @contextmanager
    def _claimed(self, name: str) -> Iterator[str]:
        path = self._path(name)
        with exclusive_file(path.with_name(f".{path.name}-creating")) as alone:
            if not alone:
                message = f"the collection {brief(name)} is being made by another request"
                raise Problem(409, "exists", message)
            created = self._created(name, path)
            try:
                yield str(path)
            except BaseException:
                with suppress(OSError, LookalikeError):
                    if created is not None and not path.lstat().st_size:
                        remove_if_same(path, created)
                raise

    def _created(self, name: str, path: Path) -> os.stat_result | None:
        """Create the file; None if it exists, without content."""
        try:
            with open(path, "xb") as file:
                return os.fstat(file.fileno())
        except FileExistsError:
            self._check_unused(name, path)
            return None
        except OSError as error:
            raise FileError(f"{path} cannot be created: {error.strerror}") from error

    def _check_unused(self, name: str, path: Path) -> None:
        """Refuse a file with content: it is a collection, or belongs to another program."""
        regular = _is_plain(path)
        inner = _collections_in(path) if regular else {}
        if not isinstance(inner, Exception) and len(inner) == 1:
            raise _exists(name)
        with suppress(CollectionError, FileError):
            if regular and unused_file(path):
                return
        raise Problem(
            409, "exists", f"the folder has a {brief(path.name)} that is not a collection of this "
            "service; choose another name, or move that file elsewhere",
        )  # fmt: skip

    def _remove(self, name: str) -> None:
        url, inner = self.place(name)
        try:
            drop_collection(url, inner)
            remove_unused_file(url)
        except (CollectionBusyError, NotFoundError):
            raise
        except CollectionError as error:
            raise _unreadable(name) from error


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _collections_in(
    path: str | os.PathLike[str], timeout: float = 30.0
) -> dict[str, bool] | Exception:
    """Return what `collections_by_parts` returns for a file, or its error."""
    try:
        return collections_by_parts(path, timeout=timeout)
    except (CollectionError, FileError) as error:
        return error


def open_library(place: str | os.PathLike[str]) -> Library:
    """Return the library of a folder, a file or a database."""
    text = os.fspath(place)
    if "://" not in text and os.path.isdir(text):  # noqa: PTH112  # takes every name
        return FolderLibrary(Path(text))
    address = parse_address(text)
    if address.path is not None:
        folder = Path(text) if text.endswith(os.sep) else address.path.absolute().parent
        if not folder.is_dir():
            raise FileError(
                f"there is no folder {escape_terminal(str(folder))}; make it, or name another"
            )
    return DatabaseLibrary(address)


def check_name(name: str) -> str:
    """Return a valid name of a collection, else raise."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Problem(
            422, "name", f"the name is {brief(name)}; expected 1 to 64 letters, digits, '.', '_' "
            "and '-', beginning with a letter or digit",
        )  # fmt: skip
    return name


def _exists(name: str) -> Problem:
    return Problem(
        409, "exists", f"there is a collection {name!r}; take another name, or delete it: if it is "
        "damaged, by moving its file out of the folder of the service",
    )  # fmt: skip


def _unreadable(name: str) -> Problem:
    return Problem(
        503, "collection", f"the file of the collection {brief(name)} cannot be read: it is "
        "damaged, belongs to another program, or was written by a newer lookalike; the log of the "
        "service says which. To free the name, move the file out of the folder of the service",
    )  # fmt: skip


def _missing(name: str) -> Problem:
    message = f"there is no collection {brief(name)}; GET /v1/collections lists those there are"
    return Problem(404, "not_found", message)
