"""`search`: what is near a text, a document or a signature, or has the same parts?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike.checks import share
from lookalike.cli.audio import clock
from lookalike.cli.collection.content import (
    JSON_LINES,
    action,
    given_signature,
    given_text,
    of_files,
    opened,
    text_arguments,
    typed_text,
)
from lookalike.cli.common import THRESHOLD, radius_of
from lookalike.cli.finding.options import MASK, chosen_mask, warn_masked, without_threshold
from lookalike.cli.finding.origin import similarity_by
from lookalike.cli.parser import Subparsers, refuse_given
from lookalike.cli.terminal import say, say_json, warn
from lookalike.collection import Answer, Match
from lookalike.collection.query import Question
from lookalike.common_passages.signing import PassageHash
from lookalike.errors import ArgumentError, DocumentError, FileError, NotFoundError, Said
from lookalike.features import MEASURES, unrounded
from lookalike.parts.signer import PartSigner, SignedParts
from lookalike.shown import counted, escape_json, escape_terminal
from lookalike.signatures.signer import DocumentSigner

if TYPE_CHECKING:
    from lookalike.collection import Collection

_OF_ONE_SIGNATURE = {"threshold": None, "compare": False, "measure": None, "mask": "auto"}
"""Options that are for documents of one signature, and their defaults."""


def declare(actions: Subparsers) -> None:
    """Declare the actions."""
    action(
        actions, "search", _search, "find the documents nearest to a text, document or signature",
        f"""
{text_arguments("what to look for")}
  | --like           TEXT is the id of a document
  | --signature      TEXT is a signature, in hex
  -k K=10            number of documents
  | --radius N       number of bits that may differ
{THRESHOLD}
  --where JSON       condition on metadata
  --plan sql|native  search in the database, or in an index in memory (default: sql, or native for
                     passages and recordings)
  --min-score SHARE  of passages and recordings: share of the parts looked for, above 0 to 1
  --columns LIST     columns of the metadata to show: title,url
  --compare          compare the documents themselves, where texts are kept: exact similarities, by
                     which --threshold goes, and then the order
  --measure {"|".join(MEASURES)}  with --compare: of what (default: what the signatures estimate,
                     jaccard or cosine)
{MASK}
  --explain          say which bits differ, and why
{JSON_LINES}""",
        'docs.db "The quick brown fox"', "docs.db fox --like --radius 20 --explain",
        "docs.db --file page.txt --threshold 0.8",
        "docs.db - -k 3 --where '{\"lang\": \"en\"}' --json < page.txt",
    )  # fmt: skip


def _search(options: argparse.Namespace) -> None:
    if not options.compare:
        refuse_given(options, ("measure",), "goes with --compare; add it, or leave this out")
    if options.threshold is not None:
        other = "shows another similarity than the one by which signatures propose at a --threshold"
        refuse_given(options, ("measure",), f"{other}; leave one of them out")
    without_threshold(options)
    if options.min_score is not None:
        share("min_score", options.min_score)  # before a collection that has no use for it
    with opened(options) as docs:
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
            answer = docs.search(query, options.k, radius=radius, mask=mask, **asked)
        similar = _compared(docs, text, answer, options) if options.compare else None
    _print_answer(answer, similar, options)
    if answer.masked:
        warn_masked(1)


def _compared(
    docs: Collection, text: str | None, answer: Answer, options: argparse.Namespace
) -> list[float | None]:
    """Return how similar what was found is to what was looked for; None where no text is kept."""
    if text is None or not isinstance(docs.signer, DocumentSigner):
        raise ArgumentError(
            Said("--compare"),
            " needs the text that is looked for, and a collection that signs texts; leave it out",
        )
    places = [place for place, match in enumerate(answer) if match.text is not None]
    documents = [text, *(match.text for match in answer if match.text is not None)]
    right = np.arange(1, len(documents))
    left = np.zeros_like(right)
    if len(answer) and not places:
        raise ArgumentError(
            Said("--compare"), " needs texts, and what was found has none; leave it out"
        )
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
    answer: Answer, similar: Sequence[float | None] | None, options: argparse.Namespace
) -> None:
    for place in _printed(answer, similar, options):
        match = answer[place]
        chosen = _chosen_metadata(match.metadata, options)
        if options.json:
            line = {"id": match.id, "distance": match.distance, "metadata": chosen}
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
        near = f"{match.distance:5}"
        if similar is not None:
            value = similar[place]
            near += f"  {'-' if value is None else format(value, '.4f'):>6}"
        say(f"{near}  {escape_terminal(match.id)}  {metadata}".rstrip())
        if options.explain:
            say(f"       bits {list(match.differing_bits or ())}")
    if options.explain and answer.work is not None:
        work = answer.work
        say(
            f"{work.plan}: {work.probes} slice values looked up, {work.candidates} signatures "
            f"compared; version {answer.version}, "
            f"{'complete' if answer.exact else 'not complete'}",
            file=sys.stderr,
        )


# Documents of many parts: which of them, and where


def _search_parts(docs: Collection, options: argparse.Namespace) -> None:
    """Print the documents that most parts of what is looked for vote for."""
    refuse_given(
        options,
        _OF_ONE_SIGNATURE,
        f"is for documents of one signature, and those of {docs.name!r} have many parts: leave it "
        "out",
    )
    exclude = [typed_text(options)] if options.like else []
    query = _query(docs, options)
    if len(query.offsets) == 0:
        warn("what is looked for has no parts (no words, silence, or too short): nothing is found")
    signer = docs.signer
    if isinstance(signer, PassageHash) and len(query.offsets) == 1:
        warn(
            f"what is looked for is a single passage; of {signer.words + signer.step} words or "
            "more, some passages are surely compared with their like"
        )
    answer = docs.search(
        query, options.k, radius=options.radius, where=options.where, exclude=exclude,
        explain=options.explain, plan=options.plan, min_score=options.min_score,
    )  # fmt: skip
    for match in answer:
        _print_place(match, options, in_time=of_files(docs.signer))
    if answer.left_out:
        warn(
            f"{counted(answer.left_out, 'part')} of {len(query.offsets):,} had no vote: too many "
            "documents have them",
            kind="",
        )


def _query(docs: Collection, options: argparse.Namespace) -> SignedParts:
    """Return the parts of what is looked for; files are read where they can do no harm."""
    if options.like:
        return docs.parts_of(typed_text(options))
    if options.signature:
        given_signature(typed_text(options), docs)  # which is refused
    signer, text = docs.signer, given_text(options, docs)
    if not isinstance(signer, PartSigner):
        raise ArgumentError(
            f"the collection {docs.name!r} has no signer, so that it cannot be searched by a text; "
            "look for a document that it has with --like"
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
        return metadata
    return {name: metadata.get(name) for name in options.columns.split(",")}
