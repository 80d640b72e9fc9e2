"""What is in a collection: `create`, `add`, `get` and `delete`; and what all actions share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.cli.common import COLLECTION_METHOD
from lookalike.cli.parser import Subparsers, command, refuse_given
from lookalike.cli.terminal import say, tell, warn
from lookalike.collection import Collection, Document, list_collections, open_collection
from lookalike.collection.documents import MOST_TEXT_BYTES
from lookalike.collection.opening import PURPOSES
from lookalike.collection.stores.address import parse_address
from lookalike.collection.stores.schema import WORD_KINDS
from lookalike.common_passages.signing import PassageHash
from lookalike.corpora.opening import read_document
from lookalike.errors import ArgumentError, NotFoundError, Said
from lookalike.features import Chars, Combined, FeatureKind, Words
from lookalike.features.base import reads_links
from lookalike.features.text import ngram_lengths
from lookalike.media import MEDIA, medium_of_signer
from lookalike.shown import counted, escape_json, escape_lines, escape_terminal
from lookalike.signatures import Signer, SimHash, load_signer
from lookalike.signatures.methods import TEXT_SIGNERS, text_signer
from lookalike.signatures.signer import SIGNERS, DocumentSigner
from lookalike.signatures.simhash import signature_bits
from lookalike.storage.files import is_file
from lookalike.suggestions import did_you_mean

DATABASE = """\
DATABASE is an SQLite file, such as docs.db, or a PostgreSQL address, such as
postgresql://user@host/name. A database holds any number of collections; --name selects one.
"""
_DATABASE = "  DATABASE             SQLite file, or postgresql://user@host/name"
_TEXT, _PASSAGES, _SIGNATURES = "text", "passages", "signatures"
_KINDS = (_TEXT, _PASSAGES, *MEDIA.names(), _SIGNATURES)
_BITS = {
    **{name: SIGNERS[name].usual_bits for name in TEXT_SIGNERS},
    _PASSAGES: 64,
    _SIGNATURES: 128,
}


def declare(actions: Subparsers) -> None:
    """Declare the actions."""
    bits = ", ".join(f"{name} {n}" for name, n in _BITS.items())
    features = {name: text_signer(name).to_dict()["features"] for name in TEXT_SIGNERS}
    words = ", ".join(f"{name} {one['ngram']}" for name, one in features.items())
    usual, methods = PassageHash(), ", ".join(TEXT_SIGNERS)
    action(
        actions, "create", _create, "create a collection",
        f"""
  --kind NAME={_TEXT}  kind of items: {", ".join(_KINDS)} (or from a plugin)
  --method NAME        signature method of texts: {methods} (default: {COLLECTION_METHOD})
  --bits N             bits per signature (default: {bits})
  --no-text            do not store the texts
  purpose:--for {"|".join(PURPOSES)}=search  with a keyword index, to search texts by a few words;
                       or only to find near-duplicates
  --json
advanced options:
  --like FILE          sign like this file: of Signer.save, of signatures, or an index
  --ngram LENGTHS      words per feature, or several lengths such as 1,2 (default: {words})
  --chars LENGTHS      characters per feature, in addition to words if --ngram is given
  words:--passage-words N  words per passage, with --kind passages (default: {usual.words})
  step:--passage-step N  words from one passage to the next (default: {usual.step})
  keywords:--words {"|".join(WORD_KINDS)}  compare words of the keyword index by their English
                       stems, as written, or by runs of three characters (default: porter)
  --seed N             random seed for signatures (default: 0)
