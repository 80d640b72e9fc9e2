"""The row of a collection: what it is, and where it stands at one version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from lookalike.collection.documents import damaged
from lookalike.collection.packing import DIGEST_BYTES
from lookalike.collection.slicing import Slicing
from lookalike.errors import ArgumentError

MOST_BITS = 1 << 14  # PostgreSQL's indexes take entries of up to 2,700 bytes


@dataclass(frozen=True)
class State:
    """The row of a collection: what it is, and where it stands at one version."""

    number: int
    name: str
    uid: str
    """Random: a collection that was dropped and made again is another one."""
    bits: int
    slice_bits: int
    keep_text: bool
    signer: str
    """A hash of the signer's description; empty if signatures are given by the caller."""
    version: int = 0
    """How many times it was written to."""
    documents: int = 0
    signatures: int = 0
    next_signature: int = 1
    digest: int = 0
    """The exclusive or of the hashes of all numbered signatures."""
    removals_from: int = 0
    """Removals of later versions than this are still known."""
    parts: bool = False
    """Whether documents have many signatures, of `bits` each. Then what the tables call their
    signature is a digest of them, which is cut into no slices."""

    @property
    def slicing(self) -> Slicing:
        """How signatures are cut."""
        return Slicing(self.bits, self.slice_bits)

    @property
    def row_bytes(self) -> int:
        """How many bytes a signature has in the tables."""
        return DIGEST_BYTES if self.parts else self.bits // 8


def as_state(row: Sequence[Any]) -> State:
    """Return a row of the table of collections, or raise if it cannot be one.

    A database may come from anybody, and what stands here becomes names of files and tables.
    """
    state = State(*row)
    valid = {
        "number": _is_count(state.number) and state.number > 0,
        "name": isinstance(state.name, str),
        "uid": isinstance(state.uid, str) and re.fullmatch("[0-9a-f]{32}", state.uid) is not None,
        "slice_bits": _can_be_sliced(state.bits, state.slice_bits, state.parts),
        "keep_text": state.keep_text in (0, 1),
        "parts": state.parts in (0, 1),
        "signer": isinstance(state.signer, str)
        and re.fullmatch("([0-9a-f]{64})?", state.signer) is not None,
        "digest": type(state.digest) is int,
    }
    for field in fields(State):
        value = getattr(state, field.name)
        if not valid.get(field.name, True) or (field.name not in valid and not _is_count(value)):
            raise damaged(
                f"the row of the collection {str(state.name)[:80]!r} holds {str(value)[:80]!r} as "
                f"{field.name}, which lookalike did not write"
            )
    return replace(state, keep_text=bool(state.keep_text), parts=bool(state.parts))


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _can_be_sliced(bits: object, slice_bits: object, parts: object) -> bool:
    if type(bits) is not int or type(slice_bits) is not int or bits % 8:
        return False
    if bool(parts) is not (slice_bits == 0):
        return False
    try:
        Slicing(bits, slice_bits)
    except ArgumentError:
        return False
    return 8 <= bits <= MOST_BITS


def signer_hash(description: str) -> str:
    """Return what the row of a collection says of its signer's description."""
    import hashlib  # takes milliseconds to import, which not everybody needs

    return hashlib.sha256(description.encode()).hexdigest() if description else ""
