"""`lookalike compare`: two documents side by side, by every method, with a diff."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from lookalike.checks import thread_count, whole_number
from lookalike.cli import common
from lookalike.cli.finding.queries import medium_of_queries
from lookalike.cli.parser import ADVANCED, Parser, refuse_given
from lookalike.cli.terminal import say, say_json, say_marked
from lookalike.compare.texts import Comparison, DiffPart, WordDiff, compare_texts
from lookalike.corpora.columns import Columns, columns_for, find_columns, find_documents
from lookalike.corpora.opening import read_document
from lookalike.corpora.signing import corpus_weights
from lookalike.errors import ArgumentError
from lookalike.features.base import reads_links
from lookalike.features.choice import CHARS_NGRAM
from lookalike.features.similarity import MEASURES, RARITY_MEASURES
from lookalike.features.weights import Weights, most_common, refuse_common_cosine
from lookalike.shown import escape_terminal
from lookalike.signatures.methods import BAND_METHODS, Method

_SETTINGS = ("features", "stop_words", "stem")
_NGRAM = Method.of("minhash").ngram

_MOST_BYTES = 256 << 20
_PAGE_OR_NOT = {"html": True, "files": False}
"""The formats of which a file may be one document."""
_OF_CORPORA = (
    *("rows", "text", "id", "format", "skip_bad", "max_document", "html", "page_limits"),
    "common",
)
_LONGEST_NAME = 200

TASK = "remove duplicates"
PURPOSE = "compare two documents: similarities, shared text, a diff"
DESCRIPTION = "Compare two files, or two documents of a corpus, by every method of dedup."
ARGUMENTS = f"""
  A                    a file; with --in, an id
  B                    another file or id
  corpus:--in CORPUS   corpus with the documents A and B
  --rows               A and B are row numbers from 0, with --in
  --measure {"|".join((*MEASURES, *RARITY_MEASURES))}  show only this similarity; weighted-...
                       need --in, where features weigh by their rarity (default: all others)
  diff:--no-diff       do not show the diff
  --json               print everything as one JSON object
advanced options:
{common.CORPUS}
{common.CORPUS_DETAILS}
  --ngram LENGTHS      words per shingle for sets (default: {_NGRAM}), or characters for all
                       (default: {CHARS_NGRAM}), or several lengths such as 1,2
  --seed N=0           random seed for signatures
  --examples N=3       number of shingles to show of each sort
  --context N=60       characters of equal text to show around changes
  --color
  --threads
"""
EXAMPLES = """\
  lookalike compare old.txt new.txt
  lookalike compare --in corpus.jsonl 0704.0001 0704.0002
  lookalike compare part.txt whole.txt --measure containment --no-diff
  lookalike compare --in rfcs/ rfc2068.txt rfc2616.txt --measure weighted-jaccard
