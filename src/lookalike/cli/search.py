"""`lookalike search`: what is near these texts?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import whole_number
from lookalike.cli.arguments import add_corpus_options, add_threads, corpus_of
from lookalike.cli.output import say, say_json, warn, warn_left_out
from lookalike.corpora import Problems
from lookalike.corpora.columns import find_columns, id_strings, text_strings
from lookalike.errors import ArgumentError, SignatureError
from lookalike.indexes import Index, Matches, Neighbors, SliceIndex, open_index
from lookalike.shown import shown
from lookalike.signatures import estimated_similarity
from lookalike.signatures.signer import DocumentSigner

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_AT_A_TIME = 1 << 12
_LONGEST_QUERY = 40
_LONGEST_ID = 200
"""Characters that are shown of either; JSON has them all."""

_DETAILS = """\
columns of the table:
  query     the text (shortened), or its id in the corpus of --file
  id        of the document that was found, or its position where the index knows no ids
  distance  bits of the signatures that differ
  estimate  the similarity that the distance suggests (Jaccard for minhash, else cosine)
  exact     whether nothing nearer (with --radius: nothing within) can be missing

Texts are signed as the indexed documents were. A minhash index finds texts that share runs of
five words: copies and edited copies. To search by a few words, sign single words, in many bits,
and let it learn which words are rare: sign --method simhash --ngram 1 --bits 1024 --fit.

exit status:
  0 done, found or not; 1 an error, 2 wrong usage, 130 interrupted

examples:
  lookalike search index.lookalike "the text of a document" -k 5
  lookalike search index.lookalike --file new.jsonl --radius 100 --json
  lookalike search index.lookalike --signatures queries.npy -k 1 --exact
