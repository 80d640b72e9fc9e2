"""Nobody goes but a near-duplicate of one that stays, and no near-duplicates stay.

Everything that can come between is drawn at once: chains, hubs, templates, parts of documents,
copies, equal signatures, large groups, old documents with texts and without, rules, methods,
measures.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.dedup import decide, propose
from lookalike.dedup.result import TextResult
from lookalike.dedup.settings import DedupSettings
from support.oracles import dedup as dedup_oracle

CASES = int(os.environ.get("LOOKALIKE_CASES", "40"))


def whim(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A choice of the caller's that no rule would make; of equal rows the first."""
    return min(rows, key=lambda row: (crc32(row["text"].encode()) % 7, row["score"] or 0))


RULES = ["first", "last", "longest", "shortest", "max:score", "min:score", "none", whim]
ROUNDING = 1e-12


def chain(rng: random.Random, links: int) -> list[str]:
    """Each differs from the one before by a word; the ends have nothing in common."""
    words = [f"c{rng.randrange(10**6)}" for _ in range(14)]
    found = []
    for link in range(links):
        found.append(" ".join(words))
        words[link % len(words)] = f"d{rng.randrange(10**6)}"
    return found


def hub(rng: random.Random, spokes: int) -> list[str]:
    """One in the middle, at some place; the others resemble it, and not each other."""
    words = [f"h{rng.randrange(10**6)}" for _ in range(24)]
    found = []
    for _ in range(spokes):
        spoke = words.copy()
        for place in rng.sample(range(len(words)), rng.choice([1, 2, 3])):
            spoke[place] = f"s{rng.randrange(10**6)}"
        found.append(" ".join(spoke))
    found.insert(rng.randrange(len(found) + 1), " ".join(words))
    return found


def template(rng: random.Random, copies: int) -> list[str]:
    """The same words but for a name, and other bytes: one band, one signature, many documents."""
    words = [f"t{rng.randrange(10**6)}" for _ in range(30)]
    found = []
    for number in range(copies):
        if rng.random() < 0.3:
            words[rng.randrange(len(words))] = f"n{rng.randrange(10**6)}"
        found.append(" ".join(words) + "!" * number)
    return found


def parts(rng: random.Random, count: int) -> list[str]:
    """Stretches of one text, of any length: most are in others, and overlap with more."""
    words = [f"p{rng.randrange(10**6)}" for _ in range(60)]
    found = []
    for _ in range(count):
        begin, end = sorted(rng.sample(range(len(words) + 1), 2))
        found.append(" ".join(words[begin:end]))
    return found


def documents(rng: random.Random) -> list[str]:
    found: list[str] = ["", "?!", "one", "one two"][: rng.randrange(5)]
    for _ in range(rng.choice([1, 2, 3])):
        make = rng.choice([chain, hub, template, parts])
        found += make(rng, rng.choice([2, 5, 12, 40] if make is template else [2, 5, 12]))
    found += rng.choices(found, k=rng.randrange(8))
    rng.shuffle(found)
    return found


@dataclass
class Case:
    """A corpus, an old one, and what the job is told."""

    rows: list[dict[str, Any]]
    old: list[str]
    options: dict[str, Any]
    against: str
    largest_group: int

    @property
    def texts(self) -> list[str]:
        return [row["text"] for row in self.rows]


@st.composite
def cases(draw: st.DrawFn, grouping: str) -> Case:
    rng = random.Random(draw(st.integers(0, 2**32)))
    texts = documents(rng)
    against = draw(st.sampled_from(["", "corpus", "signatures"]))
    old = 0 if not against else rng.randrange(len(texts) + 1)
    rows = [{"text": text, "score": rng.choice([None, 1, 2, 3])} for text in texts[old:]]
    options = {
        "method": draw(st.sampled_from(["minhash", "minhash", "simhash", "topsig"])),
        "threshold": draw(st.sampled_from([0.5, 0.7, 0.8, 0.9, 1.0])),
        "keep": draw(st.sampled_from(RULES)),
        "verify": draw(st.sampled_from([True, True, False])),
        "ngram": draw(st.sampled_from([1, 2, 3, (1, 2), (2, 3)])),
        "min_features": draw(st.sampled_from([1, 1, 3])),
        "grouping": grouping,
    }
    if options["verify"] and against != "signatures":
        options["exact"] = draw(st.booleans())
        measures = ["jaccard", "cosine"] if options["exact"] else []
        if not callable(options["keep"]):  # the larger one stays, whatever a function says
            measures.append("containment")
        options["measure"] = draw(st.sampled_from([None, *measures]))
    if grouping == "components":  # with stars it does nothing, and is refused
        options["max_group"] = draw(st.sampled_from([2, 5, 1000]))
    return Case(rows, texts[:old], options, against, draw(st.sampled_from([2, 10, 200])))


