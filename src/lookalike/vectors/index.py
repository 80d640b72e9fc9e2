"""VectorIndex: neighbors of vectors by their cosine."""

from __future__ import annotations

import threading
from copy import copy
from dataclasses import replace
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import (
    as_array,
    flag,
    neighbor_count,
    seed_number,
    share,
    thread_count,
    whole_number,
)
from lookalike.errors import ArgumentError, CorruptIndexError, Said
from lookalike.indexes import ClusterIndex
from lookalike.indexes.base import DEFAULT_LIMIT, GrowingIndex, described
from lookalike.indexes.filters import Among, Chosen
from lookalike.indexes.kinds import signature_index_in
from lookalike.indexes.results import NO_LIMIT
from lookalike.indexes.rows import as_ids, check_ids
from lookalike.indexes.tuning import Option, SelfTuned, Tuning
from lookalike.shown import counted
from lookalike.signatures import Projection
from lookalike.signatures.signer import signer_in
from lookalike.storage.container import Container
from lookalike.vectors.estimates import Estimator, best_estimates
from lookalike.vectors.given import as_cosine, as_vectors, in_single_precision
from lookalike.vectors.search import (
    Parts,
    Remembered,
    Store,
    VectorMatches,
    VectorNeighbors,
    VectorPairs,
    all_compared,
    all_pairs,
    among_candidates,
    everything_near,
    near_by_signatures,
    pairs_by_signatures,
)
from lookalike.vectors.sketches import Sketches
from lookalike.vectors.tuning import SAMPLE, Effort, effort_for, tuned

_BITS = 512
_FEW = 256  # so few vectors are all compared


