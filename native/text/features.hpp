// From text to features: words or characters, in n-grams, each a 64-bit hash.
//
//   a word           XXH64 of its UTF-8 bytes, after lower-casing and stemming
//   n words          fmix64(w1 * P^(n-1) + ... + wn) over the hashes of the words, P = kShingleBase
//   n characters     XXH64 of their UTF-8 bytes
//
// A text of fewer than n words or characters, but at least one, has one feature: all of them. Of
// several n, only a text of fewer than the least of them has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/each_word.hpp"
#include "text/hash_map.hpp"

namespace lookalike::text {

// Odd, so that multiplying loses nothing; otherwise arbitrary.
constexpr std::uint64_t kShingleBase = 0x9fb21c651e98df25u;

struct Nothing {};
using StopWords = HashMap<Nothing>;    // hashes of words to leave out
using Stems = HashMap<std::uint64_t>;  // hash of a word to hash of its stem

struct FeatureOptions {
    bool characters = false;             // n-grams of characters instead of words
    std::vector<std::size_t> ngrams{1};  // ascending, each once
    bool lowercase = true;
    std::size_t min_length = 1;  // of a word, in letters and digits
    StopWords stopwords;
    bool stem = false;
};

// What one thread needs while it reads texts.
struct Scratch : WordScratch {
    std::vector<std::uint64_t> hashes;
    std::vector<std::uint64_t> sums, leaving;
    std::vector<const unsigned char*> begins;
};

// Appends the features of `text`, in the order in which they end, to `features`. With `stem`, words
// are looked up in `stems`; one that is not there stands for itself.
void extract(std::string_view text, const FeatureOptions& options, const Stems& stems,
             Scratch& scratch, std::vector<std::uint64_t>& features);

// Adds to `unknown` the words of `text` that are not in `stems`, by hash. Stop words are left out.
void collect_unknown(std::string_view text, const FeatureOptions& options, const Stems& stems,
                     Scratch& scratch, HashMap<std::string>& unknown);

}  // namespace lookalike::text
