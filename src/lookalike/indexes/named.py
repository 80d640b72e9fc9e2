"""What documents are called, where an index was told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError
from lookalike.shown import brief

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["Named"]


class Named:
    """An index that may know what its documents are called."""

    names: Sequence[str] | None = None
    """What documents are called: `names[id]`, where the index was told; saved with it."""

    def name(self, id: int) -> str | int:
        """Return what a document is called: its name, or its id where it has none."""
        if not isinstance(id, int | np.integer):
            raise ArgumentError(f"id is {brief(id)}; expected a whole number")
        if self.names is None or not 0 <= id < len(self.names):
            return id
        return self.names[id]

    def _name_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a container needs to hold the names; nothing if there are none."""
        from lookalike.storage import Strings  # not needed to search, so not at import

        return {} if self.names is None else dict(Strings.of(self.names).arrays("name"))

    def _restore_names(self, container: Container) -> None:
        from lookalike.storage import Strings

        self.names = Strings.restored(container, "name")
