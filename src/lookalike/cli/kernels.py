"""`lookalike kernels`: which distance kernels there are, and which one runs."""

from __future__ import annotations

import argparse

from lookalike.cli.output import say
from lookalike.signatures import kernels

PURPOSE = "list the distance kernels and say which one is in use"
DESCRIPTION = (
    "List the distance kernels in this build, widest first.\n"
    "LOOKALIKE_KERNEL=NAME in the environment chooses another one."
)
DETAILS = ""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options, of which there are none."""


def run(options: argparse.Namespace) -> None:
    """Print one line per kernel."""
    for kernel in kernels():
        state = "in use" if kernel.active else "" if kernel.supported else "not on this processor"
        say(f"{kernel.name:8}{state}".rstrip())
