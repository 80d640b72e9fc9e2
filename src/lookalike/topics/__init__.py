"""What a corpus is about: its documents in clusters, and the words that tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

if TYPE_CHECKING:
    from lookalike.features.choice import FeatureChoice
    from lookalike.features.text import Lengths
    from lookalike.pages import PageLimits
    from lookalike.topics.result import DocumentClusters


def cluster_documents(
    source: Any,
    k: SupportsIndex | None = None,
    *,
    text: str | None = None,
    id: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    method: str = "topsig",
    bits: SupportsIndex | None = None,
    ngram: Lengths | None = None,
    features: FeatureChoice = "words",
    stop_words: str | Iterable[str] | None = None,
    stem: str | None = None,
    weights: str = "tfidf",
    seed: SupportsIndex = 0,
    words: SupportsIndex = 10,
    central: SupportsIndex = 5,
    max_document: SupportsIndex | None = None,
    skip_bad: bool = False,
    threads: SupportsIndex | None = None,
    progress: Callable[[str, float], None] | None = None,
    html: str | None = None,
    page_limits: PageLimits | None = None,
    min_words: int = 0,
    language: str | None = None,
    min_links: int = 0,
    strip_urls: bool = False,
) -> DocumentClusters:
    """Put the documents of a corpus into k clusters, and say what each is about.

    `source`, `text`, `id` and the options for reading are those of `la.dedup`. The default of `k`
    is the root of half the number of documents, at most 50.

    Documents are signed by "topsig" or "simhash" in 4096 `bits`, by single words unless `ngram` or
    `features` say otherwise, with `weights` that are learned from the corpus, and clustered by
    `la.cluster`. A document is in the cluster with the nearest center; one without features is in
    none. Clusters are numbered from 0, the largest first; if there are fewer different signatures
    than k, there are as many clusters.

    Each cluster has up to `words` words, those that tell it best from the others (Dunning's
    log-likelihood ratio of the documents that have them), and up to `central` documents, those
    nearest to its center, the first of equal ones. The same corpus gives the same result, for any
    number of threads. Texts and signatures are in a temporary folder until the result is gone.
    """
    options = dict(locals())
    from lookalike.topics.job import run_job

    return run_job(options)
