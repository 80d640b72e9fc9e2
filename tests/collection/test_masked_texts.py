"""Short texts are compared by the bits that their words decide; either plan finds the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lookalike as la
from support.oracles import masks as mask_oracle

RNG = np.random.default_rng(2)
WORDS = np.array([f"w{number}" for number in range(400)])
TEXTS = [" ".join(RNG.choice(WORDS, 60)) for _ in range(150)]
TEXTS[40:60] = TEXTS[:20]  # the same signature, for several ids
IDS = [f"doc {number:03}" for number in range(150)]
SIGNER = la.TopSig(256, 8).fit(TEXTS)
SHORT = " ".join(TEXTS[7].split()[:4])


def opened(url: str, signer: Any = SIGNER) -> la.Collection:
    docs = la.open_collection(url, "texts", signer=signer, create=True)
    docs.add(IDS, TEXTS, metadata=[{"even": number % 2 == 0} for number in range(150)])
    return docs


def expected(text: str) -> list[tuple[int, int, str]]:
    rows = SIGNER.sign(TEXTS)
    (query,), (mask,) = SIGNER.sign([text], mask=True)
    return [(near, far, IDS[at]) for near, far, at in mask_oracle.ordered(rows, query, mask)]


def found(answer: la.results.Answer) -> list[tuple[int, int | None, str]]:
    return [(match.distance, match.unmasked, match.id) for match in answer]


@pytest.mark.parametrize("plan", ["sql", "native"])
def test_short_texts_are_masked_and_it_is_said(url: str, plan: Any) -> None:
    with opened(url) as docs:
        for k in (1, 7, 149, 400):
            answer = docs.search(SHORT, k, plan=plan)
            assert answer.masked
            assert answer.exact
            assert found(answer) == expected(SHORT)[:k]
        plain = docs.search(SHORT, 7, plan=plan, mask=False)
        assert not plain.masked
        assert plain == docs.search(SIGNER.sign([SHORT])[0], 7, plan=plan)
        assert all(match.unmasked is None for match in plain)
        assert not docs.search(TEXTS[3], 7, plan=plan).masked  # it is not short
        assert not docs.search("", 7, plan=plan).masked


@pytest.mark.parametrize("plan", ["sql", "native"])
def test_masks_go_with_radius_conditions_and_exclusions(url: str, plan: Any) -> None:
    truth = expected(SHORT)
    radius = truth[30][0]
    with opened(url) as docs:
        assert not docs.search(SHORT, 9, radius=radius, plan=plan).masked  # that is of all bits
        near = docs.search(SHORT, 150, radius=radius, plan=plan, mask=True)
        assert near.masked
        assert found(near) == [one for one in truth if one[0] <= radius]
        gone = truth[0][2]
        some = docs.search(SHORT, 20, where={"even": True}, exclude=[gone], plan=plan)
        wanted = [one for one in truth if int(one[2][4:]) % 2 == 0 and one[2] != gone]
        assert found(some) == wanted[:20]


def test_many_at_once_are_masked_one_by_one(url: str) -> None:
    asked = [SHORT, TEXTS[3], "w1 w2"]
    with opened(url) as docs:
        for plan in ("sql", "native"):
            answers = docs.search_many(asked, 5, plan=plan)
            assert [answer.masked for answer in answers] == [True, False, True]
            assert answers == [docs.search(text, 5) for text in asked]
        docs.delete([IDS[7]])
        assert IDS[7] not in docs.search(SHORT, 150).ids


def test_an_explanation_is_of_the_bits_that_count(url: str) -> None:
    mask = np.unpackbits(SIGNER.sign([SHORT], mask=True)[1][0], bitorder="little")
    with opened(url) as docs:
        for plan in ("sql", "native"):
            answer = docs.search(SHORT, 5, explain=True, plan=plan)
            assert answer.work is not None
            for match in answer:
                assert match.differing_bits is not None
                assert match.slice_distances is not None
                assert len(match.differing_bits) == match.distance == sum(match.slice_distances)
                assert mask[list(match.differing_bits)].all()


def test_other_signers_mask_when_told_or_refuse(url: str) -> None:
    with opened(url, la.SimHash(64)) as docs:
        assert not docs.search(SHORT, 3).masked
        assert docs.search(SHORT, 3, mask=True).masked
        with pytest.raises(
            la.errors.ArgumentError, match="mask is 'short'; expected True, False or"
        ):
            docs.search(SHORT, 3, mask="short")  # type: ignore[arg-type]
        with pytest.raises(
            la.errors.ArgumentError, match="mask=True is only for texts, whose words"
        ):
            docs.search(np.zeros(8, np.uint8), 3, mask=True)


def test_a_signer_without_masks_says_so(url: str) -> None:
    with opened(url, la.BBitMinHash(64, 1)) as docs:
        assert not docs.search(SHORT, 3).masked
        with pytest.raises(
            la.errors.ArgumentError, match="mask=True is for texts signed by TopSig"
        ):
            docs.search(SHORT, 3, mask=True)
