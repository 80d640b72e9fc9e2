"""Where a collection lives: a file for SQLite, a server for PostgreSQL."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from lookalike.errors import ArgumentError
from lookalike.storage import user_cache_folder

_EXPECTED = "expected a file name such as docs.db, sqlite:///docs.db, or postgresql://host/database"
_ENCODED = (
    "in user names and passwords write / : @ ? # % and blanks as %2F %3A %40 %3F %23 %25 and %20"
)
_SECRETS = ("password", "secret")
"""What the names of settings contain whose values are nobody's business."""


@dataclass(frozen=True)
class Address:
    """A database: a file, or the address of a server. Only `url` has the password."""

    path: Path | None
    url: str = field(repr=False)
    shown: str
    """The address without its password, for messages."""

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
    """Return the address that `url` means, or say what was expected.

    What cannot be read is not repeated in the error where it may be a password.
    """
    text = os.fspath(url) if isinstance(url, str | os.PathLike) else None
    if not isinstance(text, str):
        raise ArgumentError(
            f"the address of a collection is of type {type(url).__name__}; {_EXPECTED}"
        )
    wrong = "" if text else "is empty"
    if "\0" in text:
        wrong = "contains the character NUL"
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        wrong = "contains half of a surrogate pair, which is no character"
    if wrong:
        raise ArgumentError(f"the address of a collection {wrong}; {_EXPECTED}")
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _file(text)
    if scheme == "sqlite":
        host, _, path = rest.partition("/")
        if host or not path:
            raise ArgumentError(
                f"{hide_passwords(text)!r} names no file; sqlite:///docs.db is a file here, "
                "sqlite:////data/docs.db one at /data"
            )
        return _file(unquote(path))
    if scheme in ("postgresql", "postgres"):
        return Address(None, f"postgresql://{rest}", f"postgresql://{_without_password(rest)}")
    known = re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme)
    raise ArgumentError(
        f"the address of a collection is of {f'the kind {scheme}://' if known else 'no known kind'}"
        f"; {_EXPECTED}"
    )


def hide_passwords(text: str) -> str:
    """Return text, such as a message that quotes what was typed, with stars for passwords."""
    text = re.sub(r"(\w://[^\s:@/]*:)\S*@", r"\1***@", text)
    return re.sub(r"(?i)((?:password|secret)\w*=)[^\s&'\"]+", r"\1***", text)


def _file(name: str) -> Address:
    if name == ":memory:" or name.startswith("file:"):
        raise ArgumentError(
            f"{name!r} is no file; collections are durable, so they need one: {_EXPECTED}"
        )
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", name) or re.search(r"\bpassword\s*=", name):
        # A pathlib.Path of an address, which has lost a slash, or the settings that psql takes.
        raise ArgumentError(
            "the address of a collection looks like that of a server, but cannot be read; "
            f"{_EXPECTED}, as a str"
        )
    try:
        path = Path(name).expanduser().absolute()
    except RuntimeError as error:
        raise ArgumentError(f"{name!r} is no file: {error}; {_EXPECTED}") from None
    return Address(path, f"sqlite:///{path}", str(path))


def _without_password(rest: str) -> str:
    """Return what follows postgresql:// with stars for passwords, as libpq understands it.

    Where a character that should be encoded leads libpq to take a part of the password for
    something else, which it would then show, the address is refused.
    """
    user, at, after = rest.partition("@")
    if not at or "/" in user:
        user, at, after = "", "", rest
    where, question, settings = after.partition("?")
    hosts = where.partition("/")[0]
    ports = re.sub(r"\[[^]]*\]", "", hosts).split(",")
    readable = all(re.fullmatch(r"[^:]*(:[0-9]*)?", port) for port in ports)
    readable &= all("=" in one for one in settings.split("&") if question)
    if "@" in where or not readable:
        raise ArgumentError(
            "the address postgresql://... of a collection cannot be read; "
            f"expected postgresql://user:password@host:port/database, and {_ENCODED}"
        )
    name, colon, _ = user.partition(":")
    shown = [_setting_without_secret(one) for one in settings.split("&")]
    return f"{name}{colon and ':***'}{at}{where}{question}{'&'.join(shown)}"


def _setting_without_secret(setting: str) -> str:
    name, _, _ = setting.partition("=")
    secret = any(word in unquote(name).lower() for word in _SECRETS)
    return f"{name}=***" if secret else setting
