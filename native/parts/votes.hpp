// Votes for an item and a place in it: parts of a query that are near parts of the item, all by the
// same difference of positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lookalike::parts {

// Parts that are near each other, one of the query and one of an item.
struct NearParts {
    std::span<const std::int64_t> query_parts;  // numbers, ascending from 0
    std::span<const std::int64_t> items;
    std::span<const std::int64_t> differences;  // position in the item minus that in the query
    std::span<const std::int64_t> parts;
    std::span<const std::int32_t> distances;
};

inline constexpr std::int64_t kCounted = std::int64_t{1} << 30;  // above the sum of all distances

// Items by votes. The matched parts of item i are at begins[i] to begins[i + 1], by query part.
struct Votes {
    std::vector<std::int64_t> items, offsets, votes;
    std::vector<std::int64_t> begins{0}, query_parts, parts;
    std::vector<std::int32_t> distances;
};

// A window is all differences from some d to d + tolerance. Its votes are the query parts that have
// a near part in it, each once, and its distance is the sum over these of the distance of the
// nearest. An item has the votes of its best window. A vote is worth `vote`, less its distance: the
// best window is worth most of those with at least `least` votes; of equals it has the smallest d.
// With kCounted, these are most votes, and of equals the least distance. Its offset is the
// difference in it that is the best window by itself. Each query part that votes is matched with
// the nearest part in the window: by distance, then by how far its difference is from the offset,
// then the first.
//
// Returns at most k items of at least `least` votes: those first whose votes weigh most, then the
// smallest sum of distances, then the smallest number. `weights` has the weight of each query part;
// if it is empty, each is 1.
Votes count_votes(const NearParts& near, std::size_t query_parts,
                  std::span<const std::int64_t> weights, std::int64_t tolerance, std::size_t least,
                  std::size_t k, std::int64_t vote);

}  // namespace lookalike::parts
