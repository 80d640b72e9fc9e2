"""Importing corpora into a collection, and exporting a collection to a file, in constant memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

from lookalike.checks import file_path, flag, thread_count, whole_number
from lookalike.collection.documents import MOST_DEPTH, packed, unpacked
from lookalike.collection.reading import documents_with_parts
from lookalike.collection.vectors import decoded_vector, encoded_vector
from lookalike.collection.writing import Written
from lookalike.corpora import Corpus, Problems, open_corpus, write_table
from lookalike.corpora.base import Rows, pa
from lookalike.corpora.columns import (
    Columns,
    Filters,
    columns_for,
    filtered,
    id_column,
    text_column,
)
from lookalike.corpora.opening import expand_paths
from lookalike.display import Displayed
from lookalike.errors import (
    ArgumentError,
    BatchError,
    DocumentError,
    FileError,
    ItemError,
    Said,
)
from lookalike.features import FeatureKind
from lookalike.media import Medium, find_files, medium_of_files, medium_of_signer
from lookalike.pages import PageLimits
from lookalike.progress import Progress, listener

if TYPE_CHECKING:
    from lookalike.collection.collection import BaseCollection

_PART_BATCH = 200
"""Documents of many parts: an hour of sound has 0.9 MB of parts, twice that in hexadecimal."""
_MOST_BATCH = 10_000_000
_FILE_BATCH = 200
_NO_TEXT = "its name is not UTF-8; rename the file"
_PART_PAGE = 64
_EXAMPLES = 10
_EMPTY = "empty lines"
_ROWS_AT_ONCE = 1_000
_ROW_BYTES_AT_ONCE = 4 << 20
_EXPORTED = ("id", "text", "metadata", "signature", "added", "updated")
_VECTOR = "vector"
"""The columns of an exported file; the last one only if there are vectors."""


@dataclass(frozen=True)
class TransferSizes:
    """How many documents are in memory at a time, and sent or written together."""

    rows: int = 50_000
    bytes: int = 32 << 20  # of a transaction, which may then have fewer documents than asked for
    page: int = 2_000


@dataclass(repr=False)
class Imported(Displayed):
    """The result of an import."""

    added: int = 0
    updated: int = 0
    bad: int = 0
    """Invalid rows, which were left out."""
    examples: list[str] = field(default_factory=list)
    """What was wrong with some of them."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Filtered documents and unreadable pages, by kind."""
    files_left_out: list[str] = field(default_factory=list)
    """Every file of a folder that was left out, with the reason."""
    notices: list[str] = field(default_factory=list)
    """Notices about how files were read."""

    def count(self, added: int, updated: int, errors: Sequence[ItemError]) -> None:
        """Add the numbers of a batch that was written."""
        self.added, self.updated = self.added + added, self.updated + updated
        self.bad += len(errors)
        self.examples = (self.examples + [str(one) for one in errors[:_EXAMPLES]])[:_EXAMPLES]


