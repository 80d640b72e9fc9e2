"""Remote and standard input, copied to disk because a corpus is read twice, and output to S3."""

from __future__ import annotations

import ctypes
import re
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import parse_qs, unquote

import numpy as np

from lookalike import _native
from lookalike.checks import is_address, without_secret
from lookalike.corpora.base import pa
from lookalike.corpora.formats import format_of
from lookalike.errors import ArgumentError, FileError
from lookalike.lazy import LazyModule
from lookalike.storage.files import file_errors, temporary_folder

file_systems = LazyModule("pyarrow.fs", "files that lie elsewhere")

_PREFIX = "lookalike-input-"
_COPIED = 1 << 20
_QUERY = re.compile(r"\?[a-z_]+=[^?]*$")  # options for pyarrow, such as ?region=eu-west-1
_WEB = ("http", "https", "ftp", "ftps")
_FOLDER = "files"
_OUTPUT = "lookalike-output-"
_SIGNATURES = ".lookalike"
_AT_A_TIME = 64 << 20  # bytes whose parts are uploaded in parallel

ATTEMPTS = 3  # maximum number of times a request to S3 is made
# time limits for connecting to S3 and for waiting for data
CONNECT_SECONDS, SILENT_SECONDS = 10.0, 20.0


class CopiedPath(PosixPath):
    """The path of a copy; messages show its origin."""

    origin: str | None = None

    def __format__(self, spec: str) -> str:
        return format(self.origin or str(self), spec)


class Spool:
    """A folder of copies, which is removed with the last reference to it."""

    def __init__(self, within: Path | None = None) -> None:
        self._content: dict[Path, tuple[list[Any], list[int]]] = {}
        if within is not None:
            with file_errors(within, "used as work folder"):
                within.mkdir(parents=True, exist_ok=True)
        left = ExitStack()
        self.folder = left.enter_context(temporary_folder(_PREFIX, within))
        self._finish = weakref.finalize(self, left.close)

    def copy(
        self, stream: BinaryIO, name: str, beginning: bytes = b"", origin: str | None = None
    ) -> Path:
        """Copy the rest of a stream, whose errors are raised; messages name its `origin`."""
        path = CopiedPath(self.folder / name)
        path.origin = origin
        checksum, size = _native.Xxh64(), 0
        with ExitStack() as opened:
            with self._writing(name):
                path.parent.mkdir(parents=True, exist_ok=True)
                file = opened.enter_context(open(path, "wb"))
            data = beginning or some_of(stream)
            while data:
                with self._writing(name):
                    file.write(data)
                checksum.add(np.frombuffer(data, np.uint8))
                size += len(data)
                data = some_of(stream)
            with self._writing(name):
                file.flush()
        self._content[path] = [name, size, checksum.value()], _state(path)
        return path

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FileError(
                f"{name} cannot be copied to {self.folder}: {error.strerror or error}. It is read "
                "twice and needs disk space; set --work or TMPDIR to another folder"
            ) from error

    def close(self) -> None:
        """Remove the copies now."""
        self._finish()

    def identity(self, path: Path) -> list[Any] | None:
        """Return name, size and checksum of a copy; None if it is not a copy, or has changed."""
        content, state = self._content.get(path, ([], []))
        return content if content and _state(path) == state else None


def some_of(stream: BinaryIO) -> bytes:
    """Return the bytes that have arrived, without waiting for more of a pipe."""
    data: bytes = getattr(stream, "read1", stream.read)(_COPIED)
    return data


def _state(path: Path) -> list[int]:
    try:
        state = path.stat()
    except OSError:
        return []
    return [state.st_size, state.st_mtime_ns, state.st_ino]


def copy_files(address: str) -> tuple[Path, Spool]:
    """Copy a file or folder with a file system of pyarrow; return the path of the copy."""
    shown = without_secret(address)
    scheme = address.partition("://")[0].lower()
    if scheme in _WEB:
        raise FileError(
            f"{shown} is a web address, which is not downloaded. Download it first, or use a pipe: "
            f"curl -sL '{shown}' | lookalike dedup - -o unique.jsonl"
        )
    if any(character in _QUERY.sub("", address) for character in "*?["):
        raise ArgumentError(
            f"{shown} is a pattern, which remote addresses do not support; give a file or a folder"
        )
    try:
        files, path = _file_system(address)
        found = list(_found(files, path))
    except _errors() as error:
        raise FileError(f"{shown} cannot be read: {_reason(error)}{_how(scheme)}") from error
    if not found:
        raise FileError(f"{shown}: there is no such file or folder")
    spool = Spool()
    for file, name, size in found:
        try:
            with files.open_input_stream(file, compression=None) as stream:
                copied = spool.copy(stream, name).stat().st_size
            if size is not None and copied != size:
                raise OSError(f"{copied:,} of {size:,} bytes of {name} were received")
        except (OSError, pa.ArrowException) as error:
            spool.close()
            raise FileError(f"{shown} cannot be read: {_reason(error)}") from error
    single = len(found) == 1 and found[0][0] == path
    return spool.folder / (found[0][1] if single else _FOLDER), spool


