// Words of a text with their places: the same words as those of text/features.hpp, which has no
// need to know where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/unicode.hpp"

namespace lookalike::passages {

// Calls on_word(lower-cased bytes, begin, end) for each word; places are in characters. `room` is
// for the bytes of the longest word.
template <class OnWord>
void each_placed_word(std::string_view text, std::vector<unsigned char>& room, OnWord on_word) {
    using text::CharacterClass;
    constexpr std::size_t kLongest = 4;  // bytes of a character
    const auto* at = reinterpret_cast<const unsigned char*>(text.data());
    const auto* const end = at + text.size();
    std::size_t place = 0, begin = 0, length = 0;
    bool inside = false, alone = false;
    const auto end_word = [&] {
        if (inside)
            on_word(std::string_view(reinterpret_cast<const char*>(room.data()), length), begin,
                    place);
        inside = alone = false;
        length = 0;
    };
    for (; at < end; ++place) {
        const text::Decoded decoded = *at < 0x80 ? text::Decoded{*at, 1} : text::decode(at, end);
        at += decoded.length;
        const CharacterClass kind = text::classify(decoded.code);
        if (kind == CharacterClass::other) {
            end_word();
            continue;
        }
        if (kind != CharacterClass::mark) {
            if (alone || kind == CharacterClass::alone)
                end_word();
            if (!inside)
                begin = place;
            inside = true;
            alone = kind == CharacterClass::alone;
        }
        if (!inside)
            continue;  // a mark without a letter
        if (room.size() < length + kLongest)
            room.resize(2 * length + 64);
        const char32_t code =
            kind == CharacterClass::mark ? decoded.code : text::lower(decoded.code);
        length = static_cast<std::size_t>(text::encode(code, room.data() + length) - room.data());
    }
    end_word();
}

}  // namespace lookalike::passages
