"""The command line: `lookalike COMMAND`. Each module of `commands` is a command.

It says what it is for (`TASK`, `PURPOSE`, and where needed `DESCRIPTION` and `DETAILS`), has
`EXAMPLES`, declares its arguments (`ARGUMENTS`, and `add` where a text cannot) and does its work
(`run`). `collection`, which has actions, is a folder.

A command that is terminated removes unfinished files and prints the reason. Ctrl-C raises
`KeyboardInterrupt` in the main thread. SIGTERM and SIGHUP, and a second Ctrl-C, are handled by
another thread, because the main thread may be in native code for minutes. The second signal of any
kind ends the process at once. None of this depends on a terminal that still works.
"""

from __future__ import annotations

import ast
import gc
import os
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.machinery import PathFinder, SourceFileLoader
from pkgutil import iter_modules
from types import FrameType, SimpleNamespace
from typing import Any

from lookalike import __version__
from lookalike.cli import commands, terminal
from lookalike.cli.parser import WRONG_USAGE, Parser, command, wrong_usage
from lookalike.errors import ArgumentError, LookalikeError, LookalikeWarning, Said
from lookalike.storage.files import remove_unfinished

ORDER = """
    dedup undo compare pairs overlaps links
    clean decontaminate
    sign index search match passages audio
    collection serve
    demo cluster plan evaluate bench kernels completion
""".split()
"""The order of commands in help: the tasks, and for each the command that is needed first."""
COMMANDS = tuple(
    sorted(
        (module.name for module in iter_modules(commands.__path__)),
        key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name),
    )
)
_EXAMPLES = """\
  lookalike dedup corpus.jsonl -o unique.jsonl
  lookalike sign corpus.jsonl -o corpus.lookalike
  lookalike search corpus.lookalike "some text"
"""
_OVERVIEWS: tuple[list[str], ...] = [], ["-h"], ["--help"], ["--help-all"], ["--version"]
_REASONS = {
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminal closed",
    signal.SIGINT: "interrupted",
}
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_PAUSE = 0.1
_PATIENCE = 1.0
"""Seconds to wait for a standard error that takes no more text, before ending without a word."""
_STATUS = 128
"""Plus the number of the signal is the exit status of a process that a signal has ended."""