class Upload:
    """A local file that is uploaded to an address on S3 when it is complete, and then removed.

    The address is checked first: it must name a file in a reachable bucket. None of `others` (input
    or other output) may be at the same address or contain it.
    """

    def __init__(self, address: str, others: Iterable[object] = ()) -> None:
        self.shown = without_secret(address)
        scheme = address.partition("://")[0].lower()
        if scheme != "s3":
            raise FileError(
                f"{self.shown} cannot be written: output can be uploaded to s3:// addresses only. "
                "Write a local file and copy it"
            )
        place = _place(address)
        path = PurePosixPath(place[1])  # bucket and key
        known = format_of(Path(path)) is not None or path.suffix == _SIGNATURES
        if address.partition("?")[0].endswith("/") or not known or len(path.parts) == 1:
            raise ArgumentError(
                f"{self.shown} does not name a file. Output at an address is one file, such as "
                "s3://bucket/unique.jsonl; a folder is not uploaded"
            )
        for other in filter(is_address, others):
            server, inside = _place(str(other))  # "" matches any server
            same_server = place[0] == server or not (place[0] and server)
            if same_server and f"{place[1]}/".startswith(f"{inside}/"):
                raise ArgumentError(
                    f"{self.shown} is at {without_secret(str(other))}, which is also read or "
                    "written; give another name"
                )
        try:
            self._files, self._key = _file_system(address)
            bucket = self._key.partition("/")[0]
            there, around = self._files.get_file_info([self._key, bucket])
        except _errors() as error:
            raise FileError(f"{self.shown} cannot be written: {_reason(error)}") from error
        kinds = file_systems.FileType
        if around.type == kinds.NotFound:
            raise FileError(f"{self.shown} cannot be written: there is no bucket {bucket!r}")
        if there.type == kinds.Directory:
            raise FileError(f"{self.shown} is a folder with files in it. Give another name")
        self._left = ExitStack()
        self.path = self._left.enter_context(temporary_folder(_OUTPUT)) / path.name

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, *error: object) -> None:
        self._left.close()

    def publish(self) -> None:
        """Upload the file, and check its size there; Ctrl-C waits for the current request."""
        try:
            with ThreadPoolExecutor(1) as thread:
                size = thread.submit(_send, self.path, self._files, self._key).result()
        except (OSError, pa.ArrowException) as error:
            raise FileError(
                f"{self.shown} cannot be written: {_reason(error)}. No partial file is there. Try "
                "again, or write a local file and copy it"
            ) from error
        try:
            there = self._files.get_file_info(self._key).size
        except (OSError, pa.ArrowException) as error:
            raise FileError(
                f"{self.shown} was uploaded, but its size cannot be checked: {_reason(error)}"
            ) from error
        if there != size:
            found = "nothing" if there is None else f"{there:,} bytes"
            raise FileError(
                f"{self.shown} was uploaded with {size:,} bytes, but has {found} now. Check "
                "whether another program writes to this address"
            )


def _send(path: Path, files: Any, key: str) -> int:
    """Upload a file and return its size. Run this in a thread that no signal interrupts.

    When pyarrow destroys a stream, it completes the object with what it has so far, even after an
    error. So the stream of a failed upload is never destroyed, and the file is mapped, because
    reading it must not fail halfway.
    """
    size = path.stat().st_size
    data = pa.memory_map(str(path)).read_buffer() if size else b""
    stream = files.open_output_stream(key, compression=None)
    try:
        for begin in range(0, size, _AT_A_TIME):
            stream.write(data[begin : begin + _AT_A_TIME])
            stream.flush()  # or all parts wait in memory, and each of them is tried after an error
        stream.close()
    except BaseException:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))
        raise
    return size


def _place(address: str) -> tuple[str, str]:
    """Return the server of an address, or "", and its bucket and key."""
    path, _, query = without_secret(address, "//").partition("://")[2].partition("?")
    server = parse_qs(query).get("endpoint_override", [""])[-1]
    return server, re.sub("/+", "/", unquote(path)).rstrip("/")


def _file_system(address: str) -> tuple[Any, str]:
    """Return the file system of an address, with time limits for S3, and the path in it."""
    files, path = file_systems.FileSystem.from_uri(address)
    kind = getattr(file_systems, "S3FileSystem", None)
    if kind is None or not isinstance(files, kind):
        return files, path
    _, (settings,) = files.__reduce__()
    bounds = {"connect_timeout": CONNECT_SECONDS, "request_timeout": SILENT_SECONDS}
    settings |= {name: value for name, value in bounds.items() if settings[name] < 0}
    if "allow_delayed_open" in settings:  # a small file is one request, and leaves no parts
        settings["allow_delayed_open"] = True
    retries = file_systems.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS)
    return kind(**settings, retry_strategy=retries), path


def _errors() -> tuple[type[Exception], ...]:
    """Return the errors that opening an address may raise."""
    return ImportError, OSError, ValueError, TypeError, pa.ArrowException


def _found(files: Any, path: str) -> Iterator[tuple[str, str, int | None]]:
    """Yield the files of a path, names for their copies inside a folder, and their sizes."""
    kinds = file_systems.FileType
    info = files.get_file_info(path)
    if info.type == kinds.File:
        yield path, _inside(PurePosixPath(path).name), info.size
    elif info.type == kinds.Directory:
        selector = file_systems.FileSelector(path, recursive=True)
        for one in files.get_file_info(selector):
            if one.type == kinds.File:
                relative = one.path.removeprefix(path.rstrip("/")).lstrip("/")
                yield one.path, f"{_FOLDER}/{_inside(relative)}", one.size


def _inside(name: str) -> str:
    parts = [part for part in PurePosixPath(name).parts if part not in ("/", "..")]
    return "/".join(parts) or "file"


def _reason(error: Exception) -> str:
    return without_secret(next(iter(str(error).splitlines()), type(error).__name__))


def _how(scheme: str) -> str:
    if scheme == "hf":
        return (
            "; pyarrow reads hf:// if huggingface_hub is installed, else download it first: hf "
            "download NAME --repo-type dataset --local-dir FOLDER"
        )
    return "; pyarrow reads s3://, gs://, abfs:// and hdfs://; download others first, or use a pipe"
