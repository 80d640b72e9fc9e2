"""What is in a collection: `create`, `add`, `get` and `delete`."""

from __future__ import annotations

import argparse
import os

from lookalike.cli.collection.action import (
    action,
    add_text,
    database_name,
    given_signature,
    given_text,
    json_object,
    opened,
    typed_text,
)
from lookalike.cli.parser import Subparsers, add_json, add_number, add_switch
from lookalike.cli.terminal import say, tell, warn
from lookalike.collection import Document, list_collections, open_collection
from lookalike.errors import ArgumentError, NotFoundError, Said
from lookalike.excerpts import PassageHash
from lookalike.features import Chars, Combined, FeatureKind, Words
from lookalike.features.choice import typed_lengths
from lookalike.features.text import ngram_lengths
from lookalike.recordings import AudioHash
from lookalike.shown import shown, shown_json, shown_lines
from lookalike.signatures import Signer, SimHash, load_signer
from lookalike.signatures.methods import TEXT_SIGNERS, text_signer
from lookalike.signatures.signer import SIGNERS
from lookalike.signatures.simhash import signature_bits
from lookalike.suggestions import did_you_mean

_BITS = {**{name: SIGNERS[name].usual_bits for name in TEXT_SIGNERS}, "none": 128}
_PASSAGES, _RECORDINGS = "passages", "recordings"
_PASSAGE_BITS = 64
_METHODS = (*_BITS, _PASSAGES, _RECORDINGS)


def declare(actions: Subparsers) -> None:
    """Declare the actions."""
    create = action(
        actions, "create", _create, "make a new collection",
        "docs.db", "docs.db --method topsig --bits 1024", "docs.db --method none --bits 128",
        "books.db --method passages --words 30", "music.db --method recordings",
    )  # fmt: skip
    create.add_argument(
        "--method",
        "--signer",
        dest="method",
        default="simhash",
        help="simhash, topsig or bbitminhash, which sign texts; none: signatures are given; "
        "passages: texts that are found by a passage; recordings: files that are found by a "
        "snippet; or a file that Signer.save wrote (default simhash)",
    )
    bits = ", ".join(
        f"{method} {number}" for method, number in {**_BITS, _PASSAGES: _PASSAGE_BITS}.items()
    )
    add_number(create, "--bits", f"of a signature (default: {bits})")
    usual_features = {name: text_signer(name).to_dict()["features"] for name in TEXT_SIGNERS}
    words = ", ".join(f"{name} {one['ngram']}" for name, one in usual_features.items())
    for name, help in (
        ("--ngram", f"words that make a feature, or several such lengths: 1,2 (default: {words})"),
        ("--chars", "characters that make a feature; beside words where --ngram is given, too"),
    ):
        create.add_argument(name, type=typed_lengths, metavar="N", help=help)
    usual = PassageHash()
    add_number(create, "--words", f"of a passage, with passages (default {usual.words})")
    add_number(
        create,
        "--step",
        f"words from one passage to the next, with passages (default {usual.step})",
    )
    add_number(create, "--seed", "of signatures (default 0)")
    add_switch(create, "--no-text", "do not keep texts")
    add_json(create)

    insert = action(
        actions, "add", _add, "add a document",
        'docs.db fox "The quick brown fox"', "docs.db readme --file README.md --replace",
        "docs.db page - --metadata '{\"lang\": \"en\"}' < page.txt",
        "docs.db photo 00ff00ff00ff00ff00ff00ff00ff00ff --signature",
    )  # fmt: skip
    insert.add_argument("id", metavar="ID")
    meaning = insert.add_mutually_exclusive_group()
    add_text(insert, meaning, "what it says")
    add_switch(meaning, "--signature", "TEXT is a signature, in hex")
    insert.add_argument("--metadata", type=json_object, metavar="JSON", help="an object")
    add_switch(insert, "--replace", "replace a document of this id")
    add_json(insert)

    get = action(actions, "get", _get, "show documents", "docs.db fox", "docs.db fox owl --json")
    get.add_argument("ids", nargs="+", metavar="ID")
    add_switch(get, "--json", "one JSON object a line")

    delete = action(actions, "delete", _delete, "remove documents", "docs.db fox owl")
    delete.add_argument("ids", nargs="+", metavar="ID")
    add_json(delete)


