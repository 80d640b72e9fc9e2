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

from lookalike.cli.parser import Group, Subparsers, command
from lookalike.collection import Collection, open_collection
from lookalike.collection.documents import MOST_TEXT_BYTES
from lookalike.collection.stores.address import parse_address
from lookalike.corpora.opening import read_document
from lookalike.errors import ArgumentError, Said
from lookalike.features.base import FeatureKind, reads_links
from lookalike.signatures import Signer

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


def add_text(parser: argparse.ArgumentParser, meaning: Group, what: str) -> None:
    """Declare a text: typed, through a pipe or in a file; `meaning` is what else it may be."""
    parser.add_argument("text", nargs="?", metavar="TEXT", help=f"{what}; - reads standard input")
    source = "read the text from this file; of a web page, its main text"
    meaning.add_argument("--file", metavar="FILE", help=source)
    parser.add_argument(
        "--encoding",
        metavar="NAME",
        help="encoding of that file, such as cp1252 or utf-16 (default: detected)",
    )


def given_text(options: argparse.Namespace, docs: Collection) -> str:
    """Return the text that was typed, or comes through standard input, or is in a file.

    Of a file that is a web page, the main text. Where documents are files, the path is the text.
    """
    if options.file is not None:
        if options.text is not None:
            raise ArgumentError(Said("--file"), " takes the place of TEXT; leave one of them out")
        if of_files(docs.signer):
            return str(options.file)
        features = getattr(docs.signer, "features", None)
        links = isinstance(features, FeatureKind) and reads_links(features)
        encoding = getattr(options, "encoding", None)
        return read_document(Path(options.file), MOST_TEXT_BYTES, links=links, encoding=encoding)
    typed = typed_text(options)
    return sys.stdin.read() if typed == "-" else typed


def of_files(signer: Signer | None) -> bool:
    """Return whether what is signed are files, known by their paths."""
    return signer is not None and signer.reads_files


def typed_text(options: argparse.Namespace) -> str:
    """Return TEXT, which has to be there."""
    if options.text is None:
        raise ArgumentError(Said("text"), " is missing; type it, or give --file FILE")
    return str(options.text)


def given_signature(text: str, docs: Collection) -> NDArray[np.uint8]:
    """Return the signature that hexadecimal digits stand for."""
    if docs.parts:
        raise ArgumentError(
            Said("--signature"),
            f" is one, and the documents of the collection {docs.name!r} have many parts each; "
            "leave it out",
        )
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
