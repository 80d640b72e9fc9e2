"""Sign the documents and queries of a collection."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import as_array, one_of, thread_count
from lookalike.collection.documents import (
    DIGEST_BYTES,
    MOST_PARTS_BYTES,
    damaged,
    digest_of,
    packed,
)
from lookalike.collection.query import Question, listed
from lookalike.collection.stores.schema import WORD_KINDS, Signatures, State
from lookalike.errors import ArgumentError, DocumentError, Said, SignatureError
from lookalike.images.decode import ImageSource
from lookalike.media import HEAD, Medium, SignedFile, check_head, head_of, medium_of_signer
from lookalike.parts.index import all_positions, rows_of
from lookalike.parts.signer import PartSigner, SignedParts, VoteSettings
from lookalike.shown import brief
from lookalike.signatures import Signer, as_queries, signer_from_dict
from lookalike.signatures.arrays import listed_texts
from lookalike.signatures.bit_weights import Mask, sign_masked
from lookalike.signatures.signer import DocumentSigner

if TYPE_CHECKING:
    from lookalike.recordings.audio_hash import Fingerprint

PartsInput: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike | None]
"""Signatures of the parts of one document, alone or with their positions."""
PartsQuery: TypeAlias = (
    "PartsInput | str | os.PathLike[str] | bytes | tuple[Any, Any] | Fingerprint"
)
"""A query by parts, or by what a signer of parts signs: a text or a recording."""
QueryInput: TypeAlias = "str | ArrayLike | ImageSource | PartsQuery"
"""A query: what the signer signs, or a signature."""
QueryInputs: TypeAlias = Sequence[str] | Sequence[ImageSource] | Sequence[PartsQuery] | ArrayLike
WordKind: TypeAlias = Literal["porter", "plain", "trigram"]
"""The kind of a keyword index: English words by their stems, or all words as written."""
Masks: TypeAlias = tuple[NDArray[np.uint8] | None, ...]
"""The bits of each query that count; None: all."""


def wanted_mask(queries: QueryInputs, question: Question) -> tuple[Mask, list[str] | None]:
    """Return whether to mask queries, with a radius only if `mask` is True, and their texts."""
    wanted = question.mask
    if wanted == "auto" and question.radius is not None:
        wanted = False
    texts = listed_texts(queries)
    if wanted is True and texts is None:
        raise ArgumentError(
            Said("mask"),
            Said("=True", " yes"),
            " is only for texts, whose words determine the bits to compare; leave it out for "
            "signatures",
        )
    return wanted, texts


ReadSigner: TypeAlias = Callable[[], Signer | None]
"""Returns the signer of a collection, which may have to be read first."""


def texts_or_rows(queries: Any, bits: int, signer: ReadSigner) -> list[str] | Signatures:
    """Return queries: texts in a list, everything else as signatures; see `as_queries`."""
    texts = listed_texts(queries)
    return _query_rows(queries, bits, signer) if texts is None else texts


def text_or_row(query: Any, bits: int, signer: ReadSigner) -> list[str] | Signatures:
    """Return one query as `texts_or_rows` returns many."""
    found = texts_or_rows(query, bits, signer)
    if len(found) != 1:
        raise ArgumentError(
            f"there are {len(found)} queries; expected one, or use search_many or within_many"
        )
    return found


def _query_rows(queries: ArrayLike, bits: int, signer: ReadSigner) -> Signatures:
    """Return signatures, or sign vectors: numbers with a fraction cannot be signatures."""
    array = as_array("queries", queries)
    known = signer() if array.dtype.kind == "f" else None
    if known is not None and known.medium == "vector":
        return known.sign(np.atleast_2d(array))
    return as_queries(queries, bits)


def check_signer(signer: object) -> None:
    """Raise unless this is a signer, or None."""
    if signer is not None and not isinstance(signer, Signer):
        raise ArgumentError(
            Said("signer"), f" is {signer!r}; expected one such as la.SimHash(bits=128)"
        )


def check_words(words: object, parts: bool, signer: object) -> None:
    """Raise unless a collection can have a keyword index of this kind."""
    one_of("words", words, WORD_KINDS)
    if parts or not isinstance(signer, DocumentSigner | None):
        raise ArgumentError(
            Said("words"),
            f" is {brief(words)}, but a keyword index is for texts of one signature; leave it out",
        )


def no_signer_of_texts(name: str, signer: str) -> ArgumentError:
    """Return the error for texts that cannot be signed; `signer` is what there is instead."""
    return ArgumentError(
        f"the collection {name!r} has no signer of texts"
        f"{f', but {signer}' if signer else ''}; pass signatures, not texts"
    )


@dataclass(frozen=True, eq=False)
class Signed:
    """Documents as the tables know them."""

    rows: Signatures  # a signature each; of documents of many parts, the digest of these
    parts: Sequence[bytes] = ()
    """The packed parts behind the digests; empty where documents have one signature each."""

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, kept: Sequence[int]) -> Signed:
        """Return some of the documents."""
        return Signed(self.rows[kept], [self.parts[at] for at in kept] if self.parts else ())


class Signing:
    """The signer that a collection was created with, read when it is first needed."""

    _text = "document"  # the noun for an item that is not of a medium

    def __init__(self, opened: State, describe: Callable[[], str]) -> None:
        self._opened = opened
        self._describe = describe
        self._signer: Signer | None = None
        self.reads_files = True
        """Whether paths of files are opened; False if they come from untrusted clients."""

    @property
    def signer(self) -> Signer | None:
        """How documents are signed; None if signatures are given by the caller."""
        if self._signer is None and self._opened.signer:
            self._signer = _described(self._describe(), self._opened.bits)
        return self._signer

    @cached_property
    def medium(self) -> type[Medium[Any]] | None:
        """The medium of the files that are signed; None for texts and vectors."""
        return medium_of_signer(self.signer)

    @property
    def noun(self) -> str:
        """The noun for an item that cannot be signed."""
        return self._text if self.medium is None else self.medium.noun

    def check_signs(self) -> None:
        """Raise unless texts, or files by their paths, can be signed."""
        if self.medium is not None:
            self._check_reads()
        else:
            self._of_texts()

    def _check_reads(self) -> None:
        if not self.reads_files:
            raise ArgumentError(
                f"the {self.noun}s of the collection {self._opened.name!r} are not opened by path "
                "here; send the file itself"
            )

    def _of_texts(self) -> DocumentSigner:
        signer = self.signer
        if not isinstance(signer, DocumentSigner):
            raise no_signer_of_texts(self._opened.name, type(signer).__name__ if signer else "")
        return signer

    def sign_each(self, texts: list[str]) -> tuple[Signed, dict[int, str]]:
        """Return the signatures of texts or paths of files, and what is wrong with some of them."""
        if self.medium is None:
            return Signed(self._sign(texts)), {}
        found = list(self.medium.sign_each(self.signer, texts, threads=thread_count(None)))
        wrong = {at: str(one) for at, one in enumerate(found) if isinstance(one, DocumentError)}
        rows = [one for one in found if not isinstance(one, DocumentError)]
        return Signed(np.array(rows, np.uint8).reshape(len(rows), self._opened.bits // 8)), wrong

    def sign_file(self, file: Path | bytes, *, preview: bool, query: bool) -> SignedFile:
        """Return the signature of a file, or of its bytes; raise `DocumentError` with the noun."""
        if self.medium is None:
            raise ArgumentError(
                f"the collection {self._opened.name!r} holds no files, so none can be signed; "
                "pass a text"
            )
        try:
            head = file[:HEAD] if isinstance(file, bytes) else head_of(file)[0]
        except OSError as error:
            raise DocumentError(f"the {self.noun} cannot be read ({error.strerror})") from error
        check_head(head, self.medium)
        try:
            return self.medium.sign_file(self.signer, file, preview=preview, query=query)
        except DocumentError as error:
            raise DocumentError(f"the {self.noun} {error}") from error

    def _sign(self, texts: list[str]) -> Signatures:
        if not texts:
            return np.empty((0, self._opened.bits // 8), np.uint8)
        rows: Signatures = self._of_texts().sign(texts)
        return rows

    def _sign_files(self, queries: object) -> Signatures | None:
        """Return the signatures of one or many files of the medium; None if these are not files."""
        signer, medium = self.signer, self.medium
        if medium is None or signer is None or isinstance(queries, np.ndarray):
            return None
        several: Sequence[Any] = [queries] if not isinstance(queries, Sequence) else queries
        if medium.is_one(queries):
            several = [queries]
        if any(isinstance(one, str | os.PathLike) for one in several):
            self._check_reads()
        return signer.sign(several) if several and all(map(medium.is_one, several)) else None

    def given(self, signatures: Any) -> Signed:
        """Return signatures of documents that the caller gives."""
        return Signed(as_queries(signatures, self._opened.bits, "signatures"))

    def _queries(self, queries: QueryInputs) -> Signatures:
        """Return the signatures of many queries."""
        if (rows := self._sign_files(queries)) is not None:
            return rows
        asked = texts_or_rows(queries, self._opened.bits, lambda: self.signer)
        return self._sign(asked) if isinstance(asked, list) else asked

    def masked_queries(self, queries: QueryInputs, question: Question) -> tuple[Signatures, Masks]:
        """Return the signatures of many queries, and a mask of those that get one."""
        wanted, texts = wanted_mask(queries, question)
        if wanted == "auto" and self.medium is not None:
            wanted = False
        found = sign_masked(self._of_texts(), texts, wanted) if wanted and texts else None
        if found is None:
            rows = self._queries(queries)
            return rows, (None,) * len(rows)
        masks = zip(found.masks, found.masked.tolist(), strict=True)
        return found.signatures, tuple(mask if used else None for mask, used in masks)

    def one(self, query: Any) -> Any:
        """Return one query as one of many; a text stays a text, since it may get a mask."""
        rows = self._sign_files(query)
        asked = query if rows is None else rows
        return text_or_row(asked, self._opened.bits, lambda: self.signer)


class PartSigning(Signing):
    """The signer of a collection whose documents have many parts."""

    _text = "text"

    @property
    def votes(self) -> VoteSettings:
        """The default settings of a search."""
        signer = self.signer
        if isinstance(signer, PartSigner):
            return signer.votes
        return VoteSettings(self._opened.bits // 10, 0, 2)

    def check_signs(self) -> None:
        """Raise unless texts, or recordings by their paths, can be signed."""
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
        for position, one in enumerate(listed("signatures", signatures)):
            try:
                good.append(_packed(self._given(one)))
            except (ArgumentError, SignatureError) as error:
                raise type(error)(f"item {position}: {error}") from None
        return _signed(good)

    def one(self, query: Any) -> Any:
        """Return one query as one of many."""
        return [query]

    def query_parts(self, query: Any) -> SignedParts:
        """Return the parts of a query."""
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
                f"the collection {self._opened.name!r} has no signer{other}; pass (signatures, "
                "offsets), as to la.PartIndex"
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
    """Return whether a query is parts, and not samples, whose second value is one number."""
    if isinstance(query, np.ndarray | list):
        return True
    if not isinstance(query, tuple) or len(query) != 2:
        return False
    offsets = query[1]
    several = hasattr(offsets, "__len__") and getattr(offsets, "ndim", 1) > 0
    return offsets is None or (several and not isinstance(offsets, str))


def _packed(parts: SignedParts) -> bytes:
    data = packed(*parts)
    if len(data) > MOST_PARTS_BYTES:
        raise ArgumentError(
            f"has {len(parts.offsets):,} parts, which take {len(data):,} bytes; expected at most "
            f"{MOST_PARTS_BYTES:,}; split it into pieces"
        )
    return data


def _signed(parts: Sequence[bytes]) -> Signed:
    rows: Signatures = np.frombuffer(b"".join(map(digest_of, parts)), np.uint8)
    return Signed(rows.reshape(len(parts), DIGEST_BYTES), parts)
