"""The whole job: a corpus in; who stays, who goes and why out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import callback, file_path, flag, thread_count, whole_number
from lookalike.corpora import Corpus, format_of, open_corpus
from lookalike.corpora.base import MAX_DOCUMENT
from lookalike.corpora.columns import Columns, find_columns
from lookalike.corpora.duck import limited
from lookalike.dedup.choose import choose_survivors, ranks
from lookalike.dedup.cluster import Clusters, by_first, cluster_documents
from lookalike.dedup.likeness import likeness
from lookalike.dedup.progress import JobProgress
from lookalike.dedup.read import DocumentTable, OldSignatures, read_documents
from lookalike.dedup.result import DedupCounts, DedupResult
from lookalike.dedup.settings import ALIASES, DedupSettings
from lookalike.dedup.settle import settle
from lookalike.dedup.sign import Signed, collapse, sign_documents
from lookalike.dedup.verify import Verdict, VerifiedPairs, verified_pairs
from lookalike.dedup.work_folder import WorkFolder, naming
from lookalike.errors import ArgumentError, FormatError
from lookalike.signatures.files import load_signatures

__all__ = ["run_job"]

_BYTES_A_DOCUMENT = 150
_BYTES_A_PAIR = 100
_BYTES_AT_LEAST = 600 << 20
_BYTES_A_BYTE = 12
"""Of memory, for each byte of the longest document: it is copied, and its features are larger."""
_LOOKALIKE_SUFFIX = ".lookalike"


def run_job(
    source: Any,
    *,
    text: str | None,
    id: str | None,
    format: str | None,
    against: Any,
    work: str | os.PathLike[str] | None,
    memory_limit: SupportsIndex | None,
    max_document: SupportsIndex | None,
    skip_bad: bool,
    threads: SupportsIndex | None,
    progress: Callable[[str, float], None] | None,
    save_signatures: str | os.PathLike[str] | None,
    settings: dict[str, Any],
) -> DedupResult:
    """Run a job; see `lookalike.dedup`."""
    chosen = _settings(settings)
    skip_bad = flag("skip_bad", skip_bad)
    progress = callback("progress", progress)
    work = None if work is None else file_path("work", work)
    if save_signatures is not None:
        save_signatures = file_path("save_signatures", save_signatures)
    corpus = open_corpus(source, format)
    longest = _longest_document(max_document, memory_limit)
    if longest is not None:
        corpus.max_document = longest
    columns = find_columns(corpus, text, id, chosen.keep_column)
    count = thread_count(threads)
    limit = None if memory_limit is None else whole_number("memory_limit", memory_limit, at_least=1)
    if limit is not None and limit < _BYTES_AT_LEAST:
        raise ArgumentError(
            f"memory_limit is {limit:,} bytes; a job takes {_BYTES_AT_LEAST:,} at least"
        )
    old = _open_old(against, chosen, columns, format, longest)
    steps = JobProgress(progress)
    limits = (None if limit is None else limit // 2, count)
    folder = WorkFolder(work)
    try:
        with limited(*limits):
            result = _run(
                folder, corpus, columns, old, chosen, skip_bad, limit, count, steps, save_signatures
            )
            result.limits = limits
            return result
    finally:
        folder.close()


def _run(
    work: WorkFolder,
    corpus: Corpus,
    columns: Any,
    old: tuple[Corpus, Any] | OldSignatures | None,
    settings: DedupSettings,
    skip_bad: bool,
    limit: int | None,
    threads: int,
    progress: JobProgress,
    save_path: str | os.PathLike[str] | None,
) -> DedupResult:
    signatures_only = old if isinstance(old, OldSignatures) else None
    without_text = 0 if signatures_only is None else len(signatures_only)
    identity = corpus.identity()
    with progress.timed("read"):
        corpora = [(corpus, columns)]
        if old is not None and not isinstance(old, OldSignatures):
            corpora.insert(0, old)
        documents = read_documents(
            work,
            corpora,
            old_signatures=signatures_only,
            skip_bad=skip_bad,
            progress=progress,
            check=lambda documents: _check_memory(documents, limit),
        )
    with progress.timed("collapse"):
        first = collapse(documents, without_text, threads)
    with progress.timed("sign"):
        signed = sign_documents(
            work,
            documents,
            first,
            settings,
            old_signatures=None if signatures_only is None else signatures_only.signatures,
            threads=threads,
            progress=progress,
        )
    rank = ranks(documents, settings)
    verdict = verified_pairs(
        work,
        documents,
        signed,
        _best_of_equals(rank, first),
        settings,
        without_text=without_text,
        most=None if limit is None else (limit - _needed(len(documents))) // _BYTES_A_PAIR,
        threads=threads,
        progress=progress,
    )
    # Documents too short to be compared are nobody's duplicates, not even of equal ones.
    first = np.where(signed.too_short, np.arange(len(documents)), first)
    with progress.timed("cluster"):
        best = _best_of_equals(rank, first)
        verdict = settle(
            documents, signed, verdict, settings, best, without_text=without_text, threads=threads
        )
        pairs = verdict.accepted
        clusters = cluster_documents(len(documents), first, pairs, settings, best)
        duplicate_of = choose_survivors(clusters.labels, first, rank, documents.old, pairs)
        similarity, estimated = likeness(
            documents,
            signed,
            first,
            duplicate_of,
            pairs,
            settings,
            without_text=without_text,
            threads=threads,
        )
    result = _result(
        documents,
        signed,
        verdict,
        clusters,
        first,
        duplicate_of,
        similarity,
        estimated,
        settings,
        without_text,
        progress,
    )
    result.source, result.columns, result.skip_bad = corpus, columns, skip_bad
    result.source_identity = identity
    if save_path is not None:
        result.save_signatures(save_path)
    return result


def _settings(given: dict[str, Any]) -> DedupSettings:
    """Return the settings, by whichever names they were given."""
    named: dict[str, Any] = {}
    for name, value in given.items():
        own = ALIASES.get(name, name)
        if own in named:
            other = next(alias for alias, meant in ALIASES.items() if meant == own)
            raise ArgumentError(f"{other} and {own} are the same setting; give it once")
        named[own] = value
    known = DedupSettings.__dataclass_fields__
    unknown = sorted(set(named) - set(known))
    if unknown:
        raise ArgumentError(
            f"{unknown[0]!r} is no setting; expected one of {', '.join([*known, *ALIASES])}"
        )
    return DedupSettings(**named)


def _longest_document(given: SupportsIndex | None, limit: SupportsIndex | None) -> int | None:
    """Return the bytes that a document may have, so that it can be worked on within the limit."""
    if given is not None:
        given = whole_number("max_document", given, at_least=1)
    if limit is None:
        return given
    most = whole_number("memory_limit", limit, at_least=1) // _BYTES_A_BYTE
    if given is not None and given > most:
        raise ArgumentError(
            f"max_document is {given:,} bytes; within a memory_limit of {limit:,}, a document may "
            f"have {most:,}: raise memory_limit to {given * _BYTES_A_BYTE:,}, or lower max_document"
        )
    return min(most, MAX_DOCUMENT) if given is None else given


def _open_old(
    against: Any,
    settings: DedupSettings,
    new: Columns,
    format: str | None,
    longest: int | None,
) -> Any:
    if against is None:
        return None
    if isinstance(against, str | os.PathLike) and Path(against).suffix == _LOOKALIKE_SUFFIX:
        saved = load_signatures(against)
        if saved.signer != settings.signer():
            raise FormatError(
                f"{against} was signed by {saved.signer!r}, this job would sign by "
                f"{settings.signer()!r}; give the same method, ngram, permutations, bits and seed"
            )
        with naming(Path(against), "read"):
            state = Path(against).stat()
        identity = [str(Path(against).resolve()), state.st_size, state.st_mtime_ns]
        return OldSignatures(saved.signatures, saved.ids, identity)
    # The format that was given is that of the source; an old file may well tell its own.
    unnamed = isinstance(against, str | os.PathLike) and format_of(Path(against)) is None
    corpus = open_corpus(against, format if unnamed else None)
    if longest is not None:
        corpus.max_document = longest
    known = corpus.columns()
    text, id = (name if name in known else None for name in (new.text, new.id))
    return corpus, find_columns(corpus, text, id, None)


def _needed(documents: int) -> int:
    return _BYTES_AT_LEAST + documents * _BYTES_A_DOCUMENT


def _check_memory(documents: int, limit: int | None) -> None:
    needed = _needed(documents)
    if limit is not None and needed > limit:
        raise ArgumentError(
            f"memory_limit is {limit:,} bytes; {documents:,} documents take about {needed:,}: "
            "raise it, or de-duplicate parts one after the other, each against those before"
        )


def _best_of_equals(rank: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ranks in which the first of equal texts stands as high as the best of them."""
    best = np.full(len(rank), len(rank), np.int64)
    np.minimum.at(best, first, rank)
    return np.where(best < len(rank), best, rank)


