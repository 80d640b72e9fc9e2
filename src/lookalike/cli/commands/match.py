"""`lookalike match`: batches of signatures against a file that stays on disk, and grows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import whole_number
from lookalike.cli import common
from lookalike.cli.finding.answers import Found, Lines
from lookalike.cli.finding.options import check_flips, needs_weights, no_weights
from lookalike.cli.parser import refuse_given
from lookalike.cli.terminal import say, say_rows, warn
from lookalike.errors import ArgumentError, LookalikeError, Said
from lookalike.indexes import Index, Matches, SignatureFile
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.indexes.batch.match import match_batch
from lookalike.indexes.kinds import open_with_weights
from lookalike.progress import progress_bars
from lookalike.shown import counted, escape_terminal
from lookalike.signatures import estimated_similarity

_RECALL, _RADIUS = 0.95, 3
_ASKED = {
    **dict.fromkeys(("method", "recall", "flips", "first", "tables", "duplicates")),
    **dict.fromkeys(("no_append", "batch", "chunk", "json")),
    "radius": _RADIUS,
    "limit": DEFAULT_LIMIT,
}
"""Options that say how queries are matched, and their defaults."""

TASK = "search"
PURPOSE = "match batches of signatures with a growing file on disk"
DESCRIPTION = "Find the matches of each query in a signature file, then append the queries."
ARGUMENTS = f"""
  FILE                 signature file; created if it does not exist
  [QUERIES]            file of `lookalike sign` or `lookalike index`, .npy or .npz
  --radius N={_RADIUS}  maximum Hamming distance, in bits
  --first              one match per query, the first found; stops when all have one
  --duplicates         also match each query with the earlier ones of its batch
  --no-append          do not change FILE
  --compact            merge the runs of FILE into one, afterwards
  --json
  --quiet
advanced options:
  method:--algorithm flips|blocks  how matches are found (default: flips if QUERIES have weights,
                       otherwise blocks)
  --recall SHARE       share of the matches that flips find (default: {_RECALL})
  --flips N            number of flips per query, instead of --recall
  --tables N           number of tables of blocks (default: by the size)
  --batch COUNT        number of queries per batch (default: all of them)
  --chunk N            number of signatures of FILE to read at a time (default: by the size)
  limit:--max-matches N={DEFAULT_LIMIT}  stop with an error if a batch has more matches
  --threads
"""
EXAMPLES = """\
  lookalike match seen.runs new.lookalike
  lookalike match seen.runs queries.npy --radius 3 --no-append
  lookalike match seen.runs --compact
"""
DETAILS = """\
FILE is a signature file: sorted runs of signatures with integer ids, one run per batch. It
may be larger than memory, and is read once for each batch. QUERIES get the next free ids, unless
their file has integer ids. Each batch is appended whole or not at all (docs/matching.md).

algorithms:
  flips   tries the likeliest flips of each query, by the weights of `sign --bit-weights`. Without
          weights it tries all flips: exact, and slow beyond a radius of about 3.
  blocks  looks up every signature of FILE in tables of the queries: exact
