// Random permutations of the bits (Charikar): the collection in several orders, each by the first
// bits of another permutation. What is near a query agrees with it in a long prefix of some order,
// so each order is looked at around the query's place, longest common prefix first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tables/sorted_table.hpp"

namespace lookalike::search {

// Bits of a prefix, at most: what an order sorts by. They tell apart all that does not agree in 64
// bits drawn at random.
constexpr std::size_t kMostPrefixBits = 64;

// The prefix of each signature under a permutation that begins with these bits of it, as a number:
// the first of them is its uppermost bit; those that there are none of are 0.
void prefix_keys(const Signatures& signatures, std::span<const std::uint32_t> bits,
                 std::size_t threads, const bits::Checkpoint& checkpoint, std::uint64_t* keys);

// What is looked at for a query.
struct PrefixSearch {
    const std::vector<SortedTable>& orders;  // of the keys of all rows
    const Collection& collection;
    const std::uint8_t* removed;  // a byte per row, not 0: passed over; null: none is
    const Signatures& queries;
    const std::uint64_t* keys;  // of the queries, order by order
    std::size_t examine;        // number of different signatures whose distance is computed
};

// One number per query each; rows of k ids and distances, of which those that are not found stay
// as they are.
struct PrefixOutput {
    std::int64_t* ids;        // k
    std::int32_t* distances;  // k
    std::int64_t* places;     // of orders looked at
    std::int64_t* compared;   // different signatures
};

// The k nearest by (distance, id) of the signatures that were examined: those with the longest
// prefix in any order, and of equally long ones those of the first order, below the query's place
// before above it. The same for any number of threads.
void prefix_nearest(const PrefixSearch& search, std::size_t k, std::size_t threads,
                    const bits::Checkpoint& checkpoint, const PrefixOutput& output);

// Those of them within `radius`, sorted by (distance, id); `output` has no ids and distances.
Matches prefix_within(const PrefixSearch& search, std::uint32_t radius, std::size_t limit,
                      std::size_t threads, const bits::Checkpoint& checkpoint,
                      const PrefixOutput& output);

}  // namespace lookalike::search
