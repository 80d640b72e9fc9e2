"""`lookalike pairs`: all pairs of signatures within a radius."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import share, thread_count, whole_number
from lookalike.cli import common
from lookalike.cli.finding.origin import Origin
from lookalike.cli.parser import ADVANCED, Parser, refuse_given
from lookalike.cli.terminal import say_rows, warn
from lookalike.corpora import open_corpus, write_table
from lookalike.corpora.base import pa
from lookalike.corpora.formats import is_table
from lookalike.dedup.pair_groups import PairGroups, group_pairs
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError, Said
from lookalike.indexes import Index, Pairs, open_index
from lookalike.indexes.all_pairs import pairs_of_rows
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.progress import watched
from lookalike.shown import counted
from lookalike.signatures.estimates import estimated_pairs, expected_distance, ones_of_pairs
from lookalike.signatures.methods import METHODS, Method

_AT_A_TIME = 1 << 16

_OF_GROUPS = {
    "grouping": DedupSettings.grouping,
    "max_group": DedupSettings.max_group,
    "keep": "first",
}
"""Options that say how groups are made, and their defaults."""
_SIMILARITY = 0.8
_SIGNERS = {name: Method.of(name).signer for name in METHODS}
_BITS = {name: 8 * signer.sign([]).shape[1] for name, signer in _SIGNERS.items()}
_RADII = {
    name: int(expected_distance(signer, _SIMILARITY, _BITS[name]))
    for name, signer in _SIGNERS.items()
}

TASK = "remove duplicates"
PURPOSE = "find all pairs of near signatures, or groups of them"
DESCRIPTION = "Find every pair of signatures within a Hamming distance or above a similarity."
ARGUMENTS = f"""
  SIGNATURES           file of `lookalike sign` or `lookalike index`, .npy or .npz; with --groups
                       also a table of pairs
  | --radius N         maximum Hamming distance, in bits
  | --threshold
  -o --output FILE     file to write: .csv, .tsv, .jsonl, .json or .parquet
  --groups             print every document with its group and whether it is kept, instead of pairs
  --keep first|last|none=first  which document of a group to keep, with --groups
  origin:--in
  --json
  --quiet
advanced options:
  --recall SHARE       minimum probability that a pair is found (default: 1, all pairs)
  --collapse           pair equal signatures with the first of them only
  limit:--max-pairs N={DEFAULT_LIMIT}  stop with an error if there are more pairs
  --threads
"""
EXAMPLES = """\
  lookalike pairs corpus.lookalike --threshold 0.8 -o pairs.csv
  lookalike pairs corpus.lookalike --threshold 0.8 --in corpus.jsonl
  lookalike pairs corpus.lookalike --radius 10 --groups -o groups.csv
"""
DETAILS = f"""\
output:
  columns left and right (ids, or positions where the file has none), distance in bits, and
  estimate, the similarity derived from the distance, if the signer is known. Without -o, rows are
  printed with tabs. All pairs are found; at a large radius, the time grows with the square of the
  number of signatures. With --recall R, each pair is found with probability R or more, much faster.

similarity:
  --threshold T finds the pairs whose estimate is at least T. With --in CORPUS, the signed corpus,
  documents are compared: similarity is exact, and --threshold applies to it; signatures propose,
  and miss about 1% of the pairs at the threshold.

radius of a similarity:
  for b bits and a similarity s: b/2 · (1 - s) for minhash, b/π · acos(s) for simhash and topsig.
  For {_SIMILARITY}: {", ".join(f"{_RADII[name]} of {name}'s {_BITS[name]}" for name in METHODS)}
  bits.

groups (--groups):
  columns id, group_id (its first document, empty for a document without pairs), kept, and
  duplicate_of, by the rules of `lookalike dedup`. A table of pairs has the columns left and right,
  or these are its first two:
  lookalike pairs pairs.parquet --groups --grouping components
