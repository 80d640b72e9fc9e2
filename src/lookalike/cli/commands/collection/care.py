"""Whole collections: `import` and `export`, `stats`, `verify`, `repair`, `snapshot`, `restore`."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lookalike.cli import common
from lookalike.cli.commands.collection.content import DATABASE, action, database_name, opened
from lookalike.cli.parser import Subparsers, command, refuse_given
from lookalike.cli.terminal import is_standard, say, say_json, standard_output, tell, warn
from lookalike.collection import Report, list_collections, open_collection, restore_collection
from lookalike.collection.care.transfer import are_files
from lookalike.collection.stores.schema import WORD_KINDS
from lookalike.errors import ArgumentError, BatchError, CollectionError, NotFoundError
from lookalike.progress import progress_bars, watched
from lookalike.shown import brief, counted, escape_terminal
from lookalike.storage.files import temporary_folder

if TYPE_CHECKING:
    from lookalike.collection import Collection

_PREFIX = "lookalike-rows-"
_OF_TEXTS = ("text", "id", "signature", "vectors", "format")


def declare(actions: Subparsers) -> None:
    """Declare the actions."""
    action(
        actions, "stats", _stats, "print counts and settings of collections", "  --json",
        "docs.db", "docs.db --name pages --json", name=None,
    )  # fmt: skip
    action(
        actions, "verify", _verify, "recompute all slices and checksums; exit 1 if one is wrong",
        "  --json", "docs.db", "postgresql://me@host/db --json",
    )  # fmt: skip
    action(
        actions, "repair", _repair, "rebuild what is derived from documents",
        f"""
  --words {"|".join(WORD_KINDS)}  build a keyword index from the stored texts: of English stems,
                       words as written, or runs of three characters
                       (default: rebuild an existing one)
  --json""",
        "docs.db", "docs.db --words porter",
    )  # fmt: skip
    action(
        actions, "snapshot", _snapshot, "copy the collection to a new SQLite file, while in use",
        "  FILE                 file to write\n  --json", "docs.db backup.db",
    )  # fmt: skip
    arguments = """
  FILE                 file of `lookalike collection snapshot`
  DATABASE             SQLite file, or postgresql://user@host/name
  --name NAME          name of the restored collection (default: that in the snapshot)
  --replace            replace a collection with this name (default: error)
  --dry-run
  --json"""
    examples = """\
  lookalike collection restore backup.db docs.db
  lookalike collection restore backup.db docs.db --replace --dry-run
"""
    purpose = "copy the collection of a snapshot into a database"
    command(actions, "restore", _restore, purpose, arguments, examples=examples, details=DATABASE)
    action(
        actions, "import", _import, "add the rows of files, or the files of a folder",
        f"""
{common.INPUT}
{common.CORPUS}
  --signature COLUMN   column with hexadecimal signatures (default: signature, if it exists)
  --previews           store previews of images, recordings or videos, for the page of serve
  --vectors COLUMN     column with vectors, to search by --vector: lists of numbers, or base64 of
                       float32 (default: vector, if the file was exported)
  --replace            replace documents with the same id (default: error)
  --quiet              no progress bar
  --json
