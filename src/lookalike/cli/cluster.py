"""`lookalike cluster`: a corpus in; clusters of its documents, and what they are about, out."""

from __future__ import annotations

import argparse
from pathlib import Path

from lookalike.cli.options import (
    add_corpus_options,
    add_filters,
    add_settings,
    add_threads,
    check_folder,
    check_not_read,
    corpus_of,
    filters_of,
    settings_of,
)
from lookalike.cli.parser import add_number, add_switch
from lookalike.cli.terminal import progress_bars, say, say_json, warn, warn_left_out
from lookalike.corpora import check_table_target
from lookalike.corpora.writing import check_outside_folder
from lookalike.errors import ArgumentError
from lookalike.features.choice import CHARS_NGRAM, typed_lengths
from lookalike.features.weights import WEIGHT_KINDS
from lookalike.shown import escape_terminal
from lookalike.storage import check_replaceable
from lookalike.topics import cluster_documents
from lookalike.topics.settings import BITS, MOST_CLUSTERS, NGRAM, TOPIC_METHODS

_SIGNING = ("features", "stop_words", "stem", "seed")
_WORDS, _CENTRAL = 10, 5

PURPOSE = "put the documents of a corpus into clusters, and say what each is about"
DESCRIPTION = (
    "Put documents that share words into clusters, and say what each is about: its\nwords, its "
    "most central documents."
)
DETAILS = """\
input:
  what `lookalike dedup` reads: JSON Lines, JSON, CSV, TSV, Parquet, text (a document a line), web
  pages, folders; .gz and .zst too.

output (-o):
  a row for each document, in the format that the name tells: id, cluster (the largest is 0), words
  (the first three of the cluster), distance (bits that differ from its centre), other_cluster and
  other_distance (the next nearest centre). Documents without words are in no cluster: these are
  empty.

clusters:
  documents are signed by their words, with weights learnt from the corpus, and each is given to the
  nearest of K centres, whose bits are those of most of their documents. The same corpus and --seed
  give the same clusters, for any number of threads. Equal documents are in the same.

words:
  those that tell a cluster best from the others: by the log-likelihood ratio (Dunning) of the
  documents that have them, within and elsewhere.

exit status:
  0 done, 1 an error (nothing is half-written), 2 wrong usage, 130 interrupted

examples:
  lookalike cluster corpus.jsonl
  lookalike cluster corpus.jsonl -k 50 -o topics.csv --report topics.html
  lookalike cluster crawl.warc.gz -k 200 --language en --stem english -o topics.parquet
  lookalike cluster letters/ -k 20 --stop-words english --json
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("input", nargs="+", metavar="CORPUS", help="files, folders, patterns or -")
    parser.add_argument(
        "-k",
        type=int,
        metavar="K",
        help="how many clusters (default: the root of half the number of documents, at most "
        f"{MOST_CLUSTERS})",
    )
    group = parser.add_argument_group("what is read")
    add_corpus_options(group)
    add_filters(group)
    group = parser.add_argument_group("how it is signed")
    group.add_argument(
        "--method",
        choices=TOPIC_METHODS,
        default=TOPIC_METHODS[0],
        help=f"signatures (default {TOPIC_METHODS[0]})",
    )
    add_number(group, "--bits", "of each signature", default=BITS)
    group.add_argument(
        "--ngram",
        type=typed_lengths,
        metavar="N",
        help="words or characters that make a feature, or several such lengths: 1,2 (default: "
        f"{NGRAM}; chars {CHARS_NGRAM})",
    )
    group.add_argument(
        "--weights",
        choices=WEIGHT_KINDS,
        default="tfidf",
        help="of features; tfidf and log-likelihood are learnt from the corpus (default tfidf)",
    )
    add_settings(group, only=_SIGNING)
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=".csv, .tsv, .jsonl, .json or .parquet"
    )
    group.add_argument("--report", type=Path, metavar="FILE", help="an HTML page with pictures")
    add_number(group, "--words", "of each cluster that are shown", default=_WORDS)
    add_number(
        group, "--central", "documents nearest to each centre that are shown", default=_CENTRAL
    )
    add_switch(group, "--json", "print clusters as JSON")
    add_switch(group, "--quiet", "no progress bars, no summary")
    add_threads(parser.add_argument_group("how it works"))


def run(options: argparse.Namespace) -> None:
    """Put documents into clusters, write what was asked for, print the summary."""
    corpus = corpus_of(options.input, options)
    outputs = [path for path in (options.output, options.report) if path is not None]
    if options.output is not None:
        check_table_target(options.output)
    for path in outputs:
        check_folder(path)
        check_outside_folder(corpus.root, path)
        check_replaceable(path)
    check_not_read("-o", options.output, corpus.files)
    check_not_read("--report", options.report, corpus.files)
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise ArgumentError("two outputs have the same name; give each its own")
    with progress_bars(options.quiet or options.json) as progress:
        result = cluster_documents(
            corpus,
            options.k,
            text=options.text,
            id=options.id,
            method=options.method,
            bits=options.bits,
            ngram=options.ngram,
            weights=options.weights,
            words=options.words,
            central=options.central,
            max_document=options.max_document,
            skip_bad=options.skip_bad,
            threads=options.threads,
            progress=progress,
            **vars(filters_of(options)),
            **settings_of(options, only=_SIGNING),
        )
        if options.output is not None:
            result.write(options.output)
        if options.report is not None:
            result.report(options.report, command=options.command_line)
    if options.json:
        say_json(result.to_dict())
    elif not options.quiet:
        say(result.summary())
        for kind, path in (("documents", options.output), ("report", options.report)):
            if path is not None:
                say(f"\n  {kind}: {escape_terminal(path)}")
    documents = result.documents
    for notice in documents.notices:
        warn(notice, kind="")
    left_out = documents.bad + documents.binary + sum(documents.left_out.values())
    warn_left_out(left_out, documents.examples)