def _create(options: argparse.Namespace) -> None:
    try:
        existing = list_collections(options.database)
    except NotFoundError:
        existing = []
    if options.name in existing:
        raise ArgumentError(f"{database_name(options)} has a collection {options.name!r} already")
    signer = _signer(options)
    bits = None if signer else _bits(options)
    with open_collection(
        options.database, options.name, signer=signer, bits=bits, keep_text=not options.no_text
    ) as docs:
        made = f"{'parts of ' if docs.parts else ''}{docs.bits} bits"
        if signer is not None:
            made += f" by {signer.said().typed}"
        tell(
            options.json,
            {"collection": docs.name, "bits": docs.bits, "method": options.method},
            f"made the collection {docs.name!r} in {database_name(options)}: {made}",
        )


def _signer(options: argparse.Namespace) -> Signer | None:
    """Return the signer that the options describe."""
    features: FeatureKind | None = None
    by_name = options.method in SIGNERS
    of_texts = by_name or options.method == _PASSAGES
    idle = [] if of_texts else ["ngram", "chars", "seed"]
    idle += [] if of_texts or options.method == "none" else ["bits"]
    idle += [] if options.method == _PASSAGES else ["words", "step"]
    for name in idle:
        if getattr(options, name) is not None:
            raise ArgumentError(
                Said(name), f" does nothing with --method {options.method}; leave it out"
            )
    kinds: list[FeatureKind] = []
    if options.ngram is not None:
        kinds.append(Words(ngram=options.ngram))
    if options.chars is not None:
        kinds.append(Chars(ngram=ngram_lengths("chars", options.chars)))
    if kinds:
        features = kinds[0] if len(kinds) == 1 else Combined(*kinds)
    seed = options.seed or 0
    if by_name:
        bits = None if options.bits is None else _bits(options)
        return text_signer(options.method, bits=bits, features=features, seed=seed)
    if options.method == _PASSAGES:
        by = SimHash(_bits(options), features, seed=seed)
        chosen = {name: getattr(options, name) for name in ("words", "step")}
        given = {name: value for name, value in chosen.items() if value is not None}
        return PassageHash(by, **given)
    if options.method == _RECORDINGS:
        return AudioHash()
    if options.method == "none":
        return None
    if not os.path.exists(options.method):  # noqa: PTH110  # takes every name
        raise ArgumentError(
            Said("--method"),
            f" is {options.method!r}; expected {', '.join(_METHODS)}, or a file that Signer.save "
            f"wrote{did_you_mean(options.method, _METHODS)}",
        )
    return load_signer(options.method)


def _bits(options: argparse.Namespace) -> int:
    usual = _BITS.get(options.method, _PASSAGE_BITS)
    return signature_bits(usual if options.bits is None else options.bits)


def _add(options: argparse.Namespace) -> None:
    with opened(options) as docs:
        write = docs.upsert if options.replace else docs.add
        written = write(
            [options.id],
            None if options.signature else [given_text(options, docs)],
            signatures=given_signature(typed_text(options), docs) if options.signature else None,
            metadata=None if options.metadata is None else [options.metadata],
        )
    done = "replaced" if written.updated else "added"
    tell(options.json, {"id": options.id, "done": done}, done)


def _get(options: argparse.Namespace) -> None:
    with opened(options) as docs:
        documents = docs.get_many(options.ids)
    for id, document in zip(options.ids, documents, strict=True):
        if document is not None:
            say(_as_json(document) if options.json else _as_text(document))
        else:
            warn(f"there is no document {id[:80]!r}", kind="")
    if None in documents:
        raise NotFoundError("not all documents were found")


def _delete(options: argparse.Namespace) -> None:
    with opened(options) as docs:
        removed, wanted = docs.delete(options.ids).deleted, len(set(options.ids))
    tell(options.json, {"removed": removed, "of": wanted}, f"removed {removed} of {wanted}")


def _as_json(document: Document) -> str:
    fields = {
        **vars(document),
        "signature": document.signature.tobytes().hex(),
        "added": document.added.isoformat(),
        "updated": document.updated.isoformat(),
    }
    return shown_json(fields)


def _as_text(document: Document) -> str:
    lines = [
        f"id         {shown(document.id)}",
        f"added      {document.added:%Y-%m-%d %H:%M:%S} UTC",
        f"updated    {document.updated:%Y-%m-%d %H:%M:%S} UTC",
        f"signature  {document.signature.tobytes().hex()}",
        f"metadata   {shown_json(document.metadata)}",
    ]
    if document.text is not None:
        lines.append(f"text       {shown_lines(document.text)}")
    return "\n".join(lines)
