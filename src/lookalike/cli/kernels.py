"""`lookalike kernels`: which distance kernels there are, and which one runs."""

from __future__ import annotations

import argparse

from lookalike.cli.terminal import say, say_json
from lookalike.signatures import kernels

PURPOSE = "list the distance kernels and say which one is in use"
DESCRIPTION = """\
List the distance kernels in this build, widest first.
LOOKALIKE_KERNEL=NAME in the environment chooses another one."""
ARGUMENTS = "  --json  print an object for each kernel, as JSON Lines"
DETAILS = ""


def run(options: argparse.Namespace) -> None:
    """Print one line per kernel."""
    for kernel in kernels():
        if options.json:
            say_json(kernel._asdict())
            continue
        state = "in use" if kernel.active else "" if kernel.supported else "not on this processor"
        say(f"{kernel.name:8}{state}".rstrip())
