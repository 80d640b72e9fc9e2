"""`lookalike collection ...`: documents that come and go, on SQLite or PostgreSQL.

A file for each sort of action: what is in a collection, searching, care, whole corpora.
"""

from __future__ import annotations

import argparse

from lookalike.cli.collection import care, content, search, transfer
from lookalike.cli.collection.action import DATABASE

PURPOSE = "keep documents in a database and search them while they come and go"
DESCRIPTION = f"{PURPOSE.capitalize()}."
DETAILS = (
    DATABASE + "  lookalike collection create docs.db\n"
    "  lookalike collection import docs.db corpus.jsonl\n"
    '  lookalike collection search docs.db "some text" --radius 20'
)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare what can be done."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for sort in (content, search, care, transfer):
        sort.declare(actions)
