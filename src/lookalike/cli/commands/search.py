"""`lookalike search`: what is near these texts?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import whole_number
from lookalike.cli import common
from lookalike.cli.finding.answers import LONGEST_ID, Found, Lines, Table
from lookalike.cli.finding.options import (
    chosen_mask,
    expect_masks,
    flip_settings,
    needs_weights,
    warn_masked,
)
from lookalike.cli.finding.origin import Origin
from lookalike.cli.finding.queries import Queries, is_signature_file, queries_of, take_files
from lookalike.cli.finding.vectors import has_vectors, npy_vectors, vector_queries
from lookalike.cli.parser import ADVANCED, Parser, refuse_given
from lookalike.cli.terminal import warn
from lookalike.errors import ArgumentError, LookalikeError, Said
from lookalike.features import MEASURES, RARITY_MEASURES, Words
from lookalike.indexes import Index, Matches, Neighbors, open_index
from lookalike.indexes.kinds import kind_in
from lookalike.progress import watched
from lookalike.shown import escape_terminal
from lookalike.signatures import Signer
from lookalike.signatures.estimates import chance_distance, estimated_pairs, set_bits
from lookalike.storage.container import open_container
from lookalike.storage.files import is_there
from lookalike.vectors import VectorIndex
from lookalike.vectors.given import as_cosine

_NOT_OF_VECTORS = {
    **dict.fromkeys(
        "radius text skip_bad max_document html page_limits strip_urls origin columns measure "
        "common expand admit rerank cull flips first".split()
    ),
    "mask": "auto",
}
"""Options that say nothing of vectors, and their defaults."""

TASK = "search"
PURPOSE = "find the nearest documents of an index"
DESCRIPTION = "Find the nearest documents, or all similar ones, for texts, files or signatures."
ARGUMENTS = f"""
  INDEX                file of `lookalike index` or `lookalike sign`, .npy or .npz
  queries:[QUERY...]   texts, or a file with queries
  --file CORPUS        read the queries from this corpus, one per document
  --signatures FILE    read the queries from this file of signatures
results:
  | -k K=10            number of nearest documents
  | --radius N         all documents within this Hamming distance, in bits
  | --threshold
  --exact              search until the answer is proven exact
  origin:--in
  --columns LIST       columns of the --in corpus to show, such as title,url
  --json
queries from a file:
{common.CORPUS}
  --vectors COLUMN     column with the vectors (default: detected)
advanced options:
{common.CORPUS_DETAILS}
{common.STRIP_URLS}
  --measure {"|".join((*MEASURES, *RARITY_MEASURES))}  similarity of documents, with --in;
                       weighted-...: features weigh by their rarity there (default: that of the
                       signatures)
  --mask
  --expand N           slices: bits of a slice that may differ (default: 3, or a scan where faster)
  --admit N            slices: bits of a slice up to which new candidates are admitted (default: the
                       same as --expand)
  --rerank N           slices: candidates whose distance is computed; 0 ranks by score (default:
                       1000, or 10 K if that is more)
  --cull pessimistic|optimistic|both  slices: compare the candidates that are nearest at worst, at
                       best, or all that may be near enough (default: pessimistic)
  --probe N            clusters and vectors: number of groups to read (default: every 12th, or as
                       many as near-duplicates need; for vectors every 8th, at least 32)
  --recall SHARE       flips: share of the matches to find, with --radius or --threshold (default:
                       all of them); vectors: share of the nearest, measured by `index --recall`
  --flips N            flips: number of flips per query, instead of --recall
  --first              blocks and flips: only the first match found per query
  --candidates N       vectors: number of candidates to compare (default: 4 K, at least 64)
  --no-checksums       do not verify the whole index before the first answer
  --threads
"""
EXAMPLES = """\
  lookalike search index.lookalike "the text of a document" -k 5
  lookalike search index.lookalike new.jsonl --threshold 0.8 --in corpus.jsonl
  lookalike search vectors.lookalike new.parquet --vectors embedding -k 5
"""
DETAILS = """\
columns of the table:
  query     the text (shortened), or its id in the corpus of --file
  id        id of the document, or its position where the index has no ids
  distance  Hamming distance of the signatures, in bits
  estimate  similarity derived from the distance (Jaccard for minhash, otherwise cosine);
            for masked queries from the distance in all bits
  exact     whether no nearer document (with --radius: no document within) can be missing
  score     instead of distance and estimate with --rerank 0: agreeing bits of the slices read

