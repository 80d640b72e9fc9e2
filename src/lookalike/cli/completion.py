"""`lookalike completion`: the script with which a shell completes commands and options."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lookalike.cli.output import say

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

SHELLS = ("bash", "zsh", "fish")

_DETAILS = """\
examples:
  lookalike completion bash > ~/.local/share/bash-completion/completions/lookalike
  lookalike completion zsh > ~/.zfunc/_lookalike      (a folder that is in $fpath)
  lookalike completion fish > ~/.config/fish/completions/lookalike.fish
"""


def add(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in your shell",
        description="Print the script that makes a shell complete the commands and options of\n"
        "lookalike. Put it where the shell looks for such scripts, then open a new one.",
        epilog=_DETAILS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that is to know them")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the script."""
    import shtab

    from lookalike.cli import full_parser

    say(shtab.complete(full_parser(), shell=options.shell))
