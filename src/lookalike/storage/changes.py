"""Move files away or replace them by links, with a journal from which all of it can be undone.

The journal has the whole plan, and is synced before the first file is touched. Undoing looks at the
file system to see what was done, so it works after a crash at any point, and can be repeated.

A file is changed only if its state is the one that the plan was made from, and so is that of the
file that is kept. No file is ever replaced: a name that is taken is left alone. Folders are opened
once and names are used relative to them, so that links put in their place are not followed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lookalike.checks import file_path
from lookalike.errors import ArgumentError, FormatError, Said
from lookalike.storage.files import FileState, file_errors, new_file, open_plain

ACTIONS = ("move", "hardlink", "symlink", "trash")
_VERSION = 1
_PIECE = 1 << 20
_LONGEST_JOURNAL = 4 << 30
_COARSE = 2_000_000_000  # nanoseconds that a file system may round times to
_OWN = ".lookalike-"  # prefix of a name that a file has while it is replaced
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)
"""Errors of file systems that cannot link two names to one file."""


@dataclass(frozen=True)
class Duplicate:
    """A file to be changed, and the file that is kept instead, as they were looked at."""

    path: Path
    state: FileState
    kept: Path
    kept_state: FileState
    name: Path
    """Where it is moved to, within a folder."""


@dataclass(frozen=True)
class Change:
    """A planned change of one file; all paths are absolute."""

    action: str
    path: str
    state: FileState
    kept: str
    kept_state: FileState
    target: str = ""
    """The new name of a file that is moved; of a file that is replaced, the name until then."""
    info: str = ""
    """The file of the trash that says where a file was."""
    note: str = ""
    """What is in it."""
    mode: int = 0
    digest: str = ""
    """SHA-256 of a file that becomes a link, which is that of the kept one."""
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """Part of the names that a file has in between."""

    @property
    def copy(self) -> str:
        """The name of a copy that is not complete."""
        return f"{_OWN}{self.token}-copy"

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Change:
        """Return what `dataclasses.asdict` and JSON have made plain."""
        states = {name: FileState(*values[name]) for name in ("state", "kept_state")}
        return cls(**{**values, **states})


@dataclass(frozen=True)
class LeftAlone:
    """A file that was not changed."""

    path: Path
    reason: str  # follows the path and a colon


@dataclass
class Changes:
    """What was done, or would be done."""

    action: str
    done: list[Change] = field(default_factory=list)
    left_alone: list[LeftAlone] = field(default_factory=list)
    journal: Path | None = None
    """From which `undo` undoes it; None if nothing was to be done, or in a dry run."""

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain values."""
        return {
            "action": self.action,
            "done": [{"path": one.path, "target": _shown_target(one)} for one in self.done],
            "left_alone": [
                {"path": str(one.path), "reason": one.reason} for one in self.left_alone
            ],
            "journal": None if self.journal is None else str(self.journal),
        }


def _shown_target(change: Change) -> str:
    return change.target if change.action in ("move", "trash") else change.kept


class _LeftAloneError(Exception):
    """Says why a file is left alone."""


def plan(
    duplicates: Iterable[Duplicate], action: str, folder: Path | None = None
) -> tuple[list[Change], list[LeftAlone]]:
    """Return what has to be done, and which files are left alone because they have changed.

    Nothing is changed. Files that become links are read: only a file that is equal to the kept one,
    byte for byte, is replaced by a link.
    """
    if action not in ACTIONS:
        raise ArgumentError(
            Said("action", "--apply"), f" is {action!r}; expected {', '.join(ACTIONS)}"
        )
    if (folder is not None) != (action == "move"):
        raise ArgumentError(
            Said("folder", "--apply"),
            " needs a folder for `move`, such as `move DIR`, and for nothing else",
        )
    taken: set[str] = set()
    changes: list[Change] = []
    left: list[LeftAlone] = []
    for one in duplicates:
        try:
            with _os_errors():
                changes.append(_planned(one, action, folder, taken))
        except _LeftAloneError as error:
            left.append(LeftAlone(one.path, str(error)))
    return changes, left


