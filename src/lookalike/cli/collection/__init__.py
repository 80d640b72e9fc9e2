"""`lookalike collection ...`: documents that come and go, on SQLite or PostgreSQL."""

from __future__ import annotations

from lookalike.cli.collection import care, content, search
from lookalike.cli.collection.content import DATABASE
from lookalike.cli.parser import Parser

PURPOSE = "keep documents in a database and search them while they come and go"
DESCRIPTION = f"{PURPOSE.capitalize()}."
DETAILS = f"""\
{DATABASE}\
  lookalike collection create docs.db
  lookalike collection import docs.db corpus.jsonl
  lookalike collection search docs.db "some text" --radius 20
"""


def add(parser: Parser) -> None:
    """Declare what can be done."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for sort in (content, search, care):
        sort.declare(actions)
