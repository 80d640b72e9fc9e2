// UTF-8 and what characters are: letters and digits as Python's `str.isalnum` has them, from tables
// of one Unicode version (tools/make_unicode_tables.py), so that every machine agrees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace lookalike::text {

namespace tables {
extern const char kVersion[];
// By blocks of 256 characters; behind the last block nothing is special.
extern const std::uint8_t kClassBlock[3586];
extern const std::uint64_t kClass[][8];  // 2 bits a character
extern const std::uint8_t kLowerBlock[490];
extern const std::int32_t kLowerChange[][256];
}  // namespace tables

enum class CharacterClass : std::uint8_t {
    other,  // ends a word
    word,   // a letter or digit
    alone,  // one of a script written without spaces: a word by itself
    mark,   // a combining mark: belongs to the letter before it
};

inline CharacterClass classify(char32_t code) {
    if (code >> 8 >= std::size(tables::kClassBlock))
        return CharacterClass::other;
    const std::uint64_t word = tables::kClass[tables::kClassBlock[code >> 8]][code >> 5 & 7];
    return static_cast<CharacterClass>(word >> 2 * (code & 31) & 3);
}

// Python's `str.lower` for a single character. Where that is two characters (U+0130), the first.
inline char32_t lower(char32_t code) {
    if (code >> 8 >= std::size(tables::kLowerBlock))
        return code;
    const std::int32_t change = tables::kLowerChange[tables::kLowerBlock[code >> 8]][code & 0xff];
    return static_cast<char32_t>(static_cast<std::int32_t>(code) + change);
}

struct Decoded {
    char32_t code;
    std::size_t length;
};

// The character at `at` < `end`. A byte that begins no valid character (cut short, overlong, a
// surrogate, beyond U+10FFFF) is U+FFFD of length 1, which is no letter.
Decoded decode(const unsigned char* at, const unsigned char* end);

// Whether a text has at most this number of characters. Invalid bytes count as the characters that
// they seem to begin.
bool has_at_most(std::string_view text, std::size_t characters);

// Writes `code` as UTF-8, at most 4 bytes, and returns the place behind it.
unsigned char* encode(char32_t code, unsigned char* to);

}  // namespace lookalike::text
