"""Steps 2 and 3, collapse and sign: equal texts become one, each different text a signature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.context import JobContext
from lookalike.dedup.early import EarlySignatures
from lookalike.dedup.growing import GrowingFiles, growing_files
from lookalike.dedup.read import DocumentTable, OldSignatures, Source
from lookalike.dedup.work_folder import digest
from lookalike.features.base import refuse_below_zero

__all__ = ["Signed", "collapse", "feature_sources", "sign_documents"]

_AT_A_TIME = 1 << 15


@dataclass(frozen=True, eq=False)
class Signed:
    """A signature for each different document that has enough features."""

    signatures: NDArray[np.uint8]
    positions: NDArray[np.int64]
    """Which document each row is the signature of: the first with that text; ascending."""
    first_new: int
    """How many rows belong to old documents."""
    too_short: NDArray[np.bool_]
    """Of all documents: has too few features to be compared."""
    key: str


def collapse(job: JobContext, documents: DocumentTable) -> NDArray[np.int64]:
    """Return for each document the first with the same text.

    One of which there is only a signature is like no other.
    """
    first = np.arange(len(documents))
    without_text = documents.signatures_only
    with_text = documents.texts.documents.part(without_text, len(documents))
    with_text.first_equal(job.threads, first[without_text:])
    first[without_text:] += without_text
    documents.texts.release()
    return first


def sign_documents(
    job: JobContext,
    documents: DocumentTable,
    first: NDArray[np.int64],
    old: Source | OldSignatures | None,
    early: EarlySignatures | None,
) -> Signed:
    """Sign the different documents, or take up where an interrupted run has stopped.

    If `old` documents are `OldSignatures`, these come first. Those that are made `early` are taken.
    """
    work, settings = job.work, job.settings
    old_signatures = old.signatures if isinstance(old, OldSignatures) else None
    signer = settings.signer()
    known = documents.signatures_only
    candidates = np.flatnonzero(first == np.arange(len(first)))
    candidates = candidates[candidates >= known]
    key = digest("sign", documents.key, signer.to_dict(), settings.min_features)
    if work.facts("sign", key) is not None:
        job.progress.reuse("sign")
    else:
        work.begin("sign")
        with growing_files(work, "signing", key, ("signatures", "enough")) as files:
            _sign(job, files, documents, candidates, old_signatures, early)
        work.complete("sign", key, {}, ["signatures", "enough"])
        work.begin("signing")
    enough: NDArray[np.bool_] = np.asarray(work.array("enough", np.uint8), bool)
    too_short = np.zeros(len(documents), bool)
    too_short[candidates[~enough]] = True
    too_short[known:] = too_short[first[known:]]
    positions = np.concatenate([np.arange(known), candidates[enough]])
    signatures = work.array("signatures", np.uint8, signer.bits // 8)
    first_new = int(np.searchsorted(positions, documents.old))
    return Signed(signatures, positions, first_new, too_short, key)


def _sign(
    job: JobContext,
    files: GrowingFiles,
    documents: DocumentTable,
    candidates: NDArray[np.int64],
    old_signatures: NDArray[np.uint8] | None,
    early: EarlySignatures | None,
) -> None:
    """Append signatures, old ones first, and whether each document has enough features for one."""
    signer = job.settings.signer()
    if files.facts is not None:
        job.progress.reuse("sign")
        done = int(files.facts["documents"])
    else:
        done = 0
        if old_signatures is not None:
            for begin in range(0, len(old_signatures), _AT_A_TIME):
                files.write("signatures", old_signatures[begin : begin + _AT_A_TIME])
    for which, signatures in _parts(documents, candidates, done, early):
        part = documents.texts.documents.take(which)
        if signatures is None:
            signatures = signer.sign(part, threads=job.threads)
        else:
            job.progress.overlap("sign")
        enough = signer.with_features(
            part, signatures, least=job.settings.min_features, threads=job.threads
        )
        files.write("signatures", signatures if enough.all() else signatures[enough])
        files.write("enough", enough)
        done += len(which)
        files.mark({"documents": done})
        documents.texts.release()
        job.progress.step("sign", done / len(candidates))


def _parts(
    documents: DocumentTable,
    candidates: NDArray[np.int64],
    done: int,
    early: EarlySignatures | None,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8] | None]]:
    """Yield the documents that are left to do, some at a time, with those signatures there are."""
    position = documents.signatures_only
    for made in () if early is None else early.taken():
        end = int(np.searchsorted(candidates, position + len(made)))
        if done < end:
            which = candidates[done:end]
            yield which, made[which - position]
            done = end
        position += len(made)
    for begin in range(done, len(candidates), _AT_A_TIME):
        yield candidates[begin : begin + _AT_A_TIME], None


def feature_sources(
    job: JobContext, documents: DocumentTable, signed: Signed
) -> Iterator[tuple[_native.Source, float]]:
    """Yield the documents that have signatures, as the core reads their features, with the share of
    them that comes by then.
    """
    features = job.settings.feature_kind()
    count = len(signed.positions)
    for begin in range(0, count, _AT_A_TIME):
        some = signed.positions[begin : begin + _AT_A_TIME]
        part = documents.texts.documents.take(np.ascontiguousarray(some))
        source = features.source(part)
        refuse_below_zero(source)
        yield source, (begin + len(some)) / count
