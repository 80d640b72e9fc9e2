"""`search` of documents that have many parts: which of them, and where."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lookalike.cli.audio.search import clock
from lookalike.cli.collection.action import given_signature, given_text, of_files, typed_text
from lookalike.cli.terminal import say, say_json, warn
from lookalike.collection import Match
from lookalike.errors import ArgumentError, DocumentError, FileError, Said
from lookalike.excerpts import PassageHash
from lookalike.parts.signer import PartSigner, SignedParts
from lookalike.shown import counted, shown, shown_json

if TYPE_CHECKING:
    from lookalike.collection import Collection

__all__ = ["chosen_metadata", "search_parts"]

_OTHERS = {"threshold": None, "compare": False, "measure": None, "mask": "auto"}
"""Options that are for documents of one signature, and what they are if not typed."""


def search_parts(docs: Collection, options: argparse.Namespace) -> None:
    """Print the documents that most parts of what is looked for vote for."""
    for name, usual in _OTHERS.items():
        if getattr(options, name) != usual:
            raise ArgumentError(
                Said(f"--{name}"),
                f" is for documents of one signature, and those of {docs.name!r} have many parts: "
                "leave it out",
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
        explain=options.explain, way=options.way, min_score=options.min_score,
    )  # fmt: skip
    for match in answer:
        _print(match, options, in_time=of_files(docs.signer))
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


def _print(match: Match, options: argparse.Namespace, in_time: bool) -> None:
    chosen = chosen_metadata(match.metadata, options)
    offset, score = match.offset or 0, match.score or 0.0
    if options.json:
        line: dict[str, Any] = {"id": match.id, "offset": offset, "score": round(score, 4)}
        line |= {"votes": match.votes, "distance": match.distance, "metadata": chosen}
        say_json({**line, "parts": match.parts} if options.explain else line)
        return
    place = clock(offset / 1000) if in_time else f"{offset:,}"
    metadata = shown_json(chosen) if chosen else ""
    say(f"{place:>8}  {score:5.2f}  {shown(match.id)}  {metadata}".rstrip())
    if options.explain:
        for part, own, distance in match.parts or ():
            say(f"          part {part} is part {own} of it, but for {counted(distance, 'bit')}")


def chosen_metadata(metadata: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return what is to be shown of the metadata; what a document does not have is null."""
    if options.columns is None:
        return metadata
    return {name: metadata.get(name) for name in options.columns.split(",")}