class VectorIndex(SelfTuned, GrowingIndex):
    """Find the nearest vectors by cosine similarity.

    Sketches (a byte per dimension, in groups of similar vectors) propose candidates, which are
    ranked by their exact cosine. The first search makes them, or saving the index. `within` and
    `pairs` with a recall use signatures (signs of random projections). A zero vector has cosine 0
    with all vectors. The index and its results are the same for any number of threads. Searches are
    thread-safe, also while vectors are added and removed.

    Args:
        vectors: Rows of float32 or float16, used in place if they are in C order; other numbers
            become float32. Or a pyarrow column of lists. NaN and infinite values raise.
        ids: Ids of the vectors, distinct and at least 0 (default: their positions).
        bits: Number of bits of a signature (default: 512).
        clusters: Number of groups (default: as for `la.ClusterIndex`).
        only_bits: Store signatures and a number for each, no vectors (default: False). Queries
            are still vectors, and similarities are estimates.
        seed: Random seed for the projections and the groups (default: 0).
        threads: Number of threads (default: all cores).

    Examples:
        >>> index = la.VectorIndex(np.array([[1, 0], [0, 1], [1, 1]], np.float32))
        >>> index.search([2, 0.5], k=2).ids.tolist()
        [[0, 2]]
    """

    kind = "vectors"
    signer: Projection
    """Signer of the vectors."""

    def __init__(
        self,
        vectors: Any,
        ids: ArrayLike | None = None,
        *,
        bits: SupportsIndex = _BITS,
        clusters: SupportsIndex | None = None,
        only_bits: bool = False,
        seed: SupportsIndex = 0,
        threads: SupportsIndex | None = None,
    ) -> None:
        rows, workers = as_vectors(vectors), thread_count(threads)
        without_vectors = flag("only_bits", only_bits)
        drawn = seed_number(seed)
        own = None if ids is None else check_ids(ids, len(rows))[0]
        self.signer = Projection(bits, rows.shape[1], drawn)
        self._estimator = Estimator(self.signer) if without_vectors else None
        signed = self._signatures(rows, workers)
        signatures = ClusterIndex(signed, clusters, seed=drawn, threads=workers)
        rows = self._stored(rows, signed, workers)
        wanted = None if clusters is None else whole_number("clusters", clusters, at_least=1)
        self._parts = Parts(signatures, Store(rows, rows[:0], own), self.signer, wanted)
        self._own_ids = own is not None
        self._next_id = len(rows) if own is None else int(own.max(initial=-1)) + 1
        self._writing = threading.Lock()

    def _signatures(self, rows: NDArray[Any], threads: int) -> NDArray[np.uint8]:
        """Return the signatures of rows, some rows at a time."""
        step = 1 << 16
        parts = [
            self.signer.sign(in_single_precision(rows[start : start + step]), threads=threads)
            for start in range(0, len(rows), step)
        ]
        return np.concatenate([np.empty((0, self.signer.bits // 8), np.uint8), *parts])

    def _stored(
        self, rows: NDArray[Any], signatures: NDArray[np.uint8], threads: int
    ) -> NDArray[Any]:
        """Return what is stored beside the signatures: vectors, or one number for each."""
        if self._estimator is None:
            return rows
        return self._estimator.scales(rows, signatures, threads)

    @property
    def only_bits(self) -> bool:
        """Whether signatures are stored without vectors."""
        return self._estimator is not None

    def _need_vectors(self, what: str, instead: str) -> None:
        if self.only_bits:
            raise ArgumentError(
                Said(what),
                f" needs vectors, but the index holds only {self.bits} bits of each; {instead}",
            )

    @property
    def dimensions(self) -> int:
        """Number of dimensions of a vector."""
        return self.signer.dimensions

    @property
    def bits(self) -> int:
        """Number of bits of a signature."""
        return self.signer.bits

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the stored vectors: float32 or float16; uint8 if only bits are stored."""
        return np.dtype(np.uint8) if self.only_bits else self._parts.store.dtype

    @property
    def clusters(self) -> int:
        """Number of groups of vectors that a search chooses from."""
        return self._parts.signatures.clusters if self.only_bits else self._parts.groups

    def __len__(self) -> int:
        return len(self._parts.signatures)

    def __repr__(self) -> str:
        return (
            f"VectorIndex({counted(len(self), 'vector')} of "
            f"{counted(self.dimensions, 'dimension')}, "
            f"{'only' if self.only_bits else f'{self.dtype},'} {self.bits} bits)"
        )

    def living(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return copies of all vectors that were not removed, and their ids."""
        self._need_vectors("living", "keep the vectors elsewhere")
        self._verify_rest()
        store = self._parts.store
        return store.rows(store.places), store.ids_of(store.places).copy()

    def vectors(self, ids: ArrayLike) -> NDArray[Any]:
        """Return copies of the vectors with these ids; raise if an id is missing."""
        self._need_vectors("vectors", "keep them elsewhere")
        wanted = as_ids(np.atleast_1d(as_array("ids", ids)))
        self._verify_rest()
        store = self._parts.store
        found = store.find(wanted)
        if (found < 0).any():
            raise ArgumentError(f"the id {wanted[found < 0][0]} is not in the index")
        return store.rows(found)

    @property
    def memory_bytes(self) -> int:
        """Size of vectors, signatures and sketches in bytes, in memory or memory-mapped."""
        store, sketches = self._parts.store, self._parts.known
        extra = (store.ids, store.removed)
        return (
            store.first.nbytes
            + store.added.nbytes
            + sum(array.nbytes for array in extra if array is not None)
            + self._parts.signatures.memory_bytes
            + (0 if sketches is None else sketches.nbytes)
        )

    def summary(self) -> str:
        """Return a one-line description of the index."""
        if self.only_bits:
            return (
                f"{counted(len(self), 'vector')} of {counted(self.dimensions, 'dimension')}, only "
                f"signatures of {self.bits} bits in {counted(self.clusters, 'group')}"
            )
        return (
            f"{counted(len(self), 'vector')} of {counted(self.dimensions, 'dimension')}, "
            f"{self.dtype}, with signatures of {self.bits} bits in "
            f"{counted(self.clusters, 'group')}"
        )

    def stats(self) -> dict[str, Any]:
        """Return facts about the index, fit for JSON."""
        inner = self._parts.signatures.stats()
        usual = effort_for(None, None, None, 10, self.clusters, (), only_bits=self.only_bits)
        return {
            "index": self.kind,
            "vectors": len(self),
            "dimensions": self.dimensions,
            "dtype": str(self.dtype),
            "bits": self.bits,
            "only_bits": self.only_bits,
            "clusters": self.clusters,
            "candidates": usual.candidates,
            "probe": usual.probe,
            "removed": len(self._parts.store) - len(self),
            "added": inner["added"],
            "seed": self.signer.seed,
            "tunings": self._saved_tunings(),
            "memory_bytes": self.memory_bytes,
            "file": self.file,
        }

    def search(
        self,
        vectors: Any,
        k: SupportsIndex,
        *,
        candidates: SupportsIndex | None = None,
        probe: SupportsIndex | None = None,
        recall: SupportsFloat | None = None,
        exact: bool = False,
        explain: bool = False,
        among: Among = None,
        threads: SupportsIndex | None = None,
    ) -> VectorNeighbors:
        """Return the k most similar vectors of each query and their cosines, ties by id.

        Args:
            vectors: Queries, `float32[n, dimensions]`. One vector is a batch of one.
            k: Number of neighbors.
            candidates: Number of vectors to compare, nearest sketches first (default: 4 per
                neighbor, at least 64; of bits 8, at least 128).
            probe: Number of groups to read, nearest centers first (default: every eighth, at least
                32; of bits every sixth).
            recall: Use the candidates and groups that `tune` measured for this recall.
            exact: Compare all vectors; those that their sketch rules out need no cosine.
            explain: Return what was read as `explanation`.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            threads: Number of threads (default: all cores).

        Returns:
            The neighbors. `exact` is True if each query was compared with all vectors. If only bits
            are stored, similarities are estimates, and `exact` is False.
        """
        plain = exact is False and explain is False and among is None
        key = Remembered.key(k, candidates, probe, recall, threads) if plain else ()
        if plain and (known := self._remembered()) is not None:
            quick = known.answer(key, vectors)
            if quick is not None:
                return quick
        queries = self._queries(vectors)
        count = len(self)
        wanted = neighbor_count(k, len(queries), count)
        every, tell = flag("exact", exact), flag("explain", explain)
        if every or recall is not None:
            what = "exact" if every else "recall"
            self._need_vectors(what, "leave it out, or raise candidates and probe")
        effort = effort_for(
            candidates,
            probe,
            recall,
            wanted,
            self.clusters,
            self._tunings,
            only_bits=self.only_bits,
        )
        workers, parts = thread_count(threads), self._parts
        if self._estimator is not None:
            places = self._among(parts.store, among)
            return best_estimates(
                parts, self._estimator, queries, wanted, effort, places, workers, explain=tell
            )
        sketches = parts.sketches(workers) if count > _FEW else None
        store = parts.store
        places = self._among(store, among)
        searched = store.alive if places is None else len(places)
        if every or sketches is None or searched <= effort.candidates:
            return all_compared(store, places, queries, wanted, workers, sketches, explain=tell)
        if plain and wanted <= store.alive:
            self._remember(store, sketches, key, wanted, effort)
        return among_candidates(
            store, sketches, queries, wanted, effort, places, workers, explain=tell
        )

    def _remembered(self) -> Remembered | None:
        """Return questions that are valid for the index as it is now."""
        parts = self._parts
        known = parts.remembered
        if known is None or parts.known is None:
            return None
        store, sketches, tunings = known.of
        same = store is parts.store and sketches is parts.known and tunings is self._tunings
        return known if same else None

    def _remember(
        self, store: Store, sketches: Sketches, key: tuple[object, ...], k: int, effort: Effort
    ) -> None:
        known = self._remembered()
        if known is None:
            known = self._parts.remembered = Remembered(store, sketches, self._tunings)
        known.add(key, k, effort)

    def make_sketches(self, *, threads: SupportsIndex | None = None) -> None:
        """Make the sketches now, if there are none yet; otherwise the first search makes them."""
        if not self.only_bits and len(self) > _FEW:
            self._parts.sketches(thread_count(threads))

    def within(
        self,
        vectors: Any,
        similarity: SupportsFloat,
        *,
        recall: SupportsFloat | None = None,
        limit: SupportsIndex = DEFAULT_LIMIT,
        among: Among = None,
        threads: SupportsIndex | None = None,
    ) -> VectorMatches:
        """Return every vector whose cosine with a query is at least `similarity`.

        Args:
            vectors: Queries, or a single vector.
            similarity: Smallest cosine.
            recall: Compare a vector at the similarity with at least this probability, by its
                signature (default: compare all vectors). Faster for high similarities.
            limit: Maximum number of matches of all queries together.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            threads: Number of threads (default: all cores).

        Raises:
            ResultTooLargeError: If there are more matches than `limit`.
        """
        self._need_vectors("within", "search for the nearest, and keep those that are similar")
        queries, least = self._queries(vectors), as_cosine(similarity)
        most, workers = whole_number("limit", limit, at_least=0), thread_count(threads)
        chance = None if recall is None else share("recall", recall)
        parts = self._parts
        store = parts.store
        places = self._among(store, among)
        if chance is None or chance == 1:
            living = store.places if places is None else places
            return everything_near(store, living, queries, least, most, workers)
        return near_by_signatures(parts, queries, least, chance, places, most, workers)

    def pairs(
        self,
        similarity: SupportsFloat,
        *,
        recall: SupportsFloat | None = None,
        limit: SupportsIndex = DEFAULT_LIMIT,
        candidates: SupportsIndex | None = None,
        threads: SupportsIndex | None = None,
    ) -> VectorPairs:
        """Return every pair of vectors whose cosine is at least `similarity`, each once.

        Args:
            similarity: Smallest cosine.
            recall: Compare a pair at the similarity with at least this probability, by its
                signatures (default: compare all pairs). Faster for high similarities.
            limit: Maximum number of pairs.
            candidates: Maximum number of pairs that signatures propose, which take 20 bytes each
                (default: no limit).
            threads: Number of threads (default: all cores).

        Raises:
            ResultTooLargeError: If there are more pairs than `limit`, or than `candidates`.
        """
        self._need_vectors("pairs", "use la.ClusterIndex with signatures for pairs by bits")
        least, workers = as_cosine(similarity), thread_count(threads)
        most = whole_number("limit", limit, at_least=0)
        chance = None if recall is None else share("recall", recall)
        self._verify_rest()
        if chance is None or chance == 1:
            return all_pairs(self._parts.store, least, most, workers)
        near = NO_LIMIT
        if candidates is not None:
            near = whole_number("candidates", candidates, at_least=0)
        return pairs_by_signatures(self._parts, least, chance, most, workers, near)

    def tune(
        self,
        k: SupportsIndex = 10,
        recall: SupportsFloat = 0.95,
        queries: Any = None,
        *,
        sample: SupportsIndex = SAMPLE,
        threads: SupportsIndex | None = None,
    ) -> Tuning[Option]:
        """Measure the candidates and groups that reach a recall, and save them with the index.

        `search` uses them for `recall` up to this recall and `k` up to this k.

        Args:
            k: Number of neighbors (default: 10).
            recall: Share of the k nearest to find (default: 0.95).
            queries: Vectors to search for (default: vectors of the index, each among the others).
            sample: Maximum number of queries (default: 1,000).
            threads: Number of threads (default: all cores).
        """
        self._need_vectors("tune", "measure recall where the vectors are")
        wanted, target = whole_number("k", k, at_least=1), share("recall", recall)
        most, workers = whole_number("sample", sample, at_least=1), thread_count(threads)
        asked = None if queries is None else self._queries(queries)[:most]
        self._verify_rest()
        tuning = tuned(self._parts, wanted, target, asked, most, workers)
        with self._writing:
            self._keep(tuning)
        return tuning

    def _queries(self, vectors: Any) -> NDArray[np.float32]:
        return in_single_precision(as_vectors(vectors, dimensions=self.dimensions, single=True))

    def _among(self, store: Store, among: Among) -> NDArray[np.int64] | None:
        chosen = Chosen.of(among, self)
        return None if chosen is None else store.chosen(chosen)

    def add(
        self, vectors: Any, ids: ArrayLike | None = None, *, threads: SupportsIndex | None = None
    ) -> NDArray[np.int64]:
        """Add vectors and return their ids: the given ids, or the next free numbers.

        Vectors are stored in the type of the index; values that float16 cannot hold raise.
        """
        held = None if self.only_bits else self.dtype
        rows = as_vectors(vectors, dimensions=self.dimensions, held=held)
        given = None if ids is None else check_ids(ids, len(rows))[0]
        workers = thread_count(threads)
        self._verify_rest()
        signatures = self._signatures(rows, workers)
        rows = self._stored(rows, signatures, workers)
        with self._writing:
            parts, new = self._parts, self._ids_for(given, len(rows))
            if len(rows):
                parts.store = parts.store.with_rows(rows, new, parts.signatures.next_id)
                parts.signatures.add(signatures, threads=workers)
                parts.extend_sketches(workers)
        return new

    def _refuse_known(self, ids: NDArray[np.int64]) -> None:
        known = self._parts.store.find(ids) >= 0
        if known.any():
            raise ArgumentError(f"the id {ids[known][0]} is in the index already; remove it first")

    def _remove(self, ids: NDArray[np.int64]) -> None:
        parts = self._parts
        places = parts.store.find(ids)
        if (missing := places < 0).any():
            raise ArgumentError(
                f"the id {ids[missing][0]} is not in the index; nothing was removed"
            )
        if len(places):
            parts.signatures.remove(places)
            parts.store = parts.store.without(places)

    def compact(self, *, threads: SupportsIndex | None = None) -> None:
        """Build new groups, and free the space of removed vectors."""
        workers = thread_count(threads)
        self._verify_rest()
        with self._writing:
            parts = self._parts
            inner, places = parts.signatures, parts.store.places
            rows = inner.living()[0]
            if len(rows) != len(places):
                raise CorruptIndexError(
                    "signatures and vectors of the index do not fit; rebuild it"
                )
            signatures = ClusterIndex(rows, seed=inner.seed, threads=workers)
            self._parts = Parts(signatures, parts.store.compacted(), self.signer)

    def _without_room(self) -> None:
        parts = self._parts
        store, signatures = replace(parts.store, room=None), copy(parts.signatures)
        self._parts = Parts(signatures, store, self.signer, parts.wanted, parts.known)

    def _meta(self) -> dict[str, Any]:
        return {
            **super()._meta(),
            "dtype": str(self.dtype),
            "own_ids": self._own_ids,
            "next_id": self._next_id,
            "tunings": self._saved_tunings(),
            "sketch_error": None if self._parts.known is None else self._parts.known.error,
        }

    def _contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        if not self.only_bits:
            self._parts.sketches(thread_count(None))
        return super()._contents()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return vectors (float16 as uint16), the index of signatures, and sketches."""
        store = self._parts.store
        rows = store.all_rows()
        arrays: dict[str, NDArray[Any]] = {
            "vectors": rows.view(np.uint16) if store.dtype == np.float16 else rows,
            "signatures": np.frombuffer(self._parts.signatures.to_bytes(), np.uint8),
        }
        if store.ids is not None:
            arrays["ids"] = store.ids
        if store.removed is not None:
            arrays["removed"] = store.removed
        if self._parts.known is not None:
            arrays |= self._parts.known.arrays()
        return arrays

    def _restore(self, container: Container) -> None:
        meta, self._writing = container.meta, threading.Lock()
        with described(container, "vectors"):
            signer = signer_in(container)
            self._own_ids, self._next_id = bool(meta["own_ids"]), int(meta["next_id"])
            error = meta.get("sketch_error")
            # Files of versions before sketches have tunings of signatures.
            tunings = meta["tunings"] if "sketch_error" in meta else []
            self._restore_tunings(tunings, "candidates", "probe")
            error = None if error is None else float(error)
            half = {"float16": True, "float32": False, "uint8": False}[meta["dtype"]]
            only_bits = meta["dtype"] == "uint8"
        rows = container.array("vectors", np.uint16 if half else np.float32, 2)
        rows = rows.view(np.float16) if half else rows
        ids = container.array("ids", np.int64, 1) if "ids" in container else None
        removed = container.array("removed", np.uint8, 1) if "removed" in container else None
        store = Store(rows, np.empty((0, rows.shape[1]), rows.dtype), ids, removed)
        inner = signature_index_in(container.inner("signatures"))
        fits = (
            all(len(array) == len(store) for array in (ids, removed) if array is not None)
            and inner.next_id == len(store)
            and len(inner) == store.alive
            and (self._own_ids or ids is not None or self._next_id >= len(store))
            and 0 <= self._next_id <= 2**63
        )
        if not (
            fits
            and isinstance(signer, Projection)
            and isinstance(inner, ClusterIndex)
            and rows.shape[1] == (1 if only_bits else signer.dimensions)
            and signer.bits == inner.bits
            and not (only_bits and error is not None)
        ):
            raise CorruptIndexError(
                f"{container.path} holds {len(store)} vectors, and signatures, ids or marks that "
                "do not fit them; it is damaged"
            )
        known = None if error is None else Sketches.restored(container, error, store.shape)
        self.signer, self._parts = signer, Parts(inner, store, signer, None, known)
        self._estimator = Estimator(signer) if only_bits else None
