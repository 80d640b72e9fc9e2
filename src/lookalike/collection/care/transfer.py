"""Importing corpora into a collection, and exporting a collection to a file, in constant memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lookalike.checks import callback, file_path, flag, whole_number
from lookalike.collection.documents import MOST_DEPTH, packed, unpacked
from lookalike.collection.reading import documents_with_parts
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
from lookalike.errors import ArgumentError, BatchError, ItemError
from lookalike.features import FeatureKind
from lookalike.pages import PageLimits

if TYPE_CHECKING:
    from lookalike.collection.collection import Collection

Progress = Callable[[str, float], None]

_BATCH = 50_000
_PART_BATCH = 200
"""Documents of many parts: an hour of sound has 0.9 MB of parts, twice that in hexadecimal."""
_MOST_BATCH = 10_000_000
_PAGE = 2_000
_PART_PAGE = 64
_EXAMPLES = 10
_EMPTY = "empty lines"
_BATCH_BYTES = 32 << 20
"""Bytes of a transaction, which may then have fewer documents than asked for."""
_ROWS_AT_ONCE = 1_000
_ROW_BYTES_AT_ONCE = 4 << 20


@dataclass
class Imported:
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


def import_documents(
    docs: Collection,
    source: Any,
    *,
    text: str | None = None,
    id: str | None = None,
    signature: str | None = None,
    format: str | None = None,
    replace: bool = False,
    skip_bad: bool = False,
    max_document: int | None = None,
    batch: int | None = None,
    progress: Progress | None = None,
    html: str | None = None,
    page_limits: PageLimits | None = None,
    encoding: str | None = None,
    min_words: int = 0,
    language: str | None = None,
    min_links: int = 0,
    strip_urls: bool = False,
) -> Imported:
    """Add the rows of a corpus to a collection, each batch in one transaction.

    Other columns become metadata, or a column `metadata` with a JSON object, as `export_documents`
    writes it. Title, language and links of web pages become metadata. An error ends the import;
    what was committed before stays.

    Args:
        docs: The collection.
        source: Files, folders, patterns or tables, as `dedup` takes them.
        text: Column with the document text (default: detected).
        id: Column with ids (default: detected; rows without ids are numbered).
        signature: Column with signatures, hexadecimal or bytes (default: detected). Without it,
            texts are signed.
        format: Input format (default: from the file extension).
        replace: Whether to replace documents with the same ids, which are errors otherwise.
        skip_bad: Whether to leave out bad rows, instead of ending with an error.
        max_document: Bytes of a row above which it is bad (default: 256 MiB).
        batch: Rows of a batch (default: 50,000, or 200 if documents have many parts), but 32 MiB
            at most.
        progress: Called with the name of the step and the share of it that is done.
        html: Column with web pages, whose main text is taken.
        page_limits: What a web page may have and cost.
        encoding: Encoding of text files (default: detected).
        min_words: Leave out documents with fewer words.
        language: Leave out documents in other languages than these: "en", or "en,de".
        min_links: Leave out pages with fewer links.
        strip_urls: Ignore URLs when signing texts.
    """
    replace, skip_bad = flag("replace", replace), flag("skip_bad", skip_bad)
    if batch is None:
        batch = _PART_BATCH if docs.parts else _BATCH
    size = whole_number("batch", batch, at_least=1, at_most=_MOST_BATCH)
    filters = Filters(
        min_words=min_words, language=language, min_links=min_links, strip_urls=strip_urls
    )
    progress = callback("progress", progress)
    for option, column in (("text", text), ("id", id), ("signature", signature)):
        if column is not None and not isinstance(column, str):
            raise ArgumentError(f"{option} is {column!r}; expected the name of a column")
    corpus = open_corpus(source, format, html=html, page_limits=page_limits, encoding=encoding)
    if max_document is not None:
        corpus.max_document = whole_number("max_document", max_document, at_least=1)
    signed = corpus.column_for(signature, ("signature",), "signatures")
    texts = text_column(corpus, text)
    columns = _Columns(None if texts == signed else texts, id_column(corpus, id), signed)
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
    for rows in _batches(corpus, columns, problems, size):
        _write(docs, rows, columns, replace, skip_bad, done)
        if progress:
            progress("importing", corpus.done)
    done.bad += problems.bad
    done.left_out = dict(problems.left_out)
    if problems.binary:
        done.left_out["binary files"] = problems.binary
    done.files_left_out, done.notices = problems.files, problems.notices()
    done.examples = (problems.examples + done.examples)[:_EXAMPLES]
    return done


def export_documents(
    docs: Collection,
    path: str | os.PathLike[str],
    *,
    where: Any = None,
    progress: Progress | None = None,
) -> int:
    """Write documents by id to a file in the format of its name, whole or not at all.

    Columns: id, text, metadata as JSON, signature in hexadecimal, added, updated. The signature of
    a document of many parts is all of them, with their positions.
    """
    target, progress = file_path("path", path), callback("progress", progress)
    return write_table(_tables(docs, where, progress), target)


class _Columns(NamedTuple):
    text: str | None
    id: str | None
    signature: str | None


class _Item(NamedTuple):
    id: Any
    text: Any
    signature: Any
    metadata: Any


def _batches(
    corpus: Corpus, columns: _Columns, problems: Problems, size: int
) -> Iterator[list[_Item]]:
    """Yield rows, read twice side by side: ids and texts as written, the rest with types."""
    wanted = [name for name in (columns.id, columns.text, columns.signature) if name is not None]
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
        batch.append(_Item(id, text, signature, _metadata(about, wanted)))
        held += _size(row) + _size(about)
        if len(batch) == size or held > _BATCH_BYTES:
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
    return sum(len(value) for value in row.values() if isinstance(value, str | bytes))


def _write(
    docs: Collection, batch: list[_Item], columns: _Columns, replace: bool, skip_bad: bool,
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
        on_error="skip" if skip_bad else "raise",
    )
    errors = [*wrong, *written.errors]
    done.added += written.added
    done.updated += written.updated
    done.bad += len(errors)
    done.examples = (done.examples + [str(error) for error in errors[:_EXAMPLES]])[:_EXAMPLES]


def _signature(docs: Collection, value: Any) -> Any:
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


def _expected(docs: Collection, value: Any) -> str:
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


def _tables(docs: Collection, where: Any, progress: Progress | None) -> Iterator[Rows]:
    names = ("id", "text", "metadata", "signature", "added", "updated")
    schema = pa.schema([(name, pa.string()) for name in names])
    count, total = 0, max(1, docs.count())
    for page in docs.pages(_PART_PAGE if docs.parts else _PAGE, where=where):
        count += len(page)
        signatures = [document.signature.tobytes().hex() for document in page]
        if docs.parts:
            # Read again with their parts, at one version: some may have changed or been removed.
            ids = [document.id for document in page]
            both = docs._read(partial(documents_with_parts, ids=ids))
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
        yield pa.record_batch([pa.array(column, pa.string()) for column in columns], schema)
        if progress:
            progress("exporting", min(1.0, count / total))