advanced options:
{common.CORPUS_DETAILS}
{common.FILTERS}""",
        "docs.db corpus.jsonl", "docs.db 'crawl/*.parquet' --text content --id url --replace",
        "music.db music/",
    )  # fmt: skip
    action(
        actions, "export", _export, "write all documents to a file",
        """
  output:FILE          file to write: .jsonl, .csv, .parquet ..., or - for JSON Lines
  --where JSON         condition on metadata, as a JSON object
  --quiet              no progress bar
  --json""",
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
        words = {"None": "none", "False": "no", "True": "yes"}
        shown = {key: words.get(repr(value), value) for key, value in stats.items()}
        lines = [f"{key:16}{escape_terminal(value)}" for key, value in shown.items()]
        say("\n" * bool(place) + "\n".join(lines))


def _verify(options: argparse.Namespace) -> None:
    with opened(options) as docs:
        with watched("verify", options.json, docs.count(), "documents"):
            report = docs.verify()
        _print_report(report, options)


def _repair(options: argparse.Namespace) -> None:
    with opened(options) as docs:
        with watched("repair", options.json, docs.count(), "documents"):
            report = docs.repair(words=options.words)
        _print_report(report, options)


def _print_report(report: Report, options: argparse.Namespace) -> None:
    if options.json:
        say_json({"ok": report.ok, **vars(report)})
    else:
        say(
            f"{counted(report.documents, 'document')}, {counted(report.signatures, 'signature')} "
            f"and {counted(report.keys, 'slice')} read: {'no errors' if report.ok else 'DAMAGED'}"
        )
        for problem in report.problems:
            say(f"  {escape_terminal(problem)}")
    if not report.ok:
        raise CollectionError(
            f"{database_name(options)} is damaged: {counted(len(report.problems), 'problem')}"
        )


def _snapshot(options: argparse.Namespace) -> None:
    with opened(options) as docs, watched("snapshot", options.json, docs.count(), "documents"):
        docs.snapshot(options.file)
    tell(options.json, {"file": str(options.file)}, f"wrote {escape_terminal(options.file)}")


def _restore(options: argparse.Namespace) -> None:
    if options.dry_run:
        _tell_restore(options)
        return
    with watched("restore", options.json):
        name = restore_collection(
            options.file, options.database, options.name, replace=options.replace
        )
    tell(options.json, {"collection": name}, f"restored the collection {name!r}")


def _tell_restore(options: argparse.Namespace) -> None:
    """Print what `restore` would do."""
    names = list_collections(options.file)
    if len(names) != 1:
        raise ArgumentError(f"{options.file} has {len(names)} collections; expected a snapshot")
    name = options.name or names[0]
    documents, replaced = _count(options.file, names[0]), _count(options.database, name)
    if replaced is not None and not options.replace:
        raise ArgumentError(
            f"{database_name(options)} has a collection {name!r}; add --replace to replace it, or "
            "choose another --name"
        )
    done = f"would restore the collection {name!r} with {counted(documents or 0, 'document')}"
    if replaced is not None:
        done += f", replacing one with {counted(replaced, 'document')}"
    tell(
        options.json,
        {"collection": name, "documents": documents, "replaces": replaced, "dry_run": True},
        done,
    )


def _count(database: str, name: str) -> int | None:
    """Return the number of documents of a collection; None if it does not exist."""
    try:
        with open_collection(database, name, create=False) as docs:
            return docs.count()
    except NotFoundError:
        return None


def _import(options: argparse.Namespace) -> None:
    with opened(options) as docs, _existing_ids(docs):
        given: dict[str, Any] = {"replace": options.replace, "skip_bad": options.skip_bad}
        given["previews"] = options.previews
        source, total = options.input, 0.0
        if are_files(docs, options.input):
            holds_files = f"does nothing: the collection {docs.name!r} holds files"
            refuse_given(options, _OF_TEXTS, holds_files)
        else:
            source = common.corpus_of(options.input, options)
            total = common.megabytes(source)
            columns = ("text", "id", "signature", "vectors")
            given |= {name: getattr(options, name) for name in columns}
            given |= {"max_document": source.max_document, **vars(common.filters_of(options))}
        with progress_bars(options.quiet or options.json, total) as progress:
            done = docs.import_file(source, **given, progress=progress)
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


@contextmanager
def _existing_ids(docs: Collection) -> Iterator[None]:
    """Raise one message for ids that exist, instead of one for each."""
    before = docs.count()
    try:
        yield
    except BatchError as error:
        if not all(one.exists for one in error.errors):
            raise
        count, first = len(error.errors), brief(error.errors[0].id)
        ids = f"the id {first} exists already" if count == 1 else f"{count:,} ids exist already"
        such = "" if count == 1 else f", such as {first}"
        added = docs.count() - before
        written = (
            f"{counted(added, 'document')} before it stay added" if added else "Nothing was written"
        )
        raise CollectionError(
            f"{ids}{such}; add --replace to replace {'it' if count == 1 else 'them'}. {written}"
        ) from None


def _export(options: argparse.Namespace) -> None:
    with opened(options) as docs:
        total = docs.count() if options.where is None else 0
        with progress_bars(options.quiet or options.json, total, "documents") as progress:
            if is_standard(options.output):
                _export_lines(docs, options, progress)
                return
            count = docs.export(options.output, where=options.where, progress=progress)
    tell(
        options.json,
        {"documents": count, "file": str(options.output)},
        f"wrote {counted(count, 'document')} to {escape_terminal(options.output)}",
    )


def _export_lines(docs: Collection, options: argparse.Namespace, progress: Any) -> None:
    """Write JSON Lines, as soon as all are known to be good."""
    with temporary_folder(_PREFIX) as folder, standard_output() as stream:
        path = folder / "documents.jsonl"
        docs.export(path, where=options.where, progress=progress)
        with open(path, "rb") as made:
            shutil.copyfileobj(made, stream)