"""


@dataclass
class _Summary:
    """What all batches had together."""

    queries: int = 0
    found: int = 0
    """Queries with a match."""
    matches: int = 0
    exact: bool = True
    ids: list[int] = field(default_factory=list)
    """The least and the largest id that was appended."""

    def add(self, matches: Matches, ids: NDArray[np.int64]) -> None:
        """Count a batch."""
        self.queries += len(ids)
        self.found += int(np.count_nonzero(np.diff(matches.offsets)))
        self.matches += len(matches.ids)
        self.exact &= matches.exact
        if len(ids):
            self.ids = [min([*self.ids, int(ids.min())]), max([*self.ids, int(ids.max())])]


def run(options: argparse.Namespace) -> None:
    """Match, append and print, a batch at a time."""
    if options.queries is None:
        _check_idle(options)
        SignatureFile(options.file).compact(threads=options.threads)
        _say_compacted(options)
        return
    if options.compact and options.no_append:
        raise ArgumentError(
            Said("no_append"),
            " does not change FILE, but --compact does; use one of them",
        )
    common.check_folder(options.file)
    common.check_not_read("FILE", options.file, [options.queries])
    index, weights = open_with_weights(options.queries)
    method = options.method or ("blocks" if weights is None else "flips")
    _check_method(options, method, weights)
    summary = _Summary()
    for labels, matches, ids in _batches(options, index, weights, method, summary):
        summary.add(matches, ids)
        _print(labels, matches, index, as_json=options.json, first=summary.queries == len(ids))
    if options.compact:
        SignatureFile(options.file).compact(threads=options.threads)
    if not options.quiet:
        _say_summary(options, summary, index.bits)
        if options.compact:
            _say_compacted(options)


def _check_idle(options: argparse.Namespace) -> None:
    """Refuse what means nothing where there is nothing to match."""
    if not options.compact:
        raise ArgumentError(
            Said("queries"), " is missing; pass a file of signatures to match, or --compact alone"
        )
    refuse_given(options, _ASKED, "does nothing without QUERIES")


def _check_method(
    options: argparse.Namespace, method: str, weights: NDArray[np.int16] | None
) -> None:
    """Refuse options of the other method, and flips that nothing tells."""
    others = ("recall", "flips") if method == "blocks" else ("tables",)
    refuse_given(options, others, f"does nothing with --algorithm {method}")
    check_flips(options)
    if needs_weights(options) and weights is None:
        raise no_weights(options.queries)


def _batches(
    options: argparse.Namespace,
    index: Index,
    weights: NDArray[np.int16] | None,
    method: str,
    summary: _Summary,
) -> Iterator[tuple[list[str | int], Matches, NDArray[np.int64]]]:
    """Yield what each batch is called, what it finds, and the ids that it has from now on."""
    signatures, ids = index.living()
    size = len(ids)
    if options.batch is not None:
        size = whole_number("batch", options.batch, at_least=1)
    names = ("flips", "first", "tables", "chunk", "limit", "threads", "duplicates")
    settings: dict[str, Any] = {
        **{name: getattr(options, name) for name in names},
        "method": method,
        "recall": _RECALL if options.recall is None else options.recall,
        "append": not options.no_append,
    }
    for begin in range(0, max(1, len(ids)), max(1, size)):
        part = slice(begin, begin + size)
        try:
            with progress_bars(options.quiet or options.json, len(ids), "queries") as tell:

                def read(step: str, share: float, begin: int = begin) -> None:
                    if tell is not None:
                        here = min(size, len(ids) - begin) * share
                        tell(step, (begin + here) / max(1, len(ids)))

                matches = match_batch(
                    options.file,
                    signatures[part],
                    options.radius,
                    weights=None if weights is None or method == "blocks" else weights[part],
                    ids=ids[part] if index.own_ids else None,
                    progress=read,
                    **settings,
                )
        except LookalikeError:
            if summary.queries and not options.no_append:
                warn(f"{counted(summary.queries, 'query', 'queries')} before this were appended")
            raise
        yield [index.name(id) for id in ids[part].tolist()], matches, matches.query_ids


def _print(
    labels: list[str | int], matches: Matches, index: Index, *, as_json: bool, first: bool
) -> None:
    estimates = None
    # Of sparse signatures, an estimate needs those of the file, too.
    if index.signer is not None and not index.signer.sparse:
        estimates = estimated_similarity(index.signer, matches.distances, index.bits)
    if as_json:
        known = iter([None] * len(matches.ids) if estimates is None else estimates.tolist())
        for label, (ids, distances) in zip(labels, matches, strict=True):
            both = zip(ids.tolist(), distances.tolist(), strict=True)
            found = [Found(id, distance, next(known)) for id, distance in both]
            Lines().query(label, found, matches.exact, masked=False)
        return
    columns: dict[str, list[Any]] = {
        "query": [labels[at] for at in matches.query.tolist()],
        "id": matches.ids.tolist(),
        "distance": matches.distances.tolist(),
    }
    if estimates is not None:
        columns["estimate"] = np.round(estimates, 4).tolist()
    say_rows(columns, first=first)


def _say_summary(options: argparse.Namespace, summary: _Summary, bits: int) -> None:
    queries = counted(summary.queries, "query", "queries")
    matched = f"{summary.found:,} with {counted(summary.matches, 'match', 'matches')}"
    near = f"within {min(options.radius, bits)} of {bits} bits"
    exact = "" if summary.exact else "; some may be missing"
    say(f"{queries}, {matched} {near}{exact}", file=sys.stderr)
    if summary.ids and not options.no_append:
        first, last = summary.ids
        file = escape_terminal(options.file)
        say(f"  appended to {file} with ids from {first} to {last}", file=sys.stderr)


def _say_compacted(options: argparse.Namespace) -> None:
    if not options.quiet:
        size = counted(len(SignatureFile(options.file)), "signature")
        say(f"{size} in one run: {escape_terminal(options.file)}", file=sys.stderr)