""",
        "docs.db", "topics.db --method topsig --bits 1024", "music.db --kind recordings",
    )  # fmt: skip
    action(
        actions, "add", _add, "add one document",
        f"""
  ID                   id of the document
{text_arguments("text of the document")}
  | signature:--hex    TEXT is a signature in hexadecimal
  --metadata JSON      metadata of the document, as a JSON object
  --preview            store a preview of the image, recording or video, for the page of serve
  --replace            replace a document with this id (default: error)
  --json""",
        'docs.db fox "The quick brown fox"', "docs.db readme --file README.md --replace",
        "docs.db page - --metadata '{\"lang\": \"en\"}' < page.txt",
    )  # fmt: skip
    action(
        actions, "get", _get, "print documents by id",
        "  ids:ID...            ids of documents\n  --json",
        "docs.db fox", "docs.db fox owl --json",
    )  # fmt: skip
    action(
        actions, "delete", _delete, "delete documents by id",
        "  ids:ID...            ids of documents\n  --dry-run\n  --json",
        "docs.db fox owl", "docs.db fox owl --dry-run",
    )  # fmt: skip


def _create(options: argparse.Namespace) -> None:
    try:
        existing = list_collections(options.database)
    except NotFoundError:
        existing = []
    if options.name in existing:
        raise ArgumentError(
            f"{database_name(options)} already has a collection {options.name!r}; choose another "
            "--name"
        )
    signer = _signer(options)
    bits = None if signer else _bits(options)
    words = _keywords(options, signer)
    with open_collection(
        options.database, options.name, signer=signer, bits=bits, words=words,
        keep_text=not options.no_text,
    ) as docs:  # fmt: skip
        made = f"{'parts of ' if docs.parts else ''}{docs.bits} bits"
        if signer is not None:
            made += f" by {signer.said().typed}"
        made += f", keyword index ({words})" if words else ""
        tell(
            options.json,
            {"collection": docs.name, "bits": docs.bits, "kind": options.kind, "words": words},
            f"created the collection {docs.name!r} in {database_name(options)}: {made}",
        )


def _keywords(options: argparse.Namespace, signer: Signer | None) -> Any:
    """Return the kind of keyword index that the options describe; None for none."""
    if isinstance(signer, DocumentSigner) and options.purpose == "search":
        return options.keywords or WORD_KINDS[0]
    why = "--for duplicates" if isinstance(signer, DocumentSigner) else f"--kind {options.kind}"
    refuse_given(options, ("keywords",), f"does nothing with {why}")
    return None


def _signer(options: argparse.Namespace) -> Signer | None:
    """Return the signer that the options describe; None if signatures are given."""
    kind, method = options.kind, options.method
    if options.like is not None:
        others = ("method", "bits", "ngram", "chars", "words", "step", "seed")
        refuse_given(options, others, "does nothing with --like, which has the signer")
        refuse_given(options, {"kind": _TEXT}, "does nothing with --like, which has the signer")
        return load_signer(options.like)
    _check_names(kind, method)
    idle = [] if kind == _TEXT else ["method"]
    idle += [] if kind in (_TEXT, _PASSAGES) else ["ngram", "chars", "seed"]
    idle += [] if kind not in MEDIA else ["bits"]
    idle += [] if kind == _PASSAGES else ["words", "step"]
    refuse_given(options, idle, f"does nothing with --kind {kind}")
    kinds: list[FeatureKind] = []
    if options.ngram is not None:
        kinds.append(Words(ngram=options.ngram))
    if options.chars is not None:
        kinds.append(Chars(ngram=ngram_lengths("chars", options.chars)))
    features = Combined(*kinds) if len(kinds) > 1 else kinds[0] if kinds else None
    seed = options.seed or 0
    if kind == _TEXT:
        bits = None if options.bits is None else _bits(options)
        return text_signer(method or COLLECTION_METHOD, bits=bits, features=features, seed=seed)
    if kind == _PASSAGES:
        by = SimHash(_bits(options), features, seed=seed)
        usual = PassageHash()
        words = usual.words if options.words is None else options.words
        return PassageHash(by, words, usual.step if options.step is None else options.step)
    return MEDIA[kind]().signer if kind in MEDIA else None


def _check_names(kind: str, method: str | None) -> None:
    """Refuse kinds and methods that do not exist."""
    for name, value, known, registry in (
        ("kind", kind, _KINDS, MEDIA),
        ("method", method, TEXT_SIGNERS, SIGNERS),
    ):
        if value is None or value in known or value in registry:
            continue
        hint = did_you_mean(value, known)
        if name == "method" and value in _KINDS:
            hint = f"; did you mean --kind {value}?"
        expected = f" is {value!r}; expected one of {', '.join(known)}{hint}"
        raise ArgumentError(Said(f"--{name}"), expected)


def _bits(options: argparse.Namespace) -> int:
    usual = _BITS.get(options.kind, _BITS["simhash"])
    return signature_bits(usual if options.bits is None else options.bits)


def _add(options: argparse.Namespace) -> None:
    with opened(options) as docs:
        if not of_files(docs.signer):
            _refuse_rows(options)
        if options.preview:
            refuse_given(options, ("signature",), "has no file to preview; leave --preview out")
            file = given_text(options, docs)
            written = docs.add_file(
                options.id, file, metadata=options.metadata, replace=options.replace
            )
        else:
            write = docs.upsert if options.replace else docs.add
            signature = given_signature(typed_text(options), docs) if options.signature else None
            written = write(
                [options.id],
                None if options.signature else [given_text(options, docs)],
                signatures=signature,
                metadata=None if options.metadata is None else [options.metadata],
            )
    done = "replaced" if written.updated else "added"
    tell(options.json, {"id": options.id, "done": done}, done)


def _refuse_rows(options: argparse.Namespace) -> None:
    """Refuse a file of rows where one text is expected, and say how to add its rows."""
    alone = options.text is None and options.file is None
    file = options.id if alone else options.text
    if file is None or options.signature or not is_file(file):
        return
    database = escape_terminal(options.database)
    shown = escape_terminal(file)
    raise ArgumentError(
        f"{shown} is a file; to add the rows of a file: lookalike collection import {database} "
        f"{shown}. To add its content as one document: lookalike collection add {database} "
        f"{'ID' if alone else escape_terminal(options.id)} --file {shown}"
    )


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
    wanted = list(dict.fromkeys(options.ids))
    with opened(options) as docs:
        if options.dry_run:
            deleted = len(wanted) - docs.get_many(wanted).count(None)
        else:
            deleted = docs.delete(wanted).deleted
    done = {"deleted": deleted, "of": len(wanted), "dry_run": options.dry_run}
    would = "would delete" if options.dry_run else "deleted"
    tell(options.json, done, f"{would} {deleted} of {len(wanted)}")


def _as_json(document: Document) -> str:
    fields = {
        **vars(document),
        "signature": document.signature.tobytes().hex(),
        "added": document.added.isoformat(),
        "updated": document.updated.isoformat(),
        "vector": None if document.vector is None else document.vector.tolist(),
    }
    return escape_json(fields)


def _as_text(document: Document) -> str:
    lines = [
        f"id         {escape_terminal(document.id)}",
        f"added      {document.added:%Y-%m-%d %H:%M:%S} UTC",
        f"updated    {document.updated:%Y-%m-%d %H:%M:%S} UTC",
        f"signature  {document.signature.tobytes().hex()}",
        f"metadata   {escape_json(without_preview(document.metadata))}",
    ]
    if document.vector is not None:
        lines.append(f"vector     {counted(len(document.vector), 'dimension')}")
    if document.text is not None:
        lines.append(f"text       {escape_lines(document.text)}")
    return "\n".join(lines)


# What all actions share


def without_preview(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata for a terminal: the preview of a file has thousands of characters."""
    return {name: value for name, value in metadata.items() if name != "preview"}


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
    shown = "".join(f"  lookalike collection {verb} {one}\n" for one in examples)
    which = "NAME  {} (default: all of them)" if name is None else f"NAME={name}  {{}}"
    which = which.format("name of the collection")
    arguments = f"{_DATABASE}\n  --name {which}\n{arguments}"
    command(actions, verb, run, purpose, arguments, examples=shown, details=DATABASE)


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
  [TEXT]               {what}, or - for standard input
  --encoding NAME      encoding of FILE, such as cp1252 or utf-16 (default: detected)
  | --file FILE        read the text from this file; of a web page, its main text"""


def given_text(options: argparse.Namespace, docs: Collection) -> str:
    """Return the text that was typed, or comes through standard input, or is in a file.

    Of a file that is a web page, the main text. Where documents are files, the path is the text.
    """
    if options.file is not None:
        if options.text is not None:
            raise ArgumentError(Said("--file"), " and TEXT exclude each other; use one of them")
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
        raise ArgumentError(Said("text"), " is missing; pass a text, or --file FILE")
    return str(options.text)


def given_signature(text: str, docs: Collection) -> NDArray[np.uint8]:
    """Return the signature of hexadecimal digits."""
    if docs.parts:
        raise ArgumentError(
            Said("--hex"),
            f" is one signature, but documents of the collection {docs.name!r} have many parts",
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
