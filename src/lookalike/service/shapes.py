"""Request bodies, which OpenAPI describes, and answers as plain values.

Validation is strict: a number is not a string, and an unknown field is an error.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from lookalike.collection import Answer, Document, Match
from lookalike.collection.stores.schema import MOST_DIMENSIONS
from lookalike.collection.vectors import encoded_vector
from lookalike.common_passages.results import character_range
from lookalike.features.choice import unit_text
from lookalike.media import MEDIA
from lookalike.parts.signer import PartSigner
from lookalike.service.problems import Problem
from lookalike.shown import brief
from lookalike.signatures import Signer
from lookalike.signatures.methods import TEXT_SIGNERS
from lookalike.signatures.signer import DocumentSigner, WeightedSigner

_MOST_CONDITIONS = 10_000
_LONGEST_CONDITIONS = 1 << 20


def _check_conditions(where: Any) -> Any:
    """Refuse values that JSON does not have, and too many values."""
    values, characters, waiting = 0, 0, [iter((where,))]
    while waiting:
        one = next(waiting[-1], _NONE)
        if one is _NONE:
            waiting.pop()
            continue
        values += 1
        if isinstance(one, str):
            characters += len(one)
        elif isinstance(one, list):
            waiting.append(iter(one))
        elif isinstance(one, dict):
            waiting += [iter(one), iter(one.values())]
        elif not (one is None or isinstance(one, bool | int | float)):
            raise PydanticCustomError("condition", "Conditions should have JSON values")
        if values > _MOST_CONDITIONS or characters > _LONGEST_CONDITIONS:
            raise PydanticCustomError(
                "conditions",
                "Conditions should have at most {values} values and {characters} characters",
                {"values": _MOST_CONDITIONS, "characters": _LONGEST_CONDITIONS},
            )
    return where


_NONE = object()
PASSAGES = "passages"
Item = TypeVar("Item")
Items = Annotated[list[Item], Field(fail_fast=True)]
"""A list that is validated up to its first error."""
Where = Annotated[
    dict[str, JsonValue] | None,
    BeforeValidator(_check_conditions),
    Field(
        description='Conditions on metadata, such as `{"lang": "en", "year": {">=": 2020}}`',
        examples=[{"lang": "en", "year": {">=": 2020}}],
    ),
]
Hex = Annotated[
    str,
    Field(pattern="^([0-9A-Fa-f]{2})+$", max_length=4096, description="Signature in hex"),
]
Base64 = Annotated[
    str,
    Field(pattern="^[A-Za-z0-9+/_-]+={0,2}$", max_length=4096, description="base64 signature"),
]
Vector = Annotated[
    Any,
    Field(
        description=f"List of up to {MOST_DIMENSIONS} numbers, or base64 of float32",
        json_schema_extra={
            "anyOf": [
                {"type": "array", "items": {"type": "number"}, "maxItems": MOST_DIMENSIONS},
                {"type": "string"},
                {"type": "null"},
            ]
        },
    ),
]
Id = Annotated[str, Field(min_length=1, max_length=1000, description="Document id")]
Bits = Annotated[int, Field(ge=8, le=16384, multiple_of=8)]
Ngram = Annotated[int, Field(ge=1, le=100)]
Count = Annotated[int, Field(ge=1, le=1 << 40)]
CountOrZero = Annotated[int, Field(ge=0, le=1 << 40)]


def _examples(*examples: Any) -> dict[str, Any]:
    return {"examples": list(examples)}


def _exactly_one(*names: str) -> Any:
    """Return a validator that requires exactly one of these fields."""

    def check(body: BaseModel) -> BaseModel:
        if sum(getattr(body, name) is not None for name in names) != 1:
            raise ValueError(f"exactly one of these is required: {', '.join(names)}")
        return body

    return model_validator(mode="after")(check)


def _one_or_vector(vector: str, id: str, *names: str) -> Any:
    """Return a validator that requires exactly one of these fields, or a vector, or both."""

    def check(body: BaseModel) -> BaseModel:
        given = [name for name in (id, *names) if getattr(body, name) is not None]
        with_vector = getattr(body, vector) is not None
        if len(given) > 1 or not (given or with_vector) or (with_vector and given == [id]):
            others = ", ".join((id, *names))
            raise ValueError(
                f"exactly one of these is required: {others}; or {vector}, alone or with one of "
                f"the others but {id}"
            )
        return body

    return model_validator(mode="after")(check)


class Body(BaseModel):
    """A request body."""

    model_config = ConfigDict(strict=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        """Report many unknown fields as one error; a few get one error each."""
        if isinstance(value, dict) and len(value) > len(cls.model_fields):
            unknown = next(name for name in value if name not in cls.model_fields)
            raise PydanticCustomError(
                "unknown_fields",
                "There is no field {field}; the fields are {fields}",
                {"field": repr(unknown[:80]), "fields": ", ".join(cls.model_fields)},
            )
        return value


class SignerBody(Body):
    """The signer of a collection of texts, of passages of texts, or of files of a medium."""

    method: str = Field(
        default="simhash", max_length=100,
        description=f"{', '.join(TEXT_SIGNERS)}, {PASSAGES}, {', '.join(MEDIA.names())}, or a "
        "signer of an installed package",
    )  # fmt: skip
    bits: Bits | None = Field(
        default=None,
        description="Bits per signature (default: simhash 128, topsig 1024, bbitminhash 512)",
    )
    ngram: Ngram | None = Field(default=None, description="Words per feature")
    chars: Ngram | None = Field(default=None, description="Characters per feature")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(default=0, description="Random seed")
    words: Count | None = Field(default=None, description="Words per passage (default: 50)")
    step: Count | None = Field(
        default=None, description="Words from one passage to the next (default: 10)"
    )


class CreateBody(
    Body,
    json_schema_extra=_examples(
        {"name": "pages", "purpose": "search"},
        {"name": "articles", "signer": {"method": "topsig", "bits": 1024}, "words": "plain"},
        {"name": "photos", "signer": {"method": "images"}},
        {"name": "hashes", "bits": 64, "keep_text": False},
    ),
):
    """A new collection: for a purpose, with a signer, or of signatures of some bits.

    With a name alone, its purpose is "search".
    """

    name: str = Field(max_length=64, description="Letters, digits, '.', '_' and '-'")
    signer: SignerBody | None = None
    description: dict[str, Any] | None = Field(
        None, description="Signer as returned by `Signer.to_dict`, instead of `signer`"
    )
    bits: Bits | None = Field(
        None, description="Bits per signature, instead of `signer`, if clients send signatures"
    )
    keep_text: bool = Field(True, description="Store the texts of documents")
    purpose: Literal["search", "duplicates"] | None = Field(
        None, description="Defaults for texts: `search` (by words, and similar documents) has a "
        "keyword index, `duplicates` has none (default: search, if nothing else is given)",
    )  # fmt: skip
    words: Literal["porter", "plain", "trigram"] | None = Field(
        None, description="Keyword index, to search by a few words: of English stems, words as "
        "written, or runs of three characters (default: none, or from `purpose`)",
    )  # fmt: skip

    @model_validator(mode="after")
    def _one(self) -> CreateBody:
        if sum(one is not None for one in (self.signer, self.description, self.bits)) > 1:
            raise ValueError("at most one of these is allowed: signer, description, bits")
        return self


class DocumentBody(Body):
    """A document to write, with a text or a signature."""

    id: Any = Field(description="1 to 1000 bytes of UTF-8", json_schema_extra={"type": "string"})
    text: Any = Field(None, json_schema_extra={"type": ["string", "null"]})
    metadata: Any = Field(
        None, description="JSON object", json_schema_extra={"type": ["object", "null"]}
    )
    signature: Hex | None = None
    signature_base64: Base64 | None = None
    vector: Vector = None


class WriteBody(
    Body,
    json_schema_extra=_examples(
        {"documents": [{"id": "fox", "text": "The quick brown fox", "metadata": {"lang": "en"}}]}
    ),
):
    """Documents to write."""

    documents: Items[DocumentBody]
    mode: Literal["upsert", "add"] = Field(
        "upsert", description="`add` refuses ids that exist, `upsert` replaces their documents"
    )
    on_error: Literal["skip", "raise"] = Field(
        "skip", description="`skip` writes the other documents if some are invalid; `raise` writes "
        "none, and the error (status 422) lists the invalid ones",
    )  # fmt: skip


class GetBody(Body):
    """Ids of documents to return."""

    ids: Items[str]
    include_text: bool = Field(default=True, description="Return the texts of documents")
    include_vectors: bool = Field(default=False, description="Return the vectors of documents")


class DeleteBody(Body):
    """Documents to delete, by id or by conditions."""

    ids: Items[str] | None = None
    where: Where = None

    _one = _exactly_one("ids", "where")


class ScrollBody(Body):
    """A page of documents, sorted by id."""

    after: str = Field(default="", description="`next` of the previous page")
    limit: Count = Field(default=100, description="Maximum number of documents")
    where: Where = None
    include_text: bool = Field(default=True, description="Return the texts of documents")
    include_vectors: bool = Field(default=False, description="Return the vectors of documents")


class CountBody(Body):
    """Conditions on the documents to count."""

    where: Where = None


class QueryOptions(Body):
    """Options of queries."""

    k: Count | None = Field(
        None, description="Number of neighbors (default: 10 without `radius`, all with `radius`)"
    )
    radius: CountOrZero | None = Field(
        None, description="Maximum Hamming distance of a match (default: no limit)"
    )
    limit: Count | None = Field(
        None, description="Maximum number of matches for a `radius` without `k`; if there are "
        "more, `exact` is false (default: 10,000)",
    )  # fmt: skip
    where: Where = None
    exclude: Items[str] = Field(default_factory=list, description="Ids to leave out")
    explain: bool = Field(
        False, description="Return differing bits and slices, or the parts that vote, and what the "
        "search did",
    )  # fmt: skip
    min_score: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="Minimum share of the query's parts that vote for a document, for "
        "passages, recordings and videos (default: by the signer)",
    )  # fmt: skip
    include_text: bool = Field(False, description="Return the texts of matches")
    mask: Literal["auto"] | bool = Field(
        "auto", description="Compare only the bits that the words of the text determine (`auto`: "
        "for short texts)",
    )  # fmt: skip
    plan: Literal["native", "sql"] | None = Field(
        None, description="Search with an index in memory, or in the database (default: native)"
    )
    by: Literal["auto", "words", "similar"] = Field(
        "auto", description="Search by the words of a text, or by its signature (`auto`: by "
        "words if there is a keyword index and the text is short)",
    )  # fmt: skip
    exact_vectors: bool = Field(
        True, description="Compare a vector with all vectors; false is faster, but may miss some"
    )

    @model_validator(mode="after")
    def _limited(self) -> QueryOptions:
        if self.limit is not None and (self.k is not None or self.radius is None):
            raise ValueError("limit requires a radius and no k")
        if self.k is None and self.radius is None:
            self.k = 10
        return self


Packed = Annotated[str, Field(pattern="^[A-Za-z0-9+/]*={0,2}$")]
Whole = Annotated[int, Field(ge=0, lt=2**63)]


class IndexOptions(Body):
    """Queries of a search in an index, what they are restricted to, and its options."""

    signatures: Items[Hex] | None = None
    texts: Items[str] | None = Field(None, description="Texts, if the index has a signer of texts")
    packed: Packed | None = Field(
        None, description="base64 of all signatures, one after the other, instead of `signatures`"
    )
    masks: Items[Hex] | None = Field(
        None, description="A mask per query: only bits that are 1 in it are compared"
    )
    packed_masks: Packed | None = Field(None, description="base64 of all masks")
    among: Items[Whole] | None = Field(None, description="Ids to search (default: all)")
    packed_among: Packed | None = Field(
        None, description="base64 of the ids to search, int64 in little-endian order"
    )
    packed_among_mask: Packed | None = Field(
        None, description="base64 of a bit per id, the first one in the highest bit of a byte"
    )
    pack: bool = Field(
        False, description="Return arrays as base64 of int64 (ids, offsets) and int32 (others), in "
        "little-endian order",
    )  # fmt: skip
    exact: bool = Field(False, description="Prove the answer, whatever the kind of index")
    explain: bool = Field(False, description="Return what the search read")
    recall: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="Expected share of neighbors or matches to find (clusters, flips)"
    )
    examine: Count | None = Field(None, description="Signatures to compare (prefix)")

    _one = _exactly_one("signatures", "texts", "packed")

    @model_validator(mode="after")
    def _once(self) -> Self:
        for names in (("masks", "packed_masks"), ("among", "packed_among", "packed_among_mask")):
            if sum(getattr(self, name) is not None for name in names) > 1:
                raise ValueError(f"at most one of these is allowed: {', '.join(names)}")
        return self


class IndexSearchBody(
    IndexOptions, json_schema_extra=_examples({"signatures": ["00ff00ff00ff00ff"], "k": 10})
):
    """Queries for the k nearest signatures."""

    k: Count = Field(10, description="Number of neighbors per query")
    expand: CountOrZero | None = Field(None, description="Bits in which lists may differ (slices)")
    admit: CountOrZero | None = Field(None, description="Bits up to which lists add candidates")
    rerank: CountOrZero | None = Field(None, description="Candidates to compare (slices)")
    cull: Literal["pessimistic", "optimistic", "both"] | None = Field(
        None, description="Which candidates to compare, by the distances that a score allows: at "
        "worst, at best, or both (slices)",
    )  # fmt: skip
    probe: Count | None = Field(None, description="Clusters to read (clusters)")


class IndexWithinBody(
    IndexOptions, json_schema_extra=_examples({"signatures": ["00ff00ff00ff00ff"], "radius": 3})
):
    """Queries for all signatures within a radius."""

    radius: CountOrZero = Field(description="Largest Hamming distance of a match")
    limit: Whole | None = Field(
        None, description="Maximum number of matches of all queries; more are an error (default: "
        "the limit of the service)",
    )  # fmt: skip
    flips: CountOrZero | None = Field(None, description="Headers to look up (flips)")
    first: bool = Field(False, description="Stop at the first match of a query (blocks, flips)")


class NamesBody(Body):
    """Ids whose names to return."""

    ids: Items[Whole]


class QueryBody(
    QueryOptions,
    json_schema_extra=_examples(
        {"text": "a quick brown fox", "k": 10},
        {"id": "fox", "radius": 20, "where": {"lang": "en"}},
        {"signature": "00ff00ff00ff00ff00ff00ff00ff00ff", "k": 5, "explain": True},
        {"text": "a quick brown fox", "vector": [0.25, -1.5, 0.75], "k": 5},
    ),
):
    """A query by a text, a document id or a signature; or by a vector, alone or with one of these.

    A vector does not go with an id.
    """

    text: str | None = None
    id: Id | None = Field(None, description="Id of a document; the document itself is left out")
    signature: Hex | None = None
    signature_base64: Base64 | None = None

    vector: Vector = None

    _one = _one_or_vector("vector", "id", "text", "signature", "signature_base64")


class BatchQueryBody(
    QueryOptions,
    json_schema_extra=_examples(
        {"texts": ["a quick brown fox", "minimum wages"], "k": 3, "radius": 30}
    ),
):
    """Many queries with the same options, answered at one version of the collection.

    Vectors are alone, or there is one for each text or signature.
    """

    texts: Items[str] | None = None
    ids: Items[Id] | None = None
    signatures: Items[Hex] | None = None
    signatures_base64: Items[Base64] | None = None

    vectors: Items[Vector] | None = None

    _one = _one_or_vector("vectors", "ids", "texts", "signatures", "signatures_base64")


class SideBody(Body):
    """One side of a comparison: a document id or a text."""

    id: Id | None = None
    text: str | None = None

    _one = _exactly_one("id", "text")


class CompareBody(
    Body,
    json_schema_extra=_examples({"left": {"text": "a quick brown fox"}, "right": {"id": "fox"}}),
):
    """Two texts to compare word by word."""

    left: SideBody
    right: SideBody


class PairsBody(Body):
    """A job that finds all pairs of documents within a radius."""

    radius: CountOrZero = Field(description="Maximum Hamming distance of a pair")
    limit: CountOrZero | None = Field(None, description="Maximum number of pairs")


class DedupBody(
    Body, json_schema_extra=_examples({"radius": 9}, {"threshold": 0.8, "delete": True})
):
    """A job that finds near-duplicates, and optionally deletes them."""

    radius: CountOrZero | None = Field(
        None, description="Maximum Hamming distance of near-duplicates"
    )
    threshold: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="Minimum similarity of the texts of near-duplicates"
    )
    features: Literal["words", "chars", "short"] | None = Field(
        None, description="Features of texts to compare, with a threshold (default: words; short "
        "if 90% of the texts have at most 120 characters)",
    )  # fmt: skip
    keep: Literal["first", "oldest", "newest"] = Field(
        "first", description="Document of a group to keep: first by id, or by the time of adding"
    )
    delete: bool = Field(
        False, description="Delete the near-duplicates of kept documents, except documents that "
        "changed since they were compared",
    )  # fmt: skip

    _one = _exactly_one("radius", "threshold")

    @model_validator(mode="after")
    def _compares_texts(self) -> Self:
        if self.features is not None and self.threshold is None:
            raise ValueError("features go with threshold; a radius compares signatures")
        return self


def document_value(document: Document, text: bool = True) -> dict[str, Any]:
    """Return a document as plain values."""
    value: dict[str, Any] = {
        "id": document.id,
        "metadata": document.metadata,
        "signature": document.signature.tobytes().hex(),
        "added": document.added.isoformat(),
        "updated": document.updated.isoformat(),
    }
    if text:
        value["text"] = document.text
    if document.vector is not None:
        value["vector"] = encoded_vector(document.vector)
    return value


def measure_value(signer: Signer | None) -> dict[str, Any] | None:
    """Return the similarity that signatures of texts estimate; None if it does not sign texts."""
    if not isinstance(signer, DocumentSigner):
        return None
    return {
        "measure": signer.measure,
        "unit": unit_text(signer.features),
        "weights": signer.weights_in_use.kind if isinstance(signer, WeightedSigner) else None,
    }


def answer_value(
    answer: Answer,
    similarities: list[float],
    signer: Signer | None = None,
    query: str | None = None,
) -> dict[str, Any]:
    """Return an answer as plain values; `similarities` are those of similar documents.

    `signer` and `query`, if it is a text, say where parts match.
    """
    value: dict[str, Any] = {
        "matches": [],
        "exact": answer.exact,
        "version": answer.version,
        "masked": answer.masked,
        "by": answer.by,
        "no_match": answer.no_match,
    }
    if answer.by == "words":
        value |= {"unknown": answer.unknown, "searched": answer.searched}
    elif answer.chance_distance is not None:
        value["chance_distance"] = answer.chance_distance
    if answer.work is not None:
        value["work"] = vars(answer.work)
    if not len(answer):  # most answers of a batch may be empty
        return value
    each: Sequence[float | None] = similarities or [None] * len(answer)
    values = [_match_value(match, one) for match, one in zip(answer, each, strict=True)]
    if answer[0].start is not None:
        for match, one in zip(answer, values, strict=True):
            one |= {"votes": match.votes, "place": _place(match, signer, query)}
            one |= {} if match.parts is None else {"parts": match.parts}
        value["left_out"] = answer.left_out
    value["matches"] = values
    return value


def _place(match: Match, signer: Signer | None, query: str | None) -> dict[str, Any]:
    """Return where a document matches: in seconds, in words and characters, or in positions."""
    unit = signer.unit if isinstance(signer, PartSigner) else PartSigner.unit
    names = ("start", "query_start", "length", "offset")
    numbers: dict[str, Any] = {name: getattr(match, name) for name in names}
    words = match.length or 0
    if unit == "milliseconds":
        unit, numbers = "seconds", {name: value / 1000 for name, value in numbers.items()}
    numbers["start"] = max(0, numbers["start"])
    place = {"unit": unit, **numbers}
    if unit == "words":
        if query is not None:
            place["query_characters"] = character_range(query, numbers["query_start"], words)
        if match.text is not None:
            place["characters"] = character_range(match.text, numbers["start"], words)
    return place


def _match_value(match: Match, similarity: float | None) -> dict[str, Any]:
    value: dict[str, Any] = {"id": match.id, "distance": match.distance}
    if match.score is None or match.start is not None:  # of parts, the score is the similarity
        value["similarity"] = similarity
    else:
        beside = {"words": match.words, "ranks": match.ranks}
        value["score"] = match.score
        value |= {name: one for name, one in beside.items() if one is not None}
    value["metadata"] = match.metadata
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
) -> list[bytes]:
    """Decode signatures in hexadecimal or base64."""
    width, decode, texts = bits // 8, bytes.fromhex, hexes
    expected = f"{2 * width} hexadecimal digits"
    if texts is None:
        decode, texts, expected = _from_base64, base64s or (), f"{width} bytes in base64"
    rows = []
    for place, text in enumerate(texts):
        try:
            row = decode(text)
        except ValueError:
            row = b""
        if len(row) != width:
            message = f"signature {place} is {brief(text)}; expected {expected} ({bits} bits)"
            raise Problem(422, "bad_signature", message)
        rows.append(row)
    return rows


def signature_row(hex: str | None, base64: str | None, bits: int) -> bytes:
    """Decode one signature in hexadecimal or base64."""
    return signature_rows(None if hex is None else [hex], [base64 or ""], bits)[0]


def as_array(rows: Sequence[bytes]) -> NDArray[np.uint8]:
    """Return one or more signatures as an array."""
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


def _from_base64(text: str) -> bytes:
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
