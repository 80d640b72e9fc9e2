"""Comparing two documents, or a text and a document, word by word."""

from __future__ import annotations

from typing import Any

from lookalike.collection import Collection
from lookalike.compare.texts import compare_texts
from lookalike.service.endpoint import Ask, Routes
from lookalike.service.problems import Problem
from lookalike.service.routes.documents import check_text, no_document
from lookalike.service.shapes import CompareBody, SideBody
from lookalike.service.values import measure_value
from lookalike.shown import brief
from lookalike.signatures import Signer, hamming
from lookalike.signatures.estimates import estimated_similarity, exact_similarity
from lookalike.signatures.signer import DocumentSigner

compare = Routes("compare")

_COMPARED = {
    "equal": False, "bytes": [19, 17], "words": [4, 4],
    "methods": [{"method": "minhash", "measure": "jaccard", "exact": 0.6, "estimate": 0.58}],
    "signer": {
        "measure": "cosine", "unit": "words", "weights": "count", "exact": 0.75, "estimate": 0.71,
        "distance": 32, "bits": 128,
    },
    "diff": {
        "parts": [{"kind": "equal", "text": "quick brown"}, {"kind": "delete", "text": "fox"}],
        "complete": True,
    },
}  # fmt: skip


@compare.add(
    "POST", "/v1/collections/{name}/compare", body=CompareBody, example=_COMPARED, errors=(404,)
)
async def compare_documents(ask: Ask, name: str) -> Any:
    """Compare two texts: how similar they are by each method, and which words differ.

    `signer` has the measure that the collection's signatures estimate, computed from the texts
    (`exact`) and estimated from their signatures. It is null where the collection does not sign
    texts; `exact` and `estimate` are null where a text has no features.
    """
    body: CompareBody = ask.body
    longest = ask.service.settings.max_text

    def compared(docs: Collection) -> dict[str, Any]:
        left, right = (_text(docs, name, side, longest) for side in (body.left, body.right))
        told = compare_texts(left, right, threads=1).to_dict()
        return {**told, "signer": _by_signer(docs.signer, docs.bits, left, right)}

    return await ask.service.slowly(ask.service.library.use, name, compared)


def _by_signer(signer: Signer | None, bits: int, left: str, right: str) -> dict[str, Any] | None:
    """Return the similarity that the collection's own signatures estimate, and the estimate."""
    if not isinstance(signer, DocumentSigner):
        return None
    texts = [left, right]
    one, two = signer.sign(texts, threads=1)
    distance = int(hamming(one, two)[0])
    exact = estimate = None
    if signer.feature_counts(texts, threads=1).min() > 0:
        exact = float(exact_similarity(signer, texts, [0], [1], threads=1)[0])
        estimate = float(estimated_similarity(signer, distance, bits))
    return {
        **(measure_value(signer) or {}),
        "exact": exact,
        "estimate": estimate,
        "distance": distance,
        "bits": bits,
    }


def _text(docs: Collection, name: str, side: SideBody, longest: int) -> str:
    text = side.text
    if side.id is not None:
        document = docs.get(side.id)
        if document is None:
            raise no_document(side.id, name)
        text = document.text
        if text is None:
            raise Problem(
                422, "no_text", f"the text of {brief(side.id)} is not kept in this collection; "
                "send it instead",
            )  # fmt: skip
    text = text or ""
    check_text("a text", text, longest)
    return text
