"""Finding single documents of a corpus, by id or by row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lookalike.corpora.base import Corpus, Problems, compute
from lookalike.corpora.columns import Columns, text_strings
from lookalike.corpora.encodings import (
    Encodings,
    NotText,
    check_encoding,
    is_binary,
    utf8_of,
)
from lookalike.corpora.page_files import PageFolderCorpus, is_page
from lookalike.errors import ArgumentError, DocumentError, FileError

_BEGINNING = 8192
_EXAMPLES = 3


def find_documents(
    corpus: Corpus, columns: Columns, wanted: Sequence[str], *, skip_bad: bool = False
) -> list[str]:
    """Return the texts of documents, by id or, without a column of ids, by row, counted from 0.

    Of several with one id, the first. Reads no further than needed, and holds a batch at a time.
    """
    found: dict[str, str] = {}
    examples: list[str] = []
    rows = 0
    for batch in corpus.read(columns.names, Problems(skip_bad)):
        texts = text_strings(batch.column(0), columns.text, corpus)
        ids = columns.ids(batch, rows)
        examples += ids[: _EXAMPLES - len(examples)].to_pylist()
        for name in wanted:
            if name not in found and (at := compute.index(ids, name).as_py()) >= 0:
                found[name] = texts[at].as_py() or ""
        rows += len(batch)
        if len(found) == len(set(wanted)):
            return [found[name] for name in wanted]
    missing = next(name for name in wanted if name not in found)
    what = f"no document whose {columns.id!r} is" if columns.id else "no row"
    shown = f"the first are {', '.join(map(repr, examples))}" if examples else "it is empty"
    raise ArgumentError(f"{corpus.name} has {what} {missing!r} among {rows:,} documents; {shown}")


def read_document(
    path: Path,
    most_bytes: int,
    *,
    page: bool | None = None,
    links: bool = False,
    encoding: str | None = None,
) -> str:
    """Return what a file says: the main text of a web page, or all of its text.

    It is a page if its name says so, unless `page` does. With `links` they are marked, as a corpus
    of pages has them for features that read links.
    """
    if not (is_page(path) if page is None else page):
        return read_text(path, most_bytes, encoding)
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    corpus = PageFolderCorpus([path], only_pages=True, encodings=Encodings(encoding))
    problems = Problems()
    column = corpus.marked_text if links else corpus.page_text
    for batch in corpus.read([column], problems):
        if len(batch):
            return str(batch.column(0)[0].as_py())
    raise DocumentError(
        f"{problems.examples[0]}; the page is too much for its text to be found: save the text "
        "that is meant to a file"
    )


def read_text(path: Path, most_bytes: int, encoding: str | None = None) -> str:
    """Return a file's text; refuse binary files, and files larger than `most_bytes`."""
    encoding = check_encoding(encoding)
    try:
        with open(path, "rb") as file:
            data = file.read(_BEGINNING)
            if not is_binary(data, encoding):
                data += file.read(max(0, most_bytes + 1 - len(data)))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > most_bytes:
        raise DocumentError(
            f"{path} is larger than {most_bytes:,} bytes; cut it into parts, and compare these"
        )
    try:
        return utf8_of(data, encoding)[0].decode()
    except NotText as error:
        hint = "" if error.binary else "; if it is, name its encoding with --encoding"
        raise DocumentError(f"{path} {error}; expected text{hint}") from None
