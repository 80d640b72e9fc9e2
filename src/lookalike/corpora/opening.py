"""Open what the user gives as a corpus: paths, patterns, folders, addresses, tables in memory."""

from __future__ import annotations

import fnmatch
import glob
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookalike.checks import file_path, is_address, without_secret
from lookalike.corpora.base import Corpus, Problems, some_files
from lookalike.corpora.encodings import Encodings, NotText, check_encoding, read_bytes, utf8_of
from lookalike.corpora.formats import FORMATS, compression_of, format_of
from lookalike.errors import ArgumentError, DocumentError, FileError, FormatError, Said
from lookalike.pages import PageLimits
from lookalike.shown import brief, counted, escape_terminal
from lookalike.storage.files import file_errors, is_folder, is_there
from lookalike.suggestions import did_you_mean_file

_ANY_FOLDERS = "**"
# names that Spark gives to the mark of a complete folder, and to its parts
_DONE, _PART = "_SUCCESS", "part-"
_LONGEST_LINE = 1 << 26
_LONGEST_LOOKED_AT = 1 << 16  # bytes of the first line of a file of unknown format
_PER_LINE = "one document per line; --format files: one per file"
_PER_FILE = "one document per file; --format text: one per line"


def open_corpus(
    source: Any,
    format: str | None = None,
    *,
    html: str | None = None,
    page_limits: PageLimits | None = None,
    encoding: str | None = None,
    whole_files: bool = False,
) -> Corpus:
    """Open files or a table in memory as a corpus; a corpus is returned unchanged.

    Args:
        source: a path, a glob pattern, a list of `Path`s, an address such as s3://bucket/folder,
            which is copied first, or a table. A list of `str` is a list of documents. A folder is
            read as shards of one format or as one document per file, whichever has more bytes.
        format: one of `FORMATS` (default: from the file extension; other files are one document
            each). HTML files are read as web pages unless the format is "files". One .txt file has
            a document per line ("text"); several are one document each ("files").
        html: a column with web pages.
        page_limits: limits for one page.
        encoding: encoding of text files, such as "cp1252" (default: UTF-8 if valid, else detected).
        whole_files: read also a single .txt file as one document.
    """
    if html is not None or page_limits is not None:
        opened = open_corpus(source, format, encoding=encoding, whole_files=whole_files)
        return with_pages(opened, html, page_limits)
    if format is not None:
        FORMATS.get(format, "format")
    if encoding is not None:
        check_encoding(encoding)
    if isinstance(source, Corpus):
        if encoding is not None:
            raise ArgumentError(f"{source.name} is already open; leave encoding out")
        return source
    if is_address(source):
        from lookalike.corpora.remote import copy_files

        copied, spool = copy_files(source)
        corpus = open_corpus(copied, format, encoding=encoding, whole_files=whole_files)
        corpus.spool, corpus.name = spool, without_secret(source)
        return corpus
    if isinstance(source, str | os.PathLike):
        paths = expand_paths([file_path("source", source)])
        return _open_files(paths, format, encoding, whole_files)
    if isinstance(source, Sequence) and source and all(isinstance(one, Path) for one in source):
        return _open_files(expand_paths(source), format, encoding, whole_files)
    if encoding is not None:
        raise ArgumentError(
            f"encoding is {brief(encoding)}, but the source is a table in memory, whose text is "
            "already decoded; leave it out"
        )
    from lookalike.corpora.tables import SplitsCorpus, TableCorpus, is_splits

    return SplitsCorpus(source) if is_splits(source) else TableCorpus(source)


