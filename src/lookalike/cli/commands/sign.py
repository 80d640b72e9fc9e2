"""`lookalike sign`: a corpus in, a file of signatures out."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from glob import has_magic
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from lookalike.checks import is_address, thread_count
from lookalike.cli import common, kinds
from lookalike.cli.parser import ADVANCED, Parser, refuse_given
from lookalike.cli.terminal import is_standard, say, say_json
from lookalike.collection.opening import PURPOSES
from lookalike.corpora.formats import compression_of
from lookalike.corpora.lengths import SHORT_CHARACTERS, SHORT_SHARE, TextLengths
from lookalike.corpora.opening import expand_paths
from lookalike.corpora.signing import SIGNATURE_SUFFIXES, check_weighted, sign_corpus
from lookalike.corpora.writing import check_outside_folder
from lookalike.dedup.kinds import TEXT, medium_with, refuse
from lookalike.dedup.media import file_cache, takes_cache
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError, Said
from lookalike.features import ShortText, Weights
from lookalike.features.choice import SHORT_NGRAM, unit_text
from lookalike.features.weights import WEIGHT_KINDS, most_common
from lookalike.media import MEDIA, find_files
from lookalike.progress import progress_bars
from lookalike.shown import counted, escape_terminal
from lookalike.signatures import load_signer, save_hex, save_signatures
from lookalike.signatures.methods import METHODS, Method
from lookalike.signatures.signer import DocumentSigner, WeightedSigner
from lookalike.storage.files import check_replaceable, is_there, whole_file

_LISTS = (".csv", ".txt")
"""Suffixes of lists of hexadecimal hashes, of media alone."""
_MINHASH, _SIMHASH, _TOPSIG = (Method.of(name) for name in METHODS)

_SEARCH: dict[str, Any] = {"method": "topsig", "ngram": 1, "bits": 1024, "fit": True}
"""Options that `--for search` stands for."""
_OF_SEARCH = " ".join(f"--{name}{'' if v is True else f' {v}'}" for name, v in _SEARCH.items())

TASK = "search"
PURPOSE = "turn a corpus or a folder of images into a file of signatures"
DESCRIPTION = "Sign every document of a corpus, and write signatures, ids and signer to a file."
ARGUMENTS = f"""
{common.INPUT}
  -o --output FILE     file to write: NAME.lookalike or NAME.npy; for images also NAME.csv, a list
                       of hexadecimal hashes (default: the name of INPUT with .lookalike)
  --json
  --quiet
input:
{common.CORPUS}
{kinds.KIND}
signatures:
  purpose:--for {"|".join(PURPOSES)}=duplicates  search: signatures to search by a few words
                       ({_OF_SEARCH})
  --fit                learn word weights from the corpus first, for simhash and topsig
  --like FILE          sign like this file of signatures or index, with its learned weights
advanced options:
{common.CORPUS_DETAILS}
{common.FILTERS}
{kinds.HASH}
  --weights {"|".join(WEIGHT_KINDS)}  feature weights of simhash and topsig (default: count)
  --bit-weights        also write the weight behind each bit (2 bytes per bit), for
                       `search --recall` and `match`; simhash and topsig
{kinds.NO_CACHE}
  --threads
"""
EXAMPLES = """\
  lookalike sign corpus.jsonl
  lookalike sign corpus.jsonl --for search -o words.lookalike
  lookalike sign corpus.jsonl --method topsig --fit -o topics.lookalike
  lookalike sign more.jsonl --like topics.lookalike -o more.lookalike
