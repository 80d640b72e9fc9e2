// The inner loops of points, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bits/instruction_sets.hpp"

namespace lookalike::images {

struct [[gnu::visibility("hidden")]] PointLoops {
    // Writes width sums: of rows[0], rows[1], ... at the same place, each times its weight, added
    // up in this order.
    void (*weigh)(const float* const* rows, const float* weights, std::size_t count, float* to,
                  std::size_t width);
    // Writes for each value but the first and last whether it is larger than least and than its
    // four neighbors, or less than all of these and -least.
    void (*tops)(const float* above, const float* own, const float* below, float least,
                 std::size_t width, std::uint8_t* found);
#define SET(name, ...) static const PointLoops name;
#include "bits/instruction_sets.inc"
};

inline const PointLoops& point_loops() {
    return bits::chosen<PointLoops>();
}

}  // namespace lookalike::images
