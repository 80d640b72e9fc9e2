"""A page from its first line to its last: what may run in it, its sections, and pieces of them."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from lookalike._native import __version__
from lookalike.report.markup import clipped, shown
from lookalike.report.style import STYLE
from lookalike.storage import whole_file

__all__ = ["figure", "made_line", "page", "remade_card", "tile", "typed_command", "write_page"]

Section = tuple[str, str, str]
"""A name for links, a title, and ready HTML; left out where that is empty."""

_LONGEST = 4000


def page(
    title: str,
    brand: str,
    about: Sequence[str],
    sections: Sequence[Section],
    *,
    scripts: Sequence[str] = (),
    style: str = "",
    policy: str = "",
) -> str:
    """Return a page. All is ready HTML; `about` is what stands above the first section.

    Nothing is loaded, and nothing runs but these `scripts`, which are known by their hashes and
    have to stand in the sections as they are. `style` comes after that of all pages. `policy` is
    what else the Content-Security-Policy has to allow, such as "img-src data:".
    """
    hashes = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts)
    allowed = " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
    base = f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}"
    policy = f"{base}; {policy}" if policy else base
    kept = [section for section in sections if section[2]]
    links = "\n".join(f'<a href="#{key}">{name}</a>' for key, name, _ in kept)
    body = "\n".join(
        f'<section id="{key}">\n<h2>{name}</h2>\n{content}\n</section>'
        for key, name, content in kept
    )
    head = "\n".join(about)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{STYLE}{style}</style>
</head>
<body>
<header>
<p class="brand">{brand}</p>
{head}
<nav>
{links}
</nav>
</header>
<main>
{body}
</main>
<footer>This page needs nothing but itself.</footer>
</body>
</html>
"""


def write_page(text: str, path: Path) -> None:
    """Write a page; an interrupted run leaves what was there before."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def made_line(made: datetime) -> str:
    """Return the date and the version."""
    when = f"{made.day} {made:%B %Y, %H:%M} UTC"
    return f'<p class="soft">Made on {when} by lookalike {shown(__version__)}.</p>'


def typed_command(command: Sequence[str]) -> str:
    """Return a command as it is typed in a shell."""
    return shlex.join(command)


def remade_card(typed: str) -> str:
    """Return what to type for the same page."""
    return (
        '<div class="card"><h3>To make this page again</h3>\n'
        f'<p class="typed">{shown(clipped(typed, _LONGEST))}</p></div>'
    )


def tile(name: str, value: str, note: str, kind: str = "") -> str:
    """Return a figure with its name and a note, which is plain text."""
    key = f'<i class="of-{kind}"></i>' if kind else ""
    return (
        f'<div class="tile"><span class="name">{key}{name}</span><b>{value}</b>'
        f"<span>{shown(note)}</span></div>"
    )


def figure(title: str, content: str, caption: str) -> str:
    """Return a card with a picture."""
    return (
        f'<figure class="card"><h3>{title}</h3>\n{content}\n'
        f"<figcaption>{caption}</figcaption></figure>"
    )
