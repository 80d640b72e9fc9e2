// Fingerprints of windows and units for texts that are not in one memory: where they are equal, the
// words are, except with a chance that the words have no influence on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bits/threads.hpp"
#include "repeats/cover.hpp"
#include "repeats/texts.hpp"

namespace lookalike::repeats {

// Two random numbers that nobody knows who wrote the texts.
struct Key {
    std::uint64_t first, second;
};

// SipHash-2-4 with 128 bits, by Jean-Philippe Aumasson and Daniel J. Bernstein.
std::array<std::uint64_t, 2> siphash128(const Key& key, std::string_view bytes);

struct Fingerprints {
    std::vector<std::uint64_t> first, second;
    std::vector<std::int64_t> words;  // number of the first word in its text, as that is now
};

// The fingerprints of the windows or units that begin at these positions, which ascend.
//
// Each half is a polynomial over the integers modulo 2^61 - 1 at a secret place, whose coefficients
// are keyed hashes of the words. So two sequences of n words that differ have the same half with a
// probability of less than (n + 10) / 2^61, and the same fingerprint with the square of that.
Fingerprints fingerprints_of(const Texts& texts, std::span<const Position> positions,
                             const Choice& choice, const Key& key, std::size_t threads,
                             const bits::Checkpoint& checkpoint);

}  // namespace lookalike::repeats
