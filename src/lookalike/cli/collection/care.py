"""Whole collections: `import` and `export`, `stats`, `verify`, `repair`, `snapshot`, `restore`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike.cli import common
from lookalike.cli.collection.content import (
    DATABASE,
    JSON,
    JSON_LINES,
    action,
    database_name,
    opened,
)
from lookalike.cli.parser import Subparsers, command, refuse_given
from lookalike.cli.terminal import (
    is_standard,
    progress_bars,
    say,
    say_json,
    standard_output,
    tell,
    warn,
)
from lookalike.collection import Report, list_collections, open_collection, restore_collection
from lookalike.collection.care.transfer import Imported, export_documents, import_documents
from lookalike.corpora.opening import expand_paths
from lookalike.errors import CollectionError, FileError
from lookalike.media import Medium, find_files, medium_of_files, medium_of_signer
from lookalike.shown import counted, escape_terminal
from lookalike.storage.files import temporary_folder

if TYPE_CHECKING:
    from lookalike.collection import Collection

_PREFIX = "lookalike-rows-"
_TOGETHER = 200
_NAMED = 5
_NO_TEXT = "its name is no UTF-8, and cannot be kept; give it another"
_OF_TEXTS = ("text", "id", "signature", "format")


def declare(actions: Subparsers) -> None:
    """Declare the actions."""
    action(
        actions, "stats", _stats, "say what there is", JSON_LINES,
        "docs.db", "docs.db --name pages --json", name=None,
    )  # fmt: skip
    found = "  --json            print what was found as JSON"
    action(
        actions, "verify", _verify, "recompute every slice and checksum; exit 1 if one is wrong",
        found, "docs.db", "postgresql://me@host/db --json",
    )  # fmt: skip
    action(actions, "repair", _repair, "rebuild what is derived from documents", found, "docs.db")
    action(
        actions, "snapshot", _snapshot, "write a copy to a new SQLite file, while it is in use",
        f"  FILE\n{JSON}", "docs.db backup.db",
    )  # fmt: skip
    purpose = "put the collection of a snapshot into a database"
    examples = """\
  lookalike collection restore backup.db docs.db
  lookalike collection restore backup.db docs.db --replace
