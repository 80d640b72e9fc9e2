"""How commands are declared, how their help looks, and what a usage error says.

The arguments of a command are a text, as its help shows them: see `declare`. `--help` leaves out
the group of advanced options, and the details; `--help-all` shows them. A
usage error is two lines (what is wrong and what may have been meant; where to look) with exit
status 2.
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

ADVANCED = "advanced options"
"""The group of options that --help-all shows, and --help does not."""
SHARED = {
    "--color": "auto|always|never=auto  mark changes and matches with colors",
    "--dry-run": "  print what would happen, and change nothing",
    "--in": "CORPUS  the signed corpus, to compare the documents themselves",
    "--json": "  print the results as JSON",
    "--mask": "auto|yes|no=auto  compare only the bits that the words of a query determine; auto: "
    "for short queries of topsig",
    "--quiet": "  no progress bars and no summary",
    "--threads": "N  number of threads (default: all cores)",
    "--threshold": "T  minimum similarity, estimated from signatures, from 0 to 1",
}
"""The value and the help of options that `declare` finds without a help."""
_EXIT_STATUS = """
exit status:
  0 success, found or not; 1 error (no file is half-written); 2 wrong usage; 130 interrupted;
  143 terminated
"""
_LONGEST_MESSAGE = 2000

_SYNONYMS = {
    **dict.fromkeys(("remove", "rm", "drop"), "delete"),
    **dict.fromkeys(("list", "ls", "info"), "stats"),
    **dict.fromkeys(("insert", "put", "update"), "add"),
    **dict.fromkeys(("find", "query"), "search"),
    **dict.fromkeys(("topics", "clusters", "label"), "cluster"),
    **dict.fromkeys(("duplicates", "deduplicate"), "dedup"),
    "version": "--version",
}
"""Commands of other tools, and what they are called here."""


def share_of_one(text: str) -> float:
    """Return a number, also of a percentage such as 80%."""
    value = float(text.removesuffix("%"))
    if text.endswith("%"):
        return value / 100
    if 10 <= value <= 100:  # a percentage without its sign
        raise ValueError
    return value


def share_or_word(text: str) -> float | str:
    """Return a number, or a word such as `strict`."""
    return text if text.isalpha() and text.lower() not in ("inf", "nan") else share_of_one(text)


_EXPECTED: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    share_of_one: "a number from 0 to 1",
    share_or_word: "a number from 0 to 1",
    typed_lengths: "a whole number, or several with commas, such as 1,2",
}
"""Of the types that say nothing themselves."""


def wrong_usage(command: str, message: str) -> None:
    """Print the two lines of a usage error."""
    from lookalike.collection.stores.address import hide_passwords  # commands need not import it

    say(f"{command}: {escape_terminal(hide_passwords(message), _LONGEST_MESSAGE)}", file=sys.stderr)
    say(f"See `{command} --help`.", file=sys.stderr)


_MEANT = {
    **dict.fromkeys(("--column", "--field", "--text-column"), "--text"),
    **dict.fromkeys(("--top", "--top-k", "--limit", "--n", "--count"), "-k"),
    "--purpose": "--for",
    "--delete": "",
}
"""Options of other tools, and what they are called here; empty where there is nothing like it."""


_ELSEWHERE = {
    "--common": "it is for commands that read the documents: dedup, compare --in, search --in, "
    "cluster, overlaps, and sign --fit for signatures without common features",
}
"""Options of some commands, and what to tell in the others."""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Shows an option as `-o, --output FILE`, without the spellings of other tools."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        value = "" if action.nargs == 0 else f" {self._format_args(action, action.dest.upper())}"
        return ", ".join(_shown_names(action)) + value


def _shown_names(action: argparse.Action) -> list[str]:
    """Return the short and the first long spelling of an option."""
    long = [one for one in action.option_strings if one.startswith("--")]
    return [one for one in action.option_strings if one not in long[1:]]


class _Help(argparse.Action):
    """Prints the help: all of it, or what most people need."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        parser.print_all = option == "--help-all"
        parser.print_help(sys.stdout)
        parser.exit()


BETWEEN = "\0"
"""What is between the words of a value of two words: no word has it."""


