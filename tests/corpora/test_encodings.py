"""Text in other encodings than UTF-8: the same documents as of its twin in UTF-8."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import json
import lzma
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.corpora import Problems, open_corpus, write_corpus
from lookalike.corpora import encodings as module
from lookalike.corpora.encodings import Encodings, TextStream, check_encoding, detect, utf8_of
from lookalike.corpora.formats import json_array, lines
from lookalike.corpora.opening import read_text
from lookalike.corpora.standard_input import open_standard_input

SENTENCES = {
    "western": [
        "Die Straße führt über die Brücke zum großen Schloß",
        "L'été dernier nous avons visité le château où mon père était né",
        "El niño comió piñas y después salió corriendo hacia el río",
        "Får får får, nej får får lamm över ån på en ö",
    ],
    "japanese": [
        "吾輩は猫である。名前はまだ無い。",
        "どこで生れたかとんと見当がつかぬ。",
        "何でも薄暗いじめじめした所でニャーニャー泣いていた事だけは記憶している。",
    ],
    "chinese": [
        "人民的生活水平有了很大的提高，我们应该继续努力工作。",
        "學而時習之，不亦說乎？有朋自遠方來，不亦樂乎？",
        "今天天气很好，我们一起去公园散步吧。",
    ],
    "russian": [
        "Все счастливые семьи похожи друг на друга",
        "каждая несчастливая семья несчастлива по-своему",
        "Всё смешалось в доме Облонских",
    ],
}
LANGUAGES = {
    "latin-1": "western",
    "cp1252": "western",
    "utf-16": "western",
    "shift_jis": "japanese",
    "gb18030": "chinese",
    "koi8-r": "russian",
}
FORMATS = ("txt", "csv", "tsv", "jsonl", "json", "folder")


def documents(language: str, count: int = 24) -> list[str]:
    """Return texts, of which some are equal and some nearly so."""
    draw = random.Random(0)
    sentences = SENTENCES[language]
    made = [" ".join(draw.choices(sentences, k=4)) + f" {number}" for number in range(count // 2)]
    return [*made, *(text + " x" for text in made[: count // 4]), *made[: count // 4]]


def write(folder: Path, kind: str, texts: Sequence[str], encoding: str) -> Path:
    """Write a corpus in a format and an encoding."""
    path = folder / f"{encoding}.{kind}"
    if kind == "folder":
        path.mkdir()
        for number, text in enumerate(texts):
            (path / f"{number:04}.md").write_bytes(text.encode(encoding))
        return path
    rows = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    if kind == "txt":
        content = "".join(f"{text}\n" for text in texts)
    elif kind == "jsonl":
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    elif kind == "json":
        content = json.dumps(rows, ensure_ascii=False)
    else:
        delimiter = "\t" if kind == "tsv" else ","
        content = f"id{delimiter}text\n"
        content += "".join(f'{row["id"]}{delimiter}"{row["text"]}"\n' for row in rows)
    path.write_bytes(content.encode(encoding))
    return path


def texts_of(path: Path, problems: Problems | None = None, **options: Any) -> list[str]:
    corpus = open_corpus(path, **options)
    batches = corpus.read(["text"], Problems() if problems is None else problems)
    return [text for batch in batches for text in batch.column(0).to_pylist()]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("encoding", LANGUAGES)
@pytest.mark.parametrize("told", [True, False], ids=["given", "detected"])
def test_kept_documents_are_those_of_the_twin(
    tmp_path: Path, kind: str, encoding: str, told: bool
) -> None:
    texts = documents(LANGUAGES[encoding])
    twin, other = (write(tmp_path, kind, texts, name) for name in ("utf-8", encoding))
    expected = la.dedup(twin)
    given_name = encoding if told else None
    result = la.dedup(other, encoding=given_name, threads=1 if told else 2)
    assert result.keep.tolist() == expected.keep.tolist()
    assert [result.text(row) for row in range(len(texts))] == texts
    marked = encoding == "utf-16"  # written with a byte order mark, which is certain
    assert bool(result.warnings) is not (told or marked)
    assert all("detected" in warning for warning in result.warnings)
    assert 0 < expected.counts.kept < len(texts)
    if kind == "folder":
        result.write(tmp_path / "kept")
        for copy in (tmp_path / "kept").iterdir():
            assert copy.read_bytes() == (other / copy.name).read_bytes()
        return
    result.write(tmp_path / f"kept.{kind}")
    expected.write(tmp_path / f"twin.{kind}")
    as_utf8 = (tmp_path / f"twin.{kind}").read_text("utf-8")
    assert (tmp_path / f"kept.{kind}").read_bytes().decode(encoding) == as_utf8
    assert (tmp_path / f"kept.{kind}").read_bytes() == as_utf8.encode(encoding)
    # A table in another format is what that format has: UTF-8.
    target = "csv" if kind != "csv" else "jsonl"
    if kind != "txt":
        result.write(tmp_path / f"other.{target}")
        expected.write(tmp_path / f"twin-other.{target}")
        assert (tmp_path / f"other.{target}").read_bytes() == (
            tmp_path / f"twin-other.{target}"
        ).read_bytes()


def words_in(encoding: str) -> st.SearchStrategy[str]:
    """Return texts of letters that an encoding has, and that come back as they were."""
    letters = []
    for code in [
        *range(0x20, 0x7F),
        *range(0xA1, 0x600),
        *range(0x3041, 0x3100),
        *range(0x4E00, 0x4F80),
    ]:
        letter = chr(code)
        try:
            if letter not in '"\\~' and letter.encode(encoding).decode(encoding) == letter:
                letters.append(letter)
        except UnicodeError:
            continue
    return st.text(st.sampled_from(letters), min_size=1, max_size=30).map(str.strip).filter(bool)


@pytest.mark.parametrize("encoding", [*LANGUAGES, "utf-16-be", "utf-32", "big5", "euc_kr", "cp866"])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_an_encoding_that_is_given(
    tmp_path_factory: pytest.TempPathFactory, encoding: str, data: st.DataObject
) -> None:
    """Any text comes through every format, whatever the sizes of pieces are."""
    texts = data.draw(st.lists(words_in(encoding), min_size=1, max_size=6))
    size = data.draw(st.sampled_from([1, 2, 5, 64, 1 << 16]))
    kind, packed = data.draw(st.sampled_from(FORMATS)), data.draw(st.booleans())
    folder = tmp_path_factory.mktemp("given")
    with pytest.MonkeyPatch.context() as patch:
        for where in (lines, json_array):
            patch.setattr(where, "BATCH_BYTES", size)
        patch.setattr(module, "_PIECE", max(4, size))
        path = write(folder, kind, texts, encoding)
        if packed and kind != "folder":
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
            path = path.with_name(path.name + ".gz")
        assert texts_of(path, encoding=encoding) == texts


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    encoding=st.sampled_from(["utf-8", *LANGUAGES]),
    before=st.integers(0, 300),
)
def test_detection_does_not_depend_on_pieces(
    data: st.DataObject, encoding: str, before: int
) -> None:
    """Neither on what a stream hands out at a time, nor on what is asked of it."""
    language = LANGUAGES.get(encoding, "western")
    text = "a" * before + "\n" + "\n".join(documents(language, 8))
    raw = text.encode(encoding)
    results = set()
    for size in (1 << 20, *data.draw(st.lists(st.integers(1, 400), min_size=2, max_size=2))):
        stream = TextStream(_Dripping(raw, size), None)
        made = bytearray()
        asked = data.draw(st.integers(1, 500))
        while part := stream.read(asked):
            made += part
        results.add((bytes(made).removeprefix(codecs.BOM_UTF8), stream.encoding))
    ((found, name),) = results
    assert found.decode() == text, name


class _Dripping(io.BytesIO):
    """A stream that hands out a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._size = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(self._size, size if size and size > 0 else self._size))

    def readinto(self, buffer: Any) -> int:
        return super().readinto(memoryview(buffer)[: self._size])


