"""Text from elsewhere as it is shown."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from lookalike.errors import ArgumentError, BatchError, ItemError, MissingDependencyError
from lookalike.shown import escape_json, escape_lines, escape_terminal

ANY_TEXT = st.text(st.characters(codec=None), max_size=60)


def is_harmless(character: str) -> bool:
    """Slowly and obviously: nothing that controls, turns, ends lines or is half a character."""
    kind = unicodedata.category(character)
    turns = unicodedata.bidirectional(character) in (
        *("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"),
        "B",
    )
    marks = character in "\u061c\u200e\u200f"
    return kind not in ("Cc", "Cs", "Zl", "Zp") and not turns and not marks


@given(ANY_TEXT)
def test_nothing_harmful_is_shown_and_the_harmless_stays(text: str) -> None:
    line = escape_terminal(text)
    assert all(map(is_harmless, line))
    assert escape_terminal(line) == line
    assert all(character in "\n\t" or is_harmless(character) for character in escape_lines(text))
    if all(map(is_harmless, text)) and "\ufeff" not in text:
        assert line == escape_lines(text) == text or any(
            0xFFF9 <= ord(one) <= 0xFFFB or 0xE0000 <= ord(one) <= 0xE007F for one in text
        )


@given(st.recursive(ANY_TEXT | st.integers() | st.none(), st.lists, max_leaves=5))
def test_json_reads_back_as_it_was(value: object) -> None:
    text = escape_json({"key": value})
    assert all(map(is_harmless, text))
    text.encode()
    back = json.loads(text)["key"]
    if isinstance(value, str):  # two halves side by side are one character to every reader
        value = json.loads(json.dumps(value))
        assert back == value
    else:
        assert back == json.loads(json.dumps(value))


def test_every_control_character_is_escaped() -> None:
    controls = [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, 0x2028, 0x2029]
    controls += [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xD800, 0xDFFF, 0xFEFF, 0xE0041]
    for code in controls:
        assert escape_terminal(chr(code)).isascii() and escape_terminal(chr(code))[0] == "\\", hex(
            code
        )
    assert escape_terminal("\x1b[31m") == "\\x1b[31m"
    assert (
        escape_terminal("caf\u00e9 \u65e5\u672c \u0939\u200d\u0902")
        == "caf\u00e9 \u65e5\u672c \u0939\u200d\u0902"
    )
    assert escape_lines("one\r\ntwo\tthree\rfour") == "one\ntwo\tthree\\rfour"


@given(ANY_TEXT, st.integers(10, 40))
def test_the_middle_of_long_text_is_left_out(text: str, most: int) -> None:
    line = escape_terminal(text, most)
    assert len(line) <= most
    if len(escape_terminal(text)) <= most:
        assert line == escape_terminal(text)
    assert escape_terminal("abcdefghijklmnop", 9) == "abc...nop"


def test_messages_of_errors_are_harmless_and_short() -> None:
    hostile = "\x1b]0;owned\x07\u202e\n\ud800"
    for error in (
        ArgumentError(f"the id is {hostile}; expected another"),
        MissingDependencyError(f"{hostile} is missing"),
        BatchError([ItemError(0, "x", hostile)], 1),
    ):
        assert all(map(is_harmless, str(error)))
    assert hostile in ArgumentError(hostile).args[0]  # for machines, as it is
    long = str(ArgumentError(f"the id is {'x' * 1_000_000}; expected a short one"))
    assert len(long) <= 2000 and long.startswith("the id is x")
    assert long.endswith("expected a short one")
