"""The words of documents, as a keyword index holds them.

A bag of words has no order: for each different word of a text a hash of 40 bits, and how often the
word occurs, at most 255 times. Beside them, it has pieces of words. `native/words/bags.hpp`
describes its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lookalike import _native
from lookalike.checks import thread_count


def bags_of(texts: Sequence[str], kind: str) -> list[bytes]:
    """Return the bag of words of each text; `kind` is one of `WORD_KINDS`."""
    documents = _native.Documents.from_list(list(texts), 0)
    offsets, data = _native.word_bags(documents, kind, thread_count(None))
    joined, ends = data.tobytes(), offsets.tolist()
    return [joined[begin:end] for begin, end in pairwise(ends)]