@given(st.text())
def test_valid_utf8_is_utf8(text: str) -> None:
    data = text.encode()
    assert detect(data) == "utf-8"
    if "\0" not in text and not data.startswith(codecs.BOM_UTF8):
        assert utf8_of(data, None) == (data, "ascii" if text.isascii() else "utf-8")


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """Bytes are text in UTF-8, or refused; the same bytes always in the same way."""
    try:
        text, name = utf8_of(data, None)
    except module.NotText as error:
        assert str(error)
        return
    text.decode()
    assert (text, name) == utf8_of(data, None)
    if not module.marked(data):
        assert data.decode(name).encode() == text


def test_marks_decide_first(tmp_path: Path) -> None:
    text = "Die Straße führt über die Brücke\n"
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        path = tmp_path / f"{encoding}.txt"
        path.write_bytes(text.encode(encoding))
        for given_name in (None, "latin-1"):
            assert texts_of(path, encoding=given_name) == [text.strip()]
            assert texts_of(path, format="files", encoding=given_name) == [text]
            assert read_text(path, 1000, given_name) == text
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):  # two letters tell
        path = tmp_path / f"{encoding}.txt"
        path.write_bytes(text.encode(encoding))
        assert texts_of(path) == [text.strip()]
        assert texts_of(path, format="files") == [text]


