"""Options of searches that some indexes alone take: flips, and masks of bits."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lookalike.checks import share, whole_number
from lookalike.cli.parser import refuse_given
from lookalike.cli.terminal import warn
from lookalike.errors import ArgumentError, Said
from lookalike.indexes import Index
from lookalike.signatures.bit_weights import Mask


def needs_weights(options: argparse.Namespace) -> bool:
    """Return whether queries need the weights behind their bits: some flips are tried, not all."""
    return options.flips is not None or (options.recall is not None and options.recall < 1)


def check_flips(options: argparse.Namespace) -> None:
    """Refuse numbers that make no sense, and two answers to one question: how many flips."""
    if options.recall is not None:
        share("recall", options.recall)
    if options.flips is not None:
        whole_number("flips", options.flips, at_least=0)
        if options.recall is not None:
            raise ArgumentError(Said("flips"), " and --recall exclude each other; use one of them")


def no_weights(path: Path) -> ArgumentError:
    """Return the error of signatures without bit weights."""
    return ArgumentError(
        f"{path} has no bit weights, by which flips are chosen; sign it with --bit-weights, or "
        "leave --recall and --flips out"
    )


def flip_settings(options: argparse.Namespace, index: Index) -> dict[str, Any]:
    """Return what these options mean for `within`, or refuse those that do nothing."""
    check_flips(options)
    near = options.radius is not None or options.threshold is not None
    taken = index.settings("within") if near else ()
    if "flips" not in taken:
        only = "needs --radius or --threshold and an index of flips"
        refuse_given(options, ("recall", "flips"), only)
    if options.exact and needs_weights(options):
        part = "and --exact exclude each other; use one of them"
        refuse_given(options, ("recall", "flips"), part)
    if "first" not in taken:
        only = "needs --radius or --threshold and an index of blocks or flips"
        refuse_given(options, ("first",), only)
    if options.threshold is not None and options.origin is not None:
        refuse_given(options, ("first",), "does nothing with --threshold and --in; leave it out")
    given = {"recall": options.recall, "flips": options.flips, "first": options.first or None}
    return {name: value for name, value in given.items() if value is not None}


_CHOICES: dict[str, Mask] = {"auto": "auto", "yes": True, "no": False}


def chosen_mask(options: argparse.Namespace, whole: bool) -> Mask:
    """Return which texts to mask; by default none where they are to be compared as a `whole`."""
    mask = _CHOICES[options.mask]
    return False if whole and mask == "auto" else mask


def without_threshold(options: argparse.Namespace) -> None:
    """Refuse `--mask yes` with a similarity, of which some bits tell nothing."""
    if options.mask == "yes" and options.threshold is not None:
        raise ArgumentError(
            Said("mask"),
            " yes compares some bits, but --threshold needs all; use --radius, or one of them",
        )


def expect_masks(options: argparse.Namespace, index: Index) -> None:
    """Refuse `--mask yes` where there are no words, or an index that compares all bits."""
    if options.mask != "yes":
        return
    without_threshold(options)
    if options.signatures is not None:
        raise ArgumentError(
            Said("mask"),
            " yes needs texts, but --signatures has none; leave it out",
        )
    if not index.takes_masks:
        kinds = "" if index.kind == "sharded" else f" of {index.kind}"
        raise ArgumentError(
            Said("mask"),
            f" yes is not supported by this index{kinds}; build one with `lookalike index --type "
            "slices`",
        )


def warn_masked(queries: int) -> None:
    """Say that some queries were compared by a part of their bits."""
    one = queries == 1
    warn(
        f"{'short query' if one else f'{queries:,} short queries'}: only the bits that "
        f"{'its' if one else 'their'} words decide were compared (--mask no: all bits)",
        kind="",
    )
