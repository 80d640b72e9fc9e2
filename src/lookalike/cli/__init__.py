"""The command line: `lookalike COMMAND`. Each command is a file here.

It says what it is for (`PURPOSE`, `DESCRIPTION`, `DETAILS`), which options it has (`add`) and what
it does (`run`). `collection`, which has actions, is a folder of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from lookalike import __version__
from lookalike.cli.command import Subparsers, command
from lookalike.cli.output import Parser, take_every_character, warn
from lookalike.cli.signals import orderly_end
from lookalike.cli.streams import forget_standard_output
from lookalike.errors import LookalikeError
from lookalike.storage.unfinished import remove_unfinished

__all__ = ["COMMANDS", "main"]

COMMANDS = (
    "dedup", "compare", "sign", "index", "search", "pairs", "collection", "plan", "demo",
    "evaluate", "kernels", "completion",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 1 for an error, 2 for wrong usage."""
    take_every_character()
    with orderly_end() as interruption:
        try:
            _run(sys.argv[1:] if arguments is None else list(arguments))
        except BrokenPipeError:  # the reader of our output has seen enough
            forget_standard_output()
            sys.stderr.close()
        except (Exception, KeyboardInterrupt) as error:
            if interruption.came or isinstance(error, KeyboardInterrupt):
                remove_unfinished()  # Ctrl-C may have come again, and stopped that
                warn("interrupted", kind="")
                return 130
            if isinstance(error, LookalikeError):
                warn(error, kind="")
            elif isinstance(error, MemoryError):
                warn("out of memory; give it less to hold, or more memory", kind="")
            else:
                raise
            return 1
    return 0


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


def _run(given: list[str]) -> None:
    parser, commands = _parser()
    # Only the command that is asked for is imported; the others may need much.
    for name in given[:1] if given[:1] and given[0] in COMMANDS else COMMANDS:
        _add(name, commands)
    options, unknown = parser.parse_known_args(given)
    if unknown:  # said by the command's own parser, if there is one: it shows its options
        named = [commands.choices[name] for name in given if name in commands.choices]
        [*named, parser][0].error(f"unrecognized arguments: {' '.join(unknown)}")
    options.run(options)
