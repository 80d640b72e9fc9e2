"""The lengths of documents choose the features, and nothing else does."""

from __future__ import annotations

import json
import pickle
import random
import string
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from dedup.test_dedup import corpus
from lookalike.corpora.lengths import SHORT_CHARACTERS, SHORT_SHARE, TextLengths
from lookalike.errors import ArgumentError, FormatError
from support.oracles import text as text_oracle

LINES = [
    "Garden hose, green, heavy duty, 20 m",
    "garden hose, grene, heavy duty, 20 m",
    "Garden hose, green, heavy duty, 30 m",
    "Extension cord, black, 5 m",
]
LONG = "word " * 30

of_any_length = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        [SHORT_CHARACTERS - 1, SHORT_CHARACTERS, SHORT_CHARACTERS + 1, 4 * 120, 481]
    ).flatmap(lambda count: st.sampled_from("aé漢😀 ").map(lambda one: one * count)),
)


def short_by_definition(texts: list[str]) -> bool:
    filled = [text for text in texts if text]
    short = [text for text in filled if len(text) <= SHORT_CHARACTERS]
    return bool(filled) and 10 * len(short) >= 9 * len(filled)


@settings(max_examples=60)
@given(
    texts=st.lists(of_any_length, min_size=1, max_size=30),
    threads=st.sampled_from([1, 2, 5]),
    batch=st.sampled_from([1, 3, 1 << 16]),
)
def test_the_choice_is_by_definition(texts: list[str], threads: int, batch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("lookalike.corpora.lengths"), "_AT_A_TIME", batch)
        result = la.dedup(texts, threads=threads)
    short = short_by_definition(texts)
    chosen = result.settings
    assert (chosen.features, chosen.ngram, chosen.threshold) == (
        ("short", 3, 0.75) if short else ("words", 5, 0.8)
    )
    assert result.counts.short_documents == sum(0 < len(text) <= SHORT_CHARACTERS for text in texts)
    # What was chosen is what is done.
    same = la.dedup(texts, features="short" if short else "words", threads=1)
    assert same.settings == chosen and same.features_reason is None
    assert same.keep.tolist() == result.keep.tolist()
    assert same.duplicate_of.tolist() == result.duplicate_of.tolist()
    assert same.pairs.similarity.tolist() == result.pairs.similarity.tolist()


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_ordinary_documents_are_compared_by_words(seed: int) -> None:
    texts = corpus(seed)
    result, before = la.dedup(texts), la.dedup(texts, features="words", threshold=0.8)
    assert result.settings == before.settings
    assert result.keep.tolist() == before.keep.tolist()
    assert result.pairs.left.tolist() == before.pairs.left.tolist()
    assert result.pairs.right.tolist() == before.pairs.right.tolist()


