// Searching slice lists by the bits that count. A slice is worth as much as it has such bits: the
// others of it may have any value, and all lists of these have to be read; one that has none is
// never looked at. Where a scan takes less, it answers.
//
// Everything is exact, and ordered by (masked distance, unmasked distance, id).
#pragma once

#include <cstdint>
#include <vector>

#include "slices/search.hpp"

namespace lookalike::search {

// Everything whose masked distance is at most `radius`. Throws TooManyResults as soon as there is
// more than `limit`. `work` gets what each query took.
Matches slice_within_masked(const Slicing& slicing, const std::vector<Segment>& segments,
                            const MaskedQueries& queries, std::uint32_t radius, std::size_t limit,
                            std::size_t threads, const bits::Checkpoint& checkpoint,
                            std::vector<WithinWork>& work);

// One row of k places per query each; those for which there is nothing are not written to.
struct MaskedOutput {
    std::int64_t* ids;
    std::int32_t* distances;
    std::int32_t* unmasked;
};

void slice_nearest_masked(const Slicing& slicing, const std::vector<Segment>& segments,
                          const MaskedQueries& queries, std::size_t k, std::size_t threads,
                          const bits::Checkpoint& checkpoint, const MaskedOutput& output,
                          std::vector<WithinWork>& work);

}  // namespace lookalike::search
