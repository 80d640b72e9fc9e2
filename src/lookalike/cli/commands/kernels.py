"""`lookalike kernels`: which distance kernels there are, and which one runs."""

from __future__ import annotations

import argparse

from lookalike.cli.terminal import say, say_json
from lookalike.signatures import kernels

TASK = "tools"
PURPOSE = "list the distance kernels and the one in use"
DESCRIPTION = """\
List the Hamming distance kernels in this build, widest first. The environment
variable LOOKALIKE_KERNEL=NAME selects another one."""
ARGUMENTS = "  --json"
EXAMPLES = """\
  lookalike kernels
  LOOKALIKE_KERNEL=scalar lookalike kernels
"""


def run(options: argparse.Namespace) -> None:
    """Print one line per kernel."""
    for kernel in kernels():
        if options.json:
            say_json(kernel._asdict())
            continue
        state = "in use" if kernel.active else "" if kernel.supported else "not on this processor"
        say(f"{kernel.name:8}{state}".rstrip())
