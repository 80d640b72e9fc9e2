// Words of ASCII text, found 64 bytes at a time: a mask says which bytes belong to words, and where
// it changes, a word begins or ends. No branch depends on a single character.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lookalike::text {

constexpr std::size_t kMaskBytes = 64;

// Which of 64 bytes are letters or digits, the first one lowest; `to` gets the bytes, capitals
// lower-cased if so wanted.
inline std::uint64_t word_mask(const unsigned char* from, bool lowercase, unsigned char* to) {
    std::uint64_t mask = 0;
#if defined(__SSE2__)
    // Bytes are signed to SSE2: those of ASCII are 0 or more, all others less than any letter.
    const auto between = [](__m128i bytes, char first, char last) {
        return _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8(static_cast<char>(first - 1))),
                             _mm_cmplt_epi8(bytes, _mm_set1_epi8(static_cast<char>(last + 1))));
    };
    const __m128i capital_bit = _mm_set1_epi8(lowercase ? 0x20 : 0);
    for (std::size_t part = 0; part < kMaskBytes; part += 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part));
        const __m128i capitals = between(bytes, 'A', 'Z');
        const __m128i others = _mm_or_si128(between(bytes, 'a', 'z'), between(bytes, '0', '9'));
        const __m128i lowered = _mm_or_si128(bytes, _mm_and_si128(capitals, capital_bit));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + part), lowered);
        const int found = _mm_movemask_epi8(_mm_or_si128(capitals, others));
        mask |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(found)) << part;
    }
#else
    for (std::size_t part = 0; part < kMaskBytes; ++part) {
        const unsigned char byte = from[part];
        const bool capital = byte >= 'A' && byte <= 'Z';
        const bool word = capital || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
        to[part] = capital && lowercase ? byte | 0x20 : byte;
        mask |= static_cast<std::uint64_t>(word) << part;
    }
#endif
    return mask;
}

// Calls on_word(bytes, length) for each run of letters and digits from `at` to `end`, which is all
// ASCII. `lowered` has room for the text, rounded up to whole masks, and 16 bytes that may be read.
template <class OnWord>
void each_ascii_word(const unsigned char* at, const unsigned char* end, bool lowercase,
                     unsigned char* lowered, std::vector<std::uint64_t>& masks, OnWord on_word) {
    masks.clear();
    unsigned char* to = lowered;
    for (; end - at >= static_cast<std::ptrdiff_t>(kMaskBytes); at += kMaskBytes, to += kMaskBytes)
        masks.push_back(word_mask(at, lowercase, to));
    // The rest with at least one zero behind it, which ends the last word.
    unsigned char rest[kMaskBytes] = {};
    std::memcpy(rest, at, static_cast<std::size_t>(end - at));
    masks.push_back(word_mask(rest, lowercase, to));

    std::uint64_t inside = 0;
    const unsigned char* begin = lowered;
    for (std::size_t block = 0; block < masks.size(); ++block) {
        std::uint64_t changes = masks[block] ^ (masks[block] << 1 | inside);
        for (; changes != 0; changes &= changes - 1, inside ^= 1) {
            const unsigned char* const place =
                lowered + block * kMaskBytes + std::countr_zero(changes);
            if (inside != 0)
                on_word(begin, static_cast<std::size_t>(place - begin));
            begin = place;
        }
    }
}

// The first byte beyond ASCII.
inline const unsigned char* end_of_ascii(const unsigned char* at, const unsigned char* end) {
    for (; end - at >= 8; at += 8) {
        std::uint64_t word;
        std::memcpy(&word, at, 8);
        if ((word & 0x8080808080808080u) != 0)
            break;
    }
    while (at < end && *at < 0x80)
        ++at;
    return at;
}

}  // namespace lookalike::text
