"""`search`: what is near a text, a document or a signature, or has the same parts?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike.checks import share
from lookalike.cli.commands.audio import clock
from lookalike.cli.commands.collection.content import (
    action,
    given_signature,
    given_text,
    of_files,
    opened,
    text_arguments,
    typed_text,
    without_preview,
)
from lookalike.cli.common import radius_of
from lookalike.cli.finding.options import chosen_mask, warn_masked, without_threshold
from lookalike.cli.finding.origin import similarity_by
from lookalike.cli.finding.vectors import npy_vectors
from lookalike.cli.parser import Subparsers, refuse_given
from lookalike.cli.terminal import say, say_json, warn
from lookalike.collection import Answer, Match
from lookalike.collection.query import BY, Question
from lookalike.common_passages.signing import PassageHash
from lookalike.errors import ArgumentError, DocumentError, FileError, NotFoundError, Said
from lookalike.features import MEASURES, unrounded
from lookalike.parts.signer import PartSigner, SignedParts
from lookalike.shown import counted, escape_json, escape_terminal
from lookalike.signatures.files import is_npy
from lookalike.signatures.signer import DocumentSigner

if TYPE_CHECKING:
    from lookalike.collection import Collection

_OF_ONE_SIGNATURE = {
    "threshold": None, "compare": False, "measure": None, "mask": "auto", "by": "auto",
}  # fmt: skip
"""Options that are for documents of one signature, and their defaults."""
_NOT_FOR_VECTORS = (
    "radius", "threshold", "measure", "min_score", "like", "signature", "compare", "explain",
)  # fmt: skip


def declare(actions: Subparsers) -> None:
    """Declare the actions."""
    action(
        actions, "search", _search, "find the documents nearest to a text, document or signature",
        f"""
{text_arguments("text to search for")}
  | like:--by-id       TEXT is the id of a document of the collection
  | signature:--hex    TEXT is a signature in hexadecimal
  --vector FILE        .npy file of a vector: find documents by their vectors; with TEXT, fuse both
                       rankings
  -k K=10              number of documents
  | --radius N         maximum Hamming distance, in bits
  | --threshold
  --where JSON         condition on metadata, as a JSON object
  --columns LIST       metadata to show, such as title,url (default: all but previews)
  --by {"|".join(BY)}=auto  search by the words of TEXT, or by its signature; auto: by words if
                       there is a keyword index and TEXT is short
  --json
