"""What is compared, as commands are told: features, stop words, stems and measures."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from support.running.refusals import refused

PART = "the engine of a train pulls the cars along the rails"
WHOLE = f"trains are long; {PART}, and a guard at the end closes all of the doors"
TEXTS = [PART, WHOLE, "something else is said here, of taxes and wages in the spring"]


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": name, "text": text} for name, text in zip("abc", TEXTS, strict=True)]
    Path("corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("stop.txt").write_text("the\n\n  Of \n")
    return "corpus.jsonl"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("exact", [[], ["--exact"]])
@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
def test_dedup_drops_what_is_in_a_longer_one(
    exact: list[str], order: list[str], corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = dict(zip("abc", TEXTS, strict=True))
    lines = [json.dumps({"id": name, "text": texts[name]}) for name in [*order, "c"]]
    Path(corpus).write_text("\n".join(lines))
    assert printed(capsys, "dedup", corpus)["counts"]["kept"] == 3
    more = ["--measure", "containment", "--pairs", "pairs.jsonl", "-o", "out.jsonl"]
    found = printed(capsys, "dedup", corpus, *more, *exact)
    assert found["settings"]["measure"] == "containment"
    kept = [json.loads(line)["id"] for line in Path("out.jsonl").read_text().splitlines()]
    assert kept == ["b", "c"]
    (pair,) = map(json.loads, Path("pairs.jsonl").read_text().splitlines())
    assert {pair["left"], pair["right"]} == {"a", "b"} and pair["similarity"] == 1.0
    assert main(["dedup", corpus, "--measure", "containment"]) == 0
    assert "exact containment of word 5-grams at least 0.8" in capsys.readouterr().out


def test_sign_and_dedup_take_the_same_features(
    corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for options, features in [
        (["--features", "chars", "--ngram", "3"], la.Chars(3)),
        (["--ngram", "1", "--stop-words", "english"], la.Words(1, stopwords="english")),
        (["--stop-words", "stop.txt"], la.Words(5, stopwords=["the", "Of"])),
        (["--stem", "english"], la.Words(5, stem="english")),
        (["--ngram", "1,2"], la.Words((1, 2))),
        (["--features", "chars", "--ngram", "3,5"], la.Chars((3, 5))),
        (["--features", "words,chars"], la.Combined(la.Words(5), la.Chars(5))),
        (
            ["--features", "chars,words", "--ngram", "1,2", "--stop-words", "english"],
            la.Combined(la.Words((1, 2), stopwords="english"), la.Chars(5)),
        ),
    ]:
        printed(capsys, "sign", corpus, "-o", "signed.lookalike", *options)
        signer: Any = la.load_signer("signed.lookalike")
        assert signer.features == features
        found = printed(capsys, "dedup", corpus, "--against", "signed.lookalike", *options)
        assert found["counts"]["kept"] == 0
        like = ["sign", corpus, "-o", "more.lookalike", "--like", "x", *options]
        assert "does nothing with --like" in refused(like, capsys)


def test_compare_says_how_much_of_each_is_in_the_other(
    corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    two = ["compare", "--in", corpus, "a", "b"]
    found = printed(capsys, *two)
    assert {each["measure"] for each in found["methods"]} == {"jaccard", "cosine"}
    part = la.jaccard(PART, WHOLE, la.Words(5))
    assert found["containment"] == {
        "exact": 1.0, "of_a": 1.0, "of_b": pytest.approx(part), "unit": "word 5-grams"
    }  # fmt: skip
    for measure in ("jaccard", "cosine", "containment"):
        found = printed(capsys, *two, "--measure", measure)
        assert {each["measure"] for each in found["methods"]} == {measure} - {"containment"}
        assert (found["containment"] is None) == (measure != "containment")
    found = printed(capsys, *two, "--features", "chars", "--ngram", "4")
    assert {each["unit"] for each in found["methods"]} == {"character 4-grams"}
    assert found["methods"][0]["exact"] == la.jaccard(PART, WHOLE, la.Chars(4))
    sizes = [found["shingles"]["shared"] + found["shingles"][only] for only in ("only_a", "only_b")]
    assert sizes == [len({text[at : at + 4] for at in range(len(text) - 3)}) for text in TEXTS[:2]]
    found = printed(capsys, *two, "--features", "words,chars", "--ngram", "1,2")
    both = la.Combined(la.Words((1, 2)), la.Chars(5))
    assert found["methods"][0]["exact"] == la.jaccard(PART, WHOLE, both)
    assert found["methods"][0]["unit"] == "words and word 2-grams and character 5-grams"
    assert found["methods"][1]["exact"] == la.cosine(
        PART, WHOLE, la.Combined(la.Words(3), la.Chars(5))
    )
    assert found["shingles"]["shared"] == both.counts([PART], distinct=True)[0]
    found = printed(capsys, *two, "--stop-words", "stop.txt", "--ngram", "1")
    kind = la.Words(1, stopwords=["the", "of"])
    assert found["methods"][0]["exact"] == la.jaccard(PART, WHOLE, kind)
    assert main([*two, "--measure", "containment", "--no-diff"]) == 0
    out = capsys.readouterr().out
    assert "Containment of word 5-grams 1.0000" in " ".join(out.split())
    assert f"100.0% of the first, {part:.1%} of the second are in both" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stop-words", "nowhere.txt"], "or a file with one word per line"),
        (["--features", "chars", "--stop-words", "english"], "--stop-words does not go with char"),
        (["--features", "chars", "--stem", "english"], "--stem does not go with characters"),
        (["--stem", "klingon"], "expected one of:"),
        (["--features", "word"], "or several with commas; did you mean 'words'?"),
        (["--features", "words,"], "--features is 'words,'; expected one of: words, chars"),
        (["--features", "words,words"], "expected each but once"),
        (["--ngram", "1,x"], "--ngram/--ngram-size/--ngram_size is '1,x'; expected a whole number"),
        (["--ngram", "1,0"], "--ngram is 0; expected"),
        (["--measure", "cosine"], "choose the method simhash or topsig, or --exact"),
        (["--measure", "jaccard", "--method", "topsig"], "choose the method minhash, or --exact"),
        (["--measure", "containment", "--no-verify"], "leave one of them out"),
        (
            ["--measure", "containment", "--method", "simhash", "--radius", "3"],
            "leave one of them out",
        ),
        (["--measure", "containment", "--against", "s.lookalike"], "has only signatures"),
    ],
)
def test_what_does_not_go_together_is_refused(
    options: list[str], message: str, corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(["dedup", corpus, *options], capsys)


def test_stop_words_that_are_no_text_are_named(
    corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("binary").write_bytes(b"\xff\xfe\x00")
    assert main(["dedup", corpus, "--stop-words", "binary"]) == 1
    assert "it is not UTF-8 text" in capsys.readouterr().err


def test_dedup_says_which_features_it_chose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["Garden hose, green, heavy duty, 20 m", "garden hose gren heavy duty, 20 m"]
    Path("lines.txt").write_text("\n".join([*lines, "Garden hose, green, heavy duty, 30 m"]))
    reason = "100% of the documents have at most 120 characters"
    found = printed(capsys, "dedup", "lines.txt")
    assert found["settings"]["features"] == "short" and found["features_reason"] == reason
    assert (found["counts"]["kept"], found["counts"]["short_documents"]) == (2, 3)
    assert main(["dedup", "lines.txt", "--dry-run", "-o", "out.txt"]) == 0
    assert f"features                  short  {reason}" in capsys.readouterr().out
    for options in (["--features", "words"], ["--ngram", "5"], ["--method", "simhash"]):
        found = printed(capsys, "dedup", "lines.txt", *options)
        assert found["settings"]["features"] == "words" and found["features_reason"] is None
    signed = printed(capsys, "sign", "lines.txt", "-o", "lines.lookalike")
    assert signed["signer"]["features"] == la.ShortText().to_dict()
    assert signed["features_reason"] == reason
    found = printed(capsys, "dedup", "lines.txt", "--against", "lines.lookalike")
    assert found["settings"]["features"] == "short" and found["counts"]["kept"] == 0
    assert main(["sign", "lines.txt", "-o", "lines.npy"]) == 0
    said = f"  character 3-grams (numbers and codes equal) (--features short): {reason}\n"
    assert said in capsys.readouterr().out
    for options in (["--features", "words"], ["--ngram", "5"]):
        found = printed(capsys, "sign", "lines.txt", "-o", "words.lookalike", *options)
        assert found["signer"]["features"] == la.Words(5).to_dict()
        assert found["features_reason"] is None
    found = printed(capsys, "dedup", "lines.txt", "--against", "words.lookalike")
    assert found["settings"]["features"] == "words" and found["counts"]["kept"] == 0


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.sampled_from([0, 1, 40, 119, 120, 121, 400]), min_size=1, max_size=25),
    letter=st.sampled_from("aé漢😀"),
)
def test_sign_chooses_the_features_that_dedup_chooses(
    lengths: list[int], letter: str, tmp_path: Path
) -> None:
    texts = [(letter + " ") * (length // 2) + letter * (length % 2) for length in lengths]
    source = tmp_path / "lines.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    with redirect_stdout(StringIO()) as said:
        assert main(["sign", str(source), "-o", str(tmp_path / "signed.lookalike"), "--json"]) == 0
    told, result = json.loads(said.getvalue()), la.dedup(source)
    saved = la.load_signatures(tmp_path / "signed.lookalike")
    assert saved.signer == result.settings.signer()
    assert told["features_reason"] == result.features_reason
    assert saved.ids is not None
    expected = saved.signer.sign(texts)[[int(id) for id in saved.ids]]
    assert saved.signatures.tolist() == expected.tolist()
