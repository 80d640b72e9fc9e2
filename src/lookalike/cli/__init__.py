"""The command line: `lookalike COMMAND`. Each command is a file here with `add` and `run`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lookalike import __version__
from lookalike.cli import (
    collection,
    compare,
    dedup,
    demo,
    evaluate,
    index,
    kernels,
    pairs,
    plan,
    search,
    sign,
)
from lookalike.errors import LookalikeError

__all__ = ["main"]

COMMANDS = (dedup, compare, sign, index, search, pairs, collection, plan, demo, evaluate, kernels)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 1 for an error, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="lookalike",
        description="Find near-duplicates and nearest neighbours by binary signatures.",
    )
    parser.add_argument("--version", action="version", version=f"lookalike {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except LookalikeError as error:
        print(f"lookalike: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lookalike: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        return 0
    return 0