"""


def add(parser: Parser) -> None:
    """Declare the settings that `dedup` has, too."""
    common.add_settings(parser, ADVANCED, only=("grouping", "max_group"))
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> None:
    """Find the pairs, and write or print them."""
    whole_number("max_group", options.max_group, at_least=2)
    if not options.groups:
        refuse_given(options, _OF_GROUPS, "needs --groups")
    recall = None if options.recall is None else share("recall", options.recall)
    given = is_table(options.signatures)
    if given:
        _check_given(options)
    elif options.radius is None and options.threshold is None:
        options.refuse("one of the arguments --radius --threshold is required")
    limit = whole_number("limit", options.limit, at_least=0)
    if options.output is not None:
        if not is_table(options.output):
            raise ArgumentError(
                Said("output"),
                f" is {options.output}; expected a name that ends in .csv, .tsv, .jsonl, .json "
                "or .parquet",
            )
        common.check_folder(options.output)
        common.check_not_read("-o", options.output, [options.signatures])
    if given:
        _show_groups(group_pairs(options.signatures, **_grouping(options)), options)
        return
    index = open_index(options.signatures)
    origin = Origin.of(options, index)
    common.check_not_read("-o", options.output, [] if origin is None else origin.files)
    radius = common.radius_of(options, index.signer, index.bits, proposing=origin is not None)
    if radius is None:
        raise ArgumentError(Said("--radius"), " or --threshold is missing")
    reach, threads = min(radius, index.bits), thread_count(options.threads)
    rows = index.living()
    with watched("pairs", options.quiet, len(index)):
        pairs = pairs_of_rows(*rows, reach, limit, options.collapse, threads, recall=recall)
    similarity, complete = None, pairs.exact
    estimates = _estimates(index, *rows, pairs)
    if origin is not None:
        with watched("verify", options.quiet, len(pairs), "pairs"):
            kept, similarity = _compared(index, pairs, origin, options.threshold)
    elif options.threshold is not None and estimates is not None:
        kept = np.flatnonzero(estimates >= options.threshold)  # of few words, some are not
    else:
        kept = np.arange(len(pairs))
    pairs = Pairs(pairs.left[kept], pairs.right[kept], pairs.distances[kept], exact=complete)
    columns = {"estimate": estimates, "similarity": similarity}
    measured = {name: one[kept] for name, one in columns.items() if one is not None}
    if options.groups:
        ids = index.living()[1].tolist()  # those without a pair, too
        found = group_pairs(pairs, ids=ids, **_grouping(options))
        _show_groups(replace(found, ids=[index.name(id) for id in ids]), options)
        return
    if options.output is not None:
        write_table(_batches(index, pairs, measured), options.output)
    else:
        for number, part in enumerate(_parts(index, pairs, measured)):
            say_rows(part, as_json=options.json, first=number == 0)
    if not options.quiet:
        near = f"within {radius} of {index.bits} bits"
        some = "" if complete else f", each found with a chance of {options.recall:g} or more"
        if options.threshold is not None:
            near = f"of {options.threshold:g} or more" + (" (estimated)" if origin is None else "")
        summary = (
            f"{counted(len(pairs), 'pair')} {near} among {counted(len(index), 'signature')}{some}"
        )
        common.say_summary(options, summary)


def _check_given(options: argparse.Namespace) -> None:
    """Refuse what means nothing for pairs that are found already."""
    if not options.groups:
        path, names = options.signatures, open_corpus(options.signatures).columns()
        if {"left", "right"} <= set(names):
            raise ArgumentError(f"{path} is a file of pairs; add --groups to make groups")
        raise ArgumentError(
            f"{path} has documents (columns {', '.join(names) or 'none'}); expected signatures. "
            f"Make them first: lookalike sign {path} -o NAME.lookalike. Or compare the documents "
            f"themselves: lookalike dedup {path} --pairs pairs.csv"
        )
    refuse_given(
        options,
        ("radius", "threshold", "origin", "collapse", "recall"),
        f"needs signatures, but {options.signatures} has pairs",
    )


def _estimates(
    index: Index, signatures: NDArray[np.uint8], ids: NDArray[np.int64], pairs: Pairs
) -> NDArray[np.float64] | None:
    """Return the similarities that signatures suggest, if the signer is known."""
    if index.signer is None:
        return None
    order = np.argsort(ids, kind="stable")
    sides = (order[np.searchsorted(ids, one, sorter=order)] for one in (pairs.left, pairs.right))
    ones = ones_of_pairs(index.signer, signatures, *sides)
    return estimated_pairs(index.signer, pairs.distances, index.bits, ones)


def _compared(
    index: Index, pairs: Pairs, origin: Origin, threshold: float | None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return which pairs have documents that are similar enough, and how similar all are."""
    left, right = ([index.name(id) for id in ids.tolist()] for ids in (pairs.left, pairs.right))
    origin.read({str(name) for name in (*left, *right)})
    similarity = origin.pairs(left, right)
    if threshold is None:
        return np.arange(len(pairs)), similarity
    return np.flatnonzero(similarity >= threshold), similarity


def _parts(
    index: Index, pairs: Pairs, measured: dict[str, NDArray[np.float64]]
) -> Iterator[dict[str, list[Any]]]:
    """Yield the pairs some at a time, as columns, with ids, and what was measured of them."""
    for begin in range(0, max(1, len(pairs)), _AT_A_TIME):
        part = slice(begin, begin + _AT_A_TIME)
        columns: dict[str, list[Any]] = {
            "left": [index.name(id) for id in pairs.left[part].tolist()],
            "right": [index.name(id) for id in pairs.right[part].tolist()],
            "distance": pairs.distances[part].tolist(),
        }
        for name, all_of_them in measured.items():
            values = np.round(all_of_them[part], 4).tolist()
            columns[name] = [None if math.isnan(value) else value for value in values]
        yield columns


def _batches(index: Index, pairs: Pairs, measured: dict[str, NDArray[np.float64]]) -> Iterator[Any]:
    name = pa.int64() if index.names is None else pa.string()
    kinds = {"left": name, "right": name, "distance": pa.int32(), "estimate": pa.float64()}
    kinds["similarity"] = pa.float64()
    for columns in _parts(index, pairs, measured):
        yield pa.record_batch({name: pa.array(one, kinds[name]) for name, one in columns.items()})


def _grouping(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in _OF_GROUPS}


def _show_groups(found: PairGroups, options: argparse.Namespace) -> None:
    """Write or print groups, and say how many there are."""
    columns = {name: values.tolist() for name, values in found.to_numpy().items()}
    if options.output is not None:
        write_table(iter([_group_batch(columns)]), options.output)
    else:
        say_rows(columns, as_json=options.json, empty="")
    for warning in found.warnings:
        warn(warning)
    if not options.quiet:
        groups, kept = counted(len(found.groups()), "group"), int(found.keep.sum())
        documents = counted(len(found), "document")
        common.say_summary(options, f"{documents}, {groups}, {kept:,} kept")


def _group_batch(columns: dict[str, list[Any]]) -> Any:
    numbers = all(type(id) is int for id in columns["id"] or [""])
    kinds = dict.fromkeys(columns, pa.int64() if numbers else pa.string()) | {"kept": pa.bool_()}
    made = {}
    for name, values in columns.items():
        if kinds[name] == pa.string():
            values = [None if value is None else str(value) for value in values]
        made[name] = pa.array(values, kinds[name])
    return pa.record_batch(made)