def _planned(one: Duplicate, action: str, folder: Path | None, taken: set[str]) -> Change:
    path, kept = (_absolute(file) for file in (one.path, one.kept))
    known: dict[str, Any] = {
        "path": str(path),
        "state": one.state,
        "kept": str(kept),
        "kept_state": one.kept_state,
    }
    mode = stat.S_IMODE(_checked(path, one.state, "it").st_mode)
    _checked(kept, one.kept_state, "the kept file")
    if folder is not None:
        target = _free(folder.absolute().resolve() / one.name, taken)
        return Change(action, **known, target=target, mode=mode)
    if action == "trash":
        return _trashed(path, known, mode, taken)
    if one.state[:2] == one.kept_state[:2]:
        raise _LeftAloneError("is the kept file already, under another name")
    if action == "hardlink" and one.state.device != one.kept_state.device:
        raise _LeftAloneError("is on another file system than the kept file; use symlink or move")
    digest = _digest(path)
    if one.state.size != one.kept_state.size or digest != _digest(kept):
        raise _LeftAloneError("is similar to the kept file, but not equal; only moving suits it")
    _checked(path, one.state, "it")
    _checked(kept, one.kept_state, "the kept file")
    change = Change(action, **known, mode=mode, digest=digest)
    return replace(change, target=str(path.with_name(f"{_OWN}{change.token}")))


def apply(
    changes: Sequence[Change],
    journal: Path,
    *,
    tell: Callable[[float], None] | None = None,
) -> tuple[list[Change], list[LeftAlone]]:
    """Write the journal, make the changes, and return those that were made, and what was left."""
    _write_journal(changes, journal)
    done: list[Change] = []
    left: list[LeftAlone] = []
    for number, change in enumerate(changes, 1):
        try:
            with _os_errors():
                _DO[change.action](change)
            done.append(change)
        except _LeftAloneError as error:
            left.append(LeftAlone(Path(change.path), str(error)))
        if tell is not None:
            tell(number / len(changes))
    return done, left


def undo(journal: str | os.PathLike[str]) -> Changes:
    """Undo what `MediaResult.apply` or `lookalike dedup --apply` did, the last change first.

    A file that was moved is moved back. A link becomes a copy of the kept file again, with the mode
    and the time that the file had. It works after a crash, too, and can be repeated. Files that
    cannot be restored, because another file has their name or the kept file has changed, are left
    alone and named.

    Args:
        journal: The file that was written before the first change.

    Returns:
        The changes that were undone, and the files that were left alone, with reasons.

    Raises:
        FileError: If the journal cannot be read.
        FormatError: If it is not a journal, or is damaged.

    Examples:
        >>> import lookalike as la
        >>> from PIL import Image
        >>> from pathlib import Path
        >>> Path("scans").mkdir()
        >>> for name in ("a", "b"):
        ...     Image.linear_gradient("L").save(f"scans/{name}.png")
        >>> _ = la.dedup("scans", kind="images").apply("hardlink", journal="linked")
        >>> len(la.undo("linked").done), len(la.undo("linked").done)
        (1, 0)
    """
    path = file_path("journal", journal)
    changes, folders = _read_journal(path)
    action = changes[0].action if changes else "move"
    found = Changes(action, journal=path)
    for change in reversed(changes):
        try:
            with _os_errors():
                if _UNDO[change.action](change):
                    found.done.append(change)
        except _LeftAloneError as error:
            found.left_alone.append(LeftAlone(Path(change.path), str(error)))
    for folder in reversed(folders):
        with suppress(OSError):  # it is not empty, or not there
            Path(folder).rmdir()
    return found


# The journal