def import_documents(
    docs: BaseCollection,
    source: Any,
    *,
    text: str | None,
    id: str | None,
    signature: str | None,
    vectors: str | None,
    format: str | None,
    replace: bool,
    skip_bad: bool,
    max_document: SupportsIndex | None,
    batch: SupportsIndex | None,
    progress: Progress | bool | None,
    html: str | None,
    page_limits: PageLimits | None,
    encoding: str | None,
    previews: bool,
    filters: Filters,
) -> Imported:
    """Add the rows of a corpus, or files of a medium; see `Collection.import_file`."""
    replace, skip_bad = flag("replace", replace), flag("skip_bad", skip_bad)
    tell = listener(progress)
    if are_files(docs, source):
        given = {
            "text": text, "id": id, "signature": signature, "vectors": vectors, "format": format,
        }  # fmt: skip
        return _import_files(docs, source, given, replace, skip_bad, previews, tell)
    if previews:
        raise ArgumentError(
            Said("previews"), " is for images, recordings and videos, not for rows; leave it out"
        )
    if batch is None:
        batch = _PART_BATCH if docs.parts else docs.transfer.rows
    size = whole_number("batch", batch, at_least=1, at_most=_MOST_BATCH)
    named = {"text": text, "id": id, "signature": signature, "vectors": vectors}
    for option, column in named.items():
        if column is not None and not isinstance(column, str):
            raise ArgumentError(f"{option} is {column!r}; expected the name of a column")
    corpus = open_corpus(source, format, html=html, page_limits=page_limits, encoding=encoding)
    if max_document is not None:
        corpus.max_document = whole_number("max_document", max_document, at_least=1)
    signed = corpus.column_for(signature, ("signature",), "signatures")
    texts = text_column(corpus, text)
    columns = _Columns(
        None if texts == signed else texts, id_column(corpus, id), signed,
        _vector_column(corpus, vectors),
    )  # fmt: skip
    if columns.text is None and columns.signature is None:
        raise ArgumentError(
            f"{corpus.name} has neither texts nor signatures; there are the columns "
            f"{', '.join(corpus.columns()) or 'none'}: name the column that has them"
        )
    if columns.text is not None:
        chosen = Columns(columns.text, columns.id)
        features = getattr(docs.signer, "features", None)
        if isinstance(features, FeatureKind):
            chosen = columns_for(corpus, chosen, features)
        columns = columns._replace(text=chosen.text)
        corpus = filtered(corpus, chosen, filters)
    problems = Problems(skip_bad)
    done = Imported()
    for rows in _batches(corpus, columns, problems, size, docs.transfer.bytes):
        _write(docs, rows, columns, replace, skip_bad, done)
        tell("importing", corpus.done)
    done.bad += problems.bad
    done.left_out = dict(problems.left_out)
    if problems.binary:
        done.left_out["binary files"] = problems.binary
    done.files_left_out, done.notices = problems.files, problems.notices()
    done.examples = (problems.examples + done.examples)[:_EXAMPLES]
    return done


# Folders of images, recordings or files of another medium


def are_files(docs: BaseCollection, source: Any) -> bool:
    """Return whether these are folders or files of the medium that the collection holds."""
    medium = medium_of_signer(docs.signer)
    several = source if isinstance(source, list | tuple) else [source]
    if medium is None or not all(isinstance(one, str | os.PathLike) for one in several):
        return False
    paths = list(map(Path, several))
    return any(path.is_dir() for path in paths) or medium_of_files(paths) == medium.name


def _import_files(
    docs: BaseCollection,
    source: Any,
    given: Mapping[str, Any],
    replace: bool,
    skip_bad: bool,
    previews: bool,
    tell: Progress,
) -> Imported:
    """Add files of folders, each known by its path there, some at a time in one transaction."""
    for name, value in given.items():
        if value is not None:
            holds = f" does nothing: the collection {docs.name!r} holds files; leave it out"
            raise ArgumentError(Said(name), holds)
    several = source if isinstance(source, list | tuple) else [source]
    paths = expand_paths([file_path("source", one) for one in several])
    medium: type[Medium[Any]] = medium_of_signer(docs.signer)  # type: ignore[assignment]  # files
    found = find_files(paths, medium)
    if not found.files:
        raise FileError(f"no {medium.name} found in {', '.join(map(str, several))}")
    good = [file for file in found.files if _name(file) == str(file)]
    bad = [f"{one.path}: {one.reason}" for one in found.problems]
    bad += [f"{_name(file)}: {_NO_TEXT}" for file in found.files if _name(file) != str(file)]
    root = paths[0] if len(paths) == 1 and paths[0].is_dir() else None
    ids = [_name(file if root is None else file.relative_to(root)) for file in good]
    done = Imported(bad=len(bad), examples=bad[:_EXAMPLES])
    if previews or not hasattr(docs, "parts_of"):  # a service makes previews in any case
        _add_each(docs, ids, good, replace, skip_bad, done, tell)
        return done
    write = docs.upsert if replace else docs.add
    for begin in range(0, len(good), _FILE_BATCH):
        some = slice(begin, begin + _FILE_BATCH)
        written = write(
            ids[some],
            [str(file) for file in good[some]],
            on_error="skip" if skip_bad else "raise",
        )
        done.count(written.added, written.updated, written.errors)
        tell("importing", min(1.0, (begin + _FILE_BATCH) / len(good)))
    return done


