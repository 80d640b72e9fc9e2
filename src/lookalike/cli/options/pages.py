"""Options for corpora of web pages, and for which documents of a corpus are wanted."""

from __future__ import annotations

import argparse

from lookalike.cli.command import Group, add_number, add_switch
from lookalike.corpora.filters import Filters
from lookalike.errors import ArgumentError
from lookalike.pages.limits import PageLimits

PAGE_OPTIONS = ("html", "page_limits")
_FILTERS = ("min_words", "language", "min_links", "strip_urls")


def add_page_options(group: Group) -> None:
    """Declare how pages are read."""
    known = ",".join(f"{name}={value}" for name, value in vars(PageLimits()).items())
    group.add_argument(
        "--html", metavar="COLUMN", help="column with web pages, whose main text is compared"
    )
    group.add_argument(
        "--page-limits",
        type=page_limits,
        metavar="LIST",
        help=f"what a web page may have and cost (default {known})",
    )


def page_limits(text: str) -> PageLimits:
    """Return limits as they are typed, such as depth=2000,seconds=30."""
    given: dict[str, int] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in vars(PageLimits()) or not value.isdecimal():
            raise argparse.ArgumentTypeError(
                f"{part!r} is no limit of pages; expected {', '.join(vars(PageLimits()))}, each "
                "with = and a whole number, and commas between them"
            )
        given[name] = int(value)
    try:
        return PageLimits(**given)
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


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


def filters_of(options: argparse.Namespace) -> Filters:
    """Return which documents are wanted."""
    given = {name: getattr(options, name, None) for name in _FILTERS}
    return Filters(**{name: value for name, value in given.items() if value is not None})
