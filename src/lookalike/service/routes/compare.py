"""Comparing two documents, or a text and a document, word by word."""

from __future__ import annotations

from typing import Any

from lookalike.collection import Collection
from lookalike.compare.texts import compare_texts
from lookalike.service.endpoint import Ask, Routes
from lookalike.service.problems import Problem
from lookalike.service.routes.documents import check_text, no_document
from lookalike.service.shapes import CompareBody, SideBody
from lookalike.shown import brief

compare = Routes("compare")

_COMPARED = {
    "equal": False, "bytes": [19, 17], "words": [4, 4],
    "methods": [{"method": "minhash", "measure": "jaccard", "exact": 0.6, "estimate": 0.58}],
    "diff": {
        "parts": [{"kind": "equal", "text": "quick brown"}, {"kind": "delete", "text": "fox"}],
        "complete": True,
    },
}  # fmt: skip


@compare.add(
    "POST", "/v1/collections/{name}/compare", body=CompareBody, example=_COMPARED, errors=(404,)
)
async def compare_documents(ask: Ask, name: str) -> Any:
    """Compare two texts: how similar they are by each method, and which words differ."""
    body: CompareBody = ask.body
    longest = ask.service.settings.max_text

    def compared(docs: Collection) -> dict[str, Any]:
        left, right = (_text(docs, name, side, longest) for side in (body.left, body.right))
        return compare_texts(left, right, threads=1).to_dict()

    return await ask.service.slowly(ask.service.library.use, name, compared)


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