@pytest.mark.parametrize("name", ["utf-16", "utf-32"])
def test_wide_text_without_a_mark(tmp_path: Path, name: str) -> None:
    """A wide encoding that is given by its general name needs no mark."""
    for text in ("吾輩は猫である\n名前はまだ無い\n吾輩は猫である\n", "one two\nthree\none two\n"):
        kept = "".join(text.splitlines(keepends=True)[:2])
        for end in ("-le", "-be") if text.isascii() else ("-le",):
            path, output = tmp_path / "a.txt", tmp_path / "o.txt"
            path.write_bytes(text.encode(name + end))
            assert texts_of(path, encoding=name) == text.splitlines()
            assert texts_of(path, format="files", encoding=name) == [text]
            assert read_text(path, 1000, name) == text
            result = la.dedup(path, encoding=name)
            assert result.warnings == []
            result.write(output)
            assert output.read_bytes() == kept.encode(name + end)
            output.unlink()


@pytest.mark.parametrize("sign", "€…•–—™¢£¥§©«®°±·»½×")
def test_signs_that_stand_alone(tmp_path: Path, sign: str) -> None:
    """English text may have no other character than ASCII but in its copyright line."""
    text = (
        f"All rights reserved.\nCopyright {sign} 2003 by the authors\nIt is {sign}5 or 5 {sign}\n"
    )
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode("cp1252"))
    assert texts_of(path) == text.splitlines()
    assert texts_of(path, format="files") == [text]
    for stray in (b"\xff", b"\x81", sign.encode("cp1252") + b" \xff"):
        path.write_bytes(b"Copyright " + stray + b" 2003\n")
        with pytest.raises(la.errors.DocumentError, match="encoding"):
            texts_of(path)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1251", "shift_jis"])
def test_json_escapes_what_an_encoding_does_not_have(tmp_path: Path, encoding: str) -> None:
    """An escaped character of the input can be written again, in the encoding of the input."""
    letter = {"latin-1": "ß", "cp1251": "ж", "shift_jis": "猫"}[encoding]
    rows = [{"text": f"{letter} ħ 😀 \\ end"}, {"text": f"other {letter}"}]
    content = json.dumps(rows, ensure_ascii=False).replace("ħ 😀", "\\u0127 \\ud83d\\ude00")
    path, output = tmp_path / "a.json", tmp_path / "o.json"
    path.write_bytes(content.encode(encoding))
    result = la.dedup(path, encoding=encoding)
    assert [result.text(row) for row in (0, 1)] == [row["text"] for row in rows]
    result.write(output)
    assert json.loads(output.read_bytes().decode(encoding)) == rows


