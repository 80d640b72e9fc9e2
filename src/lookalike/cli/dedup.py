"""`lookalike dedup`: a corpus in; survivors, clusters and a report out."""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from lookalike.checks import byte_count, whole_number
from lookalike.cli.dedup_media import (
    add_dropped,
    add_kind,
    add_media_options,
    media_kind,
    refuse_media_options,
    run_on_media,
)
from lookalike.cli.dedup_spark import engine_of, run_on_spark
from lookalike.cli.dedup_vectors import run_on_vectors
from lookalike.cli.options import (
    add_corpus_options,
    add_filters,
    add_settings,
    add_threads,
    check_folder,
    check_not_read,
    check_settings,
    corpus_of,
    corpus_of_input,
    filters_of,
    output_name,
    publish,
    settings_of,
    uploads_of,
)
from lookalike.cli.parser import add_switch
from lookalike.cli.terminal import (
    check_read_once,
    is_standard,
    progress_bars,
    say,
    say_json,
    standard_output,
    warn,
    warn_left_out,
)
from lookalike.corpora import Corpus, check_table_target, check_target, format_of, open_corpus
from lookalike.corpora.opening import with_old_pages
from lookalike.corpora.writing import check_outside_folder
from lookalike.dedup import DEVICES, DedupResult, dedup
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.shown import shown
from lookalike.signatures.methods import Method
from lookalike.storage import check_replaceable, same_file

_SIGNATURES = ".lookalike"

_NGRAM = Method.of("minhash").ngram

PURPOSE = "find the near-duplicates of a corpus and write what is left"
DESCRIPTION = (
    "Find documents that are equal or nearly so, keep one of each group, and say\nwhat was found."
)
DETAILS = f"""\
input:
  JSON Lines, JSON, CSV, TSV, Parquet, text (a document a line), by the name of the file;
  .gz and .zst too. Web pages (.html, crawls as .warc.gz, a column with --html): their main text is
  compared; title, language and links are columns of what is written (docs/pages.md).
  Files with other names: a document a file. Encodings other than UTF-8 are detected, or named by
  --encoding. Binary files are left out; a warning names the first, --json all.
  A folder: the rows of its .jsonl, .parquet, .csv or .tsv files, by name, or a document a file,
  whichever has more bytes; what else is there is named. Several files, and patterns in quotes,
  are read one after the other. - is standard input, packed or not: its beginning tells the format,
  or --format. It is kept in --work, or where temporary files are, because it is read twice.

output (-o):
  in the format that the name tells, or else in that of the input. Lines of JSON Lines and text
  stay as they are, byte for byte; an encoding other than UTF-8 is kept, too. For a folder, a new
  folder with copies of the files that stay, or with what stays of each file of rows. - is standard
  output, in the format of the input; the summary goes to standard error then.
  An address such as s3://bucket/unique.jsonl: the file is written locally first, and uploaded when
  it is complete. The same goes for the other output files.
  A file that is read is not written over, unless you say --in-place: then what stays takes its
  place when all is written, or nothing changes. Another hard link to it keeps what there was.

images and recordings:
  a folder of which more than half of the files are images is compared by what they show: two are
  near-duplicates if at most --radius of the --bits of their hashes differ (default 56 of 256).
  The one of most pixels stays, then that of most bytes. Nothing is deleted: -o lists the files
  that stay (.txt, .jsonl, .csv, ...) or copies them into a new folder, --dropped lists the others,
  --report shows them side by side. What cannot be read is left out and named (docs/images.md).

near-duplicates:
  two documents whose exact similarity is at least the threshold: Jaccard similarity of word
  {_NGRAM}-grams (minhash), or the cosine of word n-gram counts (simhash, topsig).
  Signatures only propose pairs. docs/deduplicating.md has the figures. With --exact they do not:
  every pair at or above the threshold is found, also where thousands are alike, and --pairs has
  each copy of a text with every other.
  With --measure containment: a document of which that much is in a larger one, that of more
  different features, which stays. --keep then decides between equally large ones.

what is guaranteed:
  every document that is dropped was compared with one that stays (or is in OLD), and is equal to it
  or a near-duplicate of it; of those that stay, no two were found to be near-duplicates. The
  summary shows the lowest similarity. Not so with --cluster components, where a chain of documents
  that resemble each other leaves one, whatever the others resemble; nor with --keep none, where
  all go that have a near-duplicate; with --no-verify, and against
  OLD signatures, similarities are estimates, and what is dropped by them is counted apart.

exit status:
  0 done, 1 an error (nothing is half-written), 2 wrong usage, 130 interrupted, 143 told to end

examples:
  lookalike dedup corpus.jsonl -o unique.jsonl
  lookalike dedup corpus.jsonl --in-place
  lookalike dedup 'crawl/*.parquet' -o unique.parquet --text content --report report.html
  zcat crawl.jsonl.gz | lookalike dedup - -o - | gzip > unique.jsonl.gz
  lookalike dedup docs/ --threshold 0.5 --exact --pairs pairs.csv
  lookalike dedup docs/ --measure containment --threshold 0.9 -o whole
  lookalike dedup letters.csv --ngram 1 --stop-words greetings.txt --stem english
  lookalike dedup corpus.jsonl --annotate -o annotated.jsonl --keep longest
  lookalike dedup today.jsonl --against yesterday.jsonl -o new.jsonl
  lookalike dedup embeddings.parquet --vectors embedding --threshold 0.95 -o unique.parquet
  lookalike dedup today.jsonl --against seen.lookalike --save-signatures seen.lookalike -o new.jsonl
  lookalike dedup photos/ --report photos.html --dropped copies.csv
  lookalike dedup s3://crawl/pages/ -o s3://crawl-unique/pages.parquet
  lookalike dedup --engine spark=spark://HOST:7077 's3a://crawl/*.parquet' -o s3a://crawl-unique
"""

