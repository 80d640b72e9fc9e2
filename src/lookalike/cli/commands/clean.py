"""`lookalike clean`: a corpus in; the same documents without repeated text out."""

from __future__ import annotations

import argparse
from dataclasses import replace

from lookalike.cleaning import clean
from lookalike.cleaning.settings import (
    BOUNDARIES,
    GAP,
    KEEP_RULES,
    MAX_DOCUMENTS,
    REMOVALS,
    UNIT_WORDS,
    UNITS,
    WORDS,
    CleanSettings,
)
from lookalike.cli import common, row_jobs
from lookalike.cli.engines import Output, SparkRun, add_engine, on_spark, spark_details
from lookalike.cli.parser import Parser, refuse_given
from lookalike.cli.terminal import check_read_once
from lookalike.progress import progress_bars

_SETTINGS = ("words", "gap", "unit", "max_documents", "remove", "boundary", "keep", "min_left")
_CHOSEN = (*_SETTINGS, "max_document", "work", "memory_limit")
_LOCAL = ("gap",)
"""Settings that only the local engine has."""

TASK = "clean a corpus"
PURPOSE = "remove repeated passages, lines and paragraphs from texts"
DESCRIPTION = """\
Remove text that occurs again in a corpus: runs of words, or whole lines,
sentences or paragraphs. The first copy is kept."""
ARGUMENTS = f"""
{common.INPUT}
what to remove:
  words:--passage-words N  minimum number of words in a repeated run, or in a unit (default:
                       {WORDS}; units {UNIT_WORDS})
  --gap N              also remove edited copies, with at most N other words between equal runs
                       (default: {GAP})
  --unit {"|".join(UNITS)}  remove whole units instead of runs of words
  --max-documents N    number of documents that may have a unit (default: {MAX_DOCUMENTS})
  --remove {"|".join(REMOVALS)}=copies  copies: all but the first copy; all: the first copy, too
  --boundary {"|".join(BOUNDARIES)}  where runs are cut; auto: at words, or whole sentences if more
                       than half is repeated (default: auto)
  --keep RULE=first    document whose copy is kept: {", ".join(KEEP_RULES)}, max:COLUMN or
                       min:COLUMN
  --min-left N=1       drop documents left with fewer words
input:
{common.CORPUS}
output:
{row_jobs.OUTPUT.format(what="cleaned documents", columns="removed_words, removed_ranges, kept")}
  --removed FILE       write the removed ranges and their first copies
  --with-text          also write the removed texts to the file of --removed
  --report FILE        write an HTML report to this file
  --json
  --quiet
resources:
  --work FOLDER        keep intermediate results here, to resume a job
  --memory-limit SIZE  memory for the job, such as 8GB (default: not limited)
  --threads
advanced options:
{row_jobs.DETAILS.format(or_longest=", or a 40th of --memory-limit")}
"""
EXAMPLES = """\
  lookalike clean corpus.jsonl -o clean.jsonl --removed removed.jsonl
  lookalike clean corpus.jsonl --unit line --max-documents 10 -o clean.parquet
  lookalike clean corpus.jsonl --passage-words 100 --remove all --dry-run
"""
DETAILS = f"""\
Words are letters and digits, in upper or lower case. A run is removed if the same words occur in an
earlier document, or earlier in the same one. Removing text can make new repeats: these are removed,
too, so cleaning the result again removes nothing. Everything else is unchanged, byte for byte.

--gap also removes copies in which words were changed, inserted or left out. Such a copy is runs of
equal words that follow each other in both places, with at most N other words between them. Each
has a fifth of --passage-words or more, and all together have --passage-words. The other words
between them stay, except by --boundary.

--unit removes lines, sentences or paragraphs whose words occur in more than --max-documents
documents, or more than once in a document.

The file of --removed has one row per range (docs/cleaning.md):
  id, begin, end  the document, and characters of its text, from 0, end exclusive
  words           number of removed words
  copy_of, copy_begin, copy_end  the document that has the first copy, and where

{spark_details(ARGUMENTS, _LOCAL)}
"""


def add(parser: Parser) -> None:
    """Declare the engine."""
    add_engine(parser)


def run(options: argparse.Namespace) -> None:
    """Clean the documents, write the outputs, print the summary."""
    if options.removed is None:
        refuse_given(options, ("with_text",), "needs --removed, the file that it is for")
    if on_spark(options, _LOCAL):
        _run_on_spark(options)
        return
    check_read_once(options.input)
    corpus = common.corpus_of(options.input, options)
    row_jobs.check_outputs(options, corpus, {"--removed": options.removed})
    with progress_bars(options.quiet or options.json, common.megabytes(corpus)) as progress:
        result = clean(
            corpus,
            **{name: getattr(options, name) for name in _CHOSEN},
            progress=progress,
            **common.reading_of(options),
        )
        removed = (
            options.removed,
            lambda path: result.write_removed(path, with_text=options.with_text),
        )
        written = row_jobs.finish(options, result, {"removed ranges": removed}, progress)
    row_jobs.tell(options, result, written)


def _run_on_spark(options: argparse.Namespace) -> None:
    """Run the job on Spark, write the outputs, print the summary."""
    chosen = {name: getattr(options, name) for name in _SETTINGS if name not in _LOCAL}
    order = CleanSettings(**chosen).order.keep_column  # before anything starts
    run = SparkRun.start(options, ("output", "removed"), order)
    from lookalike.spark import cleaning

    corpus = run.corpus
    with cleaning.clean(
        corpus.frame, **chosen, text=corpus.text, id=corpus.id, work=run.work
    ) as found:
        kind, rows = "documents", Output(options.output, lambda: found.documents)
        if options.annotate:
            kind = "annotated documents"
            rows = Output(options.output, lambda: found.annotated, cleaning.ADDED)
        ranges = "removed_with_text" if options.with_text else "removed"
        removed = Output(options.removed, lambda: getattr(found, ranges))
        written = run.write(options, {"removed ranges": removed, kind: rows})
        found.seconds.update(run.seconds)
        counts = replace(found.counts, bad_rows=corpus.bad)
        row_jobs.tell(options, replace(found, _counts=counts), written)
