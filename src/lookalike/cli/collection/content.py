"""What is in a collection: `create`, `add`, `get` and `delete`; and what all actions share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookalike.cli.parser import Subparsers, command, refuse_given
from lookalike.cli.terminal import say, tell, warn
from lookalike.collection import Collection, Document, list_collections, open_collection
from lookalike.collection.documents import MOST_TEXT_BYTES
from lookalike.collection.stores.address import parse_address
from lookalike.common_passages.signing import PassageHash
from lookalike.corpora.opening import read_document
from lookalike.errors import ArgumentError, NotFoundError, Said
from lookalike.features import Chars, Combined, FeatureKind, Words
from lookalike.features.base import reads_links
from lookalike.features.text import ngram_lengths
from lookalike.media import MEDIA, medium_of_signer
from lookalike.shown import escape_json, escape_lines, escape_terminal
from lookalike.signatures import Signer, SimHash, load_signer
from lookalike.signatures.methods import TEXT_SIGNERS, text_signer
from lookalike.signatures.signer import SIGNERS
from lookalike.signatures.simhash import signature_bits
from lookalike.suggestions import did_you_mean

DATABASE = """\
DATABASE is the name of an SQLite file, such as docs.db, or the address of a PostgreSQL database,
such as postgresql://user@host/name. One database holds any number of collections; --name says
which one is meant (default: documents).