def run(case: Case, threads: int) -> TextResult:
    with TemporaryDirectory() as folder, small_groups(case.largest_group):
        against: Any = [{"text": text} for text in case.old] if case.against else None
        if case.against == "signatures":
            against = Path(folder) / "old.lookalike"
            signer = la.dedup([], **case.options | {"keep": "first"}).settings.signer()
            la.save_signatures(against, signer.sign(case.old), signer)
        rows = case.rows or [{"text": "alone", "score": 1}]
        return la.dedup(rows, against=against, threads=threads, **case.options)


@contextmanager
def small_groups(most: int) -> Iterator[None]:
    """Compare with few only, as in groups of thousands."""
    with (
        patch.object(propose, "LARGEST_GROUP", most),
        patch.object(decide, "LEADERS", 2),
        patch.multiple(propose, LARGEST_SAMPLED_GROUP=most, SAMPLED_LEADERS=2),
        patch.multiple(propose, SAMPLE=8, ALL_SAMPLES=400 * most),
        patch.multiple(propose, LEADERS=2, NEAREST=2, _ROWS_AT_A_TIME=8),
    ):
        yield


class Truth:
    """What is true of a case, computed from its texts alone."""

    def __init__(self, case: Case, result: TextResult) -> None:
        self.case = case
        self.settings: DedupSettings = result.settings
        how = dedup_oracle.MEASURES[self.settings.measure]
        self.measure = partial(how, ngram=self.settings.ngram or 0)
        self.texts = [*case.old, *case.texts]
        self.old = len(case.old)
        self.signatures = self.settings.signer().sign(self.texts)

    def too_short(self, document: int) -> bool:
        text = self.texts[document]
        found = dedup_oracle.shingles(text, self.settings.ngram or 0)
        features = len(set(found)) if self.settings.method == "minhash" else len(found)
        return features < self.settings.min_features

    def size(self, document: int) -> int:
        """How many different features decide who is the larger one; the same for all without."""
        if self.settings.measure != "containment":
            return 0
        return len(set(dedup_oracle.shingles(self.texts[document], self.settings.ngram or 0)))

    def deciding(self, pairs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """The pairs in which one document may be dropped for the other.

        A new document is not part of a smaller old one, nor of a new copy of that: equal documents
        are dropped for the first of them, and decide nothing about others.
        """
        first = [self.texts.index(text) for text in self.texts]
        found = set()
        for left, right in pairs:
            one, other = sorted((first[left], first[right]))
            if one >= self.old or self.size(one) >= self.size(other):
                found.add((left, right))
        return found

    def estimated(self, left: int, right: int) -> bool:
        """Only signatures can tell, of different texts or where a text is not known."""
        without_text = self.case.against == "signatures" and min(left, right) < self.old
        return without_text or (not self.settings.verify and self.texts[left] != self.texts[right])

    def similarity(self, left: int, right: int) -> float:
        if not self.estimated(left, right):
            return self.measure(self.texts[left], self.texts[right])
        one, two = self.signatures[[left, right]]
        if self.settings.method == "minhash":
            distance = int((one.view(np.uint16) != two.view(np.uint16)).sum())
        else:
            distance = int(np.unpackbits(one ^ two).sum())
        return float(self.settings.estimate(distance, np.unpackbits([one, two]).sum()))

    def kept(self, alike: set[tuple[int, int]]) -> set[int]:
        """Who stays, by definition: in the order of the rule, whoever is like none that stays
        already; those that are like nobody at all, if none is to stay.
        """
        if self.settings.keep == "none":
            return set(range(len(self.texts))) - {each for pair in alike for each in pair}
        if callable(self.settings.keep):
            return dedup_oracle.stay(self.asked(alike), alike, self.old)
        return dedup_oracle.stay(self.order(), alike, self.old)

    def asked(self, alike: set[tuple[int, int]]) -> list[int]:
        """All documents, old ones first, then the choices of the function, then the others: of
        each group it is asked until everyone is chosen or like one that is.
        """
        every = range(len(self.texts))
        free = set(every[self.old :]) - {right for left, right in alike if left < self.old}
        left = {pair for pair in alike if free.issuperset(pair)}
        labels = dedup_oracle.components(len(every), left)
        chosen: list[int] = []
        for label in sorted({labels[each] for each in free}):
            group = sorted(each for each in free if labels[each] == label)
            different = len({self.texts[each] for each in group})
            while len(group) > 1:
                rows = [self.case.rows[each - self.old] for each in group]
                wanted = whim(rows)
                choice = group[next(at for at, row in enumerate(rows) if row is wanted)]
                chosen.append(choice)
                if self.settings.grouping == "components" and (
                    different <= self.settings.max_group
                ):
                    break
                group = [
                    each
                    for each in group
                    if each != choice and (min(each, choice), max(each, choice)) not in left
                ]
        first = [*every[: self.old], *chosen]
        return first + [each for each in every if each not in set(first)]

    def order(self) -> list[int]:
        """All documents in the order in which they are to survive."""
        rule = self.settings.keep_rule.partition(":")[0]
        scores = [None] * self.old + [row["score"] for row in self.case.rows]

        def rank(document: int) -> tuple[bool, int, float, int]:
            length, score = len(self.texts[document].encode()), scores[document]
            value = {
                "first": document,
                "last": -document,
                "longest": -length,
                "shortest": length,
                "max": float("inf") if score is None else -score,
                "min": float("inf") if score is None else score,
            }[rule]
            return document >= self.old, -self.size(document), value, document

        return sorted(range(len(self.texts)), key=rank)


def pairs_of(result: TextResult, truth: Truth) -> dict[tuple[int, int], float]:
    """All verified pairs by position, old documents first."""
    old = truth.old
    found = {}
    for pairs, offset in ((result.old_pairs, 0), (result.pairs, old)):
        for left, right, similarity in zip(
            pairs.left.tolist(), pairs.right.tolist(), pairs.similarity.tolist(), strict=True
        ):
            found[left + offset, right + old] = similarity
    return found


def check_named(result: TextResult, truth: Truth) -> None:
    """Each dropped row names one that stays, and how similar it is to that; one that goes, too, if
    none is to stay.
    """
    old, none = truth.old, result.settings.keep == "none"
    for row in np.flatnonzero(~result.keep).tolist():
        own, matched = int(result.duplicate_of[row]), int(result.matched_old[row])
        assert (own < 0) != (matched < 0)
        assert matched >= 0 or (own != row and result.keep[own] != none)
        other = matched if own < 0 else own + old
        if result.settings.grouping == "star" and not none:
            assert truth.size(other) >= truth.size(row + old)
        if none and matched < 0:
            assert np.count_nonzero(result.group_of == result.group_of[row]) > 1
        assert result.estimated[row] == truth.estimated(other, row + old)
        assert result.similarity[row] == pytest.approx(
            truth.similarity(other, row + old), abs=1e-9 if result.estimated[row] else ROUNDING
        )
    stays = result.keep
    assert (result.duplicate_of[stays] < 0).all() and (result.matched_old[stays] < 0).all()
    assert np.isnan(result.similarity[stays]).all() and not result.estimated[stays].any()


def check_counts(result: TextResult) -> None:
    counts, gone = result.counts, ~result.keep
    exactly = result.similarity[gone & ~result.estimated]
    estimates = result.similarity[result.estimated]
    assert counts.kept == int(result.keep.sum())
    assert counts.estimated_duplicates == len(estimates)
    assert counts.exact_duplicates + counts.near_duplicates == len(exactly)
    assert min(counts.exact_duplicates, counts.near_duplicates) >= 0
    assert counts.lowest_similarity == (exactly.min() if len(exactly) else None)
    assert counts.lowest_estimate == (estimates.min() if len(estimates) else None)
    below = result.similarity < result.settings.threshold
    assert counts.below_threshold == int(below.sum())
    summary = result.summary()
    assert ("lowest similarity" in summary) == bool(len(exactly))
    assert ("lowest estimate" in summary) == bool(len(estimates))
    assert ("below threshold" in summary) == bool(below.any())


def check_pairs(result: TextResult, truth: Truth) -> None:
    for (left, right), similarity in pairs_of(result, truth).items():
        expected = truth.similarity(left, right)
        assert similarity == pytest.approx(expected, abs=1e-9)
        assert min(similarity, expected + ROUNDING) >= result.settings.threshold
    assert result.complete == result.settings.exact
    assert result.counts.verified_pairs == len(result.pairs) + len(result.old_pairs)
    if result.complete:
        texts = range(len(truth.texts))
        alike = {
            (left, right)
            for left, right in combinations(
                [each for each in texts if not truth.too_short(each)], 2
            )
            if right >= truth.old
            and truth.similarity(left, right) >= result.settings.threshold - ROUNDING
        }
        assert alike == pairs_of(result, truth).keys()


@settings(max_examples=CASES)
@given(cases(grouping="star"))
def test_whoever_goes_is_a_near_duplicate_of_one_that_stays(case: Case) -> None:
    result = run(case, threads=3)
    if not case.rows:
        return
    truth = Truth(case, result)
    check_named(result, truth)
    check_pairs(result, truth)
    check_counts(result)
    threshold = result.settings.threshold
    assert (result.similarity[~result.keep] >= threshold).all()
    assert result.counts.below_threshold == 0
    pairs = pairs_of(result, truth)
    stay = truth.kept(truth.deciding(_with_copies(pairs, truth)))
    assert {row + truth.old for row in np.flatnonzero(result.keep).tolist()} == {
        document for document in stay if document >= truth.old
    }
    for left, right in truth.deciding(pairs):
        assert not result.keep[right - truth.old] or (
            left >= truth.old and not result.keep[left - truth.old]
        )
    again = run(case, threads=1)
    for name in ("keep", "group_of", "duplicate_of", "matched_old", "similarity", "estimated"):
        assert np.array_equal(
            getattr(again, name), getattr(result, name), equal_nan=name == "similarity"
        )


def _with_copies(pairs: dict[tuple[int, int], float], truth: Truth) -> set[tuple[int, int]]:
    """Equal texts are alike, and like whatever one of them is like; but not those too short."""
    found = set()
    known = 0 if truth.case.against != "signatures" else truth.old
    members: dict[str, list[int]] = {}
    for document in range(known, len(truth.texts)):
        if not truth.too_short(document):
            members.setdefault(truth.texts[document], []).append(document)
    for equal in members.values():
        found |= {(one, two) for one in equal for two in equal if one < two}
    for pair in pairs:
        both = [
            [document] if document < known else members[truth.texts[document]] for document in pair
        ]
        found |= {(min(one, two), max(one, two)) for one in both[0] for two in both[1]}
    return {(one, two) for one, two in found if one != two and two >= truth.old}


@settings(max_examples=CASES // 2)
@given(cases(grouping="components"))
def test_with_components_the_ends_of_chains_go_and_are_counted(case: Case) -> None:
    result = run(case, threads=2)
    if not case.rows:
        return
    truth = Truth(case, result)
    check_named(result, truth)
    check_pairs(result, truth)
    check_counts(result)
    pairs = truth.deciding(_with_copies(pairs_of(result, truth), truth))
    labels = dedup_oracle.components(len(truth.texts), pairs)
    if not result.warnings or "had more than" not in result.warnings[-1]:
        best: dict[int, int] = {}
        for document in truth.asked(pairs) if callable(case.options["keep"]) else truth.order():
            best.setdefault(labels[document], document)
        stay = {best[label] for label in labels} - set(range(truth.old))
        if case.options["keep"] == "none":
            stay = truth.kept(pairs) - set(range(truth.old))
        assert {row + truth.old for row in np.flatnonzero(result.keep).tolist()} == stay


def test_a_chain_of_small_edits_keeps_what_is_different() -> None:
    rng = random.Random(401)
    texts = chain(rng, 401)
    result = la.dedup(texts, ngram=1)
    assert result.counts.lowest_similarity is not None
    assert result.counts.lowest_similarity >= 0.8 and result.counts.kept > 100
    lowest = next(line for line in result.summary().splitlines() if "lowest similarity" in line)
    assert 0.8 <= float(lowest.split()[2]) <= result.counts.lowest_similarity
    joined = la.dedup(texts, ngram=1, grouping="components")
    assert joined.counts.kept == 1 and joined.counts.below_threshold > 350
    assert joined.counts.lowest_similarity == 0
    assert "connected by pairs of exact jaccard of words at least 0.8" in joined.summary()
    assert "not similar to the kept one" in joined.summary()
    gone = la.dedup(texts, ngram=1, keep="none")
    assert not gone.keep.any() and np.bincount(gone.group_of)[gone.group_of].min() > 1


@pytest.mark.parametrize("method", ["minhash", "simhash", "topsig"])
@pytest.mark.parametrize("keep", ["first", "last", "longest", "shortest"])
def test_of_many_with_the_same_words_one_stays(method: str, keep: str) -> None:
    """Too many to compare each with each: the one that stays must be among the compared."""
    texts = [f"these words are the same every time{'!' * number}" for number in range(700)]
    result = la.dedup(texts, method=method, keep=keep)
    assert np.flatnonzero(result.keep).tolist() == [{"first": 0, "shortest": 0}.get(keep, 699)]
    most = 32 if method == "minhash" else 1
    assert result.counts.proposed_pairs < most * len(texts)
    against = la.dedup(texts, method=method, keep=keep, against=texts[300:301])
    assert not against.keep.any() and (against.matched_old == 0).all()


def licenses(seed: int) -> tuple[list[str], str]:
    """Texts that differ in a name, and one that differs in five words."""
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(300)]
    texts = [" ".join([*words[:150], f"name{number}", *words[150:]]) for number in range(400)]
    for at in rng.sample(range(300), 5):
        words[at] = "other"
    return texts, " ".join(words)


@pytest.mark.parametrize("method", ["minhash", "simhash"])
@pytest.mark.parametrize("place", [0, 200, 400])
def test_many_alike_go_with_the_one_that_was_to_stand_for_them(method: str, place: int) -> None:
    """Licenses with other names: most of them were compared with one that goes itself."""
    texts, other = licenses(seed=place)
    rows = [{"text": text, "score": 1} for text in texts]
    rows.insert(place, {"text": other, "score": 2})
    result = la.dedup(rows, method=method, keep="max:score")
    assert np.flatnonzero(result.keep).tolist() == [place]
    assert la.dedup(texts, method=method, against=[other]).counts.kept == 0


def test_estimates_are_called_estimates(tmp_path: Path) -> None:
    texts = [f"{' '.join(f'w{word}' for word in range(part, part + 40))}" for part in (0, 100, 200)]
    old = tmp_path / "old.lookalike"
    la.dedup(texts[:2], save_signatures=old)
    new = [texts[0], texts[0] + " and", texts[0], texts[2], texts[2], texts[2] + " and"]
    result = la.dedup(new, against=old)
    counts = result.counts
    assert result.matched_old.tolist() == [0, 0, 0, -1, -1, -1]
    assert result.estimated.tolist() == [True, True, True, False, False, False]
    assert (counts.exact_duplicates, counts.near_duplicates, counts.estimated_duplicates) == (
        1,
        1,
        3,
    )
    assert "by signatures alone: estimated jaccard of word 5-grams at least 0.8" in result.summary()
    unverified = la.dedup(new, verify=False).counts
    assert (unverified.exact_duplicates, unverified.near_duplicates) == (2, 0)
    assert unverified.estimated_duplicates == 2
    assert unverified.lowest_similarity == 1 and unverified.lowest_estimate is not None


def test_another_rule_in_the_same_folder_is_as_good(tmp_path: Path) -> None:
    source = tmp_path / "source.txt"
    texts = [f"these words are the same every time{'!' * number}" for number in range(300)]
    source.write_text("".join(f"{text}\n" for text in texts))
    for keep, stays in (("first", 0), ("last", 299), ("first", 0)):
        result = la.dedup(source, work=tmp_path / "work", keep=keep, method="simhash")
        assert np.flatnonzero(result.keep).tolist() == [stays]
        assert result.counts.proposed_pairs == 299


def test_who_gives_up_says_so() -> None:
    texts, other = licenses(seed=0)
    with patch.object(decide, "ROUNDS", 1):
        result = la.dedup(texts, method="simhash", against=[other])
    assert "after 1 rounds" in result.warnings[-1] and result.counts.below_threshold == 0
    assert not la.dedup(texts, method="simhash", against=[other]).warnings


def test_a_copy_of_an_old_document_does_not_link_a_larger_one_to_it() -> None:
    """The larger document has more than the old one inside it, so it is kept."""
    old = " ".join(f"word{place}" for place in range(12))
    larger = " ".join(f"word{place}" for place in range(4, 22))
    result = la.dedup(
        [{"text": old}, {"text": larger}, {"text": old}], against=[{"text": old}], ngram=1,
        measure="containment", threshold=0.5, grouping="components", max_group=2,
    )  # fmt: skip
    assert result.keep.tolist() == [False, True, False]
