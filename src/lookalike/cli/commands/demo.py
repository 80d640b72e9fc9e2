"""`lookalike demo`: the near-duplicates of the Python installation at hand."""

from __future__ import annotations

import argparse
import shlex
import sysconfig
from pathlib import Path
from typing import cast

import numpy as np

from lookalike.cli.common import check_not_read
from lookalike.cli.terminal import say
from lookalike.collection import open_collection
from lookalike.corpora.base import pa
from lookalike.dedup import dedup
from lookalike.dedup.pairs import Ints
from lookalike.dedup.report.groups import largest_groups
from lookalike.dedup.result import TextResult
from lookalike.errors import FileError
from lookalike.progress import progress_bars
from lookalike.shown import counted, escape_terminal

_PATTERNS = ("*.py", "*.pyi", "*.txt", "*.md", "*.rst", "*.h", "LICEN[SC]E*", "COPYING*", "NOTICE*")
_SHOWN = 5
_MEMBERS = 4

TASK = "tools"
PURPOSE = "find the near-duplicates of this Python installation"
DESCRIPTION = """\
Find near-duplicates among the source files, licenses and documentation of this
Python installation, in under a minute. Write an HTML report, and a collection of
some of the files. No other file is changed."""
ARGUMENTS = """
  folders:[FOLDER...]  folders to read instead of the Python installation
  --report FILE=report.html  report to write
  --collection FILE=demo.db  SQLite file of a collection to write: 2,000 files, largest groups first
"""
EXAMPLES = """\
  lookalike demo
  lookalike demo ~/projects --report projects.html --collection projects.db
"""
_MOST_IN_COLLECTION = 2_000


def run(options: argparse.Namespace) -> None:
    """De-duplicate, print the summary and the largest groups, write the report."""
    folders = list(map(Path, options.folders)) or _installation()
    for folder in folders:
        if not folder.is_dir():
            raise FileError(
                f"{folder} is not a folder; give a folder with source files or documents, or no "
                "argument for those of Python. The demo writes its report and collection to "
                "--report and --collection"
            )
    paths = (path for folder in folders for pattern in _PATTERNS for path in folder.rglob(pattern))
    files = sorted({path for path in paths if path.is_file()})
    if not files:
        raise FileError(f"no source files or documents found in {', '.join(map(str, folders))}")
    check_not_read("--report", options.report, files)
    check_not_read("--collection", options.collection, files)
    say(f"\n{len(files):,} source files, licenses and documents in")
    for folder in folders:
        say(f"  {escape_terminal(folder)}")
    say()
    with progress_bars() as progress:
        found = dedup(files, kind="text", format="files", progress=progress, skip_bad=True)
        result = cast(TextResult, found)
        result.report(options.report, command=options.command_line)
    say(result.summary())
    _show_groups(result)
    say(f"\nGroups, similarities and differences: {escape_terminal(options.report)}")
    groups, alone = result.groups(), np.flatnonzero(result.group_sizes[result.group_of] < 2)
    chosen = np.concatenate([*groups, alone])[:_MOST_IN_COLLECTION]
    count = _fill(options.collection, result, chosen)
    say(f"A collection of {counted(count, 'file')}: {escape_terminal(options.collection)}")
    if not count:
        return
    say("\nWhat to try next:")
    pair = (groups or [chosen])[0][[0, -1]]  # the kept and the least similar file of a group
    one, two = (str(result.id(row)) for row in pair.tolist())
    for command, what in _commands(one, two, str(options.collection)):
        say(f"\n  # {what}\n  {escape_terminal(command)}")
    say()


def _fill(path: Path, result: TextResult, chosen: Ints) -> int:
    """Import these files into a collection, as users do; return how many it has."""
    wanted = np.zeros(len(result.keep), bool)
    wanted[chosen] = True
    begin = 0
    with open_collection(path, purpose="search", durable=False) as docs:
        for batch in result.annotated_batches():
            rows = batch.filter(pa.array(wanted[begin : begin + len(batch)]))
            docs.import_file(pa.table(rows), replace=True, skip_bad=True)
            begin += len(batch)
        return docs.count()


def _commands(one: str, two: str, collection: str) -> list[tuple[str, str]]:
    """Return three commands that work on what the demo has made, each with what it shows."""
    one, two, database = map(shlex.quote, (one, two, collection))
    return [
        (f"lookalike compare {one} {two}", "what differs between two of these files"),
        (f"lookalike collection search {database} {one} --by-id", "files that resemble this one"),
        (f"lookalike serve {database}", "the collection on a web page"),
    ]


def _installation() -> list[Path]:
    """Return the folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    folders = dict.fromkeys(Path(paths[name]).resolve() for name in ("stdlib", "purelib"))
    # One may lie inside the other; its files are to be read once.
    return [one for one in folders if not any(other in one.parents for other in folders)]


def _show_groups(result: TextResult) -> None:
    say("\nThe largest groups:")
    for group in largest_groups(result, _SHOWN):
        say(f"\n  {group.size:,} files, of which is kept:")
        rows = [*group.kept, *group.others][:_MEMBERS]
        for row in rows:
            # Rounded down: what is not quite the same is not called so.
            alike = "" if result.keep[row] else f"  ({int(100 * result.similarity[row])}% the same)"
            say(f"    {_shortened(escape_terminal(result.id(row)))}{alike}")
        if group.size > len(rows):
            say(f"    and {group.size - len(rows):,} more")


def _shortened(path: str, most: int = 80) -> str:
    return path if len(path) <= most else "..." + path[-most:]
