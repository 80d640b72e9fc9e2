"""JSON Lines as the core reads them: what it takes is right, and it takes all that is plain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike import _native
from lookalike.corpora import Problems, open_corpus
from lookalike.corpora.formats import json_lines

KEYS = ["text", "id", "größe"]

characters = st.characters(codec="utf-8", exclude_characters="\0")  # that escape is not plain
strings = st.one_of(
    st.text(characters, max_size=40),
    st.text('ab"\\/\b\f\n\r\t\x01\x1f\x7fé漢😀\u2028', max_size=80),
    st.text("abcdefghij ", min_size=20, max_size=200),
)
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(10**17), 10**17), strings,
        st.floats(-1e20, 1e20).filter(lambda value: "e-" not in repr(value)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(characters, max_size=8), inner, max_size=4),
    ),
    max_leaves=8,
)  # fmt: skip
wanted = st.one_of(st.none(), st.booleans(), st.integers(-(10**17), 10**17), strings)
plain_objects = st.builds(
    lambda some, others: {**others, **some},
    st.dictionaries(st.sampled_from(KEYS), wanted, max_size=3),
    st.dictionaries(strings, values, max_size=3),
)
any_objects = st.dictionaries(st.one_of(st.sampled_from(KEYS), strings), values, max_size=4)


def found(
    lines: list[bytes], keys: list[str] = KEYS, threads: int = 1
) -> list[list[str | None]] | None:
    """Return the values the core finds, line by line."""
    data = np.frombuffer(b"".join(lines), np.uint8)
    columns = _native.json_columns(data, _native.line_ends(data), keys, threads)
    if columns is None:
        return None
    rows: list[list[str | None]] = [[] for _ in lines]
    for text, offsets, present in columns:
        assert len(offsets) == len(lines) + 1
        for at, row in enumerate(rows):
            there = present is None or present[at]
            row.append(text[offsets[at] : offsets[at + 1]].tobytes().decode() if there else None)
    return rows


def expected(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def dump(value: Any, ascii_only: bool, spaces: str, end: str) -> bytes:
    text = json.dumps(value, ensure_ascii=ascii_only, separators=(f"{spaces},", f"{spaces}:"))
    return f"{spaces}{text}{spaces}{end}".encode()


def is_plain_key(key: str, *, ascii_only: bool) -> bool:
    """Keys that are written with escapes are not plain."""
    return json.dumps(key, ensure_ascii=ascii_only) == f'"{key}"'


forms = st.tuples(st.booleans(), st.sampled_from(["", " ", "\t "]), st.sampled_from(["\n", "\r\n"]))


@given(st.binary(max_size=60).map(lambda data: data.replace(b"x", b"\n")))
def test_line_ends(data: bytes) -> None:
    lines = data.split(b"\n")
    lengths = [len(line) + 1 for line in lines[:-1]] + ([len(lines[-1])] if lines[-1] else [])
    ends = _native.line_ends(np.frombuffer(data, np.uint8))
    assert ends.tolist() == np.cumsum(lengths, dtype=int).tolist()


@given(st.lists(plain_objects, max_size=8), forms, st.sampled_from([1, 3]))
def test_plain_objects_are_read(
    objects: list[dict[str, Any]], form: tuple[bool, str, str], threads: int
) -> None:
    objects = [
        {key: value for key, value in each.items() if is_plain_key(key, ascii_only=form[0])}
        for each in objects
    ]
    assert found([dump(each, *form) for each in objects], threads=threads) == [
        [expected(each.get(key)) for key in KEYS] for each in objects
    ]


@given(any_objects, forms, st.data())
def test_what_is_taken_is_json_and_right(
    value: dict[str, Any], form: tuple[bool, str, str], data: st.DataObject
) -> None:
    """Bytes are changed; the core must not take what Python's parser refuses, or read it else."""
    line = bytearray(dump(value, *form).rstrip(b"\n"))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(line)))
        line[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", b'"', b"\\", b"{", b"}", b",", b"0", b"-", b".", b"e9", b"\xff",
                             b"\xc3", b"\x00", b"\\u12", b"\\ud83d", b"\\u0041", b"[", b"]", b"tru",
                             b'"text":', b" "])
        )  # fmt: skip
    rows = found([bytes(line) + b"\n"])
    if rows is None:
        return
    pairs: list[tuple[str, Any]] = []

    def last(members: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = members
        return dict(members)

    again = json.loads(bytes(line).decode(), object_pairs_hook=last)
    assert isinstance(again, dict)
    assert rows == [[expected(again.get(key)) for key in KEYS]]
    for key in KEYS:
        assert sum(name == key for name, _ in pairs) <= 1


@pytest.mark.parametrize(
    "line",
    [
        " \n", "[1]", "1", '"text"', "null", "{", "}", "{}x", "{} {}", '{"text"}',
        '{"text":}', '{"text":"a",}', '{,}', '{"text":"a" "id":"b"}', "{'text':'a'}",
        '{"text":"a"', '{"text":"a\n"}', '{"text":"\x1f"}', '{"text":"\\x"}', '{"text":"\\u12g4"}',
        '{"text":"\\ud800"}', '{"text":"\\udc00"}', '{"text":"\\ud800\\u0041"}',
        '{"text":"\\u0000"}', '{"text":"a","text":"b"}', '{"text":null,"text":"b"}',
        '{"te\\u0078t":"a"}', '{"text":1.5}', '{"text":[1]}', '{"text":{"a":1}}', '{"text":-0}',
        '{"text":01}', '{"text":1234567890123456789}', '{"text":+1}', '{"text":NaN}',
        '{"x":01}', '{"x":1.}', '{"x":.5}', '{"x":1e}', '{"x":1e+}', '{"x":1e400}', '{"x":-}',
        '{"x":NaN}', '{"x":tru}', '{"x":[1,]}', '{"x":[1 2]}', '{"x":{"a" 1}}', '{"x":[}',
        '{"x":' + "[" * 100 + "]" * 100 + "}",
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_others(line: str) -> None:
    assert found([line.encode()]) is None
    assert found([b'{"text":"a"}\n', line.encode()]) is None


@pytest.mark.parametrize(
    "bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf5\x80\x80\x80"]
)
def test_what_is_not_utf_8_is_left_to_others(bad: bytes) -> None:
    assert found([b'{"text":"' + bad + b'"}']) is None
    assert found([b'{"x":"' + bad + b'"}']) is None
    assert found([b"{" + bad + b"}"]) is None


def test_escapes() -> None:
    line = rb'{"text":"\"\\\/\b\f\n\r\t\u00e9\u6f22\ud83d\ude00\uD83D\uDE00\u007f"}'
    rows = found([line], ["text"])
    assert rows == [['"\\/\b\f\n\r\té漢😀😀\x7f']]


@settings(max_examples=40)
@given(st.lists(st.one_of(any_objects, values), max_size=6), forms)
def test_the_core_and_duckdb_agree(
    tmp_path_factory: pytest.TempPathFactory, objects: list[Any], form: tuple[bool, str, str]
) -> None:
    path: Path = tmp_path_factory.mktemp("json") / "some.jsonl"
    path.write_bytes(b"".join(dump(each, *form) for each in objects))

    def read() -> list[Any]:
        corpus = open_corpus(path)
        rows = corpus.read(KEYS, Problems(skip_bad=True))
        return [batch.to_pydict() for batch in rows if len(batch)]

    by_core = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "_plain_values", lambda *arguments: None)
        assert read() == by_core


@settings(max_examples=100)
@given(st.dictionaries(strings, values, max_size=4), st.booleans(), st.integers(1, 4))
def test_what_is_cut_off_below_a_depth(value: dict[str, Any], ascii: bool, most: int) -> None:
    def cut(value: Any, levels: int) -> Any:
        if not isinstance(value, dict | list):
            return value
        if not levels:
            return ""
        if isinstance(value, list):
            return [cut(one, levels - 1) for one in value]
        return {key: cut(one, levels - 1) for key, one in value.items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "_MOST_LEVELS", most)
        shallow = json_lines.cut_nesting(json.dumps(value, ensure_ascii=ascii))
    assert json.loads(shallow) == cut(value, most)
