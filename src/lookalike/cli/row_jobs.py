"""What commands share that read a corpus and write its rows again, changed or marked."""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lookalike.checks import is_address
from lookalike.cli import common
from lookalike.cli.terminal import is_standard, say, say_json, standard_output, warn, warn_left_out
from lookalike.corpora import Corpus, check_table_target, check_target
from lookalike.corpora.writing import check_outside_folder, is_written_as_folder
from lookalike.errors import ArgumentError, Said
from lookalike.shown import escape_terminal
from lookalike.storage.files import check_replaceable, same_file

OUTPUT = """\
  -o --output TARGET   {what}: a file, a folder, an s3:// address, or -
  --in-place           replace the input file
  --dry-run            print the summary, but write no file
  --annotate           write all documents to -o unchanged, with columns {columns}"""
DETAILS = """\
  --encoding NAME      encoding of text files, such as cp1252 or utf-16 (default: detected)
  --skip-bad           skip and count rows that cannot be read (default: stop with an error)
  --max-document SIZE  longest document to read (default: 256MiB{or_longest})"""

Write = Callable[[Any], object]


def check_outputs(
    options: argparse.Namespace, corpus: Corpus, tables: Mapping[str, Path | None]
) -> None:
    """Refuse what can be seen to fail, before the work is done; `tables` are by option."""
    if options.in_place and options.output is None:
        options.output = _only_file(corpus)
    if options.in_place and same_file(options.output, corpus.files) is None:
        raise ArgumentError(
            f"--in-place replaces the input, but -o is {options.output}; use one of them"
        )
    if options.annotate and options.output is None:
        raise ArgumentError(Said("--annotate"), " needs -o, the file to write")
    output = options.output
    files = {**tables, "--report": options.report}
    for option, path in files.items():
        if is_standard(path):
            raise ArgumentError(Said(option), " is -; only documents go to standard output")
        common.check_output(option, path, corpus.files, corpus.root)
        if path is not None and option != "--report":
            check_table_target(path)
    named = [path for path in (output, *files.values()) if path is not None]
    if len({str(path) for path in named}) < len(named):
        raise ArgumentError("two outputs have the same name; give each its own")
    if output is None or is_address(output):
        return
    if is_standard(output):
        check_target(corpus, io.BytesIO(), annotated=options.annotate)
        return
    if isinstance(output, str):  # it ends with a slash
        options.output = path = Path(output)
        if not is_written_as_folder(corpus, path):
            raise ArgumentError(
                f"{output!r} ends with a slash, so it names a folder; expected the name of a file"
            )
        output = path
    common.check_folder(output)
    check_target(corpus, output, annotated=options.annotate, in_place=options.in_place)
    if same_file(output, corpus.files) is None:
        check_outside_folder(corpus.root, output)
        if not is_written_as_folder(corpus, output):
            check_replaceable(output)


def _only_file(corpus: Corpus) -> Path:
    """Return the file to replace."""
    if len(corpus.files) != 1 or corpus.format == "files" or corpus.spool is not None:
        raise ArgumentError(
            f"--in-place replaces one file, but {corpus.name} is not a single file; write "
            "elsewhere with -o FILE"
        )
    return corpus.files[0]


def finish(
    options: argparse.Namespace, result: Any, more: Mapping[str, tuple[Any, Write]], progress: Any
) -> dict[str, str]:
    """Write the outputs, the documents last; return which file has what."""
    name, write = "documents", result.write
    if options.annotate:
        name, write = "annotated documents", result.write_annotated

    def write_rows(path: Any) -> None:
        if is_standard(path):
            with standard_output() as stream:
                write(stream)
        else:
            write(path, **({"in_place": True} if options.in_place else {}))

    report = options.report, lambda path: result.report(path, command=options.command_line)
    jobs = {**more, "report": report, name: (options.output, write_rows)}
    written: dict[str, str] = {}
    start = time.perf_counter()
    for what, (path, job) in jobs.items():
        if path is None:
            continue
        if not options.dry_run:
            job(path)
        written[what] = str(path)
    if written and not options.dry_run:
        result.seconds["write"] = time.perf_counter() - start
        if progress is not None:
            progress("write", 1.0)
    return written


def tell(options: argparse.Namespace, result: Any, written: Mapping[str, str]) -> None:
    """Print a summary, and which file has what; or all as JSON."""
    # Rows are alone on standard output.
    file = sys.stderr if is_standard(options.output) else sys.stdout
    if options.json or options.quiet:
        for warning in result.warnings:
            warn(warning)
    if options.json:
        more = {"dry_run": True} if options.dry_run else {}
        say_json({**result.to_dict(), "written": dict(written), **more}, file=file)
    elif not options.quiet:
        say(result.summary(), file=file)
        if options.dry_run:
            say("\nDry run: nothing was written.", file=file)
        elif options.output is None:
            say("\nNo documents were written; -o FILE writes them.", file=file)
        elif written:
            say(file=file)
        for what, path in written.items():
            say(f"  {what}: {escape_terminal(path)}", file=file)
    counts = result.read_counts()
    warn_left_out(counts[0], counts[1])
