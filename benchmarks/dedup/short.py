"""Short texts: names, addresses, product lines, titles and synopses, each with an edited copy.

A copy has a typo, two words swapped, another case or other punctuation. Among the originals are
different items that look alike: other house numbers, sizes, versions and parts. So both are judged:
how many copies are found, and how many of the pairs that are found are of one item.

Titles are those of `arxiv_abstracts_120k.jsonl.gz` in the folder of --data, or made up. Synopses
are the first lines of `debian_descriptions.jsonl.gz` and need it. The others are always made up.
"""

from __future__ import annotations

import gzip
import json
import random
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.harness import Effort, Verdict
from benchmarks.quality import Entry, QualityResult, at_least, ratio_verdict, run_entries

__all__ = ["NAMES", "NEEDS_DATA", "edited_copy", "short", "short_texts"]

COUNT = 2_000
SEED = 39
PERMUTATIONS = 128
OURS = "lookalike dedup"
WORDS = "lookalike dedup --features words"
NEEDS_DATA = "dedup-short-synopses"
NAMES = (
    *("dedup-short-names", "dedup-short-addresses", "dedup-short-products", "dedup-short-titles"),
    NEEDS_DATA,
)
PRECISION = 0.95
RECALL = {
    "dedup-short-addresses": 0.95,
    "dedup-short-products": 0.95,
    "dedup-short-titles": 0.98,
    "dedup-short-synopses": 0.95,
}
"""Of all copies. Names have no gate: a typo changes a quarter of their characters."""
FASTER = 5.0

FIRST = (
    "James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara "
    "Carlos Maria Ahmed Fatima Wei Yuki Olga Ivan Hans Greta Pierre Claire"
).split()
LAST = (
    "Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez "
    "Wilson Anderson Taylor Moore Jackson Thompson White Kowalski Schneider Fischer Dubois Nakamura"
).split()
STREETS = (
    "Main Oak Maple Cedar Pine Washington Lake Hill Walnut Spring Ridge Church Willow Meadow"
).split()
ROADS = "Street Avenue Road Lane Drive Court Boulevard".split()
TOWNS = (
    "Springfield Franklin Clinton Greenville Bristol Fairview Salem Madison Georgetown Arlington"
).split()
BRANDS = "Acme Globex Initech Umbra Vertex Nordik Solara Quanta Zenith Polar Kestrel Lumen".split()
PRODUCTS = (
    "USB cable,HDMI cable,LED bulb,wood screw,hex bolt,copper pipe,paint brush,garden hose,"
    "extension cord,air filter,olive oil,basmati rice,ink cartridge,phone case,desk lamp"
).split(",")
KINDS = "black,white,red,blue,stainless,flexible,heavy duty,premium,organic,compact".split(",")
UNITS = "m mm cm W kg g ml pack".split()
SUBJECTS = (
    "sparse graphs,neutron stars,protein folding,random walks,galaxy clusters,neural networks,"
    "quantum channels,lattice gauge theory,gene expression,turbulent flows,prime gaps,dark matter"
).split(",")
ASPECTS = (
    "On the stability of,A survey of,Bounds for,Numerical simulation of,The evolution of,Notes on,"
    "Spectral properties of,A new approach to,Observations of,Phase transitions in"
).split(",")
SETTINGS = (
    "with bounded degree,in two dimensions,at low temperature,under weak assumptions,from "
    "incomplete data,in the presence of noise,near the critical point,with many parameters"
).split(",")


def short_texts(name: str, folder: Path | None, count: int) -> list[str]:
    """Return different texts of a case, the same every time."""
    rng = random.Random(f"{SEED} {name}")
    kind = name.rpartition("-")[2]
    if folder is not None and kind in _REAL:
        drawn = _REAL[kind](folder)
    else:
        drawn = iter(partial(_MADE_UP[kind], rng), None)
    found: dict[str, None] = {}
    for several in drawn:
        found.update(dict.fromkeys(several))
        if len(found) >= count:
            break
    return list(found)[:count]


def _names(rng: random.Random) -> list[str]:
    return [f"{rng.choice(FIRST)} {rng.choice(string.ascii_uppercase)}. {rng.choice(LAST)}"]


def _addresses(rng: random.Random) -> list[str]:
    road = f"{rng.choice(STREETS)} {rng.choice(ROADS)}, {rng.choice(TOWNS)} {rng.randrange(10**5)}"
    house = rng.randrange(1, 400)
    return [f"{house + 2 * more} {road}" for more in range(rng.choice([1, 1, 2, 3]))]


def _products(rng: random.Random) -> list[str]:
    item = f"{rng.choice(BRANDS)} {rng.choice(PRODUCTS)} {rng.choice(KINDS)}"
    unit, sizes = rng.choice(UNITS), rng.sample([1, 2, 3, 5, 10, 25, 50, 100], rng.choice([1, 2]))
    return [f"{item} {size} {unit}" for size in sizes]


def _titles(rng: random.Random) -> list[str]:
    title = f"{rng.choice(ASPECTS)} {rng.choice(SUBJECTS)} {rng.choice(SETTINGS)}"
    parts = rng.choice([[""], [""], [": Part I", ": Part II"], [" (version 1)", " (version 2)"]])
    return [f"{title}{part}" for part in parts]


def _arxiv_titles(folder: Path) -> Iterator[list[str]]:
    with gzip.open(folder / "arxiv_abstracts_120k.jsonl.gz", "rt") as lines:
        for line in lines:
            yield [" ".join(json.loads(line)["title"].split())]


