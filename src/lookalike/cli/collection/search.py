"""`search`: what is near a text, a document or a signature?"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from lookalike.cli.arguments import add_threshold, radius_of
from lookalike.cli.collection.action import (
    action,
    add_text,
    given_signature,
    given_text,
    json_object,
    opened,
    typed_text,
)
from lookalike.cli.command import Subparsers, add_number, add_switch
from lookalike.cli.output import say, say_json
from lookalike.collection import Answer
from lookalike.errors import NotFoundError
from lookalike.shown import shown, shown_json


def declare(actions: Subparsers) -> None:
    """Declare the actions."""
    search = action(
        actions, "search", _search, "find the documents nearest to a text, document or signature",
        'docs.db "The quick brown fox"', "docs.db fox --like --radius 20 --explain",
        "docs.db --file page.txt --threshold 0.8",
        "docs.db - -k 3 --where '{\"lang\": \"en\"}' --json < page.txt",
    )  # fmt: skip
    meaning = search.add_mutually_exclusive_group()
    add_text(search, meaning, "what to look for")
    add_switch(meaning, "--like", "TEXT is the id of a document")
    add_switch(meaning, "--signature", "TEXT is a signature, in hex")
    search.add_argument("-k", type=int, default=10, help="how many at most (default 10)")
    near = search.add_mutually_exclusive_group()
    add_number(near, "--radius", "most bits that may differ")
    add_threshold(near)
    search.add_argument("--where", type=json_object, metavar="JSON", help="condition on metadata")
    search.add_argument(
        "--way",
        choices=("sql", "native"),
        default="sql",
        help="in the database, or in an index in memory, which pays for many searches",
    )
    add_switch(search, "--explain", "say which bits differ, and why")
    add_switch(search, "--json", "one JSON object a line")


def _search(options: argparse.Namespace) -> None:
    with opened(options) as docs:
        exclude = []
        query: Any
        if options.like:
            id = typed_text(options)
            document = docs.get(id)
            if document is None:
                raise NotFoundError(f"there is no document {id[:80]!r}")
            query, exclude = document.signature, [document.id]
        elif options.signature:
            query = given_signature(typed_text(options), docs)
        else:
            query = given_text(options)
        answer = docs.search(
            query, options.k, radius=radius_of(options, docs.signer, docs.bits),
            where=options.where, exclude=exclude, explain=options.explain, way=options.way,
        )  # fmt: skip
    _print_answer(answer, options)


def _print_answer(answer: Answer, options: argparse.Namespace) -> None:
    for match in answer:
        if options.json:
            line = {"id": match.id, "distance": match.distance, "metadata": match.metadata}
            if options.explain:
                line |= {"differing_bits": match.differing_bits, "slices": match.slices}
                line |= {"slice_distances": match.slice_distances}
            say_json(line)
            continue
        metadata = shown_json(match.metadata) if match.metadata else ""
        say(f"{match.distance:5}  {shown(match.id)}  {metadata}".rstrip())
        if options.explain:
            say(f"       bits {list(match.differing_bits or ())}")
    if options.explain and answer.work is not None:
        work = answer.work
        say(
            f"{work.way}: {work.probes} slice values looked up, {work.candidates} signatures "
            f"compared; version {answer.version}, "
            f"{'complete' if answer.exact else 'not complete'}",
            file=sys.stderr,
        )
