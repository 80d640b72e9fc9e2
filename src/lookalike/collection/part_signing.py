"""How documents become parts in a collection, and queries too."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import one_of, thread_count
from lookalike.collection.packing import DIGEST_BYTES, MOST_PARTS_BYTES, digest_of, packed
from lookalike.collection.query import WAYS, listed
from lookalike.collection.signing import Signed, Signing
from lookalike.errors import ArgumentError, DocumentError, Said, SignatureError
from lookalike.parts.given import all_positions, rows_of
from lookalike.parts.signer import PartSigner, SignedParts, VoteSettings
from lookalike.shown import brief
from lookalike.signatures import Signer
from lookalike.signatures.bit_weights import Mask, as_mask

if TYPE_CHECKING:
    from lookalike.recordings import Fingerprint

__all__ = [
    "PartSigning",
    "PartsAsked",
    "PartsGiven",
    "no_single_signatures",
    "refuse_votes",
    "refuse_ways",
]

PartsGiven: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike | None]
"""Signatures of one document, or these and their positions."""
PartsAsked: TypeAlias = (
    "PartsGiven | str | os.PathLike[str] | bytes | tuple[Any, Any] | Fingerprint"
)
"""What a signer of parts signs: texts or recordings; or parts."""

_GIVE = "give (signatures, offsets), as la.PartIndex takes them"


def no_single_signatures(name: str) -> ArgumentError:
    """Return the error for what compares one signature with one."""
    return ArgumentError(
        f"the documents of the collection {name!r} have many signatures each, and are found by the "
        "votes of these: use search"
    )


def refuse_ways(way: str, mask: Mask) -> None:
    """Say so where parts are to be searched as single signatures are."""
    if one_of("way", way, WAYS) != "native":
        raise ArgumentError(
            Said("way"),
            f" is {brief(way)}, and documents have many parts, whose votes are counted in memory "
            'alone: leave it out, or "native"',
        )
    if as_mask(mask) is True:
        raise ArgumentError(
            Said("mask"), Said("=True", " yes"), " is for documents of one signature; leave it out"
        )


def refuse_votes(name: str, **told: object) -> None:
    """Say so where votes are to be counted of documents that have one signature each."""
    for setting, value in told.items():
        if value is not None:
            raise ArgumentError(
                Said(setting),
                f" is for votes of many parts, and documents of the collection {name!r} have one "
                "signature each; leave it out",
            )


class PartSigning(Signing):
    """The signer of a collection whose documents have many parts."""

    @property
    def medium(self) -> str:  # type: ignore[override]
        """What a thing is called that cannot be signed."""
        signer = self.signer
        return signer.medium if isinstance(signer, PartSigner) else "text"

    @property
    def votes(self) -> VoteSettings:
        """What a search goes by, unless told."""
        signer = self.signer
        if isinstance(signer, PartSigner):
            return signer.votes
        return VoteSettings(self._opened.bits // 10, 0, 2)

    def check_signs(self) -> None:
        """Say so unless texts, or the paths of recordings, can be signed."""
        if self._of_parts().reads_files:
            self._check_reads()

    def sign_each(self, texts: list[str]) -> tuple[Signed, dict[int, str]]:
        """Return the parts of those that can be signed, and what is wrong with the others."""
        found = list(self._of_parts().sign_each(texts, threads=thread_count(None)))
        good, wrong = [], {}
        for at, one in enumerate(found):
            try:
                if isinstance(one, DocumentError):
                    raise one
                good.append(_packed(one))
            except (ArgumentError, DocumentError) as error:
                wrong[at] = str(error)
        return _signed(good), wrong

    def given(self, signatures: Any) -> Signed:
        """Return parts of documents that the caller gives."""
        good = []
        for place, one in enumerate(listed("signatures", signatures)):
            try:
                good.append(_packed(self._given(one)))
            except (ArgumentError, SignatureError) as error:
                raise type(error)(f"item {place}: {error}") from None
        return _signed(good)

    def one(self, query: Any) -> Any:
        """Return one query as one of many."""
        return [query]

    def asked_parts(self, queries: Any) -> list[SignedParts]:
        """Return the parts of queries."""
        return [self._asked(query) for query in listed("queries", queries)]

    def _asked(self, query: Any) -> SignedParts:
        signer = self.signer
        if _is_given(query):
            return self._given(query)
        if not isinstance(signer, PartSigner):
            raise self._no_signer(signer)
        if signer.reads_files and isinstance(query, str | os.PathLike):
            self._check_reads()
        return signer.sign_query(query)

    def _given(self, parts: Any) -> SignedParts:
        """Return parts that are given: signatures, or these and their positions."""
        pair = isinstance(parts, tuple) and len(parts) == 2
        signatures, offsets = parts if pair else (parts, None)
        rows = rows_of(signatures, self._opened.bits)
        return SignedParts(rows, all_positions("offsets", [offsets], [len(rows)])[0])

    def _of_parts(self) -> PartSigner:
        signer = self.signer
        if not isinstance(signer, PartSigner):
            raise self._no_signer(signer)
        return signer

    def _no_signer(self, signer: Signer | None) -> ArgumentError:
        other = "" if signer is None else f" of parts, but {type(signer).__name__}"
        return ArgumentError(f"the collection {self._opened.name!r} has no signer{other}: {_GIVE}")


def _is_given(query: Any) -> bool:
    """Return whether a query is parts: an array of signatures, or one and positions.

    Samples have a rate in the place of these, which is one number.
    """
    if isinstance(query, np.ndarray | list):
        return True
    if not isinstance(query, tuple) or len(query) != 2:
        return False
    places = query[1]
    several = hasattr(places, "__len__") and getattr(places, "ndim", 1) > 0
    return places is None or (several and not isinstance(places, str))


def _packed(parts: SignedParts) -> bytes:
    data = packed(*parts)
    if len(data) > MOST_PARTS_BYTES:
        raise ArgumentError(
            f"has {len(parts.offsets):,} parts, which take {len(data):,} bytes; expected at most "
            f"{MOST_PARTS_BYTES:,}: cut it into pieces"
        )
    return data


def _signed(parts: Sequence[bytes]) -> Signed:
    rows: NDArray[np.uint8] = np.frombuffer(b"".join(map(digest_of, parts)), np.uint8)
    return Signed(rows.reshape(len(parts), DIGEST_BYTES), parts)
