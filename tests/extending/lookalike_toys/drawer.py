"""A store that an installed package adds: SQLite files whose addresses begin with `drawer://`."""

from __future__ import annotations

from pathlib import Path

from lookalike.collection.stores.address import Address
from lookalike.collection.stores.sqlite import SqliteStore
from lookalike.errors import ArgumentError


class DrawerStore(SqliteStore):
    """Keeps the collections of `drawer:///folder/name` in the file `/folder/name.drawer`."""

    @classmethod
    def parse(cls, scheme: str, rest: str) -> Address:
        """Return the address of a drawer."""
        if not rest.startswith("/"):
            raise ArgumentError(f"{scheme}://{rest} is not an absolute path")
        return Address("drawer", Path(f"{rest}.drawer"), f"{scheme}://{rest}", f"drawer {rest}")