def _add_each(
    docs: BaseCollection,
    ids: Sequence[str],
    files: Sequence[Path],
    replace: bool,
    skip_bad: bool,
    done: Imported,
    tell: Progress,
) -> None:
    """Add files with their previews, several at a time, each in one transaction."""

    def add(position: int) -> Written:
        try:
            return docs.add_file(ids[position], files[position], replace=replace)
        except (DocumentError, ArgumentError, BatchError) as error:
            items = error.errors if isinstance(error, BatchError) else ()
            message = items[0].message if items else str(error)
            return Written(errors=[ItemError(position, ids[position], message)])

    with ThreadPoolExecutor(thread_count(None)) as pool:
        results = pool.map(add, range(len(files)))
        for count, one in enumerate(results, 1):
            if one.errors and not skip_bad:
                pool.shutdown(wait=False, cancel_futures=True)
                raise BatchError(one.errors, 1)
            done.count(one.added, one.updated, one.errors)
            tell("importing", count / len(files))


def _name(path: Path) -> str:
    """Return what a file is called in the collection: text, whatever bytes its name has."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


# Documents as a table


def export_documents(
    docs: BaseCollection,
    path: str | os.PathLike[str],
    *,
    where: Any,
    progress: Progress | bool | None,
) -> int:
    """Write documents by id to a file; see `Collection.export`."""
    target, tell = file_path("path", path), listener(progress)
    if docs.parts and not hasattr(docs, "parts_of"):
        raise ArgumentError(
            f"documents of the collection {docs.name!r} have many parts, which a service does not "
            "send; use snapshot"
        )
    return write_table(_tables(docs, where, tell), target)


def _vector_column(corpus: Corpus, name: str | None) -> str | None:
    """Return the column of vectors: the named one, or that of a file that `export` has written."""
    exported = set(_EXPORTED) <= set(corpus.columns())
    return corpus.column_for(name, (_VECTOR,) if exported else (), "vectors")


class _Columns(NamedTuple):
    text: str | None
    id: str | None
    signature: str | None
    vector: str | None


class _Item(NamedTuple):
    id: Any
    text: Any
    signature: Any
    metadata: Any
    vector: Any


def _batches(
    corpus: Corpus, columns: _Columns, problems: Problems, size: int, most: int
) -> Iterator[list[_Item]]:
    """Yield rows, read twice side by side: ids and texts as written, the rest with types."""
    wanted = [name for name in (columns.id, columns.text, columns.signature) if name is not None]
    described_by = [*wanted, *([] if columns.vector is None else [columns.vector])]
    # A text with marks of links is the text of a page: the text without them is not metadata.
    same = {corpus.page_text} if columns.text == corpus.marked_text else set()
    others = [name for name in corpus.columns() if name not in {*wanted, *same}]
    once = corpus.page_text is not None  # pages are slow to read, and may fail only once
    if once and columns.text in corpus.columns():
        plain = _rows(corpus.rows(problems))
    else:
        plain = _rows(corpus.read([*wanted, *(others if once else ())], problems))
    # Another reader of the same corpus reports the same bad rows, which count only once.
    typed = _rows(corpus.rows(Problems(problems.skip_bad))) if others and not once else None
    described = typed if typed else None if once else repeat({})
    lines = columns.text if corpus.format == "text" else None
    batch, held = [], 0
    for position, row in enumerate(plain):
        about = row if described is None else next(described, {})
        if lines is not None and not row[lines]:
            problems.left_out[_EMPTY] = problems.left_out.get(_EMPTY, 0) + 1
            continue
        id = f"row-{position}" if columns.id is None else _text(row[columns.id])
        text = _text(row[columns.text]) if columns.text else None
        signature = row[columns.signature] if columns.signature else None
        vector = decoded_vector(about.get(columns.vector)) if columns.vector else None
        batch.append(_Item(id, text, signature, _metadata(about, described_by), vector))
        held += _size(row) + _size(about)
        if len(batch) == size or held > most:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _rows(batches: Iterator[Rows]) -> Iterator[dict[str, Any]]:
    """Yield the rows of batches as dictionaries, few in memory at once."""
    for batch in batches:
        each = 1 + batch.nbytes // max(1, batch.num_rows)
        few = max(1, min(_ROWS_AT_ONCE, _ROW_BYTES_AT_ONCE // each))
        for begin in range(0, batch.num_rows, few):
            yield from batch.slice(begin, few).to_pylist()


def _size(row: Mapping[str, Any]) -> int:
    lengths = (len(value) for value in row.values() if isinstance(value, str | bytes))
    numbers = (4 * len(value) for value in row.values() if isinstance(value, list))
    return sum(lengths) + sum(numbers)


def _write(
    docs: BaseCollection, batch: list[_Item], columns: _Columns, replace: bool, skip_bad: bool,
    done: Imported,
) -> None:  # fmt: skip
    signatures: Any = None
    wrong: list[ItemError] = []
    if columns.signature:
        found = [_signature(docs, item.signature) for item in batch]
        wrong = [
            ItemError(position, item.id, _expected(docs, item.signature))
            for position, item in enumerate(batch)
            if found[position] is None
        ]
        if wrong and not skip_bad:
            raise BatchError(wrong, len(batch))
        batch = [item for item, one in zip(batch, found, strict=True) if one is not None]
        signatures = [one for one in found if one is not None]
        if not docs.parts:
            rows = np.frombuffer(b"".join(signatures), np.uint8)
            signatures = rows.reshape(len(batch), docs.bits // 8)
    written = (docs.upsert if replace else docs.add)(
        [item.id for item in batch],
        [item.text for item in batch] if columns.text else None,
        signatures=signatures,
        metadata=[item.metadata for item in batch],
        vectors=[item.vector for item in batch] if columns.vector else None,
        on_error="skip" if skip_bad else "raise",
    )
    done.count(written.added, written.updated, [*wrong, *written.errors])


def _signature(docs: BaseCollection, value: Any) -> Any:
    """Return a signature, or parts, of a column; None if it is not valid."""
    try:
        data = bytes.fromhex(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if not isinstance(data, bytes):
        return None
    if docs.parts:
        return unpacked(data, docs.bits)
    return data if 8 * len(data) == docs.bits else None


def _expected(docs: BaseCollection, value: Any) -> str:
    digits = f"{docs.bits // 4} hexadecimal digits"
    expected = "parts, as export writes them" if docs.parts else digits
    return f"the signature is {str(value)[:40]!r}; expected {expected}"


def _metadata(row: Mapping[str, Any], others: Sequence[str]) -> Any:
    described = row.get("metadata")
    if isinstance(described, str) and described.startswith("{"):
        try:
            return json.loads(described)
        except (ValueError, RecursionError):
            pass  # text like any other
    return {
        name: _plain(value)
        for name, value in row.items()
        if name not in others and value is not None
    }


def _plain(value: Any, levels: int = MOST_DEPTH) -> Any:
    """Return a value of Arrow as JSON can hold it; what is too deep is refused later."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.hex()
    if not levels:
        return value
    if isinstance(value, dict):
        return {name: _plain(one, levels - 1) for name, one in value.items()}
    return [_plain(one, levels - 1) for one in value] if isinstance(value, list) else value


