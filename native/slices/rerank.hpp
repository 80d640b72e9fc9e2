// True distances of candidates, for many queries at a time; or none, and the best by score.
#pragma once

#include <cstdint>
#include <vector>

#include "bits/kernels.hpp"
#include "bits/pool.hpp"
#include "bits/top_k.hpp"
#include "slices/search.hpp"

namespace lookalike::search {

// A signature found, with the score by which it became a candidate.
struct ScoredNeighbor : bits::Neighbor {
    std::uint32_t score;
};

// Candidates of all queries of a group are put together by where their signatures lie, so that
// each signature comes from memory once, next to its neighbors, and meets all queries that want
// it in the cache. In what order distances are computed does not show in the answer.
class Reranking {
    static constexpr std::size_t kStripBits = 32;
    static constexpr std::uint64_t kStripRows = std::uint64_t{1} << kStripBits;

    // A candidate, with the row counted from the beginning of its strip.
    struct Entry {
        std::uint32_t row;
        std::uint16_t query, score;
    };

    // 2^32 rows of a segment, or fewer, in parts that have room for the same number of entries. A
    // part that is full is compared and empty again.
    struct Strip {
        const Collection* collection;
        std::uint64_t first;
        std::size_t shift, room;
        Entry* entries;
        std::vector<std::uint32_t> sizes;  // of the parts
    };

  public:
    // Queries of a group, at most: they are numbered in 16 bits, and so are scores.
    static constexpr std::size_t kMostQueries = 1 << 16;

    // `expected` candidates or so will be added. `by_score`: their distance is taken to be the
    // largest that the score allows, so that the nearest are the best by (score, id).
    Reranking(const std::vector<Segment>& segments, const Signatures& queries, std::size_t k,
              std::size_t expected, bool by_score = false);

    // Candidates of one segment and one query.
    class Adder {
      public:
        void add(std::uint64_t row, std::uint32_t score) {
            if (row >> kStripBits != number_) [[unlikely]]
                use(row >> kStripBits);
            const std::size_t part = static_cast<std::uint32_t>(row) >> shift_;
            Entry* const place = entries_ + part * room_ + sizes_[part];
            // The next entries of this part go to another cache line, which is far away by now.
            __builtin_prefetch(place + 64 / sizeof(Entry), 1);
            *place = {static_cast<std::uint32_t>(row), query_, static_cast<std::uint16_t>(score)};
            if (++sizes_[part] == room_) [[unlikely]]
                all_.compare(first_[number_], part);
        }

      private:
        friend class Reranking;
        Adder(Reranking& all, std::size_t query, std::size_t segment)
            : all_(all),
              first_(all.strips_.data() + all.first_strips_[segment]),
              query_(static_cast<std::uint16_t>(query)) {
            use(0);
        }

        // What is needed of the strip is copied, so that it can be held in registers.
        void use(std::uint64_t number) {
            number_ = number;
            shift_ = first_[number].shift;
            room_ = first_[number].room;
            entries_ = first_[number].entries;
            sizes_ = first_[number].sizes.data();
        }

        Reranking& all_;
        Strip* first_;
        std::uint16_t query_;
        std::uint64_t number_ = 0;
        std::size_t shift_ = 0, room_ = 0;
        Entry* entries_ = nullptr;
        std::uint32_t* sizes_ = nullptr;
    };
    Adder adder(std::size_t query, std::size_t segment) { return {*this, query, segment}; }

    // Computes the distances of all that was added since the last time; those of one query shared
    // among threads, if there are many.
    void run(std::size_t threads, const bits::Checkpoint& checkpoint);

    bits::TopItems<ScoredNeighbor>& nearest(std::size_t query) { return nearest_[query]; }

  private:
    using Nearest = bits::TopItems<ScoredNeighbor>;

    void compare(Strip& strip, std::size_t part);
    // Some entries of a strip; `nearest` and `cutoffs` are those of each query.
    void compare(const Strip& strip, const Entry* entries, std::size_t count, Nearest* nearest,
                 std::int64_t* cutoffs) const;

    Signatures queries_;  // a copy that begins where cache lines begin
    bits::Kernels kernels_;
    bool by_score_;
    std::size_t k_;
    std::vector<std::size_t> first_strips_;  // of each segment, and the end of the last
    std::vector<Strip> strips_;
    std::vector<Nearest> nearest_;
    std::vector<std::int64_t> cutoffs_;  // of each query
    struct Store {
        bits::Room<Entry> entries;
        bits::Room<std::uint8_t> queries;
    };
    bits::Pooled<Store> store_;
};

}  // namespace lookalike::search