def _synopses(folder: Path) -> Iterator[list[str]]:
    """Yield every 17th one: neighbors in the file are often of one source."""
    with gzip.open(folder / "debian_descriptions.jsonl.gz", "rt") as lines:
        for at, line in enumerate(lines):
            synopsis = json.loads(line)["text"].partition("\n")[0].strip()
            if at % 17 == 0 and " " in synopsis:
                yield [synopsis]


_MADE_UP = {"names": _names, "addresses": _addresses, "products": _products, "titles": _titles}
_REAL = {"titles": _arxiv_titles, "synopses": _synopses}


def _typo(text: str, rng: random.Random) -> str:
    """Return a text with one letter less, more, or another one, or two of them swapped."""
    at = rng.choice([at for at, letter in enumerate(text) if letter.isalpha()])
    before, letter, after = text[:at], text[at], text[at + 1 :]
    other = rng.choice([one for one in string.ascii_lowercase if one != letter.lower()])
    swapped = after[:1] + letter + after[1:] if after[:1] not in ("", letter) else other + after
    return before + rng.choice([after, other + letter + after, other + after, swapped])


def _swapped(text: str, rng: random.Random) -> str:
    words = text.split()
    at = rng.randrange(len(words) - 1)
    words[at], words[at + 1] = words[at + 1], words[at]
    return " ".join(words)


def _other_case(text: str, rng: random.Random) -> str:
    return rng.choice([text.upper(), text.lower(), text.title()])


def _other_punctuation(text: str, rng: random.Random) -> str:
    plain = text.replace(",", "").replace(".", "")
    return rng.choice([f"{text}{rng.choice('.!')}", text.replace(" ", " - ", 1), plain])


EDITS: dict[str, Callable[[str, random.Random], str]] = {
    "typo": _typo,
    "swap": _swapped,
    "case": _other_case,
    "punctuation": _other_punctuation,
}


def edited_copy(at: int, text: str, rng: random.Random) -> str:
    """Return a copy of the text at a position, which says what is edited."""
    return list(EDITS.values())[at % len(EDITS)](text, rng)


def short(name: str, *, folder: Path | None, part: int) -> QualityResult:
    """Compare pairs of the default with those of words, and of datasketch's character n-grams."""
    texts = short_texts(name, folder, COUNT // part)
    rng = random.Random(SEED)
    every = [*texts, *(edited_copy(at, text, rng) for at, text in enumerate(texts))]
    judge = partial(_judge, len(texts))
    entries = [
        Entry(OURS, partial(_ours, every), len(every), judge),
        Entry(WORDS, partial(_ours, every, features="words"), len(every), judge),
        *(
            Entry(
                f"datasketch, character {ngram}-grams at {threshold}",
                partial(_datasketch, every, ngram, threshold),
                len(every),
                judge,
            )
            for ngram, threshold in ((3, 0.75), (5, 0.65))
        ),
    ]
    average = sum(map(len, texts)) / len(texts)
    result = run_entries(
        name,
        f"{len(texts):,} different texts of {average:.0f} characters, and an edited copy of each",
        entries,
        len(every),
        Effort(rounds=7, seconds=5.0),
        unit="document",
    )
    return replace(result, verdicts=_verdicts(result))


def _judge(count: int, found: NDArray[np.int64]) -> dict[str, float]:
    """Return precision, recall of all copies, and recall by what was edited."""
    found = np.unique(np.sort(found, axis=1), axis=0)
    same = found[:, 1] - found[:, 0] == count
    copies = np.zeros(count, bool)
    copies[found[same, 0]] = True
    by_edit = {edit: float(copies[at :: len(EDITS)].mean()) for at, edit in enumerate(EDITS)}
    precision = float(same.mean()) if len(found) else 1.0
    return {"precision": precision, "recall": float(copies.mean()), **by_edit}


def _ours(texts: Sequence[str], **settings: Any) -> NDArray[np.int64]:
    pairs = la.dedup(list(texts), threads=2, **settings).pairs
    return np.stack([pairs.left, pairs.right], axis=1)


def _datasketch(texts: Sequence[str], ngram: int, threshold: float) -> NDArray[np.int64]:
    """Insert all, then query with all, as its documentation shows; exact Jaccard decides."""
    datasketch = import_module("datasketch")
    sets = [
        {text[at : at + ngram] for at in range(max(1, len(text) - ngram + 1))}
        for text in map(str.lower, texts)
    ]
    encoded = [[gram.encode() for gram in one] for one in sets]
    signatures = datasketch.MinHash.bulk(encoded, num_perm=PERMUTATIONS)
    index = datasketch.MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    for at, signature in enumerate(signatures):
        index.insert(at, signature)
    found = [
        (at, other)
        for at, signature in enumerate(signatures)
        for other in index.query(signature)
        if at < other and len(sets[at] & sets[other]) >= threshold * len(sets[at] | sets[other])
    ]
    return np.array(found, np.int64).reshape(-1, 2)


def _verdicts(result: QualityResult) -> list[Verdict]:
    name, ours = result.name, result.quality[OURS]
    letter = "abcde"[NAMES.index(name)]
    verdicts = []
    if name in RECALL:
        verdicts += [
            at_least(f"39{letter}. {name}: precision", ours["precision"], PRECISION, "", 4),
            at_least(f"40{letter}. {name}: recall", ours["recall"], RECALL[name], "", 4),
        ]
    rival = next(one for one in result.times() if one.startswith("datasketch"))
    title = f"41{letter}. {name}: {rival} / ours"
    return [*verdicts, ratio_verdict(title, result.times(), rival, OURS, FASTER)]
