"""Probabilistic near-duplicate detection using simhash (Sood and Loguinov, 2011): Figure 1.

The paper's weights have a distribution like Laplace's, ours one like the normal distribution with
a little less at its ends. What decides is what "normalized" means. A document's weight behind a bit
is a sum of its features' weights with random signs: its variance is s², the sum of their squares,
and its fourth moment 3 s⁴ less twice the sum of their fourth powers. Over all documents that makes
an excess kurtosis of

    3 Var(s²) / E(s²)²  -  2 E(Σ w⁴) / E(s²)²

the first from documents that differ in s, the second from words that outweigh the others. Divided
by their Euclidean length all documents have s = 1, and nothing is left that could be above 0,
whatever the features and the corpus. Divided by their sum or by the number of words, long documents
have a small s and short ones a large one: where s² has an exponential distribution, the weights
have exactly Laplace's.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike.advice.plots import GRAY, line_style, new_figure, save_figure
from lookalike.checks import optional_module
from lookalike.features import Features
from lookalike.features.stop_words import ENGLISH
from lookalike.signatures import SimHash
from papers.page import Section, Verdict
from papers.shared import World

__all__ = ["Weighed", "as_pages", "kurtosis", "kurtosis_parts", "run", "weigh"]

BITS = 64
EUCLID, SUM, LENGTH = "by Euclidean length", "by sum", "by number of words"
PAGE_WORDS = 270
"""Words of a page on average, which gives some 110 features; the paper's pages have 141."""
PAGE_LEAST = 20
"""Words of the shortest: the paper leaves out pages of less than 5 KB, markup included."""
PAGE_SPREADS = (0.5, 0.8, 1.1)
"""How much lengths differ: the standard deviation of their logarithm."""
_SEED = 26
_WORD = re.compile(r"[^\W_]+")

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weighed:
    """Documents: what is behind their bits, and how large their features' weights are."""

    counters: Floats
    """float64[n, bits]: over the Euclidean length of the document's weights."""
    length: Floats
    """That length: the root of the sum of squares."""
    total: Floats
    fourth: Floats
    """Sums of weights, and of their fourth powers."""
    words: Floats
    features: Floats

    def scales(self) -> dict[str, Floats]:
        """Return by what `counters` is multiplied for each way to normalize."""
        return {
            EUCLID: np.ones(len(self.length)),
            SUM: self.length / self.total,
            LENGTH: self.length / self.words,
        }


def weigh(texts: Sequence[str]) -> Weighed:
    """Give the stemmed words of each text their TF-IDF weight, and add them up as SimHash does."""
    stem = optional_module("Stemmer", "Stemming words", extra="stem").Stemmer("english")
    counts = [
        Counter(stem.stemWords([word for word in _WORD.findall(text) if word not in ENGLISH]))
        for text in map(str.lower, texts)
    ]
    counts = [count for count in counts if count]
    known = Counter(word for count in counts for word in count)
    rarity = {word: 1 + math.log((1 + len(counts)) / (1 + n)) for word, n in known.items()}
    weights = [{word: c * rarity[word] for word, c in count.items()} for count in counts]
    signer = SimHash(BITS, features=Features(), weights="count")
    counters = signer.sign_with_weights([list(one.items()) for one in weights])[1]

    def powers(power: int) -> Floats:
        return np.array([sum(w**power for w in one.values()) for one in weights])

    return Weighed(
        counters.astype(np.float64),
        np.sqrt(powers(2)),
        powers(1),
        powers(4),
        np.array([count.total() for count in counts], float),
        np.array([len(count) for count in counts], float),
    )


def as_pages(texts: Sequence[str], spread: float) -> list[str]:
    """Cut texts, one behind the other, to pages whose lengths are log-normal with that spread."""
    generator = np.random.default_rng(_SEED)
    words = [word for text in texts for word in text.split()]
    median = math.log(PAGE_WORDS) - spread**2 / 2
    pages, at = [], 0
    while at < len(words):
        size = max(PAGE_LEAST, round(generator.lognormal(median, spread)))
        pages.append(" ".join(words[at : at + size]))
        at += size
    return pages


def kurtosis(values: Floats) -> float:
    """Return the excess kurtosis: 0 for a normal distribution, 3 for Laplace's."""
    centered = values - values.mean()
    return float((centered**4).mean() / (centered**2).mean() ** 2 - 3)


def kurtosis_parts(weighed: Weighed, scale: Floats) -> tuple[float, float]:
    """Return what the excess kurtosis consists of: from unlike documents, and from few words."""
    square = scale**2
    mean = square.mean() ** 2
    fourth = weighed.fourth * (scale / weighed.length) ** 4
    return float(3 * square.var() / mean), float(-2 * fourth.mean() / mean)


