"""`lookalike decontaminate`: training documents in; those without test questions out."""

from __future__ import annotations

import argparse
from pathlib import Path

from lookalike.cleaning import decontaminate
from lookalike.cleaning.contamination import (
    ACTIONS,
    GAP,
    MARGIN,
    MIN_SHARE,
    NEAR_NGRAM,
    NEAR_SHARE,
    NGRAM,
    RULES,
    SHORTEST,
    ContaminationSettings,
)
from lookalike.cli import common, row_jobs
from lookalike.cli.engines import Output, SparkRun, add_engine, on_spark, spark_details
from lookalike.cli.parser import Parser
from lookalike.cli.terminal import check_read_once
from lookalike.progress import progress_bars

_CHOSEN = ("rule", "ngram", "shortest", "min_share", "gap", "action", "margin")

TASK = "clean a corpus"
PURPOSE = "find test questions in training text and remove them"
DESCRIPTION = """\
Find documents that contain items of benchmarks, such as test questions, and
drop them, cut the passages, or mark them."""
ARGUMENTS = f"""
{common.INPUT}
benchmarks:
  --benchmarks PATH    file of items, or folder in which each file is a benchmark (required)
  --columns LIST       columns of benchmarks to look for, such as question,answer for both
                       (default: detected)
  --rule {"|".join(RULES)}=ngram  when a document contains an item; see --help-all
  ngram:--ngram-words N  words of an n-gram (default: {NGRAM}; near {NEAR_NGRAM})
  --shortest N         fewest words of an item that is looked for (default: {SHORTEST}; near
                       {NEAR_NGRAM})
  --min-share SHARE    minimum share of an item (default: {MIN_SHARE}; near {NEAR_SHARE})
  --gap N              maximum number of other words between two runs, of near (default: {GAP})
  --action {"|".join(ACTIONS)}=drop  what to do with documents that contain items
  --margin N           characters to cut before and after a passage (default: {MARGIN})
input:
{common.CORPUS}
output:
{row_jobs.OUTPUT.format(what="documents", columns="contaminated, contaminated_by")}
  --hits FILE          write documents with the items that they contain
  --clean-benchmark FILE  write the benchmark without the items that were found
  --report FILE        write an HTML report to this file
  --json
  --quiet
advanced options:
{row_jobs.DETAILS.format(or_longest="")}
  --threads
"""
EXAMPLES = """\
  lookalike decontaminate corpus.jsonl --benchmarks evals/ -o clean.jsonl
  lookalike decontaminate corpus.jsonl --benchmarks evals/ --rule near --report found.html
  lookalike decontaminate corpus.jsonl --benchmarks evals/ --action cut -o clean.jsonl
"""
DETAILS = f"""\
Words are letters and digits, in upper or lower case. The rules (docs/decontaminating.md):
  ngram           any run of --ngram-words words of the item, as for GPT-3; a shorter item whole
  share           at least --min-share of the item's n-grams
  run             one run of at least --min-share of the item's words
  near            a passage with at least --min-share of the item's words, in runs of
                  --ngram-words words or more, with at most --gap other words between two

The file of --hits has one row per document and item:
  id, benchmark, item  the document, the file of the benchmark, and the item in it
  words, share    words of the longest common run, and what the rule compares
  characters_begin, characters_end  from the first common passage to the last
  passage         some of the document's text

{spark_details(ARGUMENTS)}
"""


def add(parser: Parser) -> None:
    """Declare the engine."""
    add_engine(parser)


def run(options: argparse.Namespace) -> None:
    """Look for the items, write the outputs, print the summary."""
    named = [] if options.columns is None else options.columns.split(",")
    columns = [name.strip() for name in named if name.strip()] or None
    inputs = [options.benchmarks] if options.benchmarks.is_file() else []
    if on_spark(options):
        _run_on_spark(options, columns, inputs)
        return
    check_read_once(options.input)
    corpus = common.corpus_of(options.input, options)
    row_jobs.check_outputs(options, corpus, {"--hits": options.hits})
    common.check_output("--clean-benchmark", options.clean_benchmark, [*corpus.files, *inputs])
    for option in ("output", "hits", "report"):
        path = getattr(options, option)
        if path is not None and not isinstance(path, str):
            common.check_not_read("-o" if option == "output" else f"--{option}", path, inputs)
    with progress_bars(options.quiet or options.json, common.megabytes(corpus)) as progress:
        result = decontaminate(
            corpus,
            options.benchmarks,
            **{name: getattr(options, name) for name in _CHOSEN},
            columns=columns,
            max_document=options.max_document,
            progress=progress,
            **common.reading_of(options),
        )
        more = {
            "hits": (options.hits, result.write_hits),
            "clean benchmark": (options.clean_benchmark, result.write_benchmark),
        }
        written = row_jobs.finish(options, result, more, progress)
    row_jobs.tell(options, result, written)


def _run_on_spark(
    options: argparse.Namespace, columns: list[str] | None, inputs: list[Path]
) -> None:
    """Run the job on Spark, write the outputs, print the summary."""
    ContaminationSettings(**{name: getattr(options, name) for name in _CHOSEN})
    common.check_output("--clean-benchmark", options.clean_benchmark, inputs)
    run = SparkRun.start(options, ("output", "hits"))
    from lookalike.spark import contamination

    with contamination.decontaminate(
        run.corpus.frame,
        options.benchmarks,
        **{name: getattr(options, name) for name in _CHOSEN},
        columns=columns,
        text=run.corpus.text,
        id=run.corpus.id,
    ) as found:
        kind, rows = "documents", Output(options.output, lambda: found.documents)
        if options.annotate or options.action == "mark":
            kind = "annotated documents" if options.annotate else kind
            rows = Output(options.output, lambda: found.annotated, contamination.ADDED)
        written = run.write(options, {"hits": Output(options.hits, lambda: found.hits), kind: rows})
        if options.clean_benchmark is not None:
            if not options.dry_run:
                found.write_benchmark(options.clean_benchmark)
            written["clean benchmark"] = str(options.clean_benchmark)
        found.seconds.update(run.seconds)
        found.problems.bad = run.corpus.bad
        row_jobs.tell(options, found, written)
