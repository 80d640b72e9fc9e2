// Compiled once per instruction set: see bits/instruction_sets.hpp.

#include "sign/loops.hpp"

namespace lookalike::sign {
namespace {

void add_where_set(const std::uint64_t* words, const std::int32_t* weights, std::size_t count,
                   std::int32_t* counters) {
    std::int32_t sums[64];
    for (int bit = 0; bit < 64; ++bit)
        sums[bit] = counters[bit];
    for (std::size_t index = 0; index < count; ++index) {
        const auto low = static_cast<std::uint32_t>(words[index]);
        const auto high = static_cast<std::uint32_t>(words[index] >> 32);
        const std::int32_t weight = weights[index];
        for (int bit = 0; bit < 32; ++bit)
            sums[bit] += (low & (1u << bit)) != 0 ? weight : 0;
        for (int bit = 0; bit < 32; ++bit)
            sums[32 + bit] += (high & (1u << bit)) != 0 ? weight : 0;
    }
    for (int bit = 0; bit < 64; ++bit)
        counters[bit] = sums[bit];
}

// Counts in columns: bit j of planes[p][lane] is bit p of how many words of the lane have bit j. To
// add eight words takes a few steps, whatever bits they have. Once a plane more would be needed,
// the planes are added to the counters as words of the weights 1, 2, 4, ...
void count_where_set(const std::uint64_t* words, std::size_t count, std::int32_t* counters) {
    constexpr std::size_t kLanes = 8, kPlanes = 6, kMostRounds = (1 << kPlanes) - 1;
    while (count >= kLanes) {
        const std::size_t rounds = count / kLanes < kMostRounds ? count / kLanes : kMostRounds;
        std::uint64_t planes[kPlanes][kLanes] = {};
        for (std::size_t round = 0; round < rounds; ++round) {
            std::uint64_t carry[kLanes];
            for (std::size_t lane = 0; lane < kLanes; ++lane)
                carry[lane] = words[kLanes * round + lane];
            for (std::size_t plane = 0; plane < kPlanes; ++plane)
                for (std::size_t lane = 0; lane < kLanes; ++lane) {
                    const std::uint64_t both = planes[plane][lane] & carry[lane];
                    planes[plane][lane] ^= carry[lane];
                    carry[lane] = both;
                }
        }
        std::int32_t weights[kPlanes * kLanes];
        std::size_t used = 0;
        for (; rounds >> used != 0; ++used)
            for (std::size_t lane = 0; lane < kLanes; ++lane)
                weights[used * kLanes + lane] = 1 << used;
        add_where_set(planes[0], weights, used * kLanes, counters);
        words += kLanes * rounds;
        count -= kLanes * rounds;
    }
    constexpr std::int32_t kOnes[kLanes] = {1, 1, 1, 1, 1, 1, 1, 1};
    add_where_set(words, kOnes, count, counters);
}

void permuted_minima(const std::uint32_t* values, std::size_t count, const std::uint32_t* factors,
                     const std::uint32_t* terms, std::size_t permutations, std::uint32_t* minima) {
    constexpr std::size_t kGroup = kPermutationGroup;
    for (std::size_t group = 0; group < permutations; group += kGroup) {
        std::uint32_t factor[kGroup], term[kGroup], minimum[kGroup];
        for (std::size_t lane = 0; lane < kGroup; ++lane) {
            factor[lane] = factors[group + lane];
            term[lane] = terms[group + lane];
            minimum[lane] = minima[group + lane];
        }
        for (std::size_t index = 0; index < count; ++index) {
            const std::uint32_t value = values[index];
            for (std::size_t lane = 0; lane < kGroup; ++lane) {
                const std::uint32_t permuted = factor[lane] * value + term[lane];
                minimum[lane] = permuted < minimum[lane] ? permuted : minimum[lane];
            }
        }
        for (std::size_t lane = 0; lane < kGroup; ++lane)
            minima[group + lane] = minimum[lane];
    }
}

// Eight to 32 bits of four vectors at a time: their sums stay in registers.
template <std::size_t kBits>
inline void project_bits(const float* vectors, std::size_t dimensions, const float* matrix,
                         std::size_t bits, float* sums) {
    float sum[kVectorGroup][kBits] = {};
    for (std::size_t dimension = 0; dimension < dimensions; ++dimension) {
        const float* const row = matrix + dimension * bits;
        for (std::size_t vector = 0; vector < kVectorGroup; ++vector) {
            const float value = vectors[vector * dimensions + dimension];
            for (std::size_t bit = 0; bit < kBits; ++bit)
                sum[vector][bit] += value * row[bit];
        }
    }
    for (std::size_t vector = 0; vector < kVectorGroup; ++vector)
        for (std::size_t bit = 0; bit < kBits; ++bit)
            sums[vector * bits + bit] = sum[vector][bit];
}

void project(const float* vectors, std::size_t dimensions, const float* matrix, std::size_t bits,
             float* sums) {
    std::size_t bit = 0;
    for (; bit + 32 <= bits; bit += 32)
        project_bits<32>(vectors, dimensions, matrix + bit, bits, sums + bit);
    for (; bit < bits; bit += 8)
        project_bits<8>(vectors, dimensions, matrix + bit, bits, sums + bit);
}

constexpr Loops kLoops{add_where_set, count_where_set, permuted_minima, project};

}  // namespace

constinit const Loops Loops::LOOKALIKE_SET = kLoops;

}  // namespace lookalike::sign
