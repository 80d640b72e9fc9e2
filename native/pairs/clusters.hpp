// From pairs to clusters.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lookalike::search {

// Connected components: label[i] is the least member of the component of i.
void components(std::size_t count, const std::int64_t* left, const std::int64_t* right,
                std::size_t pairs, std::int64_t* labels);

// Stars: in the given order, each item that is not in a star yet becomes a center, and those of its
// neighbors that are not in a star yet join it. So every member is paired with its center,
// which is its label.
void stars(std::size_t count, const std::int64_t* order, const std::int64_t* left,
           const std::int64_t* right, std::size_t pairs, std::int64_t* labels);

}  // namespace lookalike::search
