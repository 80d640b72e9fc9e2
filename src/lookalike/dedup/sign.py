"""Steps 2 and 3, collapse and sign: find equal texts, and sign each different text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.pairs import Flags, Ints
from lookalike.dedup.settings import DedupSettings
from lookalike.features.base import refuse_below_zero
from lookalike.jobs.context import JobContext
from lookalike.jobs.documents import DocumentTable, EarlySignatures, OldSignatures, Source
from lookalike.jobs.work_folder import GrowingFiles, digest, growing_files
from lookalike.signatures.signer import DocumentSigner

_AT_A_TIME = 1 << 15


@dataclass(frozen=True, kw_only=True)
class DedupJob(JobContext):
    """What every step of a dedup job is given."""

    settings: DedupSettings
    device: str

    smaller_job: ClassVar[str] = (
        "or de-duplicate parts one after the other, each against those before"
    )


@dataclass(frozen=True, eq=False)
class Signed:
    """A signature for each different document that has enough features."""

    signatures: NDArray[np.uint8]
    positions: Ints
    """The document of each row, the first with its text; ascending."""
    first_new: int
    """The number of rows of old documents."""
    too_short: Flags
    """Whether each document has too few features to be compared."""
    key: str


def collapse(job: JobContext, documents: DocumentTable) -> Ints:
    """Return for each document the first equal one; one without text equals no other."""
    first = np.arange(len(documents))
    without_text = documents.signatures_only
    with_text = documents.texts.documents.part(without_text, len(documents))
    with_text.first_equal(job.threads, first[without_text:])
    first[without_text:] += without_text
    documents.texts.release()
    return first


def sign_documents(
    job: DedupJob,
    signer: DocumentSigner,
    documents: DocumentTable,
    first: Ints,
    old: Source | OldSignatures | None,
    early: EarlySignatures | None,
) -> Signed:
    """Sign the different documents after `OldSignatures`, or continue an interrupted run."""
    work, known = job.work, documents.signatures_only
    old_signatures = old.signatures if isinstance(old, OldSignatures) else None
    candidates = np.flatnonzero(first == np.arange(len(first)))
    candidates = candidates[candidates >= known]
    described, row_bytes = signer.to_dict(), signer.bits // 8
    key = digest("sign", documents.key, described, job.settings.min_features)
    if work.facts("sign", key) is not None:
        job.progress.reuse("sign")
    else:
        work.begin("sign")
        with growing_files(work, "signing", key, ("signatures", "enough")) as files:
            _sign(job, signer, files, documents, candidates, old_signatures, early)
        work.complete("sign", key, {}, ["signatures", "enough"])
        work.begin("signing")
    signatures = work.array("signatures", np.uint8, row_bytes)
    enough: Flags = np.asarray(work.array("enough", np.uint8), bool)
    too_short = np.zeros(len(first), bool)
    too_short[candidates[~enough]] = True
    too_short[known:] = too_short[first[known:]]
    positions = np.concatenate([np.arange(known), candidates[enough]])
    first_new = int(np.searchsorted(positions, documents.old))
    return Signed(signatures, positions, first_new, too_short, key)


def _sign(
    job: DedupJob,
    signer: DocumentSigner,
    files: GrowingFiles,
    documents: DocumentTable,
    candidates: Ints,
    old_signatures: NDArray[np.uint8] | None,
    early: EarlySignatures | None,
) -> None:
    """Append signatures, old ones first, and whether each document has enough features."""
    done = 0
    if files.facts is not None:
        job.progress.reuse("sign")
        done = int(files.facts["documents"])
    elif old_signatures is not None:
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
    documents: DocumentTable, candidates: Ints, done: int, early: EarlySignatures | None
) -> Iterator[tuple[Ints, NDArray[np.uint8] | None]]:
    """Yield the documents that are left to sign, with their early signatures or None."""
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
    job: DedupJob, documents: DocumentTable, signed: Signed
) -> Iterator[tuple[_native.Source, float]]:
    """Yield the features of signed documents in parts, with the share of them that is then done."""
    features = job.settings.feature_kind()
    count = len(signed.positions)
    for begin in range(0, count, _AT_A_TIME):
        some = signed.positions[begin : begin + _AT_A_TIME]
        part = documents.texts.documents.take(np.ascontiguousarray(some))
        source = features.source(part)
        refuse_below_zero(source)
        yield source, (begin + len(some)) / count
