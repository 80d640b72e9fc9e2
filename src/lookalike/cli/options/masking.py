"""Queries of a few words: `--mask`, and what is said of those that were masked."""

from __future__ import annotations

import argparse

from lookalike.cli.terminal.output import warn
from lookalike.errors import ArgumentError, Said
from lookalike.indexes import Index
from lookalike.signatures.bit_weights import Mask

_CHOICES: dict[str, Mask] = {"auto": "auto", "yes": True, "no": False}


def add_mask(parser: argparse._ActionsContainer) -> None:
    """Declare the option."""
    parser.add_argument(
        "--mask",
        choices=tuple(_CHOICES),
        default="auto",
        help="compare only the bits that a query's words decide: of all texts, of none, or of "
        "short ones signed by topsig (default: auto)",
    )


def chosen_mask(options: argparse.Namespace, whole: bool) -> Mask:
    """Return which texts to mask; by default none where they are to be compared as a `whole`."""
    mask = _CHOICES[options.mask]
    return False if whole and mask == "auto" else mask


def without_threshold(options: argparse.Namespace) -> None:
    """Refuse `--mask yes` with a similarity, of which some bits tell nothing."""
    if options.mask == "yes" and options.threshold is not None:
        raise ArgumentError(
            Said("mask"),
            " yes compares some bits, and a --threshold is of all: take --radius, or leave one of "
            "them out",
        )


def expect_masks(options: argparse.Namespace, index: Index) -> None:
    """Refuse `--mask yes` where there are no words, or an index that compares all bits."""
    if options.mask != "yes":
        return
    without_threshold(options)
    if options.signatures is not None:
        raise ArgumentError(
            Said("mask"),
            " yes is for texts, whose words decide bits, and --signatures has none; leave it out",
        )
    if not index.takes_masks:
        kinds = "" if index.kind == "sharded" else f" of {index.kind}"
        raise ArgumentError(
            Said("mask"),
            f" yes: this index{kinds} finds signatures by bits that all have to count; make one "
            "with `lookalike index --kind slices`",
        )


def warn_masked(queries: int) -> None:
    """Say that some queries were compared by a part of their bits."""
    one = queries == 1
    warn(
        f"{queries:,} {'query was' if one else 'queries were'} compared by the bits that "
        f"{'its' if one else 'their'} words decide; --mask no compares all bits",
        kind="",
    )