def _write_journal(changes: Sequence[Change], journal: Path) -> None:
    """Write the plan to a new file, whole or not at all, and sync it."""
    folders = _missing_folders(changes)
    lines = [{"lookalike": "journal", "version": _VERSION, "folders": folders}]
    text = "".join(json.dumps(line) + "\n" for line in [*lines, *map(asdict, changes)]).encode()
    with file_errors(journal, "written"):
        new_file(journal, text + _end(text))


def _end(text: bytes) -> bytes:
    """Return the last line of a journal."""
    return json.dumps({"sha256": hashlib.sha256(text).hexdigest()}).encode() + b"\n"


def _missing_folders(changes: Sequence[Change]) -> list[str]:
    """Return the folders that moving files will make, those outside before those inside."""
    found: dict[Path, None] = {}
    for change in changes:
        if change.action not in ("move", "trash"):
            continue
        parent, missing = Path(change.target).parent, list[Path]()
        while parent not in found and not os.path.lexists(parent):
            missing.append(parent)
            parent = parent.parent
        found.update(dict.fromkeys(reversed(missing)))
    return [str(one) for one in found]


def _read_journal(journal: Path) -> tuple[list[Change], list[str]]:
    """Return the changes of a journal, and the folders that they make."""
    with file_errors(journal), open_plain(journal) as file:
        text = file.read(_LONGEST_JOURNAL)
    lines = text.splitlines(keepends=True)
    try:
        head = json.loads(lines[0])
        if head["lookalike"] != "journal":
            raise ValueError
    except (ValueError, KeyError, IndexError, TypeError):
        raise FormatError(
            f"{journal} is not a journal; expected the file that `--apply` has written"
        ) from None
    if head.get("version") != _VERSION:
        raise FormatError(
            f"{journal} has version {head.get('version')}; this version of lookalike reads "
            f"{_VERSION}. Use the version that wrote it"
        )
    try:
        if lines[-1] != _end(b"".join(lines[:-1])):
            raise ValueError
        return [Change.from_dict(json.loads(line)) for line in lines[1:-1]], head["folders"]
    except (ValueError, KeyError, TypeError):
        raise FormatError(
            f"{journal} is damaged: its checksum is wrong, so nothing was undone. Restore it from "
            "a copy, if there is one"
        ) from None


# Doing


def _do_move(change: Change) -> None:
    """Give a file another name, never that of another file."""
    _checked(Path(change.kept), change.kept_state, "the kept file")
    path, target = Path(change.path), Path(change.target)
    mode = 0o700 if change.info else 0o777
    with _folder(path.parent) as old, _made_folder(target.parent, mode) as new:
        _checked(path.name, change.state, "it", old)
        if change.info:
            _write_info(change)
        try:
            if change.state.device == os.fstat(new).st_dev:
                _rename(path.name, old, target.name, new, change.state)
            else:
                _copy_away(change, old, new)
        except (OSError, _LeftAloneError):
            _remove_info(change)
            raise


def _rename(
    name: str, folder: int, new_name: str, new_folder: int, state: FileState | None
) -> None:
    """Rename a file without replacing another; with a state, only the file of that state."""
    try:
        os.link(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if _status(new_name, new_folder) is not None:
            raise _LeftAloneError(f"cannot be moved: {new_name} exists") from None
        os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder)
        return
    linked = _status(new_name, new_folder)
    if state is not None and (linked is None or FileState.of(linked) != state):
        os.unlink(new_name, dir_fd=new_folder)
        raise _LeftAloneError("has changed since it was looked at")
    os.unlink(name, dir_fd=folder)


def _copy_away(change: Change, old: int, new: int) -> None:
    """Move a file to another file system: it is removed after its copy is complete and synced."""
    name, target = Path(change.path).name, Path(change.target).name
    try:
        _copy(name, old, new, change, change.state.modified)
        _rename(change.copy, new, target, new, None)
    except (OSError, _LeftAloneError):
        _remove_own(change.copy, new)
        raise
    _sync_folder(Path(change.target).parent)
    try:
        _checked(name, change.state, "it", old)
        os.unlink(name, dir_fd=old)
    except (OSError, _LeftAloneError):
        os.unlink(target, dir_fd=new)
        raise