"""


def add(commands: Subparsers) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "search",
        help="find the documents nearest to texts, in an index",
        description="Find the nearest documents, or all within a radius, of texts or signatures.",
        epilog=_DETAILS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "index",
        type=Path,
        metavar="INDEX",
        help="a file of `lookalike index` or `lookalike sign`, or a .npy file",
    )
    parser.add_argument("queries", nargs="*", metavar="QUERY", help="texts to look for")
    group = parser.add_argument_group("many queries")
    group.add_argument("--file", metavar="CORPUS", help="look for every document of this corpus")
    group.add_argument(
        "--signatures", type=Path, metavar="FILE", help="look for these signatures; .npy too"
    )
    add_corpus_options(group)
    group = parser.add_argument_group("what is found")
    question = group.add_mutually_exclusive_group()
    question.add_argument("-k", type=int, default=10, metavar="K", help="so many (default 10)")
    question.add_argument(
        "--radius", type=int, metavar="R", help="all that differ in R bits or less"
    )
    group.add_argument(
        "--exact", action="store_true", help="of an index of slices: until the answer is proven"
    )
    group.add_argument(
        "--expand",
        type=int,
        metavar="N",
        help="of an index of slices: bits of a slice that may differ (default: 3, or a scan where "
        "that is quicker)",
    )
    add_threads(group)
    group.add_argument(
        "--no-verify",
        action="store_true",
        help="do not read the whole index first to see whether it is damaged",
    )
    group.add_argument(
        "--json", action="store_true", help="print an object for each query, as JSON Lines"
    )
    parser.set_defaults(run=run)


@dataclass(frozen=True)
class _Queries:
    """Some queries at a time."""

    labels: Sequence[str | int]
    signatures: NDArray[np.uint8]
    empty: list[int]
    """Those that have no words, and so nothing to look for."""


def run(options: argparse.Namespace) -> None:
    """Search and print."""
    given = [bool(options.queries), options.file is not None, options.signatures is not None]
    if sum(given) != 1:
        raise ArgumentError(
            "expected either texts to look for, or --file CORPUS, or --signatures FILE"
        )
    index = open_index(options.index, verify=not options.no_verify)
    settings = _settings(options, index)
    show = _Lines(index) if options.json else _Table(index)
    for queries in _queries(options, index):
        if options.radius is None:
            found: Neighbors | Matches = index.search(queries.signatures, **settings)
        else:
            found = index.within(queries.signatures, **settings)
        exact = (
            np.full(len(queries.labels), found.exact)
            if found.explanation is None
            else found.explanation.exact
        )
        show.begin(queries.labels)
        for number, (label, (ids, distances)) in enumerate(zip(queries.labels, found, strict=True)):
            if number in queries.empty:
                warn(
                    f"{shown(repr(label), _LONGEST_ID)} has no words; there is nothing to look for"
                )
                ids, distances = ids[:0], distances[:0]
            proven = bool(exact[number]) or number in queries.empty
            show.query(label, ids.tolist(), distances, proven)


def _settings(options: argparse.Namespace, index: Index) -> dict[str, Any]:
    """Return what the search is called with."""
    settings: dict[str, Any] = {"threads": options.threads}
    if options.radius is not None:
        settings["radius"] = whole_number("--radius", options.radius, at_least=0)
    else:
        # More than there are is all of them.
        settings["k"] = min(whole_number("-k", options.k, at_least=1), max(1, len(index)))
    sliced = isinstance(index, SliceIndex)
    if options.expand is not None and (not sliced or options.radius is not None):
        raise ArgumentError("--expand goes with -k and an index of slices; leave it out")
    if sliced and options.radius is None:
        settings |= {"exact": options.exact, "explain": True}
        if options.expand is not None:
            settings["expand"] = whole_number("--expand", options.expand, at_least=0)
    return settings


def _queries(options: argparse.Namespace, index: Index) -> Iterator[_Queries]:
    if options.signatures is not None:
        yield from _signature_queries(options.signatures, index)
        return
    signer = _signer(index, options.index)
    if options.queries:
        for begin in range(0, len(options.queries), _AT_A_TIME):
            texts = options.queries[begin : begin + _AT_A_TIME]
            yield _signed(texts, texts, signer, options.threads)
        return
    corpus = corpus_of([options.file], options)
    columns = find_columns(corpus, options.text, options.id)
    row = 0
    problems = Problems(options.skip_bad)
    for batch in corpus.read(columns.names, problems):
        texts = text_strings(batch.column(0), columns.text, corpus).fill_null("").to_pylist()
        labels: Any = list(range(row, row + len(texts)))
        if columns.id:
            labels = id_strings(batch.column(1), row).to_pylist()
        for begin in range(0, len(texts), _AT_A_TIME):
            part = slice(begin, begin + _AT_A_TIME)
            yield _signed(labels[part], texts[part], signer, options.threads)
        row += len(texts)
    warn_left_out(problems.bad, problems.examples)


def _signature_queries(path: Path, index: Index) -> Iterator[_Queries]:
    queries = open_index(path)
    both = (queries.signer, index.signer)
    if None not in both and both[0] != both[1]:
        raise SignatureError(
            f"{path} was signed by {both[0]!r}, the index holds signatures of {both[1]!r}; sign "
            "the queries again with --like INDEX"
        )
    signatures, ids = queries.living()
    for begin in range(0, len(ids), _AT_A_TIME):
        part = slice(begin, begin + _AT_A_TIME)
        labels: Any = [queries.name(id) for id in ids[part].tolist()]
        yield _Queries(labels, signatures[part], [])


def _signer(index: Index, path: Path) -> DocumentSigner:
    signer = index.signer
    if signer is None:
        raise ArgumentError(
            f"{path} does not say how its documents were signed; look for --signatures FILE, or "
            "make it from a file of `lookalike sign`"
        )
    if not isinstance(signer, DocumentSigner) or not signer.features.is_document(""):
        raise ArgumentError(
            f"{path} was signed by {signer!r}, which takes no texts; look for --signatures FILE"
        )
    return signer


def _signed(
    labels: Sequence[str | int], texts: list[str], signer: DocumentSigner, threads: int | None
) -> _Queries:
    counts = signer.feature_counts(texts, threads=threads)
    signatures = signer.sign(texts, threads=threads)
    return _Queries(labels, signatures, np.flatnonzero(counts == 0).tolist())


class _Lines:
    """A JSON object for each query."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def begin(self, labels: Sequence[str | int]) -> None:
        """Nothing comes before the lines."""

    def query(
        self, label: str | int, ids: list[int], distances: NDArray[np.int32], exact: bool
    ) -> None:
        """Print one."""
        results: list[dict[str, Any]] = [
            {"id": self._index.name(id), "distance": distance}
            for id, distance in zip(ids, distances.tolist(), strict=True)
        ]
        if self._index.signer is not None:
            estimates = estimated_similarity(self._index.signer, distances, self._index.bits)
            for result, estimate in zip(results, np.round(estimates, 4).tolist(), strict=True):
                result["estimate"] = estimate
        say_json({"query": label, "exact": exact, "results": results})


class _Table:
    """A row for each result; columns are as wide as the first queries and results need."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._query_width = self._id_width = 0

    def begin(self, labels: Sequence[str | int]) -> None:
        """Look at the queries that come next."""
        self._query_width = self._query_width or max(len(_shortened(one)) for one in labels)

    def query(
        self, label: str | int, ids: list[int], distances: NDArray[np.int32], exact: bool
    ) -> None:
        """Print the results of one."""
        query = _shortened(label)
        names = [shown(self._index.name(id), _LONGEST_ID) for id in ids]
        if not self._id_width:
            self._query_width = max(5, self._query_width)
            self._id_width = max(8, *map(len, names), 8)
            self._row("query", "id", "distance", "estimate", "exact")
        estimates = ["-"] * len(ids)
        if self._index.signer is not None:
            values = estimated_similarity(self._index.signer, distances, self._index.bits)
            estimates = [f"{value:.2f}" for value in values.tolist()]
        if not ids:
            self._row(query, "-", "-", "-", "yes" if exact else "no")
        for name, distance, estimate in zip(names, distances.tolist(), estimates, strict=True):
            self._row(query, name, str(distance), estimate, "yes" if exact else "no")

    def _row(self, query: str, name: str, distance: str, estimate: str, exact: str) -> None:
        say(
            f"{query:<{self._query_width}}  {name:<{self._id_width}}  {distance:>8}  "
            f"{estimate:>8}  {exact}"
        )


def _shortened(label: str | int) -> str:
    query = shown(" ".join(str(label)[:_LONGEST_ID].split()))
    return query if len(query) <= _LONGEST_QUERY else query[: _LONGEST_QUERY - 3] + "..."