examples:
"""
JSON = "  --json            print what was done as JSON"
JSON_LINES = "  --json            one JSON object a line"
_BITS = {**{name: SIGNERS[name].usual_bits for name in TEXT_SIGNERS}, "none": 128}
_PASSAGES = "passages"
_PASSAGE_BITS = 64
_METHODS = (*_BITS, _PASSAGES, *MEDIA.names())


def declare(actions: Subparsers) -> None:
    """Declare the actions."""
    bits = ", ".join(f"{name} {n}" for name, n in {**_BITS, _PASSAGES: _PASSAGE_BITS}.items())
    features = {name: text_signer(name).to_dict()["features"] for name in TEXT_SIGNERS}
    words = ", ".join(f"{name} {one['ngram']}" for name, one in features.items())
    usual = PassageHash()
    action(
        actions, "create", _create, "make a new collection",
        f"""
  --method --signer METHOD=simhash  signer of texts: {", ".join(TEXT_SIGNERS)}; none: signatures
                    are given; passages: texts that are found by a passage; a medium, such as
                    {", ".join(MEDIA.names())}: files; or a file that Signer.save wrote
  --bits N          bits of a signature (default: {bits})
  --ngram LENGTHS   words that make a feature, or several such lengths: 1,2 (default: {words})
  --chars LENGTHS   characters that make a feature; beside words where --ngram is given, too
  --words N         words of a passage, with passages (default: {usual.words})
  --step N          words from one passage to the next, with passages (default: {usual.step})
  --seed N          random seed of signatures (default: 0)
  --no-text         do not keep texts
{JSON}""",
        "docs.db", "docs.db --method topsig --bits 1024", "docs.db --method none --bits 128",
        "books.db --method passages --words 30", "music.db --method recordings",
    )  # fmt: skip
    action(
        actions, "add", _add, "add a document",
        f"""
  ID
{text_arguments("what it says")}
  | --signature     TEXT is a signature, in hex
  --metadata JSON   an object
  --replace         replace a document of this id
{JSON}""",
        'docs.db fox "The quick brown fox"', "docs.db readme --file README.md --replace",
        "docs.db page - --metadata '{\"lang\": \"en\"}' < page.txt",
        "docs.db photo 00ff00ff00ff00ff00ff00ff00ff00ff --signature",
    )  # fmt: skip
    action(
        actions, "get", _get, "show documents", f"  ids:ID...\n{JSON_LINES}",
        "docs.db fox", "docs.db fox owl --json",
    )  # fmt: skip
    action(
        actions, "delete", _delete, "remove documents", f"  ids:ID...\n{JSON}", "docs.db fox owl"
    )


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
    by_name = options.method in SIGNERS
    of_texts = by_name or options.method == _PASSAGES
    idle = [] if of_texts else ["ngram", "chars", "seed"]
    idle += [] if of_texts or options.method == "none" else ["bits"]
    idle += [] if options.method == _PASSAGES else ["words", "step"]
    refuse_given(options, idle, f"does nothing with --method {options.method}; leave it out")
    kinds: list[FeatureKind] = []
    if options.ngram is not None:
        kinds.append(Words(ngram=options.ngram))
    if options.chars is not None:
        kinds.append(Chars(ngram=ngram_lengths("chars", options.chars)))
    features = Combined(*kinds) if len(kinds) > 1 else kinds[0] if kinds else None
    seed = options.seed or 0
    if by_name:
        bits = None if options.bits is None else _bits(options)
        return text_signer(options.method, bits=bits, features=features, seed=seed)
    if options.method == _PASSAGES:
        by = SimHash(_bits(options), features, seed=seed)
        usual = PassageHash()
        words = usual.words if options.words is None else options.words
        return PassageHash(by, words, usual.step if options.step is None else options.step)
    if options.method in MEDIA:
        return MEDIA[options.method]().signer
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
    return escape_json(fields)


def _as_text(document: Document) -> str:
    lines = [
        f"id         {escape_terminal(document.id)}",
        f"added      {document.added:%Y-%m-%d %H:%M:%S} UTC",
        f"updated    {document.updated:%Y-%m-%d %H:%M:%S} UTC",
        f"signature  {document.signature.tobytes().hex()}",
        f"metadata   {escape_json(document.metadata)}",
    ]
    if document.text is not None:
        lines.append(f"text       {escape_lines(document.text)}")
    return "\n".join(lines)


# What all actions share


def action(
    actions: Subparsers,
    verb: str,
    run: Callable[[argparse.Namespace], None],
    purpose: str,
    arguments: str,
    *examples: str,
    name: str | None = "documents",
) -> None:
    """Declare an action on a collection, with its examples in the help."""
    shown = "\n".join(f"  lookalike collection {verb} {one}" for one in examples)
    which = (
        "NAME  collection (default: all of them)" if name is None else f"NAME={name}  collection"
    )
    description = purpose[0].upper() + purpose[1:] + "."
    arguments = f"  DATABASE\n  --name {which}\n{arguments}"
    command(actions, verb, run, purpose, description, f"{DATABASE}{shown}\n", arguments)


def database_name(options: argparse.Namespace) -> str:
    """Return the database as it was typed, but without its password."""
    address = parse_address(options.database)
    return address.shown if address.path is None else str(options.database)


def opened(options: argparse.Namespace) -> Collection:
    """Return the collection that is meant, which has to be there."""
    return open_collection(options.database, options.name, create=False)


def text_arguments(what: str) -> str:
    """Return the arguments of a text: typed, through a pipe or in a file."""
    return f"""\
  [TEXT]            {what}; - reads standard input
  --encoding NAME   encoding of FILE, such as cp1252 or utf-16 (default: detected)
  | --file FILE     read the text from this file; of a web page, its main text"""


def given_text(options: argparse.Namespace, docs: Collection) -> str:
    """Return the text that was typed, or comes through standard input, or is in a file.

    Of a file that is a web page, the main text. Where documents are files, the path is the text.
    """
    if options.file is not None:
        if options.text is not None:
            raise ArgumentError(Said("--file"), " takes the place of TEXT; leave one of them out")
        if of_files(docs.signer):
            return str(options.file)
        features = getattr(docs.signer, "features", None)
        links = isinstance(features, FeatureKind) and reads_links(features)
        encoding = getattr(options, "encoding", None)
        return read_document(Path(options.file), MOST_TEXT_BYTES, links=links, encoding=encoding)
    typed = typed_text(options)
    return sys.stdin.read() if typed == "-" else typed


def of_files(signer: Signer | None) -> bool:
    """Return whether what is signed are files, known by their paths."""
    return medium_of_signer(signer) is not None


def typed_text(options: argparse.Namespace) -> str:
    """Return TEXT, which has to be there."""
    if options.text is None:
        raise ArgumentError(Said("text"), " is missing; type it, or give --file FILE")
    return str(options.text)


def given_signature(text: str, docs: Collection) -> NDArray[np.uint8]:
    """Return the signature that hexadecimal digits stand for."""
    if docs.parts:
        raise ArgumentError(
            Said("--signature"),
            f" is one, and the documents of the collection {docs.name!r} have many parts each; "
            "leave it out",
        )
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if 8 * len(data) != docs.bits:
        raise ArgumentError(
            f"the signature is {text[:40]!r}; expected {docs.bits // 4} hexadecimal digits"
        )
    return np.frombuffer(data, np.uint8)[None]
