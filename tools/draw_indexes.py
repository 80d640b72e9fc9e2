"""Draw how each index works: `python tools/draw_indexes.py` writes `docs/searching/*.svg`.

The bits in a drawing are real: tables are sorted, distances and equal blocks are computed. The
colors follow the reader's light or dark theme.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from textwrap import wrap

FOLDER = Path(__file__).parent.parent / "docs" / "searching"
WIDTH = 720
CELL, ROW = 13, 20
"""Width of a bit and height of a line."""
STYLE = """
  svg { color-scheme: light dark }
  .panel { fill: #ffffff; stroke: #c9d1d9 }
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .bit { font: 13px ui-monospace, monospace; text-anchor: middle }
  .small { font-size: 12px; fill: #57606a }
  .box { fill: none; stroke: #8c959f }
  .hit { fill: #ffd8a8; stroke: #d9730d }
  .near { fill: #d0ebff; stroke: #1c7ed6 }
  .query { fill: #d9730d } .dot { fill: #8c959f } .center { fill: #1c7ed6 }
  .line { stroke: #8c959f; fill: none } .link { stroke: #d9730d; fill: none; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    .panel { fill: #161b22; stroke: #30363d }
    text { fill: #e6edf3 } .small { fill: #9da7b3 }
    .hit { fill: #6b3d0c; stroke: #f0883e } .near { fill: #123a5c; stroke: #58a6ff }
    .query { fill: #f0883e } .center { fill: #58a6ff } .link { stroke: #f0883e }
  }
"""


class Drawing:
    """Shapes and texts of an SVG picture."""

    def __init__(self, title: str, height: int) -> None:
        self.title, self.height = title, height
        self.shapes: list[str] = []

    def text(self, x: float, y: float, text: str, kind: str = "") -> None:
        """Write a line of text."""
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        self.shapes.append(f'<text x="{x:g}" y="{y:g}" class="{kind}">{text}</text>')

    def caption(self, y: float, text: str) -> None:
        """Explain the picture below it."""
        for line, words in enumerate(wrap(text, 92)):
            self.text(20, y + 20 * line, words)

    def box(self, x: float, y: float, width: float, height: float, kind: str = "box") -> None:
        """Draw a rectangle."""
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" '
            f'class="{kind}"/>'
        )

    def dot(self, x: float, y: float, radius: float, kind: str) -> None:
        """Draw a circle."""
        self.shapes.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{kind}"/>')

    def line(self, *points: tuple[float, float], kind: str = "link") -> None:
        """Connect points."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.shapes.append(f'<polyline points="{path}" class="{kind}"/>')

    def bits(self, x: float, y: float, bits: str, marked: Sequence[int] = ()) -> None:
        """Write bits, the marked ones on a colored ground."""
        for place in marked:
            self.box(x + CELL * place, y - 14, CELL, 18, "hit")
        for place, bit in enumerate(bits):
            self.text(x + CELL * (place + 0.5), y, bit, "bit")

    def svg(self) -> str:
        """Return the picture."""
        lines = "\n".join(self.shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" '
            f'width="{WIDTH}" height="{self.height}" role="img">\n<title>{self.title}</title>\n'
            f"<style>{STYLE}</style>\n"
            f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{self.height - 1}" rx="6" '
            f'class="panel"/>\n{lines}\n</svg>\n'
        )


def distance(left: str, right: str) -> int:
    """Return the number of bits in which two texts of bits differ."""
    return sum(a != b for a, b in zip(left, right, strict=True))


def random_bits(random: Random, count: int) -> str:
    """Return random bits."""
    return "".join(random.choice("01") for _ in range(count))


def slices() -> Drawing:
    """SliceIndex: lists of the rows with each slice value, and scores."""
    picture = Drawing(
        "SliceIndex: the lists of the query's slice values, and of values near them", 262
    )
    query = "011010110001"
    rows = ["011010100001", "110010110101", "011111000010", "001010110001", "100101001110"]
    picture.text(20, 30, "query")
    picture.bits(80, 30, query)
    scores = [0] * len(rows)
    for number in range(3):
        part = query[4 * number : 4 * number + 4]
        x = 20 + 165 * number
        picture.line((80 + CELL * (4 * number + 2), 36), (x + 26, 66), kind="line")
        picture.text(x, 84, f"slice {number + 1}", "small")
        lists: dict[str, list[int]] = {}
        for row, bits in enumerate(rows):
            lists.setdefault(bits[4 * number : 4 * number + 4], []).append(row)
        for line, value in enumerate(sorted(lists, key=lambda value: distance(value, part))):
            far = distance(value, part)
            y = 108 + ROW * line
            if far <= 1:
                picture.box(x - 2, y - 15, 146, 19, "hit" if far == 0 else "near")
                for row in lists[value]:
                    scores[row] += 2 - far
            picture.bits(x, y, value)
            picture.text(x + 62, y, "row " + ", ".join(map(str, lists[value])))
    x = 530
    picture.text(x, 84, "score, then distance", "small")
    best = sorted(range(len(rows)), key=lambda row: (-scores[row], row))
    for line, row in enumerate(best):
        y = 108 + ROW * line
        found = f"row {row}: {scores[row]}"
        if line < 3:
            picture.box(x - 6, y - 15, 176, 19, "hit")
            found += f", distance {distance(rows[row], query)}"
        picture.text(x, y, found)
    picture.caption(
        226,
        "Equal values (orange) and values that differ in one bit (blue: expand=1) add to the "
        "score of their rows. The best rows by score get their true distance (rerank).",
    )
    return picture


def blocks() -> Drawing:
    """BlockIndex: with more blocks than the radius, one block is equal."""
    picture = Drawing("BlockIndex: one of four blocks is equal if at most three bits differ", 286)
    random = Random(4)
    query, match = "1011001011010110", "1001001011000100"
    rows = sorted([match, *(random_bits(random, 16) for _ in range(4))])
    differing = [place for place in range(16) if query[place] != match[place]]
    for number in range(4):
        x = 80 + 62 * number
        marked = [place - 4 * number for place in differing if place // 4 == number]
        picture.box(x - 3, 12, 4 * CELL + 6, 54, "box" if marked else "near")
        picture.bits(x, 32, query[4 * number : 4 * number + 4])
        picture.bits(x, 58, match[4 * number : 4 * number + 4], marked)
    picture.text(20, 32, "query")
    picture.text(20, 58, "match")
    picture.text(345, 45, f"{len(differing)} bits differ: one of the 4 blocks must be equal")
    for number in range(4):
        x = 20 + 175 * number
        part = slice(4 * number, 4 * number + 4)
        picture.text(x, 100, f"table {number + 1}, sorted by block {number + 1}", "small")
        for line, bits in enumerate(sorted(rows, key=lambda bits: (bits[part], bits))):
            y = 124 + ROW * line
            if bits[part] == query[part]:
                picture.box(x - 2, y - 15, 12 * CELL + 8, 19, "hit" if bits == match else "near")
            for block in range(4):
                shown = bits[4 * block : 4 * block + 4] if block == number else "····"
                picture.text(x + 39 * block, y, shown, "small" if block != number else "")
    picture.caption(
        250,
        "The query is looked up by one block in each table. Rows with an equal block "
        "(colored) are compared; orange is the match. Nothing within the radius can be "
        "missed.",
    )
    return picture


def flips() -> Drawing:
    """FlipIndex: one table, looked up by likely headers."""
    picture = Drawing(
        "FlipIndex: one sorted table, looked up by the headers that are most likely", 286
    )
    header, weights = "10110", [0.9, 0.15, 0.7, 0.25, 0.8]
    random = Random(9)
    picture.text(20, 30, "header bits and weights", "small")
    for place, weight in enumerate(weights):
        x = 30 + 30 * place
        weak = weight < 0.3
        picture.box(x, 100 - 60 * weight, 18, 60 * weight, "hit" if weak else "near")
        picture.text(x + 9, 118, header[place], "bit")
    tried: list[tuple[int, ...]] = [(), (1,), (3,), (1, 3)]
    tried.sort(key=lambda places: sum(weights[place] for place in places))
    headers = [
        "".join(str(1 - int(bit)) if place in places else bit for place, bit in enumerate(header))
        for places in tried
    ]
    picture.text(245, 30, "lookups, likely ones first", "small")
    table = sorted({*headers, "00101", "01110", "11001"})
    picture.text(470, 30, "one table, sorted by header", "small")
    for line, value in enumerate(table):
        y = 56 + 24 * line
        if value in headers:
            picture.box(466, y - 15, 230, 20, "hit" if value == headers[2] else "near")
        picture.bits(470, y, value)
        picture.text(545, y, random_bits(random, 11) + "…", "small")
    for line, (places, value) in enumerate(zip(tried, headers, strict=True)):
        y = 56 + 36 * line
        picture.bits(250, y, value, places)
        picture.line((325, y - 4), (460, 52 + 24 * table.index(value)))
    picture.caption(
        250,
        "A bit with a small weight (orange) flips easily when a document is edited. The query "
        "is looked up as it is, then with the cheapest sets of flipped bits.",
    )
    return picture


def prefixes() -> Drawing:
    """PrefixIndex: sorted orders under permutations, and rows around the query."""
    picture = Drawing("PrefixIndex: rows with a long common prefix, in several sorted orders", 264)
    random = Random(3)
    query = random_bits(random, 10)
    near = "".join(
        bit if place not in (2, 7) else str(1 - int(bit)) for place, bit in enumerate(query)
    )
    rows = [near, *(random_bits(random, 10) for _ in range(5))]
    for number in range(3):
        order = list(range(10))
        if number:
            random.shuffle(order)
        x = 20 + 235 * number
        picture.text(x, 30, f"order {number + 1}: permuted bits, sorted", "small")
        permuted = {row: "".join(bits[place] for place in order) for row, bits in enumerate(rows)}
        permuted[-1] = "".join(query[place] for place in order)
        lines = sorted(permuted, key=lambda row: (permuted[row], row))
        place = lines.index(-1)
        for line, row in enumerate(lines):
            y = 54 + 22 * line
            bits = permuted[row]
            common = next((i for i in range(10) if bits[i] != permuted[-1][i]), 10)
            if row == -1:
                picture.box(x - 2, y - 15, 10 * CELL + 66, 19, "hit")
            elif common and abs(line - place) <= 1:
                picture.box(x - 2, y - 15, CELL * common + 4, 19, "near")
            picture.bits(x, y, bits)
            picture.text(x + 10 * CELL + 8, y, "query" if row == -1 else f"row {row}", "small")
    picture.caption(
        228,
        "Blue marks the common prefix of the rows next to the query. Over all orders, the row "
        "with the longest prefix is examined next. A near row (row 0) is close to the query "
        "in some order.",
    )
    return picture


def clusters() -> Drawing:
    """ClusterIndex: groups around centers, the nearest are read."""
    picture = Drawing("ClusterIndex: the groups around the nearest centers are read", 292)
    random = Random(5)
    centers = [(90, 80), (250, 60), (395, 120), (120, 190), (280, 185), (430, 215)]
    query = (228, 118)
    ranked = sorted(centers, key=lambda at: (at[0] - query[0]) ** 2 + (at[1] - query[1]) ** 2)
    for number, (x, y) in enumerate(ranked):
        picture.dot(x, y, 44, "near" if number < 2 else "box")
        for _ in range(12):
            picture.dot(x + random.uniform(-28, 28), y + random.uniform(-28, 28), 2.5, "dot")
        picture.dot(x, y, 5, "center")
    for center in ranked[:2]:
        picture.line(query, center)
    picture.dot(*query, 6, "query")
    for line, text in enumerate(
        [
            "1. Compare the query (orange)",
            "with all centers.",
            "2. Read the nearest groups:",
            "probe=2 reads two.",
            "3. Skip groups that cannot",
            "contain a nearer signature, by",
            "the triangle inequality. If that",
            "skips all others, the answer",
            "is exact.",
        ]
    ):
        picture.text(495 if text[1] == "." else 510, 44 + 24 * line, text)
    picture.caption(
        276,
        "Each bit of a center is the majority of the bits of its group.",
    )
    return picture


def bands() -> Drawing:
    """BandIndex: MinHash values in bands; a shared band makes a candidate."""
    picture = Drawing(
        "BandIndex: documents that share one band of MinHash values are compared", 244
    )
    documents = {
        "stored a": [17, 4, 52, 8, 31, 90, 6, 22],
        "stored b": [11, 4, 73, 5, 40, 90, 2, 19],
        "query": [17, 9, 52, 8, 31, 88, 6, 22],
    }
    for band in range(4):
        picture.text(120 + 150 * band, 30, f"band {band + 1}", "small")
    for line, (name, values) in enumerate(documents.items()):
        y = 58 + 44 * line
        picture.text(20, y, name)
        for band, (left, right) in enumerate(list(pairwise(values))[::2]):
            x = 120 + 150 * band
            same = [
                other
                for other, known in documents.items()
                if other != name and list(pairwise(known))[::2][band] == (left, right)
            ]
            picture.box(x - 6, y - 19, 110, 28, "hit" if same else "box")
            picture.text(x + 12, y, str(left))
            picture.text(x + 62, y, str(right))
    picture.caption(
        188,
        "Each band is a key of a hash table. The query shares the bands 2 and 4 with a, so a "
        "is a candidate; it shares none with b. The similarity of a candidate is estimated "
        "from all values: 6 of 8 are equal. More bands find more pairs, longer bands propose "
        "fewer.",
    )
    return picture


DRAWINGS: dict[str, Callable[[], Drawing]] = {
    one.__name__: one for one in (slices, blocks, flips, prefixes, clusters, bands)
}


def main() -> None:
    """Write all drawings."""
    for name, draw in DRAWINGS.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg())


if __name__ == "__main__":
    main()