A QUERY that is the name of a file is replaced by its content; - reads a text from standard input.
A QUERY whose nearest documents are as far away as random signatures has no match; --json lists
these documents. With --in CORPUS, the signed corpus, documents are compared themselves: similarity
is exact, sorts the results, and --threshold applies to it. Signatures propose, and miss about 1% of
the documents at the threshold. With another --measure or with --common, --threshold compares every
document. An index of vectors takes vectors: a column of --file, a .npy file, or a QUERY such as
"[0.1, 0.2]" (docs/commands.md).
"""


def add(parser: Parser) -> None:
    """Declare the settings that `dedup` has, too."""
    common.add_settings(parser, ADVANCED, only=("common",))


def run(options: argparse.Namespace) -> None:
    """Search and print."""
    if not is_there(options.index) and (files := list(filter(is_signature_file, options.queries))):
        raise ArgumentError(
            f"there is no index {options.index}; INDEX comes first: lookalike search {files[0]} ..."
        )
    take_files(options)
    given = [bool(options.queries), options.file is not None, options.signatures is not None]
    if not any(given) and not is_there(options.index):
        query = escape_terminal(repr(str(options.index)), LONGEST_ID)
        raise ArgumentError(
            f"there is no index {query}; INDEX comes first: lookalike search INDEX {query}"
        )
    if sum(given) != 1:
        raise ArgumentError(
            Said("queries"),
            ": expected texts, or a file, or --file CORPUS, or --signatures FILE",
        )
    index = _opened(options)
    show: Lines | Table = Lines()
    if isinstance(index, VectorIndex):
        answers = _vector_answers(options, index)
        if not options.json:
            show = Table((), compared=True, vectors=True)
    else:
        of_vectors = ("vectors", "candidates")
        refuse_given(options, of_vectors, "needs an index of vectors")
        origin = Origin.of(options, index)
        settings = _settings(options, index, origin)
        compared = origin is not None and options.signatures is None
        if not options.json:
            scored = settings.get("rerank") == 0
            show = Table(_columns(options), compared=compared, scored=scored)
        answers = _answers(options, index, settings)
        if origin is not None:
            answers = _looked_up(list(answers), origin, options)
    short = 0
    # Where results are printed to a terminal, they are the progress.
    with watched("search", quiet=sys.stdout is None or sys.stdout.isatty()):
        for queries, found in answers:
            show.begin(queries.labels)
            short += len(queries.masked)
            for number, (label, one) in enumerate(zip(queries.labels, found, strict=True)):
                if number in queries.empty:
                    shown = escape_terminal(repr(label), LONGEST_ID)
                    warn(f"{shown} {queries.nothing}; there is nothing to search for")
                    one = _Answer([], True)
                no_match = one.by_chance and options.queries  # not for each text of a corpus
                found_here = [] if no_match and not options.json else one.found
                show.query(label, found_here, one.exact, masked=number in queries.masked)
                if no_match:
                    warn(_no_match(label, index), kind="")
    if short:
        warn_masked(short)


def _opened(options: argparse.Namespace) -> Index | VectorIndex:
    """Return the index of a file; of signatures or vectors alone, one that is made of them."""
    path, verify = options.index, not options.no_checksums
    if has_vectors(path):
        return VectorIndex(npy_vectors(path), threads=options.threads)
    with suppress(LookalikeError):  # opening it reports what is wrong
        if kind_in(open_container(path, verify=False)).holds == "vectors":
            return VectorIndex.load(path, verify=verify)
    return open_index(path, verify=verify)


@dataclass(frozen=True)
class _Answer:
    found: list[Found]
    exact: bool
    """Whether nothing nearer can be missing."""
    by_chance: bool = False
    """Whether even the nearest is as far away as random signatures."""


def _answers(
    options: argparse.Namespace, index: Index, settings: dict[str, Any]
) -> Iterator[tuple[Queries, list[_Answer]]]:
    """Yield what the index finds."""
    weighted = needs_weights(options)
    estimate = _Estimate.of(options, index)
    # Short texts are masked, unless all of their bits are asked for.
    of_all_bits = ("radius", "threshold", "expand", "admit", "rerank", "cull")
    whole = any(getattr(options, name) is not None for name in of_all_bits)
    mask = chosen_mask(options, whole or not index.takes_masks)
    for queries in queries_of(options, index, mask, weighted=weighted):
        answers: dict[int, _Answer] = {}
        for places, masks in queries.parts():
            asked = queries.signatures[places]
            some = settings if masks is None else {**settings, "masks": masks}
            if queries.weights is not None:
                some = {**some, "weights": queries.weights[places]}
            if "radius" in settings:
                found: Neighbors | Matches = index.within(asked, **some)
            else:
                found = index.search(asked, **some)
            told = _told(index, found, some, asked, estimate)
            answers |= zip(places.tolist(), told, strict=True)
        yield queries, [answers[place] for place in range(len(queries.labels))]


@dataclass(frozen=True, eq=False)
class _Estimate:
    """Estimates similarities of a query and documents; those below `least` are not results."""

    signer: Signer
    least: float
    signatures: NDArray[np.uint8]
    """Of all documents, if estimates depend on them; else none."""
    ids: NDArray[np.int64]

    @classmethod
    def of(cls, options: argparse.Namespace, index: Index) -> _Estimate | None:
        """Return what estimates similarities, or None if the signer is not known."""
        if index.signer is None:
            return None
        # With --in, the threshold applies to exact similarities.
        exact = options.threshold is None or (options.origin and options.signatures is None)
        signatures, ids = np.empty((0, index.bits // 8), np.uint8), np.empty(0, np.int64)
        if index.signer.sparse:
            signatures, ids = index.living()
            order = np.argsort(ids, kind="stable")
            signatures, ids = signatures[order], ids[order]
        return cls(index.signer, 0.0 if exact else options.threshold, signatures, ids)

    def __call__(
        self, query: NDArray[np.uint8], ids: NDArray[np.int64], distances: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        ones = np.zeros(len(ids), np.int64)
        if len(self.ids):
            rows = self.signatures[np.searchsorted(self.ids, ids)]
            ones = set_bits(rows) + set_bits(query[None])
        return estimated_pairs(self.signer, distances, 8 * len(query), ones)


def _told(
    index: Index,
    found: Neighbors | Matches,
    settings: dict[str, Any],
    asked: NDArray[np.uint8],
    estimate: _Estimate | None,
) -> Iterator[_Answer]:
    """Yield what was found for each query, with what is known of it: its score, or an estimate."""
    told = found.explanation
    exact = np.full(len(found), found.exact) if told is None else told.exact
    scores = getattr(found, "scores", None) if settings.get("rerank") == 0 else None
    for number, (proven, (ids, distances)) in enumerate(zip(exact.tolist(), found, strict=True)):
        if scores is not None:  # the only thing that is known
            points = scores[number][: len(ids)].tolist()
            both = zip(ids.tolist(), points, strict=True)
            documents = [Found(index.name(id), None, None, score=score) for id, score in both]
            yield _Answer(documents, proven)
            continue
        estimates: list[float | None] = [None] * len(ids)
        if estimate is not None and "masks" in settings:
            if found.unmasked is not None:
                whole = _of_query(found, found.unmasked, number)
                estimates = [*estimate(asked[number], ids, whole).tolist()]
        elif estimate is not None:
            values = estimate(asked[number], ids, distances)
            near = values >= estimate.least
            ids, distances, estimates = ids[near], distances[near], values[near].tolist()
        rows = zip(ids.tolist(), distances.tolist(), estimates, strict=True)
        documents = [Found(index.name(id), far, value) for id, far, value in rows]
        by_chance = False
        if "radius" not in settings and len(distances):
            masks = settings.get("masks")
            bits = index.bits if masks is None else int(np.bitwise_count(masks[number]).sum())
            by_chance = int(distances[0]) > chance_distance(bits, len(index))
        yield _Answer(documents, proven, by_chance)


def _of_query(
    found: Neighbors | Matches, values: NDArray[np.int32], number: int
) -> NDArray[np.int32]:
    """Return the values of the results of one query."""
    if isinstance(found, Matches):
        return values[found.offsets[number] : found.offsets[number + 1]]
    of_one: NDArray[np.int32] = values[number][found.ids[number] >= 0]
    return of_one


def _no_match(label: str | int, index: Index | VectorIndex) -> str:
    """Return that nothing matches a query, and what to do if it has too few words."""
    shown = escape_terminal(repr(label), LONGEST_ID)
    said = f"no match for {shown}: the nearest documents are as far away as random signatures"
    features = getattr(getattr(index, "signer", None), "features", None)
    lengths = features.ngram if isinstance(features, Words) else 1
    least = lengths if isinstance(lengths, int) else min(lengths)
    if least == 1:
        return said
    return (
        f"{said}. The index compares runs of {least} words. To search by a few words, use "
        "`lookalike collection create` and `import`, or `lookalike sign --for search`"
    )


def _vector_answers(
    options: argparse.Namespace, index: VectorIndex
) -> Iterator[tuple[Queries, list[_Answer]]]:
    """Yield what an index of vectors finds."""
    refuse_given(options, _NOT_OF_VECTORS, "does nothing with an index of vectors; leave it out")
    settings = _vector_settings(options, index)
    for queries in vector_queries(options, index.dimensions):
        ask: Any = index.within if "similarity" in settings else index.search
        found = ask(queries.signatures, **settings)
        answers = []
        for ids, cosines in found:
            both = zip(ids.tolist(), cosines.tolist(), strict=True)
            near = [Found(index.name(id), None, None, similarity=cosine) for id, cosine in both]
            answers.append(_Answer(near, found.exact))
        yield queries, answers


def _vector_settings(options: argparse.Namespace, index: VectorIndex) -> dict[str, Any]:
    """Return what the search is called with."""
    shared = {"threads": options.threads, "recall": options.recall}
    if options.exact:
        both = "and --exact exclude each other; use one of them"
        refuse_given(options, ("recall", "candidates", "probe"), both)
    if options.threshold is None:
        # More than there are is all of them.
        k = min(whole_number("k", options.k, at_least=1), max(1, len(index)))
        effort = {"candidates": options.candidates, "probe": options.probe}
        return {"k": k, "exact": options.exact, **effort, **shared}
    refuse_given(options, ("candidates", "probe"), "needs -k")
    return {"similarity": as_cosine(options.threshold, "threshold"), **shared}


def _looked_up(
    answers: list[tuple[Queries, list[_Answer]]], origin: Origin, options: argparse.Namespace
) -> Iterator[tuple[Queries, list[_Answer]]]:
    """Yield the answers with what the corpus has of the documents, and exact similarities."""
    columns = _columns(options)
    origin.read(
        {str(one.id) for _, some in answers for answer in some for one in answer.found}, columns
    )
    for queries, some in answers:
        compared = []
        for number, answer in enumerate(some):
            found = [replace(one, columns=origin.columns_of(one.id)) for one in answer.found]
            if queries.texts is not None:
                values = origin.compared(queries.texts[number], [one.id for one in found])
                both = zip(found, values, strict=True)
                found = [replace(one, similarity=value) for one, value in both]
                # Those that the corpus does not have come last.
                found.sort(
                    key=lambda one: -1 if one.similarity is None else one.similarity, reverse=True
                )
            if options.threshold is not None and queries.texts is not None:
                found = [one for one in found if (one.similarity or 0) >= options.threshold]
                # Signatures may not have proposed all, unless all were compared.
                answer = replace(answer, exact=answer.exact and origin.measure is not None)
            compared.append(replace(answer, found=found))
        yield queries, compared


def _columns(options: argparse.Namespace) -> list[str]:
    return [] if options.columns is None else options.columns.split(",")


def _settings(options: argparse.Namespace, index: Index, origin: Origin | None) -> dict[str, Any]:
    """Return what the search is called with."""
    settings: dict[str, Any] = {"threads": options.threads}
    proposing = origin is not None and options.signatures is None
    radius = common.radius_of(options, index.signer, index.bits, proposing=proposing)
    if options.signatures is not None:
        none = "compares documents, but --signatures has none; leave it out"
        refuse_given(options, ("measure", "common"), none)
    if options.threshold is not None and origin is not None and origin.measure is not None:
        radius = index.bits
    if radius is not None:
        settings["radius"] = radius
    else:
        # More than there are is all of them.
        settings["k"] = min(whole_number("k", options.k, at_least=1), max(1, len(index)))
    settings |= flip_settings(options, index)
    expect_masks(options, index)
    taken = index.settings("search" if radius is None else "within")
    for name, least in {"expand": 0, "admit": 0, "rerank": 0, "probe": 1}.items():
        if getattr(options, name) is not None:
            settings[name] = whole_number(name, getattr(options, name), at_least=least)
            if name not in taken:
                kind = "clusters" if name == "probe" else "slices"
                refuse_given(options, (name,), f"needs -k and an index of {kind}")
    if options.cull is not None:
        if "cull" not in taken:
            refuse_given(options, ("cull",), "needs -k and an index of slices")
        settings["cull"] = options.cull
    if settings.get("rerank") == 0 and origin is not None:
        raise ArgumentError(Said("--rerank"), " 0 and --in exclude each other; use one of them")
    if "explain" in taken:
        settings["explain"] = True
    if "exact" in taken:
        settings["exact"] = options.exact
    return settings
