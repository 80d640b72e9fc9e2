"""The settings: one list, from which come the options, the environment variables and the help."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from lookalike.checks import byte_count
from lookalike.errors import ArgumentError, Said

ENVIRONMENT = "LOOKALIKE_SERVE_"
"""What the names of environment variables begin with."""
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
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1e6:
        raise ValueError("seconds, more than 0")
    return value


def _read_names(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


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
    """Declare a setting; `shown` is its default as the help shows it."""
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
    """How a service runs; every field is an option of `lookalike serve` and a variable."""

    host: str = _setting(
        "127.0.0.1", "HOST", "address to listen at; others than loopback need --keys"
    )
    port: int = _setting(8600, "PORT", "port to listen at; 0 takes a free one", _read_whole)
    keys: str = _setting("", "FILE", "file with the keys that are let in; --new-key makes them")
    allow_host: tuple[str, ...] = _setting(
        (), "NAMES", "names, with commas, by which the service is reached, beside its address",
        _read_names,
    )  # fmt: skip
    workers: int = _count(1, "processes; all of them read and write")
    threads: int = _setting(0, "N", "threads of a search", _read_whole, shown="all cores")
    snapshots: str = _setting("", "DIR", "folder for snapshots", shown="beside the database")
    max_body: int = _bytes(32 << 20, "32MiB", "largest body of a request")
    max_memory: int = _bytes(
        288 << 20, "288MiB", "memory for bodies, the values decoded from them and answers, all "
        "requests together",
    )  # fmt: skip
    max_upload: int = _bytes(1 << 30, "1GiB", "largest file that may be uploaded")
    max_text: int = _bytes(1 << 20, "1MiB", "longest text, in bytes")
    max_batch: int = _count(10_000, "most documents or queries in a request")
    max_k: int = _count(10_000, "most matches for a query")
    max_results: int = _count(1_000_000, "most matches of a batch, and pairs of a job")
    max_answer: int = _bytes(32 << 20, "32MiB", "largest answer")
    max_concurrent: int = _count(256, "most requests at once")
    max_connections: int = _count(1_024, "most connections at once")
    max_jobs: int = _count(2, "most jobs that run at once")
    time_limit: float = _seconds(30.0, "seconds that an answer may take")
    overview_limit: float = _seconds(120.0, "seconds that groups, a map or distances may take")
    slow_limit: float = _seconds(20.0, "seconds that a request may take to arrive")
    log_level: str = _setting(
        "info", "LEVEL", f"{', '.join(LEVELS)}; info has a line for each request", _read_level
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
                f" is {self.host!r}, which others can reach, and there are no keys: "
                "make one with `lookalike serve --new-key --keys keys.json`, and give --keys",
            )

    @classmethod
    def read(
        cls, given: Mapping[str, str | None], environment: Mapping[str, str] | None = None
    ) -> ServeSettings:
        """Return the settings: the given ones, else those of the environment, else the defaults."""
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
        """The file with keys, if there is one."""
        return Path(self.keys) if self.keys else None


def _variable(name: str) -> str:
    return ENVIRONMENT + name.upper()


def setting_options() -> dict[str, dict[str, str]]:
    """Return metavar and help of each option; the help has its default and its variable."""
    found = {}
    for one in fields(ServeSettings):
        told, default = one.metadata, one.default
        shown = told["shown"] or (f"{default:g}" if isinstance(default, float) else default)
        help = told["help"] + (f" (default: {shown})" if shown not in ("", ()) else "")
        found[one.name] = {"metavar": told["metavar"], "help": f"{help} [{_variable(one.name)}]"}
    return found


def loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    import ipaddress

    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
