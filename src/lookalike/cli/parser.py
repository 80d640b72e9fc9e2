"""How commands are declared, and what is said where what was typed cannot be understood.

The arguments of a command are a text, as its help shows them: see `declare`. What cannot be
understood gets two lines (what is wrong and what may have been meant; where to look it up) and
exit status 2.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from lookalike.checks import byte_count, is_address, item_count
from lookalike.cli.terminal import say
from lookalike.errors import ArgumentError, Said
from lookalike.features.choice import typed_lengths
from lookalike.registry import Registry
from lookalike.shown import escape_terminal
from lookalike.suggestions import nearest_word

WRONG_USAGE = 2

_EXIT_STATUS = """
exit status:
  0 done, found or not; 1 an error (nothing is half-written), 2 wrong usage, 130 interrupted,
  143 told to end
"""
_LONGEST_MESSAGE = 2000

_EXPECTED: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    typed_lengths: "a whole number, or several with commas, such as 1,2",
}
"""Of the types that say nothing themselves."""


def wrong_usage(command: str, message: str) -> None:
    """Print the two lines."""
    from lookalike.collection.stores.address import hide_passwords  # commands need not import it

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
        """Refuse unknown options before anything is said of those that are missing."""
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
        """Let words behind an option stand in the last place, as before it; tell whether they may.

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

    def group(self, title: str) -> Group:
        """Return the group of options with this title, which is made if it is not there."""
        known = {one.title: one for one in self._action_groups}
        return known.get(title) or self.add_argument_group(title)

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


def refuse_given(
    options: argparse.Namespace, names: Iterable[str] | Mapping[str, object], why: str
) -> None:
    """Refuse options that were typed and do nothing here; a mapping has their defaults."""
    for name in names:
        value, usual = getattr(options, name), names[name] if isinstance(names, Mapping) else None
        if value is not None and value is not False and value != usual:
            raise ArgumentError(Said(name), f" {why}")


def command(
    commands: Subparsers,
    name: str,
    run: Callable[[argparse.Namespace], None] | None,
    purpose: str,
    description: str,
    details: str,
    arguments: str = "",
) -> Parser:
    """Declare a command; lines of its description and details are shown as they are."""
    parser = commands.add_parser(
        name,
        help=purpose,
        description=description,
        epilog=details + _EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    declare(parser, arguments)
    return parser


def declare(parser: Parser, arguments: str) -> None:
    """Declare the arguments that a text describes, as help shows them.

        [SIGNATURES]        an argument that may be missing; "..." if there may be several
        -k K=10             an option with a value, and its default, which help then names
        | --radius R        one of several options that exclude each other
        | --threshold T     the word for a value says its type: see `VALUES`
        --device cpu|gpu    an option that takes one of these words
        --json              a switch
        -o --output FILE    an option that has to be given (required)
        what is read:
        origin:--in CORPUS  an option in a group, and the name under which its value is stored

    Two spaces or more come before the help. Lines with an indentation of 8 or more go on with it.
    """
    group: Group = parser
    either: Group | None = None
    for entry in re.split(r"\n(?! {8})", arguments):
        usage, _, lines = entry.strip().partition("  ")
        help = " ".join(lines.split())
        if not usage.startswith("| "):
            either = None
        if usage.endswith(":"):
            group = parser.group(usage[:-1])
        elif usage.startswith("| "):
            if either is None:
                either = group.add_mutually_exclusive_group(required=help.endswith(_REQUIRED))
            _declare_one(either, usage[2:], help.removesuffix(_REQUIRED))
        elif usage:
            _declare_one(group, usage, help)


_REQUIRED = " (required)"
_NARGS = {(False, False): None, (True, False): "+", (False, True): "?", (True, True): "*"}
"""By whether there may be several values, and whether there may be none."""


def _declare_one(group: Group, usage: str, help: str) -> None:
    dest, _, typed = usage.rpartition(":")
    *names, value = typed.split()
    if value.startswith("-"):
        names, value = [*names, value], ""
    word, _, default = value.partition("=")
    settings: dict[str, Any] = {}
    if names:
        settings["required"] = help.endswith(_REQUIRED)
        if dest:
            settings["dest"] = dest
    else:
        settings["nargs"] = _NARGS["..." in word, "[" in word]
        word = word.strip("[].")
        names = [dest or word.lower()]
    read: Value = word.split("|") if "|" in word else VALUES.get(word, str)
    if not value:
        settings["action"] = "store_false" if dest else "store_true"
    elif isinstance(read, Collection):
        settings |= {"choices": read, "default": default or None}
    else:
        usual = read(default) if default else None
        settings |= {"metavar": word, "type": read, "default": usual}
        default = f"{usual:,}" if isinstance(usual, int | float) else default
    told = f" (default: {default})" if default else ""
    group.add_argument(*names, help=help.removesuffix(_REQUIRED) + told or None, **settings)


def output_name(text: str) -> Path | str:
    """Return the path of a file, or an address as it was typed: a path would lose a slash."""
    return text if is_address(text) else Path(text)


def json_object(text: str) -> dict[str, Any]:
    """Return the object that JSON stands for."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"this is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('expected a JSON object such as {"lang": "en"}')
    return value


def numbers(text: str) -> list[int]:
    """Return the whole numbers of a list with commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of whole numbers; expected something like 0,1,2"
        ) from None


_PATHS = ("FILE", "FOLDER", "PATH", "SIGNATURES", "INDEX", "COLLECTION", "QUERIES")
Value: TypeAlias = Callable[[str], Any] | Collection[str]
VALUES: dict[str, Value] = {
    **dict.fromkeys(("N", "K", "R"), int),
    **dict.fromkeys(("SHARE", "T"), float),
    **dict.fromkeys(_PATHS, Path),
    "COUNT": item_count,
    "JSON": json_object,
    "LENGTHS": typed_lengths,
    "NUMBERS": numbers,
    "SIZE": byte_count,
    "TARGET": output_name,
}
"""How values are read, or which there are, by the words that stand for them; others are texts."""


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
Group: TypeAlias = argparse._ActionsContainer