def _copy(name: str, old: int, new: int, change: Change, modified: int) -> str:
    """Copy a file to `Change.copy`, with mode and time, and sync it; return its SHA-256."""
    digest = hashlib.sha256()
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=old)
    with open(source, "rb") as reader:
        made = os.open(change.copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=new)
        with open(made, "wb") as writer:
            while piece := reader.read(_PIECE):
                digest.update(piece)
                writer.write(piece)
            writer.flush()
            os.fchmod(made, change.mode)
            os.utime(made, ns=(modified, modified))
            os.fsync(made)
    return digest.hexdigest()


def _do_link(change: Change) -> None:
    """Replace a file by a link to the kept one; until that is there, it has another name."""
    path, aside = Path(change.path), Path(change.target).name
    with _folder(path.parent) as folder:
        _checked(Path(change.kept), change.kept_state, "the kept file")
        _checked(path.name, change.state, "it", folder)
        os.rename(path.name, aside, src_dir_fd=folder, dst_dir_fd=folder)
        try:
            _checked(aside, change.state, "it", folder)
            if change.action == "symlink":
                os.symlink(change.kept, path.name, dir_fd=folder)
            else:
                os.link(change.kept, path.name, dst_dir_fd=folder, follow_symlinks=False)
            try:
                _checked(Path(change.kept), change.kept_state, "the kept file")
                if change.action == "hardlink":
                    _checked(path.name, change.kept_state, "the kept file", folder)
            except _LeftAloneError:
                os.unlink(path.name, dir_fd=folder)
                raise
        except (OSError, _LeftAloneError):
            try:
                _rename(aside, folder, path.name, folder, None)
            except OSError:
                raise _LeftAloneError(
                    f"was replaced by another file meanwhile; it is now called {change.target}"
                ) from None
            raise
        os.unlink(aside, dir_fd=folder)


# Undoing


def _undo_move(change: Change) -> bool:
    """Give a file its name back; return whether it had another one."""
    path, target = Path(change.path), Path(change.target)
    try:
        with _folder(target.parent) as new, _folder(path.parent) as old:
            for folder in (new, old):
                _remove_own(change.copy, folder)
            there, moved = _status(path.name, old), _status(target.name, new)
            same = there is not None and FileState.of(there)[:2] == change.state[:2]
            if moved is None:
                if there is None:
                    raise _LeftAloneError(f"is gone, and so is {target}")
                _remove_info(change)
                return False
            if there is not None and not same:
                # The file itself, if undoing was interrupted after it was copied back.
                same = FileState.of(there)[2:] == change.state[2:] and _equal(
                    path, old, target, new
                )
            if there is not None and not same:
                raise _LeftAloneError(f"is another file now; the moved file is {target}")
            if same:  # both names, or a complete copy: it was interrupted
                _remove_copy(change, old, new, moved)
            elif moved.st_dev == os.fstat(old).st_dev:
                _rename(target.name, new, path.name, old, None)
            else:
                _copy_back(change, moved, old, new)
            _remove_info(change)
            return True
    except FileNotFoundError:
        if os.path.lexists(path):
            return False
        raise _LeftAloneError(f"its folder, or that of {target}, is gone") from None


def _remove_copy(change: Change, old: int, new: int, moved: os.stat_result) -> None:
    """Remove the second name of a file, or its complete copy, which is a file of its own."""
    path, target = Path(change.path), Path(change.target)
    if (moved.st_dev, moved.st_ino) != change.state[:2] and not _equal(path, old, target, new):
        raise _LeftAloneError(f"is there, and {target} differs from it")
    os.unlink(target.name, dir_fd=new)


