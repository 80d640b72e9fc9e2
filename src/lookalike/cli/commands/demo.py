"""`lookalike demo`: the near-duplicates of the Python installation at hand."""

from __future__ import annotations

import argparse
import sysconfig
from pathlib import Path
from typing import cast

from lookalike.cli.common import check_not_read
from lookalike.cli.terminal import say
from lookalike.dedup import dedup
from lookalike.dedup.report.groups import largest_groups
from lookalike.dedup.result import TextResult
from lookalike.errors import FileError
from lookalike.progress import progress_bars
from lookalike.shown import escape_terminal

_PATTERNS = ("*.py", "*.pyi", "*.txt", "*.md", "*.rst", "*.h", "LICEN[SC]E*", "COPYING*", "NOTICE*")
_SHOWN = 5
_MEMBERS = 4

TASK = "tools"
PURPOSE = "find the near-duplicates of this Python installation"
DESCRIPTION = """\
Find near-duplicates among the source files, licenses and documentation of this
Python installation, in under a minute, and write an HTML report. No other file
is changed."""
ARGUMENTS = """
  folders:[FOLDER...]  folders to read instead of the Python installation
  --report FILE=report.html  report to write
"""
EXAMPLES = """\
  lookalike demo
  lookalike demo ~/projects --report projects.html
"""
_MORE = (
    ("lookalike overlaps DIR --format files", "passages that files share"),
    ("lookalike dedup photos/", "duplicate images"),
    ("lookalike dedup music/", "duplicate recordings"),
    ("lookalike dedup rows.parquet --vectors NAME", "near embeddings, by cosine"),
    ("lookalike cluster DIR --report topics.html", "topics of documents"),
    ("lookalike serve", "an HTTP service with a web page"),
)
"""Commands to try next."""


def run(options: argparse.Namespace) -> None:
    """De-duplicate, print the summary and the largest groups, write the report."""
    folders = list(map(Path, options.folders)) or _installation()
    files = _files_in(folders)
    if not files:
        raise FileError(f"no source files or documents found in {', '.join(map(str, folders))}")
    check_not_read("--report", options.report, files)
    say(f"\n{len(files):,} source files, licenses and documents in")
    for folder in folders:
        say(f"  {escape_terminal(folder)}")
    say()
    with progress_bars() as progress:
        result = dedup(files, kind="text", format="files", progress=progress, skip_bad=True)
        result.report(options.report, command=options.command_line)
    say(result.summary())
    _show_groups(cast(TextResult, result))
    say(f"\nGroups, similarities and differences: {escape_terminal(options.report)}")
    say("\nWhat to try next:")
    for command, what in _MORE:
        say(f"  {command:43} {what}")
    say()


def _installation() -> list[Path]:
    """Return the folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    folders = dict.fromkeys(Path(paths[name]).resolve() for name in ("stdlib", "purelib"))
    # One may lie inside the other; its files are to be read once.
    return [one for one in folders if not any(other in one.parents for other in folders)]


def _files_in(folders: list[Path]) -> list[Path]:
    found = (path for folder in folders for pattern in _PATTERNS for path in folder.rglob(pattern))
    return sorted({path for path in found if path.is_file()})


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
