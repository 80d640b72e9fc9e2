"""Folders and lists of files: one document per file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lookalike.corpora.base import (
    BATCH_BYTES,
    BATCH_ROWS,
    UNDECODABLE,
    KeptRows,
    Problems,
    Rows,
    chosen_columns,
    pa,
)
from lookalike.corpora.encodings import (
    Encodings,
    NotText,
    is_binary,
    is_other_utf8,
    mark_of,
    read_bytes,
    utf8_of,
)
from lookalike.corpora.formats import Format, PathCorpus, Target, check_plain
from lookalike.errors import DocumentError, FileError
from lookalike.processes import in_groups
from lookalike.storage.files import file_errors, walk_folder, whole_folder

_COLUMNS = ("path", "text", "bytes")


class FolderCorpus(PathCorpus):
    """One document per file, sorted by path; the columns are `path`, `text` and `bytes`.

    Folders are searched recursively, without following links to folders. Only plain files are read.
    A folder that cannot be read is an error; inside another one, `Problems.skip_bad` skips it. A
    NUL byte in the first 8 KB makes a file binary, unless it is UTF-16 or UTF-32. Files that are
    binary or cannot be decoded are skipped, counted and named, but a single given file is an error.
    Paths are relative to a single folder.
    """

    format = "files"
    fixed_columns = True

    def __init__(self, paths: Sequence[Path], encodings: Encodings | None = None) -> None:
        super().__init__(paths, encodings)
        self.root = paths[0] if len(paths) == 1 and paths[0].is_dir() else None
        self._closed: list[OSError] = []
        self.files = [file for path in paths for file in files_in(path, self._closed)]
        if not self.files and not self._closed:
            raise FileError(f"{self.name} has no files; check whether it is the right folder")

    def columns(self) -> list[str]:
        return list(_COLUMNS)

    def shown(self, file: Path) -> str:
        """Return the value of a file in the column `path`."""
        shown = file.relative_to(self.root) if self.root else file
        return os.fsencode(f"{shown}").decode("utf-8", "replace")

    def documents(self, problems: Problems) -> Iterator[tuple[Path, bytes]]:
        """Yield the text files, each with its text in UTF-8, without a byte order mark."""
        self.report_closed(problems)
        for index, file in enumerate(self.files):
            text = self.text_of(file, problems)
            self.done = (index + 1) / len(self.files)
            if text is not None:
                yield file, text

    def report_closed(self, problems: Problems) -> None:
        """Report the folders that cannot be read."""
        for error in self._closed:
            problems.report(f"{error.filename}", f"cannot be read ({error.strerror})")

    def text_of(self, file: Path, problems: Problems) -> bytes | None:
        """Return a file's text in UTF-8, without a byte order mark; None if it is skipped."""
        given = self.encodings.given
        try:
            data = read_bytes(file, self.max_document, given)
        except OSError as error:
            problems.report(f"{file}", f"cannot be read ({error.strerror})")
            return None
        if len(data) > self.max_document and not is_binary(data, given):
            problems.report_size(f"{file}", self.max_document)
            return None
        try:
            text, encoding = utf8_of(data, given)
        except NotText as error:
            if self.files == [file] and self.root is None and not problems.skip_bad:
                raise DocumentError(f"{file} {error}; expected text") from None
            kind = None if error.binary else UNDECODABLE
            problems.leave_out_file(kind, file, str(error))
            return None
        other = is_other_utf8(data, given)
        self.encodings.note(file, encoding, mark_of(data), problems, valid_utf8=other)
        return text

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        documents = self.documents(problems)
        for some in in_groups(documents, lambda one: len(one[1]), BATCH_BYTES, BATCH_ROWS):
            values = [
                {"path": self.shown(file), "text": text, "bytes": len(text)} for file, text in some
            ]
            kinds = [("path", pa.string()), ("text", pa.large_string()), ("bytes", pa.int64())]
            batch = pa.RecordBatch.from_pylist(values, pa.schema(kinds))
            yield chosen_columns(batch, columns, pa.string())

    def copy_rows(self, rows: KeptRows, target: Target) -> int | None:
        if not isinstance(target, Path):
            return None
        written = 0
        with whole_folder(target) as folder:
            for file, _ in self.documents(rows.problems):
                chosen, _ = rows.next(1)
                if not len(chosen):
                    continue
                # Paths of copies cannot lead out of the folder.
                plain = [part for part in file.absolute().parts[1:] if part != ".."]
                copy = folder / (file.relative_to(self.root) if self.root else Path(*plain))
                copy.parent.mkdir(parents=True, exist_ok=True)
                for text in rows.new_texts(1).values():
                    encoding, mark = self.encodings.found[file]
                    copy.write_bytes(mark + text.encode(encoding))
                    break
                else:
                    shutil.copy2(file, copy)
                written += 1
            rows.finish()
        return written

    def identity(self) -> list[Any]:
        found = []
        for file in self.files:
            with file_errors(f"{file}:"):
                status = file.stat()
            found.append([str(file.absolute()), status.st_size, status.st_mtime_ns])
        return found


def files_in(path: Path, closed: list[OSError]) -> list[Path]:
    """Return a file, or those in a folder, sorted by path; add errors to `closed`."""
    if not path.is_dir():
        check_plain(path)
        return [path]
    found: list[Path] = []
    for folder, folders, names in walk_folder(path, closed):
        folders.sort()
        for name in names:
            try:
                if (file := Path(folder, name)).is_file():
                    found.append(file)
            except OSError as error:  # the folder can be listed, but its files cannot be accessed
                closed.append(error)
    return sorted(found)


FORMAT = Format(name="files", suffixes=(), open=FolderCorpus, copies=True, rows=False)
