"""Signatures on Spark: the table of a job, signatures as a column, and fitted weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import instance
from lookalike.corpora.base import native_documents, pa
from lookalike.corpora.columns import text_strings
from lookalike.corpora.lengths import lengths_of
from lookalike.dedup.pairs import Flags, Ints
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError, Said
from lookalike.features import Vocabulary, Weights
from lookalike.shown import escape_terminal
from lookalike.signatures.signer import DocumentSigner, WeightedSigner
from lookalike.spark.files import StreamedRows
from lookalike.spark.packed import Batches, fixed_binary, map_arrow, rows_of
from lookalike.spark.positions import is_old, pieces_of
from lookalike.spark.sources import find_columns, frame_of

SIGNED = (
    "file string, start long, partition int, row long, key long, count int, bytes long, short int, "
    "brief int, texts int, fingerprints binary, values binary, enough binary, signatures binary"
)
LENGTHS = ("brief", "texts")
"""The columns that have the numbers of `lookalike.corpora.lengths.TextLengths`."""

FINGERPRINT = np.dtype([("high", "<u8"), ("low", "<u8")])
"""BLAKE2b of a text, 128 bits: texts of the same are taken to be the same."""

BEFORE_NEW = 1 << 62
"""Subtracted from the deciding values of old documents, which are kept before all others."""

_DOCUMENTS_A_ROW = 1024
"""Their signatures are a quarter of a megabyte: larger values take a region of Java's memory each,
and make it collect garbage again and again.
"""
_LEAST = int(np.iinfo(np.int64).min)
_COUNTED = ("features", "documents", "occurrences", "totals")
_COUNTS = ", ".join(f"{name} binary" for name in _COUNTED)
_UNNAMED = StreamedRows([])
"""The corpus that an error names."""


def documents_of(column: Any) -> tuple[_native.Documents, Ints]:
    """Return a column of text as the core reads it, and the bytes of each; a null has none."""
    texts, ends = texts_of(column)
    return native_documents(texts), np.diff(ends)


def texts_of(column: Any) -> tuple[Any, Ints]:
    """Return a column as texts, of which none is null, and where their bytes begin and end."""
    texts = text_strings(column, "text", _UNNAMED)
    if texts.null_count:
        texts = texts.fill_null("")
    _, offsets, _ = texts.buffers()
    return texts, np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]


def sign_rows(settings: DedupSettings, batches: Batches) -> Iterator[Any]:
    """Sign the rows of a partition: of `numbered_columns`, text and deciding value."""
    signer = settings.signer()
    for (file, start, partition), row, batch, key in pieces_of(batches):
        for begin in range(0, len(batch), _DOCUMENTS_A_ROW):
            some = batch.slice(begin, _DOCUMENTS_A_ROW)
            texts, ends = texts_of(some.column(0))
            documents, lengths = native_documents(texts), np.diff(ends)
            signatures = signer.sign(documents, threads=1)
            enough = signer.with_features(
                documents, signatures, least=settings.min_features, threads=1
            )
            found = lengths_of(documents)
            yield rows_of(
                SIGNED,
                file=[file],
                start=[start],
                partition=partition,
                row=row + begin,
                key=key + begin,
                count=len(some),
                bytes=int(lengths.sum()),
                short=int((~enough).sum()),
                brief=found.short,
                texts=found.documents,
                fingerprints=[_fingerprints(texts, ends)],
                values=[deciding_values(settings, some, lengths).tobytes()],
                enough=[enough.astype(np.uint8).tobytes()],
                signatures=[signatures.tobytes()],
            )


def _fingerprints(texts: Any, ends: Ints) -> bytes:
    data = texts.buffers()[2]
    view, hashed = memoryview(data if data is not None else b""), hashlib.blake2b
    return b"".join(
        hashed(view[begin:end], digest_size=16).digest() for begin, end in pairwise(ends.tolist())
    )


def deciding_values(settings: DedupSettings, batch: Any, lengths: Ints) -> Ints:
    """Return what decides which document is kept, before the position does: the least is."""
    rule = settings.keep_rule.partition(":")[0]
    if rule in ("first", "last"):
        return np.empty(0, np.int64)
    if rule in ("longest", "shortest"):
        return -lengths if rule == "longest" else lengths
    column = batch.column(1)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_floating(column.type):
        numbers = column.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float64)
        missing |= np.isnan(numbers)
        bits = (numbers + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
        values = bits ^ (bits >> 63 & np.int64(np.iinfo(np.int64).max))  # in the order of numbers
    else:
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if rule == "max":
        values = ~values
    # The least number is that of old documents, which have no such column.
    return np.where(missing, np.iinfo(np.int64).max, np.maximum(values, _LEAST + 1))


@dataclass(frozen=True, eq=False)
class Chunk:
    """A row of the table: documents that follow each other."""

    positions: Ints
    batch: Any
    row: int
    rule: str
    old: bool

    def array(self, name: str, dtype: Any) -> NDArray[Any]:
        """Return what the row has of each document."""
        found = np.frombuffer(self.batch.column(name)[self.row].as_buffer(), dtype)
        return found.reshape(len(self.positions), -1) if name == "signatures" else found

    @property
    def values(self) -> Ints:
        """What decides which documents are kept."""
        if self.rule == "first":
            return np.zeros(len(self.positions), np.int64)
        if self.old and self.rule in ("min", "max"):
            return np.full(len(self.positions), _LEAST)
        values = -self.positions if self.rule == "last" else self.array("values", np.int64)
        return values - BEFORE_NEW if self.old else values

    @property
    def enough(self) -> Flags:
        """Which documents have enough features to be compared."""
        return self.array("enough", np.uint8).astype(bool)


@dataclass(frozen=True, eq=False)
class Chunks:
    """Reads the table of signatures in a worker."""

    numbering: Any
    rule: str
    copies: Any = None
    """Positions of texts that have come before."""

    def of(self, batches: Batches) -> Iterator[Chunk]:
        """Yield the rows of a partition of the table."""
        for batch in batches:
            named = batch.select(["file", "start", "partition", "row", "count"]).to_pylist()
            for at, row in enumerate(named):
                piece = (row["file"], row["start"], row["partition"])
                first = self.numbering.value.first(piece, row["row"], row["count"])
                positions = np.arange(first, first + row["count"])
                yield Chunk(positions, batch, at, self.rule, is_old(piece))

    def compared(self, batches: Batches) -> Iterator[tuple[Chunk, Ints]]:
        """Yield the same, and which documents are compared: the first with their text."""
        for chunk in self.of(batches):
            compared = chunk.enough & ~self.copies.value.has(chunk.positions)
            yield chunk, np.flatnonzero(compared)


@dataclass(frozen=True, eq=False)
class SignedTable:
    """Signatures, and what is needed to read them."""

    table: Any
    """Has the columns of `SIGNED`."""
    numbering: Any
    chunk_keys: Ints
    """Spark's numbers of the first documents of the table's rows, ascending."""
    rule: str
    documents: int
    text_bytes: int
    """Of all documents."""
    copies: Any = None
    """Positions of texts that have come before."""
    collapsed: Any = None
    """What is known of equal texts, a `lookalike.spark.collapse.Collapsed`."""

    @property
    def old(self) -> int:
        """How many documents, the first ones, are of an old corpus: no two of them are compared."""
        return int(self.numbering.value.old)

    @property
    def chunks(self) -> Chunks:
        """What reads the table in workers."""
        return Chunks(self.numbering, self.rule, self.copies)

    def columns(self, *names: str) -> Any:
        """Return the table with these columns and those with the origin of documents."""
        return self.table.select("file", "start", "partition", "row", "count", *names)


def sign(
    frame: Any, text: str | None, signer: DocumentSigner, *, signature: str = "signature"
) -> Any:
    """Return the DataFrame with one column more: the signature of each text, as bytes.

    Signatures are the rows of `signer.sign`. A null text counts as an empty one.
    """
    frame = frame_of("frame", frame)
    signer = instance("signer", signer, DocumentSigner, "one such as la.SimHash()")
    column = find_columns(frame, text, None, None).text
    if signature in frame.columns:
        raise ArgumentError(
            Said("signature"),
            f" is {escape_terminal(signature)!r}, a column that the DataFrame has; give another "
            "name",
        )
    if isinstance(signer, WeightedSigner) and signer.weights.learns:
        signer.weights.native()  # before workers find out that they have learned nothing
    place = frame.columns.index(column)

    def add(batches: Batches) -> Iterator[Any]:
        for batch in batches:
            documents, _ = documents_of(batch.column(place))
            signed = fixed_binary(signer.sign(documents, threads=1))
            yield pa.record_batch([*batch.columns, signed], [*batch.schema.names, signature])

    from pyspark.sql.types import BinaryType, StructField, StructType

    schema = StructType([*frame.schema.fields, StructField(signature, BinaryType())])
    return map_arrow(frame, add, schema)


def fit(frame: Any, text: str | None, signer: WeightedSigner) -> WeightedSigner:
    """Return a signer that has learned how common the features of a DataFrame are.

    Each partition counts its own documents, and the driver adds the counts up. They are those of
    `signer.fit` on one machine, as long as nothing was forgotten (see `la.Vocabulary`). The given
    signer does not change.
    """
    frame = frame_of("frame", frame)
    signer = instance("signer", signer, WeightedSigner, "one with weights, such as la.TopSig()")
    column = find_columns(frame, text, None, None).text
    features, kind, common = signer.features, signer.weights.kind, signer.weights.common

    def observe(batches: Batches) -> Iterator[Any]:
        known = None
        for batch in batches:
            documents, _ = documents_of(batch.column(0))
            part = Weights(kind, common=common).fit(documents, features, threads=1).vocabulary
            known = Vocabulary.merge([one for one in (known, part) if one is not None])
        if known is not None:
            arrays = *known._native.arrays(), np.array(known._native.totals, np.uint64)
            values = [[array.tobytes()] for array in arrays]
            yield rows_of(_COUNTS, **dict(zip(_COUNTED, values, strict=True)))

    parts = map_arrow(frame.select(f"`{column}`"), observe, _COUNTS)
    merged = Vocabulary(common=common)
    for row in parts.toLocalIterator():
        arrays = (np.frombuffer(part, np.uint64) for part in row[:3])
        merged._native.add(*arrays)
        merged._native.add_totals(*np.frombuffer(row[3], np.uint64).tolist())
    fitted = type(signer).from_dict(signer.to_dict())
    fitted.weights.vocabulary = merged
    return fitted


def weights_of(rarity: Any | None) -> Weights | None:
    """Return the weights of a `SharedFeatures` that was sent, in a worker."""
    return None if rarity is None else rarity.value.weights