"""
DETAILS = f"""\
Without -o, the file is written to the current folder, if it does not exist yet.
NAME.lookalike holds signatures, ids (or row numbers) and the signer. Documents without words are
skipped. NAME.npy holds the signatures alone, uint8[n, bits // 8], one row per document. The corpus
may be larger than memory. The ids of images are their paths. NAME.csv has a line per image: hash,
quality and path; with --hash pdq, other programs can read it.

methods:
  minhash  Jaccard similarity of word {_MINHASH.ngram}-grams: copies and edited copies. If
           {SHORT_SHARE:.0%} of the documents have at most {SHORT_CHARACTERS} characters: of runs of
           {SHORT_NGRAM} characters (--features short)
  simhash  cosine of word {_SIMHASH.ngram}-grams, in {_SIMHASH.bits} bits: near-duplicates
  topsig   cosine of word {_TOPSIG.ngram}-grams, in {_TOPSIG.bits} bits: documents on one subject
  To search by a few words: --for search ({_OF_SEARCH})
  --common is learned with --fit, too.
"""


def add(parser: Parser) -> None:
    """Declare the settings that `dedup` has, too."""
    common.add_settings(parser, "signatures", ("method", "bits", "ngram"), signs=True)
    common.add_settings(parser, ADVANCED, only=("common",))


def run(options: argparse.Namespace) -> None:
    """Sign and say what was signed."""
    suffixes = (*SIGNATURE_SUFFIXES, *_LISTS)
    if options.output is None:
        options.output = _usual_output(options.input)
    if options.output.suffix not in suffixes:
        _refuse_output(options, suffixes)
    common.check_folder(options.output)
    kind = kinds.input_kind(options)
    refuse(kind, kinds.typed_options(options), vars(options))
    if kind not in MEDIA and options.output.suffix in _LISTS:
        _refuse_output(options, SIGNATURE_SUFFIXES)
    if kind in MEDIA:
        _sign_files(options, kind)
        return
    if kind != TEXT:
        raise ArgumentError(
            Said("input"),
            f" has {kind}, which are not signed; use `lookalike index --vectors COLUMN`",
        )
    _take_purpose(options)
    signer, fitting = _signer(options)
    if options.bit_weights:
        check_weighted(signer, options.output)
    corpus, columns = common.signed_corpus(options.input, options, signer)
    like = [] if options.like is None else [options.like]
    common.check_not_read("-o", options.output, [*corpus.files, *like])
    start = time.perf_counter()
    with progress_bars(options.quiet or options.json, common.megabytes(corpus)) as progress:
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
            fitting=fitting,
        )
    features, reason = signed.signer.features, signed.features_reason
    is_chosen = reason is not None and isinstance(features, ShortText)
    notes = {
        f"{unit_text(features)} (--features short): {reason}": int(is_chosen),
        f"{signed.without_features:,} without words: {_left_out(options)}": signed.without_features,
        f"{signed.bad_rows:,} that could not be read: left out": signed.bad_rows,
        f"{counted(signed.binary_files, 'binary file')}: left out": signed.binary_files,
        **{f"{count:,} {kind}: left out": count for kind, count in signed.left_out.items()},
    }
    told = {**vars(signed), "signer": _settings(signed.signer)}
    _tell(options, start, told, ("document", "documents"), notes)
    common.warn_read(signed)


def _take_purpose(options: argparse.Namespace) -> None:
    """Set the options that `--for search` stands for, where others were not typed."""
    if options.purpose != "search":
        return
    both = "and --for search exclude each other; use one of them"
    refuse_given(options, ("like",), both)
    typed = common.typed_settings(options)
    if "method" in typed and options.method != _SEARCH["method"]:
        refuse_given(options, {"method": None}, both)
    for name, value in _SEARCH.items():
        if name not in typed:
            setattr(options, name, value)


def _usual_output(inputs: Sequence[str]) -> Path:
    """Return the name of one input with another extension; refuse a file that is there."""
    path, first = Path(inputs[0]), inputs[0]
    if len(inputs) > 1 or is_address(first) or is_standard(first) or has_magic(first):
        raise ArgumentError(Said("output"), " is missing; give a name, such as NAME.lookalike")
    name = path.resolve().name
    if not path.is_dir():
        name = (path.with_suffix("") if compression_of(path) else path).stem
    output = Path(f"{name}{SIGNATURE_SUFFIXES[0]}")
    if is_there(output):
        raise ArgumentError(
            Said("output"),
            f" is missing, and {output} exists; to replace it, use -o {output}",
        )
    return output


def _refuse_output(options: argparse.Namespace, suffixes: Sequence[str]) -> NoReturn:
    raise ArgumentError(
        Said("output"),
        f" is {options.output}; expected a name that ends in {' or '.join(suffixes)}",
    )


def _left_out(options: argparse.Namespace) -> str:
    kept = options.output.suffix in (".npy", *_LISTS)
    return "their signatures mean nothing" if kept else "left out"


def _tell(
    options: argparse.Namespace,
    start: float,
    told: dict[str, Any],
    noun: tuple[str, str],
    notes: Mapping[str, int],
) -> None:
    """Print what was signed: all as JSON, or a summary of it.

    `noun` names what is signed, one and many of them. `notes` has lines and their counts; those of
    0 are not printed.
    """
    seconds = time.perf_counter() - start
    if options.json:
        say_json({**told, "seconds": round(seconds, 3), "file": str(options.output)})
    elif not options.quiet:
        one, many = noun
        rate = f", {told[many] / seconds:,.0f} {many}/s" if seconds > 0 else ""
        output = escape_terminal(options.output)
        say(f"{counted(told['signatures'], 'signature')} of {told['bits']} bits: {output}")
        say(f"  {counted(told[many], one, many)} in {seconds:.2f} s{rate}")
        for line, count in notes.items():
            if count:
                say(f"  {line}")


Fitting = Callable[[TextLengths], DocumentSigner]
"""Returns the signer that fits the lengths of documents."""


def _signer(options: argparse.Namespace) -> tuple[DocumentSigner, Fitting | None]:
    """Return the signer that the options describe, or that of a file.

    If they leave the features open, also return what chooses them.
    """
    given = common.settings_of(options, signs=True)
    if options.like is not None:
        usual = {one.name: one.default for one in common.settings_fields(signs=True)}
        usual |= {"weights": None, "fit": False, "common": None}
        refuse_given(options, usual, "does nothing with --like, which has the signer")
        signer = load_signer(options.like)
        if not isinstance(signer, DocumentSigner) or not signer.features.is_document(""):
            raise ArgumentError(
                f"{options.like} was signed by ", signer.said(), ", which takes no texts"
            )
        return signer, None
    common.check_settings(options)
    settings = DedupSettings(**given)
    chosen: DocumentSigner = settings.new_signer()
    if not isinstance(chosen, WeightedSigner):
        only = "needs --method simhash or topsig"
        refuse_given(options, ("weights", "fit", "common"), only)
    most_common(options.common)
    if options.common is not None and not options.fit:
        raise ArgumentError(Said("common"), " is learned from the corpus; add --fit")
    weights = options.weights
    if options.fit and weights is None:
        weights = Method.of(options.method).defaults.fitted_weights
    if isinstance(chosen, WeightedSigner) and weights is not None:
        chosen.weights = Weights(weights, common=options.common)
        if chosen.weights.learns != options.fit:
            raise ArgumentError(
                Said("--weights"),
                f" {weights} are not learned; leave --fit out"
                if options.fit
                else f" {weights} must be learned; add --fit, or sign --like a file",
            )
    if not settings.features_open:
        return chosen, None
    return chosen, lambda lengths: settings.with_features(lengths.features).new_signer()


def _settings(signer: DocumentSigner) -> dict[str, Any]:
    """Return how documents were signed, without what was learned."""
    described = signer.to_dict()
    if isinstance(described.get("weights"), dict):
        described["weights"] = described["weights"]["kind"]
    return described


_OF_TEXT = ("weights", "fit", "bit_weights", "like")


def _sign_files(options: argparse.Namespace, kind: str) -> None:
    """Sign files of a medium, write signatures with their paths, and say what was signed."""
    refuse_given(options, _OF_TEXT, f"does nothing for {kind}; leave it out")
    refuse_given(options, {"purpose": "duplicates"}, f"does nothing for {kind}; leave it out")
    typed = {name: getattr(options, name) for name in kinds.typed_options(options)}
    medium = medium_with(kind, MEDIA[kind].sign_options(typed))
    signer = medium.signer
    if kinds.has_parts(signer):
        raise ArgumentError(
            Said("input"),
            f" has {kind}, which have many signatures each; use `lookalike collection create "
            f"--kind {kind}`",
        )
    paths = expand_paths(options.input)
    for path in paths:
        check_outside_folder(path if path.is_dir() else None, options.output)
    common.check_not_read("-o", options.output, [path for path in paths if not path.is_dir()])
    check_replaceable(options.output)
    kinds.tell_medium(options, medium)
    start = time.perf_counter()
    with progress_bars(options.quiet or options.json) as progress:
        tell = partial(progress, "sign") if progress is not None else lambda share: None
        found = find_files(paths, type(medium))
        threads = thread_count(options.threads)
        with file_cache(options.cache) as cache:
            known = {"cache": cache} if takes_cache(medium.sign_files) else {}
            signed = medium.sign_files(signer, found.files, threads=threads, tell=tell, **known)
    rows, unclear = signed.signatures, int((~signed.clear).sum())
    ids = [os.fsencode(file).decode("utf-8", "replace") for file in signed.files]
    if options.output.suffix == ".npy":
        with whole_file(options.output) as temporary, open(temporary, "wb") as file:
            np.save(file, rows)
    elif options.output.suffix in _LISTS:
        save_hex(options.output, rows, ids, quality=signed.quality)
    else:
        chosen = np.flatnonzero(signed.clear).tolist()
        rows = rows[chosen]
        save_signatures(options.output, rows, signer, [ids[row] for row in chosen])
    problems = [*found.problems, *signed.problems]
    told = {
        kind: len(signed.files),
        "signatures": len(rows),
        "bits": signer.bits,
        "without_features": unclear,
        "left_out": len(problems),
        "other_files": len(found.others),
        "signer": signer.to_dict(),
    }
    left_out = {
        f"{unclear:,} {medium.no_features.partition(':')[0]}: {_left_out(options)}": unclear,
        f"{len(problems):,} that could not be read: left out": len(problems),
        f"{counted(len(found.others), 'other file')}: not looked at": len(found.others),
    }
    _tell(options, start, told, (medium.noun, kind), left_out)
    kinds.warn_problems(problems)
