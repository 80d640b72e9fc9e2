"""The whole job, step by step: from a corpus to the documents that are kept, and why."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import callback, file_path, flag, one_of, thread_count
from lookalike.corpora.base import limited
from lookalike.corpora.columns import Filters
from lookalike.dedup.decide import (
    Decision,
    GroupChoices,
    best_of_equals,
    by_first,
    decide,
    rule_ranks,
)
from lookalike.dedup.join import join_documents
from lookalike.dedup.pairs import count_every_pair, in_order, most_similar
from lookalike.dedup.propose import propose_pairs
from lookalike.dedup.result import DedupCounts, TextResult
from lookalike.dedup.settings import ALIASES, DEVICES, DedupSettings
from lookalike.dedup.sign import DedupJob, Signed, collapse, sign_documents
from lookalike.dedup.verify import Comparer, Verdict, earlier_verdict, verify_pairs
from lookalike.errors import ArgumentError, FormatError, Said
from lookalike.jobs.context import JobProgress, longest_document, memory_bytes
from lookalike.jobs.documents import (
    DocumentTable,
    OldSignatures,
    Reading,
    Source,
    early_signatures,
    read_documents,
)
from lookalike.jobs.work_folder import WorkFolder, naming
from lookalike.pages import PageLimits
from lookalike.signatures.files import load_signatures
from lookalike.suggestions import did_you_mean

STEPS = ("read", "collapse", "sign", "propose", "verify", "cluster", "write")

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
    device: str,
    progress: Callable[[str, float], None] | None,
    save_signatures: str | os.PathLike[str] | None,
    html: str | None,
    page_limits: PageLimits | None,
    encoding: str | None,
    filters: Filters,
    settings: dict[str, Any],
) -> TextResult:
    """Run a job; see `lookalike.dedup`."""
    chosen = settings_of(settings)
    skip_bad = flag("skip_bad", skip_bad)
    progress = callback("progress", progress)
    _check_device(device, chosen)
    if work is not None:
        work = file_path("work", work)
        chosen.feature_kind().check_lasting()
    if save_signatures is not None:
        save_signatures = file_path("save_signatures", save_signatures)
        chosen.feature_kind().check_lasting()
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
    features = chosen.feature_kind()
    opened = reading.source(source, features, text=text, id=id, order=chosen.keep_column)
    count = thread_count(threads)
    old: Source | OldSignatures | None = None
    if isinstance(against, str | os.PathLike) and Path(against).suffix == _LOOKALIKE_SUFFIX:
        old = _old_signatures(against, chosen)
    elif against is not None:
        old = reading.old_source(against, features, opened.columns)
    folder = WorkFolder(work)
    job = DedupJob(
        settings=chosen,
        skip_bad=skip_bad,
        memory_limit=limit,
        threads=count,
        device=device,
        progress=JobProgress(progress),
        work=folder,
    )
    try:
        with limited(*job.limits):
            result = _steps(job, opened, old)
            if save_signatures is not None:
                result.save_signatures(save_signatures)
            return result
    finally:
        folder.close()


def _check_device(device: str, settings: DedupSettings) -> None:
    """Refuse a GPU that is missing, or that has nothing to do."""
    if one_of("device", device, DEVICES) == "cpu":
        return
    if settings.by_bands or not settings.by_signatures:
        raise ArgumentError(
            Said("device='gpu'", "--device gpu"),
            " looks for pairs of signatures of ",
            Said("method='simhash'", "--method simhash"),
            " or ",
            Said("'topsig'", "topsig"),
            " that propose them; there is nothing to do for it here: leave it out",
        )
    from lookalike.gpu.card import card

    card(0)  # raises before anything is read


def _steps(job: DedupJob, source: Source, old: Source | OldSignatures | None) -> TextResult:
    """Run the steps, one after the other."""
    settings, timed = job.settings, job.progress.timed
    # Features that Python finds would keep Python from reading meanwhile.
    native = isinstance(settings.features, str) and settings.stem is None
    signer = settings.signer()
    signing = early_signatures(job, signer, signer.bits // 8) if native else nullcontext()
    with signing as early:
        with timed("read"):
            documents = read_documents(job, source, old, early)
        with timed("collapse"):
            first = collapse(job, documents)
        with timed("sign"):
            signed = sign_documents(job, documents, first, old, early)
    # Documents too short to be compared are not duplicates, not even of equal ones.
    first = np.where(signed.too_short, np.arange(len(documents)), first)
    rank = rule_ranks(
        settings,
        len(documents),
        old=documents.old,
        lengths=documents.texts.lengths,
        order=documents.order,
    )
    compare = Comparer.of(job, documents, signed)
    verdict = earlier_verdict(job, signed)
    if verdict is None and settings.exact:
        verdict = join_documents(job, documents, signed, first)
    elif verdict is None:
        with timed("propose"):
            best = best_of_equals(rank, first)[signed.positions]
            candidates = propose_pairs(job, documents, signed, best)
        with timed("verify"):
            verdict = verify_pairs(job, signed, candidates, compare)
    with timed("cluster"):
        sampled = settings.measure == "containment"
        decision = decide(
            verdict.accepted,
            rank,
            settings,
            first=first,
            old=documents.old,
            sizes=compare.sizes(verdict.accepted) if sampled else None,
            choices=_choices(job, source, documents, first),
            compare=compare,
            # Samples propose every pair, if they do not warn.
            complete=settings.exact or (sampled and not verdict.warnings),
        )
    return _conclude(job, _Outcome(source, documents, signed, first, verdict, decision, compare))


def _choices(
    job: DedupJob, source: Source, documents: DocumentTable, first: NDArray[np.int64]
) -> GroupChoices | None:
    """Return what asks the function that `keep` is; None if it is a rule."""
    if not callable(job.settings.keep):
        return None

    def read(positions: NDArray[np.int64]) -> list[dict[str, Any]]:
        rows = source.corpus.rows_at(positions - documents.old, job.skip_bad)
        source.corpus.check_identity(source.identity)
        return rows

    return GroupChoices(job.settings.keep, job.settings, first, documents.old, read)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What the steps have made; arrays have an element per document, old ones first."""

    source: Source
    documents: DocumentTable
    signed: Signed
    first: NDArray[np.int64]
    """The first with the same text."""
    verdict: Verdict
    decision: Decision
    compare: Comparer

    def estimated(self) -> NDArray[np.bool_]:
        """Return whether the similarity of each dropped document is an estimate."""
        estimated = np.zeros(len(self.first), bool)
        dropped = np.flatnonzero(self.decision.duplicate_of >= 0)
        one, two = self.first[self.decision.duplicate_of[dropped]], self.first[dropped]
        differ = one != two
        estimated[dropped[differ]] = self.compare.estimated(np.minimum(one, two)[differ])
        return estimated