def test_a_mark_is_not_a_guess(tmp_path: Path) -> None:
    """No warning asks for the name of an encoding that a byte order mark tells."""
    text = "Die Straße führt über die Brücke"
    for name, content in {
        "a.txt": text,
        "a.jsonl": json.dumps({"text": text}),
        "a.json": json.dumps([{"text": text}]),
        "a.csv": f"id,text\n1,{text}\n",
    }.items():
        path = tmp_path / name
        for encoding in ("utf-16", "utf-32", "utf-8-sig"):
            path.write_bytes(content.encode(encoding))
            assert la.dedup(str(path)).warnings == []
            assert la.dedup(str(path), format="files").warnings == []
        path.write_bytes(content.encode("utf-16-le"))
        for format in (None, "files"):
            (warning,) = la.dedup(str(path), format=format).warnings
            assert "read as utf-16-le, which was detected" in warning


def test_utf8_that_another_encoding_was_given_for(tmp_path: Path) -> None:
    """An encoding counts for all files, also for those that are UTF-8: a warning names them."""
    text = "Die Straße führt über die Brücke"
    for name, content in {
        "a.txt": text,
        "a.jsonl": json.dumps({"text": text}, ensure_ascii=False),
        "a.json": json.dumps([{"text": text}], ensure_ascii=False),
        "a.csv": f"id,text\n1,{text}\n",
    }.items():
        old, new = tmp_path / f"old-{name}", tmp_path / name
        for given_name in ("latin-1", "cp1251", "gb18030"):
            new.write_bytes(content.encode("latin-1"))
            old.write_bytes(content.encode())
            for format in (None, "files"):
                (warning,) = la.dedup(str(old), format=format, encoding=given_name).warnings
                assert f"old-{name} was read as {check_encoding(given_name)}, as given" in warning
                assert "valid UTF-8" in warning
        assert la.dedup(str(new), encoding="latin-1").warnings == []
        (warning,) = la.dedup(str(new), against=str(old), encoding="latin-1").warnings
        assert f"old-{name} was" in warning
        result = la.dedup(str(new), against=str(old))
        assert result.counts.kept == 0 and "read as cp1252" in result.warnings[0]


def test_the_first_other_character_comes_late(tmp_path: Path) -> None:
    """Of a large file, nearly all ASCII: every row is read, none is bad."""
    path = tmp_path / "late.csv"
    rows = [f"{number},an ordinary sentence of row {number}" for number in range(50_000)]
    rows[49_000:] = [f"{number},im Café über der Straße" for number in range(49_000, 50_000)]
    path.write_bytes(("id,text\n" + "\n".join(rows) + "\n").encode("cp1252"))
    assert path.stat().st_size > 1 << 20
    problems = Problems()
    assert texts_of(path, problems) == [row.partition(",")[2] for row in rows]
    (notice,) = problems.notices()
    assert "late.csv was read as cp1252" in notice and "--encoding" in notice


def test_rows_that_are_not_in_the_encoding(tmp_path: Path) -> None:
    """They are bad rows, by the lines they are in; the error says the word encoding."""
    good = ["Grüße aus der Straße", "über die Brücke", "für die Gäste"]
    for name, content in {
        "a.txt": "\n".join([*good, "?", "zwölf"]) + "\n",
        "a.csv": "id,text\n" + "".join(f"1,{text}\n" for text in [*good, "?", "zwölf"]),
        "a.jsonl": "".join(
            json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in [*good, "?", "zwölf"]
        ),
    }.items():
        path = tmp_path / name
        path.write_bytes(content.encode().replace(b"?", b"caf\xe9"))  # not all, but most is UTF-8
        line = 5 if name == "a.csv" else 4
        with pytest.raises(la.errors.DocumentError, match=rf"line {line}: .*encoding"):
            texts_of(path)
        problems = Problems(skip_bad=True)
        assert texts_of(path, problems) == [*good, "zwölf"]
        assert problems.bad == 1
    path = tmp_path / "j.txt"
    lines_of = "\n".join(SENTENCES["japanese"]).encode("shift_jis")
    path.write_bytes(lines_of + b"\nab\xff\xffcd\nmore\n")
    with pytest.raises(la.errors.DocumentError, match="line 4: is not valid shift_jis"):
        texts_of(path, encoding="shift_jis")
    problems = Problems(skip_bad=True)
    assert texts_of(path, problems, encoding="shift_jis") == [*SENTENCES["japanese"], "more"]
    with pytest.raises(la.errors.FileError, match="encoding"):
        bad = tmp_path / "b.json"
        bad.write_bytes('[{"text": "ü ö ä"}, {"text": "'.encode() + b'\xff"}]')
        texts_of(bad)


