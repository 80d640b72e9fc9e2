"""Reads a page strictly: every element is closed, in order, and nothing is smuggled in."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    children: list[Element | str] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return (self.attributes.get("class") or "").split()

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.children)

    def all(self, tag: str | None = None, kind: str | None = None) -> list[Element]:
        """Return the elements inside with this tag and this class, in order."""
        found = []
        for part in self.children:
            if isinstance(part, Element):
                if tag in (None, part.tag) and (kind is None or kind in part.classes):
                    found.append(part)
                found += part.all(tag, kind)
        return found

    def part(self, name: str) -> Element:
        """Return the element with this id, which is there."""
        found = self.by_id(name)
        assert found is not None, name
        return found

    def by_id(self, name: str) -> Element | None:
        return next((e for e in self.all() if e.attributes.get("id") == name), None)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"{tag} has an attribute twice"
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert tag not in VOID
        last = self.open.pop()
        assert last.tag == tag, f"</{tag}> where </{last.tag}> was expected"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


TAGS = set(
    "html head meta title style body header footer main nav section a h1 h2 h3 p div span i b em "
    "strong bdi dl dt dd ul ol li article figure figcaption table thead tbody tr th td del ins svg "
    "rect line text circle polygon polyline script input button img details summary".split()
)
ATTRIBUTES = set(
    "lang charset http-equiv content name id class dir style title role aria-label href viewbox x "
    "y x1 x2 y1 y2 cx cy r width height points hidden type placeholder alt src".split()
)


def read_page(text: str) -> Element:
    """Return the page as a tree; it must be well-formed and made of known parts alone."""
    assert text.startswith("<!DOCTYPE html>\n")
    reader = _Reader()
    reader.feed(text)
    reader.close()
    (root,) = reader.open
    ids = [element.attributes["id"] for element in root.all() if "id" in element.attributes]
    assert len(set(ids)) == len(ids)
    for element in root.all():
        assert element.tag in TAGS, element
        assert set(element.attributes) <= ATTRIBUTES, element
        link = element.attributes.get("href")
        assert link is None or (link[0] == "#" and link[1:] in ids)
        source = element.attributes.get("src")
        assert source is None or source.startswith("data:image/jpeg;base64,"), element.tag
        style = element.attributes.get("style")
        assert style is None or (style.startswith("width:") and style.endswith("%")), element
    (policy,) = (one for one in root.all("meta") if one.attributes.get("http-equiv"))
    allowed = policy.attributes["content"] or ""
    for script in root.all("script"):  # the browser runs it only if this is what it finds, too
        digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
        assert not script.attributes and f"script-src 'sha256-{digest}'" in allowed
    assert allowed.startswith("default-src 'none'; ") and "unsafe-inline' '" not in allowed
    (style_sheet,) = root.all("style")
    assert "url(" not in style_sheet.text and "@import" not in style_sheet.text
    return root