class Parser(argparse.ArgumentParser):
    """A parser that suggests what may have been meant, and escapes what it shows.

    `dest` of an option is the name of its argument in Python, so that an error about the argument
    can name the option.
    """

    print_all = False
    """Whether help shows advanced options and details."""
    task, details, examples = "", "", ""
    expected = "are quotes missing around a text?"
    """What to say of words that have no place."""
    two_words: Mapping[str, Sequence[str]] = {}
    """Options with one value, and which values of them a second word belongs to: see `BETWEEN`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(add_help=False, formatter_class=_Formatter, **settings)
        self._positionals.title = "arguments"
        shown: dict[str, Any] = {"action": _Help, "nargs": 0, "default": argparse.SUPPRESS}
        self.add_argument("-h", "--help", help="show this help", **shown)
        self.add_argument("--help-all", help="show all options and details", **shown)

    def format_usage(self) -> str:
        """Return a line with what has to be given, and no options that may be left out."""
        commands = self._commands()
        if commands is not None:
            return f"usage: {self.prog} {commands.metavar} [options]\n"
        formatter = self._get_formatter()
        places = [one for one in self._actions if not one.option_strings]
        words = [formatter._format_args(one, one.dest) for one in places]
        words = [re.sub(r"(\S+) \[\1 \.\.\.\]| \.\.\.(?=\])", r"\1...", word) for word in words]
        words += [_usage(one) for one in self._actions if one.option_strings and one.required]
        for group in self._mutually_exclusive_groups:
            if group.required:
                words.append(f"({' | '.join(map(_usage, group._group_actions))})")
        return f"usage: {' '.join([self.prog, *words])} [options]\n"

    def format_help(self) -> str:
        """Return usage, description, options and examples; with `print_all` everything."""
        formatter = self._get_formatter()
        formatter.add_text(self.format_usage())
        formatter.add_text(self.description)
        for group in self._action_groups:
            if self.print_all or group.title != ADVANCED:
                _add_group(formatter, group)
        more = f"`{self.prog} --help-all` shows all options and details."
        if self._commands() is not None:
            more = f"`{self.prog} {self._commands().metavar} --help` shows the options of each."
        if self.print_all:
            formatter.add_text(self.details + _EXIT_STATUS)
        formatter.add_text(self.examples and f"examples:\n{self.examples}")
        if not self.print_all:
            formatter.add_text(more)
        return formatter.format_help()

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, without passwords, and exit."""
        wrong_usage(self.prog, message.removeprefix("argument "))
        self.exit(WRONG_USAGE)

    def options(self) -> dict[str, str]:
        """Return what is typed for each argument: its option, or the name of its place."""
        return {
            one.dest: _shown_names(one)[-1] if one.option_strings else _name(one)
            for one in self._actions
        }

    def parser_of(self, words: Sequence[str]) -> Parser:
        """Return the parser of the command, and of its action, that these words begin with."""
        commands = self._commands()
        if commands is None:
            return self
        chosen = next((word for word in words if not word.startswith("-")), None)
        found = commands.choices.get(chosen)
        return self if found is None else found.parser_of(words[words.index(chosen) + 1 :])

    def _joined(self, words: list[str]) -> list[str]:
        """Return words in which values of two words are one, so that what follows is an input."""
        made, rest = list[str](), iter(words)
        for word in rest:
            name, given, value = word.partition("=")
            if name not in self.two_words:
                made.append(word)
                if word == "--":
                    break
                continue
            value = value if given else next(rest, "")
            if value in self.two_words[name]:
                value += BETWEEN + next(rest, "")
            made.append(f"{name}={value}")
        return [*made, *rest]

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Report unknown options before missing ones."""
        words = sys.argv[1:] if args is None else list(args)
        words = args = self._joined(words) if self.two_words else words
        if self._commands() is None:
            for word in words[: words.index("--") if "--" in words else None]:
                self._check_option(word)
        elif any(
            word.startswith("-") and word not in self._option_string_actions for word in words[:1]
        ):
            self.error(f"unknown option {words[0]}; options follow the command")
        return super().parse_known_args(args, namespace)

    def _check_option(self, word: str) -> None:
        name = word.partition("=")[0]
        if not name.startswith("--") or " " in word:  # argparse takes the others for values
            return
        known = self._option_string_actions
        if name in known:
            return
        if name in _ELSEWHERE:
            self.error(f"unknown option {name}; {_ELSEWHERE[name]}")
        if name in _MEANT:
            meant = _MEANT[name] if _MEANT[name] in known else None
        elif any(one.startswith(name) for one in known):
            return
        else:
            meant = nearest_word(name, [one for one in known if one.startswith("--")])
        self.error(f"unknown option {name}{_asked(meant)}")

    def take(self, options: argparse.Namespace, words: Sequence[str]) -> bool:
        """Take words after an option as values of the last place; return whether that is allowed.

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
        """Refuse words that argparse has left over."""
        if words[0].startswith("-"):
            self.error(f"unknown option {words[0]}")
        self.error(f"unexpected: {' '.join(words)}; {self.expected}")

    @property
    def has_commands(self) -> bool:
        """Whether a command, or an action, has to follow."""
        return self._commands() is not None

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
                message = error.__context__.as_typed({action.dest: _name(action)})
                named = message.startswith(_name(action))
                self.error(message if named else f"{_name(action)}: {message}")
            if expected is None:  # then its type has said what it expects
                raise
            meant = re.fullmatch(r"0?[.,](\d+)|(\d\d)", arg_string)
            hint = f"0.{(meant[1] or meant[2]).rstrip('0')}" if meant else None
            hint = _asked(hint) if action.type in (share_of_one, share_or_word) else ""
            self.error(f"{_name(action)} is {arg_string!r}; expected {expected}{hint}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        self.error(
            f"{_name(action)} is {value!r}; expected one of {', '.join(known)}"
            f"{_asked(_SYNONYMS.get(value) or nearest_word(value, known))}"
        )

    def _print_message(self, message: str, file: Any = None) -> None:
        # Not as argparse does it, which hides that nothing could be written.
        say(message, end="", file=file or sys.stderr)