"""
    arguments = f"""
  FILE              what `snapshot` wrote
  DATABASE
  --name NAME       name of the collection there (default: as in the snapshot)
  --replace         replace one of that name
{JSON}"""
    description = f"{purpose.capitalize()}."
    command(actions, "restore", _restore, purpose, description, DATABASE + examples, arguments)
    action(
        actions, "import", _import, "add the rows of files: JSON Lines, JSON, CSV, Parquet, text",
        f"""
{common.INPUT.replace("CORPUS", "INPUT")}
{common.CORPUS}
{common.FILTERS}
  --signature COLUMN  column with hexadecimal signatures (default: signature, if there is one)
  --replace         replace documents of equal id
  --quiet           no progress bar
{JSON}""",
        "docs.db corpus.jsonl", "docs.db 'crawl/*.parquet' --text content --id url --replace",
        "docs.db notes/", "music.db music/",
    )  # fmt: skip
    action(
        actions, "export", _export, "write all documents to a file",
        f"""
  output:FILE       .jsonl, .csv, .parquet ..., or - for JSON Lines
  --where JSON      condition
  --quiet           no progress bar
{JSON}""",
        "docs.db all.jsonl", "docs.db english.parquet --where '{\"lang\": \"en\"}'",
    )  # fmt: skip


def _stats(options: argparse.Namespace) -> None:
    names = [options.name] if options.name else list_collections(options.database)
    for place, name in enumerate(names):
        with open_collection(options.database, name, create=False) as docs:
            stats = docs.stats()
        if options.json:
            say_json(stats)
            continue
        lines = [f"{key:16}{escape_terminal(value)}" for key, value in stats.items()]
        say("\n" * bool(place) + "\n".join(lines))


def _verify(options: argparse.Namespace) -> None:
    with opened(options) as docs:
        _print_report(docs.verify(), options)


def _repair(options: argparse.Namespace) -> None:
    with opened(options) as docs:
        _print_report(docs.repair(), options)


def _print_report(report: Report, options: argparse.Namespace) -> None:
    if options.json:
        say_json({"ok": report.ok, **vars(report)})
    else:
        say(
            f"{report.documents} documents, {report.signatures} signatures and {report.keys} "
            f"slices read: {'everything is as it should be' if report.ok else 'DAMAGED'}"
        )
        for problem in report.problems:
            say(f"  {escape_terminal(problem)}")
    if not report.ok:
        raise CollectionError(
            f"{database_name(options)} is damaged: {len(report.problems)} problems"
        )


def _snapshot(options: argparse.Namespace) -> None:
    with opened(options) as docs:
        docs.snapshot(options.file)
    tell(options.json, {"file": str(options.file)}, f"wrote {escape_terminal(options.file)}")


def _restore(options: argparse.Namespace) -> None:
    name = restore_collection(options.file, options.database, options.name, replace=options.replace)
    tell(options.json, {"collection": name}, f"restored the collection {name!r}")


def _import(options: argparse.Namespace) -> None:
    with opened(options) as docs, progress_bars(options.quiet or options.json) as progress:
        medium = medium_of_signer(docs.signer)
        if medium is not None and _are_files(medium, options.input):
            done = _import_files(docs, medium, options, progress)
        else:
            corpus = common.corpus_of(options.input, options)
            given = ("text", "id", "signature", "replace", "skip_bad")
            done = import_documents(
                docs,
                corpus,
                **{name: getattr(options, name) for name in given},
                max_document=corpus.max_document,
                progress=progress,
                **vars(common.filters_of(options)),
            )
    left_out = done.bad + sum(done.left_out.values())
    told = {"added": done.added, "replaced": done.updated, "left_out": left_out}
    tell(
        options.json,
        {**told, "files_left_out": done.files_left_out},
        f"added {done.added}, replaced {done.updated}, left out {left_out}",
    )
    for notice in done.notices:
        warn(notice, kind="")
    for example in done.examples:
        say(f"  {escape_terminal(example)}", file=sys.stderr)


def _export(options: argparse.Namespace) -> None:
    with opened(options) as docs, progress_bars(options.quiet or options.json) as progress:
        if is_standard(options.output):
            _export_lines(docs, options, progress)
            return
        count = export_documents(docs, options.output, where=options.where, progress=progress)
    tell(
        options.json,
        {"documents": count, "file": str(options.output)},
        f"wrote {counted(count, 'document')} to {escape_terminal(options.output)}",
    )


def _export_lines(docs: Collection, options: argparse.Namespace, progress: Any) -> None:
    """Write JSON Lines, as soon as all are known to be good."""
    with temporary_folder(_PREFIX) as folder, standard_output() as stream:
        path = folder / "documents.jsonl"
        export_documents(docs, path, where=options.where, progress=progress)
        with open(path, "rb") as made:
            shutil.copyfileobj(made, stream)


# Folders of images, recordings or files of another medium


def _are_files(medium: type[Medium[Any]], given: Sequence[str]) -> bool:
    """Return whether folders or files of a medium are given, and no table with their paths."""
    paths = [Path(one) for one in given]
    return any(path.is_dir() for path in paths) or medium_of_files(paths) == medium.name


def _import_files(
    docs: Collection,
    medium: type[Medium[Any]],
    options: argparse.Namespace,
    progress: Callable[[str, float], None] | None,
) -> Imported:
    """Add files of folders, each known by its path there, some at a time in one transaction."""
    of_files = f"the collection {docs.name!r} is one of files; leave it out"
    refuse_given(options, _OF_TEXTS, f"is for rows of texts, and {of_files}")
    paths = expand_paths([Path(one) for one in options.input])
    found = find_files(paths, medium)
    good = [file for file in found.files if _is_text(file)]
    bad = [f"{one.path}: {one.reason}" for one in found.problems]
    bad += [f"{_name(file)}: {_NO_TEXT}" for file in found.files if not _is_text(file)]
    if not found.files:
        raise FileError(f"there is nothing to add in {', '.join(map(str, options.input))}")
    root = paths[0] if len(paths) == 1 and paths[0].is_dir() else None
    write = docs.upsert if options.replace else docs.add
    done = Imported(bad=len(bad), examples=bad[:_NAMED])
    files = iter(good)
    count = 0
    while some := list(islice(files, _TOGETHER)):
        written = write(
            [_name(file if root is None else file.relative_to(root)) for file in some],
            [str(file) for file in some],
            on_error="skip" if options.skip_bad else "raise",
        )
        done.added += written.added
        done.updated += written.updated
        done.bad += len(written.errors)
        done.examples = (done.examples + [str(error) for error in written.errors])[:_NAMED]
        count += len(some)
        if progress:
            progress("importing", count / len(good))
    return done


def _is_text(path: Path) -> bool:
    """Return whether a path can be kept, which is done as a text."""
    return _name(path) == str(path)


def _name(path: Path) -> str:
    """Return what a file is called in the collection: text, whatever bytes its name has."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
