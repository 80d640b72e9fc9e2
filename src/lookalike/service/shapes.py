"""What requests and answers look like: the bodies that OpenAPI describes, and plain values.

Requests are checked strictly: a number is not a text, and an unknown field is a mistake.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from lookalike.collection import Answer, Document, Match
from lookalike.features.choice import unit_text
from lookalike.service.problems import Problem
from lookalike.shown import brief
from lookalike.signatures import Signer
from lookalike.signatures.methods import TEXT_SIGNERS
from lookalike.signatures.signer import DocumentSigner, WeightedSigner

_MOST_CONDITIONS = 10_000
_LONGEST_CONDITIONS = 1 << 20


def _check_conditions(where: Any) -> Any:
    """Refuse a value that JSON does not have, and too many values."""
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
            raise PydanticCustomError("condition", "Conditions have values that JSON has")
        if values > _MOST_CONDITIONS or characters > _LONGEST_CONDITIONS:
            raise PydanticCustomError(
                "conditions",
                "Conditions should have at most {values} values and {characters} characters",
                {"values": _MOST_CONDITIONS, "characters": _LONGEST_CONDITIONS},
            )
    return where


_NONE = object()
Item = TypeVar("Item")
Items = Annotated[list[Item], Field(fail_fast=True)]
"""A list that is checked up to its first mistake."""
Where = Annotated[
    dict[str, JsonValue] | None,
    BeforeValidator(_check_conditions),
    Field(
        description='Conditions on metadata: `{"lang": "en", "year": {">=": 2020}}`',
        examples=[{"lang": "en", "year": {">=": 2020}}],
    ),
]
Hex = Annotated[
    str, Field(pattern="^([0-9A-Fa-f]{2})+$", max_length=4096, description="A signature in hex")
]
Base64 = Annotated[
    str, Field(pattern="^[A-Za-z0-9+/_-]+={0,2}$", max_length=4096, description="in base64")
]
Id = Annotated[str, Field(min_length=1, max_length=1000, description="The id of a document")]
Bits = Annotated[int, Field(ge=8, le=16384, multiple_of=8)]
Ngram = Annotated[int, Field(ge=1, le=100)]
Count = Annotated[int, Field(ge=1, le=1 << 40)]
CountOrZero = Annotated[int, Field(ge=0, le=1 << 40)]


def _examples(*examples: Any) -> dict[str, Any]:
    return {"examples": list(examples)}


def _exactly_one(*names: str) -> Any:
    """Return a check that a body has exactly one of these fields."""

    def check(body: BaseModel) -> BaseModel:
        if sum(getattr(body, name) is not None for name in names) != 1:
            raise ValueError(f"give exactly one of these: {', '.join(names)}")
        return body

    return model_validator(mode="after")(check)


class Body(BaseModel):
    """A body of a request."""

    model_config = ConfigDict(strict=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        """Refuse many unknown fields by one error; a few of them get one each."""
        if isinstance(value, dict) and len(value) > len(cls.model_fields):
            unknown = next(name for name in value if name not in cls.model_fields)
            raise PydanticCustomError(
                "unknown_fields",
                "There is no field {field}; the fields are {fields}",
                {"field": repr(unknown[:80]), "fields": ", ".join(cls.model_fields)},
            )
        return value


class SignerBody(Body):
    """How texts are signed."""

    method: str = Field(
        default="simhash", max_length=100,
        description=f"{', '.join(TEXT_SIGNERS)}, or a signer of another installed package",
    )  # fmt: skip
    bits: Bits | None = Field(
        default=None,
        description="bits of a signature (default: simhash 128, topsig 1024, bbitminhash 512)",
    )
    ngram: Ngram | None = Field(default=None, description="words that make a feature")
    chars: Ngram | None = Field(default=None, description="characters that make a feature")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class CreateBody(
    Body,
    json_schema_extra=_examples(
        {"name": "pages", "signer": {"method": "simhash", "bits": 128}},
        {"name": "photos", "bits": 64, "keep_text": False},
    ),
):
    """A new collection: with a signer of texts, or the width of signatures that are given."""

    name: str = Field(max_length=64, description="letters, digits, '.', '_' and '-'")
    signer: SignerBody | None = None
    description: dict[str, Any] | None = Field(
        None, description="A signer as `Signer.to_dict` describes it, in place of `signer`"
    )
    bits: Bits | None = Field(
        None, description="Signatures are given, and this wide; in place of `signer`"
    )
    keep_text: bool = True

    @model_validator(mode="after")
    def _one(self) -> CreateBody:
        if sum(one is not None for one in (self.signer, self.description, self.bits)) > 1:
            raise ValueError("signer, description and bits exclude each other: give one of them")
        return self


class DocumentBody(Body):
    """A document to be written; one without a text has a signature."""

    id: Any = Field(description="1 to 1000 bytes of UTF-8", json_schema_extra={"type": "string"})
    text: Any = Field(None, json_schema_extra={"type": ["string", "null"]})
    metadata: Any = Field(
        None, description="a JSON object", json_schema_extra={"type": ["object", "null"]}
    )
    signature: Hex | None = None
    signature_base64: Base64 | None = None


class WriteBody(
    Body,
    json_schema_extra=_examples(
        {"documents": [{"id": "fox", "text": "The quick brown fox", "metadata": {"lang": "en"}}]}
    ),
):
    """Documents to be written."""

    documents: Items[DocumentBody]
    mode: Literal["upsert", "add"] = Field(
        "upsert", description="`add` refuses ids that are there already"
    )
    on_error: Literal["skip", "raise"] = Field(
        "skip", description="`skip` writes the others; with `raise` all are written or none, and "
        "an error of status 422 names those that are wrong",
    )  # fmt: skip


class GetBody(Body):
    """Documents by id."""

    ids: Items[str]
    include_text: bool = True


class DeleteBody(Body):
    """Documents to be deleted, by id or by condition."""

    ids: Items[str] | None = None
    where: Where = None

    _one = _exactly_one("ids", "where")


class ScrollBody(Body):
    """The next documents by id."""

    after: str = Field(default="", description="the `next` of the page before")
    limit: Count = 100
    where: Where = None
    include_text: bool = True


class CountBody(Body):
    """How many documents meet a condition."""

    where: Where = None


class Asked(Body):
    """What is asked of every query."""

    k: Count | None = Field(None, description="The k nearest; 10 unless there is a radius")
    radius: CountOrZero | None = Field(
        None, description="Largest Hamming distance of a match; without k, all matches"
    )
    limit: Count | None = Field(
        None, description="Most matches without k; if there are more, `exact` is false"
    )
    where: Where = None
    exclude: Items[str] = Field(default_factory=list, description="ids that are not wanted")
    explain: bool = Field(False, description="which bits and slices differ, what the search did")
    include_text: bool = False
    mask: Literal["auto"] | bool = Field(
        "auto", description="compare only bits that the words of a text decide"
    )
    plan: Literal["native", "sql"] | None = None

    @model_validator(mode="after")
    def _limited(self) -> Asked:
        if self.limit is not None and (self.k is not None or self.radius is None):
            raise ValueError("limit goes with a radius alone; with k, leave it out")
        if self.k is None and self.radius is None:
            self.k = 10
        return self


class QueryBody(
    Asked,
    json_schema_extra=_examples(
        {"text": "a quick brown fox", "k": 10},
        {"id": "fox", "radius": 20, "where": {"lang": "en"}},
        {"signature": "00ff00ff00ff00ff00ff00ff00ff00ff", "k": 5, "explain": True},
    ),
):
    """A query: by a text, a document or a signature."""

    text: str | None = None
    id: Id | None = Field(None, description="What is like this document, which is left out")
    signature: Hex | None = None
    signature_base64: Base64 | None = None

    _one = _exactly_one("text", "id", "signature", "signature_base64")


class BatchQueryBody(
    Asked,
    json_schema_extra=_examples(
        {"texts": ["a quick brown fox", "minimum wages"], "k": 3, "radius": 30}
    ),
):
    """Many queries of one sort, answered by one native call at one version."""

    texts: Items[str] | None = None
    ids: Items[Id] | None = None
    signatures: Items[Hex] | None = None
    signatures_base64: Items[Base64] | None = None

    _one = _exactly_one("texts", "ids", "signatures", "signatures_base64")


class SideBody(Body):
    """One side of a comparison: a document, or a text."""

    id: Id | None = None
    text: str | None = None

    _one = _exactly_one("id", "text")


class CompareBody(
    Body,
    json_schema_extra=_examples({"left": {"text": "a quick brown fox"}, "right": {"id": "fox"}}),
):
    """Two texts to be compared word by word."""

    left: SideBody
    right: SideBody


class PairsBody(Body):
    """A job that finds every pair of documents within a radius."""

    radius: CountOrZero
    limit: CountOrZero | None = None


class DedupBody(
    Body, json_schema_extra=_examples({"radius": 9}, {"threshold": 0.8, "delete": True})
):
    """A job that finds near-duplicates, and deletes them if told.

    By signatures within a radius, or by the similarity of texts.
    """

    radius: CountOrZero | None = None
    threshold: Annotated[float, Field(gt=0, le=1)] | None = None
    keep: Literal["first", "oldest", "newest"] = Field(
        "first", description="who stays of a group: the first by id, or by the time it was added"
    )
    delete: bool = Field(
        False, description="delete the near-duplicates of the documents that are kept; those that "
        "have changed since they were compared are left alone",
    )  # fmt: skip

    _one = _exactly_one("radius", "threshold")


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
    """Return which similarity of texts signatures estimate; None where it signs no texts."""
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
) -> list[bytes]:
    """Return the signatures that hex digits or base64 stand for, or say what is wrong."""
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
            raise Problem(
                422, "bad_signature", f"signature {place} is {brief(text)}; expected {expected}: "
                f"the collection has {bits} bits",
            )  # fmt: skip
        rows.append(row)
    return rows


def signature_row(hex: str | None, base64: str | None, bits: int) -> bytes:
    """Return the one signature that hex digits or base64 stand for, as `signature_rows` does."""
    return signature_rows(None if hex is None else [hex], [base64 or ""], bits)[0]


def as_array(rows: Sequence[bytes]) -> NDArray[np.uint8]:
    """Return signatures, at least one, as an array."""
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


def _from_base64(text: str) -> bytes:
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