def _usage(action: argparse.Action) -> str:
    return f"{_shown_names(action)[0]} {action.metavar}"


def _add_group(formatter: argparse.HelpFormatter, group: argparse._ArgumentGroup) -> None:
    """Add a group of options; commands are grouped by their task."""
    for action in group._group_actions:
        if isinstance(action, argparse._SubParsersAction):
            shown = list(action._get_subactions())
            for task in dict.fromkeys(action.choices[one.dest].task for one in shown):
                formatter.start_section(task or group.title)
                formatter.add_arguments(
                    [one for one in shown if action.choices[one.dest].task == task]
                )
                formatter.end_section()
            return
    formatter.start_section(group.title)
    formatter.add_arguments(group._group_actions)
    formatter.end_section()


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
    arguments: str = "",
    *,
    examples: str,
    description: str = "",
    details: str = "",
    task: str = "",
) -> Parser:
    """Declare a command; lines of its description, details and examples are shown as they are."""
    about = description or f"{purpose[0].upper()}{purpose[1:]}."
    parser = commands.add_parser(name, help=purpose, description=about)
    parser.set_defaults(run=run)
    parser.task, parser.details, parser.examples = task, details, examples
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
        advanced options:
        origin:--in CORPUS  an option in a group, and the name under which its value is stored

    Two spaces or more come before the help. Lines with an indentation of 8 or more go on with it.
    An option without help is one of `SHARED`.
    """
    group: Group = parser
    either: Group | None = None
    for entry in re.split(r"\n(?! {8})", arguments):
        usage, _, lines = entry.strip().partition("  ")
        if not lines and (shared := SHARED.get(re.split("[ :]", usage)[-1])):
            value, _, lines = shared.partition("  ")
            usage = f"{usage} {value}".strip()
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
        off = dest and names[0].startswith("--no-")
        settings["action"] = "store_false" if off else "store_true"
    elif isinstance(read, Collection):
        settings |= {"choices": read, "default": default or None, "metavar": word}
    else:
        usual = read(default) if default else None
        settings |= {"metavar": word, "type": read, "default": usual}
        default = f"{usual:,}" if isinstance(usual, int | float) else default
    told = f" (default: {default})" if default else ""
    group.add_argument(*names, help=help.removesuffix(_REQUIRED) + told or None, **settings)


def file_name(text: str) -> Path:
    """Return the path of a file; refuse a slash at the end, which a path would lose."""
    if text.endswith("/"):
        raise ArgumentError(
            f"{text!r} ends with a slash, so it names a folder; expected the name of a file"
        )
    return Path(text)


def output_name(text: str) -> Path | str:
    """Return a path; or as it was typed an address, or a folder's name that ends with a slash."""
    return text if is_address(text) or text.endswith("/") else Path(text)


def json_object(text: str) -> dict[str, Any]:
    """Return a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        name, _, value = text.partition("=")
        if re.fullmatch(r"\w+=\S.*", text):  # as on the web page
            return {name: _plain_value(value)}
        raise argparse.ArgumentTypeError(
            f'this is not JSON: {error}; expected a JSON object such as {{"lang": "en"}}'
        ) from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('expected a JSON object such as {"lang": "en"}')
    return value


def _plain_value(text: str) -> Any:
    """Return a number, true, false or null of JSON, or else the text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, dict | list) else value


def numbers(text: str) -> list[int]:
    """Return the whole numbers of a list with commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of whole numbers; expected something like 0,1,2"
        ) from None


def typed_widths(text: str) -> int | list[int]:
    """Return a whole number, or several in their order."""
    widths = [int(part) for part in text.split(",")]
    return widths if len(widths) > 1 else widths[0]


_EXPECTED[typed_widths] = "a whole number, or several with commas, such as 32,31"
_PATHS = ("FOLDER", "PATH", "SIGNATURES", "INDEX", "QUERIES")
Value: TypeAlias = Callable[[str], Any] | Collection[str]
VALUES: dict[str, Value] = {
    **dict.fromkeys(("N", "K", "R"), int),
    **dict.fromkeys(("SHARE", "T"), share_of_one),
    **dict.fromkeys(_PATHS, Path),
    **dict.fromkeys(("FILE", "COLLECTION"), file_name),
    "COUNT": item_count,
    "JSON": json_object,
    "LENGTHS": typed_lengths,
    "NUMBERS": numbers,
    "SIZE": byte_count,
    "TARGET": output_name,
    "WIDTHS": typed_widths,
}
"""How values are read, or which there are, by the words that stand for them; others are texts."""


class RegisteredNames(Collection[str]):
    """The names of a registry as choices of an option; entries of other packages are allowed."""

    def __init__(
        self, registry: Registry[Any], which: Callable[[Any], bool] = lambda entry: True
    ) -> None:
        self._registry, self._which = registry, which

    def __contains__(self, name: object) -> bool:
        return name in self._registry and self._which(self._registry[str(name)])

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._registry.names() if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"
Group: TypeAlias = argparse._ActionsContainer
