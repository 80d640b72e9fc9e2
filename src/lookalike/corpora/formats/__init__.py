"""File formats: the registry, and code that formats share.

A format is a module with a `Format`, registered in `FORMATS` here or through the entry point group
`lookalike.formats` of another package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from lookalike.corpora.base import BATCH_BYTES, Corpus, Rows, pa
from lookalike.corpora.encodings import UTF8, EncodedOutput, Encodings, TextStream
from lookalike.errors import FileError
from lookalike.registry import Registry
from lookalike.storage.files import file_errors, whole_file

Target: TypeAlias = Path | BinaryIO
"""A file, or an open stream such as standard output."""

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format: how its files are recognized, read and written."""

    name: str
    suffixes: tuple[str, ...]
    """File extensions in lower case, the usual one first. A compression may follow them."""
    open: Callable[[list[Path], Encodings], Corpus]
    """Open files as a corpus, whose `format` is the name of this format."""
    write: Callable[[Iterator[Rows], Any, Output], None] | None = None
    """Write record batches of one Arrow schema as a table."""
    copies: bool = False
    """Whether `Corpus.copy_rows` writes rows of this format although `write` is None."""
    magic: bytes = b""  # the first bytes of every file; empty if they differ
    begins: Callable[[str, bool], bool] | None = None
    """Return whether a text is the beginning (with True, the whole) of such a file."""
    rows: bool = True  # whether a file has rows; else it is one document
    shards: bool = False  # whether a folder of such files is read as one corpus of rows
    streams: bool = False  # whether rows can be written to standard output
    packs: bool = True  # whether files may be compressed as a whole, as in NAME.jsonl.gz
    has_encoding: bool = True  # whether files are text whose encoding may be given


