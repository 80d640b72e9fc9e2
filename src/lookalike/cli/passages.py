"""`lookalike passages`: which documents have this text in them, and where?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lookalike.checks import whole_number
from lookalike.cli import common
from lookalike.cli.terminal import (
    COLOR,
    check_read_once,
    is_standard,
    progress_bars,
    say,
    say_json,
    say_marked,
)
from lookalike.common_passages.finding import COMMON, CONTEXT, GAP, LEAST, PIECE, passages
from lookalike.common_passages.results import Passage, Passages, word_places
from lookalike.compare.texts import word_diff
from lookalike.corpora.encodings import NotText, check_encoding, utf8_of
from lookalike.corpora.opening import read_document
from lookalike.errors import DocumentError, FileError
from lookalike.shown import counted, escape_terminal

_MOST_BYTES = 64 << 20
_MOST_SHOWN = 4000

PURPOSE = "find the documents that have a text in them, nearly or exactly, and where"
DESCRIPTION = """\
Find the documents of a corpus that have this text in them, or most of its
words in their order, and show where."""
ARGUMENTS = f"""
{common.INPUT}
  query:--of TEXTFILE  file with the text to look for; - is standard input (required)
what is read:
{common.CORPUS}
what counts:
  --least SHARE={LEAST}  share of the text's words that a passage has
  --gap N={GAP}  other words between two runs, in either text
what is shown:
  --context N={CONTEXT}  characters around a passage
  --most N             number of passages (default: all of them)
{COLOR}
  --json               print passages as JSON Lines
  --quiet              no progress bar, no summary
{common.THREADS}
"""
DETAILS = f"""\
what is found:
  A passage is a run of equal words, or several runs of {PIECE} words or more that follow each other
  in both texts with at most --gap other words between them. Words are letters and digits; case,
  punctuation and spaces do not count. All passages that have --least of the text's words or more
  are found, and nothing else; a document may have several. Where the same {PIECE} words are in more
  than {COMMON} places of a document, the first {COMMON} are tried.

what is shown:
  the document, lines and characters, how many of the words are there, and the passage itself. On a
  terminal it is bold; elsewhere, or with NO_COLOR in the environment, it is between >> and <<.
  Words of the text that are missing there are in [-...-], others in {{+...+}}.
  With --json a line of JSON for each passage: id, row, words, share, query_words, document_words,
  query_characters, document_characters, lines, exact, text. Words and characters are counted from
  0, lines from 1; ends are not included.

examples:
  lookalike passages corpus.jsonl --of quotation.txt
  lookalike passages docs/ --of paragraph.txt --least 0.9 --gap 2
  pbpaste | lookalike passages books/ --of - --json
"""


def run(options: argparse.Namespace) -> None:
    """Look for the text, and show where it is."""
    if options.most is not None:
        whole_number("most", options.most, at_least=1)
    check_read_once([*options.input, options.query])
    query = _query(options.query, options.encoding)
    corpus = common.corpus_of(options.input, options)
    with progress_bars(options.quiet or options.json) as progress:
        found = passages(
            corpus,
            query,
            least=options.least,
            gap=options.gap,
            context=options.context,
            progress=progress,
            **common.reading_of(options),
        )
    for passage in found[: options.most]:
        if options.json:
            say_json(passage.to_dict())
        else:
            _show(passage, query, found.query_words, options.color)
    if not options.quiet:
        say(_summary(found, options.most), file=sys.stderr)
    common.warn_read(found)


def _query(name: str, encoding: str | None) -> str:
    """Return what is looked for, which has to have words."""
    text = _text_of(name, encoding)
    if not len(word_places(text).begins):
        where = "standard input" if is_standard(name) else name
        raise DocumentError(f"{where} has no words to look for")
    return text


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
