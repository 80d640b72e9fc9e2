"""`lookalike passages`: which documents have this text in them, and where?"""

from __future__ import annotations

import argparse
import sys
from glob import has_magic
from pathlib import Path

from lookalike.checks import is_address, whole_number
from lookalike.cli import common
from lookalike.cli.terminal import check_read_once, is_standard, say, say_json, say_marked
from lookalike.common_passages.finding import COMMON, CONTEXT, GAP, LEAST, PIECE, passages
from lookalike.common_passages.results import Passage, Passages, word_places
from lookalike.compare.texts import word_diff
from lookalike.corpora.encodings import NotText, check_encoding, utf8_of
from lookalike.corpora.opening import read_document
from lookalike.errors import ArgumentError, DocumentError, FileError
from lookalike.progress import progress_bars
from lookalike.shown import brief, counted, escape_terminal

_MOST_BYTES = 64 << 20
_MOST_SHOWN = 4000
_LONGEST_NAME = 4096

TASK = "search"
PURPOSE = "find the documents that contain a text, exactly or nearly"
DESCRIPTION = "Find the documents that contain most words of a text in order, and show where."
ARGUMENTS = f"""
{common.INPUT}
  query:--file FILE    file with the text to search for, or - for standard input (default: the
                       last argument is the text)
  --min-share SHARE={LEAST}  minimum share of the text's words in a passage
  --gap N={GAP}  maximum number of other words between two equal runs, in either text
  --max-passages N     number of passages to show (default: all of them)
  --json
  --quiet
input:
{common.CORPUS}
advanced options:
{common.CORPUS_DETAILS}
  --context N={CONTEXT}  characters to show around a passage
  --color
  --threads
"""
EXAMPLES = """\
  lookalike passages corpus.jsonl "the early bird gets the worm"
  lookalike passages corpus.jsonl --file quotation.txt
  lookalike passages docs/ --file paragraph.txt --min-share 0.9 --gap 2
"""
DETAILS = f"""\
A passage is a run of equal words, or several runs of {PIECE} words or more with at most --gap other
words between them (docs/passages.md). Where the same {PIECE} words are in more than {COMMON} places
of a document, the first {COMMON} are tried. Missing words are shown as [-...-], additional ones as
{{+...+}}. With --json, words and characters count from 0, lines from 1; ends are exclusive.
"""


def run(options: argparse.Namespace) -> None:
    """Look for the text, and show where it is."""
    if options.max_passages is not None:
        whole_number("max_passages", options.max_passages, at_least=1)
    query = _typed(options) if options.query is None else _of_file(options)
    corpus = common.corpus_of(options.input, options, whole_files=True)
    with progress_bars(options.quiet or options.json, common.megabytes(corpus)) as progress:
        found = passages(
            corpus,
            query,
            min_share=options.min_share,
            gap=options.gap,
            context=options.context,
            progress=progress,
            **common.reading_of(options),
        )
    for passage in found[: options.max_passages]:
        if options.json:
            say_json(passage.to_dict())
        else:
            _show(passage, query, found.query_words, options.color)
    if not options.quiet:
        say(_summary(found, options.max_passages), file=sys.stderr)
    common.warn_read(found)


def _of_file(options: argparse.Namespace) -> str:
    """Return the text of a file, or of standard input, which has to have words."""
    name = options.query
    check_read_once([*options.input, name])
    text = _text_of(name, options.encoding)
    if not len(word_places(text).begins):
        where = "standard input" if is_standard(name) else name
        raise DocumentError(f"{where} has no words to look for")
    return text


def _typed(options: argparse.Namespace) -> str:
    """Return the last argument as the text to look for; the others are the corpus."""
    *corpus, text = options.input
    if not corpus:
        raise ArgumentError(
            "the text to look for is missing; give it as the last argument, or a file with --file"
        )
    if _names_input(text):
        raise ArgumentError(
            f"{text} is an input, and the text to look for is missing. Give it as the last "
            "argument, or a file with --file"
        )
    if not len(word_places(text).begins):
        raise DocumentError(f"the text {brief(text)} has no words to look for")
    options.input = corpus
    return str(text)


def _names_input(text: str) -> bool:
    """Return whether an argument is an input, and not a text to look for."""
    if len(text.split()) == 1 and (is_standard(text) or is_address(text) or has_magic(text)):
        return True
    try:
        return len(text) < _LONGEST_NAME and Path(text).exists()
    except (OSError, ValueError):
        return False


def _text_of(name: str, encoding: str | None) -> str:
    if not is_standard(name):
        return read_document(Path(name), _MOST_BYTES, encoding=encoding)
    if sys.stdin is None:
        raise FileError("standard input is closed; expected the text there, or a file")
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise DocumentError(f"standard input has more than {_MOST_BYTES:,} bytes; give a part")
    try:
        return utf8_of(data, check_encoding(encoding))[0].decode()
    except NotText as error:
        raise DocumentError(f"standard input {error}; expected text") from None


def _show(passage: Passage, query: str, of: int, color: str) -> None:
    first, last = passage.lines
    lines = f"line {first:,}" if first == last else f"lines {first:,} to {last:,}"
    begin, end = passage.document_characters
    say(
        f"{escape_terminal(passage.id)}: {lines}, characters {begin:,} to {end:,}, "
        f"{passage.words:,} of {counted(of, 'word')} ({int(1000 * passage.share) / 10}%)"
    )
    asked = query[slice(*passage.query_characters)]
    parts: list[tuple[str, str]] = [("found", passage.text)]
    if not passage.exact and len(passage.text) + len(asked) <= _MOST_SHOWN:
        kinds = {"equal": "found"}
        diff = word_diff(asked, passage.text)
        parts = [(kinds.get(part.kind, part.kind), part.text) for part in diff.parts]
    elif len(passage.text) > _MOST_SHOWN:
        half = _MOST_SHOWN // 2
        parts = [("found", f"{passage.text[:half]} ... {passage.text[-half:]}")]
    before = ("..." if begin > len(passage.before) else "") + passage.before
    after = passage.after + ("..." if end + len(passage.after) < passage.document_length else "")
    say_marked([("equal", before), ("begin", ""), *parts, ("end", ""), ("equal", after)], color)
    say()


def _summary(found: Passages, most: int | None) -> str:
    documents = len({one.row for one in found})
    said = (
        f"{counted(len(found), 'passage')} in {counted(documents, 'document')} of "
        f"{found.documents:,}"
    )
    if most is not None and most < len(found):
        said += f"; the first {most:,} are shown"
    if found.repeated:
        said += f"; words that are repeated too often were passed over {found.repeated:,} times"
    if found.binary_files:
        said += f"; {counted(found.binary_files, 'binary file')} left out"
    return said
