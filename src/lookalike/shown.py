"""Untrusted text (ids, documents, names of columns and files), made safe to show.

Control characters can move the cursor, change colors or send answers to the terminal. Others change
the writing direction, so that one name reads as another. Here they become escapes, such as \\x1b or
\\u202e. Everything that the package prints or puts into a message passes through here.
"""

from __future__ import annotations

import json
import re
from typing import Any

_LEFT_OUT = "..."
_MOST_OF_A_VALUE = 200

_INVISIBLE = (
    "\x7f-\x9f"  # delete, and the controls of eight bits
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of writing
    "\u2028\u2029"  # ends of lines and paragraphs
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # invisible
    "\ud800-\udfff"  # surrogates, which cannot be encoded
)
_CONTROLS = re.compile(f"[\x00-\x1f{_INVISIBLE}]")
_CONTROLS_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_INVISIBLE}]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS_OF_JSON = re.compile(f"[{_INVISIBLE}]")  # it escapes the others by itself


def escape_terminal(text: object, most: int | None = None) -> str:
    """Return a text on one line, safe to show; beyond `most` characters, the middle is cut out."""
    line = _CONTROLS.sub(_escape, _ends(str(text), most))
    return line if most is None or len(line) <= most else _ends(line, most)


def _stand_ins() -> dict[int, str | None]:
    """Return replacements for characters that are invisible or rearrange others."""
    found: dict[int, str | None] = {code: chr(0x2400 + code) for code in range(32)}
    found[0x7F] = "\u2421"
    found |= dict.fromkeys([*range(0x80, 0xA0), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)], "\ufffd")
    orders = [*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xE0000, 0xE0080)]
    found |= {code: f"\u2039U+{code:04X}\u203a" for code in orders}
    found[ord("\r")] = None
    del found[ord("\t")], found[ord("\n")]
    return found


_STAND_INS = _stand_ins()


def visible(text: object) -> str:
    """Return text for HTML, not escaped yet, in which nothing is invisible.

    Control characters become their symbols, marks of the writing direction and other invisible
    characters their code points, and lone surrogates the replacement character.
    """
    return str(text).translate(_STAND_INS)


def without_surrogates(text: str) -> str:
    """Return text that can be encoded: the replacement character for each lone surrogate."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def escape_lines(text: object) -> str:
    """Return a text that is safe to show, with its lines and tabs."""
    return _CONTROLS_IN_LINES.sub(_escape, str(text).replace("\r\n", "\n"))


def escape_json(value: Any) -> str:
    """Return a value as JSON that is safe to show and can be parsed back to the same value."""
    text = json.dumps(value, ensure_ascii=False)
    return _CONTROLS_OF_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)


def brief(value: object) -> str:
    """Return the repr of a value for an error message, shortened if it is long."""
    try:
        text = repr(value)
    except Exception:  # such as an int of more than 4300 digits
        return f"a value of type {type(value).__name__} that cannot be shown"
    return escape_terminal(text, _MOST_OF_A_VALUE)


def counted(count: int, noun: str, nouns: str | None = None) -> str:
    """Return a count with its noun: 1 pair, 2,000 pairs."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def _ends(text: str, most: int | None) -> str:
    """Return the beginning and the end of a text that is too long."""
    if most is None or len(text) <= most:
        return text
    tail = (most - len(_LEFT_OUT)) // 2
    return text[: most - len(_LEFT_OUT) - tail] + _LEFT_OUT + text[len(text) - tail :]


def _escape(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]
