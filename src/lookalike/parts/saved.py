"""Parts in a file: what is written, and what is checked before it is believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError, CorruptIndexError
from lookalike.indexes import Index
from lookalike.indexes.base import plain_notes
from lookalike.indexes.files import index_in
from lookalike.indexes.live.keys import key_arrays, restored_keys
from lookalike.parts.given import FARTHEST
from lookalike.parts.inner import maker_of
from lookalike.parts.near import Indexed
from lookalike.parts.segment import Segment
from lookalike.shown import brief
from lookalike.signatures.simhash import signature_bits
from lookalike.storage import Container

__all__ = ["contents", "restored"]


def contents(
    bits: int, kind: str, segments: Sequence[Indexed], notes: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what a container needs to hold all parts, which are in one segment or none."""
    meta: dict[str, Any] = {"index": "parts", "bits": bits, "signatures": kind}
    if notes:
        meta["notes"] = plain_notes(notes)
    if not segments:
        segments = [Indexed(_nothing(bits), None, 0, 0)]
    ((segment, index),) = ((one.segment, one.index) for one in segments)
    arrays: dict[str, NDArray[Any]] = {
        **key_arrays(segment.ids),
        "begins": segment.begins,
        "offsets": segment.offsets,
        "words": segment.words,
        "part_words": segment.part_words,
        "word_begins": segment.word_begins,
        "word_parts": segment.word_parts,
    }
    if isinstance(index, Index):
        arrays["index"] = np.frombuffer(index.to_bytes(), np.uint8)
    return meta, arrays


def _nothing(bits: int) -> Segment:
    none = np.empty(0, np.int64)
    return Segment.of([], none, none, none, np.empty((0, bits // 8), np.uint8), none)


def restored(container: Container) -> tuple[int, str, dict[str, Any], Segment, Index | None]:
    """Return bits, kind of index, notes, all parts and the index of their signatures."""
    container.verify_ahead()
    meta = container.meta
    kind, notes = meta.get("signatures"), meta.get("notes", {})
    try:
        bits = signature_bits(meta.get("bits"))  # type: ignore[arg-type]
        maker_of(str(kind))
    except ArgumentError as error:
        raise _damaged(container, str(error)) from error
    if not isinstance(notes, dict):
        raise _damaged(container, f"its notes are {brief(notes)}")
    segment = _segment(container)
    if segment.words.shape[1] != bits // 8:
        raise _damaged(container, f"signatures of {bits} bits have shape {segment.words.shape}")
    if "index" not in container:
        return bits, str(kind), notes, segment, None
    index = index_in(container.inner("index"))
    if (len(index), index.bits, index.own_ids) != (len(segment.words), bits, False):
        raise _damaged(container, f"its signatures are in {index!r}")
    return bits, str(kind), notes, segment, index


def _segment(container: Container) -> Segment:
    ids = restored_keys(container)
    begins = container.array("begins", np.int64, 1)
    offsets = container.array("offsets", np.int64, 1)
    words = container.array("words", np.uint8, 2)
    part_words = container.array("part_words", np.uint32, 1)
    word_begins = container.array("word_begins", np.int64, 1)
    word_parts = container.array("word_parts", np.uint32, 1)
    count = len(offsets)
    fits = (
        all(type(one) in (str, int) for one in ids)
        and len(set(ids)) == len(ids)
        and _cut(begins, len(ids), count)
        and _cut(word_begins, len(words), count)
        and len(part_words) == len(word_parts) == count
        and bool((np.abs(offsets) <= FARTHEST).all())
        and _each_once(part_words, word_begins, word_parts)
    )
    if not fits:
        raise _damaged(container, "its items, parts and signatures do not fit together")
    serials = np.arange(len(ids))
    return Segment(ids, serials, begins, offsets, words, part_words, word_begins, word_parts)


def _cut(begins: NDArray[np.int64], pieces: int, count: int) -> bool:
    """Return whether so many things are cut into these pieces."""
    if len(begins) != pieces + 1 or begins[0] != 0 or begins[-1] != count:
        return False
    return bool((np.diff(begins) >= 0).all())


def _each_once(
    part_words: NDArray[np.uint32], begins: NDArray[np.int64], parts: NDArray[np.uint32]
) -> bool:
    """Return whether each part is listed with its signature, and once."""
    if len(parts) == 0:
        return True
    if int(parts.max()) >= len(parts):
        return False
    words = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
    ascending = np.diff(parts.astype(np.int64)) > 0
    ascending[np.diff(words) > 0] = True
    return bool((part_words[parts] == words).all() and ascending.all())


def _damaged(container: Container, reason: str) -> CorruptIndexError:
    return CorruptIndexError(f"{container.path}: {reason}; it is damaged")
