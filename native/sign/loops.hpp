// The inner loops of signing, written once in plain C++ and compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bits/instruction_sets.hpp"

namespace lookalike::sign {

// Permutations are taken in groups of this many; parameter arrays are padded to a multiple.
constexpr std::size_t kPermutationGroup = 32;

// Vectors are projected in groups of this many, so that the matrix is read once for all of them.
constexpr std::size_t kVectorGroup = 4;

struct [[gnu::visibility("hidden")]] Loops {
    // For each set bit j of each word: counters[j] += weight of that word.
    void (*add_where_set)(const std::uint64_t* words, const std::int32_t* weights,
                          std::size_t count, std::int32_t* counters);

    // The same where each word has the weight 1.
    void (*count_where_set)(const std::uint64_t* words, std::size_t count, std::int32_t* counters);

    // minima[p] = min over i of factors[p] * values[i] + terms[p], modulo 2^32, and what it was.
    void (*permuted_minima)(const std::uint32_t* values, std::size_t count,
                            const std::uint32_t* factors, const std::uint32_t* terms,
                            std::size_t permutations, std::uint32_t* minima);

    // sums[v * bits + b] = sum over d of vectors[v * dimensions + d] * matrix[d * bits + b], in
    // this order of d and in single precision, for kVectorGroup vectors; bits is a multiple of 8.
    void (*project)(const float* vectors, std::size_t dimensions, const float* matrix,
                    std::size_t bits, float* sums);

#define SET(name, ...) static const Loops name;
#include "bits/instruction_sets.inc"
};

inline const Loops& loops() {
    return bits::chosen<Loops>();
}

}  // namespace lookalike::sign
