"""The de-duplication job, one file per step: read, sign, propose, verify, cluster, choose, write.

Signatures propose pairs, the documents' exact similarity decides. What the steps need is imported
when the first job begins.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, SupportsIndex

from lookalike.lazy import names_from

if TYPE_CHECKING:
    from lookalike.dedup.embeddings.job import dedup_vectors
    from lookalike.dedup.embeddings.result import VectorDedupCounts, VectorDedupResult
    from lookalike.dedup.job import STEPS
    from lookalike.dedup.media.door import dedup_media
    from lookalike.dedup.media.result import MediaCounts, MediaResult
    from lookalike.dedup.pair_clusters import PairClusters, cluster_pairs
    from lookalike.dedup.pairs import VerifiedPairs
    from lookalike.dedup.result import DedupCounts, DedupResult
    from lookalike.dedup.settings import ALIASES, CLUSTERINGS, METHODS, DedupSettings
    from lookalike.pages import PageLimits

__all__ = [
    "ALIASES",
    "CLUSTERINGS",
    "DEVICES",
    "METHODS",
    "STEPS",
    "DedupCounts",
    "DedupResult",
    "DedupSettings",
    "MediaCounts",
    "MediaResult",
    "PairClusters",
    "VectorDedupCounts",
    "VectorDedupResult",
    "VerifiedPairs",
    "cluster_pairs",
    "dedup",
    "dedup_media",
    "dedup_vectors",
]

__getattr__ = names_from(
    globals(),
    {
        "lookalike.dedup.pair_clusters": ("PairClusters", "cluster_pairs"),
        "lookalike.dedup.embeddings.job": ("dedup_vectors",),
        "lookalike.dedup.embeddings.result": ("VectorDedupCounts", "VectorDedupResult"),
        "lookalike.dedup.job": ("STEPS",),
        "lookalike.dedup.result": ("DedupCounts", "DedupResult"),
        "lookalike.dedup.settings": (
            "ALIASES",
            "CLUSTERINGS",
            "DEVICES",
            "METHODS",
            "DedupSettings",
        ),
        "lookalike.dedup.pairs": ("VerifiedPairs",),
        "lookalike.dedup.media.door": ("dedup_media",),
        "lookalike.dedup.media.result": ("MediaCounts", "MediaResult"),
    },
)


def dedup(
    source: Any,
    *,
    text: str | None = None,
    id: str | None = None,
    format: str | None = None,
    against: Any = None,
    work: str | os.PathLike[str] | None = None,
    memory_limit: SupportsIndex | None = None,
    max_document: SupportsIndex | None = None,
    skip_bad: bool = False,
    threads: SupportsIndex | None = None,
    device: str = "cpu",
    progress: Callable[[str, float], None] | None = None,
    save_signatures: str | os.PathLike[str] | None = None,
    html: str | None = None,
    page_limits: PageLimits | None = None,
    encoding: str | None = None,
    min_words: int = 0,
    language: str | None = None,
    min_links: int = 0,
    strip_urls: bool = False,
    **settings: Any,
) -> DedupResult:
    """Find the near-duplicates of a corpus and choose who of them stays.

    `source`: a path or pattern (JSON Lines, JSON, CSV, TSV, Parquet, text by line, folders; gzip,
    zstd), a list of `Path`s, a list of `str` or of mappings, an Arrow table or column, a pandas or
    polars frame, a Hugging Face dataset or several by name, an address such as s3://bucket/folder,
    which is copied first. `text` and `id` name columns; obvious ones are found.
    `settings` are those of `DedupSettings`, such as `threshold=0.7`, also by the names that other
    tools have for them (`ALIASES`).

    `against` is a corpus, or a file that `save_signatures` wrote: what is already there goes.
    `save_signatures` writes a file for that: the signatures of `against` and of what stays. If the
    result is to be written first, leave it to `DedupResult.save_signatures`.

    Pairs are proposed by signatures and decided by the exact similarity of the documents, so each
    verified pair is one; a pair at the threshold is proposed with a chance of at least 99.5%
    (MinHash), and every pair is found with `exact=True`. Every document that is dropped is equal to
    one that stays (or to an old one), or their exact similarity was computed and is at least
    `threshold`; no verified pair stays whole.
    With `cluster="components"`, `verify=False` or an `against` of signatures it is not so, and
    `DedupCounts` tells of how many. The same input gives the same survivors, for any number of
    threads. Texts, signatures and pairs lie on disk, in `work` (where an interrupted job goes on,
    and another threshold needs no new signatures) or in a temporary folder; memory is some 150
    bytes a document and 600 MB. A document of more than `max_document` bytes (256 MB, or a 40th
    of `memory_limit`) is bad: it is refused, or with `skip_bad` left out, before it is held or
    expanded.
    Of web pages (files called .html, crawls as .warc, .warc.gz and .warc.zst, a column that `html`
    names) the main text is the document, and title, language and links are columns of what is
    written. A page of more than 16 MB, or beyond `page_limits`, is left out, counted and named, and
    so are documents of fewer than `min_words` words, in another language than `language` ("en", or
    "en,de"), or with fewer than `min_links` links. With `strip_urls`, URLs in texts do not count.
    These need the extra `html`.
    `encoding` is that of text files that are read, such as "cp1252" or "utf-16". Without it, files
    with a byte order mark and valid UTF-8 are read as such, and other encodings are detected, which
    `DedupResult.warnings` tells. Files of a folder that are not text, or cannot be decoded, are
    left out; `DedupResult.to_dict()["files_left_out"]` names each.
    `device="gpu"`: a CUDA card looks for the pairs of SimHash and TopSig, each with each, and the
    result is the same.
    `progress` is called with the name of a step and the share of it that is done.
    """
    from lookalike.corpora.columns import Filters
    from lookalike.dedup.job import run_job

    filters = Filters(
        min_words=min_words, language=language, min_links=min_links, strip_urls=strip_urls
    )
    return run_job(
        source,
        text=text,
        id=id,
        format=format,
        against=against,
        work=work,
        memory_limit=memory_limit,
        max_document=max_document,
        skip_bad=skip_bad,
        threads=threads,
        device=device,
        progress=progress,
        save_signatures=save_signatures,
        html=html,
        page_limits=page_limits,
        encoding=encoding,
        filters=filters,
        settings=settings,
    )
