// Runs of equal words in two texts, and passages that consist of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "passages/word_texts.hpp"

namespace lookalike::passages {

// Equal words, from these places of two texts on, that cannot be made longer.
struct Run {
    std::size_t left, right, length;

    std::size_t left_end() const { return left + length; }
    std::size_t right_end() const { return right + length; }
};

// Places in two texts where a few words are, or seem to be, equal.
struct Seed {
    std::size_t left, right;
};

// What counts as a passage.
struct Rules {
    std::size_t piece;      // the words of a run that counts
    std::size_t gap;        // the words that may lie between two runs, in either text
    std::size_t min_words;  // equal words of a passage
};

// All runs of at least `piece` words that a seed lies in, by place on the left, then on the right.
// `seeds` are put in order.
std::vector<Run> runs_of(std::span<const Word> left, std::span<const Word> right,
                         std::vector<Seed>& seeds, std::size_t piece);

struct Passage {
    std::vector<Run> runs;  // one after the other in both texts; what overlaps is cut off the later
    std::size_t words;      // equal ones, of all runs
};

// Runs that follow each other make one passage. In the order they come, each goes on the passage
// whose last run it follows with the least shift from its words to those opposite; of equals the
// one that began first. Passages of fewer words than `min_words` are left out.
std::vector<Passage> passages_of(std::span<const Run> runs, const Rules& rules);

}  // namespace lookalike::passages
