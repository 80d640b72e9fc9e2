"""`lookalike collection ...`: documents that come and go, on SQLite or PostgreSQL."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike.cli.output import say, say_json, warn
from lookalike.cli.progress import progress_bars
from lookalike.collection import (
    Answer,
    Collection,
    Document,
    Report,
    list_collections,
    open_collection,
    restore_collection,
)
from lookalike.collection.stores.address import parse_address
from lookalike.corpora import FORMATS
from lookalike.errors import ArgumentError, CollectionError, FileError, NotFoundError
from lookalike.features import Chars, Words
from lookalike.shown import shown, shown_json, shown_lines
from lookalike.signatures import BBitMinHash, Signer, SimHash, TopSig, load_signer

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_DATABASE = """\
DATABASE is the name of an SQLite file, such as docs.db, or the address of a PostgreSQL database,
such as postgresql://user@host/name. One database holds any number of collections; --name says
which one is meant (default: documents).

examples:
"""


def add(commands: Subparsers) -> None:
    """Declare the command and what it can do."""
    parser = commands.add_parser(
        "collection",
        help="keep documents in a database and search them while they come and go",
        description="Keep documents in a database and search them while they come and go.",
        epilog=_DATABASE + "  lookalike collection create docs.db\n"
        "  lookalike collection import docs.db corpus.jsonl\n"
        '  lookalike collection search docs.db "some text" --radius 20',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _declare_content(actions)
    _declare_search(actions)
    _declare_care(actions)
    _declare_transfer(actions)


def _declare_content(actions: Subparsers) -> None:
    create = _action(
        actions, "create", _create, "make a new collection",
        "docs.db", "docs.db --signer topsig --bits 1024", "docs.db --signer none --bits 128",
    )  # fmt: skip
    create.add_argument(
        "--signer",
        default="simhash",
        help="simhash, topsig or bbitminhash, which sign texts; none: signatures are given; or a "
        "file that Signer.save wrote (default simhash)",
    )
    create.add_argument("--bits", type=int, metavar="N", help="of a signature (default 128)")
    create.add_argument("--ngram", type=int, metavar="N", help="words that make a feature")
    create.add_argument("--chars", type=int, metavar="N", help="characters that make a feature")
    create.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")
    create.add_argument("--no-text", action="store_true", help="do not keep texts")

    insert = _action(
        actions, "add", _add, "add a document",
        'docs.db fox "The quick brown fox"', "docs.db readme README.md --file --replace",
        "docs.db page - --metadata '{\"lang\": \"en\"}' < page.txt",
        "docs.db photo 00ff00ff00ff00ff00ff00ff00ff00ff --signature",
    )  # fmt: skip
    insert.add_argument("id", metavar="ID")
    insert.add_argument("text", metavar="TEXT", help="- reads standard input")
    meaning = insert.add_mutually_exclusive_group()
    meaning.add_argument("--file", action="store_true", help="TEXT is the name of a file")
    meaning.add_argument("--signature", action="store_true", help="TEXT is a signature, in hex")
    insert.add_argument("--metadata", type=_json_object, metavar="JSON", help="an object")
    insert.add_argument("--replace", action="store_true", help="replace a document of this id")

    get = _action(actions, "get", _get, "show documents", "docs.db fox", "docs.db fox owl --json")
    get.add_argument("ids", nargs="+", metavar="ID")
    get.add_argument("--json", action="store_true", help="one JSON object a line")

    delete = _action(actions, "delete", _delete, "remove documents", "docs.db fox owl")
    delete.add_argument("ids", nargs="+", metavar="ID")


def _declare_search(actions: Subparsers) -> None:
    search = _action(
        actions, "search", _search, "find the documents nearest to a text, document or signature",
        'docs.db "The quick brown fox"', "docs.db fox --like --radius 20 --explain",
        "docs.db - -k 3 --where '{\"lang\": \"en\"}' --json < page.txt",
    )  # fmt: skip
    search.add_argument("text", metavar="TEXT", help="- reads standard input")
    meaning = search.add_mutually_exclusive_group()
    meaning.add_argument("--like", action="store_true", help="TEXT is the id of a document")
    meaning.add_argument("--file", action="store_true", help="TEXT is the name of a file")
    meaning.add_argument("--signature", action="store_true", help="TEXT is a signature, in hex")
    search.add_argument("-k", type=int, default=10, help="how many at most (default 10)")
    search.add_argument("--radius", type=int, metavar="N", help="most bits that may differ")
    search.add_argument("--where", type=_json_object, metavar="JSON", help="condition on metadata")
    search.add_argument(
        "--way",
        choices=("sql", "native"),
        default="sql",
        help="in the database, or in an index in memory, which pays for many searches",
    )
    search.add_argument("--explain", action="store_true", help="say which bits differ, and why")
    search.add_argument("--json", action="store_true", help="one JSON object a line")


def _declare_care(actions: Subparsers) -> None:
    stats = _action(
        actions, "stats", _stats, "say what there is", "docs.db", "docs.db --name pages --json",
        name=None,
    )  # fmt: skip
    stats.add_argument("--json", action="store_true", help="one JSON object a line")
    verify = _action(
        actions, "verify", _verify, "recompute every slice and checksum; exit 1 if one is wrong",
        "docs.db", "postgresql://me@host/db --json",
    )  # fmt: skip
    verify.add_argument("--json", action="store_true")
    repair = _action(
        actions, "repair", _repair, "rebuild what is derived from documents", "docs.db"
    )
    repair.add_argument("--json", action="store_true")
    snapshot = _action(
        actions, "snapshot", _snapshot, "write a copy to a new SQLite file, while it is in use",
        "docs.db backup.db",
    )  # fmt: skip
    snapshot.add_argument("file", type=Path, metavar="FILE")
    restore = actions.add_parser(
        "restore",
        help="put the collection of a snapshot into a database",
        description="Put the collection of a snapshot into a database.",
        epilog=_DATABASE + "  lookalike collection restore backup.db docs.db\n"
        "  lookalike collection restore backup.db docs.db --replace",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    restore.add_argument("file", type=Path, metavar="FILE", help="what `snapshot` wrote")
    restore.add_argument("database", metavar="DATABASE")
    restore.add_argument("--name", help="what to call it there (default: as in the snapshot)")
    restore.add_argument("--replace", action="store_true", help="replace one of that name")
    restore.set_defaults(run=_restore)


def _declare_transfer(actions: Subparsers) -> None:
    importer = _action(
        actions, "import", _import, "add the rows of files: JSON Lines, JSON, CSV, Parquet, text",
        "docs.db corpus.jsonl", "docs.db 'crawl/*.parquet' --text content --id url --replace",
        "docs.db notes/",
    )  # fmt: skip
    importer.add_argument("input", nargs="+", metavar="INPUT", help="files, folders or patterns")
    importer.add_argument("--text", metavar="COLUMN", help="with the texts (default: a guess)")
    importer.add_argument("--id", metavar="COLUMN", help="with the ids (default: a guess, or rows)")
    importer.add_argument("--signature", metavar="COLUMN", help="with hexadecimal signatures")
    importer.add_argument("--format", choices=FORMATS, help="of the input, if its name lies")
    importer.add_argument("--replace", action="store_true", help="replace documents of equal id")
    importer.add_argument("--skip-bad", action="store_true", help="leave out and count bad rows")
    importer.add_argument("--quiet", action="store_true", help="no progress bar")
    exporter = _action(
        actions, "export", _export, "write all documents to a file",
        "docs.db all.jsonl", "docs.db english.parquet --where '{\"lang\": \"en\"}'",
    )  # fmt: skip
    exporter.add_argument("output", type=Path, metavar="FILE", help=".jsonl, .csv, .parquet ...")
    exporter.add_argument("--where", type=_json_object, metavar="JSON", help="condition")
    exporter.add_argument("--quiet", action="store_true", help="no progress bar")


def _action(
    actions: Subparsers,
    verb: str,
    run: Callable[[argparse.Namespace], None],
    purpose: str,
    *examples: str,
    name: str | None = "documents",
) -> argparse.ArgumentParser:
    """Declare an action on a collection, with its examples in the help."""
    parser = actions.add_parser(
        verb,
        help=purpose,
        description=purpose[0].upper() + purpose[1:] + ".",
        epilog=_DATABASE + "\n".join(f"  lookalike collection {verb} {one}" for one in examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", metavar="DATABASE")
    parser.add_argument("--name", default=name, help="which collection (default: documents)")
    parser.set_defaults(run=run)
    return parser


# What the actions do


def _create(options: argparse.Namespace) -> None:
    try:
        existing = list_collections(options.database)
    except NotFoundError:
        existing = []
    if options.name in existing:
        raise ArgumentError(f"{_database(options)} has a collection {options.name!r} already")
    signer = _signer(options)
    bits = None if signer else _or(options.bits, 128)
    with open_collection(
        options.database, options.name, signer=signer, bits=bits, keep_text=not options.no_text
    ) as docs:
        made = f"{docs.bits} bits" if signer is None else f"{docs.bits} bits by {signer!r}"
        say(f"made the collection {docs.name!r} in {_database(options)}: {made}")


def _signer(options: argparse.Namespace) -> Signer | None:
    """Return the signer that the options describe."""
    features: dict[str, Any] = {}
    if options.ngram is not None and options.chars is not None:
        raise ArgumentError("--ngram and --chars exclude each other; give one of them")
    if options.ngram is not None:
        features = {"features": Words(ngram=options.ngram)}
    if options.chars is not None:
        features = {"features": Chars(ngram=options.chars)}
    if options.signer == "simhash":
        return SimHash(bits=_or(options.bits, 128), seed=options.seed, **features)
    if options.signer == "topsig":
        return TopSig(bits=_or(options.bits, 1024), seed=options.seed, **features)
    if options.signer == "bbitminhash":
        return BBitMinHash(permutations=_or(options.bits, 512), seed=options.seed, **features)
    if options.signer == "none":
        return None
    if not os.path.exists(options.signer):  # noqa: PTH110  # takes every name
        raise ArgumentError(
            f"--signer is {options.signer!r}; expected simhash, topsig, bbitminhash, none, or a "
            "file that Signer.save wrote"
        )
    return load_signer(options.signer)


def _or(given: int | None, default: int) -> int:
    return default if given is None else given


def _add(options: argparse.Namespace) -> None:
    with _opened(options) as docs:
        write = docs.upsert if options.replace else docs.add
        written = write(
            [options.id],
            None if options.signature else [_text(options)],
            signatures=_signature(options.text, docs) if options.signature else None,
            metadata=None if options.metadata is None else [options.metadata],
        )
    say("replaced" if written.updated else "added")


def _get(options: argparse.Namespace) -> None:
    with _opened(options) as docs:
        documents = docs.get_many(options.ids)
    for id, document in zip(options.ids, documents, strict=True):
        if document is not None:
            say(_as_json(document) if options.json else _as_text(document))
        else:
            warn(f"there is no document {id[:80]!r}", kind="")
    if None in documents:
        raise NotFoundError("not all documents were found")


def _delete(options: argparse.Namespace) -> None:
    with _opened(options) as docs:
        say(f"removed {docs.delete(options.ids).deleted} of {len(set(options.ids))}")


def _search(options: argparse.Namespace) -> None:
    with _opened(options) as docs:
        exclude = []
        query: Any
        if options.like:
            document = docs.get(options.text)
            if document is None:
                raise NotFoundError(f"there is no document {options.text[:80]!r}")
            query, exclude = document.signature, [document.id]
        elif options.signature:
            query = _signature(options.text, docs)
        else:
            query = _text(options)
        answer = docs.search(
            query, options.k, radius=options.radius, where=options.where, exclude=exclude,
            explain=options.explain, way=options.way,
        )  # fmt: skip
    _print_answer(answer, options)


def _print_answer(answer: Answer, options: argparse.Namespace) -> None:
    for match in answer:
        if options.json:
            line = {"id": match.id, "distance": match.distance, "metadata": match.metadata}
            if options.explain:
                line |= {"differing_bits": match.differing_bits, "slices": match.slices}
                line |= {"slice_distances": match.slice_distances}
            say_json(line)
            continue
        metadata = shown_json(match.metadata) if match.metadata else ""
        say(f"{match.distance:5}  {shown(match.id)}  {metadata}".rstrip())
        if options.explain:
            say(f"       bits {list(match.differing_bits or ())}")
    if options.explain and answer.work is not None:
        work = answer.work
        say(
            f"{work.way}: {work.probes} slice values looked up, {work.candidates} signatures "
            f"compared; version {answer.version}, "
            f"{'complete' if answer.exact else 'not complete'}",
            file=sys.stderr,
        )


def _stats(options: argparse.Namespace) -> None:
    names = [options.name] if options.name else list_collections(options.database)
    for place, name in enumerate(names):
        with open_collection(options.database, name, create=False) as docs:
            stats = docs.stats()
        if options.json:
            say_json(stats)
            continue
        say("\n" * bool(place) + "\n".join(f"{key:14}{shown(stats[key])}" for key in stats))


def _verify(options: argparse.Namespace) -> None:
    with _opened(options) as docs:
        _print_report(docs.verify(), options)


def _repair(options: argparse.Namespace) -> None:
    with _opened(options) as docs:
        _print_report(docs.repair(), options)


def _print_report(report: Report, options: argparse.Namespace) -> None:
    if options.json:
        say_json({"ok": report.ok, **vars(report)})
    else:
        say(
            f"{report.documents} documents, {report.signatures} signatures and {report.keys} "
            f"slices read: {'everything is as it should be' if report.ok else 'DAMAGED'}"
        )
        for problem in report.problems:
            say(f"  {shown(problem)}")
    if not report.ok:
        raise CollectionError(f"{_database(options)} is damaged: {len(report.problems)} problems")


def _snapshot(options: argparse.Namespace) -> None:
    with _opened(options) as docs:
        docs.snapshot(options.file)
    say(f"wrote {shown(options.file)}")


def _restore(options: argparse.Namespace) -> None:
    name = restore_collection(options.file, options.database, options.name, replace=options.replace)
    say(f"restored the collection {name!r}")


def _import(options: argparse.Namespace) -> None:
    from lookalike.collection.care.transfer import import_documents

    source: Any = [Path(one) for one in options.input]
    with _opened(options) as docs, progress_bars(options.quiet) as progress:
        done = import_documents(
            docs,
            options.input[0] if len(options.input) == 1 else source,
            text=options.text,
            id=options.id,
            signature=options.signature,
            format=options.format,
            replace=options.replace,
            skip_bad=options.skip_bad,
            progress=progress,
        )
    say(f"added {done.added}, replaced {done.updated}, left out {done.bad}")
    for example in done.examples:
        say(f"  {shown(example)}", file=sys.stderr)


def _export(options: argparse.Namespace) -> None:
    from lookalike.collection.care.transfer import export_documents

    with _opened(options) as docs, progress_bars(options.quiet) as progress:
        count = export_documents(docs, options.output, where=options.where, progress=progress)
    say(f"wrote {count} documents to {shown(options.output)}")


# Reading options, writing lines


def _database(options: argparse.Namespace) -> str:
    """Return the database as it was typed, but without its password."""
    address = parse_address(options.database)
    return address.shown if address.path is None else str(options.database)


def _opened(options: argparse.Namespace) -> Collection:
    return open_collection(options.database, options.name, create=False)


def _text(options: argparse.Namespace) -> str:
    """Return what TEXT stands for."""
    if not options.file:
        return sys.stdin.read() if options.text == "-" else str(options.text)
    try:
        return Path(options.text).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise FileError(f"{options.text} cannot be read: {error}") from error


def _signature(text: str, docs: Collection) -> NDArray[np.uint8]:
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if 8 * len(data) != docs.bits:
        raise ArgumentError(
            f"the signature is {text[:40]!r}; expected {docs.bits // 4} hexadecimal digits"
        )
    return np.frombuffer(data, np.uint8)[None]


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"this is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('expected a JSON object such as {"lang": "en"}')
    return value


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
