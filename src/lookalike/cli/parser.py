"""How commands are declared, and what is said where what was typed cannot be understood.

That is two lines, and exit status 2. The first line says what is wrong, and what may have been
meant; the second where to look it up.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NoReturn, TypeAlias

from lookalike.cli.terminal import say
from lookalike.errors import ArgumentError
from lookalike.features.choice import typed_lengths
from lookalike.registry import Registry
from lookalike.shown import escape_terminal
from lookalike.suggestions import nearest_word

WRONG_USAGE = 2

_LONGEST_MESSAGE = 2000

_EXPECTED: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    typed_lengths: "a whole number, or several with commas, such as 1,2",
}
"""Of the types that say nothing themselves."""


def wrong_usage(command: str, message: str) -> None:
    """Print the two lines."""
    from lookalike.collection.stores.address import (
        hide_passwords,  # commands need not import it
    )

    say(f"{command}: {escape_terminal(hide_passwords(message), _LONGEST_MESSAGE)}", file=sys.stderr)
    say(f"`{command} --help` says how it is used", file=sys.stderr)


class Parser(argparse.ArgumentParser):
    """A parser that knows what may have been meant, and shows nothing that harms a terminal.

    `dest` of an option is the name of the argument that it stands for in Python, so that an error
    that speaks of the argument can be told of the option.
    """

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, but for passwords, and end."""
        wrong_usage(self.prog, message.removeprefix("argument "))
        self.exit(WRONG_USAGE)

    def options(self) -> dict[str, str]:
        """Return what is typed for each argument: its option, or what its place is called."""
        typed = {}
        for action in self._actions:
            long = [one for one in action.option_strings if one.startswith("--")]
            names = [*long, *action.option_strings]
            typed[action.dest] = names[0] if names else str(action.metavar or action.dest)
        return typed

    def parser_of(self, words: Sequence[str]) -> Parser:
        """Return the parser of the command, and of its action, that these words begin with."""
        commands = self._commands()
        if commands is None:
            return self
        chosen = next((word for word in words if not word.startswith("-")), None)
        found = commands.choices.get(chosen)
        return self if found is None else found.parser_of(words[words.index(chosen) + 1 :])

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse an option that does not exist before anything is said of those that are missing.

        The parser of commands leaves that to the command.
        """
        words = sys.argv[1:] if args is None else list(args)
        if self._commands() is None:
            for word in words[: words.index("--") if "--" in words else None]:
                self._check_option(word)
        return super().parse_known_args(args, namespace)

    def _check_option(self, word: str) -> None:
        name = word.partition("=")[0]
        if not name.startswith("--") or " " in word:  # argparse takes the others for values
            return
        if any(known.startswith(name) for known in self._option_string_actions):
            return
        long = [known for known in self._option_string_actions if known.startswith("--")]
        self.error(f"there is no option {name}{_asked(nearest_word(name, long))}")

    def take(self, options: argparse.Namespace, words: Sequence[str]) -> bool:
        """Let words that came behind an option stand in the last place there is, as they would
        before it; return whether they all may.

        argparse fills all places with what comes before the first option.
        """
        places = [one for one in self._actions if not one.option_strings]
        if not words or not places:
            return not words
        if any(word.startswith("-") and word != "-" for word in words):
            return False
        last = places[-1]
        before, given = getattr(options, last.dest), [self._get_value(last, one) for one in words]
        if last.nargs in (argparse.ZERO_OR_MORE, argparse.ONE_OR_MORE):
            setattr(options, last.dest, [*before, *given])
        elif last.nargs == argparse.OPTIONAL and before == last.default and len(given) == 1:
            setattr(options, last.dest, given[0])
        else:
            return False
        return True

    def unknown(self, words: Sequence[str]) -> NoReturn:
        """Say that nobody asked for these words, which argparse has left over."""
        if words[0].startswith("-"):
            self.error(f"there is no option {words[0]}")
        self.error(f"unexpected: {' '.join(words)}; is something missing between quotes?")

    def _commands(self) -> Any:
        """Return what holds the parsers of its commands, if it has commands."""
        found = [one for one in self._actions if isinstance(one, argparse._SubParsersAction)]
        return found[0] if found else None

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        expected = _EXPECTED.get(action.type)
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            if isinstance(error.__context__, ArgumentError):  # argparse hides what it says
                self.error(f"{_name(action)}: {error.__context__}")
            if expected is None:  # then its type has said what it expects
                raise
            self.error(f"{_name(action)} is {arg_string!r}; expected {expected}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        self.error(
            f"{_name(action)} is {value!r}; expected one of {', '.join(known)}"
            f"{_asked(nearest_word(value, known))}"
        )

    def _print_message(self, message: str, file: Any = None) -> None:
        # Not as argparse does it, which hides that nothing could be written.
        say(message, end="", file=file or sys.stderr)


def _name(action: argparse.Action) -> str:
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


def _asked(word: str | None) -> str:
    return "" if word is None else f"; did you mean {word}?"


def add_switch(group: Group, name: str, help: str) -> None:
    """Declare an option that is off unless it is given."""
    group.add_argument(name, action="store_true", help=help)


def add_json(group: Group, help: str = "print what was done as JSON") -> None:
    """Declare that what is printed is for a program."""
    add_switch(group, "--json", help)


def add_number(
    group: Group, name: str, help: str, *, default: int | None = None, metavar: str = "N"
) -> None:
    """Declare an option that is a whole number; its help says the default, if there is one."""
    told = help if default is None else f"{help} (default {default})"
    group.add_argument(name, type=int, default=default, metavar=metavar, help=told)


def command(
    commands: Subparsers,
    name: str,
    run: Callable[[argparse.Namespace], None] | None,
    purpose: str,
    description: str,
    details: str,
) -> Parser:
    """Declare a command; lines of its description and details are shown as they are."""
    parser = commands.add_parser(
        name,
        help=purpose,
        description=description,
        epilog=details,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


class RegisteredNames(Collection[str]):
    """The names of a registry as choices of an option; entries of other packages are allowed."""

    def __init__(self, registry: Registry[Any]) -> None:
        self._registry = registry

    def __contains__(self, name: object) -> bool:
        return name in self._registry

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry.names())

    def __len__(self) -> int:
        return len(self._registry.names())


Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"
Group: TypeAlias = argparse._ArgumentGroup | argparse.ArgumentParser
