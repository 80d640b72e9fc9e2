// Sweeps over scores and sketches, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lookalike::search {

struct ScoreLoops {
    // Writes the places of scores >= least, ascending, and returns how many there are.
    std::size_t (*collect)(const std::uint8_t* scores, std::size_t count, std::uint8_t least,
                           std::uint64_t* places);
    // How many scores are not 0.
    std::size_t (*count_nonzero)(const std::uint8_t* scores, std::size_t count);
    // Writes the places of sketches that differ from the query's in `cutoff` bits or fewer,
    // ascending, and returns how many there are; at most 2^32 sketches.
    std::size_t (*near_sketches)(const std::uint16_t* sketches, std::size_t count,
                                 std::uint16_t query, std::uint16_t cutoff, std::uint32_t* places);
};

const ScoreLoops& score_loops();

}  // namespace lookalike::search
