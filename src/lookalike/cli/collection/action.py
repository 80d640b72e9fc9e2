"""What the actions on a collection have in common: how they are declared, and their arguments."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.cli.command import Subparsers, command
from lookalike.collection import Collection, open_collection
from lookalike.collection.stores.address import parse_address
from lookalike.errors import ArgumentError, FileError

DATABASE = """\
DATABASE is the name of an SQLite file, such as docs.db, or the address of a PostgreSQL database,
such as postgresql://user@host/name. One database holds any number of collections; --name says
which one is meant (default: documents).

examples:
"""


def action(
    actions: Subparsers,
    verb: str,
    run: Callable[[argparse.Namespace], None],
    purpose: str,
    *examples: str,
    name: str | None = "documents",
) -> argparse.ArgumentParser:
    """Declare an action on a collection, with its examples in the help."""
    shown = "\n".join(f"  lookalike collection {verb} {one}" for one in examples)
    description = purpose[0].upper() + purpose[1:] + "."
    parser = command(actions, verb, run, purpose, description, DATABASE + shown)
    parser.add_argument("database", metavar="DATABASE")
    which = "all of them" if name is None else name
    parser.add_argument("--name", default=name, help=f"which collection (default: {which})")
    return parser


def database_name(options: argparse.Namespace) -> str:
    """Return the database as it was typed, but without its password."""
    address = parse_address(options.database)
    return address.shown if address.path is None else str(options.database)


def opened(options: argparse.Namespace) -> Collection:
    """Return the collection that is meant, which has to be there."""
    return open_collection(options.database, options.name, create=False)


def given_text(options: argparse.Namespace) -> str:
    """Return what TEXT stands for."""
    if not options.file:
        return sys.stdin.read() if options.text == "-" else str(options.text)
    try:
        return Path(options.text).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise FileError(f"{options.text} cannot be read: {error}") from error


def given_signature(text: str, docs: Collection) -> NDArray[np.uint8]:
    """Return the signature that hexadecimal digits stand for."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if 8 * len(data) != docs.bits:
        raise ArgumentError(
            f"the signature is {text[:40]!r}; expected {docs.bits // 4} hexadecimal digits"
        )
    return np.frombuffer(data, np.uint8)[None]


def json_object(text: str) -> dict[str, Any]:
    """Return the object that JSON stands for."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"this is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('expected a JSON object such as {"lang": "en"}')
    return value
