"""How commands are declared: each adds itself to the commands there are."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

from lookalike.cli.output import Parser

Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"


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
