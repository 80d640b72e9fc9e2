// The words of UTF-8: runs of letters and digits, and single characters of scripts without spaces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/ascii_words.hpp"
#include "text/unicode.hpp"

namespace lookalike::text {

struct WordOptions {
    bool lowercase = true;
    std::size_t min_length = 1;  // of a word, in letters and digits
};

// What one thread needs while it reads words.
struct WordScratch {
    std::vector<unsigned char> word;
    std::vector<std::uint64_t> masks;
};

// For each ASCII byte its (lower-case) letter or digit, or 0.
constexpr std::array<unsigned char, 256> ascii_words(bool lowercase) {
    std::array<unsigned char, 256> table{};
    for (unsigned byte = 0; byte < 128; ++byte) {
        const bool upper = byte >= 'A' && byte <= 'Z';
        if (upper || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9'))
            table[byte] = static_cast<unsigned char>(upper && lowercase ? byte + 32 : byte);
    }
    return table;
}

constexpr auto kAsciiLower = ascii_words(true);
constexpr auto kAsciiSame = ascii_words(false);

// Words are followed by as many bytes as this that may be read.
constexpr std::size_t kReadable = 16;

// Calls on_word(bytes, length) for each word that is long enough, whatever the script. `begin` has
// room for the longest word.
template <class OnWord>
void each_word_of_any_script(const unsigned char* at, const unsigned char* end,
                             const WordOptions& options, unsigned char* begin, OnWord on_word) {
    const auto& ascii = options.lowercase ? kAsciiLower : kAsciiSame;
    unsigned char* to = begin;
    std::size_t characters = 0;
    bool alone = false;

    const auto end_word = [&] {
        if (characters != 0 && (alone || characters >= options.min_length))
            on_word(begin, static_cast<std::size_t>(to - begin));
        to = begin;
        characters = 0;
        alone = false;
    };

    while (at < end) {
        if (*at < 0x80) {
            if (alone)
                end_word();
            const unsigned char* const start = at;
            while (at < end && (*to = ascii[*at]) != 0) {
                ++to;
                ++at;
            }
            characters += static_cast<std::size_t>(at - start);
            if (at < end && *at < 0x80) {
                end_word();
                ++at;
            }
            continue;
        }
        const Decoded decoded = decode(at, end);
        at += decoded.length;
        const CharacterClass kind = classify(decoded.code);
        if (kind == CharacterClass::other) {
            end_word();
            continue;
        }
        if (kind == CharacterClass::mark) {
            if (characters != 0)
                to = encode(decoded.code, to);
            continue;
        }
        if (alone || kind == CharacterClass::alone)
            end_word();
        alone = kind == CharacterClass::alone;
        to = encode(options.lowercase ? lower(decoded.code) : decoded.code, to);
        ++characters;
    }
    end_word();
}

// Calls on_word(bytes, length) for each word that is long enough; `kReadable` bytes may be read.
template <class OnWord>
void each_word(std::string_view text, const WordOptions& options, WordScratch& scratch,
               OnWord on_word) {
    // Lower-casing makes some characters longer, from two bytes to three, never more than that.
    scratch.word.resize(2 * text.size() + kMaskBytes + kReadable);
    unsigned char* const room = scratch.word.data();
    const auto in_word = [](unsigned char byte) { return kAsciiSame[byte] != 0; };
    const auto long_enough = [&](const unsigned char* word, std::size_t length) {
        if (length >= options.min_length)
            on_word(word, length);
    };
    // No word goes beyond an ASCII character that belongs to none; so there a text can be cut.
    const auto* at = reinterpret_cast<const unsigned char*>(text.data());
    const auto* const end = at + text.size();
    while (at < end) {
        const unsigned char* other = end_of_ascii(at, end);
        const unsigned char* cut = other;
        while (other != end && cut > at && in_word(cut[-1]))
            --cut;
        if (cut > at)
            each_ascii_word(at, cut, options.lowercase, room, scratch.masks, long_enough);
        while (other < end && (*other >= 0x80 || in_word(*other)))
            ++other;
        each_word_of_any_script(cut, other, options, room, on_word);
        at = other;
    }
}

}  // namespace lookalike::text