def _copy_back(change: Change, moved: os.stat_result, old: int, new: int) -> None:
    path, target, modified = Path(change.path), Path(change.target), moved.st_mtime_ns
    if abs(modified - change.state.modified) < _COARSE:
        modified = change.state.modified
    try:
        _copy(target.name, new, old, change, modified)
        if FileState.of(moved) != FileState.of(os.stat(target.name, dir_fd=new)):
            raise _LeftAloneError(f"{target} changes while it is copied")
        _rename(change.copy, old, path.name, old, None)
    except (OSError, _LeftAloneError):
        _remove_own(change.copy, old)
        raise
    _sync_folder(path.parent)
    os.unlink(target.name, dir_fd=new)


def _undo_link(change: Change) -> bool:
    """Put a file in the place of its link; return whether it was not there."""
    path, aside = Path(change.path), Path(change.target).name
    with _folder(path.parent) as folder:
        _remove_own(change.copy, folder)
        there, original = _status(path.name, folder), _status(aside, folder)
        linked = there is not None and _is_link(change, there, folder)
        if original is not None and FileState.of(original)[:2] == change.state[:2]:
            if there is None:
                _rename(aside, folder, path.name, folder, None)
                return True
            if linked:
                os.rename(aside, path.name, src_dir_fd=folder, dst_dir_fd=folder)
                return True
            if there is not None and FileState.of(there)[:2] == change.state[:2]:
                os.unlink(aside, dir_fd=folder)
                return False
            raise _LeftAloneError(f"is another file now; the replaced file is {aside} beside it")
        if there is None:
            raise _LeftAloneError("is gone")
        if FileState.of(there)[:2] == change.state[:2]:
            return False
        if not linked:
            restored = stat.S_ISREG(there.st_mode) and FileState.of(there)[2:] == change.state[2:]
            if restored and _digest(path) == change.digest:
                return False
            raise _LeftAloneError("is no longer a link to the kept file")
        _copy_over_link(change, folder)
        return True


def _is_link(change: Change, there: os.stat_result, folder: int) -> bool:
    if change.action == "hardlink":
        return (there.st_dev, there.st_ino) == change.kept_state[:2]
    name = Path(change.path).name
    return stat.S_ISLNK(there.st_mode) and os.readlink(name, dir_fd=folder) == change.kept


