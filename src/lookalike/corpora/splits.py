"""Datasets in splits, such as a `DatasetDict` of Hugging Face: one corpus of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.corpora.formats.tables import TableCorpus, as_table
from lookalike.errors import DocumentError

_SPLIT = "split"


def is_splits(source: Any) -> bool:
    """Return whether these are datasets by name."""
    return (
        isinstance(source, Mapping)
        and bool(source)
        and all(hasattr(part, "with_format") for part in source.values())
    )


class SplitsCorpus(TableCorpus):
    """The rows of all splits, one after the other, with a column `split` if they have none.

    So documents of one split are compared with those of another. `select` gives splits back.
    """

    def __init__(self, splits: Mapping[str, Any]) -> None:
        self._splits = splits
        name = f"the {type(splits).__name__}"
        parts = []
        for split, part in splits.items():
            table = as_table(part, f"{name}, {split}")
            if _SPLIT not in table.column_names:
                table = table.append_column(_SPLIT, pa.array([split] * len(table), pa.string()))
            parts.append(table)
        self._sizes = [len(part) for part in parts]
        try:
            whole = pa.concat_tables(parts, promote_options="default")
        except pa.ArrowException as error:
            raise DocumentError(
                f"{name}: its splits have other types ({error}); give them one by one"
            ) from error
        super().__init__(whole)
        self.name = name

    def select(self, positions: NDArray[np.int64]) -> Any:
        """Return these rows, each in its split."""
        chosen = {}
        begin = 0
        for (split, part), size in zip(self._splits.items(), self._sizes, strict=True):
            inside = positions[(positions >= begin) & (positions < begin + size)] - begin
            chosen[split] = TableCorpus(part).select(inside)
            begin += size
        return type(self._splits)(chosen)  # type: ignore[call-arg]
