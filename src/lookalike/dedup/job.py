"""The whole job, step by step: a corpus in; who stays, who goes and why out."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from lookalike.checks import callback, file_path, flag, one_of, thread_count
from lookalike.corpora import Corpus, format_of, open_corpus
from lookalike.corpora.base import limited
from lookalike.corpora.columns import Columns, columns_for, find_columns
from lookalike.corpora.filters import Filters, filtered
from lookalike.corpora.opening import with_old_pages
from lookalike.dedup.conclude import Outcome, conclude
from lookalike.dedup.context import JobContext, longest_document, memory_bytes
from lookalike.dedup.decide import decide
from lookalike.dedup.direction import best_of_equals
from lookalike.dedup.early import early_signatures
from lookalike.dedup.pairs.join import join_documents
from lookalike.dedup.pairs.propose import propose_pairs
from lookalike.dedup.pairs.verify import earlier_verdict, verify_pairs
from lookalike.dedup.progress import JobProgress
from lookalike.dedup.read import OldSignatures, Source, read_documents
from lookalike.dedup.result import DedupResult
from lookalike.dedup.settings import ALIASES, DEVICES, DedupSettings
from lookalike.dedup.sign import collapse, sign_documents
from lookalike.dedup.survivors.choose import ranks
from lookalike.dedup.survivors.keep_function import GroupChoices
from lookalike.dedup.work_folder import WorkFolder, naming
from lookalike.errors import ArgumentError, FormatError, Said
from lookalike.pages import PageLimits
from lookalike.signatures.files import load_signatures
from lookalike.suggestions import did_you_mean

__all__ = ["run_job", "settings_of"]

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
) -> DedupResult:
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
    longest = longest_document(max_document, limit)
    told = max_document is not None
    pages = partial(open_corpus, html=html, page_limits=page_limits)
    corpus = _open(source, format, longest, told, pages, encoding)
    columns = find_columns(corpus, text, id, chosen.keep_column)
    columns = columns_for(corpus, columns, chosen.feature_kind())
    corpus = filtered(corpus, columns, filters)
    count = thread_count(threads)
    old_pages = partial(with_old_pages, html=html, limits=page_limits)
    opening = partial(
        _open, format=format, longest=longest, told=told, pages=old_pages, encoding=encoding
    )
    old = _open_old(against, chosen, columns, opening, filters.for_old())
    folder = WorkFolder(work)
    job = JobContext(chosen, skip_bad, limit, count, device, JobProgress(progress), folder)
    try:
        with limited(*job.limits):
            result = _steps(job, Source(corpus, columns, corpus.identity()), old)
            if save_signatures is not None:
                result.save_signatures(save_signatures)
            return result
    finally:
        folder.close()


def _check_device(device: str, settings: DedupSettings) -> None:
    """Refuse a card that is not there, or that there is nothing to do for."""
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

    card(0)  # before anything is read, it says that there is none


def _steps(job: JobContext, source: Source, old: Source | OldSignatures | None) -> DedupResult:
    """Take the steps, one after the other."""
    timed = job.progress.timed
    with early_signatures(job) as early:
        with timed("read"):
            documents = read_documents(job, source, old, early)
        with timed("collapse"):
            first = collapse(job, documents)
        with timed("sign"):
            signed = sign_documents(job, documents, first, old, early)
    # Documents too short to be compared are nobody's duplicates, not even of equal ones.
    first = np.where(signed.too_short, np.arange(len(documents)), first)
    rank = ranks(documents, job.settings)
    choices = GroupChoices.of_job(job, source, documents, first)
    verdict = earlier_verdict(job, signed)
    if verdict is None and job.settings.exact:
        verdict = join_documents(job, documents, signed, first)
    elif verdict is None:
        with timed("propose"):
            best = best_of_equals(rank, first)[signed.positions]
            candidates = propose_pairs(job, documents, signed, best)
        with timed("verify"):
            verdict = verify_pairs(job, documents, signed, candidates)
    with timed("cluster"):
        decision = decide(job, documents, signed, first, rank, choices, verdict)
    outcome = Outcome(
        source=source,
        documents=documents,
        signed=signed,
        first=first,
        verdict=decision.verdict,
        clusters=decision.clusters,
        duplicate_of=decision.duplicate_of,
        similarity=decision.similarity,
        estimated=decision.estimated,
    )
    return conclude(job, outcome)


def settings_of(given: dict[str, Any]) -> DedupSettings:
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
            f"{did_you_mean(unknown[0], [*known, *ALIASES])}"
        )
    return DedupSettings(**named)


def _open(
    source: Any,
    format: str | None,
    longest: int | None,
    told: bool,
    pages: Callable[[Corpus], Corpus],
    encoding: str | None,
) -> Corpus:
    corpus = pages(open_corpus(source, format, encoding=encoding))
    if longest is not None:
        corpus.max_document = longest if told else min(longest, type(corpus).max_document)
    return corpus


def _open_old(
    against: Any,
    settings: DedupSettings,
    new: Columns,
    opening: Callable[..., Corpus],
    filters: Filters,
) -> Source | OldSignatures | None:
    if against is None:
        return None
    if isinstance(against, str | os.PathLike) and Path(against).suffix == _LOOKALIKE_SUFFIX:
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
    # The format that was given is that of the source; an old file may well tell its own.
    unnamed = isinstance(against, str | os.PathLike) and format_of(Path(against)) is None
    corpus = opening(against) if unnamed else opening(against, format=None)
    known = corpus.columns()
    text, id = (name if name in known else None for name in (new.text, new.id))
    columns = columns_for(corpus, find_columns(corpus, text, id, None), settings.feature_kind())
    return Source(filtered(corpus, columns, filters), columns, corpus.identity())
