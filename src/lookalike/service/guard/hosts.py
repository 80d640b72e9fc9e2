"""By which names a service may be reached, and from which pages.

A page of another site can send requests to a service on this machine, and by a name that it lets
point here (DNS rebinding) even read the answers. So the Host must be a name of ours, and a request
that a browser says comes from a page must come from a page of ours.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable

from lookalike.service.problems import Problem
from lookalike.service.settings import loopback
from lookalike.shown import brief

__all__ = ["Hosts"]

_HOST = re.compile(
    rb"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}))(?::([0-9]{1,5}))?"
)
_OURS = (b"same-origin", b"none")


class Hosts:
    """The names of a service."""

    def __init__(self, host: str, allowed: Iterable[str]) -> None:
        names = {
            "localhost",
            host.strip("[]").lower(),
            *(one.strip("[]").lower() for one in allowed),
        }
        self._addresses = not loopback(host)
        """Whether any address will do: whoever is off loopback has keys, and no page that was
        loaded by a name can have the origin of an address."""
        if self._addresses:
            names.add(socket.gethostname().lower())
        else:
            names |= {"127.0.0.1", "::1"}
        self._names = names
        self._known: set[bytes] = set()

    def check(self, host: bytes | None) -> None:
        """Raise if this is no name of ours."""
        if host in self._known:
            return
        match = None if host is None else _HOST.fullmatch(host)
        name = "" if match is None else match[1].decode("ascii").strip("[]").lower()
        if match is None or not (name in self._names or (self._addresses and _is_address(name))):
            raise Problem(
                421 if match else 400, "host",
                f"the Host is {brief(_text(host))}, which is no name of this service; use its "
                "address, or start it with --allow-host",
            )  # fmt: skip
        if len(self._known) < 100 and host is not None:
            self._known.add(host)

    @staticmethod
    def check_origin(host: bytes | None, origin: bytes | None, site: bytes | None) -> None:
        """Raise if a browser says that a page of another site asks."""
        if origin is not None:
            scheme, _, rest = origin.partition(b"://")
            if scheme not in (b"http", b"https") or host is None or rest.lower() != host.lower():
                raise Problem(
                    403, "origin",
                    f"the request is from the page of {brief(_text(origin))}; only this service's "
                    "own page may ask",
                )  # fmt: skip
        elif site is not None and site not in _OURS:
            raise Problem(
                403, "origin", "the request is from a page of another site; open the service's own"
            )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
