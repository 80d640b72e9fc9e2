"""Options for corpora of web pages, and for which documents of a corpus are wanted."""

from __future__ import annotations

import argparse

from lookalike.cli.command import Group, add_number, add_switch
from lookalike.corpora.filters import Filters
from lookalike.pages.limits import PageLimits

_LIMITS = {"page_depth": "depth", "page_tags": "tags", "page_seconds": "seconds"}
_FILTERS = ("min_words", "language", "min_links", "strip_urls")


def add_page_options(group: Group) -> None:
    """Declare how pages are read."""
    known = PageLimits()
    group.add_argument(
        "--html", metavar="COLUMN", help="column with web pages, whose main text is compared"
    )
    add_number(group, "--page-depth", f"elements of a page in each other (default {known.depth:,})")
    add_number(group, "--page-tags", f"tags that a page may have (default {known.tags:,})")
    add_number(group, "--page-seconds", f"that reading a page may take (default {known.seconds})")


def add_filters(group: Group) -> None:
    """Declare which documents are wanted."""
    add_number(group, "--min-words", "leave out documents of fewer words")
    group.add_argument(
        "--language",
        metavar="CODES",
        help="leave out documents in other languages than these, such as en or en,de",
    )
    add_number(group, "--min-links", "leave out pages with fewer links, texts with fewer URLs")
    add_strip_urls(group)


def add_strip_urls(group: Group) -> None:
    """Declare that URLs are no words."""
    add_switch(group, "--strip-urls", "let URLs in texts not count")


def page_limits_of(options: argparse.Namespace) -> PageLimits | None:
    """Return what was said of pages; None if nothing was."""
    given = {
        limit: value
        for option, limit in _LIMITS.items()
        if (value := getattr(options, option, None)) is not None
    }
    return PageLimits(**given) if given else None


def filters_of(options: argparse.Namespace) -> Filters:
    """Return which documents are wanted."""
    given = {name: getattr(options, name, None) for name in _FILTERS}
    return Filters(**{name: value for name, value in given.items() if value is not None})
