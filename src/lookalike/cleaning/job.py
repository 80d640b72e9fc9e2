"""The steps of cleaning, one after the other: read, find what occurs again, count what is left."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from lookalike.checks import file_path, flag, thread_count
from lookalike.cleaning.repeats import RepeatFinder
from lookalike.cleaning.result import CleanResult, left_words
from lookalike.cleaning.settings import CleanSettings
from lookalike.corpora.base import limited
from lookalike.corpora.columns import Filters
from lookalike.dedup.decide import rule_ranks
from lookalike.dedup.kinds import chosen
from lookalike.features import Words
from lookalike.jobs.context import JobContext, JobProgress, longest_document, memory_bytes
from lookalike.jobs.documents import Reading, read_documents
from lookalike.jobs.work_folder import WorkFolder
from lookalike.progress import listener

STEPS = ("read", "find", "count")


def run_job(options: dict[str, Any]) -> CleanResult:
    """Run the steps, with the arguments of `lookalike.cleaning.clean`."""
    settings = CleanSettings(**chosen(options, CleanSettings))
    limit = memory_bytes(options["memory_limit"])
    reading = Reading(
        format=options["format"],
        encoding=options["encoding"],
        html=None,
        page_limits=None,
        filters=Filters(),
        longest=longest_document(options["max_document"], limit),
        was_given=options["max_document"] is not None,
    )
    skip_bad, workers = flag("skip_bad", options["skip_bad"]), thread_count(options["threads"])
    work = None if options["work"] is None else file_path("work", options["work"])
    progress = JobProgress(listener(options["progress"]))
    source = reading.source(
        options["source"], Words(), options["text"], options["id"], settings.order.keep_column
    )
    with ExitStack() as left:
        folder = WorkFolder(work)
        left.callback(folder.close)
        job = JobContext(
            skip_bad=skip_bad,
            memory_limit=limit,
            threads=workers,
            progress=progress,
            work=folder,
        )
        left.enter_context(limited(*job.limits))
        with progress.timed("read"):
            documents = read_documents(job, source, None, None)
        with progress.timed("find"):
            rank = rule_ranks(
                settings.order,
                len(documents),
                lengths=documents.texts.lengths,
                order=documents.order,
            )
            finder = RepeatFinder(job, settings, documents, np.argsort(rank))
            removals, units, rounds = finder.find()
        with progress.timed("count"):
            left_over = left_words(documents, removals)
        return CleanResult(
            settings=settings,
            removals=removals,
            unit_counts=units,
            rounds=rounds,
            changed=left_over[0],
            words_left=left_over[1],
            seconds=dict(progress.seconds),
            reused=tuple(progress.reused),
            warnings=[*source.corpus.notices, *documents.notices],
            source=source.corpus,
            source_identity=source.identity,
            columns=source.columns,
            skip_bad=skip_bad,
            limits=job.limits,
            documents=documents,
        )