"""
DETAILS = """\
Without colors, deleted words are shown as [-...-], inserted ones as {+...+}. Web pages are compared
by their main text; --format files compares their source, --format html reads any file as a page.
Documents may have up to 256 MB. The diff stops after about 200 changes (docs/commands.md).
--common N, with --in, also shows similarities without the features that more than N documents have:
those of sets, and those with weights by rarity.
"""


def add(parser: Parser) -> None:
    """Declare the settings that `dedup` has, too."""
    common.add_settings(parser, ADVANCED, only=(*_SETTINGS, "common"))


def run(options: argparse.Namespace) -> None:
    """Compare and print."""
    whole_number("--examples", options.examples, at_least=0)
    whole_number("--context", options.context, at_least=0)
    if most_common(options.common) is not None:
        refuse_common_cosine(options.measure)
    (a, b), weights = _texts(options)
    chosen = ("measure", "ngram", "seed", "examples", "diff", "threads")
    comparison = compare_texts(
        a,
        b,
        **common.settings_of(options, only=_SETTINGS),
        **{name: getattr(options, name) for name in chosen},
        weights=weights,
    )
    if options.json:
        say_json({"a": options.a, "b": options.b, **comparison.to_dict()})
        return
    _print_similarities(options, comparison)
    _print_shingles(comparison)
    if comparison.diff is not None:
        _print_diff(comparison.diff, options.context, options.color)


def _texts(options: argparse.Namespace) -> tuple[list[str], Weights | None]:
    """Return the documents, and the weights of features in their corpus if these are wanted."""
    settings = common.settings_of(options, only=_SETTINGS)
    features = Method.of("minhash", ngram=options.ngram, **settings).features
    if options.corpus is None:
        of_files = options.format in _PAGE_OR_NOT
        names = [name for name in _OF_CORPORA if name != "format" or not of_files]
        refuse_given(options, names, "needs --in CORPUS; without it, A and B are files")
        if (medium := medium_of_queries([options.a, options.b])) is not None:
            both = f"{options.a} {options.b}"
            raise ArgumentError(
                f"A and B are {medium.name}, and compare is for texts; to find copies: lookalike "
                f"dedup {both}"
            )
        page, links = _PAGE_OR_NOT.get(options.format), reads_links(features)
        how: dict[str, Any] = {"page": page, "links": links, "encoding": options.encoding}
        paths = Path(options.a), Path(options.b)
        return [read_document(one, _MOST_BYTES, **how) for one in paths], None
    corpus = common.corpus_of([options.corpus], options)
    columns = columns_for(corpus, find_columns(corpus, options.text, options.id), features)
    if options.rows:
        columns = Columns(columns.text, None)
    texts = find_documents(corpus, columns, [options.a, options.b], skip_bad=options.skip_bad)
    if options.common is None and options.measure not in RARITY_MEASURES:
        return texts, None
    weights = corpus_weights(
        corpus,
        columns,
        features,
        Weights("idf", common=options.common),
        skip_bad=options.skip_bad,
        threads=thread_count(options.threads),
    )
    return texts, weights


def _print_similarities(options: argparse.Namespace, comparison: Comparison) -> None:
    names = [escape_terminal(name, _LONGEST_NAME) for name in (options.a, options.b)]
    width = max(12, *map(len, names))
    say(f"{'':<14}{names[0]:>{width}}  {names[1]:>{width}}".rstrip())
    for what, (left, right) in (("bytes", comparison.bytes), ("words", comparison.words)):
        say(f"{what:<14}{left:>{width},}  {right:>{width},}")
    say()
    if comparison.equal:
        say("The texts are equal, byte for byte.\n")
    rows = [
        (
            f"{verdict.measure} of {verdict.unit}",
            verdict.exact,
            "-" if verdict.estimate is None else f"{verdict.estimate:.4f}",
            f"{verdict.method}: {verdict.distance} of {verdict.size} "
            f"{'values' if verdict.method in BAND_METHODS else 'bits'} differ",
        )
        for verdict in comparison.methods
    ]
    if (part := comparison.containment) is not None:
        both = f"{part.of_a:.1%} of the first, {part.of_b:.1%} of the second are in both"
        rows.append((f"containment of {part.unit}", part.exact, "", both))
    for name, value in comparison.weighted.items():
        why = "by rarity in the corpus" if name in RARITY_MEASURES else "without what is common"
        rows.append((f"{name} of {comparison.shingles.unit}", value, "", why))
    wide = max(len(name) for name, *_ in rows) + 2
    say(f"{'':<{wide}}{'exact':>6}{'estimate':>10}  signatures")
    for name, exact, estimate, note in rows:
        say(f"{name[:1].upper() + name[1:]:<{wide}}{exact:>.4f}{estimate:>10}  {note}")
    if 0 in comparison.words:
        say("\nA text without words is similar to nothing; its signatures mean nothing.")


def _print_shingles(comparison: Comparison) -> None:
    shingles = comparison.shingles
    say(
        f"\nDifferent {shingles.unit}: {shingles.shared:,} in both, "
        f"{shingles.only_a:,} only in the first, {shingles.only_b:,} only in the second"
    )
    labels = {"shared": "both", "only_a": "first", "only_b": "second"}
    for kind, label in labels.items():
        for example in shingles.examples[kind]:
            say(f"  {label:<8}{escape_terminal(example)}")


def _print_diff(diff: WordDiff, context: int, color: str) -> None:
    if all(part.kind == "equal" for part in diff.parts) and diff.complete:
        say("\nNo word differs.")
        return
    say("\nFrom the first to the second:\n")
    last = len(diff.parts) - 1
    shown = [
        _shortened(part, context, number > 0, number < last)
        for number, part in enumerate(diff.parts)
    ]
    say_marked([(part.kind, part.text) for part in shown], color)
    if not diff.complete:
        say("(the texts are longer; the diff stops here)")


def _shortened(part: DiffPart, context: int, before: bool, after: bool) -> DiffPart:
    """Leave out what is far from any change before or after, in a long stretch of equal words."""
    text = part.text
    if part.kind != "equal" or len(text) <= 2 * context + 40:
        return part
    head = _whole_words(text[: context + 1]) if before else ""
    tail = _whole_words(text[::-1][: context + 1])[::-1] if after else ""
    return DiffPart("equal", f"{head}...{tail}")


def _whole_words(text: str) -> str:
    """Return text without the part of a word at its end; all of it if it is one word."""
    return re.sub(r"\S+\Z", "", text) or text
