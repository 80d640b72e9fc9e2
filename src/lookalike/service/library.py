"""The served collections: those of a database, or one for each file of a folder.

Names are restricted, so that none can refer to another file. In a folder, the collection `pages` is
the file `pages.db`, which has this one collection. Files of other programs in the folder are never
written to, and other tables in a file are kept.
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

from lookalike import errors
from lookalike.collection import Collection, drop_collection, open_collection
from lookalike.collection.opening import (
    Purpose,
    names_within,
    remove_unused_file,
    unused_file,
)
from lookalike.collection.signing import WordKind
from lookalike.collection.stores.address import Address, parse_address
from lookalike.collection.stores.sqlite import exclusive_file
from lookalike.indexes import open_index
from lookalike.service.problems import Problem
from lookalike.shown import brief, escape_terminal
from lookalike.signatures import Signer
from lookalike.storage.container import is_container
from lookalike.storage.files import remove_if_same

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""The pattern of collection names."""
_REPLACED = 10
"""How often a collection may be replaced during a request."""
SUFFIX = ".lookalike"
"""Ending of files with an index."""
_BRIEFLY = 0.5
"""Seconds to wait for the locks of other processes in a survey."""
_NAME = re.compile(NAME.strip("^$"))
T = TypeVar("T")


def open_for_clients(url: str, name: str) -> Collection:
    """Open an existing collection that does not read files at paths sent by clients.

    Otherwise a client of a collection of images could read any file of this machine.
    """
    docs = open_collection(url, name, create=False)
    docs.reads_files = False
    return docs


class Library(ABC):
    """Collections by name, each opened once; thread-safe."""

    def __init__(self, shown: str, source: str, snapshots: Path | None) -> None:
        self.shown = shown
        """Where the collections are, for messages."""
        self.source = source
        """The argument of `open_library`, also in another process."""
        self.snapshots = snapshots
        """The default folder for snapshots."""
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._open: dict[str, Collection] = {}

    @abstractmethod
    def survey(self) -> dict[str, Exception | None]:
        """Return the sorted names of collections, and errors of unreadable or locked ones."""

    @abstractmethod
    def place(self, name: str) -> tuple[str, str]:
        """Return the address of a collection's database, and its name there."""

    @abstractmethod
    def left_out(self) -> list[str]:
        """Return why some collections are not served."""

    def opened(self) -> dict[str, Collection]:
        """Return the open collections."""
        with self._lock:
            return dict(self._open)

    def opened_now(self, name: str) -> Collection | None:
        """Return a collection if it is open."""
        return self._open.get(name)

    def collection(self, name: str) -> Collection:
        """Return a collection, and open it if necessary."""
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
        self, name: str, signer: Signer | None, bits: int | None, keep_text: bool,
        words: WordKind | None = None, purpose: Purpose | None = None,
    ) -> Collection:  # fmt: skip
        """Create a collection, or raise if the name is taken."""
        check_name(name)
        with self._making:
            with self._claimed(name) as url:
                made = open_collection(
                    url, name, signer=signer, bits=bits, keep_text=keep_text, words=words,
                    purpose=purpose,
                )  # fmt: skip
            made.reads_files = False
        with self._lock:
            self._open[name] = made
        return made

    def drop(self, name: str) -> None:
        """Delete a collection."""
        check_name(name)
        with self._making:
            if name not in self.survey():
                raise _missing(name)
            self._remove(name)
        with self._lock:
            self._open.pop(name, None)

    def use(self, name: str, work: Callable[[Collection], T]) -> T:
        """Call `work` with a collection.

        If another process replaced the collection by one with another signer, `work` is called
        again with the new one; nothing was written before.
        """
        for _ in range(_REPLACED):
            docs = self.collection(name)
            try:
                return work(docs)
            except (errors.BatchError, errors.CollectionBusyError):
                raise
            except errors.FormatError as error:  # the file was damaged while it was open
                raise _unreadable(name) from error
            except errors.CollectionError as error:
                if self._replaced(name, docs):
                    continue
                if isinstance(error, errors.NotFoundError) and name not in self._open:
                    raise _missing(name) from None
                raise
        raise errors.CollectionBusyError(
            f"the collection {name!r} is replaced again and again; try again later"
        )

    def close(self) -> None:
        """Close all collections and save their indexes."""
        with self._lock:
            opened, self._open = list(self._open.values()), {}
        for docs in opened:
            docs.close()

    def _replaced(self, name: str, docs: Collection) -> bool:
        """Return whether another collection has this name now, and open it."""
        try:
            now = self._opened(name)
        except (errors.CollectionError, errors.FileError):
            with self._lock:
                self._open.pop(name, None)
            return False
        if now._opened.uid == docs._opened.uid:
            now.close()
            return False
        with self._lock:
            self._open[name] = now  # the old one is closed after its last use
        return True

    def _opened(self, name: str) -> Collection:
        try:
            return open_for_clients(*self.place(name))
        except errors.NotFoundError:
            raise _missing(name) from None

    @abstractmethod
    def _claimed(self, name: str) -> AbstractContextManager[str]:
        """Yield the database of a new collection, and remove it on an error."""

    @abstractmethod
    def _remove(self, name: str) -> None: ...


