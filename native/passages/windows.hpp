// Hashes of all windows of some words, and a sample of them that equal runs share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "passages/word_texts.hpp"

namespace lookalike::passages {

// How windows are sampled: of every `window` neighboring ones, each of `words` words, that with
// the least hash, of equals the last. So two texts that have `words` + `window` - 1 words in a row
// in common have a sampled window in common, at the same place of these words: winnowing, by
// Schleimer, Wilkerson and Aiken.
struct Sampling {
    std::size_t words, window;

    // The sampling for runs of `piece` words.
    static Sampling for_runs(std::size_t piece) {
        const std::size_t words = piece / 2 + 1;
        return {words, piece - words + 1};
    }
};

// The hash of each window of `words`, by where it begins; none of a shorter text.
std::vector<std::uint64_t> window_hashes(std::span<const Word> text, std::size_t words);

// Where sampled windows begin, ascending.
std::vector<std::size_t> sampled(std::span<const std::uint64_t> hashes, std::size_t window);

}  // namespace lookalike::passages
