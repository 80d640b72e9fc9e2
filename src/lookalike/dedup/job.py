"""The job of documents, step by step: from a corpus to the kept documents."""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from lookalike.checks import file_path, flag, one_of, thread_count
from lookalike.corpora.base import limited
from lookalike.corpora.columns import Filters
from lookalike.corpora.lengths import TextLengths, lengths_on_disk
from lookalike.dedup.decide import (
    Decision,
    GroupChoices,
    best_of_equals,
    decide,
    rule_ranks,
    split_old,
)
from lookalike.dedup.join import join_documents
from lookalike.dedup.old import (
    is_collection,
    is_signed,
    opened_collection,
    signed_items,
    write_texts,
)
from lookalike.dedup.pairs import Ints, count_every_pair, count_with_copies, in_order, most_similar
from lookalike.dedup.propose import propose_pairs
from lookalike.dedup.rarity import Rarity
from lookalike.dedup.result import NOT_COMPARED, DedupCounts, TextResult
from lookalike.dedup.settings import DEVICES, DedupSettings
from lookalike.dedup.sign import DedupJob, Signed, collapse, sign_documents
from lookalike.dedup.verify import Comparer, Verdict, earlier_verdict, verify_pairs
from lookalike.errors import ArgumentError, FormatError, Said
from lookalike.features.choice import chosen_names
from lookalike.jobs.context import JobProgress, longest_document, memory_bytes
from lookalike.jobs.documents import (
    DocumentTable,
    OldSignatures,
    Reading,
    Source,
    early_signatures,
    read_documents,
)
from lookalike.jobs.work_folder import WorkFolder
from lookalike.pages import PageLimits
from lookalike.progress import Progress, listener
from lookalike.signatures.signer import DocumentSigner, Signer
from lookalike.storage.files import file_errors, temporary_folder

STEPS = ("read", "collapse", "sign", "propose", "verify", "group", "write")

_PREFIX = "lookalike-old-"
TEXT = "text"


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
    device: str,
    progress: Progress | bool | None,
    save_signatures: str | os.PathLike[str] | None,
    html: str | None,
    page_limits: PageLimits | None,
    encoding: str | None,
    filters: Filters,
    settings: DedupSettings,
) -> TextResult:
    """Run a job; see `lookalike.dedup`."""
    with ExitStack() as left:
        old: Source | OldSignatures | None = None
        identity: list[Any] | None = None  # of a collection that was written to a file
        if against is not None and is_collection(against):
            settings, old, against, identity = _old_collection(against, settings, left)
        elif against is not None and is_signed(against, lists=False):
            settings, old = _old_signatures(against, settings)
        features, deciding = settings.feature_kind(), settings.keep_column
        skip_bad = flag("skip_bad", skip_bad)
        workers = thread_count(threads)
        if one_of("device", device, DEVICES) == "gpu":
            _check_gpu(settings)
        if work is not None:
            work = file_path("work", work)
        if save_signatures is not None:
            save_signatures = file_path("save_signatures", save_signatures)
        if work is not None or save_signatures is not None:
            features.check_persistent()
        steps = JobProgress(listener(progress))
        limit = memory_bytes(memory_limit)
        reading = Reading(
            format=format,
            encoding=encoding,
            html=html,
            page_limits=page_limits,
            filters=filters,
            longest=longest_document(max_document, limit),
            was_given=max_document is not None,
        )
        opened = reading.source(source, features, text, id, deciding)
        if old is None and against is not None:
            old = reading.old_source(against, features, opened.columns)
            old = replace(old, made_from=identity)
        folder = WorkFolder(work)
        left.callback(folder.close)
        job = DedupJob(
            settings=settings,
            skip_bad=skip_bad,
            memory_limit=limit,
            threads=workers,
            device=device,
            progress=steps,
            work=folder,
        )
        with limited(*job.limits):
            result = _steps(job, opened, old)
            if save_signatures is not None:
                result.save_signatures(save_signatures)
            return result


def _check_gpu(settings: DedupSettings) -> None:
    """Refuse a GPU that is missing, or that has nothing to do."""
    if not settings.by_signatures:
        raise ArgumentError(
            Said("device='gpu'", "--device gpu"),
            " finds pairs by signatures, and these settings find them by features; leave it out",
        )
    from lookalike.gpu.card import card

    card(0)  # raises before anything is read


