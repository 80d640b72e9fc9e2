"""Steps 2 and 3, collapse and sign: equal texts become one, each different text a signature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.growing import GrowingFiles, growing_files
from lookalike.dedup.progress import JobProgress
from lookalike.dedup.read import DocumentTable
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.work_folder import WorkFolder, digest

__all__ = ["Signed", "collapse", "sign_documents"]

_AT_A_TIME = 1 << 15


@dataclass
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


def collapse(documents: DocumentTable, without_text: int, threads: int) -> NDArray[np.int64]:
    """Return for each document the first with the same text.

    The first `without_text` documents have none to compare.
    """
    first = np.arange(len(documents))
    with_text = documents.texts.documents.part(without_text, len(documents))
    with_text.first_equal(threads, first[without_text:])
    first[without_text:] += without_text
    documents.texts.release()
    return first


def sign_documents(
    work: WorkFolder,
    documents: DocumentTable,
    first: NDArray[np.int64],
    settings: DedupSettings,
    *,
    old_signatures: NDArray[np.uint8] | None,
    threads: int,
    progress: JobProgress,
) -> Signed:
    """Sign the different documents, or take up where an interrupted run has stopped.

    `old_signatures` are those of old documents without texts; they come first.
    """
    signer = settings.signer()
    known = 0 if old_signatures is None else len(old_signatures)
    candidates = np.flatnonzero(first == np.arange(len(first)))
    candidates = candidates[candidates >= known]
    key = digest("sign", documents.key, signer.to_dict(), settings.min_features)
    if work.facts("sign", key) is not None:
        progress.reuse("sign")
    else:
        work.begin("sign")
        with growing_files(work, "signing", key, ("signatures", "enough")) as files:
            _sign(files, documents, candidates, old_signatures, settings, threads, progress)
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
    files: GrowingFiles,
    documents: DocumentTable,
    candidates: NDArray[np.int64],
    old_signatures: NDArray[np.uint8] | None,
    settings: DedupSettings,
    threads: int,
    progress: JobProgress,
) -> None:
    """Append signatures, old ones first, and whether each document has enough features for one."""
    signer = settings.signer()
    if files.facts is not None:
        progress.reuse("sign")
        done = int(files.facts["documents"])
    else:
        done = 0
        if old_signatures is not None:
            for begin in range(0, len(old_signatures), _AT_A_TIME):
                files.write("signatures", old_signatures[begin : begin + _AT_A_TIME])
    for begin in range(done, len(candidates), _AT_A_TIME):
        part = documents.texts.documents.take(candidates[begin : begin + _AT_A_TIME])
        signatures = signer.sign(part, threads=threads)
        enough = signer.with_features(
            part, signatures, least=settings.min_features, threads=threads
        )
        files.write("signatures", signatures if enough.all() else signatures[enough])
        files.write("enough", enough)
        files.mark({"documents": begin + len(part)})
        documents.texts.release()
        progress.step("sign", (begin + len(part)) / len(candidates))
