"""`lookalike collection ...`: documents that come and go, on SQLite or PostgreSQL."""

from __future__ import annotations

from lookalike.cli.commands.collection import care, content, search
from lookalike.cli.commands.collection.content import DATABASE
from lookalike.cli.parser import Parser

TASK = "collections"
PURPOSE = "keep documents in a database and search them"
EXAMPLES = """\
  lookalike collection create docs.db
  lookalike collection import docs.db corpus.jsonl
  lookalike collection search docs.db "some text" --radius 20
"""
DETAILS = DATABASE

ORDER = "create import add search get delete stats export snapshot restore verify repair".split()
"""The order of actions in help."""


def add(parser: Parser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for sort in (content, search, care):
        sort.declare(actions)
    actions._choices_actions.sort(key=lambda one: ORDER.index(one.dest))
