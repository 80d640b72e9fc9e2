"""Find the nearest embeddings by cosine, and remove near-duplicates among them.

Run it with `python examples/embeddings.py`.
"""

import numpy as np

import lookalike as la


def main() -> None:
    """Make embeddings around 50 topics and search them."""
    rng = np.random.default_rng(0)
    topics = rng.normal(size=(50, 128))
    embeddings = topics[rng.integers(0, 50, 10_000)] + rng.normal(size=(10_000, 128))
    embeddings[9_000:] = embeddings[:1_000] + 0.05 * rng.normal(size=(1_000, 128))
    embeddings = embeddings.astype(np.float32)

    index = la.VectorIndex(embeddings)
    ids, cosines = index.search(embeddings[:1], k=3)[0]
    for id, cosine in zip(ids, cosines, strict=True):
        print(f"vector {id} has cosine {cosine:.3f}")

    tuning = index.tune(k=10, recall=0.95)
    print(f"recall {tuning.recall:.2f} with {tuning.search_settings['candidates']} candidates")

    result = la.dedup(embeddings, threshold=0.99)
    print(f"{result.counts.documents} vectors, {result.counts.kept} kept")


if __name__ == "__main__":
    main()
