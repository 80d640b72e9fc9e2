// Which groups are nearest to a query: loops over its distances to all centers, compiled once per
// instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bits/instruction_sets.hpp"

namespace lookalike::search {

struct [[gnu::visibility("hidden")]] ChoiceLoops {
    // How many of the numbers are at most `most`.
    std::size_t (*count_at_most)(const std::int32_t* numbers, std::size_t count, std::int32_t most);

    // Writes the places of these, in order, and returns how many there are.
    std::size_t (*places_at_most)(const std::int32_t* numbers, std::size_t count, std::int32_t most,
                                  std::uint32_t* places);

    // The least of max(distances[i] - farthest[i], nearest[i] - distances[i]).
    std::int32_t (*least_bound)(const std::int32_t* distances, const std::int32_t* nearest,
                                const std::int32_t* farthest, std::size_t count);

#define SET(name, ...) static const ChoiceLoops name;
#include "bits/instruction_sets.inc"
};

}  // namespace lookalike::search
