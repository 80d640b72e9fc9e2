"""`lookalike demo`: the near-duplicates of the Python installation at hand."""

from __future__ import annotations

import argparse
import sysconfig
from pathlib import Path
from typing import cast

from lookalike.cli.common import check_not_read
from lookalike.cli.parser import Parser
from lookalike.cli.terminal import progress_bars, say
from lookalike.dedup import dedup
from lookalike.dedup.report.groups import largest_groups
from lookalike.dedup.result import TextResult
from lookalike.errors import FileError
from lookalike.shown import escape_terminal

_PATTERNS = ("*.py", "*.pyi", "*.txt", "*.md", "*.rst", "*.h", "LICEN[SC]E*", "COPYING*", "NOTICE*")
_SHOWN = 5
_MEMBERS = 4

PURPOSE = "find the near-duplicates of this Python installation, in under a minute"
DESCRIPTION = """\
De-duplicate the source files, licences and documentation of the Python
installation at hand: the standard library and all packages. Vendored copies
and common licences are real near-duplicates. Nothing is changed; the page
report.html shows what was found."""
ARGUMENTS = "  --report FILE=report.html  the page to write"
DETAILS = """\
examples:
  lookalike demo
  lookalike demo --folder ~/projects --report projects.html
"""
_MORE = (
    ("lookalike overlaps DIR --format files", "passages that files have copied"),
    ("lookalike dedup photos/", "photographs, by what they show"),
    ("lookalike dedup music/", "recordings, by what is heard"),
    ("lookalike dedup rows.parquet --vectors NAME", "embeddings, by their cosine"),
    ("lookalike group DIR --report topics.html", "what documents are about"),
    ("lookalike serve", "a service, with a page to look at"),
)
"""What else could be tried next."""


def add(parser: Parser) -> None:
    """Declare the folders."""
    parser.add_argument(
        "--folder", type=Path, action="append", metavar="DIR", help="a folder to look in instead"
    )


def run(options: argparse.Namespace) -> None:
    """De-duplicate, print the summary and the largest groups, write the report."""
    folders = options.folder or _installation()
    files = _files_in(folders)
    if not files:
        raise FileError(f"there are no source files or documents in {', '.join(map(str, folders))}")
    check_not_read("--report", options.report, files)
    say(f"\n{len(files):,} source files, licences and documents of")
    for folder in folders:
        say(f"  {escape_terminal(folder)}")
    say()
    with progress_bars() as progress:
        result = dedup(files, kind="text", format="files", progress=progress, skip_bad=True)
        result.report(options.report, command=options.command_line)
    say(result.summary())
    _show_groups(cast(TextResult, result))
    say(f"\nClusters, similarities and differences side by side: {escape_terminal(options.report)}")
    say("\nNot only whole texts:")
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
        say(f"\n  {group.size:,} files; the kept one is")
        rows = [*group.kept, *group.others][:_MEMBERS]
        for row in rows:
            # Rounded down: what is not quite the same is not called so.
            alike = "" if result.keep[row] else f"  ({int(100 * result.similarity[row])}% the same)"
            say(f"    {_shortened(escape_terminal(result.id(row)))}{alike}")
        if group.size > len(rows):
            say(f"    and {group.size - len(rows):,} more")


def _shortened(path: str, most: int = 80) -> str:
    return path if len(path) <= most else "..." + path[-most:]