def drawn_lines(seed: int, count: int = 60) -> list[str]:
    """Lines of which some are edited copies of others, or differ from them by a number."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 9))) for _ in range(60)]
    lines: list[str] = []
    while len(lines) < count:
        if lines and rng.random() < 0.5:
            line = list(rng.choice(lines))
            at = rng.randrange(len(line))
            line[at] = rng.choice("aeiou123 ") + rng.choice(["", line[at]])
            lines.append("".join(line))
        else:
            size = rng.choice(["", f" {rng.randint(1, 4)} m", " part II"])
            lines.append(" ".join(rng.choices(words, k=rng.randint(1, 8))) + size)
    return lines


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), exact=st.booleans(), threads=st.sampled_from([1, 3]))
def test_pairs_of_lines_beside_brute_force(seed: int, exact: bool, threads: int) -> None:
    lines = drawn_lines(seed)
    result = la.dedup(lines, exact=exact, threads=threads)
    assert result.settings.features == "short"
    sets = [set(text_oracle.short_features(line)) for line in lines]
    found = dict(
        zip(
            zip(result.pairs.left.tolist(), result.pairs.right.tolist(), strict=True),
            result.pairs.similarity.tolist(),
            strict=True,
        )
    )
    for (left, right), value in found.items():
        assert value == pytest.approx(len(sets[left] & sets[right]) / len(sets[left] | sets[right]))
        assert text_oracle.numbers(lines[left]) == text_oracle.numbers(lines[right])
    every = {
        (left, right)
        for right in range(len(lines))
        for left in range(right)
        if len(sets[left] & sets[right]) >= 0.75 * len(sets[left] | sets[right])
    }
    assert found.keys() <= every
    if exact:
        assert found.keys() == every
    for row, other in enumerate(result.duplicate_of.tolist()):
        if other >= 0:
            assert text_oracle.numbers(lines[row]) == text_oracle.numbers(lines[other])


def test_names_that_are_too_short_for_a_typo_are_said() -> None:
    names = ["Anna B. Hoffmann", "Anna B. Hofmann", "Karin L. Goldberg", "Pavel N. Schustein"]
    result = la.dedup(names)
    told = next(line for line in result.summary().splitlines() if "median length" in line)
    assert told.split()[2] == "16"  # 15, 16, 17 and 18 letters
    assert "one wrong letter leaves a similarity below 0.75; a lower threshold finds it" in told
    lower = la.dedup(names, threshold=0.6)
    assert lower.kept() == [names[0], *names[2:]]
    assert "median length" not in lower.summary()
    assert "median length" not in la.dedup(LINES).summary()


def test_what_was_chosen_and_why_is_said(tmp_path: Path) -> None:
    result = la.dedup(LINES)
    assert result.kept() == [LINES[0], *LINES[2:]]
    reason = "100% of the documents have at most 120 characters"
    assert result.features_reason == reason
    said = result.to_dict()
    assert said["features_reason"] == reason and said["counts"]["short_documents"] == 4
    assert (said["settings"]["features"], said["settings"]["threshold"]) == ("short", 0.75)
    assert f"features                  short  {reason}" in result.summary()
    assert (
        "jaccard of character 3-grams (numbers and codes equal) at least 0.75" in result.summary()
    )
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "features chosen because" in page and reason in page
    assert "la.dedup(source).report" in page
    words = la.dedup([*LINES, LONG])
    assert words.features_reason == "80% of the documents have at most 120 characters"
    assert words.settings.features == "words" and "  features  " not in words.summary()


@pytest.mark.parametrize(
    ("given", "features"),
    [
        ({"features": "words"}, "words"),
        ({"features": "chars"}, "chars"),
        ({"features": la.Words(2)}, la.Words(2)),
        ({"ngram": 2}, "words"),
        ({"stop_words": "english"}, "words"),
        ({"stem": "english"}, "words"),
        ({"min_features": 2}, "words"),
        ({"measure": "containment"}, "words"),
        ({"method": "simhash"}, "words"),
        ({"method": "topsig"}, "words"),
    ],
)
def test_what_the_caller_says_decides(given: dict[str, Any], features: Any) -> None:
    result = la.dedup(LINES, **given)
    assert result.settings.features == features and result.settings.threshold == 0.8
    assert result.features_reason is None and result.counts.short_documents is None


@pytest.mark.parametrize(
    "given", [{"threshold": 0.9}, {"exact": True}, {"verify": False}, {"permutations": 64}]
)
def test_other_settings_stay_as_they_were_given(given: dict[str, Any]) -> None:
    chosen = la.dedup(LINES, **given).settings
    assert chosen.features == "short"
    assert {name: getattr(chosen, name) for name in given} == given


def test_the_threshold_follows_from_the_features() -> None:
    for features in ("short", la.ShortText(4)):
        assert la.dedup([LONG], features=features).settings.threshold == 0.75
    assert la.dedup([LONG], features="words,short").settings.threshold == 0.8


@pytest.mark.parametrize(("short", "others"), [(9, 1), (899, 101), (900, 100), (0, 0), (0, 5)])
def test_at_least_nine_tenths_have_to_be_short(short: int, others: int) -> None:
    lengths = TextLengths(short, short + others)
    assert (lengths.features == "short") == (short > 0 and short >= 9 * others)
    assert SHORT_SHARE == 0.9


def test_texts_without_characters_do_not_count() -> None:
    assert la.dedup([*["" for _ in range(50)], "one line"]).settings.features == "short"
    assert la.dedup(["", "", LONG]).settings.features == "words"
    assert la.dedup([""]).features_reason == "there are no documents with text"
    assert la.dedup([]).settings.features == "words"


def test_characters_count_and_not_bytes() -> None:
    """Japanese titles, of three bytes a character; a long Japanese text has no spaces either."""
    titles = ["吾輩は猫である、名前はまだ無い。", "吾輩は猫である、名前はまだ無い", "坊っちゃん"]
    result = la.dedup(titles)
    assert result.settings.features == "short" and result.counts.near_duplicates == 1
    assert la.dedup(["猫" * 121, "犬" * 121]).settings.features == "words"


def test_the_old_corpus_does_not_count() -> None:
    assert la.dedup(LINES[1:], against=[LONG, LINES[0]]).counts.in_old == 1
    long = [LONG + line for line in LINES]
    assert la.dedup(long, against=LINES * 9).settings.features == "words"


def test_saved_signatures_bring_their_features_along(tmp_path: Path) -> None:
    short, words, others = (tmp_path / f"{name}.lookalike" for name in ("short", "words", "chars"))
    la.dedup([LINES[0]], save_signatures=short)
    la.dedup([LINES[0]], features="words", save_signatures=words)
    la.dedup([LINES[0]], features="chars", save_signatures=others)
    long = [LONG + line for line in LINES]
    for texts in (LINES[1:3], long):
        for old, features in ((short, "short"), (words, "words"), (others, la.Chars())):
            result = la.dedup(texts, against=old)
            assert result.settings.features == features
            assert result.features_reason is None
    found = la.dedup(LINES[1:], against=short, save_signatures=short)
    assert found.settings.threshold == 0.75 and found.counts.in_old == 1
    assert len(la.load_signatures(short).signatures) == 3
    with pytest.raises(FormatError, match="sign both in the same way"):
        la.dedup(LINES, against=short, features="words")
    with pytest.raises(FormatError, match="sign both in the same way"):
        la.dedup(LINES, against=short, permutations=64)


def test_an_interrupted_job_goes_on_with_the_same_choice(tmp_path: Path) -> None:
    source, work = tmp_path / "lines.jsonl", tmp_path / "work"
    lines = drawn_lines(3)
    source.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    expected = la.dedup(source)

    def stop(step: str, share: float) -> None:
        if step == "propose":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        la.dedup(source, work=work, progress=stop)
    again = la.dedup(source, work=work)
    assert {"read", "sign"} <= set(again.reused)
    assert again.settings == expected.settings
    assert again.features_reason == expected.features_reason
    assert again.keep.tolist() == expected.keep.tolist()
    # Other features are signed anew, in the same folder.
    words = la.dedup(source, work=work, features="words")
    assert "sign" not in words.reused and words.settings.threshold == 0.8
    # One long document more, and words fit better.
    with source.open("a") as file:
        file.writelines(json.dumps({"text": f"{LONG} {at}"}) + "\n" for at in range(20))
    grown = la.dedup(source, work=work)
    assert grown.settings.features == "words" and "read" not in grown.reused


def test_settings_with_features_are_not_open() -> None:
    left_open = la.results.DedupSettings(keep="last", threshold=0.9)
    assert left_open.features_open and left_open.features == "words"
    chosen = left_open.with_features("short")
    assert not chosen.features_open and (chosen.keep, chosen.threshold) == ("last", 0.9)
    with pytest.raises(ArgumentError, match="threshold"):
        la.results.DedupSettings(threshold=80)


@given(
    features=st.sampled_from(["words", "short", la.Chars(4)]),
    threshold=st.none() | st.floats(0.1, 1),
    permutations=st.sampled_from([64, 128]),
    seed=st.integers(0, 99),
    exact=st.booleans(),
)
def test_features_that_are_chosen_later_are_those_that_are_given(
    features: Any, threshold: float | None, permutations: int, seed: int, exact: bool
) -> None:
    others: dict[str, Any] = {"permutations": permutations, "seed": seed, "exact": exact}
    others["threshold"] = threshold
    later = la.results.DedupSettings(**others).with_features(features)
    at_once = la.results.DedupSettings(features=features, **others)
    assert later.to_dict() == at_once.to_dict()
    assert later.signer() == at_once.signer()
    assert later.feature_kind() == at_once.feature_kind()
    assert pickle.loads(pickle.dumps(later)).to_dict() == later.to_dict()


def test_a_job_imports_only_what_it_needs(tmp_path: Path) -> None:
    """Each of these takes longer to import than a thousand documents take to be compared."""
    pytest.importorskip("pandas")
    texts = ["é" * 100, LONG, "short"] * 20
    path = tmp_path / "texts.jsonl"
    path.write_text(
        "".join(json.dumps({"text": f"{text} {n}"}) + "\n" for n, text in enumerate(texts))
    )
    code = (
        "import sys; import lookalike as la;"
        "result = la.dedup(sys.argv[1]); result.write(sys.argv[2]);"
        "assert result.counts.short_documents == 40, result.counts;"
        "print(*sorted({'importlib.metadata', 'lookalike.storage.changes', 'pandas',"
        " 'pyarrow.compute', 'rich'} & {*sys.modules}))"
    )
    command = [sys.executable, "-c", code, str(path), str(tmp_path / "out.jsonl")]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert run.stdout.split() == []
