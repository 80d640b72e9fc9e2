"""`lookalike overlaps`: passages that documents of a corpus have in common."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

from lookalike.cli import common
from lookalike.cli.terminal import is_standard, say, say_json, warn
from lookalike.common_passages.finding import COMMON, GAP, MIN_WORDS, overlaps, piece_words
from lookalike.common_passages.results import Overlap, Overlaps
from lookalike.corpora import check_table_target, write_table
from lookalike.corpora.base import pa
from lookalike.display import arrow_batch
from lookalike.errors import ArgumentError, Said
from lookalike.progress import progress_bars
from lookalike.shown import counted, escape_terminal

_AT_A_TIME = 1 << 14

TASK = "remove duplicates"
PURPOSE = "find passages that documents of a corpus share"
DESCRIPTION = "Find every passage that two documents share: quotations and reused text."
ARGUMENTS = f"""
{common.INPUT}
  -o --output FILE     file to write: .jsonl, .json, .csv, .tsv or .parquet
  min_words:--passage-words N={MIN_WORDS}  minimum number of equal words in a passage
  --gap N={GAP}  maximum number of other words between two equal runs, in either document
  --within             also find passages that a document has twice
  --pairs FILE         also write pairs of documents to this file, one row each: words in
                       common, and the share of each document that they are
  --with-text          also write the passages, as they are in the left document
  --json               print passages as JSON Lines; with -o the summary as JSON
  --quiet
input:
{common.CORPUS}
advanced options:
{common.CORPUS_DETAILS}
  --common N={COMMON}  skip windows of words that occur in more places than this
  --threads
"""
EXAMPLES = """\
  lookalike overlaps corpus.jsonl -o overlaps.jsonl
  lookalike overlaps rfcs/ --passage-words 30 --with-text -o reused.csv
  lookalike overlaps rfcs/ --pairs pairs.csv -o passages.csv
"""
DETAILS = f"""\
A passage is one run of equal words, or several with at most --gap other words between them. A run
has at least a fifth of --passage-words: {piece_words(MIN_WORDS, GAP)} for {MIN_WORDS}
(docs/passages.md). The output has one row per passage:
  left, right     ids of the documents, or rows
  words           number of equal words
  left_words_begin, left_words_end, ...  words and characters, from 0, end exclusive
  exact           whether the passage is one run
The file of --pairs has one row per pair of documents, those that share most first:
  left, right     ids of the documents, or rows
  words           words in common passages, in the document that has fewer of them
  left_share, right_share  share of the words of each document
  passages        number of common passages
"""


def run(options: argparse.Namespace) -> None:
    """Find the passages, and write or print them."""
    if is_standard(options.output):
        raise ArgumentError(
            Said("-o"), " is -; leave it out to have passages printed, with --json as JSON Lines"
        )
    targets = {"-o": options.output, "--pairs": options.pairs}
    for target in targets.values():
        if target is not None:
            check_table_target(target)
            common.check_folder(target)
    corpus = common.corpus_of(options.input, options, whole_files=True)
    for name, target in targets.items():
        common.check_not_read(name, target, corpus.files)
    if options.pairs is not None and options.pairs == options.output:
        raise ArgumentError(
            Said("--pairs"), f" is {options.pairs}, as -o is; give the files different names"
        )
    start = time.perf_counter()
    with progress_bars(options.quiet or options.json, common.megabytes(corpus)) as progress:
        found = overlaps(
            corpus,
            min_words=options.min_words,
            gap=options.gap,
            common=options.common,
            within=options.within,
            progress=progress,
            **common.reading_of(options),
        )
    seconds = time.perf_counter() - start
    if options.output is not None:
        write_table(_batches(found, options.with_text), options.output)
    else:
        _print(found, options.with_text, options.json)
    if options.pairs is not None:
        pairs = found.by_pair()
        begins = range(0, max(1, len(pairs)), _AT_A_TIME)
        batches = (arrow_batch(pairs._columns(begin, begin + _AT_A_TIME)) for begin in begins)
        write_table(batches, options.pairs)
    if options.json and options.output is not None:
        files = {"file": str(options.output)}
        if options.pairs is not None:
            files["pairs_file"] = str(options.pairs)
        say_json({**_counts(found), "seconds": round(seconds, 3), **files})
    elif not options.quiet:
        _say_summary(options, found, seconds)
    common.warn_read(found)
    if found.documents == 1 and corpus.format == "files" and not options.within:
        warn(
            f"{escape_terminal(corpus.name)} is one document, and overlaps are between two; to "
            "compare its lines, use --format text, or find its own repetitions with --within"
        )


def _row(overlap: Overlap, text: bool) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in overlap.to_dict(text=text).items():
        if isinstance(value, tuple):
            row |= {f"{name}_begin": value[0], f"{name}_end": value[1]}
        else:
            row[name] = value
    return row


def _batches(found: Overlaps, text: bool) -> Iterator[Any]:
    kinds: dict[str, Any] = {"left": pa.string(), "right": pa.string(), "words": pa.int64()}
    for side in ("left_words", "right_words", "left_characters", "right_characters"):
        kinds |= {f"{side}_begin": pa.int64(), f"{side}_end": pa.int64()}
    kinds |= {"exact": pa.bool_(), **({"text": pa.string()} if text else {})}
    schema = pa.schema(list(kinds.items()))
    for begin in range(0, max(1, len(found)), _AT_A_TIME):
        rows = [_row(one, text) for one in found[begin : begin + _AT_A_TIME]]
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _print(found: Overlaps, text: bool, as_json: bool) -> None:
    for number, overlap in enumerate(found):
        row = _row(overlap, text)
        if as_json:
            say_json(row)
            continue
        if number == 0:
            say("\t".join(row))
        say("\t".join(escape_terminal(value) for value in row.values()))


def _counts(found: Overlaps) -> dict[str, Any]:
    names = ("documents", "words", "common_windows", "common_places", "bad_rows", "binary_files")
    return {
        "overlaps": len(found),
        "pairs": found.pairs,
        **{name: getattr(found, name) for name in names},
        "left_out": found.left_out,
        "files_left_out": found.files_left_out,
    }


def _say_summary(options: argparse.Namespace, found: Overlaps, seconds: float) -> None:
    pairs = f"{counted(found.pairs, 'pair')} of documents"
    common.say_summary(options, f"{counted(len(found), 'passage')} of {pairs}")
    documents, words = counted(found.documents, "document"), counted(found.words, "word")
    lines = [f"  {documents}, {words}, in {seconds:.2f} s"]
    if found.common_windows:
        lines.append(
            f"  {counted(found.common_windows, 'window')} of words in too many places "
            f"({found.common_places:,}): they propose nothing; --common N takes more"
        )
    if found.binary_files:
        lines.append(f"  {counted(found.binary_files, 'binary file')}: left out")
    say("\n".join(lines), file=sys.stderr if options.output is None else sys.stdout)
