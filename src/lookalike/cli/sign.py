"""`lookalike sign`: a corpus in, a file of signatures out."""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.checks import thread_count
from lookalike.cli.options import (
    add_corpus_options,
    add_filters,
    add_settings,
    add_threads,
    check_folder,
    check_not_read,
    check_settings,
    corpus_of,
    filters_of,
    settings_fields,
    settings_of,
    warn_read,
)
from lookalike.cli.options.kinds import (
    add_hash,
    add_kind,
    input_kind,
    tell_medium,
    typed_options,
    warn_problems,
)
from lookalike.cli.parser import add_switch
from lookalike.cli.terminal import progress_bars, say, say_json
from lookalike.corpora.columns import columns_for, filtered, find_columns
from lookalike.corpora.opening import expand_paths
from lookalike.corpora.signing import (
    SIGNATURE_SUFFIXES,
    SignedCorpus,
    check_weighted,
    sign_corpus,
)
from lookalike.corpora.writing import check_outside_folder
from lookalike.dedup import DedupSettings
from lookalike.dedup.kinds import TEXT, refuse
from lookalike.errors import ArgumentError, Said
from lookalike.features import Weights
from lookalike.features.weights import WEIGHT_KINDS
from lookalike.media import find_files
from lookalike.shown import escape_terminal
from lookalike.signatures import load_signer, save_signatures
from lookalike.signatures.methods import METHODS, Method
from lookalike.signatures.signer import DocumentSigner, WeightedSigner
from lookalike.storage import check_replaceable, whole_file

_MINHASH, _SIMHASH, _TOPSIG = (Method.of(name) for name in METHODS)

