// Short texts, such as test questions, that are looked for in others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bits/threads.hpp"
#include "passages/runs.hpp"
#include "passages/word_texts.hpp"
#include "repeats/texts.hpp"

namespace lookalike::repeats {

enum class Rule { ngram, share, run, near };

// When a text contains an item.
struct ItemRule {
    Rule rule;
    std::size_t words;   // of an n-gram
    std::size_t fewest;  // an item of fewer words than an n-gram is looked for as a whole from here
    double share;        // least share of the item: of n-grams, or of words
    std::size_t gap;     // other words between two runs, for Rule::near
};

// Items that texts contain, in columns; the ranges of bytes of hit i, which are ascending and do
// not meet, are at offsets[i] to offsets[i + 1].
struct Hits {
    std::vector<std::int64_t> texts, items;
    std::vector<std::int64_t> longest;  // words of the longest run
    std::vector<double> shares;         // what the rule compares, or of n-grams
    std::vector<std::int64_t> offsets{0}, begins, ends;

    void append(const Hits& more);
};

class Items {
  public:
    // The texts have to live as long as this does.
    Items(std::span<const std::string_view> texts, const ItemRule& rule);

    std::size_t size() const { return texts_.size(); }
    // Items with too few words to be looked for.
    std::size_t skipped() const { return skipped_; }

    // All items that texts contain, by text and item.
    Hits find(std::span<const std::string_view> texts, std::size_t threads,
              const bits::Checkpoint& checkpoint) const;

  private:
    struct Place {
        std::uint64_t hash;
        std::uint32_t item, word;
    };
    // Windows of one length, by their hashes, and a filter before them.
    struct Table {
        std::size_t words;
        std::vector<Place> places;
        std::vector<std::uint64_t> filter;
        std::vector<std::uint32_t> begins;  // of places, by the upper bits of hashes
        std::size_t shift = 0;

        void build();
        bool may_have(std::uint64_t hash) const {
            const std::size_t bit = hash & (64 * filter.size() - 1);
            return (filter[bit / 64] >> bit % 64 & 1) != 0;
        }
        std::span<const Place> find(std::uint64_t hash) const;
    };
    struct Seed {
        std::uint32_t item;
        passages::Seed at;
    };

    void add_hits(std::string_view text, std::size_t number, const Words& words,
                  std::vector<Seed>& seeds, Hits& hits) const;

    ItemRule rule_;
    std::span<const std::string_view> texts_;
    std::vector<Table> tables_;
    std::size_t skipped_ = 0;
};

}  // namespace lookalike::repeats
