"""Signatures made while others are still read: a core that reading leaves idle does it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.context import JobContext
from lookalike.signatures.signer import DocumentSigner

_MOST_BYTES, _SHARE = 64 << 20, 128
"""Of signatures, and of texts that wait for theirs; and the share of a memory limit for each."""


class EarlySignatures:
    """Those of the first documents, as many as there is room for; the others are signed later."""

    def __init__(
        self,
        signer: DocumentSigner,
        threads: int,
        room: int,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._signer = signer
        self._threads = threads
        self._room = room
        self._pool = pool
        self._made: deque[Future[NDArray[np.uint8]]] = deque()
        self._waiting = self._bytes = 0

    def add(self, texts: Any) -> None:
        """Let more texts be signed, `large_string` of Arrow; none after one too many."""
        self._waiting += texts.nbytes
        self._bytes += len(texts) * self._signer.bits // 8
        if self._waiting > self._room or self._bytes > self._room:
            self._room = 0
        else:
            self._made.append(self._pool.submit(self._sign, texts))

    def taken(self) -> Iterator[NDArray[np.uint8]]:
        """Yield what is made, the rows of the first documents and of those after them, once."""
        while self._made:
            yield self._made.popleft().result()

    def _sign(self, texts: Any) -> NDArray[np.uint8]:
        filled = texts.fill_null("") if texts.null_count else texts
        stream = pa.chunked_array([filled]).__arrow_c_stream__()
        documents = _native.Documents.from_arrow(stream)
        signatures = self._signer.sign(documents, threads=self._threads)
        self._waiting -= texts.nbytes
        return signatures


@contextmanager
def early_signatures(job: JobContext) -> Iterator[EarlySignatures | None]:
    """Yield what signs documents as they are read, if reading leaves a core and Python idle."""
    settings = job.settings
    # Features that Python finds would keep Python from reading meanwhile.
    if job.threads < 2 or not isinstance(settings.features, str) or settings.stem is not None:
        yield None
        return
    room = _MOST_BYTES
    if job.memory_limit is not None:
        room = min(room, job.memory_limit // _SHARE)
    pool = ThreadPoolExecutor(1)
    try:
        yield EarlySignatures(settings.signer(), job.threads, room, pool)
    finally:
        pool.shutdown(cancel_futures=True)
