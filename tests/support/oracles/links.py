"""Incoming links, slowly: all links of all pages in a dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class Link(NamedTuple):
    """A link of a crawl, between normalized addresses."""

    source: str
    target: str
    anchor: str
    before: str
    after: str
    nofollow: bool = False


def incoming(
    links: Iterable[Link], around: int, *, nofollow: bool, self_links: bool, internal: str
) -> dict[str, Counter[tuple[str, str, str, str]]]:
    """Return, of each target, its sources with the words of links and those around them."""
    found: dict[str, Counter[tuple[str, str, str, str]]] = {}
    for link in links:
        if (link.nofollow and not nofollow) or (link.source == link.target and not self_links):
            continue
        source = link.source
        if host(source) == host(link.target):
            if internal == "skip":
                continue
            if internal == "relative":
                source = source.removeprefix(f"http://{host(source)}")
        before = " ".join(list(reversed(list(reversed(link.before.split()))[:around])))
        after = " ".join(link.after.split()[:around])
        key = source, " ".join(link.anchor.split()), before, after
        found.setdefault(link.target, Counter())[key] += 1
    return found


def host(address: str) -> str:
    """Return the host of an address that begins with http://."""
    return address.removeprefix("http://").partition("/")[0]


def features(links: Iterable[tuple[str, str, str, str]]) -> Counter[str]:
    """Return what `la.Links(around=1000)` counts of links to a page."""
    found: Counter[str] = Counter()
    for source, anchor, before, after in links:
        found[f"url {source}"] += 1
        found.update(f"anchor {word}" for word in anchor.lower().split())
        found.update(f"around {word}" for word in f"{before} {after}".lower().split())
    return found