def _result(
    documents: DocumentTable,
    signed: Signed,
    verdict: Verdict,
    clusters: Clusters,
    first: NDArray[np.int64],
    duplicate_of: NDArray[np.int64],
    similarity: NDArray[np.float64],
    estimated: NDArray[np.bool_],
    settings: DedupSettings,
    without_text: int,
    progress: JobProgress,
) -> DedupResult:
    """Turn documents, old ones first, into rows of the source."""
    old = documents.old
    new = slice(old, None)
    own = np.where(duplicate_of[new] >= old, duplicate_of[new] - old, -1)
    matched_old = np.where(duplicate_of[new] < old, duplicate_of[new], -1)
    keep = (own < 0) & (matched_old < 0)
    labels = by_first(clusters.labels[new], len(documents))
    copies = np.flatnonzero(first != np.arange(len(first)))
    copies = copies[copies >= old]
    pairs = _with_copies(verdict.accepted, first[copies], copies)
    is_old = pairs.left < old
    new_pairs = pairs[~is_old]
    old_pairs = pairs[is_old]
    similarity, estimated = similarity[new], estimated[new]
    is_copy = first[new] != np.arange(old, len(first))
    compared = ~keep & ~estimated
    sizes = np.bincount(labels) if len(labels) else np.zeros(1, int)
    lengths = documents.texts.lengths[new]
    counts = DedupCounts(
        documents=len(keep),
        kept=int(keep.sum()),
        exact_duplicates=int((is_copy & ~estimated).sum()),
        near_duplicates=int(compared.sum()) - int((is_copy & ~estimated).sum()),
        estimated_duplicates=int(estimated.sum()),
        below_threshold=int((similarity < settings.threshold).sum()),
        lowest_similarity=_least(similarity[compared]),
        lowest_estimate=_least(similarity[estimated]),
        in_old=int((matched_old >= 0).sum()),
        clusters=int((sizes > 1).sum()),
        largest_cluster=int(sizes.max(initial=0)),
        without_features=int(signed.too_short[new].sum()),
        bad_rows=documents.bad,
        binary_files=documents.binary,
        proposed_pairs=verdict.proposed,
        compared_pairs=verdict.compared,
        verified_pairs=len(pairs),
        estimated_pairs=int(verdict.accepted.estimated(without_text, settings).sum()),
        bytes=int(lengths.sum()),
        bytes_saved=int(lengths[~keep].sum()),
    )
    rejected = verdict.rejected
    both_new = rejected.left >= old
    return DedupResult(
        settings=settings,
        keep=keep,
        clusters=labels,
        duplicate_of=own,
        matched_old=matched_old,
        similarity=similarity,
        estimated=estimated,
        pairs=_moved(new_pairs, old, old),
        old_pairs=_moved(old_pairs, 0, old),
        rejected=_moved(rejected[both_new], old, old),
        counts=counts,
        seconds=progress.seconds,
        reused=tuple(progress.reused),
        warnings=[*verdict.warnings, *clusters.warnings],
        source=None,  # type: ignore[arg-type]  # the caller knows it
        columns=None,  # type: ignore[arg-type]
        documents=documents,
        signed=signed,
        first_equal=first,
    )


def _least(values: NDArray[np.float64]) -> float | None:
    return float(values.min()) if len(values) else None


def _with_copies(
    pairs: VerifiedPairs, originals: NDArray[np.int64], copies: NDArray[np.int64]
) -> VerifiedPairs:
    """Add pairs of equal texts with their first."""
    left = np.concatenate([pairs.left, originals])
    right = np.concatenate([pairs.right, copies])
    order = np.lexsort((right, left))
    similarity = np.concatenate([pairs.similarity, np.ones(len(copies))])
    distance = np.concatenate([pairs.distance, np.zeros(len(copies), np.int32)])
    return VerifiedPairs(left, right, similarity, distance)[order]


def _moved(pairs: VerifiedPairs, left: int, right: int) -> VerifiedPairs:
    return VerifiedPairs(pairs.left - left, pairs.right - right, pairs.similarity, pairs.distance)
