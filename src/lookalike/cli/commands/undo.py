"""`lookalike undo`: undo what `lookalike dedup --apply` did to files."""

from __future__ import annotations

import argparse
from pathlib import Path

from lookalike.cli.terminal import say, say_json, warn
from lookalike.errors import FileError
from lookalike.shown import counted, escape_terminal
from lookalike.storage.changes import undo

TASK = "remove duplicates"
PURPOSE = "undo what dedup --apply did"
DESCRIPTION = """\
Move files back, and replace links by files, as the journal of `lookalike dedup
--apply` says. It works after a crash, too, and can be repeated."""
ARGUMENTS = """
  journal:JOURNAL      file that `lookalike dedup --apply` has written
  --json
  --quiet
"""
EXAMPLES = """\
  lookalike dedup photos/ --apply move copies/ --journal moved.journal
  lookalike undo moved.journal
"""
DETAILS = """\
A file is not restored if another file has its name now, or if it is a link and the kept file has
changed. Such files are named, and the exit status is 1. Files that were moved to another file
system and back have their mode and time of change, but not other attributes.
"""


def run(options: argparse.Namespace) -> None:
    """Undo the changes of a journal, and print what was done."""
    found = undo(Path(options.journal))
    if options.json:
        say_json(found.to_dict())
    elif not options.quiet:
        say(f"{counted(len(found.done), 'file')} restored")
    for one in found.left_alone:
        warn(escape_terminal(f"{one.path}: {one.reason}", 500), kind="left alone: ")
    if found.left_alone:
        raise FileError(
            f"{counted(len(found.left_alone), 'file')} could not be restored; the reasons are above"
        )
