"""Documents on their way to a service: checked here, in the words of a collection that is here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from lookalike.checks import one_of
from lookalike.collection.documents import prepare_items
from lookalike.collection.query import listed
from lookalike.collection.signing import no_signer_of_texts
from lookalike.collection.writing import Written, check_numbers
from lookalike.errors import BatchError, ItemError
from lookalike.signatures import as_queries

__all__ = ["Sent"]


@dataclass(frozen=True)
class Sent:
    """Documents that can be sent, and what is wrong with the others."""

    documents: list[dict[str, Any]]
    positions: list[int]
    """Where each was in the batch."""
    ids: list[Any]
    errors: list[ItemError]

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        texts: Sequence[str] | None,
        signatures: ArrayLike | None,
        metadata: Sequence[Mapping[str, Any] | None] | None,
        *,
        on_error: str,
        unique: bool,
        keep_text: bool,
        bits: int,
        name: str,
        unsigned: str | None,
    ) -> Sent:
        """Check all items as `Batch.of` does for a collection that is here.

        `unsigned` says that the collection signs no texts, and names its signer, if it has one.
        """
        one_of("on_error", on_error, ("raise", "skip"))
        names = listed("ids", ids)
        rows = None if signatures is None else as_queries(signatures, bits, "signatures")
        contents = None if texts is None else listed("texts", texts)
        described = None if metadata is None else listed("metadata", metadata)
        check_numbers(len(names), texts=contents, signatures=rows, metadata=described)
        if rows is None and unsigned is not None:
            raise no_signer_of_texts(name, unsigned)
        items, errors = prepare_items(
            names, contents, described, need_text=rows is None, keep_text=keep_text, unique=unique
        )
        if errors and on_error == "raise":
            raise BatchError(errors, len(names))
        documents = []
        for place in items.positions:
            one: dict[str, Any] = {"id": names[place]}
            if contents is not None and contents[place] is not None:
                one["text"] = contents[place]
            if rows is not None:
                one["signature"] = rows[place].tobytes().hex()
            given = None if described is None else described[place]
            if given:
                one["metadata"] = dict(given)
            documents.append(one)
        return cls(documents, items.positions, names, errors)

    def refused(self, error: BatchError) -> BatchError:
        """Return what the service says of the items, by their places here."""
        return BatchError([self._placed(one) for one in error.errors], len(self.ids))

    def written(self, done: Mapping[str, Any]) -> Written:
        """Return what the service has done."""
        found = [
            self._placed(ItemError(place, None, result["message"]))
            for place, result in enumerate(done["results"])
            if result["status"] == "refused"
        ]
        everything = sorted([*self.errors, *found], key=lambda error: error.position)
        return Written(done["added"], done["updated"], errors=everything, version=done["version"])

    def _placed(self, error: ItemError) -> ItemError:
        position = self.positions[error.position]
        return ItemError(position, self.ids[position], error.message, error.remedy)