def _conclude(job: DedupJob, outcome: _Outcome) -> TextResult:
    """Return the result: what was found about documents, told of rows of the source."""
    documents, verdict, decision = outcome.documents, outcome.verdict, outcome.decision
    old = documents.old
    new = slice(old, None)
    stands_for = decision.duplicate_of[new]
    own = np.where(stands_for >= old, stands_for - old, -1)
    matched_old = np.where(stands_for < old, stands_for, -1)
    keep = (own < 0) & (matched_old < 0)
    labels = by_first(decision.clusters[new], len(documents))
    rejected = verdict.rejected
    if len(decision.rejected):
        rejected = most_similar(in_order([rejected, decision.rejected]))
    estimated = outcome.estimated()[new]
    return TextResult(
        settings=job.settings,
        keep=keep,
        clusters=labels,
        duplicate_of=own,
        matched_old=matched_old,
        similarity=decision.similarity[new],
        estimated=estimated,
        text_pairs=decision.pairs,
        rejected=rejected[rejected.left >= old].moved(old, old),
        counts=_counts(job, outcome, keep, matched_old, labels, estimated),
        seconds=dict(job.progress.seconds),
        reused=tuple(job.progress.reused),
        overlapped=tuple(job.progress.overlapped),
        warnings=[
            *outcome.source.corpus.notices,
            *documents.notices,
            *verdict.warnings,
            *decision.warnings,
        ],
        source=outcome.source.corpus,
        source_identity=outcome.source.identity,
        columns=outcome.source.columns,
        skip_bad=job.skip_bad,
        limits=job.limits,
        documents=documents,
        signed=outcome.signed,
        first_equal=outcome.first,
    )


