"""Signatures as a column, and what signers learn of a corpus, by passes over all partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lookalike.checks import instance
from lookalike.corpora.base import pa
from lookalike.errors import ArgumentError, Said
from lookalike.features import Vocabulary, Weights
from lookalike.shown import shown
from lookalike.signatures.signer import DocumentSigner, WeightedSigner
from lookalike.spark.columns import find_columns, frame_of
from lookalike.spark.packed import Batches, map_arrow
from lookalike.spark.steps.signing import documents_of

__all__ = ["fit", "sign"]


def sign(
    frame: Any, text: str | None, signer: DocumentSigner, *, signature: str = "signature"
) -> Any:
    """Return the DataFrame with one column more: the signature of each text, as bytes.

    They are those of `signer.sign`, the rows of its array one by one. A null text is an empty one.
    """
    frame = frame_of("frame", frame)
    signer = instance("signer", signer, DocumentSigner, "one such as la.SimHash()")
    column = find_columns(frame, text, None, None).text
    if signature in frame.columns:
        raise ArgumentError(
            Said("signature"),
            f" is {shown(signature)!r}, a column that the DataFrame has; give another name",
        )
    if isinstance(signer, WeightedSigner) and signer.weights.learns:
        signer.weights.native()  # before workers find out that they have learnt nothing
    place = frame.columns.index(column)

    def add(batches: Batches) -> Iterator[Any]:
        for batch in batches:
            documents, _ = documents_of(batch.column(place))
            rows = np.ascontiguousarray(signer.sign(documents, threads=1)).view(np.uint8)
            offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(rows))]
            signed = pa.Array.from_buffers(pa.binary(), len(rows), buffers)
            yield pa.record_batch([*batch.columns, signed], [*batch.schema.names, signature])

    from pyspark.sql.types import BinaryType, StructField, StructType

    schema = StructType([*frame.schema.fields, StructField(signature, BinaryType())])
    return map_arrow(frame, add, schema)


def fit(frame: Any, text: str | None, signer: WeightedSigner) -> WeightedSigner:
    """Return a signer that has learnt how common the features of a DataFrame are, as `fit` does.

    Each partition counts its own documents, and the driver puts the counts together: they are those
    of one machine, as long as nothing was forgotten (see `la.Vocabulary`). The signer that was
    given stays as it is.
    """
    frame = frame_of("frame", frame)
    signer = instance("signer", signer, WeightedSigner, "one with weights, such as la.TopSig()")
    column = find_columns(frame, text, None, None).text
    features, kind = signer.features, signer.weights.kind

    def observe(batches: Batches) -> Iterator[Any]:
        known = None
        for batch in batches:
            documents, _ = documents_of(batch.column(0))
            part = Weights(kind).fit(documents, features, threads=1).vocabulary
            parts = [one for one in (known, part) if one is not None]
            known = Vocabulary.merge(parts)
        if known is not None:
            features_seen, in_documents, occurrences = known._native.arrays()
            yield pa.record_batch(
                {
                    name: pa.array([np.ascontiguousarray(array).tobytes()], pa.binary())
                    for name, array in (
                        ("features", features_seen),
                        ("documents", in_documents),
                        ("occurrences", occurrences),
                        ("totals", np.array(known._native.totals, np.uint64)),
                    )
                }
            )

    schema = "features binary, documents binary, occurrences binary, totals binary"
    parts = map_arrow(frame.select(f"`{column}`"), observe, schema)
    merged = Vocabulary()
    for row in parts.toLocalIterator():
        arrays = (np.frombuffer(part, np.uint64) for part in row[:3])
        merged._native.add(*arrays)
        merged._native.add_totals(*np.frombuffer(row[3], np.uint64).tolist())
    fitted = type(signer).from_dict(signer.to_dict())
    fitted.weights.vocabulary = merged
    return fitted
