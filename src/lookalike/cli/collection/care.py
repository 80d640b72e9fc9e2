"""Care for a collection: `stats`, `verify`, `repair`, `snapshot` and `restore`."""

from __future__ import annotations

import argparse
from pathlib import Path

from lookalike.cli.collection.action import DATABASE, action, database_name, opened
from lookalike.cli.parser import Subparsers, add_json, add_switch, command
from lookalike.cli.terminal import say, say_json, tell
from lookalike.collection import Report, list_collections, open_collection, restore_collection
from lookalike.errors import CollectionError
from lookalike.shown import shown


def declare(actions: Subparsers) -> None:
    """Declare the actions."""
    stats = action(
        actions, "stats", _stats, "say what there is", "docs.db", "docs.db --name pages --json",
        name=None,
    )  # fmt: skip
    add_switch(stats, "--json", "one JSON object a line")
    verify = action(
        actions, "verify", _verify, "recompute every slice and checksum; exit 1 if one is wrong",
        "docs.db", "postgresql://me@host/db --json",
    )  # fmt: skip
    add_json(verify, "print what was found as JSON")
    repair = action(actions, "repair", _repair, "rebuild what is derived from documents", "docs.db")
    add_json(repair, "print what was found as JSON")
    snapshot = action(
        actions, "snapshot", _snapshot, "write a copy to a new SQLite file, while it is in use",
        "docs.db backup.db",
    )  # fmt: skip
    snapshot.add_argument("file", type=Path, metavar="FILE")
    add_json(snapshot)
    restore = command(
        actions,
        "restore",
        _restore,
        "put the collection of a snapshot into a database",
        "Put the collection of a snapshot into a database.",
        DATABASE + "  lookalike collection restore backup.db docs.db\n"
        "  lookalike collection restore backup.db docs.db --replace",
    )
    restore.add_argument("file", type=Path, metavar="FILE", help="what `snapshot` wrote")
    restore.add_argument("database", metavar="DATABASE")
    restore.add_argument("--name", help="what to call it there (default: as in the snapshot)")
    add_switch(restore, "--replace", "replace one of that name")
    add_json(restore)


def _stats(options: argparse.Namespace) -> None:
    names = [options.name] if options.name else list_collections(options.database)
    for place, name in enumerate(names):
        with open_collection(options.database, name, create=False) as docs:
            stats = docs.stats()
        if options.json:
            say_json(stats)
            continue
        say("\n" * bool(place) + "\n".join(f"{key:16}{shown(stats[key])}" for key in stats))


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
            say(f"  {shown(problem)}")
    if not report.ok:
        raise CollectionError(
            f"{database_name(options)} is damaged: {len(report.problems)} problems"
        )


def _snapshot(options: argparse.Namespace) -> None:
    with opened(options) as docs:
        docs.snapshot(options.file)
    tell(options.json, {"file": str(options.file)}, f"wrote {shown(options.file)}")


def _restore(options: argparse.Namespace) -> None:
    name = restore_collection(options.file, options.database, options.name, replace=options.replace)
    tell(options.json, {"collection": name}, f"restored the collection {name!r}")
