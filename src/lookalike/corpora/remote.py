"""Files that lie elsewhere, such as s3://bucket/crawl/: copied here first, because they are read
more than once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from lookalike.corpora.base import Corpus, pa
from lookalike.corpora.spool import Spool
from lookalike.errors import ArgumentError, FileError
from lookalike.lazy import LazyModule
from lookalike.storage import is_there

file_systems = LazyModule("pyarrow.fs", "files that lie elsewhere")

_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_QUERY = re.compile(r"\?[a-z_]+=[^?]*$")
"""What pyarrow is told besides, such as ?region=eu-west-1: not a pattern."""
_SECRET = re.compile(r"//[^/@]*@")
_WEB = ("http", "https", "ftp", "ftps")
_FOLDER = "files"

ATTEMPTS = 3
"""How often a request to S3 is made before it has failed."""
CONNECT_SECONDS, SILENT_SECONDS = 10.0, 20.0
"""How long a connection to S3 may take, and how long it may bring nothing."""


def is_address(name: object) -> bool:
    """Return whether a name is an address and no path, nor a file that happens to be called so."""
    return isinstance(name, str) and bool(_ADDRESS.match(name)) and not is_there(name)


def copy_files(address: str) -> tuple[Path, Spool]:
    """Copy a file, or all of a folder, by the file systems that pyarrow has; return where it is."""
    shown = _SECRET.sub("//***@", address)
    scheme = address.partition("://")[0].lower()
    if scheme in _WEB:
        raise FileError(
            f"{shown} is on the web, from where nothing is fetched; fetch it first, or let another "
            f"program do it: curl -sL '{shown}' | lookalike dedup - -o unique.jsonl"
        )
    if any(character in _QUERY.sub("", address) for character in "*?["):
        raise ArgumentError(
            f"{shown} is a pattern; of files that lie elsewhere name one, or the folder they are in"
        )
    try:
        files, path = file_systems.FileSystem.from_uri(address)
        files = _bounded(files)
        found = list(_found(files, path))
    except (ImportError, OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise FileError(f"{shown} cannot be read: {_reason(error)}{_how(scheme)}") from error
    if not found:
        raise FileError(f"{shown}: there is no such file or folder")
    spool = Spool()
    for file, name, size in found:
        try:
            with files.open_input_stream(file, compression=None) as stream:
                copied = spool.copy(stream, name).stat().st_size
            if size is not None and copied != size:
                raise OSError(f"{copied:,} of {size:,} bytes of {name} came")
        except (OSError, pa.ArrowException) as error:
            spool.close()
            raise FileError(f"{shown} cannot be read: {_reason(error)}") from error
    single = len(found) == 1 and found[0][0] == path
    return spool.folder / (found[0][1] if single else _FOLDER), spool


def _bounded(files: Any) -> Any:
    """Return a file system of S3 that gives up; by itself it tries for minutes."""
    kind = getattr(file_systems, "S3FileSystem", None)
    if kind is None or not isinstance(files, kind):
        return files
    _, (settings,) = files.__reduce__()
    if settings["connect_timeout"] < 0:
        settings["connect_timeout"] = CONNECT_SECONDS
    if settings["request_timeout"] < 0:
        settings["request_timeout"] = SILENT_SECONDS
    retries = file_systems.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS)
    return kind(**settings, retry_strategy=retries)


def keep_copies(corpus: Corpus, spool: Spool, address: str) -> Corpus:
    """Let copies stay as long as the corpus does, which is known by its address."""
    corpus.spool = spool
    corpus.name = _SECRET.sub("//***@", address)
    return corpus


def _found(files: Any, path: str) -> Iterator[tuple[str, str, int | None]]:
    """Yield the files of a path, what copies are called, and their sizes: nothing leads out of a
    folder.
    """
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
    return _SECRET.sub("//***@", next(iter(str(error).splitlines()), type(error).__name__))


def _how(scheme: str) -> str:
    if scheme == "hf":
        return (
            "; pyarrow reads hf:// where huggingface_hub is installed, else fetch it first: hf "
            "download NAME --repo-type dataset --local-dir FOLDER"
        )
    return "; pyarrow reads s3://, gs://, abfs:// and hdfs://; fetch others first, or pipe them in"