_HELD_BYTES, _HELD_SHARE = 128 << 20, 64
"""Of rows that will be written, held since they were read; and the share of a memory limit."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("input", nargs="+", metavar="INPUT", help="files, folders, patterns or -")
    _add_input_options(parser)
    group = parser.add_argument_group("what counts as a near-duplicate")
    add_settings(group)
    add_media_options(group)
    _add_output_options(parser)
    _add_work_options(parser)


def _add_input_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is read")
    add_corpus_options(group, or_longest=", or a 40th of --memory-limit")
    add_filters(group)
    group.add_argument(
        "--against",
        metavar="OLD",
        help="a corpus, or a file of --save-signatures; what is already there is dropped",
    )
    add_kind(group)
    group.add_argument(
        "--vectors",
        metavar="COLUMN",
        help="compare rows by the cosine of the lists of numbers in this column of Parquet, 0.95 "
        "or more unless --threshold says otherwise; texts are not looked at",
    )


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "-o",
        "--output",
        type=output_name,
        metavar="FILE",
        help="kept documents: a file, an s3:// address, or - for standard output",
    )
    add_switch(group, "--in-place", "let what stays take the place of the input file")
    add_switch(
        group,
        "--annotate",
        "write all documents to the output, with cluster, duplicate_of and similarity",
    )
    group.add_argument("--pairs", type=output_name, metavar="FILE", help="the verified pairs")
    group.add_argument(
        "--max-pairs",
        type=int,
        metavar="N",
        help=f"refuse to write more pairs to --pairs (default: {DEFAULT_LIMIT:,})",
    )
    add_switch(
        group, "--collapse", "with --exact: pair equal texts with their first only in --pairs"
    )
    group.add_argument(
        "--report", type=output_name, metavar="FILE", help="an HTML page with pictures"
    )
    group.add_argument(
        "--save-signatures",
        type=output_name,
        metavar="FILE",
        help="signatures of what stays (and of OLD), for --against next time: NAME.lookalike",
    )
    add_dropped(group)
    add_switch(group, "--json", "print the summary as JSON")
    add_switch(group, "--quiet", "no progress bars, no summary")


def _add_work_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it works")
    group.add_argument(
        "--work",
        type=Path,
        metavar="DIR",
        help="keep texts, signatures and pairs here: an interrupted job goes on, and another "
        "threshold needs no new signatures",
    )
    group.add_argument(
        "--memory-limit",
        type=byte_count,
        metavar="SIZE",
        help="memory for the job, such as 8GB: documents go to disk, and as many images or "
        "recordings are decoded at once as fit",
    )
    add_threads(group)
    group.add_argument(
        "--device",
        choices=DEVICES,
        default="cpu",
        help="gpu: a CUDA card looks for the pairs of simhash and topsig (default cpu)",
    )
    group.add_argument(
        "--engine",
        type=engine_of,
        default=("local", None),
        metavar="NAME",
        help="local, or spark[=MASTER]: on a cluster of Apache Spark, such as "
        "spark=spark://HOST:7077, with addresses such as s3a://...; -o is a new folder",
    )


def run(options: argparse.Namespace) -> None:
    """Run the job, write what was asked for, print the summary."""
    with uploads_of(options):
        _run(options)


def _run(options: argparse.Namespace) -> None:
    kind = media_kind(options)
    if kind is not None:
        run_on_media(options, kind)
        return
    refuse_media_options(options)
    if options.vectors is not None:
        run_on_vectors(options)
        return
    check_settings(options)
    if options.engine[0] == "spark":
        run_on_spark(options)
        return
    check_read_once([*options.input, options.against])
    old = _old(options)
    corpus = corpus_of(options.input, options)
    if options.in_place and options.output is None:
        options.output = _only_file(corpus)
    _check_outputs(options, corpus, old)
    if options.output is not None:
        corpus.room = min(_HELD_BYTES, (options.memory_limit or sys.maxsize) // _HELD_SHARE)
    settings = settings_of(options)
    with progress_bars(options.quiet or options.json) as progress:
        result = dedup(
            corpus,
            text=options.text,
            id=options.id,
            format=options.format,
            against=old,
            work=options.work,
            memory_limit=options.memory_limit,
            max_document=options.max_document,
            skip_bad=options.skip_bad,
            threads=options.threads,
            device=options.device,
            progress=progress,
            **vars(filters_of(options)),
            **settings,
        )
        written, seconds = _write(options, result, progress)
    if written:
        result = replace(result, seconds={**result.seconds, "write": seconds})
    # Rows are alone on standard output.
    file = sys.stderr if is_standard(options.output) else sys.stdout
    if options.json:
        say_json({**result.to_dict(), "written": written}, file=file)
    elif not options.quiet:
        say(result.summary(), file=file)
        if written:
            say(file=file)
        for kind, path in sorted(written.items(), key=lambda one: "documents" not in one[0]):
            say(f"  {kind}: {shown(path)}", file=file)
    if options.json or options.quiet:
        for warning in result.warnings:
            warn(warning)
    if not result.counts.documents and not options.quiet:
        warn(f"{shown(result.source.name)} has no documents")
    left_out = result.counts.bad_rows + result.counts.binary_files + result.counts.left_out
    warn_left_out(left_out, result.documents.examples)


def _old(options: argparse.Namespace) -> Path | Corpus | None:
    """Return what --against names: a file of signatures, or a corpus."""
    if is_standard(options.against):
        corpus = corpus_of_input([options.against], options.format, options.work, options.encoding)
        return with_old_pages(corpus, options.html, options.page_limits)
    if options.against is None or Path(options.against).suffix == _SIGNATURES:
        return None if options.against is None else Path(options.against)
    # The format that was given is that of the input; an old file may well tell its own.
    unnamed = format_of(Path(options.against)) is None
    format = options.format if unnamed else None
    corpus = open_corpus(options.against, format, encoding=options.encoding)
    return with_old_pages(corpus, options.html, options.page_limits)


def _only_file(corpus: Corpus) -> Path:
    """Return the file whose place is to be taken."""
    if len(corpus.files) != 1 or corpus.format == "files" or corpus.spool is not None:
        raise ArgumentError(
            f"--in-place takes the place of one file, and {corpus.name} is not one; say where to "
            "write with -o FILE"
        )
    return corpus.files[0]


def _check_outputs(options: argparse.Namespace, corpus: Corpus, old: Path | Corpus | None) -> None:
    """Refuse what can be seen to fail, before the work is done."""
    if options.annotate and options.output is None:
        raise ArgumentError(Said("--annotate"), " needs a file to write to: -o FILE")
    if options.max_pairs is not None:
        whole_number("max_pairs", options.max_pairs, at_least=0)
    if options.pairs is None:
        for name in ("max_pairs", "collapse"):
            if getattr(options, name) not in (None, False):
                raise ArgumentError(
                    Said(name), " does nothing without a file of pairs; add --pairs FILE"
                )
    for option in ("pairs", "report", "save_signatures"):
        if is_standard(getattr(options, option)):
            raise ArgumentError(
                Said(option),
                " is -; expected a file: only the documents that stay go to standard output",
            )
    if options.in_place and same_file(options.output, corpus.files) is None:
        raise ArgumentError(
            f"--in-place goes with an output that is read; -o is {options.output}, which is not: "
            "leave one of them out"
        )
    outputs = (options.output, options.pairs, options.report, options.save_signatures)
    paths = [path for path in outputs if path is not None and not is_standard(path)]
    for path in paths:
        check_folder(path)
        if path is not options.output:
            check_outside_folder(corpus.root, path)
    if any(_are_same(*two) for two in combinations(paths, 2)):
        raise ArgumentError("two outputs have the same name; give each its own")
    _check_inputs_stay(options, corpus, old)
    if options.output is not None:
        target = io.BytesIO() if is_standard(options.output) else options.output
        check_target(corpus, target, annotated=options.annotate, in_place=options.in_place)
    if options.pairs is not None:
        check_table_target(options.pairs)
    for path in (options.report, options.save_signatures):
        if path is not None:
            check_replaceable(path)
    if options.save_signatures is not None and options.save_signatures.suffix != _SIGNATURES:
        raise ArgumentError(
            Said("--save-signatures"),
            f" is {options.save_signatures}; expected a name that ends in .lookalike, by which "
            "--against knows it",
        )


def _are_same(one: Path, two: Path) -> bool:
    """Return whether two names are of one file, be it there or not."""
    return one.resolve() == two.resolve() or same_file(one, [two]) is not None


def _check_inputs_stay(
    options: argparse.Namespace, corpus: Corpus, old: Path | Corpus | None
) -> None:
    """Refuse to write over what is read; only new signatures may take the place of the old, and the
    documents that stay that of their input, if that was asked for.
    """
    inputs = corpus.files
    signatures = [old] if isinstance(old, Path) else []
    others = old.files if isinstance(old, Corpus) else []
    check_not_read("-o", options.output, [*signatures, *others])
    check_not_read("--pairs", options.pairs, [*inputs, *signatures, *others])
    check_not_read("--report", options.report, [*inputs, *signatures, *others])
    check_not_read("--save-signatures", options.save_signatures, [*inputs, *others])


def _write(
    options: argparse.Namespace, result: DedupResult, progress: Any
) -> tuple[dict[str, str], float]:
    """Write the files, timing it as one step; return what is where, and the seconds."""
    documents, write = (
        ("annotated documents", result.write_annotated)
        if options.annotate
        else ("documents that stay", result.write)
    )
    jobs: list[tuple[str, Path | None, Callable[[Path], object]]] = [
        ("pairs", options.pairs, partial(_write_pairs, options, result)),
        ("report", options.report, partial(result.report, command=options.command_line)),
        # After these: in place it is the end of the input, and nobody could try again.
        (documents, options.output, partial(_write_documents, write, options.in_place)),
        # Last: documents whose output failed must not be known when the job is tried again.
        ("signatures", options.save_signatures, result.save_signatures),
    ]
    wanted = [(kind, path, job) for kind, path, job in jobs if path is not None]
    written: dict[str, str] = {}
    start = time.perf_counter()
    for kind, path, job in wanted:
        if progress is not None:
            progress("write", len(written) / len(wanted))
        job(path)
        written[kind] = publish(options, path)
    if written and progress is not None:
        progress("write", 1.0)
    return written, time.perf_counter() - start


def _write_pairs(options: argparse.Namespace, result: DedupResult, path: Path) -> None:
    limit = DEFAULT_LIMIT if options.max_pairs is None else options.max_pairs
    result.write_pairs(path, limit=limit, collapse=options.collapse)


def _write_documents(write: Callable[..., int], in_place: bool, path: Path) -> None:
    if is_standard(path):
        with standard_output() as stream:
            write(stream)
    else:
        write(path, in_place=in_place)
