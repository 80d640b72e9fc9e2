"""How commands are declared: each adds itself to the commands there are."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

from lookalike.cli.parser import Parser

Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"


Group: TypeAlias = argparse._ArgumentGroup | argparse.ArgumentParser


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
