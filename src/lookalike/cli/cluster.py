"""`lookalike cluster`: a corpus in; clusters of its documents, and what they are about, out."""

from __future__ import annotations

import argparse

from lookalike.cli import common
from lookalike.cli.parser import Parser
from lookalike.cli.terminal import progress_bars, say, say_json, warn, warn_left_out
from lookalike.corpora import check_table_target
from lookalike.corpora.writing import check_outside_folder
from lookalike.errors import ArgumentError
from lookalike.features.choice import CHARS_NGRAM
from lookalike.features.weights import WEIGHT_KINDS
from lookalike.shown import escape_terminal
from lookalike.storage.files import check_replaceable
from lookalike.topics import cluster_documents
from lookalike.topics.settings import BITS, MOST_CLUSTERS, NGRAM, TOPIC_METHODS

_CHOSEN = ("method", "bits", "ngram", "weights", "words", "central", "max_document")
_SIGNING = ("features", "stop_words", "stem", "seed")

PURPOSE = "put the documents of a corpus into clusters, and say what each is about"
DESCRIPTION = """\
Put documents that share words into clusters, and say what each is about: its
words, its most central documents."""
ARGUMENTS = f"""
{common.INPUT}
  -k K                 number of clusters (default: the root of half the number of documents, at
                       most {MOST_CLUSTERS})
what is read:
{common.CORPUS}
{common.FILTERS}
how it is signed:
  --method {"|".join(TOPIC_METHODS)}={TOPIC_METHODS[0]}  signatures
  --bits N={BITS}  bits of a signature
  --ngram LENGTHS      words or characters that make a feature, or several such lengths: 1,2
                       (default: {NGRAM}; chars {CHARS_NGRAM})
  --weights {"|".join(WEIGHT_KINDS)}=tfidf  weights of features; tfidf and log-likelihood are learnt
                       from the corpus
what is written:
  -o --output FILE     .csv, .tsv, .jsonl, .json or .parquet
  --report FILE        HTML report
  --words N=10         words of each cluster to show
  --central N=5        most central documents of each cluster to show
  --json               print clusters as JSON
  --quiet              no progress bars, no summary
{common.THREADS}
"""
DETAILS = """\
input:
  what `lookalike dedup` reads: JSON Lines, JSON, CSV, TSV, Parquet, text (a document a line), web
  pages, folders; .gz and .zst too.

output (-o):
  a row for each document, in the format of the file extension: id, cluster (the largest is 0),
  words (the first three of the cluster), distance (bits that differ from its center), other_cluster
  and other_distance (the next nearest center). These are empty for documents without words.

clusters:
  documents are signed by their words, with weights learnt from the corpus, and each is given to the
  nearest of K centers. The same corpus and --seed give the same clusters, on any machine.

words:
  those that tell a cluster best from the others, by the log-likelihood ratio (Dunning) of the
  documents that have them, within and elsewhere.

examples:
  lookalike cluster corpus.jsonl
  lookalike cluster corpus.jsonl -k 50 -o topics.csv --report topics.html
  lookalike cluster crawl.warc.gz -k 200 --language en --stem english -o topics.parquet
  lookalike cluster letters/ -k 20 --stop-words english --json
"""


def add(parser: Parser) -> None:
    """Declare the settings that `dedup` has, too."""
    common.add_settings(parser.group("how it is signed"), only=_SIGNING)


def run(options: argparse.Namespace) -> None:
    """Put documents into clusters, write what was asked for, print the summary."""
    corpus = common.corpus_of(options.input, options)
    outputs = [path for path in (options.output, options.report) if path is not None]
    if options.output is not None:
        check_table_target(options.output)
    for path in outputs:
        common.check_folder(path)
        check_outside_folder(corpus.root, path)
        check_replaceable(path)
    common.check_not_read("-o", options.output, corpus.files)
    common.check_not_read("--report", options.report, corpus.files)
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise ArgumentError("two outputs have the same name; give each its own")
    with progress_bars(options.quiet or options.json) as progress:
        result = cluster_documents(
            corpus,
            options.k,
            **{name: getattr(options, name) for name in _CHOSEN},
            progress=progress,
            **common.reading_of(options),
            **vars(common.filters_of(options)),
            **common.settings_of(options, only=_SIGNING),
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
