"""`lookalike collection ...`: documents that come and go, on SQLite or PostgreSQL.

A file for each sort of action: what is in a collection, searching, care, whole corpora.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lookalike.cli.collection import care, content, search, transfer
from lookalike.cli.collection.action import DATABASE

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add(commands: Subparsers) -> None:
    """Declare the command and what it can do."""
    parser = commands.add_parser(
        "collection",
        help="keep documents in a database and search them while they come and go",
        description="Keep documents in a database and search them while they come and go.",
        epilog=DATABASE + "  lookalike collection create docs.db\n"
        "  lookalike collection import docs.db corpus.jsonl\n"
        '  lookalike collection search docs.db "some text" --radius 20',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for sort in (content, search, care, transfer):
        sort.declare(actions)
