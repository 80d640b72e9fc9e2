"""How documents become signatures in a collection, or parts, and queries too."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import as_array, thread_count
from lookalike.collection.documents import (
    DIGEST_BYTES,
    MOST_PARTS_BYTES,
    damaged,
    digest_of,
    packed,
)
from lookalike.collection.query import listed
from lookalike.collection.stores.schema import State
from lookalike.errors import ArgumentError, DocumentError, Said, SignatureError
from lookalike.images.decode import ImageSource
from lookalike.media import Medium, medium_of_signer
from lookalike.parts.index import all_positions, rows_of
from lookalike.parts.signer import PartSigner, SignedParts, VoteSettings
from lookalike.shown import brief
from lookalike.signatures import Signer, as_queries, signer_from_dict
from lookalike.signatures.bit_weights import Mask, as_mask, sign_masked
from lookalike.signatures.signer import DocumentSigner

if TYPE_CHECKING:
    from lookalike.recordings import Fingerprint

PartsGiven: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike | None]
"""Signatures of one document, or these and their positions."""
PartsAsked: TypeAlias = (
    "PartsGiven | str | os.PathLike[str] | bytes | tuple[Any, Any] | Fingerprint"
)
"""What a signer of parts signs: texts or recordings; or parts."""
Masks: TypeAlias = tuple[NDArray[np.uint8] | None, ...]
"""Which bits of each query count; None: all."""


def wanted_mask(
    queries: Sequence[str] | Sequence[ImageSource] | ArrayLike, mask: Mask, whole: bool
) -> tuple[Mask, list[str] | None]:
    """Return whether queries are to be masked, and the texts that they are, if they are texts."""
    wanted: Mask = as_mask(mask)
    if whole and wanted == "auto":
        wanted = False
    texts: list[str] | None = None
    if isinstance(queries, Sequence) and not isinstance(queries, str):
        texts = [one for one in queries if isinstance(one, str)]
        texts = texts if len(texts) == len(queries) else None
    if wanted is True and texts is None:
        raise ArgumentError(
            Said("mask"),
            Said("=True", " yes"),
            " is for texts, whose words say which bits count, and signatures were given; leave "
            "it out",
        )
    return wanted, texts


class HasSigner(Protocol):
    """A collection, here or elsewhere, or what stands for it; the signer may have to be read."""

    @property
    def signer(self) -> Signer | None:
        """How documents are signed."""


def query_rows(queries: ArrayLike, bits: int, collection: HasSigner) -> NDArray[np.uint8]:
    """Return signatures that are given, or those of vectors, if the collection is one of vectors:
    numbers with a fraction cannot be signatures.
    """
    array = as_array("queries", queries)
    signer = collection.signer if array.dtype.kind == "f" else None
    if signer is not None and signer.medium == "vector":
        return signer.sign(np.atleast_2d(array))
    return as_queries(queries, bits)


def no_signer_of_texts(name: str, signer: str) -> ArgumentError:
    """Return the error for texts that cannot be signed; `signer`: what there is instead, or ""."""
    return ArgumentError(
        f"the collection {name!r} has no signer of texts"
        f"{f', but {signer}' if signer else ''}: give signatures, not texts"
    )


@dataclass(frozen=True, eq=False)
class Signed:
    """Documents as tables know them."""

    rows: NDArray[np.uint8]
    """A signature each; of documents of many parts, the digest of these."""
    parts: Sequence[bytes] = ()
    """What the digests stand for, packed; none where documents have one signature each."""

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, kept: Sequence[int]) -> Signed:
        """Return some of them."""
        return Signed(self.rows[kept], [self.parts[at] for at in kept] if self.parts else ())


class Signing:
    """The signer that a collection was made with, read when it is first needed."""

    def __init__(self, opened: State, describe: Callable[[], str]) -> None:
        self._opened = opened
        self._describe = describe
        self._signer: Signer | None = None
        self.reads_files = True
        """Whether paths of files are opened; False where they come from untrusted clients."""

    @property
    def signer(self) -> Signer | None:
        """How documents are signed; None if signatures are given by the caller."""
        if self._signer is None and self._opened.signer:
            self._signer = _described(self._describe(), self._opened.bits)
        return self._signer

    @cached_property
    def files(self) -> type[Medium[Any]] | None:
        """The medium of the files that are signed; None for texts.

        Also None for parts: their signer reads the files itself.
        """
        return None if self._opened.parts else medium_of_signer(self.signer)

    @property
    def medium(self) -> str:
        """The noun for an item that cannot be signed."""
        return "document" if self.files is None else self.files.noun

    def check_signs(self) -> None:
        """Say so unless texts, or the paths of files, can be signed."""
        if self.files is not None:
            self._check_reads()
        else:
            self.of_texts()

    def _check_reads(self) -> None:
        if not self.reads_files:
            raise ArgumentError(
                f"the collection {self._opened.name!r} is one of {self.medium}s, which are not "
                "opened by their paths here: give signatures, not texts"
            )

    def of_texts(self) -> DocumentSigner:
        """Return the signer, or say that it signs no texts."""
        signer = self.signer
        if not isinstance(signer, DocumentSigner):
            raise no_signer_of_texts(self._opened.name, type(signer).__name__ if signer else "")
        return signer

    def sign_each(self, texts: list[str]) -> tuple[Signed, dict[int, str]]:
        """Return the signatures of texts that can be signed, and what is wrong with the others, by
        place: files, whose paths these are, may be broken.
        """
        if self.files is None:
            return Signed(self.sign(texts)), {}
        found = list(self.files.sign_each(self.signer, texts, threads=thread_count(None)))
        wrong = {at: str(one) for at, one in enumerate(found) if isinstance(one, DocumentError)}
        rows = [one for one in found if not isinstance(one, DocumentError)]
        return Signed(np.array(rows, np.uint8).reshape(len(rows), self._opened.bits // 8)), wrong

    def images(self, queries: object) -> NDArray[np.uint8] | None:
        """Return the signatures of files, one or many, if the collection is one of files and that
        is what these are: paths, bytes, or images of Pillow.
        """
        signer, files = self.signer, self.files
        if files is None or signer is None or isinstance(queries, np.ndarray):
            return None
        several: Sequence[Any] = [queries] if not isinstance(queries, Sequence) else queries
        if files.is_one(queries):
            several = [queries]
        if any(isinstance(one, str | os.PathLike) for one in several):
            self._check_reads()
        return signer.sign(several) if several and all(map(files.is_one, several)) else None

    def sign(self, texts: list[str]) -> NDArray[np.uint8]:
        """Return the signatures of texts."""
        if not texts:
            return np.empty((0, self._opened.bits // 8), np.uint8)
        rows: NDArray[np.uint8] = self.of_texts().sign(texts)
        return rows

    def given(self, signatures: Any) -> Signed:
        """Return signatures of documents that the caller gives."""
        return Signed(as_queries(signatures, self._opened.bits, "signatures"))

    def queries(
        self, queries: Sequence[str] | Sequence[ImageSource] | ArrayLike
    ) -> NDArray[np.uint8]:
        """Return the signatures of texts, or the given ones."""
        if isinstance(queries, str):
            raise ArgumentError("queries are one str; expected a list of them, or use search()")
        if (images := self.images(queries)) is not None:
            return images
        if isinstance(queries, Sequence) and all(isinstance(query, str) for query in queries):
            return self.sign([str(query) for query in queries])
        return query_rows(cast("ArrayLike", queries), self._opened.bits, self)

    def asked(self, queries: Any, mask: Mask, whole: bool) -> tuple[NDArray[np.uint8], Masks]:
        """Return the signatures of queries, and the masks of those that are to have one.

        Texts choose for themselves with "auto", unless they are to be compared as a `whole`.
        """
        wanted, texts = wanted_mask(queries, mask, whole)
        if wanted == "auto" and self.files is not None:
            wanted = False
        found = sign_masked(self.of_texts(), texts, wanted) if wanted and texts else None
        if found is None:
            rows = self.queries(queries)
            return rows, (None,) * len(rows)
        masks = zip(found.masks, found.masked.tolist(), strict=True)
        return found.signatures, tuple(mask if used else None for mask, used in masks)

    def one(self, query: Any) -> list[str] | NDArray[np.uint8]:
        """Return one query as one of many; a text stays one, since it may get a mask."""
        is_text = isinstance(query, str) and self.files is None
        return [query] if is_text else self.query(query)

    def query(self, query: str | ArrayLike | ImageSource) -> NDArray[np.uint8]:
        """Return the signature of one text, or the one that is given."""
        if (images := self.images(query)) is not None:
            query = images
        if isinstance(query, str):
            return self.sign([query])
        rows = query_rows(cast("ArrayLike", query), self._opened.bits, self)
        if len(rows) != 1:
            raise ArgumentError(
                f"the query is {len(rows)} signatures; expected one: use search_many or within_many"
            )
        return rows


class PartSigning(Signing):
    """The signer of a collection whose documents have many parts."""

    @property
    def medium(self) -> str:
        """The noun for an item that cannot be signed."""
        signer = self.signer
        return signer.medium if isinstance(signer, PartSigner) else "text"

    @property
    def votes(self) -> VoteSettings:
        """The default settings of a search."""
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
        if _is_given(query):
            return self._given(query)
        signer = self._of_parts()
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
            other = "" if signer is None else f" of parts, but {type(signer).__name__}"
            raise ArgumentError(
                f"the collection {self._opened.name!r} has no signer{other}: give (signatures, "
                "offsets), as la.PartIndex takes them"
            )
        return signer


def _described(description: str, bits: int) -> Signer:
    """Return the signer that a table describes; the table is untrusted."""
    try:
        described = json.loads(description)
    except (ValueError, RecursionError):
        raise damaged(f"the signer is described by {description[:80]!r}") from None
    signer = signer_from_dict(described)
    if getattr(signer, "bits", None) != bits:
        raise damaged(f"the signer is {brief(signer)}, and signatures have {bits} bits")
    return signer


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
