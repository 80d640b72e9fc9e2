"""`lookalike pairs --clusters`: who belongs together, and who stays, of pairs found or given."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lookalike.checks import whole_number
from lookalike.cli.parser import Group, add_switch
from lookalike.cli.terminal import say, say_json, warn
from lookalike.corpora import write_table
from lookalike.corpora.base import pa
from lookalike.dedup import DedupSettings, PairClusters, cluster_pairs
from lookalike.errors import ArgumentError
from lookalike.indexes import Index, Pairs
from lookalike.shown import escape_terminal

_AT_A_TIME = 1 << 16
_KEEP = ("first", "last", "none")
_DEFAULTS = {
    "cluster": DedupSettings.cluster,
    "max_cluster": DedupSettings.max_cluster,
    "keep": _KEEP[0],
}


def add_cluster_options(group: Group) -> None:
    """Declare what clusters are made like."""
    add_switch(
        group,
        "--clusters",
        "instead of pairs, every document with its cluster, whether it stays, and what it is a "
        "duplicate of; also of a file of pairs, with the columns left and right",
    )
    for name in ("cluster", "max_cluster"):
        setting = DedupSettings.__dataclass_fields__[name]
        group.add_argument(
            f"--{name.replace('_', '-')}",
            default=setting.default,
            help=setting.metadata["help"],
            **setting.metadata["option"],
        )
    group.add_argument(
        "--keep",
        choices=_KEEP,
        default=_KEEP[0],
        help="who stays of those alike: first, last, or none (default first)",
    )


def check_cluster_options(options: argparse.Namespace) -> None:
    """Refuse options that say how to make clusters where none are made."""
    whole_number("--max-cluster", options.max_cluster, at_least=2)
    for name, default in _DEFAULTS.items():
        if getattr(options, name) != default and not options.clusters:
            option = name.replace("_", "-")
            raise ArgumentError(f"--{option} goes with --clusters, which is missing")


def clusters_of_file(path: Path, options: argparse.Namespace) -> PairClusters:
    """Return the clusters of a file of pairs."""
    return cluster_pairs(path, **_settings(options))


def clusters_of_index(index: Index, pairs: Pairs, options: argparse.Namespace) -> PairClusters:
    """Return the clusters of all signatures, those without a pair too."""
    ids = index.living()[1].tolist()
    found = cluster_pairs(pairs, ids=ids, **_settings(options))
    names = [index.name(id) for id in ids]
    return PairClusters(names, found.clusters, found.duplicate_of, found.warnings)


def show_clusters(found: PairClusters, options: argparse.Namespace) -> None:
    """Write or print them, and say how many there are."""
    if options.output is not None:
        write_table(_batches(found), options.output)
    else:
        _print(found, options.json)
    for warning in found.warnings:
        warn(warning)
    if not options.quiet:
        where = "" if options.output is None else f": {escape_terminal(options.output)}"
        count = len(found.groups())
        say(
            f"{len(found):,} documents, {count:,} {'cluster' if count == 1 else 'clusters'}, "
            f"{int(found.keep.sum()):,} stay{where}",
            file=sys.stderr if options.output is None else sys.stdout,
        )


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in _DEFAULTS}


def _parts(found: PairClusters) -> Iterator[dict[str, list[Any]]]:
    columns = found.columns()
    for begin in range(0, max(1, len(found)), _AT_A_TIME):
        part = slice(begin, begin + _AT_A_TIME)
        yield {name: values[part].tolist() for name, values in columns.items()}


def _batches(found: PairClusters) -> Iterator[Any]:
    numbers = bool(found.ids) and all(type(id) is int for id in found.ids)
    name = pa.int64() if numbers else pa.string()
    kinds = {"id": name, "cluster": name, "stays": pa.bool_(), "duplicate_of": name}
    for columns in _parts(found):
        made = {
            column: pa.array(
                values
                if numbers or column == "stays"
                else [None if value is None else str(value) for value in values],
                kinds[column],
            )
            for column, values in columns.items()
        }
        yield pa.record_batch(made)


def _print(found: PairClusters, as_json: bool) -> None:
    if not as_json:
        say("\t".join(found.columns()))
    for columns in _parts(found):
        for row in zip(*columns.values(), strict=True):
            if as_json:
                say_json(dict(zip(columns, row, strict=True)))
            else:
                say("\t".join("" if value is None else escape_terminal(value) for value in row))
