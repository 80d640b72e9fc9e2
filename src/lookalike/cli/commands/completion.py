"""`lookalike completion`: the script with which a shell completes commands and options."""

from __future__ import annotations

import argparse

from lookalike.cli.parser import VALUES
from lookalike.cli.terminal import say

VALUES["SHELL"] = ("bash", "zsh", "fish")

TASK = "tools"
PURPOSE = "print a completion script for your shell"
DESCRIPTION = """\
Print the script with which a shell completes the commands and options of
lookalike. Save it where the shell finds it (zsh: in a folder of $fpath), then
open a new shell."""
ARGUMENTS = "  SHELL  bash, zsh or fish"
EXAMPLES = """\
  lookalike completion bash > ~/.local/share/bash-completion/completions/lookalike
  lookalike completion zsh > ~/.zfunc/_lookalike
  lookalike completion fish > ~/.config/fish/completions/lookalike.fish
"""


def run(options: argparse.Namespace) -> None:
    """Print the script."""
    import shtab

    from lookalike.cli import full_parser

    say(shtab.complete(full_parser(), shell=options.shell))
