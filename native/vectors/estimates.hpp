// Products of queries with vectors of which only the signs of projections are known.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vectors/cosines.hpp"

namespace lookalike::vectors {

// The weight that each bit of a signature has for each query.
struct BitWeights {
    const float* values;
    std::size_t queries, bits;  // bits: a multiple of 8
};

// For each of `count` signatures and its query: the sum of the weights of the bits that are 1, less
// the sum of the others. Weights are added in pairs of four bits, in double precision, so that the
// sum is the same everywhere.
void signed_sums(const BitWeights& weights, const std::uint8_t* signatures,
                 const std::int64_t* asked, std::size_t count, const Work& work, double* sums);

}  // namespace lookalike::vectors
