"""`lookalike bench`: what a card does with large collections."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from lookalike.advice.planner import aligned
from lookalike.checks import item_count, whole_number
from lookalike.cli.parser import add_json, add_number, add_switch
from lookalike.cli.terminal import say, say_json
from lookalike.errors import ArgumentError

PURPOSE = "measure searches on a CUDA card"
DESCRIPTION = (
    "Measure exact searches of random signatures on a CUDA card: as many as the paper on\n"
    "signature slice lists has, or as fit. Some answers are compared with those of\n"
    "counting bits one by one."
)
DETAILS = """\
columns of the table:
  queries     asked at once
  ms          that the caller waits: the median of five
  a pass      milliseconds of one pass over the collection, for 256 of them at most
  a second    queries, or of pairs comparisons

examples:
  lookalike bench --gpu
  lookalike bench --gpu --count 10M --json
"""
COUNT = 500_000_000


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_switch(parser, "--gpu", "what to measure: a CUDA card")
    parser.add_argument(
        "--count",
        type=item_count,
        default=COUNT,
        metavar="N",
        help="signatures of 1024 bits; a fifth as many of 64, a fiftieth for pairs "
        "(default 500,000,000)",
    )
    add_number(parser, "--device", "number of the card", default=0)
    add_json(parser, "print an object for each line, as JSON Lines")


def run(options: argparse.Namespace) -> None:
    """Print the table, a line at a time."""
    if not options.gpu:
        raise ArgumentError("there is nothing to measure; expected --gpu")
    count = whole_number("count", options.count, at_least=1)
    device = whole_number("device", options.device, at_least=0)
    from lookalike.gpu.bench import lines
    from lookalike.gpu.card import card

    here = card(device)
    rows = [["case", "signatures", "bits", "queries", "ms", "a pass", "a second", "checked"]]
    for line in lines(here, count):
        if options.json:
            say_json({"card": here.name, **asdict(line)})
            continue
        alone = "" if line.pass_seconds is None else f"{1000 * line.pass_seconds:.2f}"
        cells = [line.case, f"{line.signatures:,}", str(line.bits), str(line.queries or "")]
        cells += [f"{1000 * line.seconds:.2f}", alone, f"{line.rate:,.0f}"]
        rows.append([*cells, "same" if line.checked else "NOT THE SAME"])
    if not options.json:
        say(f"{here.name}\n\n{aligned(rows)}")
