"""Writes native/text/unicode_*.cpp: what the core has to know about each character.

The tables are part of the signature format: they come from one version of Unicode, that of the
Python that runs this, and are the same for every Python that uses them. Run it again only together
with a new format version.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill

FOLDER = Path(__file__).parent.parent / "native" / "text"
BLOCK = 256
INDENT = 4 * " "
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
    """Cut values into blocks and number the distinct ones; zeros at the end are left out."""
    while not any(values[-BLOCK:]):
        values = values[:-BLOCK]
    numbers: dict[tuple[int, ...], int] = {}
    first = []
    for start in range(0, len(values), BLOCK):
        block = tuple(values[start : start + BLOCK])
        first.append(numbers.setdefault(block, len(numbers)))
    return first, list(numbers)


def packed(block: tuple[int, ...]) -> list[int]:
    """Put classes into words of 64 bits, 2 bits each, the first one lowest."""
    return [
        sum(value << 2 * at for at, value in enumerate(block[start : start + 32]))
        for start in range(0, BLOCK, 32)
    ]


def array(declaration: str, values: Iterable[int], form: str = "d") -> str:
    """Format a C++ array."""
    text = ", ".join(f"{value:{form}}" for value in values)
    lines = fill(text, 100, initial_indent=INDENT, subsequent_indent=INDENT)
    return f"extern const {declaration} = {{\n{lines},\n}};\n"


def write(name: str, *parts: str) -> None:
    """Write a file of tables."""
    lines = [
        f"// Unicode {unicodedata.unidata_version}. Made by tools/make_unicode_tables.py.\n",
        "// clang-format off\n",
        '#include "text/unicode.hpp"\n',
        "namespace lookalike::text::tables {\n",
        *parts,
        "}  // namespace lookalike::text::tables\n",
    ]
    (FOLDER / name).write_text("\n".join(lines))


def main() -> None:
    """Write the files."""
    characters = [chr(code) for code in range(sys.maxunicode + 1)]
    classes = two_stages([classify(character) for character in characters])
    # Surrogates have no lower case, and a difference of 0 is what most blocks are made of.
    changes = two_stages([lower(character) - ord(character) for character in characters])
    write(
        "unicode_classes.cpp",
        f'extern const char kVersion[] = "{unicodedata.unidata_version}";\n',
        array(f"std::uint8_t kClassBlock[{len(classes[0])}]", classes[0]),
        array(
            f"std::uint64_t kClass[{len(classes[1])}][{BLOCK // 32}]",
            (word for block in classes[1] for word in packed(block)),
            "#x",
        ),
    )
    write(
        "unicode_lower.cpp",
        array(f"std::uint8_t kLowerBlock[{len(changes[0])}]", changes[0]),
        array(
            f"std::int32_t kLowerChange[{len(changes[1])}][{BLOCK}]",
            (value for block in changes[1] for value in block),
        ),
    )


if __name__ == "__main__":
    main()
