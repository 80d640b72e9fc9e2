"""Documents and answers in plain values, and signatures out of text."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.collection import Answer, Document, Match
from lookalike.features.choice import unit_text
from lookalike.service.problems import Problem
from lookalike.shown import brief
from lookalike.signatures import Signer
from lookalike.signatures.signer import DocumentSigner, WeightedSigner

__all__ = ["answer_value", "document_value", "measure_value", "signature_rows"]


def document_value(document: Document, text: bool = True) -> dict[str, Any]:
    """Return a document in plain values."""
    value: dict[str, Any] = {
        "id": document.id,
        "metadata": document.metadata,
        "signature": document.signature.tobytes().hex(),
        "added": document.added.isoformat(),
        "updated": document.updated.isoformat(),
    }
    if text:
        value["text"] = document.text
    return value


def measure_value(signer: Signer | None) -> dict[str, Any] | None:
    """Return which similarity of texts the signatures of a signer estimate.

    None where it does not sign texts.
    """
    if not isinstance(signer, DocumentSigner):
        return None
    return {
        "measure": signer.measure,
        "unit": unit_text(signer.features),
        "weights": signer.weights_in_use.kind if isinstance(signer, WeightedSigner) else None,
    }


def answer_value(answer: Answer, similarities: list[float]) -> dict[str, Any]:
    """Return an answer in plain values."""
    value: dict[str, Any] = {
        "matches": [_match_value(match, similarities) for match in answer],
        "exact": answer.exact,
        "version": answer.version,
        "masked": answer.masked,
    }
    if answer.work is not None:
        value["work"] = vars(answer.work)
    return value


def _match_value(match: Match, similarities: list[float]) -> dict[str, Any]:
    far = match.distance if match.unmasked is None else match.unmasked
    value: dict[str, Any] = {
        "id": match.id,
        "distance": match.distance,
        "similarity": similarities[far],
        "metadata": match.metadata,
    }
    if match.text is not None:
        value["text"] = match.text
    if match.unmasked is not None:
        value["unmasked"] = match.unmasked
    if match.differing_bits is not None:
        value["differing_bits"] = match.differing_bits
        value["slice_distances"] = match.slice_distances
        value["slices"] = match.slices
    return value


def signature_rows(
    hexes: Sequence[str] | None, base64s: Sequence[str] | None, bits: int
) -> NDArray[np.uint8]:
    """Return the signatures that hex digits or base64 stand for, or say what is wrong."""
    width = bits // 8
    rows = []
    for place, text in enumerate(hexes if hexes is not None else base64s or ()):
        try:
            row = bytes.fromhex(text) if hexes is not None else _from_base64(text)
        except (ValueError, binascii.Error):
            row = b""
        if len(row) != width:
            expected = f"{2 * width} hexadecimal digits" if hexes is not None else (
                f"{width} bytes in base64"
            )  # fmt: skip
            raise Problem(
                422, "bad_signature", f"signature {place} is {brief(text)}; expected {expected}: "
                f"the collection has {bits} bits", kind="SignatureError",
            )  # fmt: skip
        rows.append(row)
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), width)


def _from_base64(text: str) -> bytes:
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
