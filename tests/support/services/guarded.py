"""A service with keys and narrow limits, and what it has logged."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lookalike as la
from lookalike.service.keys import make_key
from support.services.running import Running, running

BASE = "/v1/collections/pages"


class Served:
    """A service with keys, and what it has logged."""

    def __init__(self, service: Running, keys: dict[str, str], log: io.StringIO) -> None:
        self.service, self.keys, self.log = service, keys, log

    def with_key(self, name: str | None) -> Running:
        """Return it for whoever has this key, or none."""
        key = None if name is None else self.keys[name]
        return Running(self.service.host, self.service.port, key)


@contextmanager
def guarded_service(folder: Path, **settings: Any) -> Iterator[Served]:
    """Serve two collections, `pages` and `secret`, to keys of four sorts."""
    (folder / "data").mkdir()
    for name in ("pages", "secret"):
        with la.open_collection(
            folder / "data" / f"{name}.db", name, signer=la.SimHash(64)
        ) as docs:
            docs.add(["one", "two"], ["some text", "another text"])
    path = folder / "keys.json"
    keys = {
        "writer": make_key(path, "writer"),
        "reader": make_key(path, "reader", "read-only"),
        "pages": make_key(path, "pages", "read-write", ["pages", "new"]),
        "peek": make_key(path, "peek", "read-only", ["pages"]),
    }
    log = io.StringIO()
    narrow = {
        "max_body": 20_000, "max_upload": 30_000, "max_text": 500, "max_batch": 10, "max_k": 20,
        "max_results": 50, "max_connections": 40, "max_concurrent": 20,
    }  # fmt: skip
    with running(folder / "data", folder, log, keys=str(path), **{**narrow, **settings}) as service:
        yield Served(service, keys, log)
