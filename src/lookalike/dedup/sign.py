"""Steps 2 and 3, collapse and sign: equal texts become one, each different text a signature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
        done = _unfinished(work, key, len(candidates))
        if done:
            progress.reuse("sign")
        else:
            _begin(work, key, old_signatures, signer.bits // 8)
        _sign(work, documents, candidates, done, known, settings, threads, progress)
        work.complete("sign", key, {}, ["signatures", "enough"])
        work.begin("signing")  # complete files that were damaged since are not to be taken up
    enough: NDArray[np.bool_] = np.asarray(work.array("enough", np.uint8), bool)
    too_short = np.zeros(len(documents), bool)
    too_short[candidates[~enough]] = True
    too_short[known:] = too_short[first[known:]]
    positions = np.concatenate([np.arange(known), candidates[enough]])
    signatures = work.array("signatures", np.uint8, signer.bits // 8)
    first_new = int(np.searchsorted(positions, documents.old))
    return Signed(signatures, positions, first_new, too_short, key)


def _unfinished(work: WorkFolder, key: str, candidates: int) -> int:
    """Return how many documents an interrupted run with the same key has signed."""
    if work.facts("signing", key) is None or not work.path("enough").exists():
        return 0
    return min(candidates, work.path("enough").stat().st_size)


def _begin(
    work: WorkFolder, key: str, old_signatures: NDArray[np.uint8] | None, row_bytes: int
) -> None:
    """Begin the files anew: with old signatures, if there are any."""
    for step in ("sign", "signing"):
        work.begin(step)
    with work.writer("signatures") as file, work.writer("enough"):
        known = np.empty((0, row_bytes), np.uint8) if old_signatures is None else old_signatures
        for begin in range(0, len(known), _AT_A_TIME):
            file.write(np.ascontiguousarray(known[begin : begin + _AT_A_TIME]).data)
    work.complete("signing", key, {})


def _sign(
    work: WorkFolder,
    documents: DocumentTable,
    candidates: NDArray[np.int64],
    done: int,
    known: int,
    settings: DedupSettings,
    threads: int,
    progress: JobProgress,
) -> None:
    """Append signatures, and after them whether each document has enough features for one."""
    signer = settings.signer()
    kept = known + int(np.count_nonzero(work.array("enough", np.uint8)[:done])) if done else known
    with (
        work.writer("signatures", keep_bytes=kept * signer.bits // 8) as file,
        work.writer("enough", keep_bytes=done) as flags,
    ):
        for begin in range(done, len(candidates), _AT_A_TIME):
            part = documents.texts.documents.take(candidates[begin : begin + _AT_A_TIME])
            signatures = signer.sign(part, threads=threads)
            enough = signer.with_features(
                part, signatures, least=settings.min_features, threads=threads
            )
            file.write(signatures.data if enough.all() else signatures[enough].data)
            file.flush()
            flags.write(enough.tobytes())
            flags.flush()
            documents.texts.release()
            progress.step("sign", (begin + len(part)) / len(candidates))
