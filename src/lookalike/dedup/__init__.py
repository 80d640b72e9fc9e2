"""De-duplication of text, vectors, images and recordings: read, propose, verify, decide, write."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

from lookalike.progress import Progress, shows_progress

if TYPE_CHECKING:
    from lookalike.dedup.result import AnyResult as DedupResult
    from lookalike.features.choice import FeatureChoice
    from lookalike.features.text import Lengths
    from lookalike.media import Medium
    from lookalike.pages import PageLimits
    from lookalike.recordings.audio_hash import AudioHash


@shows_progress
def dedup(
    source: Any,
    *,
    kind: str | Medium[Any] = "auto",
    text: str | None = None,
    vectors: str | None = None,
    id: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    skip_bad: bool = False,
    max_document: SupportsIndex | None = None,
    html: str | None = None,
    page_limits: PageLimits | None = None,
    min_words: int = 0,
    max_repetition: float = 1.0,
    language: str | None = None,
    min_links: int = 0,
    min_bytes: int = 0,
    strip_urls: bool = False,
    against: Any = None,
    purpose: str = "duplicates",
    method: str = "minhash",
    threshold: SupportsFloat | str | None = None,
    ngram: Lengths | None = None,
    permutations: SupportsIndex = 128,
    bits: SupportsIndex | None = None,
    radius: SupportsIndex | None = None,
    seed: SupportsIndex = 0,
    verify: bool = True,
    min_features: SupportsIndex = 1,
    grouping: str = "star",
    max_group: SupportsIndex = 1000,
    keep: str | Callable[[list[dict[str, Any]]], Any] | None = None,
    exact: bool = False,
    features: FeatureChoice | None = None,
    stop_words: Any = None,
    stem: str | None = None,
    measure: str | None = None,
    direction: str = "contained",
    common: SupportsIndex | None = None,
    recall: SupportsFloat | None = None,
    hash: str = "dct",
    rotated: bool = False,
    signer: AudioHash | None = None,
    work: str | os.PathLike[str] | None = None,
    cache: bool = True,
    memory_limit: SupportsIndex | None = None,
    threads: SupportsIndex | None = None,
    device: str = "cpu",
    progress: Progress | bool | None = None,
    save_signatures: str | os.PathLike[str] | None = None,
    num_perm: SupportsIndex | None = None,
    ngram_size: Lengths | None = None,
    bit_diff: SupportsIndex | None = None,
) -> DedupResult:
    """Find near-duplicates among documents, vectors, images or recordings; choose which to keep.

    Signatures propose pairs and the exact similarity of the items decides. Every dropped item is
    equal to a kept (or old) one, or at least as similar to it as the threshold; no two kept items
    are a known pair. This does not hold with `grouping="components"`, `keep="none"`, `verify=False`
    or an `against` of signatures; `DedupCounts` has the numbers. The same input gives the same
    result, for any number of threads. Nothing is deleted or overwritten.

    An option that does nothing for a kind is refused; docs/deduplicating.md has a table.

    Args:
        source: A path or pattern (JSON Lines, JSON, CSV, TSV, Parquet, text by line, folders; gzip,
            zstd), a list of `Path`s, a list of `str` or of mappings, an Arrow table or column, a
            pandas or polars frame, a Hugging Face dataset, or an address such as
            s3://bucket/folder. For images and recordings: folders, files or patterns.
        kind: "text", "vectors", "images", "recordings", a medium of another package, or a `Medium`
            with its settings. "auto": the medium of more than half of the files, told by their
            first bytes; "vectors" if that option is given; else "text".
        text: The column with the document text (default: detected).
        vectors: The column with lists of numbers, which are compared by their cosine.
        id: The column with ids (default: detected, or the positions of rows).
        format: The input format (default: from the file extension).
        encoding: The encoding of text files, such as "cp1252" (default: detected).
        skip_bad: Leave out and count rows that cannot be read, instead of raising.
        max_document: The most bytes of a document (default: 256 MB, or a 40th of `memory_limit`).
        html: The column with web pages, whose main text is compared. Files called .html and crawls
            (.warc, .warc.gz) are web pages without it. Needs the extra `html`.
        page_limits: Limits on the depth, tags, time and memory of a web page.
        min_words: Leave out documents with fewer words.
        max_repetition: Leave out documents of whose runs of five words a larger share repeats an
            earlier run of the same document.
        language: Leave out documents in other languages than these: "en", or "en,de".
        min_links: Leave out pages with fewer links.
        min_bytes: Leave out smaller texts (in UTF-8), and pages with less HTML.
        strip_urls: Ignore URLs when comparing texts.
        against: An old corpus, or a file of `save_signatures`: documents in it are dropped. For
            vectors, a corpus, an array, or a `VectorIndex` or its file. For images and recordings,
            old folders, files or patterns, which are never dropped.
        purpose: "duplicates", or "versions" of long documents: a `measure` of "weighted-jaccard"
            with a `threshold` of 0.025 and a `common` of 5, where these are not given.
        method: The signatures: "minhash" (Jaccard similarity of sets of n-grams), "simhash" or
            "topsig" (cosine of n-gram counts).
        threshold: The least similarity (default: 0.8; features "short" 0.75; vectors 0.95). Of
            recordings, the share of the longer one that has to be the same. Of images, "strict"
            (the whole image), "normal" (also crops, frames and captions; the default) or "loose".
        ngram: Words or characters of a feature, or several such lengths. Also `ngram_size`.
        permutations: Number of MinHash values per document. With 128, a pair at the threshold is
            found with a probability of 99.5% or more. Also `num_perm`.
        bits: Bits of a signature, of SimHash, TopSig and images (256, or 64).
        radius: The maximum Hamming distance of a candidate pair (default: derived from the
            threshold), or of two images (56 of 256 bits). Also `bit_diff`.
        seed: The random seed for signatures.
        verify: Compare candidate pairs exactly. Without it, signatures estimate similarities.
        min_features: Keep documents with fewer features, without comparing them.
        grouping: "star": drop only near-duplicates of a kept item. "components": keep one of all
            items that pairs connect.
        max_group: With components: split larger ones into stars.
        keep: Which item of a group to keep: "first" (the default), "last", "longest", "shortest",
            "max:COLUMN", "min:COLUMN", "none" to drop the whole group, or a function that gets the
            rows of a group as a list of dicts, and returns the one to keep, or its position. Of
            files, the default is "best": the image with most pixels, the best recording
            (docs/recordings.md). They also have "largest", "smallest", "oldest", "newest" and
            "path:PATTERN", but not "longest" and "shortest".
        exact: Find every pair at or above the threshold, not only those that signatures propose.
        features: "words", "chars", both ("words,chars"), "short" (`la.ShortText`), an object such
            as `la.Words(...)`, or a function from a text to its features. By default words, and
            "short" if 90% of the documents with text have at most 120 characters. Other methods
            and measures than the default ones, `ngram`, `stop_words`, `stem` and `min_features`
            also mean words. A file of signatures in `against` brings its features along.
        stop_words: Words to leave out: a language such as "english", or a list.
        stem: Compare the stems of words of this language.
        measure: "jaccard", "cosine" or "containment" (default: what the signatures estimate);
            "weighted-jaccard" or "weighted-containment", where features weigh by their rarity in
            the corpus, so that boilerplate hardly counts: docs/deduplicating.md.
        direction: With containment, which documents `against` drops: those "contained" in an old
            one (the default), those "containing" one, or "either".
        common: Leave out features that more than this number of documents have (default: none).
        recall: The chance that a pair of vectors at the threshold is found (default: 0.999).
        hash: The hash of images: "dct", "gradient" or "pdq".
        rotated: Also find copies of images and videos that were turned by quarters or mirrored.
        signer: How recordings are compared (default: `la.AudioHash()`).
        work: A folder for texts, signatures and pairs: an interrupted job goes on there, and
            another threshold needs no new signatures (default: a temporary folder). For images,
            recordings and videos, what `cache` keeps is kept there instead.
        cache: Keep what is compared of images, recordings and videos in the user's cache folder, so
            that unchanged files are not read again.
        memory_limit: Bytes of memory for the job. Without it, the job takes about 600 MB plus 150
            bytes per document; decoders of images take at most 1 GiB, or 176 MiB per core.
        threads: The number of threads (default: all cores).
        device: "gpu": a CUDA GPU looks for pairs of signatures; the result is the same.
        progress: Is called with the name of a step and the share of it that is done; True shows
            progress bars.
        save_signatures: Write the signatures of `against` and of the kept documents to this file.
            To write the result first, use `TextResult.save_signatures`.

    Returns:
        A `TextResult`, a `VectorResult`, or a `MediaResult` of images or recordings.

    Raises:
        ArgumentError: An option has a value that is not allowed, or does nothing for this kind.
        DocumentError: An item cannot be read. Web pages, images and recordings that cannot be read
            are left out, counted and named instead.
        FileError: A file cannot be read or written.

    Examples:
        >>> import lookalike as la
        >>> documents = ["the early bird gets the worm", "The early bird gets the worm!", "the cat"]
        >>> result = la.dedup(documents)
        >>> result.kept()
        ['the early bird gets the worm', 'the cat']
        >>> result.counts.near_duplicates, result.duplicate_of.tolist()
        (1, [-1, 0, -1])
    """
    options = dict(locals())
    from lookalike.dedup.kinds import run

    result: DedupResult = run(options.pop("source"), options.pop("kind"), options)
    return result
