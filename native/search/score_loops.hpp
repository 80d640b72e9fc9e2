// Sweeps over score tables, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lookalike::search {

struct ScoreLoops {
    // Writes the places of scores >= least, ascending, and returns how many there are; stops after
    // `room` of them.
    std::size_t (*collect)(const std::uint16_t* scores, std::size_t count, std::uint16_t least,
                           std::uint64_t* places, std::size_t room);
    // How many scores are not 0.
    std::size_t (*count_nonzero)(const std::uint16_t* scores, std::size_t count);
};

const ScoreLoops& score_loops();

}  // namespace lookalike::search