def _text(value: Any) -> Any:
    """Return whole numbers, which ids often are, as text, and everything else as it is."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _tables(docs: BaseCollection, where: Any, tell: Progress) -> Iterator[Rows]:
    has_vectors = bool(docs.dimensions)
    names = (*_EXPORTED, *([_VECTOR] if has_vectors else []))
    schema = pa.schema([(name, pa.string()) for name in names])
    count, total = 0, max(1, docs.count())
    for page in docs.pages(_PART_PAGE if docs.parts else docs.transfer.page, where=where):
        count += len(page)
        signatures = [document.signature.tobytes().hex() for document in page]
        if docs.parts:
            # Read again with their parts, at one version: some may have changed or been removed.
            ids = [document.id for document in page]
            local: Any = docs
            both = local._read(partial(documents_with_parts, ids=ids))
            page = [document for document, _ in both]
            signatures = [packed(*parts).hex() for _, parts in both]
        columns = [
            [document.id for document in page],
            [document.text for document in page],
            [json.dumps(document.metadata, ensure_ascii=False) for document in page],
            signatures,
            [document.added.isoformat() for document in page],
            [document.updated.isoformat() for document in page],
        ]
        if has_vectors:
            vectors = (document.vector for document in page)
            columns.append([None if one is None else encoded_vector(one) for one in vectors])
        yield pa.record_batch([pa.array(column, pa.string()) for column in columns], schema)
        tell("exporting", min(1.0, count / total))
