"""API keys: created here, shown once, and stored as hashes in a file.

A key has 256 random bits, so a fast hash of it cannot be reversed. The file has the name of each
key, its access and its collections:

    {"keys": [{"name": "ci", "hash": "sha256:...", "access": "read-only", "collections": ["docs"]}]}
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lookalike.errors import ArgumentError, FileError, FormatError, Said
from lookalike.storage.files import whole_file

ACCESS = ("read-only", "read-write")
_PREFIX = "lk_"
_HASH = re.compile("sha256:[0-9a-f]{64}")
_LOOK_AGAIN = 1.0
"""Seconds after which the file is checked for changes, so keys change without a restart."""
_MOST = 64 << 20


@dataclass(frozen=True)
class Key:
    """An API key: its access and its collections."""

    name: str
    hash: str = ""
    access: str = "read-write"
    collections: tuple[str, ...] = ("*",)

    @property
    def writes(self) -> bool:
        """Whether the key may write."""
        return self.access == "read-write"

    def reaches(self, collection: str) -> bool:
        """Return whether the key is for this collection."""
        return "*" in self.collections or collection in self.collections


NO_KEY = Key("")
"""The key of all requests to a service without keys."""


class KeyFile:
    """The keys of a file, read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._looked = 0.0
        self._seen: object = None
        self._keys: tuple[Key, ...] = ()
        self._look()
        if not self._keys:
            raise ArgumentError(
                Said("keys"),
                f" is {str(path)!r}, which has no keys; create one with "
                f"`lookalike serve --new-key --keys {path}`",
            )

    def find(self, secret: str) -> Key | None:
        """Return the key with this secret, or None; all keys are compared in constant time."""
        if time.monotonic() - self._looked > _LOOK_AGAIN:
            with self._lock:
                self._look()
        given = _hashed(secret)
        found = [key for key in self._keys if hmac.compare_digest(key.hash, given)]
        return found[-1] if found else None

    def _look(self) -> None:
        self._looked = time.monotonic()
        try:
            status = self._path.stat()
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            if seen != self._seen:
                self._keys, self._seen = _read(self._path), seen
        except (OSError, FileError) as error:
            if self._seen is None and not isinstance(error, FileNotFoundError):
                raise
            self._keys, self._seen = (), None  # without the file, no key is valid


def make_key(
    path: Path, name: str, access: str = "read-write", collections: Sequence[str] = ("*",)
) -> str:
    """Create a key, add its hash to the file, and return the secret, which is not stored."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
        raise ArgumentError(
            Said("key_name"), f" is {name!r}; expected 1 to 64 letters, digits, '.', '_' or '-'"
        )
    if access not in ACCESS:
        raise ArgumentError(f"access is {access!r}; expected one of {', '.join(ACCESS)}")
    keys = list(_read(path)) if path.exists() else []
    if any(key.name == name for key in keys):
        raise ArgumentError(
            Said("key_name"), f" is {name!r}, but {path} has a key of that name; choose another"
        )
    secret = _PREFIX + secrets.token_urlsafe(32)
    keys.append(Key(name, _hashed(secret), access, tuple(collections) or ("*",)))
    _write(path, keys)
    return secret


def _hashed(secret: str) -> str:
    return "sha256:" + hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _write(path: Path, keys: Sequence[Key]) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    values = [{**vars(key), "collections": list(key.collections)} for key in keys]
    with whole_file(path) as temporary:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"written": now, "keys": values}, file, indent=1)
        temporary.chmod(0o600)


def _read(path: Path) -> tuple[Key, ...]:
    try:
        if path.stat().st_size > _MOST:
            raise FormatError(f"{path} is too large for a file of API keys")
        value = json.loads(path.read_text("utf-8"))
        return tuple(_key(one) for one in value["keys"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(
            f"{path} is not a file of API keys ({type(error).__name__}); "
            "create one with `lookalike serve --new-key`"
        ) from None


def _key(value: dict[str, Any]) -> Key:
    name, hash, access, collections = (
        value[field] for field in ("name", "hash", "access", "collections")
    )
    if not isinstance(name, str) or not _HASH.fullmatch(hash) or access not in ACCESS:
        raise ValueError("not a key")
    if not isinstance(collections, list) or not all(isinstance(one, str) for one in collections):
        raise ValueError("not names of collections")
    return Key(name, hash, access, tuple(collections))
