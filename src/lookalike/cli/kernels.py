"""`lookalike kernels`: which distance kernels there are, and which one runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lookalike.cli.output import say
from lookalike.signatures import kernels

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "kernels",
        help="list the distance kernels and say which one is in use",
        description="List the distance kernels in this build, widest first. "
        "LOOKALIKE_KERNEL=NAME in the environment chooses another one.",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print one line per kernel."""
    for kernel in kernels():
        state = "in use" if kernel.active else "" if kernel.supported else "not on this processor"
        say(f"{kernel.name:8}{state}".rstrip())