def _open_files(
    paths: list[Path], format: str | None, encoding: str | None, whole_files: bool
) -> Corpus:
    named = {path for path in paths if not is_folder(path)}
    formats = {format or format_of(path) or "files" for path in named}
    only_files = named.issuperset(paths)
    texts = [] if format else [path for path in named if format_of(path) == "text"]
    packed = any(compression_of(path) for path in texts)  # a document is not decompressed
    if texts and only_files and not packed and (whole_files or len(paths) > 1):
        formats = formats - {"text"} | {"files"}
    if formats == {"html", "files"}:
        taken = _Taken(paths, "files")
    elif len(formats) > 1:
        raise _several_formats(formats)
    elif only_files:
        taken = _Taken(paths, formats.pop())
    else:
        taken = _take_files(paths, named, format or next(iter(formats), None), format is not None)
    kind = FORMATS[taken.format]
    if encoding is not None and not kind.has_encoding:
        raise ArgumentError(
            f"encoding is {brief(encoding)}, but {escape_terminal(taken.paths[0])} is {kind.name}, "
            "which declares its own; leave it out"
        )
    encodings = Encodings(encoding)
    corpus = kind.open(taken.paths, encodings)
    if format is None and kind.name == "files" and "html" in map(format_of, corpus.files):
        from lookalike.corpora.formats.html import PageFolderCorpus

        corpus = PageFolderCorpus(taken.paths, encodings=encodings)
    corpus.notices = taken.notices
    if texts and not whole_files:
        corpus.unit = _PER_LINE if kind.name == "text" else _PER_FILE
    if format is None and kind.name == "files":
        corpus.notices = (*corpus.notices, *_rows_unread(paths, named))
    if len(paths) == 1 and not named:
        corpus.root = paths[0]
    return corpus


def _rows_unread(paths: Sequence[Path], named: set[Path]) -> list[str]:
    """Return a notice if the first named file of unknown format looks like JSON Lines."""
    path = next((path for path in paths if path in named and format_of(path) is None), None)
    if path is None:
        return []
    with file_errors(f"{path}:"), open(path, "rb") as file:
        line = file.readline(_LONGEST_LOOKED_AT)
    if not _is_object(line) and not (len(line) == _LONGEST_LOOKED_AT and line.startswith(b'{"')):
        return []
    return [
        f"{escape_terminal(path)} is read as one document, but its first line is a JSON object; "
        'to read each line as a document, use --format jsonl (format="jsonl")'
    ]


def with_pages(corpus: Corpus, html: str | None, limits: PageLimits | None) -> Corpus:
    """Return a corpus with a column of pages, or a corpus of pages with other limits."""
    if limits is not None and not isinstance(limits, PageLimits):
        raise ArgumentError(f"page_limits are {limits!r}; expected la.pages.PageLimits(...)")
    if html is not None:
        if corpus.page_text is not None:
            raise ArgumentError(
                f"{corpus.name} consists of web pages; leave ",
                Said("html"),
                " out, which names a column with pages",
            )
        from lookalike.corpora.formats.html import HtmlColumnCorpus

        return HtmlColumnCorpus(corpus, html, limits)
    reading = getattr(corpus, "reading", None)
    if reading is None or limits is None:
        raise ArgumentError(f"{corpus.name} has no web pages; leave page_limits out")
    reading.limits = limits
    corpus.described = [*reading.described(), *corpus.described[len(reading.described()) :]]
    return corpus


def with_old_pages(corpus: Corpus, html: str | None, limits: PageLimits | None) -> Corpus:
    """Return the same for an old corpus, which may have texts instead of pages."""
    if corpus.page_text is not None:
        return corpus if limits is None else with_pages(corpus, None, limits)
    return with_pages(corpus, html, limits) if html in corpus.columns() else corpus


def expand_paths(paths: Sequence[str | Path]) -> list[Path]:
    """Return the files and folders of paths and, unless a path of that name exists, patterns."""
    found: list[Path] = []
    for path in paths:
        if is_there(path):
            found.append(path if isinstance(path, Path) else Path(path))
            continue
        matches = _matching_paths(str(path)) if glob.has_magic(str(path)) else []
        if not matches:
            pattern = ", and no file matches this pattern" if glob.has_magic(str(path)) else ""
            raise FileError(
                f"{path}: there is no such file or folder{pattern}{did_you_mean_file(path)}"
            )
        found += matches
    if not found:
        raise ArgumentError("no input was given; expected a file, a folder or a pattern")
    return found