def command_line() -> int:
    """Run the command that was typed, in a process that ends with it."""
    try:
        return main()
    finally:
        terminal.forget_if_broken(sys.stdout)
        gc.freeze()  # or the interpreter looks for garbage in all modules before it ends


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 1 for an error, 2 for wrong usage."""
    terminal.take_every_character()
    given = sys.argv[1:] if arguments is None else list(arguments)
    with terminal.forgiving_errors(), orderly_end() as interruption, warnings.catch_warnings():
        chosen = _Chosen()
        warnings.showwarning = chosen.show_warning
        warnings.simplefilter("always", LookalikeWarning)
        try:
            try:
                _run(given, chosen)
            finally:
                terminal.flush_output()
        except (Exception, KeyboardInterrupt) as error:
            interruption.wait_if_ending()
            if interruption.came or isinstance(error, KeyboardInterrupt):
                remove_unfinished()  # a library may have caught the exception before we did
                terminal.warn("interrupted", kind="")
                return 130
            if isinstance(error, BrokenPipeError) and terminal.output_is_gone():
                terminal.forget(sys.stdout)  # its reader has seen enough
                return 0
            if isinstance(error, LookalikeError):
                message = error.as_typed(chosen.options)
                if isinstance(error, ArgumentError) and chosen.has_option(error.args[0]):
                    wrong_usage(chosen.name, message)
                    return WRONG_USAGE
                terminal.warn(message, kind="")
            elif isinstance(error, MemoryError):
                terminal.warn("out of memory; give it less to hold, or more memory", kind="")
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
        terminal.warn(message.as_typed(self.options) if typed else message)  # type: ignore[union-attr]


def full_parser() -> Parser:
    """Return the parser with all its commands, which imports what each of them needs."""
    return _parser({name: _module(name) for name in COMMANDS})


def overview_parser() -> Parser:
    """Return a parser that only shows what each command is for, without importing any."""
    return _parser({name: _texts(name) for name in COMMANDS})


def _module(command: str) -> Any:
    return import_module(f"{commands.__name__}.{command}")


def _texts(command: str) -> Any:
    """Return the texts of a command, read from its source; without a source, its module."""
    spec = PathFinder.find_spec(command, commands.__path__)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        return _module(command)
    source = spec.loader.get_source(command) or ""
    return SimpleNamespace(
        **{
            target.id: line.value.value
            for line in ast.parse(source).body
            if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant)
            for target in line.targets
            if isinstance(target, ast.Name)
        }
    )


def _parser(modules: Mapping[str, Any]) -> Parser:
    parser = Parser(
        prog="lookalike",
        description="Find near-duplicates and nearest neighbors by binary signatures.",
    )
    parser.add_argument("--version", action="version", version=f"lookalike {__version__}")
    parser.examples = _EXAMPLES
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, module in modules.items():
        made = command(
            subparsers,
            name,
            getattr(module, "run", None),  # the actions of a collection bring their own
            module.PURPOSE,
            getattr(module, "ARGUMENTS", ""),
            examples=module.EXAMPLES,
            description=getattr(module, "DESCRIPTION", ""),
            details=getattr(module, "DETAILS", ""),
            task=module.TASK,
        )
        if hasattr(module, "add"):
            module.add(made)
    return parser


def _run(given: list[str], chosen: _Chosen) -> None:
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    # Only the command that is asked for is imported; the others may need much.
    if given[:1] and given[0] in COMMANDS:
        parser = _parser({given[0]: _module(given[0])})
    elif given in _OVERVIEWS:
        parser = overview_parser()
    else:
        parser = full_parser()
    command = parser.parser_of(given)
    if command.has_commands and given == command.prog.split()[1:]:
        command.print_help(sys.stderr)
        command.exit(WRONG_USAGE)
    chosen.name, chosen.options = command.prog, command.options()
    options, unknown = parser.parse_known_args(given)
    if not command.take(options, unknown):
        command.unknown(unknown)
    options.command_line = ["lookalike", *given]
    options.run(options)


class Interruption:
    """Whether Ctrl-C was pressed, and whether the process is about to end.

    Some libraries turn `KeyboardInterrupt` into another exception, so it is recorded here.
    """

    def __init__(self) -> None:
        self.came = False
        self._ending = threading.Event()

    def take(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT: raise the first time; the thread of `orderly_end` handles the second."""
        if not self.came:
            self.came = True
            raise KeyboardInterrupt

    def end(self, number: signal.Signals) -> None:
        """Remove unfinished files and end the process; at once, if it is ending already."""
        if self._ending.is_set():
            os._exit(_STATUS + number)
        self._ending.set()
        try:
            threading.Thread(target=_end, args=(number,), daemon=True).start()
        except RuntimeError:  # no more threads: then this one, which hears no second signal
            _end(number)

    def wait_if_ending(self) -> None:
        """Wait for the end of a process that is about to end: errors meanwhile are not reported."""
        while self._ending.is_set():
            time.sleep(_PAUSE)


@contextmanager
def orderly_end() -> Iterator[Interruption]:
    """Handle signals, except those that are ignored (`nohup`) or that have a handler already."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    watching = threading.Thread(target=_watch, args=(reader, interruption), daemon=True)
    watching.start()
    heard_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {
        number: signal.signal(number, leave_to_thread)
        for number in _ENDING
        if signal.getsignal(number) == signal.SIG_DFL
    }
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, interruption.take)
    try:
        yield interruption
    finally:
        interruption.wait_if_ending()
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(heard_before)
        os.close(writer)
        watching.join()
        os.close(reader)


def leave_to_thread(number: int, frame: FrameType | None) -> None:
    """Do nothing; because this is a handler, Python writes the number to the pipe."""


def _watch(reader: int, interruption: Interruption) -> None:
    """Read the numbers of signals until the pipe is closed, and end the process where they say so.

    The first Ctrl-C is an exception in the main thread, but that may be waiting for a database.
    """
    ending = False
    while numbers := _read(reader):
        for number in map(signal.Signals, numbers):
            if number in _ENDING or (number == signal.SIGINT and ending):
                interruption.end(number)
            if number == signal.SIGINT:
                reading = sys.modules.get("lookalike.corpora.formats.duck")
                if reading is not None:
                    reading.interrupt_queries()
            ending = ending or number in _REASONS


def _read(reader: int) -> bytes:
    """Read from the pipe; what the system cannot do now it may the next time."""
    while True:
        try:
            return os.read(reader, 16)
        except OSError:
            time.sleep(_PAUSE)


def _end(number: signal.Signals) -> None:
    try:
        remove_unfinished()
        _say_at_the_end(f"lookalike: {_REASONS[number]}\n")
    finally:
        os._exit(_STATUS + number)


def _say_at_the_end(line: str) -> None:
    """Write a line to standard error if that is possible without waiting, also for its lock."""
    with suppress(OSError, ValueError, AttributeError):
        descriptor = sys.stderr.fileno()
        if select.select([], [descriptor], [], _PATIENCE)[1]:
            os.write(descriptor, line.encode())
