"""Where a collection lives: a file for SQLite, a server for PostgreSQL."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lookalike.errors import ArgumentError
from lookalike.storage import user_cache_folder

__all__ = ["Address", "parse_address"]

_EXPECTED = "expected a file name such as docs.db, sqlite:///docs.db, or postgresql://host/database"


@dataclass(frozen=True)
class Address:
    """A database: a file, or the address of a server."""

    path: Path | None
    url: str

    @property
    def shown(self) -> str:
        """The address without its password, for messages."""
        if self.path is not None:
            return str(self.path)
        parts = urlsplit(self.url)
        if parts.password is None:
            return self.url
        host = parts.netloc.rpartition("@")[2]
        return parts._replace(netloc=f"{parts.username or ''}:***@{host}").geturl()

    def cache_folder(self) -> Path | None:
        """Return where caches of native indexes are kept.

        Beside the file, `docs.db.cache/`; for a server, in the user's folder for caches, if any.
        """
        if self.path is not None:
            return self.path.with_name(self.path.name + ".cache")
        import hashlib  # takes milliseconds to import, which not everybody needs

        folder = user_cache_folder()
        return folder and folder / hashlib.sha256(self.shown.encode()).hexdigest()[:16]


def parse_address(url: str | os.PathLike[str]) -> Address:
    """Return the address that `url` means, or say what was expected."""
    text = os.fspath(url)
    if not isinstance(text, str) or not text or "\0" in text:
        raise ArgumentError(f"the address of a collection is {text!r}; {_EXPECTED}")
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _file(text, text)
    if scheme == "sqlite":
        host, _, path = rest.partition("/")
        if host or not path:
            raise ArgumentError(
                f"{text!r} names no file; sqlite:///docs.db is a file here, "
                "sqlite:////data/docs.db one at /data"
            )
        return _file(unquote(path), text)
    if scheme in ("postgresql", "postgres"):
        return Address(None, f"postgresql://{rest}")
    raise ArgumentError(f"{text!r} is of the unknown kind {scheme!r}; {_EXPECTED}")


def _file(name: str, text: str) -> Address:
    if name == ":memory:" or name.startswith("file:"):
        raise ArgumentError(
            f"{text!r} is no file; collections are durable, so they need one: {_EXPECTED}"
        )
    path = Path(name).expanduser().absolute()
    return Address(path, f"sqlite:///{path}")