def _counts(
    job: DedupJob,
    outcome: _Outcome,
    keep: NDArray[np.bool_],
    matched_old: NDArray[np.int64],
    labels: NDArray[np.int64],
    estimated: NDArray[np.bool_],
) -> DedupCounts:
    documents, verdict, decision = outcome.documents, outcome.verdict, outcome.decision
    first, old, pairs = outcome.first, documents.old, decision.pairs
    new = slice(old, None)
    similarity = decision.similarity[new]
    equal = is_copy = first[new] != np.arange(old, len(documents))
    if job.settings.keep == "none":  # the first of equal texts is dropped, too
        equal = np.bincount(first, minlength=len(documents))[first][new] > 1
    compared = ~keep & ~estimated
    exact = int((equal & ~estimated).sum())
    sizes = np.bincount(labels) if len(labels) else np.zeros(1, int)
    lengths = documents.texts.lengths[new]
    verified = len(pairs) + int(is_copy.sum())
    if job.settings.exact:
        verified = count_every_pair(pairs, first, old)
    return DedupCounts(
        documents=len(keep),
        kept=int(keep.sum()),
        exact_duplicates=exact,
        near_duplicates=int(compared.sum()) - exact,
        estimated_duplicates=int(estimated.sum()),
        below_threshold=int((similarity < job.settings.threshold).sum()),
        lowest_similarity=_least(similarity[compared]),
        lowest_estimate=_least(similarity[estimated]),
        in_old=int((matched_old >= 0).sum()),
        clusters=int((sizes > 1).sum()),
        largest_cluster=int(sizes.max(initial=0)),
        without_features=int(outcome.signed.too_short[new].sum()),
        bad_rows=documents.bad,
        binary_files=documents.binary,
        proposed_pairs=verdict.proposed + decision.proposed,
        compared_pairs=verdict.compared + decision.compared,
        verified_pairs=verified,
        estimated_pairs=int(outcome.compare.estimated(pairs.left).sum()),
        bytes=int(lengths.sum()),
        bytes_saved=int(lengths[~keep].sum()),
        left_out=sum(documents.left_out.values()),
    )


def _least(values: NDArray[np.float64]) -> float | None:
    return float(values.min()) if len(values) else None


def settings_of(given: dict[str, Any]) -> DedupSettings:
    """Return the settings, also by the names that other tools have for them."""
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
            f"{did_you_mean(unknown[0], [*known, *ALIASES])}"
        )
    return DedupSettings(**named)


def _old_signatures(against: str | os.PathLike[str], settings: DedupSettings) -> OldSignatures:
    """Return the signatures of an old corpus, if they are of the kind that the job makes."""
    if not settings.by_signatures:
        raise ArgumentError(
            settings.said_reason,
            f" compares documents, and {against} has signatures alone; give the old corpus "
            "itself, or leave that out",
        )
    saved = load_signatures(against)
    if saved.signer != settings.signer():
        raise FormatError(
            f"{against} was signed by ",
            saved.signer.said(),
            ", this job would sign by ",
            settings.signer().said(),
            "; sign both in the same way",
        )
    with naming(Path(against), "read"):
        state = Path(against).stat()
    identity = [str(Path(against).resolve()), state.st_size, state.st_mtime_ns]
    return OldSignatures(saved.signatures, saved.ids, identity)
