"""Collections: making, listing, describing and deleting them."""

from __future__ import annotations

from functools import partial
from typing import Any

from lookalike.collection import Collection
from lookalike.errors import ArgumentError, FormatError, LookalikeError
from lookalike.features import Chars, Combined, FeatureKind, Words
from lookalike.service.endpoint import Ask, Routes
from lookalike.service.guard.keys import Key
from lookalike.service.problems import Problem, problem_for_strangers
from lookalike.service.service import Service
from lookalike.service.shapes import CreateBody, SignerBody
from lookalike.service.values import measure_value
from lookalike.signatures import Signer, signer_from_dict
from lookalike.signatures.methods import text_signer

collections = Routes("collections")

_MADE = {
    "name": "pages", "documents": 3, "signatures": 3, "bits": 128, "signer": {"signer": "SimHash"},
    "measure": {"measure": "cosine", "unit": "words", "weights": "count"},
    "keeps_text": True, "version": 1,
}  # fmt: skip


@collections.add("GET", "/v1/collections", example={"collections": [_MADE]})
async def list_collections(ask: Ask) -> Any:
    """List the collections that the key is for.

    Collections that cannot be read, because their database is damaged or away, are listed under
    `unavailable`, with the error that their own routes answer.
    """
    return await ask.service.read(_all, ask.service, ask.key)


@collections.add(
    "POST", "/v1/collections", body=CreateBody, writes=True, status=201, example=_MADE,
    errors=(409,),
)  # fmt: skip
async def create_collection(ask: Ask) -> Any:
    """Make a collection: with a signer of texts, or of the width of signatures that are given."""
    body: CreateBody = ask.body
    if not ask.key.reaches(body.name):
        raise Problem(
            403, "collection_scope",
            f"the key {ask.key.name!r} is not for a collection of that name; use another one",
        )  # fmt: skip
    return await ask.service.slowly(_make, ask.service, body)


@collections.add("GET", "/v1/collections/{name}", example=_MADE, errors=(404, 422))
async def describe_collection(ask: Ask, name: str) -> Any:
    """Describe a collection: how many documents, how they are signed, the state of its index."""
    return await ask.service.use(name, lambda docs: describe(name, docs))


@collections.add(
    "DELETE", "/v1/collections/{name}", writes=True, example={"deleted": "pages"},
    errors=(404, 422),
)  # fmt: skip
async def delete_collection(ask: Ask, name: str) -> Any:
    """Delete a collection with all it holds; it cannot be taken back."""
    await ask.service.slowly(ask.service.library.drop, name)
    ask.service.forget(name)
    ask.service.log.say("warning", "collection deleted", collection=name, key=ask.key.name)
    return {"deleted": name}


def describe(name: str, docs: Collection) -> dict[str, Any]:
    """Return what there is to know of a collection, but where it lies."""
    stats, signer = docs.stats(), docs.signer
    behind = stats["version"] - stats["native_version"] if stats["native_bytes"] else None
    return {
        "name": name,
        "documents": stats["documents"],
        "signatures": stats["signatures"],
        "bits": stats["bits"],
        "signer": None if signer is None else _brief(signer.to_dict()),
        "measure": measure_value(signer),
        "keeps_text": stats["keeps_text"],
        "version": stats["version"],
        "durability": stats["durability"],
        "index": {
            "kind": "SliceIndex",
            "slices": stats["slices"],
            "slice_bits": stats["slice_bits"],
            "bytes": stats["native_bytes"],
            "version": stats["native_version"] or None,
            "lag": behind,
            "saved": stats["cache"] is not None,
        },
    }


def _brief(description: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a signer without what it has learnt, which may be large."""
    weights = description.get("weights")
    if isinstance(weights, dict) and weights.get("vocabulary") is not None:
        description = {**description, "weights": {**weights, "vocabulary": "learnt"}}
    return description


def _all(service: Service, key: Key) -> dict[str, Any]:
    """Return what can be described, and the errors of the others."""
    found: list[dict[str, Any]] = []
    unavailable: list[dict[str, Any]] = []
    for name in service.library.names():
        if not key.reaches(name):
            continue
        try:
            found.append(service.library.use(name, partial(describe, name)))
        except (LookalikeError, Problem) as error:
            problem = problem_for_strangers(error, service.library.shown)
            if problem.logged:
                service.log.failed("collection cannot be read", error, collection=name)
            if problem.status != 404:  # or it was deleted while they were listed
                unavailable.append({"name": name, **problem.value()})
    return {"collections": found, **({"unavailable": unavailable} if unavailable else {})}


def _make(service: Service, body: CreateBody) -> dict[str, Any]:
    signer = None
    if body.description is not None:
        signer = _of_description(body.description)
    elif body.bits is None:
        signer = _signer(body.signer or SignerBody())
    docs = service.library.create(body.name, signer, body.bits, body.keep_text)
    service.log.say("info", "collection made", collection=body.name)
    return describe(body.name, docs)


def _of_description(description: dict[str, Any]) -> Signer:
    try:
        return signer_from_dict(description)
    except ArgumentError:
        raise
    except FormatError as error:  # of another version: what was sent is at fault, no file
        raise ArgumentError(str(error)) from None
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise ArgumentError(
            f"the description of a signer cannot be used ({type(error).__name__}); expected what "
            "Signer.to_dict returned"
        ) from None


def _signer(body: SignerBody) -> Signer:
    kinds: list[FeatureKind] = []
    if body.ngram is not None:
        kinds.append(Words(ngram=body.ngram))
    if body.chars is not None:
        kinds.append(Chars(ngram=body.chars))
    features: FeatureKind | None = None
    if kinds:
        features = kinds[0] if len(kinds) == 1 else Combined(*kinds)
    return text_signer(body.method, bits=body.bits, features=features, seed=body.seed)
