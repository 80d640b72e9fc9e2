// Sweeps over score tables, compiled once per instruction set.
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
};

const ScoreLoops& score_loops();

}  // namespace lookalike::search
