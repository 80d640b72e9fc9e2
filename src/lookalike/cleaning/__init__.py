"""Clean texts: remove what occurs again, and what benchmarks contain."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

from lookalike.progress import Progress, shows_progress

if TYPE_CHECKING:
    from lookalike.cleaning.contamination_result import Contamination
    from lookalike.cleaning.result import CleanResult


@shows_progress
def clean(
    source: Any,
    *,
    words: SupportsIndex | None = None,
    gap: SupportsIndex | None = None,
    unit: str | None = None,
    max_documents: SupportsIndex | None = None,
    remove: str = "copies",
    boundary: str | None = None,
    keep: str = "first",
    min_left: SupportsIndex = 1,
    text: str | None = None,
    id: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    skip_bad: bool = False,
    max_document: SupportsIndex | None = None,
    work: str | os.PathLike[str] | None = None,
    memory_limit: SupportsIndex | None = None,
    threads: SupportsIndex | None = None,
    progress: Progress | bool | None = None,
) -> CleanResult:
    """Remove text that occurs again in a corpus, and keep its first copy.

    Words are those of `la.Words()`: letters and digits, in upper or lower case. A window of `words`
    words is repeated if the same words occur earlier: in an earlier document, or before it in the
    same one without overlapping it. A word is removed if a repeated window covers it. This is
    repeated until no window is, since removing text makes new neighbors. So all repeated runs are
    found, the result has none, and cleaning it again removes nothing.

    Punctuation that is attached to removed words, and the space behind them, go with them. All
    other text is unchanged, byte for byte. The result does not depend on the number of threads.

    With `gap`, edited copies are removed, too, once no window is repeated. A piece is a window with
    the same words as one in an earlier place, which it does not overlap. It has a fifth of `words`,
    at least 2. A run is pieces of which each begins one word behind the other, in both places. A
    run follows another one if it begins and ends behind it in both places, with at most `gap` other
    words between them. Words are removed if they are in a chain of such runs with `words` words of
    the document, or more. The earlier places of a chain are in one document. The other words
    between runs stay, except by `boundary`. Then repeated windows are removed again, until there
    are neither. A piece is compared with the first 8 places that have its words, so a phrase that
    is everywhere costs no more. All edited copies are found whose pieces are in at most 9 places.

    With `unit`, whole lines, sentences or paragraphs are compared instead, by their words.

    Args:
        source: The corpus; `text`, `id`, `format`, `encoding`, `skip_bad` and `max_document` say
            how it is read, as in `la.dedup`.
        words: The least number of words of a repeated run (default: 50), or of a unit (default: 1).
        gap: The largest number of other words between two runs of an edited copy (default: 0, only
            equal runs are removed).
        unit: "line", "sentence" or "paragraph": remove those that occur in more than
            `max_documents` documents, or more than once in a document (default: runs of words).
        max_documents: The number of documents that may have a unit (default: 1).
        remove: "copies": all but the first copy. "all": the first copy, too.
        boundary: Where runs are cut. "word": only repeated words are removed. "auto" (the default):
            also the rest of a sentence of which they are more than half. "sentence", "line" or
            "paragraph": only those of which more than half is repeated are removed, as a whole; so
            parts of runs may be left. The kept copy of a run is never cut by this.
        keep: Which copy is the first: that in the "first", "last", "longest" or "shortest"
            document, or in the one with the largest or smallest value: "max:COLUMN", "min:COLUMN".
        min_left: Drop documents that are left with fewer words, of those that lost some; 0 keeps
            all of them.
        work: A folder for intermediate results: an interrupted job goes on there (default: a
            temporary folder).
        memory_limit: Bytes of memory for the job (default: not limited).
        threads: The number of threads (default: all cores).
        progress: Is called with the name of a step and the share of it that is done; True shows
            progress bars.

    Returns:
        A `CleanResult`: a table of what was removed. Its methods write the cleaned documents.

    Raises:
        ArgumentError: An option has a value that is not allowed.
        DocumentError: A document cannot be read.
        FileError: A file cannot be read or written.

    Examples:
        >>> import lookalike as la
        >>> documents = ["One. The early bird gets the worm.", "The early bird gets the worm! Two."]
        >>> result = la.clean(documents, words=5)
        >>> result.texts()
        ['One. The early bird gets the worm.', 'Two.']
        >>> result.to_arrow().select(["id", "begin", "end", "copy_of"]).to_pylist()
        [{'id': 1, 'begin': 0, 'end': 30, 'copy_of': 0}]
    """
    options = dict(locals())
    from lookalike.cleaning.job import run_job

    return run_job(options)


@shows_progress
def decontaminate(
    source: Any,
    benchmarks: Any,
    *,
    rule: str = "ngram",
    ngram: SupportsIndex | None = None,
    shortest: SupportsIndex | None = None,
    min_share: SupportsFloat | None = None,
    gap: SupportsIndex | None = None,
    action: str = "drop",
    margin: SupportsIndex | None = None,
    columns: Sequence[str] | None = None,
    text: str | None = None,
    id: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    skip_bad: bool = False,
    max_document: SupportsIndex | None = None,
    threads: SupportsIndex | None = None,
    progress: Progress | bool | None = None,
) -> Contamination:
    """Find documents that contain items of benchmarks, such as test questions.

    Words are those of `la.Words()`: letters and digits, in upper or lower case. An n-gram is a run
    of `ngram` words. Every document and item that the rule joins are found. The corpus is read as a
    stream; memory holds the benchmarks and what was found. Writing reads the corpus once more.

    Args:
        source: The training documents, or a `Collection`; `text`, `id`, `format`, `encoding`,
            `skip_bad` and `max_document` say how they are read, as in `la.dedup`.
        benchmarks: A file, a folder in which each file is a benchmark, a list of files or of texts,
            or a mapping from names to such sources. Lines of plain text are items.
        rule: "ngram": any n-gram of the item (GPT-3). "share": at least `min_share` of its n-grams.
            "run": a run of at least `min_share` of its words. "near": a passage with at least
            `min_share` of its words, made of n-grams or longer runs with at most `gap` other words
            between two, in either text, as `la.passages` has it.
        ngram: Words of an n-gram (default: 13; near 5). An item with fewer words counts as one
            n-gram, if it has at least `shortest` words (default: 8, or `ngram` if that is less).
            Shorter items are not looked for: `Contamination.skipped_items`.
        min_share: The least share (default: 0.5; near 0.8).
        gap: Other words between two runs, of "near" (default: 4).
        action: What `write` does with contaminated documents: "drop" them, "cut" the common
            passages with a `margin`, or "mark" them in columns.
        margin: Characters to cut before and after a common passage (default: 200).
        columns: The columns of benchmarks to look for, joined: ["question", "answer"] for both
            (default: "question", "prompt" or another usual name).
        threads: The number of threads (default: all cores).
        progress: Is called with the name of a step and the share of it that is done; True shows
            progress bars.

    Returns:
        A `Contamination`: a table of documents and items. Its methods write the documents, and the
        benchmarks without contaminated items.

    Examples:
        >>> import lookalike as la
        >>> test = ["If a train leaves at noon and drives for two hours, when does it arrive?"]
        >>> train = ["Quiz: if a train leaves at noon and drives for two hours, when does it come"]
        >>> found = la.decontaminate([*train, "something else"], test)
        >>> len(found.contaminated), found.contaminated[0].evidence[0].words
        (1, 14)
        >>> [one.contaminated for one in found.by_benchmark()]
        [1]
    """
    options = dict(locals())
    from lookalike.cleaning.contamination import run_decontamination

    return run_decontamination(options)
