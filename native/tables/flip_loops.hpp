// The inner loops of flips, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bits/instruction_sets.hpp"
#include "tables/vosh.hpp"

namespace lookalike::search {

// What a bit of some |weight| costs: a table over |weight| * scale, the last value beyond it.
struct FlipCosts {
    static constexpr std::size_t kSteps = 1023;  // 10 bits, and one value for "no bit"

    float scale;
    const std::uint16_t* costs;  // kSteps, ascending, at most RankedBits::kMostCost
};

// A sorted array of 64-bit signatures with where each header, their upper bits, begins.
struct Sorted64 {
    const std::uint64_t* signatures;
    const std::uint32_t* offsets;
    std::size_t count;
};

struct FlipProbe {
    std::uint32_t header;
    std::uint32_t query;
};

struct FlipHit {
    static constexpr std::uint32_t kLarge = ~std::uint32_t{0};
    static constexpr std::uint32_t kCorrupt = kLarge - 1;

    std::uint32_t query;
    std::uint32_t distance;  // kLarge: the bucket from `place` on is too large to be looked at here
    std::uint32_t place;
};

struct [[gnu::visibility("hidden")]] FlipLoops {
    // Ranks `bits` <= 32 bits by the step of their |weight|, small ones first, ties by position.
    // With `before`, 32 - bits weights in front of these may be read too.
    void (*rank_floats)(const float* weights, std::size_t bits, bool before, const FlipCosts& costs,
                        RankedBits& ranked);
    // The same for weights in units, of which each stands for the middle of its step.
    void (*rank_units)(const std::int16_t* weights, std::size_t bits, bool before,
                       const FlipCosts& costs, RankedBits& ranked);
    bool (*all_finite)(const float* weights, std::size_t count);

    // The first `candidates.wanted` sets of up to kChosenTogether queries, likely ones first, to be
    // written to flips[0], flips[1] and so on. `weights` are those of the first query's header, of
    // at most 32 bits; those of the next one are `stride` further on.
    void (*choose_floats)(const Candidates& candidates, const float* weights, std::size_t stride,
                          std::size_t bits, const FlipCosts& costs, std::size_t queries,
                          std::uint32_t* const* flips);
    void (*choose_units)(const Candidates& candidates, const std::int16_t* weights,
                         std::size_t stride, std::size_t bits, const FlipCosts& costs,
                         std::size_t queries, std::uint32_t* const* flips);

    static constexpr std::size_t kChosenTogether = 32;

    // Compares each query with the bucket of each of its probes, whose offsets should be in a cache
    // already, and returns how many hits there are, in order of probes and places. `spare` must
    // have room for `count`, `hits` for kMostHits times as many.
    std::size_t (*probe)(const Sorted64& sorted, const std::uint64_t* queries, std::uint32_t radius,
                         const FlipProbe* probes, std::size_t count, FlipHit* spare, FlipHit* hits);

    static constexpr std::size_t kMostHits = 56;  // in one bucket; larger ones are passed on

#define SET(name, ...) static const FlipLoops name;
#include "bits/instruction_sets.inc"
};

inline const FlipLoops& flip_loops() {
    return bits::chosen<FlipLoops>();
}

}  // namespace lookalike::search