def _steps(job: DedupJob, source: Source, old: Source | OldSignatures | None) -> TextResult:
    """Run the steps, one after the other."""
    timed = job.progress.timed
    # Features that Python finds would keep Python from reading meanwhile.
    settings, signer = job.settings, job.settings.signer()
    named = isinstance(settings.features, str) and "short" not in chosen_names(settings.features)
    native = named and settings.stem is None
    signing = early_signatures(job, signer, signer.bits // 8) if native else nullcontext()
    with signing as early:
        with timed("read"):
            documents = read_documents(job, source, old, early)
            job, lengths = _with_features(job, documents)
        settings = job.settings
        if (fitting := settings.signer()) is not signer:
            signer, early = fitting, None
        with timed("collapse"):
            first = collapse(job, documents)
        with timed("sign"):
            signed = sign_documents(job, signer, documents, first, old, early)
    # Documents too short to be compared are not duplicates, not even of equal ones.
    first = np.where(signed.too_short, np.arange(len(first)), first)
    texts, order = documents.texts, documents.order
    sizes = texts.lengths
    rank = rule_ranks(settings, len(first), old=documents.old, lengths=sizes, order=order)
    rarity = Rarity(job, documents, signed)
    compare = Comparer(
        settings,
        signed.signatures,
        signed.positions,
        texts.documents,
        sizes,
        documents.signatures_only,
        job.threads,
        texts.release,
        rarity,
    )
    verdict = earlier_verdict(job, signed)
    if verdict is None and settings.exact:
        verdict = join_documents(job, documents, signed, first, rarity)
    elif verdict is None:
        with timed("propose"):
            best = best_of_equals(rank, first)[signed.positions]
            candidates = propose_pairs(job, documents, signed, best, rarity)
        with timed("verify"):
            verdict = verify_pairs(job, signed, candidates, compare)
    with timed("group"):
        decision = decide(
            verdict.accepted,
            rank,
            settings,
            first=first,
            old=documents.old,
            sizes=compare.sizes(verdict.accepted) if settings.contains else None,
            choices=_choices(job, source, documents, first),
            compare=compare,
            # Samples propose every pair, if they do not warn.
            complete=settings.exact
            or (not settings.by_signatures and not verdict.candidates.warnings),
        )
    return _conclude(job, source, documents, signed, first, verdict, decision, compare, lengths)


def _with_features(job: DedupJob, documents: DocumentTable) -> tuple[DedupJob, TextLengths | None]:
    """Return the job with features that fit its documents, and their lengths; an old corpus does
    not count. Features that were given stay, and nothing is counted.
    """
    if not job.settings.features_open:
        return job, None
    lengths = lengths_on_disk(documents.texts, documents.old)
    return replace(job, settings=job.settings.with_features(lengths.features)), lengths


def _choices(
    job: DedupJob, source: Source, documents: DocumentTable, first: Ints
) -> GroupChoices | None:
    """Return what asks the function that `keep` is; None if it is a rule."""
    if not callable(job.settings.keep):
        return None

    def read(positions: Ints) -> list[dict[str, Any]]:
        rows = source.corpus.rows_at(positions - documents.old, job.skip_bad)
        source.corpus.check_identity(source.identity)
        return rows

    return GroupChoices(job.settings.keep, job.settings, first, documents.old, read)


def _conclude(
    job: DedupJob,
    source: Source,
    documents: DocumentTable,
    signed: Signed,
    first: Ints,
    verdict: Verdict,
    decision: Decision,
    compare: Comparer,
    lengths: TextLengths | None,
) -> TextResult:
    """Return the result: what is known of documents, told of rows of the source."""
    settings, old, pairs = job.settings, documents.old, decision.pairs
    new = slice(old, None)
    stands_for, similarity = decision.duplicate_of[new], decision.similarity[new]
    own, matched_old, labels = split_old(decision, old)
    rejected = verdict.rejected
    if len(decision.rejected):
        rejected = most_similar(in_order([rejected, decision.rejected]))
    rejected = rejected[rejected.left >= old].moved(old, old)
    verified = (count_every_pair if settings.exact else count_with_copies)(pairs, first, old)
    estimated = np.zeros(len(stands_for), bool)
    dropped = np.flatnonzero(stands_for >= 0)
    one, two = first[stands_for[dropped]], first[new][dropped]
    estimated[dropped] = (one != two) & compare.estimated(np.minimum(one, two))
    estimated_pairs = int(compare.estimated(pairs.left).sum())
    sizes = documents.texts.lengths[new]
    counts = DedupCounts.of(
        decision,
        first,
        threshold=settings.threshold,
        keep=settings.keep,
        old=old,
        estimated=estimated,
        in_old=int((matched_old >= 0).sum()),
        without_features=int(signed.too_short[new].sum()),
        bad_rows=documents.bad,
        binary_files=documents.binary,
        proposed_pairs=verdict.candidates.proposed + decision.proposed,
        compared_pairs=verdict.compared + decision.compared,
        verified_pairs=verified,
        estimated_pairs=estimated_pairs,
        bytes=int(sizes.sum()),
        bytes_saved=int(sizes[dropped].sum()),
        left_out=sum(documents.left_out.values()),
        short_documents=None if lengths is None else lengths.short,
        **{name: getattr(verdict.candidates, name) for name in NOT_COMPARED},
    )
    return TextResult(
        settings=settings,
        features_reason=None if lengths is None else lengths.reason,
        keep=stands_for < 0,
        group_of=labels,
        duplicate_of=own,
        matched_old=matched_old,
        similarity=similarity,
        estimated=estimated,
        different_pairs=pairs,
        rejected=rejected,
        counts=counts,
        seconds=dict(job.progress.seconds),
        reused=tuple(job.progress.reused),
        overlapped=tuple(job.progress.overlapped),
        warnings=[
            *source.corpus.notices,
            *documents.notices,
            *verdict.candidates.warnings,
            *decision.warnings,
        ],
        source=source.corpus,
        source_identity=source.identity,
        columns=source.columns,
        skip_bad=job.skip_bad,
        limits=job.limits,
        documents=documents,
        signed=signed,
        first_equal=first,
    )


def _old_signatures(
    against: Any, settings: DedupSettings, identity: list[Any] | None = None
) -> tuple[DedupSettings, OldSignatures]:
    """Return the signatures of an old corpus, and settings with its features if these are open.

    Raises if the signer of the job did not make the signatures.
    """
    if not settings.by_signatures:
        raise ArgumentError(
            settings.said_reason,
            f" compares documents, and {against} has only signatures; give the old corpus itself, "
            "or leave one of them out",
        )
    saved = signed_items(against, TEXT)
    signer = saved.signer
    if signer is None or saved.parts:
        raise ArgumentError(
            Said("against"),
            f" is {saved.name}, which does not have signatures of documents with their signer. "
            "Give a file that `lookalike sign` wrote, an index of one, or the old corpus",
        )
    if settings.features_open:
        settings = _with_features_of(signer, settings)
    if signer != settings.signer():
        raise FormatError(
            f"{saved.name} was signed by ",
            signer.said(),
            ", but this job signs by ",
            settings.signer().said(),
            "; sign both in the same way",
        )
    if identity is None and isinstance(against, str | os.PathLike):
        with file_errors(Path(against), "read"):
            state = Path(against).stat()
        identity = [str(Path(against).resolve()), state.st_size, state.st_mtime_ns]
    elif identity is None:
        identity = ["index", hashlib.sha256(saved.signatures.data).hexdigest()]
    return settings, OldSignatures(saved.signatures, saved.ids, identity)


def _old_collection(
    against: Any, settings: DedupSettings, left: ExitStack
) -> tuple[DedupSettings, OldSignatures | None, Path | None, list[Any]]:
    """Return the documents of a collection: a file of their texts, or signatures if it has none.

    Also returns settings with its features, and what tells this version of the collection.
    """
    with opened_collection(against, TEXT) as collection:
        identity = [repr(collection), collection.version]
        path = left.enter_context(temporary_folder(_PREFIX)) / "old.jsonl"
        if write_texts(collection, path):
            return settings, None, path, identity
        settings, old = _old_signatures(collection, settings, identity)
        return settings, old, None, identity


def _with_features_of(signer: Signer, settings: DedupSettings) -> DedupSettings:
    """Return settings with the features of a signer of texts, by name if they have one."""
    if not isinstance(signer, DocumentSigner) or not signer.features.is_document(""):
        return settings
    named = [settings.with_features(name) for name in ("words", "short")]
    same = [one for one in named if one.feature_kind() == signer.features]
    return same[0] if same else settings.with_features(signer.features)
