"""The command line: `lookalike COMMAND`. Each command is a file here.

It says what it is for (`PURPOSE`, `DESCRIPTION`, `DETAILS`), which options it has (`add`) and what
it does (`run`). `collection`, which has actions, is a folder of them.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module

from lookalike import __version__
from lookalike.cli.parser import WRONG_USAGE, Parser, Subparsers, command, wrong_usage
from lookalike.cli.signals import orderly_end
from lookalike.cli.terminal import (
    flush_output,
    forget,
    forget_if_broken,
    forgiving_errors,
    output_is_gone,
    take_every_character,
    warn,
)
from lookalike.errors import ArgumentError, LookalikeError, LookalikeWarning, Said
from lookalike.storage.files import remove_unfinished

__all__ = ["COMMANDS", "command_line", "main"]

COMMANDS = (
    "dedup", "cluster", "compare", "passages", "overlaps", "audio", "sign", "index", "search",
    "match", "pairs", "collection", "serve", "plan", "demo", "evaluate", "kernels", "bench",
    "completion",
)  # fmt: skip


def command_line() -> int:
    """Run the command that was typed, in a process that ends with it."""
    try:
        return main()
    finally:
        forget_if_broken(sys.stdout)
        gc.freeze()  # or the interpreter looks for garbage in all modules before it ends


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 1 for an error, 2 for wrong usage."""
    take_every_character()
    given = sys.argv[1:] if arguments is None else list(arguments)
    with forgiving_errors(), orderly_end() as interruption, warnings.catch_warnings():
        chosen = _Chosen()
        warnings.showwarning = chosen.show_warning
        warnings.simplefilter("always", LookalikeWarning)
        try:
            try:
                _run(given, chosen)
            finally:
                flush_output()
        except (Exception, KeyboardInterrupt) as error:
            interruption.wait_if_ending()
            if interruption.came or isinstance(error, KeyboardInterrupt):
                remove_unfinished()  # a library may have caught the exception before we did
                warn("interrupted", kind="")
                return 130
            if isinstance(error, BrokenPipeError) and output_is_gone():
                forget(sys.stdout)  # its reader has seen enough
                return 0
            if isinstance(error, LookalikeError):
                message = error.as_typed(chosen.options)
                if isinstance(error, ArgumentError) and chosen.has_option(error.args[0]):
                    wrong_usage(chosen.name, message)
                    return WRONG_USAGE
                warn(message, kind="")
            elif isinstance(error, MemoryError):
                warn("out of memory; give it less to hold, or more memory", kind="")
            else:
                raise
            return 1
    return 0


@dataclass
class _Chosen:
    """The command that runs, and how its options are called."""

    name: str = "lookalike"
    options: dict[str, str] = field(default_factory=dict)

    def has_option(self, part: object) -> bool:
        """Return whether a message that begins so is about an option: about what was typed."""
        return (
            isinstance(part, Said)
            and part.typed is None
            and (part.in_python in self.options or part.in_python in self.options.values())
        )

    def show_warning(self, message: Warning | str, *place: object, **more: object) -> None:
        """Print a warning as commands speak, without the place in a program that it is about."""
        typed = isinstance(message, LookalikeWarning)
        warn(message.as_typed(self.options) if typed else message)  # type: ignore[union-attr]


def full_parser() -> Parser:
    """Return the parser with all its commands, which imports what each of them needs."""
    parser, commands = _parser()
    for name in COMMANDS:
        _add(name, commands)
    return parser


def _add(name: str, commands: Subparsers) -> None:
    module = import_module(f"lookalike.cli.{name}")
    run = getattr(module, "run", None)  # the actions of a collection bring their own
    module.add(command(commands, name, run, module.PURPOSE, module.DESCRIPTION, module.DETAILS))


def _parser() -> tuple[Parser, Subparsers]:
    parser = Parser(
        prog="lookalike",
        description="Find near-duplicates and nearest neighbours by binary signatures.",
    )
    parser.add_argument("--version", action="version", version=f"lookalike {__version__}")
    return parser, parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


def _run(given: list[str], chosen: _Chosen) -> None:
    parser, commands = _parser()
    # Only the command that is asked for is imported; the others may need much.
    for name in given[:1] if given[:1] and given[0] in COMMANDS else COMMANDS:
        _add(name, commands)
    if not given:  # somebody's first try
        parser.print_help(sys.stderr)
        parser.exit(WRONG_USAGE)
    command = parser.parser_of(given)
    chosen.name, chosen.options = command.prog, command.options()
    options, unknown = parser.parse_known_args(given)
    if not command.take(options, unknown):
        command.unknown(unknown)
    options.command_line = ["lookalike", *given]
    options.run(options)
