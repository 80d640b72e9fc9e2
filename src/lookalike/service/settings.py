"""The settings of a service: options of the command line, environment variables and help."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from lookalike.checks import byte_count
from lookalike.errors import ArgumentError, Said

ENVIRONMENT = "LOOKALIKE_SERVE_"
"""Prefix of the environment variables."""
LEVELS = ("debug", "info", "warning", "error")


def _read_size(text: str) -> int:
    try:
        return byte_count(text)
    except ArgumentError:
        raise ValueError("a size such as 500000, 32MiB or 1GB") from None


def _read_whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise ValueError("a whole number")
    return int(text)


def _read_seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 < float(text) <= 1e6:
            return float(text)
    raise ValueError("a number of seconds above 0")


def _read_level(text: str) -> str:
    if text not in LEVELS:
        raise ValueError(f"one of {', '.join(LEVELS)}")
    return text


def _setting(
    default: Any,
    metavar: str,
    help: str,
    read: Callable[[str], Any] = str,
    *,
    shown: str | None = None,
    least: int | None = None,
) -> Any:
    """Declare a setting; `shown` is its default in the help."""
    told = {"help": help, "read": read, "metavar": metavar, "shown": shown, "least": least}
    return field(default=default, metadata=told)


def _count(default: int, help: str) -> Any:
    return _setting(default, "N", help, _read_whole, least=1)


def _bytes(default: int, shown: str, help: str) -> Any:
    return _setting(default, "SIZE", help, _read_size, shown=shown, least=1)


def _seconds(default: float, help: str) -> Any:
    return _setting(default, "S", help, _read_seconds)


@dataclass(frozen=True)
class ServeSettings:
    """Settings of a service; each is an option of `lookalike serve` and a variable."""

    host: str = _setting(
        "127.0.0.1", "HOST", "address to listen on; other addresses than loopback require --keys"
    )
    port: int = _setting(8600, "PORT", "port to listen on; 0 chooses a free port", _read_whole)
    keys: str = _setting("", "FILE", "file with the accepted API keys; --new-key creates keys")
    allow_host: tuple[str, ...] = _setting(
        (),
        "NAMES",
        "more host names of the service, separated by commas",
        lambda text: tuple(text.replace(",", " ").split()),
    )
    workers: int = _count(1, "number of processes; all of them read and write")
    threads: int = _setting(0, "N", "threads per search", _read_whole, shown="all cores")
    snapshots: str = _setting("", "DIR", "folder for snapshots", shown="beside the database")
    max_body: int = _bytes(32 << 20, "32MiB", "maximum size of a request body")
    max_memory: int = _bytes(
        288 << 20, "288MiB", "maximum memory of all requests, for bodies, decoded values and "
        "answers",
    )  # fmt: skip
    max_upload: int = _bytes(1 << 30, "1GiB", "maximum size of an uploaded file")
    max_decodes: int = _count(2, "maximum number of images, recordings and videos decoded at once")
    max_text: int = _bytes(1 << 20, "1MiB", "maximum size of a text")
    max_batch: int = _count(10_000, "maximum number of documents or queries per request")
    max_k: int = _count(10_000, "maximum number of matches per query")
    max_results: int = _count(1_000_000, "maximum number of matches per batch and pairs per job")
    max_answer: int = _bytes(32 << 20, "32MiB", "maximum size of an answer")
    max_concurrent: int = _count(256, "maximum number of requests at once")
    max_connections: int = _count(1_024, "maximum number of connections at once")
    max_jobs: int = _count(2, "maximum number of jobs at once")
    time_limit: float = _seconds(30.0, "time limit of an answer, in seconds")
    decode_limit: float = _seconds(
        60.0, "time limit of an image, recording or video: to wait, be decoded and searched, in "
        "seconds",
    )  # fmt: skip
    overview_limit: float = _seconds(120.0, "time limit of groups, maps and distances, in seconds")
    slow_limit: float = _seconds(20.0, "time limit for a request to arrive, in seconds")
    log_level: str = _setting(
        "info", "LEVEL", f"{', '.join(LEVELS)}; info logs every request", _read_level
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            least, value = one.metadata["least"], getattr(self, one.name)
            if least is not None and value < least:
                raise ArgumentError(Said(one.name), f" is {value}; expected at least {least}")
        if self.port > 65535:
            raise ArgumentError(Said("port"), f" is {self.port}; expected 0 to 65535")
        if not loopback(self.host) and not self.keys:
            raise ArgumentError(
                Said("host"),
                f" is {self.host!r}, which other machines can reach, but there are no keys; "
                "create one with `lookalike serve --new-key --keys keys.json`, and add --keys",
            )

    @classmethod
    def read(
        cls, given: Mapping[str, str | None], environment: Mapping[str, str] | None = None
    ) -> ServeSettings:
        """Return the settings: given values first, then environment variables, then defaults."""
        variables = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for one in fields(cls):
            text, said = given.get(one.name), Said(one.name)
            if text is None:
                name = _variable(one.name)
                text, said = variables.get(name), Said(name, name)
            if text is None:
                continue
            try:
                values[one.name] = one.metadata["read"](text)
            except ValueError as error:
                raise ArgumentError(said, f" is {text!r}; expected {error}") from None
        return cls(**values)

    @property
    def key_file(self) -> Path | None:
        """The file with API keys, or None."""
        return Path(self.keys) if self.keys else None


def _variable(name: str) -> str:
    return ENVIRONMENT + name.upper()


def setting_options() -> dict[str, dict[str, str]]:
    """Return metavar and help of each option; the help names its default and its variable."""
    found = {}
    for one in fields(ServeSettings):
        told, default = one.metadata, one.default
        shown = told["shown"] or (f"{default:g}" if isinstance(default, float) else default)
        help = told["help"] + (f" (default: {shown})" if shown not in ("", ()) else "")
        found[one.name] = {"metavar": told["metavar"], "help": f"{help} [{_variable(one.name)}]"}
    return found


def loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    address = ip_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def ip_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an IP address, which may be in brackets; None for other names."""
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
