"""What was read of files, kept in an SQLite database: an unchanged file is not read again.

An entry belongs to a path, the device, inode, size and times of the file there, and to what was
read of it and how. The time of change (ctime) is set by the system whenever a file is written,
renamed or linked, and no program can set it. It is not relied on in two cases: if it is so recent
that a later change might have the same time, and if the file system stores it too coarsely. Such
files are read again each time.

Every entry has a checksum of itself and its key. A damaged entry is as good as none, and a damaged
database is replaced. A database that cannot be used (no permission, no space, locked for seconds)
never fails the job.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike._native import __version__
from lookalike.errors import DocumentError
from lookalike.storage.files import remove_if_same, user_cache_folder

if TYPE_CHECKING:
    import sqlite3

NAME = "files.sqlite"
MOST_BYTES = 1 << 30
"""Size of the database in the user's cache folder."""
RECENT = 2_000_000_000
"""Nanoseconds after which a change has another time for certain."""
_COARSE = 10_000_000  # file systems that round times to this do not tell all changes
_FORMAT = 1
_PAGE = 1 << 15  # several entries of images fit into a page
_AT_A_TIME = 500  # entries of a query
_WAIT = 5.0  # seconds for another process
_COMMIT_BYTES, _COMMIT_SECONDS = 4 << 20, 2.0  # work that a crash may lose
_USED_AGAIN = 3600  # seconds; the time of the last use is kept this exactly
_ROOM = 1.25  # bytes of the database for each byte of an entry, at most
_SPARE = 0.1  # share of the database that is freed at a time
_LARGEST = 8  # what is known of several files has at most this part of the database
_CHECKSUM = 16
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY, key BLOB UNIQUE, used INTEGER, size INTEGER
);
CREATE TABLE IF NOT EXISTS contents (id INTEGER PRIMARY KEY, value BLOB);
"""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Kept(Generic[Item]):
    """What is kept of a file."""

    made_by: Sequence[Any]
    """Plain values that say what is read and how, with versions of the programs that read it."""
    pack: Callable[[Item], bytes]
    unpack: Callable[[bytes], Item]


def packed(facts: Any, *arrays: NDArray[Any]) -> bytes:
    """Return plain values and arrays as bytes."""
    shapes = [[array.dtype.str, array.shape] for array in arrays]
    head = json.dumps([facts, shapes], separators=(",", ":")).encode()
    return b"".join([len(head).to_bytes(4, "little"), head, *(one.tobytes() for one in arrays)])


def unpacked(data: bytes) -> tuple[Any, list[NDArray[Any]]]:
    """Return what `packed` was given; the arrays cannot be changed."""
    begin = 4 + int.from_bytes(data[:4], "little")
    facts, shapes = json.loads(data[4:begin])
    arrays = []
    for kind, shape in shapes:
        dtype = np.dtype(kind)
        count = int(np.prod(shape, dtype=np.int64))
        arrays.append(np.frombuffer(data, dtype, count, begin).reshape(shape))
        begin += count * dtype.itemsize
    return facts, arrays


def key_of(file: Path, made_by: bytes) -> bytes | None:
    """Return the key of what is read of a file now; None if a later change might not be seen."""
    now = time.time_ns()
    try:
        status = os.stat(file)  # noqa: PTH116  # Path.stat takes twice as long
    except (OSError, ValueError):
        return None
    changed = status.st_ctime_ns
    coarse = changed % _COARSE == 0
    if coarse or changed > now - RECENT or not stat.S_ISREG(status.st_mode):
        return None
    state = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, changed
    digest = hashlib.blake2b(made_by, digest_size=_CHECKSUM)
    digest.update(b"%d %d %d %d %d " % state)
    digest.update(os.fsencode(os.path.abspath(file)))  # noqa: PTH100  # as above
    return digest.digest()


@dataclass(eq=False)
class FileCache:
    """A database of what was read of files, of at most `most` bytes if that is given.

    The least recently used entries are removed. Processes may share it; a thread may not share this
    object with others.
    """

    path: Path
    most: int | None = MOST_BYTES
    hits: int = 0
    """Entries that were found, and read."""
    _connection: sqlite3.Connection | None = field(default=None, init=False)
    _state: os.stat_result | None = field(default=None, init=False)
    _waiting: list[tuple[bytes, bytes]] = field(default_factory=list, init=False)
    _used: list[int] = field(default_factory=list, init=False)
    _bytes: int = field(default=0, init=False)
    _committed: float = field(default_factory=time.monotonic, init=False)

    def __enter__(self) -> FileCache:
        self._trying(self._open)
        return self

    def __exit__(self, *_: object) -> None:
        self._commit()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def reading(
        self,
        files: Sequence[Path],
        kept: Kept[Any],
        read: Callable[[Sequence[Path]], Iterable[Any]],
    ) -> Iterator[Any]:
        """Yield for each file what is known, or else what `read` yields, which is then kept.

        `read` gets the files that are not known, in order. Errors are not kept.
        """
        keys = self.keys(files, kept.made_by)
        known = self._known([key for key in keys if key is not None], kept.unpack)
        unknown = [place for place, key in enumerate(keys) if key not in known]
        found = iter(read([files[place] for place in unknown]) if unknown else ())
        try:
            for key in keys:
                if key in known:
                    yield known[key]
                    continue
                one = next(found)
                # If the file was changed since, no file has this key any more.
                if key is not None and not isinstance(one, DocumentError):
                    self._store(key, kept.pack(one))
                yield one
        finally:
            if hasattr(found, "close"):
                found.close()
            self._commit()

    def keys(self, files: Sequence[Path], made_by: Sequence[Any]) -> list[bytes | None]:
        """Return the keys of what is read of files from now on; None: see `key_of`."""
        described = json.dumps([_FORMAT, __version__, *made_by], sort_keys=True).encode()
        return [key_of(file, described) for file in files]

    def together(
        self, keys: Sequence[bytes | None], kept: Kept[Item], make: Callable[[], Item]
    ) -> Item:
        """Return what is known of several files together, or else what `make` makes and is kept.

        `keys` are those of the files before they were read, in order.
        """
        if not keys or None in keys:
            return make()
        described = json.dumps([_FORMAT, __version__, *kept.made_by], sort_keys=True).encode()
        digest = hashlib.blake2b(described, digest_size=_CHECKSUM)
        digest.update(b"".join(key for key in keys if key is not None))
        key = digest.digest()
        known = self._known([key], kept.unpack)
        if key in known:
            return known[key]
        made = kept.pack(one := make())
        if self.most is None or len(made) <= self.most // _LARGEST:
            self._store(key, made)
            self._commit()
        return one

    def _known(
        self, keys: Sequence[bytes], unpack: Callable[[bytes], Item]
    ) -> dict[bytes | None, Item]:
        """Return the intact entries of these keys."""
        known: dict[bytes | None, Item] = {}
        now = int(time.time())
        for begin in range(0, len(keys), _AT_A_TIME):
            some = keys[begin : begin + _AT_A_TIME]
            for number, key, used, value in self._trying(partial(self._rows, some)) or ():
                item = _intact(key, value, unpack)
                if item is None:
                    continue
                known[key] = item
                lately = isinstance(used, int) and now - _USED_AGAIN < used <= now
                if not lately:  # or the time is damaged
                    self._used.append(number)
        self.hits += len(known)
        return known

    def _rows(self, keys: Sequence[bytes]) -> list[Any]:
        if self._connection is None:
            return []
        places = ",".join("?" * len(keys))
        return self._connection.execute(
            "SELECT id, key, used, value FROM entries JOIN contents USING (id) "
            f"WHERE key IN ({places})",
            keys,
        ).fetchall()

    def _store(self, key: bytes, data: bytes) -> None:
        self._waiting.append((key, _checksum(key, data) + data))
        self._bytes += len(data)
        late = time.monotonic() - self._committed > _COMMIT_SECONDS
        if late or self._bytes >= _COMMIT_BYTES:
            self._commit()

    def _commit(self) -> None:
        """Write what is waiting, and what was used."""
        if self._waiting or self._used:
            self._trying(self._write)
        self._waiting, self._used, self._bytes = [], [], 0
        self._committed = time.monotonic()

    def _write(self) -> None:
        connection = self._connection
        if connection is None:
            return
        now = int(time.time())
        connection.execute("BEGIN IMMEDIATE")
        try:
            for begin in range(0, len(self._used), _AT_A_TIME):
                some = self._used[begin : begin + _AT_A_TIME]
                places = ",".join("?" * len(some))
                connection.execute(f"UPDATE entries SET used={now} WHERE id IN ({places})", some)
            self._make_room(connection)
            for key, value in self._waiting:
                # Another process may have been faster.
                added = connection.execute(
                    "INSERT OR IGNORE INTO entries (key, used, size) VALUES (?, ?, ?)",
                    (key, now, len(value)),
                )
                if added.rowcount:
                    connection.execute(
                        "INSERT OR REPLACE INTO contents VALUES (?, ?)", (added.lastrowid, value)
                    )
                else:  # which may be damaged
                    connection.execute(
                        "UPDATE contents SET value=? WHERE id=(SELECT id FROM entries WHERE key=?)",
                        (value, key),
                    )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _make_room(self, connection: sqlite3.Connection) -> None:
        """Remove the least recently used entries, if those that wait would not fit."""
        if self.most is None:
            return
        pages, free = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count")
        )
        needed = int(self._bytes * _ROOM) + _PAGE
        if (pages - free) * _PAGE + needed <= self.most:
            return
        excess = (pages - free) * _PAGE + needed - int(self.most * (1 - _SPARE))
        oldest = connection.execute("SELECT id, size FROM entries ORDER BY used, id")
        removed = []
        for number, size in oldest:
            removed.append((number,))
            excess -= size if isinstance(size, int) else 0  # what is damaged goes, too
            if excess <= 0:
                break
        oldest.close()
        connection.executemany("DELETE FROM entries WHERE id=?", removed)
        connection.executemany("DELETE FROM contents WHERE id=?", removed)

    def _open(self) -> None:
        import sqlite3  # only here: most programs need none of it

        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # It has small copies of pictures, which other users must not read.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._state = self.path.stat()
        connection = sqlite3.connect(
            self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False
        )
        self._connection = connection
        connection.execute(f"PRAGMA page_size={_PAGE}")
        if connection.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
            connection.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version={_FORMAT}; COMMIT;"
            )
        connection.execute("PRAGMA synchronous=NORMAL")
        if self.most is not None:
            connection.execute(f"PRAGMA max_page_count={max(self.most // _PAGE, 1)}")

    def _trying(self, work: Callable[[], Any]) -> Any:
        """Return what a function returns; None, and no database from then on, if that fails.

        A damaged database is replaced by an empty one.
        """
        import sqlite3

        try:
            return work()
        except (sqlite3.Error, OSError, OverflowError) as error:
            code = getattr(error, "sqlite_errorcode", None)
            damaged = code is not None and code & 0xFF in (
                sqlite3.SQLITE_CORRUPT,
                sqlite3.SQLITE_NOTADB,
            )
        state = self._state
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        if damaged and state is not None:
            with contextlib.suppress(sqlite3.Error, OSError):
                Path(f"{self.path}-journal").unlink(missing_ok=True)
                remove_if_same(self.path, state)
                self._open()
        return None


def _intact(key: bytes, value: Any, unpack: Callable[[bytes], Item]) -> Item | None:
    """Return an entry; None if it is damaged."""
    if not isinstance(value, bytes) or value[:_CHECKSUM] != _checksum(key, value[_CHECKSUM:]):
        return None
    try:
        return unpack(value[_CHECKSUM:])
    except (ValueError, TypeError, KeyError, IndexError, zlib.error):
        return None


def _checksum(key: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(data, key=key, digest_size=_CHECKSUM).digest()


def user_file_cache() -> FileCache | None:
    """Return the database in the user's cache folder; None for a user without a home."""
    folder = user_cache_folder()
    return None if folder is None else FileCache(folder / NAME)