def _copy_over_link(change: Change, folder: int) -> None:
    path, kept = Path(change.path), Path(change.kept)
    try:
        with _folder(kept.parent) as opened:
            digest = _copy(kept.name, opened, folder, change, change.state.modified)
        if digest != change.digest:
            raise _LeftAloneError(
                f"cannot be restored: {change.kept} no longer has the bytes that it had"
            )
        there = _status(path.name, folder)
        if there is None or not _is_link(change, there, folder):
            raise _LeftAloneError("is no longer a link to the kept file")
        os.rename(change.copy, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except (OSError, _LeftAloneError):
        _remove_own(change.copy, folder)
        raise


_DO = {"move": _do_move, "trash": _do_move, "hardlink": _do_link, "symlink": _do_link}
_UNDO = {"move": _undo_move, "trash": _undo_move, "hardlink": _undo_link, "symlink": _undo_link}


# The trash, as the specification of freedesktop.org describes it


def _trashed(path: Path, known: dict[str, Any], mode: int, taken: set[str]) -> Change:
    trash, top = _trash_of(path)
    target = Path(_free(trash / "files" / path.name, taken, also=trash / "info"))
    written = path if top is None else path.relative_to(top)
    when = datetime.now().replace(microsecond=0).isoformat()
    named = quote(os.fsencode(written))
    note = f"[Trash Info]\nPath={named}\nDeletionDate={when}\n"
    info = str(trash / "info" / f"{target.name}.trashinfo")
    return Change("trash", **known, target=str(target), info=info, note=note, mode=mode)


def _trash_of(path: Path) -> tuple[Path, Path | None]:
    """Return the trash for a file, and the top folder of its file system if that has the trash."""
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    home = (data if data.is_absolute() else Path.home() / ".local" / "share") / "Trash"
    device = path.parent.stat().st_dev
    above = home
    while not above.exists():
        above = above.parent
    if above.stat().st_dev == device:
        return home, None
    top = path.parent.resolve()
    while top.parent != top and top.parent.stat().st_dev == device:
        top = top.parent
    shared = top / ".Trash"
    with suppress(OSError):
        status = shared.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
            return shared / str(os.getuid()), top
    return top / f".Trash-{os.getuid()}", top


def _write_info(change: Change) -> None:
    info = Path(change.info)
    with _made_folder(info.parent, 0o700) as folder:
        made = os.open(
            info.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder
        )
        with open(made, "wb") as file:
            file.write(change.note.encode())


def _remove_info(change: Change) -> None:
    """Remove the file that says where a file was, if it is ours, complete or not."""
    if not change.info:
        return
    info = Path(change.info)
    with suppress(OSError), open_plain(info) as file:
        note = change.note.encode()
        if note.startswith(file.read(len(note) + 1)):
            info.unlink()


# Files and folders


def _absolute(path: Path) -> Path:
    """Return a path without `..` and links in its folders."""
    return path.absolute().parent.resolve() / path.name


def _status(name: str | Path, folder: int | None = None) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _checked(
    name: str | Path, state: FileState, what: str, folder: int | None = None
) -> os.stat_result:
    """Return the status of a file that is still as it was looked at."""
    status = _status(name, folder)
    subject = "" if what == "it" else f"{what} "
    if status is None:
        raise _LeftAloneError(f"{subject}is gone")
    if not stat.S_ISREG(status.st_mode) or FileState.of(status) != state:
        raise _LeftAloneError(f"{subject}has changed since it was looked at")
    return status


def _remove_own(name: str, folder: int) -> None:
    """Remove a copy that is not complete, if there is one."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _free(target: Path, taken: set[str], also: Path | None = None) -> str:
    """Return a name that no file has, with a number if need be; a trash has names in two places."""
    number, stem, suffix = 1, target.stem, target.suffix
    while True:
        name = f"{stem} ({number}){suffix}" if number > 1 else target.name
        tried = target.with_name(name)
        other = also is not None and os.path.lexists(also / f"{name}.trashinfo")
        if str(tried) not in taken and not os.path.lexists(tried) and not other:
            taken.add(str(tried))
            return str(tried)
        number += 1


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open_plain(path) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _equal(one: Path, folder: int, two: Path, other: int) -> bool:
    """Return whether two files have the same bytes."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    digests = []
    for name, opened in ((one.name, folder), (two.name, other)):
        digest = hashlib.sha256()
        with open(os.open(name, flags, dir_fd=opened), "rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        digests.append(digest.digest())
    return digests[0] == digests[1]


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    """Yield the descriptor of a folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync_folder(path: Path) -> None:
    """Make the names in a folder durable, if the system can."""
    with suppress(OSError), _folder(path) as opened:
        os.fsync(opened)


@contextmanager
def _made_folder(path: Path, mode: int) -> Iterator[int]:
    """Yield the descriptor of a folder, which is made if need be; links on the way are refused.

    Paths of a plan are without links, so one that is there now was put there since.
    """
    reading = getattr(os, "O_PATH", os.O_RDONLY)  # folders above may be closed to reading
    flags = reading | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path.anchor, flags)
    try:
        for part in path.parts[1:]:
            try:
                inner = os.open(part, flags, dir_fd=descriptor)
            except FileNotFoundError:
                with suppress(FileExistsError):
                    os.mkdir(part, mode, dir_fd=descriptor)
                inner = os.open(part, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _os_errors() -> Iterator[None]:
    """Raise errors of the system as reasons to leave a file alone."""
    try:
        yield
    except OSError as error:
        raise _LeftAloneError(f"cannot be changed ({error.strerror or error})") from error
