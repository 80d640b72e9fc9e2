"""Text from elsewhere, as it may be shown: ids, texts, names of columns and files.

Whoever made a corpus chose what is in it. Control characters move the cursor, change colors and
answer for the person at the terminal; others turn the direction of writing, so that a name reads as
another. Here they become escapes, such as \\x1b or \\u202e. Nothing else in the package prints what
it has not made itself, nor puts it into a message.
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
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # seen by machines only
    "\ud800-\udfff"  # halves of characters, which no terminal can be sent
)
_CONTROLS = re.compile(f"[\x00-\x1f{_INVISIBLE}]")
_CONTROLS_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_INVISIBLE}]")
_CONTROLS_OF_JSON = re.compile(f"[{_INVISIBLE}]")  # it escapes the others by itself


def escape_terminal(text: object, most: int | None = None) -> str:
    """Return what is safe to show, on one line.

    Of more than `most` characters the middle is left out. What is shown already stays as it is.
    """
    line = _CONTROLS.sub(_escape, _ends(str(text), most))
    return line if most is None or len(line) <= most else _ends(line, most)


def shown_lines(text: object) -> str:
    """Return what is safe to show, on as many lines as the text has; tabs stay, too."""
    return _CONTROLS_IN_LINES.sub(_escape, str(text).replace("\r\n", "\n"))


def shown_json(value: Any) -> str:
    """Return a value as JSON that is safe to show; whoever reads it gets the value as it is."""
    text = json.dumps(value, ensure_ascii=False)
    return _CONTROLS_OF_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)


def brief(value: object) -> str:
    """Return a value as an error message shows it: never long, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # numbers of more than 4300 digits have none, and what else there may be
        return f"something of type {type(value).__name__} that cannot be shown"
    return escape_terminal(text, _MOST_OF_A_VALUE)


def counted(count: int, noun: str, nouns: str | None = None) -> str:
    """Return how many of what: 1 pair, 2,000 pairs."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def _ends(text: str, most: int | None) -> str:
    """Return the beginning and the end of a text that is too long."""
    if most is None or len(text) <= most:
        return text
    tail = (most - len(_LEFT_OUT)) // 2
    return text[: most - len(_LEFT_OUT) - tail] + _LEFT_OUT + text[len(text) - tail :]


def _escape(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]