def test_every_file_left_out_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number:02}.bin").write_bytes(b"\x89PNG\0" + bytes([number]))
    (folder / "a.md").write_text("one document in words")
    (folder / "b.md").write_bytes("über die Brücke".encode("cp1252"))
    (folder / "broken.md").write_bytes("über die Brücke ".encode() * 9 + b"\xff")
    result = la.dedup(folder)
    assert result.counts.documents == 2
    assert (result.counts.binary_files, result.counts.left_out) == (30, 1)
    named = [text.partition(": ")[0] for text in result.to_dict()["files_left_out"]]
    assert named == [str(folder / f"{number:02}.bin") for number in range(30)] + [
        str(folder / "broken.md")
    ]
    assert len(result.documents.examples) == 10
    report = tmp_path / "report.html"
    result.report(report)
    page = report.read_text()
    assert all(name in page for name in named)
    run = subprocess.run(
        [sys.executable, "-m", "lookalike.cli", "dedup", str(folder), "--quiet"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "warning: 31 rows or files were left out" in run.stderr
    assert run.stderr.count("left out: /") == 10 and "21 more" in run.stderr
    assert "b.md was read as cp1252" in run.stderr


def test_compressed_documents_are_named_as_such(tmp_path: Path) -> None:
    """A man page, say: the reason to leave it out is not a byte that it has."""
    folder = tmp_path / "man"
    folder.mkdir()
    (folder / "a").write_text("some words")
    page = b"a page of the manual " * 9
    packed = {"gzip": gzip.compress(page), "bzip2": bz2.compress(page), "xz": lzma.compress(page)}
    for name, data in packed.items():
        (folder / f"{name}.1").write_bytes(data)
    left_out = la.dedup(folder).to_dict()["files_left_out"]
    for name in packed:
        expected = f"{folder / name}.1: is compressed by {name}; only files of rows are"
        assert any(line.startswith(expected) for line in left_out)
    with pytest.raises(la.errors.DocumentError, match=r"is compressed by gzip.*decompress it"):
        la.dedup(folder / "gzip.1")


def test_a_work_folder_knows_the_encoding(tmp_path: Path) -> None:
    """Texts read under another encoding are not taken again; what is written stays the same."""
    path = tmp_path / "c.txt"
    texts = documents("western")
    path.write_bytes("\n".join(texts).encode("cp1252") + b"\n")
    outputs = []
    for _ in range(2):
        result = la.dedup(path, work=tmp_path / "work")
        assert result.text(0) == texts[0] and "cp1252" in result.warnings[0]
        result.write(tmp_path / "out.txt")
        outputs.append((tmp_path / "out.txt").read_bytes())
    assert "read" in result.reused
    assert outputs[0] == outputs[1]
    other = la.dedup(path, work=tmp_path / "work", encoding="cp1251")
    assert other.text(0) == texts[0].encode("cp1252").decode("cp1251")
    assert "read" not in other.reused


def test_files_of_several_encodings(tmp_path: Path) -> None:
    """Each file has its own; what is written to one file is UTF-8, a folder keeps each."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for name, language in (("a", "western"), ("b", "russian"), ("c", "japanese")):
        encoding = {"western": "cp1252", "russian": "koi8-r", "japanese": "shift_jis"}[language]
        rows = [{"text": text} for text in documents(language, 8)]
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_bytes(content.encode(encoding))
    corpus = open_corpus(folder)
    every = [*documents("western", 8), *documents("russian", 8), *documents("japanese", 8)]
    problems = Problems()
    found = [text for batch in corpus.read(["text"], problems) for text in batch[0].to_pylist()]
    assert found == every
    assert sorted(problems.encodings) == ["cp1252", "cp932", "koi8_r"]
    write_corpus(corpus, tmp_path / "all.jsonl")
    lines_of = (tmp_path / "all.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines_of] == every
    write_corpus(corpus, tmp_path / "same")
    for file in folder.iterdir():
        assert (tmp_path / "same" / file.name).read_bytes() == file.read_bytes()


def test_in_place_and_streams(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    texts = documents("western")
    path.write_bytes("\n".join(texts).encode("latin-1") + b"\n")
    stream = io.BytesIO()
    result = la.dedup(path)
    result.write(stream)
    result.write(path, in_place=True)
    kept = [text for text, keep in zip(texts, result.keep, strict=True) if keep]
    assert (
        path.read_bytes() == stream.getvalue() == "".join(f"{k}\n" for k in kept).encode("cp1252")
    )
    corpus = open_standard_input(
        io.BytesIO("\n".join(texts).encode("utf-16")), [], [], "text", tmp_path
    )
    assert [
        text for batch in corpus.read(["text"], Problems()) for text in batch[0].to_pylist()
    ] == texts


@pytest.mark.parametrize(
    "name", ["l9", "rot13", "hex", "", 5, "idna", "\ud800", "a\0", "zlib_codec"]
)
def test_names_that_are_not_encodings(name: Any) -> None:
    if name == "l9":
        assert check_encoding(name) == "iso8859-15"
        return
    with pytest.raises(la.errors.ArgumentError, match="not a text encoding"):
        check_encoding(name)


def test_encodings_where_there_is_nothing_to_decode(tmp_path: Path) -> None:
    with pytest.raises(la.errors.ArgumentError, match="in memory"):
        la.dedup(["one text", "another"], encoding="latin-1")
    path = tmp_path / "c.parquet"
    la.dedup([{"text": "one"}]).write(path)
    with pytest.raises(la.errors.ArgumentError, match="declares its own"):
        la.dedup(path, encoding="latin-1")
    assert Encodings("UTF8").given == "utf-8"


def test_pages_have_an_encoding_of_their_own(tmp_path: Path) -> None:
    """A page's meta tag decides, then a guess; an encoding that is given is like its header."""
    pytest.importorskip("resiliparse")
    body = "<p>" + "Все счастливые семьи похожи друг на друга. " * 9
    tag = '<meta charset="koi8-r">'
    (tmp_path / "a.html").write_bytes(f"<html><head>{tag}</head>{body}</html>".encode("koi8-r"))
    (tmp_path / "b.html").write_bytes(f"<html><head></head>{body}</html>".encode("koi8-r"))
    (tmp_path / "c.md").write_bytes(body[3:].encode("koi8-r"))
    for given_name in (None, "koi8-r"):
        found = texts_of(tmp_path, encoding=given_name)
        assert all("счастливые семьи" in text for text in found) and len(found) == 3


def test_the_same_in_every_process() -> None:
    """What is detected depends on no hash seed."""
    program = (
        "from lookalike.corpora.encodings import detect\n"
        "import tests.corpora.test_encodings as t\n"
        "print([detect(' '.join(t.SENTENCES[l]).encode(e)) for e, l in t.LANGUAGES.items()"
        " if e != 'utf-16'])\n"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{Path.cwd()}:tests"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert answers == {"['cp1252', 'cp1252', 'cp932', 'gb18030', 'koi8_r']\n"}


def test_few_bytes_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large a file is, charset-normalizer sees at most 16 KB of it."""
    seen: list[int] = []
    real = module.charset_normalizer.from_bytes

    def counted(data: bytes, **options: Any) -> Any:
        seen.append(len(data))
        return real(data, **options)

    monkeypatch.setattr(module.charset_normalizer, "from_bytes", counted)
    data = ("Das ist die Straße über der Brücke\n" * 100_000).encode("cp1252")
    assert utf8_of(data, None)[1] == "cp1252"
    stream = TextStream(io.BytesIO(data + b"."), None)
    buffer = np.empty(1 << 20, np.uint8)
    while stream.readinto(buffer):
        pass
    assert stream.encoding == "cp1252"
    assert seen and max(seen) <= 1 << 14