def run(world: World) -> Iterator[Section]:
    """Normalize in three ways, on texts as they are and on pages of more and less of them."""
    count = world.scale.weighed_texts
    some, stream = world.distinct.first(count), world.abstracts.first(count).texts
    sources = {"texts": weigh(some.texts)}
    for spread in PAGE_SPREADS:
        sources[_pages(spread)] = weigh(as_pages(stream, spread))
    lines, drawn, found = [], {}, {}
    generator = np.random.default_rng(_SEED)
    for source, weighed in sources.items():
        others = generator.permutation(len(weighed.length))
        for way, scale in weighed.scales().items():
            weights = weighed.counters * scale[:, None]
            differences = weights - weights[others]
            spread, few = kurtosis_parts(weighed, scale)
            found[source, way] = kurtosis(weights), kurtosis(differences)
            drawn[source, way] = weights / weights.std()
            lines.append(
                (
                    f"{source}, {way}",
                    f"{weighed.features.mean():.0f}",
                    f"{spread:.2f}",
                    f"{few:.2f}",
                    f"{found[source, way][0]:.2f}",
                    f"{found[source, way][1]:.2f}",
                    f"{differences.var() / weights.var():.2f}",
                )
            )
    lines.append(("paper", "141", "", "", "Laplace-like (3)", "a little less", "2"))
    usual, by_sum = found["texts", EUCLID], found["texts", SUM]
    page = found[_pages(PAGE_SPREADS[-1]), LENGTH]
    yield Section(
        "Figure 1: weights, and their differences",
        "TF-IDF weights of the words of a text, added up as SimHash does, for "
        f"{len(some.texts):,} texts ({some.origin}). Pages are cut from consecutive abstracts. "
        f"Their lengths are log-normal, {PAGE_WORDS} words on average; the table has the standard "
        "deviation of the logarithm. The paper finds that weights have a shape like Laplace's. "
        "Differences of two documents have twice the variance and a slightly more normal shape, "
        "with exponential tails. It says that weights are normalized, but not how. Excess "
        "kurtosis is 0 for a normal distribution and 3 for Laplace's, and it has two parts. "
        "Documents with weights of different size make it larger: 3 Var(s²) / E(s²)², where s² "
        "is the sum of the squares of a document's weights. A few words that outweigh the others "
        "make it smaller: −2 E(Σw⁴) / E(s²)². Divided by the Euclidean length, as "
        "`sign_with_weights` does, s is always 1, the first part is 0, and the kurtosis cannot "
        "be above 0. Divided by the sum or by the number of words, short documents have large "
        "weights and long ones small weights. The more lengths differ, the closer the shape is "
        "to Laplace's. (Texts of one word have a weight of ±1 by sum: the peak at the end of "
        "that curve.) Signatures do not depend on this, because only signs count. Nor does the "
        "order in which single bits flip, because all weights of a document are divided by the "
        "same number.",
        (
            "normalized",
            "features a text",
            "kurtosis from unlike documents",
            "from few words",
            "excess kurtosis, measured",
            "of differences",
            "variance of these",
        ),
        lines,
        [_draw(world, drawn)],
        Verdict.of(
            [usual[0] > 1],
            "Weights divided by Euclidean length, as ours, cannot be Laplace-like: all documents "
            f"then have equal variance, and the excess kurtosis is below 0 ({usual[0]:+.2f}). By "
            f"sum it is {by_sum[0]:+.2f}, by number of words {page[0]:+.1f} on documents of very "
            "different lengths (Laplace: 3).",
        ),
    )


def _pages(spread: float) -> str:
    return f"pages ({spread})"


def _draw(world: World, drawn: dict[tuple[str, str], Floats]) -> str:
    name = "psm_figure_1.png"
    figure, axes = new_figure(
        "Weights behind the bits, by what they are divided by",
        "in units of their standard deviation; pages: cut from abstracts, lengths log-normal",
    )
    edges = np.linspace(-6, 6, 121)
    centers = (edges[1:] + edges[:-1]) / 2
    shown = (("texts", EUCLID), ("texts", SUM), (_pages(PAGE_SPREADS[-1]), LENGTH))
    for number, (source, way) in enumerate(shown):
        density, _ = np.histogram(drawn[source, way], edges, density=True)
        style = {**line_style(number), "marker": ""}
        density[density == 0] = np.nan
        axes.plot(centers, density, label=f"{source}, {way}", **style)
    normal = np.exp(-(centers**2) / 2) / math.sqrt(2 * math.pi)
    laplace = np.exp(-math.sqrt(2) * np.abs(centers)) / math.sqrt(2)
    for values, label, dash in ((normal, "normal", ":"), (laplace, "Laplace", "--")):
        axes.plot(centers, values, label=label, color=GRAY, linestyle=dash, linewidth=1.2)
    axes.set_yscale("log")
    axes.set_ylim(1e-5, 2)
    axes.set_xlabel("weight of a bit, in standard deviations")
    axes.set_ylabel("density")
    save_figure(figure, axes, world.pictures / name)
    return name