advanced options:
  --compare            compare the stored texts: exact similarities, for --threshold and the order
  --measure {"|".join(MEASURES)}  similarity of --compare (default: that of the signatures)
  --min-score SHARE    minimum share of the query's parts, above 0 to 1; passages and recordings
  --plan sql|native    search in the database, or in an index in memory (default: sql, or native for
                       passages and recordings)
  --mask
  --explain            print which bits differ, and the work done""",
        'docs.db "The quick brown fox"', "docs.db fox --by-id --radius 20 --explain",
        "docs.db --file page.txt --threshold 0.8", 'docs.db "quick foxes" --vector fox.npy',
    )  # fmt: skip


def _search(options: argparse.Namespace) -> None:
    if not options.compare:
        refuse_given(options, ("measure",), "needs --compare")
    if options.threshold is not None:
        refuse_given(options, ("measure",), "and --threshold exclude each other; use one of them")
    by = _by(options)
    without_threshold(options)
    if options.min_score is not None:
        share("min_score", options.min_score)  # before a collection that has no use for it
    with opened(options) as docs:
        if options.vector is not None:
            _search_vector(docs, options)
            return
        if docs.parts:
            _search_parts(docs, options)
            return
        Question(k=1, min_score=options.min_score).refuse_votes(docs.name)
        exclude = []
        query: Any
        text: str | None = None
        if options.like:
            id = typed_text(options)
            document = docs.get(id)
            if document is None:
                raise NotFoundError(f"there is no document {id[:80]!r}")
            query, exclude, text = document.signature, [document.id], document.text
        elif options.signature:
            query = given_signature(typed_text(options), docs)
        else:
            query = text = given_text(options, docs)
        radius = radius_of(options, docs.signer, docs.bits, proposing=options.compare)
        asked: dict[str, Any] = {
            "where": options.where, "exclude": exclude, "explain": options.explain,
            "text": options.compare, "plan": options.plan or "sql",
        }  # fmt: skip
        if options.compare and options.threshold is not None and radius is not None:
            # The nearest signatures need not be those of the most similar documents.
            answer = docs.within(query, radius, **asked)
        else:
            mask = chosen_mask(options, whole=not isinstance(query, str))
            answer = docs.search(query, options.k, radius=radius, mask=mask, by=by, **asked)
        usually = options.by == "auto" and isinstance(query, str)
        if options.explain and usually and docs.stats()["words"]:
            warn("--explain compares signatures; without it, a short TEXT is searched by its words")
        if answer.by == "words":
            _print_words(answer, options)
            return
        similar = _compared(docs, text, answer, options) if options.compare else None
        estimates = answer.similarities
    if options.json or options.compare or not answer.no_match:
        _print_answer(answer, similar, estimates, options)
    if answer.no_match:
        warn(answer.no_match, kind="")
    if answer.masked:
        warn_masked(1)


def _search_vector(docs: Collection, options: argparse.Namespace) -> None:
    """Print the documents nearest to a vector, or to a text and a vector."""
    refuse_given(options, _NOT_FOR_VECTORS, "is not for --vector")
    text = None
    if options.text is not None or options.file is not None:
        text = given_text(options, docs)
    path = Path(options.vector)
    if not is_npy(path):
        raise ArgumentError(
            Said("--vector"), f" is {path}; expected a .npy file of one vector, of numpy.save"
        )
    vectors = np.atleast_2d(npy_vectors(path))
    if len(vectors) != 1:
        raise ArgumentError(Said("--vector"), f" has {len(vectors)} vectors; expected one")
    by: Any = options.by if text is not None else "auto"
    answer = docs.search(
        text, options.k, vector=vectors[0], where=options.where, plan=options.plan or "sql", by=by
    )
    for match in answer:
        chosen = _chosen_metadata(match.metadata, options)
        if options.json:
            line = {"id": match.id, "score": match.score, "metadata": chosen}
            say_json({**line, "ranks": match.ranks} if match.ranks else line)
            continue
        metadata = escape_json(chosen) if chosen else ""
        say(f"{match.score or 0.0:7.4f}  {escape_terminal(match.id)}  {metadata}".rstrip())


def _by(options: argparse.Namespace) -> Any:
    """Return how to search; texts are compared, and bits explained, of similar documents."""
    of_signatures = ("compare", "explain", "like", "signature")
    if options.by == "words":
        refuse_given(options, (*of_signatures, "threshold"), "is not for --by words")
    return "similar" if any(getattr(options, name) for name in of_signatures) else options.by


def _print_words(answer: Answer, options: argparse.Namespace) -> None:
    """Print documents that have words of the query; say if there are none."""
    for match in answer:
        chosen = _chosen_metadata(match.metadata, options)
        shared, score = match.words or (), match.score or 0.0
        if options.json:
            found = {"id": match.id, "score": round(score, 4), "words": shared}
            say_json({**found, "metadata": chosen})
            continue
        metadata = escape_json(chosen) if chosen else ""
        line = f"{score:4.0%}  {escape_terminal(match.id)}  {metadata}".rstrip()
        say(f"{line}  shares the words {escape_terminal(', '.join(shared))}")
    if answer.no_match:
        warn(answer.no_match, kind="")


def _compared(
    docs: Collection, text: str | None, answer: Answer, options: argparse.Namespace
) -> list[float | None]:
    """Return the similarity of each result to the query; None where no text is stored."""
    if text is None or not isinstance(docs.signer, DocumentSigner):
        raise ArgumentError(
            Said("--compare"),
            " needs a text to search for, and a collection that signs texts",
        )
    places = [place for place, match in enumerate(answer) if match.text is not None]
    documents = [text, *(match.text for match in answer if match.text is not None)]
    right = np.arange(1, len(documents))
    left = np.zeros_like(right)
    if len(answer) and not places:
        raise ArgumentError(Said("--compare"), " needs stored texts, but the results have none")
    values = similarity_by(options.measure, docs.signer, documents, left, right)
    values = unrounded(values, options.threshold)
    found: list[float | None] = [None] * len(answer)
    for place, value in zip(places, values.tolist(), strict=True):
        found[place] = value
    return found


def _printed(
    answer: Answer, similar: Sequence[float | None] | None, options: argparse.Namespace
) -> list[int]:
    """Return which of an answer are told: with a threshold, the k most similar that reach it."""
    places = list(range(len(answer)))
    if similar is None or options.threshold is None:
        return places
    likeness = {place: similar[place] or 0.0 for place in places}
    reached = [place for place in places if likeness[place] >= options.threshold]
    return sorted(reached, key=lambda place: -likeness[place])[: options.k]


def _print_answer(
    answer: Answer,
    similar: Sequence[float | None] | None,
    estimates: Sequence[float | None],
    options: argparse.Namespace,
) -> None:
    in_bits = options.explain or options.radius is not None
    for place in _printed(answer, similar, options):
        match = answer[place]
        chosen = _chosen_metadata(match.metadata, options)
        if options.json:
            line = {"id": match.id, "distance": match.distance}
            estimate = estimates[place]
            known = None if estimate is None else round(estimate, 4)
            line |= {"estimate": known, "metadata": chosen}
            if answer.masked:
                line["masked"] = True
            if similar is not None:
                line["similarity"] = similar[place]
            if options.explain:
                line |= {"differing_bits": match.differing_bits, "slices": match.slices}
                line |= {"slice_distances": match.slice_distances}
            say_json(line)
            continue
        metadata = escape_json(chosen) if chosen else ""
        value = estimates[place] if similar is None else similar[place]
        digits = ".0%" if similar is None else ".2%"
        near = f"{'-' if value is None else format(value, digits):>{4 if similar is None else 7}}"
        shown = f"{near}  {escape_terminal(match.id)}  {metadata}".rstrip()
        say(f"{shown}  {counted(match.distance, 'bit')}" if in_bits else shown)
        if options.explain:
            say(f"       bits {list(match.differing_bits or ())}")
    if options.explain and answer.work is not None:
        work = answer.work
        say(
            f"{work.plan}: {counted(work.probes, 'slice value')} looked up, "
            f"{counted(work.candidates, 'signature')} compared; version {answer.version}, "
            f"{'complete' if answer.exact else 'not complete'}",
            file=sys.stderr,
        )


# Documents of many parts: which of them, and where


def _search_parts(docs: Collection, options: argparse.Namespace) -> None:
    """Print the documents that most parts of the query vote for."""
    refuse_given(
        options,
        _OF_ONE_SIGNATURE,
        f"does nothing: documents of {docs.name!r} have many parts, not one signature",
    )
    exclude = [typed_text(options)] if options.like else []
    query = _query(docs, options)
    if len(query.offsets) == 0:
        warn("the query has no parts (no words, silence, or too short); nothing can be found")
    signer = docs.signer
    if isinstance(signer, PassageHash) and len(query.offsets) == 1:
        warn(
            f"the query is a single passage; with {signer.words + signer.step} words or more, some "
            "of its passages are certain to line up with those of documents"
        )
    answer = docs.search(
        query, options.k, radius=options.radius, where=options.where, exclude=exclude,
        explain=options.explain, plan=options.plan, min_score=options.min_score,
    )  # fmt: skip
    for match in answer:
        _print_place(match, options, in_time=of_files(docs.signer))
    if answer.left_out:
        warn(
            f"{counted(answer.left_out, 'part')} of {len(query.offsets):,} had no vote: they are "
            "in too many documents",
            kind="",
        )


def _query(docs: Collection, options: argparse.Namespace) -> SignedParts:
    """Return the parts of the query; files are read in isolated processes."""
    if options.like:
        return docs.parts_of(typed_text(options))
    if options.signature:
        given_signature(typed_text(options), docs)  # which is refused
    signer, text = docs.signer, given_text(options, docs)
    if not isinstance(signer, PartSigner):
        raise ArgumentError(
            f"the collection {docs.name!r} has no signer, so it cannot be searched by a text; "
            "search for one of its documents with --by-id"
        )
    if not signer.reads_files:
        return signer.sign_query(text)
    (found,) = signer.sign_each([text], threads=1)
    if isinstance(found, DocumentError):
        raise FileError(f"{text} {found}")
    return found


def _print_place(match: Match, options: argparse.Namespace, in_time: bool) -> None:
    chosen = _chosen_metadata(match.metadata, options)
    offset, score = match.offset or 0, match.score or 0.0
    if options.json:
        line: dict[str, Any] = {"id": match.id, "offset": offset, "score": round(score, 4)}
        line |= {name: getattr(match, name) for name in ("start", "query_start", "length")}
        line |= {"votes": match.votes, "distance": match.distance, "metadata": chosen}
        say_json({**line, "parts": match.parts} if options.explain else line)
        return
    place = clock(offset / 1000) if in_time else f"{offset:,}"
    metadata = escape_json(chosen) if chosen else ""
    say(f"{place:>8}  {score:5.2f}  {escape_terminal(match.id)}  {metadata}".rstrip())
    if options.explain:
        for part, own, distance in match.parts or ():
            say(f"          part {part} is part {own} of it, but for {counted(distance, 'bit')}")


def _chosen_metadata(metadata: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return what is to be shown of the metadata; what a document does not have is null."""
    if options.columns is None:
        return metadata if options.json else without_preview(metadata)
    return {name: metadata.get(name) for name in options.columns.split(",")}
