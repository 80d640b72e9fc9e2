"""Writes native/text/unicode_tables.cpp: what the core has to know about each character.

The tables are part of the signature format: they come from one version of Unicode, that of the
Python that runs this, and are the same for every Python that uses them. Run it again only together
with a new format version.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path

TARGET = Path(__file__).parent.parent / "native" / "text" / "unicode_tables.cpp"
BLOCK = 256
OTHER, WORD, ALONE, MARK = range(4)

# Scripts written without spaces, by the names of their characters.
ALONE_PREFIXES = (
    "CJK UNIFIED IDEOGRAPH",
    "CJK COMPATIBILITY IDEOGRAPH",
    "IDEOGRAPHIC",
    "HIRAGANA",
    "KATAKANA",
    "HALFWIDTH KATAKANA",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
)


def classify(character: str) -> int:
    """Say how a character takes part in words."""
    if character.isalnum():
        name = unicodedata.name(character, "")
        return ALONE if name.startswith(ALONE_PREFIXES) else WORD
    return MARK if unicodedata.category(character).startswith("M") else OTHER


def lower(character: str) -> int:
    """Return the code point of the lower-case character; U+0130 alone has two and gets 'i'."""
    return ord(character.lower()[0])


def two_stages(values: list[int]) -> tuple[list[int], list[tuple[int, ...]]]:
    """Cut values into blocks and number the distinct ones."""
    numbers: dict[tuple[int, ...], int] = {}
    first = []
    for start in range(0, len(values), BLOCK):
        block = tuple(values[start : start + BLOCK])
        first.append(numbers.setdefault(block, len(numbers)))
    return first, list(numbers)


def array(declaration: str, values: Iterable[int]) -> str:
    """Format a C++ array."""
    lines, line = [], "   "
    for value in values:
        if len(line) + len(f" {value},") > 100:
            lines.append(line)
            line = "   "
        line += f" {value},"
    lines.append(line)
    return f"extern const {declaration} = {{\n" + "\n".join(lines) + "\n};\n"


def main() -> None:
    """Write the file."""
    characters = [chr(code) for code in range(sys.maxunicode + 1)]
    classes = two_stages([classify(character) for character in characters])
    # Surrogates have no lower case, and a difference of 0 is what most blocks are made of.
    changes = two_stages([lower(character) - ord(character) for character in characters])
    parts = [
        f"// Unicode {unicodedata.unidata_version}. Made by tools/make_unicode_tables.py.\n",
        "// clang-format off\n",
        '#include "text/unicode.hpp"\n',
        "namespace lookalike::text::tables {\n",
        f'extern const char kVersion[] = "{unicodedata.unidata_version}";\n',
        array(f"std::uint8_t kClassBlock[{len(classes[0])}]", classes[0]),
        array(
            f"std::uint8_t kClass[{len(classes[1])}][{BLOCK}]",
            (value for block in classes[1] for value in block),
        ),
        array(f"std::uint8_t kLowerBlock[{len(changes[0])}]", changes[0]),
        array(
            f"std::int32_t kLowerChange[{len(changes[1])}][{BLOCK}]",
            (value for block in changes[1] for value in block),
        ),
        "}  // namespace lookalike::text::tables",
    ]
    TARGET.write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
