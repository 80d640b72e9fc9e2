"""`datasketch.storage`: what pickled indexes of datasketch are made of; to be read only."""

from __future__ import annotations

from typing import Any

__all__ = ["DictListStorage", "DictSetStorage"]


class DictListStorage:
    """Lists under keys, as they were pickled."""

    _dict: dict[Any, Any]


class DictSetStorage(DictListStorage):
    """Sets under keys, as they were pickled."""
