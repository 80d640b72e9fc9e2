"""Connecting to a service."""

from __future__ import annotations

import os
from typing import Any, SupportsIndex
from urllib.parse import quote

from lookalike.checks import flag, whole_number
from lookalike.client.channel import Channel
from lookalike.client.remote import RemoteCollection
from lookalike.collection.stores.base import checked_name
from lookalike.errors import ArgumentError, NotFoundError, Said
from lookalike.signatures import Signer

__all__ = ["connect"]

_KEY = "LOOKALIKE_KEY"


def connect(
    url: str,
    name: str | None = None,
    *,
    key: str | None = None,
    signer: Signer | None = None,
    bits: SupportsIndex | None = None,
    keep_text: bool = True,
    timeout: float = 30.0,
    retries: SupportsIndex = 2,
) -> RemoteCollection:
    """Return a collection of the service at `url`, which `lookalike serve` runs.

    It has the methods of `Collection`, and raises the same errors. Without a `name`, it is the only
    collection there. One that is not there is made if there is a `signer`, or `bits`, as by
    `la.open_collection`. The `key` is that of the environment variable LOOKALIKE_KEY unless told.
    An answer is waited for `timeout` seconds. Reads that fail on their way are tried again so many
    times; writes never are.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 1e6:
        raise ArgumentError(Said("timeout"), f" is {timeout!r}; expected seconds, up to a million")
    again = whole_number("retries", retries, at_least=0, at_most=100)
    keep_text = flag("keep_text", keep_text)
    if name is not None:
        checked_name(name)
    if signer is not None and not isinstance(signer, Signer):
        raise ArgumentError(
            Said("signer"), f" is {signer!r}; expected one such as la.SimHash(bits=128)"
        )
    if signer is not None and bits is not None:
        raise ArgumentError(Said("bits"), " is the signer's matter; leave it out")
    width = None if bits is None else whole_number("bits", bits, at_least=8)
    channel = Channel(url, os.environ.get(_KEY) if key is None else key, timeout, again)
    try:
        described = _described(channel, name, signer, width, keep_text)
    except BaseException:
        channel.close()
        raise
    return RemoteCollection(channel, described)


def _described(
    channel: Channel, name: str | None, signer: Signer | None, bits: int | None, keep_text: bool
) -> dict[str, Any]:
    found: dict[str, Any]
    if name is None:
        listed = channel.read("GET", "/v1/collections")
        there = listed["collections"]
        if len(there) != 1 or listed.get("unavailable"):
            names = [one["name"] for one in [*there, *listed.get("unavailable", [])]]
            raise NotFoundError(
                f"{channel.shown} serves {len(names)} collections, {names}: say which one with "
                "name="
            )
        found = there[0]
    else:
        try:
            found = channel.read("GET", f"/v1/collections/{quote(name, safe='')}")
        except NotFoundError:
            if signer is None and bits is None:
                raise
            found = channel.write("POST", "/v1/collections", _new(name, signer, bits, keep_text))
    if signer is not None and found["signer"] != signer.to_dict():
        raise ArgumentError(
            f"the collection {found['name']!r} was made with another signer than {signer!r}, so "
            "their signatures cannot be compared; connect without a signer to use its own"
        )
    if bits is not None and bits != found["bits"]:
        raise ArgumentError(
            f"the collection {found['name']!r} has {found['bits']} bits, not {bits}"
        )
    return found


def _new(name: str, signer: Signer | None, bits: int | None, keep_text: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"name": name, "keep_text": keep_text}
    if signer is not None:
        body["description"] = signer.to_dict()
    else:
        body["bits"] = bits
    return body
