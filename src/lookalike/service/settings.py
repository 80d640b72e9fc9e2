"""What can be set: one list, from which come the flags, the environment variables and the help."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from lookalike.checks import byte_count
from lookalike.errors import ArgumentError, Said

__all__ = ["ENVIRONMENT", "ServeSettings", "loopback", "setting_options"]

ENVIRONMENT = "LOOKALIKE_SERVE_"
"""What the names of environment variables begin with."""


def _size(text: str) -> int:
    try:
        return byte_count(text)
    except ArgumentError:
        raise ValueError("a size such as 500000, 32MiB or 1GB") from None


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise ValueError("a whole number")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1e6:
        raise ValueError("seconds, more than 0")
    return value


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.replace(",", " ").split() if name)


def _level(text: str) -> str:
    if text not in LEVELS:
        raise ValueError(f"one of {', '.join(LEVELS)}")
    return text


LEVELS = ("debug", "info", "warning", "error")


def _setting(
    default: Any,
    help: str,
    *,
    read: Callable[[str], Any] = str,
    metavar: str = "N",
    shown: str | None = None,
    least: int | None = None,
) -> Any:
    """Declare a setting; `shown` is its default as the help says it."""
    told = {"help": help, "read": read, "metavar": metavar, "shown": shown, "least": least}
    return field(default=default, metadata=told)


@dataclass(frozen=True)
class ServeSettings:
    """How a service runs; every field is an option of `lookalike serve` and a variable."""

    host: str = _setting("127.0.0.1", "address to listen at; others than loopback need --keys",
                         metavar="HOST")  # fmt: skip
    port: int = _setting(8600, "port to listen at; 0 takes a free one", read=_whole, metavar="PORT")
    keys: str = _setting("", "file with the keys that are let in; --new-key makes them",
                         metavar="FILE")  # fmt: skip
    allow_host: tuple[str, ...] = _setting(
        (), "names, with commas, by which the service is reached, beside its address", read=_names,
        metavar="NAMES",
    )  # fmt: skip
    workers: int = _setting(1, "processes; all of them read and write", read=_whole, least=1)
    threads: int = _setting(0, "threads of a search", read=_whole, shown="all cores")
    snapshots: str = _setting("", "folder for snapshots", metavar="DIR",
                              shown="beside the database")  # fmt: skip
    max_body: int = _setting(32 << 20, "largest body of a request", read=_size, metavar="SIZE",
                             shown="32MiB", least=1)  # fmt: skip
    max_memory: int = _setting(
        288 << 20, "memory for bodies, the values decoded from them and answers, all requests "
        "together", read=_size, metavar="SIZE", shown="288MiB", least=1,
    )  # fmt: skip
    max_upload: int = _setting(1 << 30, "largest file that may be uploaded", read=_size,
                               metavar="SIZE", shown="1GiB", least=1)  # fmt: skip
    max_text: int = _setting(1 << 20, "longest text, in bytes", read=_size, metavar="SIZE",
                             shown="1MiB", least=1)  # fmt: skip
    max_batch: int = _setting(10_000, "most documents or queries in a request", read=_whole,
                              least=1)  # fmt: skip
    max_k: int = _setting(10_000, "most matches for a query", read=_whole, least=1)
    max_results: int = _setting(1_000_000, "most matches of a batch, and pairs of a job",
                                read=_whole, least=1)  # fmt: skip
    max_answer: int = _setting(32 << 20, "largest answer", read=_size, metavar="SIZE",
                               shown="32MiB", least=1)  # fmt: skip
    max_concurrent: int = _setting(256, "most requests at once", read=_whole, least=1)
    max_connections: int = _setting(1_024, "most connections at once", read=_whole, least=1)
    max_jobs: int = _setting(2, "most jobs that run at once", read=_whole, least=1)
    time_limit: float = _setting(30.0, "seconds that an answer may take", read=_seconds,
                                 metavar="S")  # fmt: skip
    overview_limit: float = _setting(120.0, "seconds that groups, a map or distances may take",
                                     read=_seconds, metavar="S")  # fmt: skip
    slow_limit: float = _setting(20.0, "seconds that a request may take to arrive", read=_seconds,
                                 metavar="S")  # fmt: skip
    log_level: str = _setting("info", f"{', '.join(LEVELS)}; info has a line for each request",
                              read=_level, metavar="LEVEL")  # fmt: skip

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
        """Return the settings of what was typed, else of the environment, else the defaults."""
        variables = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for one in fields(cls):
            text, said = given.get(one.name), Said(one.name)
            if text is None:
                name = variable(one.name)
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


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return ENVIRONMENT + name.upper()


@dataclass(frozen=True)
class SettingOption:
    """An option of the command line."""

    name: str
    metavar: str
    help: str


def setting_options() -> list[SettingOption]:
    """Return the options, each with its default and its variable in the help."""
    found = []
    for one in fields(ServeSettings):
        told, default = one.metadata, one.default
        shown = told["shown"] or (f"{default:g}" if isinstance(default, float) else default)
        help = told["help"] + (f" (default {shown})" if shown not in ("", ()) else "")
        found.append(SettingOption(one.name, told["metavar"], f"{help} [{variable(one.name)}]"))
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
