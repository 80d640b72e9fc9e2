"""`lookalike cluster`: a corpus in; clusters of its documents, and what they are about, out."""

from __future__ import annotations

import argparse

from lookalike.cli import common
from lookalike.cli.parser import ADVANCED, Parser
from lookalike.cli.terminal import say, say_json, warn, warn_left_out
from lookalike.corpora import check_table_target
from lookalike.errors import ArgumentError
from lookalike.features.choice import CHARS_NGRAM
from lookalike.progress import progress_bars
from lookalike.shown import escape_terminal
from lookalike.topics import cluster_documents
from lookalike.topics.centers import MOST_CLUSTERS
from lookalike.topics.settings import NGRAM

_CHOSEN = ("title", "ngram", "words", "central", "max_document")
_SETTINGS = ("features", "stop_words", "stem", "common", "seed")

TASK = "tools"
PURPOSE = "group the documents of a corpus by topic and name each topic"
DESCRIPTION = """\
Group documents by topic, and show the words and the most central documents of
each topic."""
ARGUMENTS = f"""
{common.INPUT}
  -k K                 number of clusters (default: square root of half the number of documents, at
                       most {MOST_CLUSTERS}, then split or merged by topic)
input:
{common.CORPUS}
  --title COLUMN       column with the titles to show (default: detected, or the first heading)
output:
  -o --output FILE     file to write: .csv, .tsv, .jsonl, .json or .parquet
  --report FILE        write an HTML report to this file
  words:--top-words N=10  number of words to show of each cluster
  central:--top-documents N=5  number of central documents to show of each cluster
  --json
  --quiet
advanced options:
{common.CORPUS_DETAILS}
{common.FILTERS}
  --ngram LENGTHS      words or characters per feature, or several lengths such as 1,2
                       (default: {NGRAM}; chars {CHARS_NGRAM})
  --threads
"""
EXAMPLES = """\
  lookalike cluster corpus.jsonl
  lookalike cluster corpus.jsonl -k 50 -o topics.csv --report topics.html
  lookalike cluster letters/ -k 20 --stop-words english --json
"""
DETAILS = """\
The output has one row per document (docs/topics.md):
  id, cluster     id of the document, and the number of its cluster; 0 is the largest
  words           first three words of the cluster
  similarity      cosine of the document and the center of its cluster
  other_cluster, other_similarity  the second nearest center
"""


def add(parser: Parser) -> None:
    """Declare the settings that `dedup` has, too."""
    common.add_settings(parser, ADVANCED, only=_SETTINGS)


def run(options: argparse.Namespace) -> None:
    """Put documents into clusters, write the outputs, print the summary."""
    corpus = common.corpus_of(options.input, options)
    outputs = [path for path in (options.output, options.report) if path is not None]
    if options.output is not None:
        check_table_target(options.output)
    common.check_output("-o", options.output, corpus.files, corpus.root)
    common.check_output("--report", options.report, corpus.files, corpus.root)
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise ArgumentError("two outputs have the same name; give each its own")
    with progress_bars(options.quiet or options.json, common.megabytes(corpus)) as progress:
        result = cluster_documents(
            corpus,
            options.k,
            **{name: getattr(options, name) for name in _CHOSEN},
            progress=progress,
            **common.reading_of(options),
            **vars(common.filters_of(options)),
            **common.settings_of(options, only=_SETTINGS),
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