PURPOSE = "turn a corpus into a file of signatures"
DESCRIPTION = "Sign every document of a corpus, and write signatures, ids and signer to a file."
DETAILS = f"""\
input:
  what `lookalike dedup` reads: JSON Lines, JSON, CSV, TSV, Parquet, text (a document a line),
  folders; .gz and .zst too. It may be larger than memory.

output (-o):
  NAME.lookalike holds signatures, ids (or row numbers) and the signer, for `lookalike index`,
  `search`, `pairs`, `evaluate` and `dedup --against`. Documents without words are left out: they
  would all look alike.
  NAME.npy holds the signatures alone, uint8[n, bits // 8], a row for each document.

images:
  a folder of which more than half of the files are images is signed by what they show, in 64 or 256
  --bits (default 64); ids are paths (docs/images.md).

which method:
  minhash  Jaccard similarity of word {_MINHASH.ngram}-grams: finds copies and edited copies
  simhash  cosine of word {_SIMHASH.ngram}-grams, in {_SIMHASH.bits} bits: near-duplicates
  topsig   cosine of word {_TOPSIG.ngram}-grams, in {_TOPSIG.bits} bits: documents about the same
           things, if of similar length
  For `lookalike search` by a few words: --method topsig --ngram 1 --bits 1024 --fit

exit status:
  0 done, 1 an error (nothing is half-written), 2 wrong usage, 130 interrupted

examples:
  lookalike sign corpus.jsonl -o corpus.lookalike
  lookalike sign 'crawl/*.parquet' --text content --method topsig --fit -o crawl.lookalike
  lookalike sign more.jsonl --like crawl.lookalike -o more.lookalike
  lookalike sign photos/ --bits 256 -o photos.lookalike
  lookalike sign docs/ --method simhash --bits 128 -o docs.npy
  lookalike sign new.jsonl --method simhash --bits 64 --bit-weights -o new.lookalike
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("input", nargs="+", metavar="CORPUS", help="files, folders, patterns or -")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="NAME.lookalike or .npy"
    )
    group = parser.add_argument_group("what is read")
    add_corpus_options(group)
    add_filters(group)
    add_kind(group)
    group = parser.add_argument_group("how it is signed")
    add_settings(group, signs=True)
    add_hash(group)
    group.add_argument(
        "--weights",
        choices=WEIGHT_KINDS,
        help="of features, for simhash and topsig (default count)",
    )
    add_switch(
        group,
        "--fit",
        "learn from the corpus first how common words are: reads it twice (weights tfidf for "
        "simhash and log-likelihood for topsig, unless given)",
    )
    add_switch(
        group,
        "--bit-weights",
        "keep the weights behind the bits, too, 2 bytes a bit, for `search --recall` and `match`; "
        "simhash and topsig",
    )
    group.add_argument(
        "--like",
        type=Path,
        metavar="FILE",
        help="sign as this file of signatures or index was, with what was learnt for it",
    )
    group = parser.add_argument_group("how it works")
    add_threads(group)
    add_switch(group, "--json", "print the summary as JSON")
    add_switch(group, "--quiet", "no progress bar, no summary")


def run(options: argparse.Namespace) -> None:
    """Sign and say what was signed."""
    if options.output.suffix not in SIGNATURE_SUFFIXES:
        raise ArgumentError(
            Said("output"),
            f" is {options.output}; expected a name that ends in {' or '.join(SIGNATURE_SUFFIXES)}",
        )
    check_folder(options.output)
    kind = input_kind(options)
    if kind == "images":
        sign_images(options)
        return
    if kind != TEXT:
        raise ArgumentError(
            Said("input"),
            f" has {kind}, which are not signed here; `lookalike audio index` takes them",
        )
    refuse(kind, typed_options(options))
    signer = _signer(options)
    if options.bit_weights:
        check_weighted(signer, options.output)
    corpus = corpus_of(options.input, options)
    like = [] if options.like is None else [options.like]
    check_not_read("-o", options.output, [*corpus.files, *like])
    columns = find_columns(corpus, options.text, options.id)
    columns = columns_for(corpus, columns, signer.features)
    corpus = filtered(corpus, columns, filters_of(options))
    start = time.perf_counter()
    with progress_bars(options.quiet or options.json) as progress:
        signed = sign_corpus(
            corpus,
            columns,
            signer,
            options.output,
            fit=options.fit,
            skip_bad=options.skip_bad,
            threads=options.threads,
            progress=progress,
            weighted=options.bit_weights,
        )
    seconds = time.perf_counter() - start
    if options.json:
        say_json(_summary(signed, signer, options.output, seconds))
    elif not options.quiet:
        _print_summary(signed, options.output, seconds)
    warn_read(signed)


def _signer(options: argparse.Namespace) -> DocumentSigner:
    """Return the signer that the options describe, or that of a file."""
    defaults = {setting.name: setting.default for setting in settings_fields(signs=True)}
    given = settings_of(options, signs=True)
    if options.like is not None:
        for name, value in {**given, "weights": options.weights, "fit": options.fit}.items():
            if value != defaults.get(name, False) and value is not None:
                raise ArgumentError(Said(name), " does not go with --like, which says how to sign")
        signer = load_signer(options.like)
        if not isinstance(signer, DocumentSigner) or not signer.features.is_document(""):
            raise ArgumentError(
                f"{options.like} was signed by ", signer.said(), ", which takes no texts"
            )
        return signer
    check_settings(options)
    chosen: DocumentSigner = DedupSettings(**given).new_signer()
    if not isinstance(chosen, WeightedSigner):
        for name in ("weights", "fit"):
            if getattr(options, name):
                raise ArgumentError(
                    Said(name), " goes with --method simhash or topsig; leave it out"
                )
    weights = options.weights
    if options.fit and weights is None:
        weights = Method.of(options.method).defaults.fitted_weights
    if isinstance(chosen, WeightedSigner) and weights is not None:
        chosen.weights = Weights(weights)
        if chosen.weights.learns != options.fit:
            raise ArgumentError(
                Said("--weights"),
                f" {weights} have nothing to learn; leave --fit out"
                if options.fit
                else f" {weights} have to be learnt; add --fit, or sign --like a file",
            )
    return chosen


def _settings(signer: DocumentSigner) -> dict[str, Any]:
    """Return how documents were signed, without what was learnt."""
    described = signer.to_dict()
    if isinstance(described.get("weights"), dict):
        described["weights"] = described["weights"]["kind"]
    return described


def _summary(
    signed: SignedCorpus, signer: DocumentSigner, path: Path, seconds: float
) -> dict[str, Any]:
    return {
        **vars(signed),
        "signer": _settings(signer),
        "seconds": round(seconds, 3),
        "file": str(path),
    }


def _print_summary(signed: SignedCorpus, path: Path, seconds: float) -> None:
    rate = f"{signed.documents / seconds:,.0f} documents/s" if seconds > 0 else ""
    say(f"{signed.signatures:,} signatures of {signed.bits} bits: {escape_terminal(path)}")
    say(f"  {signed.documents:,} documents in {seconds:.2f} s, {rate}")
    left_out = "left out" if path.suffix == ".lookalike" else "their signatures mean nothing"
    for count, what in (
        (signed.without_features, f"without words: {left_out}"),
        (signed.bad_rows, "that could not be read: left out"),
        (signed.binary_files, "binary files: left out"),
        *((count, f"{kind}: left out") for kind, count in signed.left_out.items()),
    ):
        if count:
            say(f"  {count:,} {what}")


_OF_TEXT = ("weights", "fit", "bit_weights", "like")
_BITS = 64


def sign_images(options: argparse.Namespace) -> None:
    """Hash the images, write signatures with their paths, and say what was signed."""
    from lookalike.images.medium import ImageMedium  # not needed for texts

    refuse("images", typed_options(options))
    for name in _OF_TEXT:
        if getattr(options, name) not in (None, False):
            raise ArgumentError(Said(name), " does nothing for images; leave it out")
    paths = expand_paths(options.input)
    for path in paths:
        check_outside_folder(path if path.is_dir() else None, options.output)
    check_not_read("-o", options.output, [path for path in paths if not path.is_dir()])
    check_replaceable(options.output)
    medium = ImageMedium(bits=options.bits or _BITS, hash=options.hash or "dct")
    tell_medium(options, medium)
    start = time.perf_counter()
    with progress_bars(options.quiet or options.json) as progress:
        tell = partial(progress, "sign") if progress is not None else lambda share: None
        found = find_files(paths, ImageMedium)
        read = medium.read(found.files, threads=thread_count(options.threads), tell=tell)
    rows = np.ascontiguousarray(read.content.signatures[:, 0])
    clear = read.content.clear
    if options.output.suffix == ".npy":
        with whole_file(options.output) as temporary, open(temporary, "wb") as file:
            np.save(file, rows)
    else:
        chosen = np.flatnonzero(clear)
        ids = [os.fsencode(read.files[row]).decode("utf-8", "replace") for row in chosen.tolist()]
        rows = rows[chosen]
        save_signatures(options.output, rows, medium.signer, ids)
    seconds = time.perf_counter() - start
    problems = [*found.problems, *read.problems]
    if options.json:
        say_json(
            {
                "images": len(read.files),
                "signatures": len(rows),
                "bits": medium.signer.bits,
                "without_features": int((~clear).sum()),
                "left_out": len(problems),
                "other_files": len(found.others),
                "signer": medium.signer.to_dict(),
                "seconds": round(seconds, 3),
                "file": str(options.output),
            }
        )
    elif not options.quiet:
        left = "left out" if options.output.suffix != ".npy" else "their signatures mean nothing"
        say(
            f"{len(rows):,} signatures of {medium.signer.bits} bits: "
            f"{escape_terminal(options.output)}"
        )
        say(f"  {len(read.files):,} images in {seconds:.2f} s")
        for count, what in (
            (int((~clear).sum()), f"of one colour, or nearly: {left}"),
            (len(problems), "that could not be read: left out"),
            (len(found.others), "files that are no images: not looked at"),
        ):
            if count:
                say(f"  {count:,} {what}")
    warn_problems(problems)
