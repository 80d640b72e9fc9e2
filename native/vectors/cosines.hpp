// Cosines of vectors, in double precision: of given candidates, or of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bits/threads.hpp"

namespace lookalike::vectors {

// Rows of floats or of halves in two parts: those that were there first, and those added since.
struct Rows {
    const void* first;
    const void* added;
    std::size_t first_count, count;  // of the first part, and of both
    std::size_t dimensions;
    bool halves;
    const std::int64_t* ids;  // of each row; null where places are ids

    std::size_t row_bytes() const { return dimensions * (halves ? 2 : 4); }
    const std::uint8_t* row(std::size_t place) const {
        const bool early = place < first_count;
        const auto* const part = static_cast<const std::uint8_t*>(early ? first : added);
        return part + (early ? place : place - first_count) * row_bytes();
    }
    std::int64_t id(std::size_t place) const {
        return ids == nullptr ? static_cast<std::int64_t>(place) : ids[place];
    }
};

struct Queries {
    const float* values;
    std::size_t count;
};

struct Work {
    std::size_t threads;
    bits::Checkpoint checkpoint;
};

// The `k` of each query's candidates with the largest cosines, ties by id. Candidates are places,
// negative where there is none. What is missing of k is left as it was in ids and cosines.
void best_candidates(const Rows& rows, const Queries& queries, const std::int64_t* candidates,
                     std::size_t per_query, std::size_t k, const Work& work, std::int64_t* ids,
                     double* cosines);

// The same of all rows. `skip`: a byte per row, not 0 where it is left out; or null.
void best_of_all(const Rows& rows, const std::uint8_t* skip, const Queries& queries, std::size_t k,
                 const Work& work, std::int64_t* ids, double* cosines);

struct Matches {
    std::vector<std::int64_t> offsets, ids;
    std::vector<double> cosines;
};

// All rows whose cosine is at least so large, by (query, cosine, id). Throws search::TooManyResults
// as soon as there are more than `limit`.
Matches at_least(const Rows& rows, const std::uint8_t* skip, const Queries& queries, double least,
                 std::size_t limit, const Work& work);

// The cosine of a query and a place for each of `count` pairs.
void cosines_of_pairs(const Rows& rows, const Queries& queries, const std::int64_t* asked,
                      const std::int64_t* places, std::size_t count, const Work& work,
                      double* cosines);

}  // namespace lookalike::vectors
