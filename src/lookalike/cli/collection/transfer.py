"""Whole corpora into a collection and out of it: `import` and `export`."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike.cli.collection.action import action, json_object, opened
from lookalike.cli.collection.media import are_files, import_files
from lookalike.cli.options import add_corpus_options, add_filters, corpus_of, filters_of
from lookalike.cli.parser import Subparsers, add_json, add_switch
from lookalike.cli.terminal import is_standard, progress_bars, say, standard_output, tell, warn
from lookalike.shown import counted, shown
from lookalike.storage.files import temporary_folder

if TYPE_CHECKING:
    from lookalike.collection import Collection

_PREFIX = "lookalike-rows-"


def declare(actions: Subparsers) -> None:
    """Declare the actions."""
    importer = action(
        actions, "import", _import, "add the rows of files: JSON Lines, JSON, CSV, Parquet, text",
        "docs.db corpus.jsonl", "docs.db 'crawl/*.parquet' --text content --id url --replace",
        "docs.db notes/", "music.db music/",
    )  # fmt: skip
    importer.add_argument("input", nargs="+", metavar="INPUT", help="files, folders, patterns or -")
    add_corpus_options(importer)
    add_filters(importer)
    importer.add_argument(
        "--signature",
        metavar="COLUMN",
        help="column with hexadecimal signatures (default: signature, if there is one)",
    )
    add_switch(importer, "--replace", "replace documents of equal id")
    add_switch(importer, "--quiet", "no progress bar")
    add_json(importer)
    exporter = action(
        actions, "export", _export, "write all documents to a file",
        "docs.db all.jsonl", "docs.db english.parquet --where '{\"lang\": \"en\"}'",
    )  # fmt: skip
    exporter.add_argument(
        "output", type=Path, metavar="FILE", help=".jsonl, .csv, .parquet ..., or - for JSON Lines"
    )
    exporter.add_argument("--where", type=json_object, metavar="JSON", help="condition")
    add_switch(exporter, "--quiet", "no progress bar")
    add_json(exporter)


def _import(options: argparse.Namespace) -> None:
    from lookalike.collection.care.transfer import import_documents

    with opened(options) as docs, progress_bars(options.quiet or options.json) as progress:
        if are_files(docs, options.input):
            done = import_files(docs, options, progress)
        else:
            corpus = corpus_of(options.input, options)
            done = import_documents(
                docs,
                corpus,
                text=options.text,
                id=options.id,
                signature=options.signature,
                replace=options.replace,
                skip_bad=options.skip_bad,
                max_document=corpus.max_document,
                progress=progress,
                **vars(filters_of(options)),
            )
    left_out = done.bad + sum(done.left_out.values())
    tell(
        options.json,
        {
            "added": done.added,
            "replaced": done.updated,
            "left_out": left_out,
            "files_left_out": done.files_left_out,
        },
        f"added {done.added}, replaced {done.updated}, left out {left_out}",
    )
    for notice in done.notices:
        warn(notice, kind="")
    for example in done.examples:
        say(f"  {shown(example)}", file=sys.stderr)


def _export(options: argparse.Namespace) -> None:
    from lookalike.collection.care.transfer import export_documents

    with opened(options) as docs, progress_bars(options.quiet or options.json) as progress:
        if is_standard(options.output):
            _export_lines(docs, options, progress)
            return
        count = export_documents(docs, options.output, where=options.where, progress=progress)
    tell(
        options.json,
        {"documents": count, "file": str(options.output)},
        f"wrote {counted(count, 'document')} to {shown(options.output)}",
    )


def _export_lines(docs: Collection, options: argparse.Namespace, progress: Any) -> None:
    """Write JSON Lines, as soon as all are known to be good."""
    from lookalike.collection.care.transfer import export_documents

    with temporary_folder(_PREFIX) as folder, standard_output() as stream:
        path = folder / "documents.jsonl"
        export_documents(docs, path, where=options.where, progress=progress)
        with open(path, "rb") as made:
            shutil.copyfileobj(made, stream)
