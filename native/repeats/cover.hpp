// Which text is removed: windows and units that occur earlier are compared word by word, and what
// they cover becomes ranges of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "repeats/windows.hpp"

namespace lookalike::repeats {

// Where something occurs again, and where its first copy is; both are positions. Where both are
// the same, it is a first copy, which something else repeats.
struct Copies {
    std::vector<Position> places, firsts;
};

// Copies whose firsts are in documents that need not be here: the numbers of these, and the numbers
// of words there (of units: whatever tells them apart). `own` has the document of each text.
struct FarCopies {
    std::vector<Position> places;
    std::vector<std::int64_t> documents, words, own;
};

// Units that are removed somewhere: the first copy, in how many texts and places each is.
struct UnitCounts {
    std::vector<Position> firsts;
    std::vector<std::int64_t> texts, places;
};

// What to make of equal hashes.
struct Choice {
    std::size_t words;            // of a window; 0 for units, whose words are those to their end
    Unit unit = Unit::line;       // if there are units
    std::int64_t most_texts = 1;  // a unit in more texts than these is removed from all but one
    bool every = false;           // remove the first copy, too
    bool compared = false;        // do not believe equal hashes, but compare words
    // Passages of several runs, each of `words` words or more, with at most `gap` other words
    // between two, and `least` words in all; 0 for single windows.
    std::size_t least = 0, gap = 0;
    std::size_t most_places = 1;  // of equal windows of a passage, those that others are copies of

    bool near() const { return least != 0; }
};

// Copies by hashes that `sort_hashed` sorted.
Copies copies_of(const Texts& texts, const Hashed& sorted, const Choice& choice,
                 UnitCounts* counts);

enum class Boundary { word, automatic, line, sentence, paragraph };

// Ranges to remove, ascending in each text, and where the first copy of each is.
struct Removals {
    std::vector<std::int64_t> texts, begins, ends, words;
    std::vector<std::int64_t> copy_texts, copy_begins, copy_ends;
    std::size_t collisions = 0;  // copies that were none: `Choice::compared` has to be set

    void append(const Removals& more);
};

// What to remove because of these copies, by their places; text outside of the ranges stays.
//
// A word is repeated if a window that covers it has a copy that it does not overlap. Of passages,
// the runs are windows one after the other that have copies one after the other. A run follows
// another one if it begins and ends behind it in both texts, with at most `gap` words between them.
// A word is repeated if it is in a run of runs that follow each other, which have `least` different
// words of the text or more. With
// Boundary::word, repeated words are removed, with the punctuation and the space behind them. With
// Boundary::automatic, so are the other words of a sentence of which more than half are repeated.
// With others, units are removed of which more than half of the words are repeated, and nothing
// else. A unit with words of a first copy that are not repeated themselves is not extended.
Removals removals_of(const Texts& texts, Copies copies, const Choice& choice, Boundary boundary,
                     std::size_t threads, const bits::Checkpoint& checkpoint);

// The same for copies that are known to be equal, whose places ascend. Where one has several
// firsts, they are in the order of documents. The columns of copies have documents, and numbers of
// words up to one that is not included; of units the number and -1. A place where no window begins
// is counted as a collision.
Removals far_removals_of(const Texts& texts, const FarCopies& copies, const Choice& choice,
                         Boundary boundary, std::size_t threads,
                         const bits::Checkpoint& checkpoint);

}  // namespace lookalike::repeats
