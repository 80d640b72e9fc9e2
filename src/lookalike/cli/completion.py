"""`lookalike completion`: the script with which a shell completes commands and options."""

from __future__ import annotations

import argparse

from lookalike.cli.parser import Parser
from lookalike.cli.terminal import say

SHELLS = ("bash", "zsh", "fish")

PURPOSE = "print a script that completes commands and options in your shell"
DESCRIPTION = """\
Print the script that makes a shell complete the commands and options of
lookalike. Put it where the shell looks for such scripts, then open a new one."""
DETAILS = """\
examples:
  lookalike completion bash > ~/.local/share/bash-completion/completions/lookalike
  lookalike completion zsh > ~/.zfunc/_lookalike      (a folder that is in $fpath)
  lookalike completion fish > ~/.config/fish/completions/lookalike.fish
"""


def add(parser: Parser) -> None:
    """Declare the shell."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def run(options: argparse.Namespace) -> None:
    """Print the script."""
    import shtab

    from lookalike.cli import full_parser

    say(shtab.complete(full_parser(), shell=options.shell))
