"""Articles as web pages: the same article in several layouts, among all that surrounds one."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

__all__ = ["LAYOUTS", "Article", "make_article", "make_page"]

_COMMON = (
    "the of and to in a is that it was for on are as with they be at one have this from by hot but "
    "some what there we can out other were all your when up use word how said an each she which do "
    "their time if will way about many then them would write like so these her long make thing see "
    "him two has look more day could go come did my sound no most number who over know water than "
    "call first people may down side been now find head stand own page should country found answer "
    "school grow study still learn plant cover food sun four thought let keep eye never last door "
    "between city tree cross since hard start might story saw far sea draw left late run while "
    "press close night real life few stop"
).split()
_SYLLABLES = "ba co du fe gi ho ja ku le mi no pu ra se ti vo wa ze lan mer ton vid ster".split()


@dataclass(frozen=True)
class Article:
    """What a page is about."""

    title: str
    paragraphs: tuple[str, ...]

    @property
    def text(self) -> str:
        """The article without its title."""
        return "\n\n".join(self.paragraphs)


def make_article(seed: int, paragraphs: int = 24) -> Article:
    """Return an article of some 1,500 words, common ones and names."""
    draw = random.Random(seed)
    return Article(
        _sentence(draw, 6).rstrip("."),
        tuple(
            " ".join(_sentence(draw, draw.randint(8, 20)) for _ in range(draw.randint(3, 6)))
            for _ in range(paragraphs)
        ),
    )


def make_page(article: Article, layout: str, seed: int = 0) -> str:
    """Return a page of about 50 KB with the article in it."""
    draw = random.Random(f"{layout} {seed}")
    body = LAYOUTS[layout](article, draw)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{article.title} | The {_name(draw).title()} Times</title>"
        f"{_noise(draw)}</head><body>{body}{_scripts(draw)}</body></html>"
    )


@cache
def _names() -> list[str]:
    draw = random.Random(1)
    return [
        "".join(draw.choice(_SYLLABLES) for _ in range(draw.randint(2, 4))) for _ in range(4000)
    ]


def _name(draw: random.Random) -> str:
    return draw.choice(_names())


def _sentence(draw: random.Random, words: int) -> str:
    some = [draw.choice(_COMMON) if draw.random() < 0.7 else _name(draw) for _ in range(words)]
    return " ".join(some).capitalize() + "."


def _paragraphs(article: Article, draw: random.Random, tag: str = "p") -> str:
    """Return the paragraphs, some with a link or an emphasis in them."""
    made = []
    for paragraph in article.paragraphs:
        words = paragraph.split(" ")
        at = draw.randrange(len(words) - 3)
        words[at] = f'<a href="https://{_name(draw)}.example/{_name(draw)}">{words[at]}'
        words[at + 2] += "</a>"
        made.append(f"<{tag}>{' '.join(words)}</{tag}>")
    return "\n".join(made)


def _menu(draw: random.Random, count: int, name: str) -> str:
    items = "".join(
        f'<li class="{name}-item item-{at}"><a href="/{_name(draw)}/{at}" data-track="{name}">'
        f"{_name(draw).title()} {_name(draw)}</a></li>\n"
        for at in range(count)
    )
    return f'<ul class="{name}">{items}</ul>'


def _teasers(draw: random.Random, count: int) -> str:
    return "".join(
        f'<div class="teaser"><a href="/story/{_name(draw)}"><img src="/img/{at}.jpg" alt="">'
        f"<span>{_sentence(draw, 7)}</span></a></div>\n"
        for at in range(count)
    )


def _noise(draw: random.Random) -> str:
    rules = "".join(f".{_name(draw)}{{margin:{at}px;color:#{at:06x}}}\n" for at in range(330))
    return f'<style>{rules}</style><script>var config={{"id":"{_name(draw)}"}};</script>'


def _scripts(draw: random.Random) -> str:
    lines = "".join(
        f'track("{_name(draw)}",{at},function(x){{return x+1}});\n' for at in range(200)
    )
    return f"<script>{lines}</script><noscript>Please enable JavaScript.</noscript>"


def _semantic(article: Article, draw: random.Random) -> str:
    return (
        f"<header><nav>{_menu(draw, 60, 'menu')}</nav></header><main><article>"
        f"<h1>{article.title}</h1>{_paragraphs(article, draw)}</article></main>"
        f"<aside>{_teasers(draw, 40)}</aside><footer>{_menu(draw, 60, 'footer')}</footer>"
    )


def _divisions(article: Article, draw: random.Random) -> str:
    return (
        f'<div id="top-nav" class="navigation">{_menu(draw, 50, "nav")}</div>'
        f'<div id="wrapper"><div class="sidebar">{_teasers(draw, 40)}</div>'
        f'<div id="content" class="content"><h1 class="headline">{article.title}</h1>'
        f'<div class="article-body">{_paragraphs(article, draw)}</div></div></div>'
        f'<div class="footer">{_menu(draw, 60, "links")}<p>All rights reserved.</p></div>'
    )


def _blog(article: Article, draw: random.Random) -> str:
    comments = "".join(
        f'<div class="comment"><p>{_sentence(draw, 12)}</p></div>' for _ in range(20)
    )
    return (
        f'<header class="site-header"><h2>My blog</h2>{_menu(draw, 40, "menu")}</header>'
        f'<div class="post"><h2 class="entry-title">{article.title}</h2>'
        f'<div class="entry-content">{_paragraphs(article, draw)}</div></div>'
        f'<section id="comments" class="comments">{comments}</section>'
        f'<aside class="widget-area">{_menu(draw, 70, "archive")}{_teasers(draw, 20)}</aside>'
        f'<footer class="site-footer">{_menu(draw, 40, "footer")}</footer>'
    )


def _table(article: Article, draw: random.Random) -> str:
    return (
        f'<table width="100%"><tr><td class="menu" valign="top">{_menu(draw, 70, "nav")}</td>'
        f'<td class="main"><h1>{article.title}</h1>{_paragraphs(article, draw)}</td>'
        f'<td class="sidebar">{_teasers(draw, 40)}</td></tr></table>'
        f'<div id="footer">{_menu(draw, 50, "footer")}</div>'
    )


LAYOUTS: dict[str, Callable[[Article, random.Random], str]] = {
    "semantic": _semantic,
    "divisions": _divisions,
    "blog": _blog,
    "table": _table,
}
"""How pages are made: with elements that say what they are, with classes that do, as a blog with
comments, and as a table, as long ago.
"""