@dataclass(frozen=True)
class Output:
    """A file that `Format.write` is to write."""

    path: Path  # its name in messages
    file: Path  # the path to write to until it is complete
    compression: str | None = None  # how to compress it as a whole: "gzip" or "zstd"
    like: Corpus | None = None  # the corpus whose rows are written, if it has the same format

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Open the file for writing bytes, which are compressed."""
        with pa.OSFile(os.fsencode(self.file), "wb") as file:
            if self.compression is None:
                yield file
            else:
                with pa.CompressedOutputStream(file, self.compression) as stream:
                    yield stream


FORMATS: Registry[Format] = Registry(
    "format",
    "lookalike.formats",
    {
        "jsonl": "lookalike.corpora.formats.json_lines:FORMAT",
        "json": "lookalike.corpora.formats.json_array:FORMAT",
        "html": "lookalike.corpora.formats.html:FORMAT",
        "csv": "lookalike.corpora.formats.delimited:CSV",
        "tsv": "lookalike.corpora.formats.delimited:TSV",
        "parquet": "lookalike.corpora.formats.parquet:FORMAT",
        "text": "lookalike.corpora.formats.lines:FORMAT",
        "files": "lookalike.corpora.formats.files:FORMAT",
        "warc": "lookalike.corpora.formats.warc:FORMAT",
    },
)

_by_suffix: dict[str, Format] = {}


def compression_of(path: Path) -> str | None:
    """Return "gzip" or "zstd" by the file extension, or None."""
    return _COMPRESSIONS.get(path.suffix.lower())


def format_suffix(path: Path) -> str:
    """Return the file extension before that of a compression."""
    return (path.with_suffix("") if compression_of(path) else path).suffix


def named_format(path: Path) -> Format | None:
    """Return the format by the file extension; None if it is unknown."""
    suffix = format_suffix(path).lower()
    found = _by_suffix.get(suffix)
    if found is None and suffix:
        found = FORMATS.find(lambda format: suffix in format.suffixes)
        if found is not None:
            _by_suffix[suffix] = found
    return found


def format_of(path: Path) -> str | None:
    """Return the name of the format by the file extension; None if it is unknown."""
    found = named_format(path)
    return None if found is None else found.name


def is_table(path: Path) -> bool:
    """Return whether tables can be written in the format of the file extension."""
    found = named_format(path)
    return found is not None and found.write is not None


def table_suffixes() -> str:
    """Return the extensions of formats that tables can be written in, for messages."""
    *some, last = [format.suffixes[0] for format in FORMATS if format.write is not None]
    return f"{', '.join(some)} or {last}"


def check_plain(path: Path) -> None:
    """Refuse pipes and devices: a corpus is read more than once."""
    if not os.path.isfile(path):  # noqa: PTH113  # raises nothing
        raise FileError(
            f"{path} is not a plain file; a corpus is read more than once. Write the content of a "
            "pipe to a file first"
        )


class PathCorpus(Corpus):
    """Files or folders, known by their paths, with text in one or several encodings."""

    def __init__(self, paths: Sequence[Path], encodings: Encodings | None) -> None:
        self.encodings = encodings or Encodings()
        if self.encodings.given is not None:
            self.described = ["encoding", self.encodings.given]
        self.name = f"{paths[0]} and {len(paths) - 1} more" if len(paths) > 1 else f"{paths[0]}"


class FileCorpus(PathCorpus):
    """Files of one format, one after the other."""

    def __init__(
        self, paths: Sequence[Path], format: str, encodings: Encodings | None = None
    ) -> None:
        super().__init__(paths, encodings)
        self.paths = self.files = list(paths)
        self.format = format
        self.sizes: list[int] = []
        for path in self.paths:
            with file_errors(f"{path}:"):
                self.sizes.append(path.stat().st_size)
            check_plain(path)
        self.total_bytes = max(1, sum(self.sizes))

    def identity(self) -> list[Any]:
        """Return names, sizes and modification times of files; checksums of copies."""
        found: list[Any] = []
        for path in self.paths:
            with file_errors(f"{path}:"):
                state = path.stat()
                own = [str(path.resolve()), state.st_size, state.st_mtime_ns]
                found.append((self.spool and self.spool.identity(path)) or own)
        return found

    @contextmanager
    def open_output(self, target: Target, *, is_json: bool = False) -> Iterator[Any]:
        """Open a file or stream that converts UTF-8 to the encoding of these files."""
        name, mark = self.encoding_of_output()
        with open_target(target) as file:
            yield file if name == UTF8 else EncodedOutput(file, name, mark, is_json=is_json)

    def encoding_of_output(self) -> tuple[str, bytes]:
        """Return the encoding of all files and its byte order mark; UTF-8 if they differ."""
        known = self.encodings
        for path in self.paths:
            if path not in known.found:  # an earlier run has read it
                stream, file = open_text(path, known.given)
                with file:
                    while not stream.decided and stream.read(BATCH_BYTES):
                        pass
                known.found[path] = stream.encoding, stream.mark
        return known.of_output(self.paths)


def open_input(path: Path) -> Any:
    """Open a file for reading, decompressed; return the stream and the file behind it."""
    compression = compression_of(path)
    with file_errors(f"{path}:"):
        if compression is None:
            file: Any = open(path, "rb", buffering=0)  # noqa: SIM115  # the caller closes it
            return file, file
        file = pa.OSFile(os.fsencode(path), "rb")
        return pa.CompressedInputStream(file, compression), file


def open_text(path: Path, encoding: str | None) -> tuple[TextStream, Any]:
    """Open a file for reading, decompressed and as UTF-8; return the stream and the file."""
    stream, file = open_input(path)
    return TextStream(stream, encoding), file


@contextmanager
def open_target(target: Target) -> Iterator[Any]:
    """Open a file for writing, whole or not at all, compressed by its extension; or a stream."""
    if not isinstance(target, Path):
        yield target
        return
    with (
        whole_file(target) as temporary,
        Output(target, temporary, compression_of(target)).open() as file,
    ):
        yield file
