"""What a corpus is about: its documents in clusters, and the words that tell them apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

from lookalike.progress import Progress, shows_progress

if TYPE_CHECKING:
    from lookalike.features.choice import FeatureChoice
    from lookalike.features.text import Lengths
    from lookalike.pages import PageLimits
    from lookalike.topics.result import DocumentClusters


@shows_progress
def cluster_documents(
    source: Any,
    k: SupportsIndex | None = None,
    *,
    text: str | None = None,
    id: str | None = None,
    title: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    ngram: Lengths | None = None,
    features: FeatureChoice = "words",
    stop_words: str | Iterable[str] | None = None,
    stem: str | None = None,
    common: SupportsIndex | None = None,
    seed: SupportsIndex = 0,
    words: SupportsIndex = 10,
    central: SupportsIndex = 5,
    max_document: SupportsIndex | None = None,
    skip_bad: bool = False,
    threads: SupportsIndex | None = None,
    progress: Progress | bool | None = None,
    html: str | None = None,
    page_limits: PageLimits | None = None,
    min_words: int = 0,
    max_repetition: float = 1.0,
    language: str | None = None,
    min_links: int = 0,
    min_bytes: int = 0,
    strip_urls: bool = False,
) -> DocumentClusters:
    """Cluster the documents of a corpus, and find the words that describe each cluster.

    Documents become points: TF-IDF of their features, reduced to 64 dimensions by a singular value
    decomposition. Spherical k-means finds the centers, and a document is in the cluster with the
    nearest center. Both are learned from a sample of at most 16,384 documents. A document without
    features is in no cluster. Clusters are numbered from 0, the largest first. If fewer than `k`
    documents differ, there are fewer clusters. The same corpus and seed give the same result, for
    any number of threads. Texts are in a temporary folder until the result is deleted.

    Args:
        source: The corpus; `text`, `id` and the other options for reading are those of `la.dedup`.
        k: The number of clusters (default: the root of half the number of documents, at most 50;
            then clusters with several topics are split and those with the same topic merged).
        title: The column with titles, which are shown instead of texts (default: detected; without
            one, the first line of a text that looks like a heading, or the id).
        ngram: The number of words of a feature (default: 1).
        common: The largest number of different documents of a feature that counts; the others are
            left out, also of the words that describe a cluster (default: any number).
        seed: The seed of the sample and of the first centers.
        words: The number of words that describe a cluster: those with the highest log-likelihood
            ratio (Dunning) of its documents beside the others, without function words, numbers,
            names of persons, and words that are spread evenly over clusters.
        central: The number of documents of a cluster that are listed, nearest to its center first.

    Returns:
        The clusters, with the words of each and the cluster of each document.

    Raises:
        ArgumentError: If an option is invalid, or `k` exceeds the number of documents with words.

    Examples:
        >>> import lookalike as la
        >>> documents = ["red apple pie", "green apple pie", "fast red car", "fast blue car"]
        >>> found = la.cluster_documents(documents, 2)
        >>> sorted(found.members(found.labels[0]).tolist())
        [0, 1]
    """
    options = dict(locals())
    from lookalike.topics.job import run_job

    return run_job(options)
