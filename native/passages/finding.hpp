// Which texts have passages in common?
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bits/threads.hpp"
#include "passages/runs.hpp"
#include "passages/word_texts.hpp"

namespace lookalike::passages {

// Passages of pairs of texts, in columns. Runs of passage i are at begins[i] to begins[i + 1];
// places are words, from the beginning of each text on.
struct Passages {
    std::vector<std::int64_t> left, right, words;
    std::vector<std::int64_t> begins{0}, run_left, run_right, run_length;
    std::size_t common = 0;         // different windows that were left out
    std::size_t common_places = 0;  // how many places they are in

    void add(std::size_t one, std::size_t other, const Passage& passage);
    void append(const Passages& more);
};

// All passages that two different texts have in common, by the first text, the second, and the
// places in them. A window of words that is in more than `common` places proposes nothing: what
// consists of nothing else is not found. With `within`, also passages that a text has twice, at
// places that do not overlap; a run that overlaps its copy is cut at it.
Passages find_overlaps(const WordTexts& texts, const Rules& rules, std::size_t common, bool within,
                       std::size_t threads, const bits::Checkpoint& checkpoint);

// A text that is looked for in others.
class Query {
  public:
    Query(std::string_view text, const Rules& rules, std::size_t common);

    std::size_t words() const { return words_.words.size(); }

    // All passages that texts have in common with it; it is on the left, with the number 0. Every
    // window is looked up, so that every run of enough words is found. Only, of a window that is in
    // more than `common` places of either text the first ones are taken; how often one of a text
    // was is in Passages::common.
    Passages find(std::span<const std::string_view> texts, std::size_t threads,
                  const bits::Checkpoint& checkpoint) const;

  private:
    Passages in_text(std::string_view text, std::size_t number) const;

    Rules rules_;
    std::size_t common_;
    Vocabulary vocabulary_;
    WordTexts words_;
    std::unordered_map<std::uint64_t, std::size_t> numbers_;  // of windows, by their hashes
    std::vector<std::vector<std::size_t>> places_;
};

}  // namespace lookalike::passages