class DatabaseLibrary(Library):
    """The collections of one database."""

    def __init__(self, address: Address) -> None:
        path = address.path
        beside = None if path is None else path.with_name(path.name + ".snapshots")
        super().__init__(address.shown, address.url if path is None else str(path), beside)

    def survey(self) -> dict[str, Exception | None]:
        """Return the names of the collections; raise if the database is locked."""
        found = self._all(_BRIEFLY)
        return {name: None for name in found if _NAME.fullmatch(name)}

    def left_out(self) -> list[str]:
        """Return the collections with names that are not valid here."""
        wrong = "has a name with other characters than letters, digits, '.', '_' and '-'"
        names = [name for name in self._all() if not _NAME.fullmatch(name)]
        return [f"the collection {brief(name)} {wrong}" for name in names]

    def place(self, name: str) -> tuple[str, str]:
        """Return the address of a collection's database, and its name there."""
        return self.source, name

    def _all(self, timeout: float = 30.0) -> list[str]:
        try:
            return names_within(self.source, timeout)
        except errors.NotFoundError:
            return []

    @contextmanager
    def _claimed(self, name: str) -> Iterator[str]:
        if name in self._all():
            raise _exists(name)
        yield self.source

    def _remove(self, name: str) -> None:
        drop_collection(self.source, name)