def _matching_paths(pattern: str) -> list[Path]:
    """Return the files and folders that match a pattern, sorted by name.

    `*`, `?` and `[...]` match as in a shell: hidden files only if the pattern begins with a dot.
    `**` matches any number of folders, each at most once, so cycles of links end. A folder that
    cannot be read is an error. Files inside a matching folder are not returned separately.
    """
    path = Path(pattern)
    parts = path.parts[1:] if path.anchor else path.parts
    found = {Path(match) for match in _matching(path.anchor, parts)}
    return sorted(one for one in found if found.isdisjoint(one.parents))


def _matching(folder: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths in a folder that match the parts of a pattern; "" is the current folder."""
    if not parts:
        yield folder
        return
    part, rest = parts[0], parts[1:]
    if part == _ANY_FOLDERS:
        for inner in _folders_below(folder):
            yield from _matching(inner, rest)
    elif glob.has_magic(part):
        entries = _entries(folder, hidden=part.startswith("."))
        for name in fnmatch.filter(entries, part):
            if not rest or entries[name].is_dir():
                yield from _matching(folder + name + os.sep * bool(rest), rest)
    elif os.path.lexists(folder + part) and (not rest or Path(folder + part).is_dir()):
        yield from _matching(folder + part + os.sep * bool(rest), rest)


def _entries(folder: str, *, hidden: bool = False) -> dict[str, os.DirEntry[str]]:
    try:
        with os.scandir(folder or os.curdir) as entries:
            return {one.name: one for one in entries if hidden or not one.name.startswith(".")}
    except OSError as error:
        raise FileError(
            f"{folder}: this folder cannot be read ({error.strerror or error}), so its files would "
            "be skipped; make it readable, or give other patterns"
        ) from error


def _folders_below(folder: str) -> Iterator[str]:
    """Yield a folder and those in it at any depth: first without following links, then with."""
    seen: set[tuple[int, int]] = set()
    waiting, links = [folder], list[str]()
    while waiting or links:
        path = waiting.pop() if waiting else links.pop(0)
        state = Path(path or os.curdir).stat()
        if (state.st_dev, state.st_ino) in seen:
            continue
        seen.add((state.st_dev, state.st_ino))
        yield path
        for name, entry in sorted(_entries(path).items(), reverse=True):
            if entry.is_dir():
                (links if entry.is_symlink() else waiting).append(path + name + os.sep)


@dataclass(frozen=True)
class _Taken:
    """The files of a corpus; `notices` say which files of a folder were skipped."""

    paths: list[Path]
    format: str
    notices: tuple[str, ...] = ()


def _take_files(
    paths: Sequence[Path], named: set[Path], kind: str | None, is_given: bool
) -> _Taken:
    """Return the files that folders, and `named` files beside them, contribute.

    Of a folder, the kind of files with the most bytes is taken: shards of one format, or all files
    as documents. A `.json` or `.txt` file is a document. Hidden files do not count. A given format,
    or the format of named files, decides without comparing sizes.
    """
    if kind is not None and not FORMATS[kind].rows:
        return _Taken(list(paths), kind)
    if kind is not None and not is_given and not FORMATS[kind].shards:
        raise _several_formats([kind, "files"])
    found = {path: _visible(path) for path in paths if path not in named}
    inside = [file for files in found.values() for file in files]
    written = _kind_of_spark(inside) if kind is None else None
    if written is not None:
        inside = [file for file in inside if file.name.startswith(_PART)]
        return _Taken(inside, written)
    kind = kind or _heaviest(inside)
    if kind == "files":
        shards = [file for file in inside if _is_shard(file)]
        notice = (
            f"read each file as one document, also {some_files(shards)} with rows, because the "
            "other files have more bytes; to read their rows, give only these files"
        )
        return _Taken(list(paths), kind, (notice,) if shards else ())
    chosen = {file for file in inside if format_of(file) == kind}
    if is_given and not chosen:  # the names of files may say nothing
        chosen = {file for file in inside if format_of(file) is None}
    if not chosen and not named:
        raise FileError(
            f"{paths[0]} has no files of the format {kind!r}; expected names with an extension of "
            "that format, or without any"
        )
    taken = [file for path in paths for file in found.get(path, [path])]
    left = [file for file in inside if file not in chosen]
    notices = (_left(len(chosen), len(named), left, kind),) if left else ()
    return _Taken([file for file in taken if file in chosen or file in named], kind, notices)


def _several_formats(formats: Iterable[str]) -> FormatError:
    return FormatError(
        f"the input has files of several formats ({', '.join(sorted(formats))}); give files of "
        "one format, or set it with ",
        Said("format"),
    )


def _visible(folder: Path) -> list[Path]:
    """Return the files of a folder at any depth that are not hidden, sorted by path."""
    from lookalike.corpora.formats.files import files_in

    closed: list[OSError] = []
    files = files_in(folder, closed)
    if closed and any(map(_is_shard, files)):
        raise FileError(
            f"{closed[0].filename}: cannot be read ({closed[0].strerror}), so its files would be "
            "skipped; make it readable, or name the files"
        )
    return [
        file
        for file in files
        if not any(part.startswith(".") for part in file.relative_to(folder).parts)
    ]


def _kind_of_spark(files: Sequence[Path]) -> str | None:
    """Return the format of parts that Spark wrote without an extension; None for other files."""
    parts = [file for file in files if file.name.startswith(_PART)]
    others = {file.name for file in files if not file.name.startswith(_PART)}
    formats = {format_of(file) for file in parts}
    if others != {_DONE} or formats not in ({"text"}, {"json"}):
        return None
    from lookalike.corpora.formats.lines import line_batches

    for file in parts:
        beginning = next(line_batches(file, _LONGEST_LINE, Problems(True)), None)
        if beginning is not None and len(beginning):
            return "jsonl" if _is_object(beginning.lines[0].as_py()) else formats.pop()
    return formats.pop()


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _is_shard(file: Path) -> bool:
    kind = format_of(file)
    return kind is not None and FORMATS[kind].shards


def _heaviest(files: Sequence[Path]) -> str:
    """Return the format of shards that has most bytes, or "files" if other files have more."""
    sizes: Counter[str] = Counter()
    for file in files:
        with file_errors(f"{file}:"):
            sizes[str(format_of(file)) if _is_shard(file) else "files"] += file.stat().st_size
    others = sizes.pop("files", 0)
    heaviest = max(sizes, key=lambda kind: sizes[kind], default="files")
    return heaviest if sizes[heaviest] >= others else "files"


def _left(inside: int, named: int, left: Sequence[Path], kind: str) -> str:
    rows = counted(inside + named, f"{kind} file")
    taken = f"read the rows of {rows} and skipped {some_files(left)}"
    if not inside:
        return f"{taken}, all files of the folder; to read these, give only the folder"
    return f'{taken}; to read each file as one document, use --format files (format="files")'


def read_document(
    path: Path,
    most_bytes: int,
    *,
    page: bool | None = None,
    links: bool = False,
    encoding: str | None = None,
) -> str:
    """Return the text of a file or, by its name or `page`, of a web page, with `links` marked."""
    if not (format_of(path) == "html" if page is None else page):
        return read_text(path, most_bytes, encoding)
    with file_errors(path), open(path, "rb"):
        pass
    from lookalike.corpora.formats.html import PageFolderCorpus

    corpus = PageFolderCorpus([path], only_pages=True, encodings=Encodings(encoding))
    problems = Problems()
    column = corpus.marked_text if links else corpus.page_text
    for batch in corpus.read([column], problems):
        if len(batch):
            return str(batch.column(0)[0].as_py())
    raise DocumentError(
        f"{problems.examples[0]}; the text of this page cannot be extracted: save it to a file"
    )


def read_text(path: Path, most_bytes: int, encoding: str | None = None) -> str:
    """Return a file's text; refuse binary files, and files larger than `most_bytes`."""
    encoding = check_encoding(encoding)
    with file_errors(path):
        data = read_bytes(path, most_bytes, encoding)
    if len(data) > most_bytes:
        raise DocumentError(
            f"{path} is larger than {most_bytes:,} bytes; split it into parts, and compare these"
        )
    try:
        return utf8_of(data, encoding)[0].decode()
    except NotText as error:
        hint = "" if error.binary else "; if it is text, set its encoding with --encoding"
        raise DocumentError(f"{path} {error}; expected text{hint}") from None