class IndexLibrary(Library):
    """A saved index in place of collections. It is not changed, so clients can only read it."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), str(path), None)
        self.index = open_index(path)
        self.name = re.sub(r"[^A-Za-z0-9._-]", "-", path.stem).lstrip("._-")[:64] or "index"
        """Name of the index for API keys."""
        container = self.index._container
        self.digest = container.digest if container is not None else ""

    def survey(self) -> dict[str, Exception | None]:
        """Return no collections."""
        return {}

    def left_out(self) -> list[str]:
        """Return nothing: the whole index is served."""
        return []

    def place(self, name: str) -> tuple[str, str]:
        """Raise, because there are no collections."""
        raise _missing(name)

    def _claimed(self, name: str) -> AbstractContextManager[str]:
        raise _missing(name)

    def _remove(self, name: str) -> None:
        raise _missing(name)


class FolderLibrary(Library):
    """A collection for each file of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        super().__init__(str(self._folder), str(self._folder), self._folder / ".snapshots")

    def survey(self) -> dict[str, Exception | None]:
        """Return the names of the files with one collection each, or an error."""
        return {
            name: inner if isinstance(inner, Exception) else None
            for name, inner in sorted(self._files().items())
            if isinstance(inner, Exception) or len(inner) == 1
        }

    def left_out(self) -> list[str]:
        """Return the files with no or several collections."""
        reasons = []
        for name, inner in self._files().items():
            file = brief(name + ".db")
            if isinstance(inner, Exception):
                reasons.append(f"{file} cannot be read: {inner}")
            elif len(inner) != 1:
                reasons.append(f"{file} has {len(inner)} collections, not one; serve it by itself")
        return reasons

    def place(self, name: str) -> tuple[str, str]:
        """Return the address of a collection's database, and its name there."""
        path = self._path(name)
        inner = _collections_in(path) if _is_plain(path) else []
        if isinstance(inner, errors.FormatError):
            raise _unreadable(name) from inner
        if isinstance(inner, Exception) and not isinstance(inner, errors.NotFoundError):
            raise inner
        if isinstance(inner, Exception) or len(inner) != 1:
            raise _missing(name)
        return str(path), inner[0]

    def _path(self, name: str) -> Path:
        return self._folder / f"{check_name(name)}.db"

    def _files(self) -> dict[str, list[str] | Exception]:
        """Return what each file holds, or the error of reading it."""
        found: dict[str, list[str] | Exception] = {}
        patience = _BRIEFLY
        for entry in os.scandir(self._folder):
            name = entry.name.removesuffix(".db")
            if entry.name == name or not _NAME.fullmatch(name):
                continue
            if entry.is_file(follow_symlinks=False):
                found[name] = _collections_in(entry.path, patience)
                if isinstance(found[name], errors.CollectionBusyError):
                    patience = 0.0  # many locked files take no longer than one
        return found

    @contextmanager
    def _claimed(self, name: str) -> Iterator[str]:
        path = self._path(name)
        with exclusive_file(path.with_name(f".{path.name}-creating")) as alone:
            if not alone:
                message = f"another request is creating the collection {brief(name)}"
                raise Problem(409, "exists", message)
            created = self._created(name, path)
            try:
                yield str(path)
            except BaseException:
                with suppress(OSError, errors.LookalikeError):
                    if created is not None and not path.lstat().st_size:
                        remove_if_same(path, created)
                raise

    def _created(self, name: str, path: Path) -> os.stat_result | None:
        """Create the file; return None if it exists and is unused."""
        try:
            with open(path, "xb") as file:
                return os.fstat(file.fileno())
        except FileExistsError:
            self._check_unused(name, path)
            return None
        except OSError as error:
            raise errors.FileError(f"{path} cannot be created: {error.strerror}") from error

    def _check_unused(self, name: str, path: Path) -> None:
        """Refuse a file that is a collection or belongs to another program."""
        regular = _is_plain(path)
        inner = _collections_in(path) if regular else []
        if not isinstance(inner, Exception) and len(inner) == 1:
            raise _exists(name)
        with suppress(errors.CollectionError, errors.FileError):
            if regular and unused_file(path):
                return
        raise Problem(
            409, "exists", f"the folder has a file {brief(path.name)} that is not a collection of "
            "this service; choose another name, or move that file elsewhere",
        )  # fmt: skip

    def _remove(self, name: str) -> None:
        url, inner = self.place(name)
        try:
            drop_collection(url, inner)
            remove_unused_file(url)
        except (errors.CollectionBusyError, errors.NotFoundError):
            raise
        except errors.CollectionError as error:
            raise _unreadable(name) from error


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _collections_in(path: str | os.PathLike[str], timeout: float = 30.0) -> list[str] | Exception:
    """Return the collections of a file , or the error."""
    try:
        return names_within(path, timeout)
    except (errors.CollectionError, errors.FileError) as error:
        return error


def open_library(place: str | os.PathLike[str]) -> Library:
    """Return the library of a folder, a file or a database."""
    text = os.fspath(place)
    if "://" not in text and os.path.isdir(text):  # noqa: PTH112  # takes every name
        return FolderLibrary(Path(text))
    if "://" not in text and (os.path.isfile(text) or text.endswith(SUFFIX)):  # noqa: PTH113
        path = Path(text)
        if not path.exists():
            raise errors.FileError(
                f"{escape_terminal(text)} does not exist; `lookalike index` builds an index"
            )
        if is_container(path):
            return IndexLibrary(path.absolute())
    address = parse_address(text)
    if address.path is not None:
        folder = Path(text) if text.endswith(os.sep) else address.path.absolute().parent
        if not folder.is_dir():
            raise errors.FileError(
                f"the folder {escape_terminal(str(folder))} does not exist; create it first"
            )
    return DatabaseLibrary(address)


def check_name(name: str) -> str:
    """Return a valid collection name, or raise."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Problem(
            422, "name", f"the collection name is {brief(name)}; expected 1 to 64 letters, digits, "
            "'.', '_' and '-', starting with a letter or digit",
        )  # fmt: skip
    return name


def _exists(name: str) -> Problem:
    return Problem(
        409, "exists", f"the collection {name!r} exists; choose another name or delete it. If it "
        "is damaged, move its file out of the folder of the service",
    )  # fmt: skip


def _unreadable(name: str) -> Problem:
    return Problem(
        503, "collection", f"the file of the collection {brief(name)} cannot be read: it is "
        "damaged, belongs to another program, or was written by a newer lookalike. See the log of "
        "the service. To free the name, move the file out of the folder of the service",
    )  # fmt: skip


def _missing(name: str) -> Problem:
    message = f"there is no collection {brief(name)}; GET /v1/collections lists all"
    return Problem(404, "not_found", message)
